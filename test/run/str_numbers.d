//@ engine: interp,kernel,inproc
#pragma D option quiet
string s;
long n;

BEGIN
{
	n = -5;
	printf("[%s] [%s] [%s]\n", lltostr(0), lltostr(n), lltostr(1234567890123));
	printf("[%s] [%s]\n", lltostr(9223372036854775807), lltostr(-9223372036854775807 - 1));
	printf("[%s] [%s] [%s] [%s]\n", lltostr(255, 16), lltostr(8, 8), lltostr(5, 2), lltostr(35, 36));
	printf("[%s] [%s] [%s]\n", lltostr(0, 16), lltostr(0, 8), lltostr(0, 2));
	printf("[%s] [%s]\n", lltostr(-1, 16), lltostr(-42, 10));
	s = "-42";
	printf("%d %d %d\n", strtoll(s), strtoll("17"), strtoll("12abc"));
	printf("%d %d %d\n", strtoll("0x1f", 16), strtoll("1f", 16), strtoll("077", 8));
	printf("%d %d %d\n", strtoll("zz", 36), strtoll("101", 2), strtoll(""));
	printf("%d %d\n", strtoll("9223372036854775807"), strtoll("+5"));
	exit(0);
}
