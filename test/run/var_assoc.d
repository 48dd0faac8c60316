//@ engine: interp,kernel,inproc
/* Associative arrays: keys of every kind, 0 deletes, elements are independent. */
#pragma D option quiet
int decl[int, string];

BEGIN
{
	a[1] = 10; a[2] = 20; a[-1] = 30;
	printf("%d %d %d %d\n", a[1], a[2], a[-1], a[3]);
	s["one"] = 1; s["two"] = 2;
	printf("%d %d %d\n", s["one"], s["two"], s["three"]);
	m[1, "x"] = 5; m[1, "y"] = 6; m[2, "x"] = 7;
	printf("%d %d %d %d\n", m[1, "x"], m[1, "y"], m[2, "x"], m[2, "y"]);
	decl[7, "z"] = -4;
	printf("%d %d\n", decl[7, "z"], decl[7, "zz"]);
	str[pid, "a"] = "text"; str[pid, "b"] = strjoin(str[pid, "a"], "!");
	printf("%s %s [%s]\n", str[pid, "a"], str[pid, "b"], str[pid, "c"]);
	a[1] = 0; printf("%d\n", a[1]);
	a[1] = 11; printf("%d\n", a[1]);
	a[a[2] + 1] = a[1] + a[2]; printf("%d\n", a[21]);
	str[pid, "a"] = 0; printf("[%s]\n", str[pid, "a"]);
	e[1] = 1; e[e[1] + 1] = 2; e[e[e[1] + 1] + 1] = 3; printf("%d %d %d\n", e[1], e[2], e[3]);
	l[1, 2, 3, 4] = 1234; printf("%d %d\n", l[1, 2, 3, 4], l[4, 3, 2, 1]);
	k["same text"] = 1; this->s = strjoin("same ", "text"); printf("%d\n", k[this->s]);
	exit(0);
}
END { printf("%d %d %s\n", a[2], m[1, "y"], str[pid, "b"]); }
