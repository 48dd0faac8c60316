//@ engine: interp,kernel,inproc
#pragma D option quiet
string s, of[string];

BEGIN
{
	s = "abcabc";
	printf("[%s] [%s] [%s]\n", strchr(s, 'b'), strrchr(s, 'b'), strstr(s, "ca"));
	printf("[%s] [%s] [%s]\n", strchr(s, 'a'), strrchr(s, 'c'), strstr(s, "abcabc"));
	printf("%d %d %d\n", strchr(s, 'x') == NULL, strrchr(s, 'x') == NULL, strstr(s, "abcd") == NULL);
	printf("[%s] %d\n", strstr(s, ""), strstr("", "a") == NULL);
}

/* A string that was not found is not a key, for any use of the element. */
ERROR { printf("fault %d\n", arg4); }
BEGIN { s = of[strchr("abc", 'x')]; printf("not reached\n"); }
BEGIN { printf("[%s]\n", s); exit(0); }
