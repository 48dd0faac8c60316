//@ engine: interp,kernel,inproc
/* Options from #pragma D option, and setopt() while running. */
#pragma D option quiet
#pragma D option strsize=16
string s;

BEGIN
{
	s = "0123456789abcdefghij";
	printf("%s %d %d\n", s, strlen(s), sizeof(string));
	s = strjoin("0123456789", "0123456789");
	printf("%s\n", s);
	s = substr("0123456789abcdefghij", 10);
	printf("%s\n", s);
	setopt("stackindent", "2");
	setopt("quiet");
	exit(0);
}
