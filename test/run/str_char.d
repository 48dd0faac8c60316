//@ engine: interp,kernel,inproc
//@ cmd: -q
/* Characters of strings: read from any string, written to a variable's. */
string g;
self string t;
this string l;

BEGIN
{
	g = "hello"; self->t = "hello"; this->l = "hello"; a["k"] = "hello"; self->m[1] = "hello";
	i = 2;
	printf("%c%c%c%c%c\n", g[0], self->t[1], this->l[i], a["k"][i + 1], self->m[1][4]);
	printf("%c%c%c\n", probename[0], "literal"[i], strjoin("ab", "cd")[3]);
	g[0] = 'J'; self->t[i] = 'L'; this->l[4] = '0'; a["k"][i] = '\0'; self->m[1][i]++;
	printf("%s %s %s %s %s\n", g, self->t, this->l, a["k"], self->m[1]);
	printf("%s %s %s\n", g + 1, 2 + self->t, "abc" + i);
	printf("%d\n", (s = "copy")[1] == 'o');
}

BEGIN { n = 300; trace(g[n]); }
BEGIN { g = ""; trace(g[0]); n = 1; trace(g[n]); }
BEGIN { exit(0); }
ERROR { printf("fault %d value %d\n", arg4, arg5); }
