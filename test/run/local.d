//@ engine: interp,kernel,inproc
//@ covers: local-variable
/* Variables of a block: loops, functions and inner blocks each have their own. */
#pragma D option quiet

int fact(int n)
{
	int r = 1, k;

	for (k = n; k > 1; k--)
		r *= k;
	return r;
}

string both(string a, string b)
{
	string s = strjoin(a, "+");

	s = strjoin(s, b);
	return s;
}

BEGIN
{
	int n = 3, square = n * n;
	string word;
	uint64_t big = 1ULL << 40;
	uint8_t small = 300;

	for (int i = 0; i < n; i++) {
		int twice = 2 * i;
		int from;

		from += twice;
		printf("%d %d %d|", i, twice, from);
	}
	for (int i = 5, j = 2; i > j; i--)
		printf(" %d", i * j);
	printf("\n%d %d [%s] %d %d\n", n, square, word, big, small);
	if (n == 3) {
		int n = 7;

		n++;
		printf("inner %d\n", n);
	}
	printf("outer %d\n", n);
	printf("%d %d %s %s\n", fact(5), fact(3), both("a", "b"), both("c", "d"));
	@[both("x", "y"), n] = count();
}

BEGIN
{
	int pid = 5;	/* hides the built-in one */
	char *p = (char *)alloca(8);

	p[0] = 'x';
	printf("%d %c\n", pid, *p);
	n = 40;		/* a global */
}

BEGIN
{
	printf("%d %d\n", n, pid > 0);
	exit(0);
}
