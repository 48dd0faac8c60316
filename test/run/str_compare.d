//@ engine: interp,kernel,inproc
#pragma D option quiet
string s, t, empty;

BEGIN
{
	s = "apple"; t = "banana";
	printf("%d%d%d%d%d%d\n", s < t, s <= t, s > t, s >= t, s == t, s != t);
	t = "apple";
	printf("%d%d%d%d%d%d\n", s < t, s <= t, s > t, s >= t, s == t, s != t);
	printf("%d%d%d\n", s == "apple", s == "apples", s == "appl");
	printf("%d%d%d\n", "apple" == s, "apples" > s, "appl" < s);
	printf("%d%d%d%d\n", empty == "", empty == NULL, s != NULL, s > empty);
	t = "applepie";
	printf("%d%d%d\n", s < t, s == t, t > s);
	printf("%d%d\n", "a" < "b", "B" < "a");
	s = "\xff"; t = "a";
	printf("%d\n", s > t);
	s = "sixteen bytes ok"; t = "sixteen bytes oK";
	printf("%d %d\n", s == t, s > t);
	exit(0);
}
