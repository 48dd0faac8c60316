//@ engine: interp,kernel,inproc
//@ covers: function
/* The output of a function in an argument comes before the output of the action that has the argument. */
#pragma D option quiet

int f(int a) { printf("in f(%d)\n", a); return a + 1; }
string g(string s) { printf("<%s>", s); return strjoin(s, "!"); }
int h(int n) { for (int i = 0; i < n; i++) trace(i); return n; }

BEGIN
{
	printf("%d\n", f(1));
	trace(f(2));
	x = f(3);
	printf("%d %d\n", f(4), f(5));
	@[f(6)] = count();
}

BEGIN
{
	for (int k = 0; k < 2; k++)
		printf("%s %d\n", g(lltostr(k)), h(k) + 1);
	if (x == 4)
		printf("%s %s\n", x == 4 ? g("yes") : g("no"), x != 4 && f(9) ? "f" : "no f");
	trace(strlen(g(g("deep"))));
	exit(f(7) - 8);
}
