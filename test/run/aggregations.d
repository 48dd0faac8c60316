//@ engine: interp,kernel,inproc
//@ cmd: -q
BEGIN
{
	@c = count(); @c = count();
	@s["a"] = sum(5); @s["a"] = sum(7); @s["b"] = sum(-2);
	@avg = avg(10); @avg = avg(15);
	@min = min(4); @min = min(-9); @min = min(6);
	@max = max(4); @max = max(-9); @max = max(6);
	@dev = stddev(2); @dev = stddev(4); @dev = stddev(4); @dev = stddev(4);
	@dev = stddev(5); @dev = stddev(5); @dev = stddev(7); @dev = stddev(9);
	printa("count %@d\n", @c);
	printa("sum %s %@d\n", @s);
	printa("avg %@d\n", @avg);
	printa("min %@d\n", @min);
	printa("max %@d\n", @max);
	printa("stddev %@d\n", @dev);
	clear(@s);
	printa("cleared %s %@d\n", @s);
	trunc(@s);
	printa("gone %s %@d\n", @s);
	trunc(@c); trunc(@avg); trunc(@min); trunc(@max); trunc(@dev);
	exit(0);
}
