//@ engine: interp,kernel,inproc
#pragma D option quiet
string s;
char buf[8];

BEGIN
{
	printf("%d %d %d\n", strlen(""), strlen("a"), strlen("hello"));
	s = "hello world";
	printf("%d %d\n", strlen(s), strlen(strjoin(s, s)));
	s = strjoin("0123456789012345678901234567890123456789", "0123456789012345678901234567890123456789");
	s = strjoin(s, s); printf("%d\n", strlen(s));
	s = strjoin(s, s); printf("%d\n", strlen(s));
	printf("%s\n", s);
	exit(0);
}
