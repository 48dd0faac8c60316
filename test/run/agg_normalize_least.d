//@ engine: interp,kernel,inproc
//@ cmd: -q -s %s
/* The least number, divided by -1, wraps. */
BEGIN
{
	@sum = sum(-9223372036854775807 - 1);
	@avg = avg(-9223372036854775807 - 1);
	@max = max(-9223372036854775807 - 1);
	@min = min(-9223372036854775807 - 1);
	@dev = stddev(-9223372036854775807 - 1);
	@hist = quantize(1, -9223372036854775807 - 1);
	@lin = lquantize(1, 0, 2, 1, -9223372036854775807 - 1);
	@all = count();
	normalize(@sum, -1); normalize(@avg, -1); normalize(@max, -1); normalize(@min, -1);
	normalize(@dev, -1); normalize(@hist, -1); normalize(@lin, -1); normalize(@all, -1);
	printa("sum %@d\n", @sum); printa("avg %@d\n", @avg); printa("max %@d\n", @max); printa("min %@d\n", @min);
	printa("stddev %@d\n", @dev); printa("count %@d\n", @all);
	printa(@hist); printa(@lin);
	exit(0);
}
