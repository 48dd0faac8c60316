//@ engine: interp,kernel,inproc
/* index() and rindex(): Perl's rules, also for the empty string. */
#pragma D option quiet
string s, e;

BEGIN
{
	s = "foobarbaz"; e = "";
	printf("%d %d %d %d\n", index(s, "bar"), index(s, "ba"), index(s, "x"), index(s, "foobarbazz"));
	printf("%d %d %d %d\n", index(s, "ba", 3), index(s, "ba", 4), index(s, "ba", 7), index(s, "ba", 100));
	printf("%d %d %d %d\n", index(s, ""), index(s, "", 4), index(s, "", 9), index(s, "", 100));
	printf("%d %d %d\n", index(s, "foo", -5), index(s, "", -5), index(s, "z", 8));
	printf("%d %d %d\n", rindex(s, "ba"), rindex(s, "foo"), rindex(s, "x"));
	printf("%d %d %d %d\n", rindex(s, "ba", 5), rindex(s, "ba", 3), rindex(s, "ba", 2), rindex(s, "ba", 100));
	printf("%d %d %d\n", rindex(s, ""), rindex(s, "", 4), rindex(s, "", 100));
	printf("%d %d\n", rindex(s, "foo", -1), rindex(s, "", -1));
	printf("%d %d %d %d\n", index(e, ""), index(e, "", 5), rindex(e, ""), index(e, "a"));
	exit(0);
}
