//@ engine: interp,kernel,inproc
//@ cmd: -q
BEGIN
{
	s = "hello, world";
	printf("%s %d\n", s, strlen(s));
	printf("%s|%s|%s\n", substr(s, 7), substr(s, 0, 5), substr(s, -5));
	printf("%d %d %d\n", index(s, "o"), rindex(s, "o"), index(s, "xyz"));
	printf("%s|%s\n", strchr(s, 'w'), strstr(s, "lo"));
	printf("%s\n", strjoin("foo", strjoin("-", "bar")));
	printf("%s %s %s\n", basename("/usr/bin/perl"), dirname("/usr/bin/perl"), cleanpath("/usr/../bin/./x"));
	printf("%s %s\n", lltostr(-123), lltostr(255, 16));
	printf("%d %d\n", strtoll("42"), strtoll("-0x10", 16));
	printf("%s %s\n", toupper("MiXed"), tolower("MiXed"));
	printf("%s\n", strtok("a:b:c", ":"));
	printf("%s\n", strtok(NULL, ":"));
	printf("%d %d %d %d\n", s == "hello, world", s != "x", "abc" < "abd", "b" > "abc");
	printf("[%10s] [%-10s] [%.3s]\n", "abc", "abc", "abcdef");
	exit(0);
}
