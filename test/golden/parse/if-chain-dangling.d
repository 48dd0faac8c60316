//@ cmd: -d parse
BEGIN
{
	if (a)
		if (b)
			trace(1);
		else
			trace(2);
	if (c) { x = 1; } y = 2;
	exit(0)
}
