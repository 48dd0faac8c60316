//@ engine: interp,kernel,inproc
//@ env: TZ=UTC
#pragma D option quiet
string s;
char buf[6];

BEGIN
{
	s = "descry";
	printf("[%s] [%10s] [%-10s] [%.3s] [%8.2s] [%-8.2s]\n", s, s, s, s, s, s);
	printf("[%*s] [%-*s] [%.*s]\n", 8, s, 8, s, 2, s);
	printf("[%s] [%5s] [%s]\n", "", "", "a\tb");
	printf("[%c] [%3c] [%-3c] [%c]\n", 'x', 'y', 'z', 65);
	printf("[%S] [%S] [%12S]\n", "a\nb\t\"q\"\\", "\001\377", "x\ny");
	printf("[%C] [%C] [%C]\n", 'a', '\n', '\001');
	buf[0] = 'r'; buf[1] = 'a'; buf[2] = 'w';
	printf("[%s] [%5s]\n", buf, stringof(buf));
	printf("[%Y]\n", 0);
	printf("[%Y]\n", 1795221976000000000);
	printf("[%T]\n", 1795221976000000000);
	printf("[%s] [%s]\n", probename, execname);
	printf("[%wc] [%lc]\n", 65, 66);
	printf("one line of several "); printf("statements"); printf("\n");
	printf("%s %d %s %d %s\n", "many", 1, "arguments", 2, s == "descry" ? "here" : "there");
	exit(0);
}
