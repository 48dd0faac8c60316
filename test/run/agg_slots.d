//@ engine: interp,kernel,inproc
/* Aggregations whose keys depend on the probe only. Equal texts are one row in any spelling. A probe that never fired has no
 * row. clear(), trunc() and normalize() work as with other keys. */
#pragma D option quiet

BEGIN
{
	@same[probename] = count();
	@same["END"] = count();
	@tuple["x", probename, 3] = sum(7);
	@tuple["x", (string)probename, 3] = sum(-2);
	@dist[probeprov, id] = quantize(5);
	@lin[probefunc] = lquantize(5, 0, 10, 5);
	@low["low"] = min(4);
	@low["low"] = min(3);
	@high[1] = max(-4);
	@avg[-1] = avg(4);
	@avg[-1] = avg(8);
	@dev['c'] = stddev(4);
	@cleared["a"] = count();
	@reset["a"] = min(1);
	@scaled["k"] = sum(30);
}

BEGIN
{
	printa("cleared %s %@d\n", @cleared);
	clear(@cleared);
	printa("now %s %@d\n", @cleared);
	clear(@reset);
	@reset["a"] = min(5);
	@gone["a"] = sum(10);
	@gone["b"] = sum(20);
	@gone["c"] = sum(30);
	normalize(@scaled, 3);
	printa("scaled %s %@d\n", @scaled);
	denormalize(@scaled);
}

BEGIN { trunc(@gone, 1); }
BEGIN { @gone["b"] = sum(1); printa("gone %s %@d\n", @gone); }

BEGIN
{
	this->zero = 0;
	@faults["before", probename] = count();
	@never[probename, "after"] = sum(1 / this->zero);
}

BEGIN { exit(0); }

BEGIN /0/ { @never["not fired", probename] = sum(1); }

ERROR { @faults["in", probename] = count(); }

END
{
	@same[probename] = count();
	printa("both %s %@d %@d\n", @same, @late);
	@late[probename] = count();
	printa("never %s %s %@d\n", @never);
}

END { trunc(@gone); }
END { @gone["a"] = sum(4); printa("left %s %@d\n", @gone); }
