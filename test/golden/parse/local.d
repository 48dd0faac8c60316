//@ cmd: -d parse
BEGIN
{
	for (int i = 0, *p; i < 3; i++)
		;
	pid_t q = 5, r;
	const char *s;
	foo * bar;
}
