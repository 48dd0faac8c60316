//@ engine: interp,kernel,inproc
/* Small strings: keys short enough for the stack are still built by the string routines. */
#pragma D option quiet
#pragma D option strsize=40
string gs;
self string ss;
int n;

BEGIN
{
	n = 7; gs = "some text";
	a[strjoin("a", lltostr(n))] = 1; a[toupper(gs)] = 2; a[basename("/x/y")] = 3;
	printf("%d %d %d %d\n", a["a7"], a["SOME TEXT"], a["y"], a["z"]);
	s[substr(gs, 5), n] = strjoin(gs, "!"); printf("[%s] [%s]\n", s["text", 7], s["text", 8]);
	self->m[n > 3 ? strstr(gs, "te") : "none"] = 5; printf("%d\n", self->m["text"]);
	@c[tolower("ABC"), strtok(gs, " ")] = count();
	printa("%s %s %@d\n", @c);
	gs = strjoin("0123456789012345678901234567890123456789", "x"); printf("%s %d\n", gs, strlen(gs));
	exit(0);
}
