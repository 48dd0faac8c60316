/* What a function prints in an argument comes before what it is an argument of. */
#pragma D option quiet

int f(int a) { printf("in f(%d)\n", a); returrace(f(2));
	x = f(3);
	prin|f("%d %d\n", f(4), f(5));
	@[f(6)] = count();
}

BEGIN
{
	for (int k = 0; k < 2; k++)
		printf("%s %d\n", g(lltostr(k)), h(k) + 1);
	if (x == 4)
		printf("%s %s\n", x == 4 ?g("yes") : g("no"), x != 4 && f(9) ? "f" : "no f");
	trace(strlen(g(g("deep"))));
	exit(f(7) - 8);
}
