//@ engine: interp,kernel,inproc
/* The sort options: by key, reversed, by another aggregation of the printa(). */
#pragma D option quiet
#pragma D option aggsortrev

BEGIN
{
	@a["x", 3] = sum(1); @a["y", 2] = sum(2); @a["z", 1] = sum(3);
	@b["x", 3] = sum(9); @b["y", 2] = sum(8); @b["z", 1] = sum(7);
	printa("%s%d %@d\n", @a);
	exit(0);
}
END
{
	setopt("aggsortrev", "0");
	printa("value %s%d %@d\n", @a);
	setopt("aggsortpos", "1");
	printa("second %s%d %@d %@d\n", @a, @b);
	setopt("aggsortpos", "0");
	setopt("aggsortkey");
	printa("key %s%d %@d\n", @a);
	setopt("aggsortkeypos", "1");
	printa("key1 %s%d %@d\n", @a);
	setopt("aggsortrev");
	printa("key1rev %s%d %@d\n", @a);
}
