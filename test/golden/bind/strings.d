//@ cmd: -d bind
char *s;
BEGIN
/s == "x" || execname > "m"/
{
	trace(strjoin(s, basename(execname)));
	trace(stringof(s));
	trace((string)alloca(8));
	printf("%s %S %d %*d %p\n", s, execname, 1, 5, 2, s);
	trace(strtok(NULL, ","));
	trace(index(execname, "a") == -1 ? "none" : execname);
}
