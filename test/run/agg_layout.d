//@ engine: interp,kernel,inproc
/* The default layout: keyless, by kinds of key, sorted by value; printed after END. */
#pragma D option quiet

BEGIN
{
	@ = count(); @ = count();
	@i[42] = sum(-5); @i[-7] = sum(100); @i[0] = sum(3);
	@l[1 + 1L] = max(9);
	@s["zebra"] = count(); @s["ant"] = count(); @s["ant"] = count();
	@m["two", 5, "keys"] = avg(7); @m["two", 5, "keys"] = avg(10);
	@c[(char)7, (short)-3] = min(11);
	exit(0);
}
END { printf("end\n"); }
