//@ cmd: -d ir
int n;

BEGIN
{
	@q = quantize(n);
	@l["k"] = lquantize(n, 0, 100, 10);
}
