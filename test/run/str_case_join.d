//@ engine: interp,kernel,inproc
#pragma D option quiet
string s;

BEGIN
{
	s = "Hello, World 42!";
	printf("[%s] [%s] [%s]\n", toupper(s), tolower(s), toupper(""));
	printf("[%s] [%s] [%s] [%s]\n", strjoin("a", "b"), strjoin("", ""), strjoin("", "x"), strjoin(s, "?"));
	printf("[%s]\n", strjoin(strjoin("a", "b"), strjoin(strjoin("c", "d"), "e")));
	exit(0);
}
