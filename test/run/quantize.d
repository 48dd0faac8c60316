//@ engine: interp,kernel,inproc
//@ cmd: -q
BEGIN
{
	@q["q"] = quantize(0); @q["q"] = quantize(1); @q["q"] = quantize(3); @q["q"] = quantize(3); @q["q"] = quantize(-5);
	@l["l"] = lquantize(-1, 0, 10, 2); @l["l"] = lquantize(3, 0, 10, 2); @l["l"] = lquantize(3, 0, 10, 2);
	@l["l"] = lquantize(99, 0, 10, 2);
	@g["g"] = llquantize(12345, 10, 0, 6, 20); @g["g"] = llquantize(15, 10, 0, 6, 20);
	exit(0);
}
