//@ engine: interp,kernel,inproc
//@ covers: aggtable
/* Prints the last key across: scalars, and distributions side by side. */
#pragma D option quiet
#pragma D option aggtable

BEGIN
{
	@calls["bash", "read"] = sum(12); @calls["bash", "write"] = sum(3); @calls["sed", "read"] = sum(7);
	@times["bash", "read"] = quantize(1000); @times["bash", "write"] = quantize(5000);
	@times["bash", "write"] = quantize(900); @times["sed", "read"] = quantize(1);
	@one[1] = lquantize(5, 0, 10, 5); @one[22] = lquantize(50, 0, 10, 5);
	@plain["x"] = count();
	printa(@calls); printa(@times); printa(@one); printa(@plain);
	exit(0);
}
