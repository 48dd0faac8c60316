//@ engine: interp,kernel,inproc
/* clear() keeps the keys, trunc() does not; normalize() changes only the printed values. */
#pragma D option quiet

BEGIN
{
	@a["one"] = sum(100); @a["two"] = sum(200); @a["three"] = sum(300); @a["four"] = sum(400);
	normalize(@a, 100);
	printa("%s %@d\n", @a);
	denormalize(@a);
	printa("%s %@d\n", @a);
	trunc(@a, 3);
	printa("top %s %@d\n", @a);
	trunc(@a, -2);
	printa("low %s %@d\n", @a);
	clear(@a);
	printa("clear %s %@d\n", @a);
	trunc(@a);
	printa("none %s %@d\n", @a);
	@q = quantize(10);
	trunc(@q);
	@v = avg(30); @v = avg(50);
	normalize(@v, 4);
	printa("avg %@d\n", @v);
	exit(0);
}
