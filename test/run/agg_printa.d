//@ engine: interp,kernel,inproc
/* printa(): formats consume keys in order, %@ the values; several aggregations share keys, missing ones are 0. */
#pragma D option quiet

BEGIN
{
	@a["x", 1] = sum(10); @a["y", 2] = sum(20); @a["z", 3] = sum(5);
	@b["x", 1] = count(); @b["y", 2] = count(); @b["y", 2] = count();
	@n = count();
	printa("[%s] [%d] [%@d]\n", @a);
	printa("[%-4s|%4d|%@6d|%-@4d|%@x]\n", @a);
	printa("%s %d %@d %@d\n", @a, @b);
	printa("value %@d\n", @n);
	printa("%@d first: %s\n", @a);
	printa("%s only\n", @a);
	printa("no conversion\n", @a);
	printa(@a);
	printa(@a, @b);
	exit(0);
}
