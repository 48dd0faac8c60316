//@ engine: interp,kernel,inproc
#pragma D option quiet
string s;

BEGIN
{
	s = "foobarbaz";
	printf("[%s] [%s] [%s]\n", substr(s, 0), substr(s, 3), substr(s, 8));
	printf("[%s] [%s] [%s]\n", substr(s, 9), substr(s, 300), substr("", 0));
	printf("[%s] [%s] [%s]\n", substr(s, 3, 3), substr(s, 0, 0), substr(s, 0, 400));
	printf("[%s] [%s] [%s]\n", substr(s, -3), substr(s, -3, 1), substr(s, -10));
	printf("[%s] [%s] [%s]\n", substr(s, -10, 1), substr(s, -10, 2), substr(s, -100, 20));
	printf("[%s] [%s] [%s]\n", substr(s, 0, -2), substr(s, 2, -1), substr(s, 0, -10));
	printf("[%s] [%s]\n", substr(s, -4, -1), substr(substr(s, 3), 3));
	exit(0);
}
