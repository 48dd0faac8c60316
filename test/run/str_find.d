//@ engine: interp,kernel,inproc
#pragma D option quiet
string s;

BEGIN
{
	s = "abcabc";
	printf("[%s] [%s] [%s]\n", strchr(s, 'b'), strrchr(s, 'b'), strstr(s, "ca"));
	printf("[%s] [%s] [%s]\n", strchr(s, 'a'), strrchr(s, 'c'), strstr(s, "abcabc"));
	printf("%d %d %d\n", strchr(s, 'x') == NULL, strrchr(s, 'x') == NULL, strstr(s, "abcd") == NULL);
	printf("[%s] %d\n", strstr(s, ""), strstr("", "a") == NULL);
	exit(0);
}
