//@ engine: interp,kernel,inproc
//@ covers: function return
/* Functions of the program: values, strings, loops, records; arguments are copies. */
#pragma D option quiet

int add(int a, int b) { return a + b; }

int fact(int n)
{
	this->r = 1;
	while (n > 1)
		this->r *= n--;
	return this->r;
}

string shout(string s)
{
	if (s == "")
		return "nothing";
	return strjoin(toupper(s), "!");
}

void say(string what, int n)
{
	for (this->k = 0; this->k < n; this->k++)
		printf("%s %d\n", what, this->k);
}

int early(int n)
{
	for (this->q = 0; this->q < 10; this->q++)
		if (this->q == n)
			return 100 + n;
}

void tally(string key) { @t[key] = sum(add(1, 1)); }

BEGIN
{
	printf("%d %d %s %s\n", fact(5), add(add(1, 2), 3), shout("hey"), shout(""));
	n = 4;
	y = fact(n);
	say("hello", 2);
	printf("y %d n %d early %d %d\n", y, n, early(3), early(20));
	tally("a");
	tally("b");
	tally("a");
	printa("%s %@d\n", @t);
	clear(@t);
	exit(add(0, 0));
}
