//@ engine: interp,kernel,inproc
/* Strings are values: assignment copies, the target keeps its own. */
#pragma D option quiet
string a, b;
string arr[int];
self string ss;
this string ts;

BEGIN
{
	a = "one"; b = a; a = "two";
	printf("[%s] [%s]\n", a, b);
	self->ss = a; this->ts = b;
	printf("[%s] [%s]\n", self->ss, this->ts);
	arr[1] = "x"; arr[2] = strjoin(arr[1], "y"); arr[1] = "";
	printf("[%s] [%s] [%s]\n", arr[1], arr[2], arr[3]);
	a = "";
	printf("[%s] %d\n", a, strlen(a));
	a = "tab\there \"quoted\" back\\slash\101";
	printf("%s\n", a);
	self->ss = 0;
	printf("[%s]\n", self->ss);
	untyped = "made by assignment";
	printf("%s %d\n", untyped, sizeof(untyped));
	exit(0);
}
