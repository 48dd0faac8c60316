//@ cmd: -d bind
END
{
	printa("%s %@d\n", @a);
	trunc(@b, 5);
	normalize(@q, 1000);
	clear(@a);
}
BEGIN
{
	@a[execname] = count();
	@b[pid, ustack(5), (uint8_t)3] = lquantize(pid, -10, 95, 10, 2);
	@b[1, ustack(9), 1] = lquantize(timestamp, -10, 95, 10);
	@c = llquantize(pid, 10, 0, 6, 20);
	@q[sym(arg0), stack()] = quantize(timestamp);
	@ = avg(-1);
}
