//@ cmd: -d parse
syscall:::entry
{
	@ = count();
	@["all"] = count();
	@_[1] = count();
	@calls[execname, pid, probefunc] = count();
	@stacks[stack(), ustack(5), "x"] = sum(arg0);
	@sized[arg0 > 10 ? "big" : "small"] = llquantize(arg0, 10, 0, 6, 20);
	@l = lquantize(arg0, -100, 100, 10);
	@m = min(arg0); @n = max(arg0); @o = stddev(arg0); @p = avg(arg0);
}
END
{
	printa("%@8u %s\n", @calls);
	printa(@stacks, @sized);
	trunc(@calls, -5);
	normalize(@, 1000); denormalize(@);
}
