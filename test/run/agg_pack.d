//@ engine: interp,kernel,inproc
//@ cmd: -q -x aggpack -x aggsortkey -s %s
//@ covers: aggpack
BEGIN
{
	@["small"] = quantize(1);
	@["small"] = quantize(1);
	@["small"] = quantize(2);
	@["wide"] = quantize(1);
	@["wide"] = quantize(5000);
	@l["lin"] = lquantize(3, 0, 10, 1);
	@l["lin"] = lquantize(30, 0, 10, 1);
	exit(0);
}
