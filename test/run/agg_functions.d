//@ engine: interp,kernel,inproc
/* Every aggregating function with a key and without, also with negative values. */
#pragma D option quiet
int v[5];

BEGIN
{
	v[0] = -10; v[1] = 3; v[2] = 8; v[3] = 3; v[4] = -1;
	@cnt = count(); @cnt = count(); @cnt = count();
	@sum = sum(v[0]); @sum = sum(v[1]); @sum = sum(v[2]); @sum = sum(v[3]); @sum = sum(v[4]);
	@avg = avg(v[0]); @avg = avg(v[1]); @avg = avg(v[2]); @avg = avg(v[3]); @avg = avg(v[4]);
	@avgneg = avg(-7); @avgneg = avg(-2);
	@min = min(v[1]); @min = min(v[0]); @min = min(v[4]);
	@max = max(v[4]); @max = max(v[0]);
	@dev = stddev(-2); @dev = stddev(2); @dev = stddev(-2); @dev = stddev(2);
	@one = stddev(1000000);
	@big = sum(4000000000); @big = sum(4000000000);
	@wide = max(9223372036854775807); @low = min(-9223372036854775807 - 1);
	printa("count %@d\n", @cnt);
	printa("sum %@d\n", @sum);
	printa("avg %@d\n", @avg);
	printa("avgneg %@d\n", @avgneg);
	printa("min %@d\n", @min);
	printa("max %@d\n", @max);
	printa("stddev %@d\n", @dev);
	printa("one %@d\n", @one);
	printa("big %@d\n", @big);
	printa("wide %@d\n", @wide);
	printa("low %@d\n", @low);

	@kc["a"] = count(); @kc["b"] = count(); @kc["a"] = count();
	@ks[1] = sum(-1); @ks[2] = sum(5); @ks[1] = sum(-2);
	@ka[1, "x"] = avg(9); @ka[1, "x"] = avg(12);
	@kn["n"] = min(4); @kn["n"] = min(2);
	@kx["n"] = max(4); @kx["n"] = max(2);
	@kd["d"] = stddev(1); @kd["d"] = stddev(9);
	printa("count %s %@d\n", @kc);
	printa("sum %d %@d\n", @ks);
	printa("avg %d %s %@d\n", @ka);
	printa("min %s %@d\n", @kn);
	printa("max %s %@d\n", @kx);
	printa("stddev %s %@d\n", @kd);
	exit(0);
}
