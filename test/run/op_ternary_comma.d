//@ engine: interp,kernel,inproc
#pragma D option quiet
int a, b;
unsigned int ua;
string s;
long la;

BEGIN
{
	a = 5; b = 0;
	printf("%d %d\n", a ? 1 : 2, b ? 1 : 2);
	printf("%d %d %d\n", a < 0 ? -1 : a > 0 ? 1 : 0, b < 0 ? -1 : b > 0 ? 1 : 0, b ? 1 : a ? 2 : 3);
	ua = 1;
	printf("%d\n", b ? ua : -1);
	la = 1;
	printf("%d\n", b ? la : -1);
	printf("%s %s\n", a ? "yes" : "no", b ? "yes" : "no");
	s = a == 5 ? "five" : "other";
	printf("%s %d\n", s, strlen(b ? "longer" : s));
	printf("%s\n", (a ? "abc" : "def") == "abc" ? "same" : "different");
	printf("%d\n", (a = 8, b = a + 1, b * 2));
	printf("%d %d\n", a, b);
	a ? (a = 1) : (b = 1);
	printf("%d %d\n", a, b);
	printf("%d\n", (1, 2, 3));
	exit(0);
}
