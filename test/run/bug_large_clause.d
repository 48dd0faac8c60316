//@ engine: interp,kernel,inproc
/* Lazy values that some paths make (scratch memory, thread storage) multiplied the states that the verifier had to follow. */
#pragma D option quiet
long m[int];
self long v;
self string s;
string t;
int i;

BEGIN
{
	i = 3;
	if (m[1] || self->v) { self->s = lltostr(i); }
	if (m[2] || self->s != "") { t = strjoin(t, "a"); } else { t = strjoin(t, "b"); }
	if (i > 2) { self->v = i; }
	if (m[3] || self->v) { t = strjoin(t, lltostr(self->v)); }
	if (index(t, "3") > 0) { self->s = substr(t, 1); } else { i = strlen(t); }
	if (self->s == "3") { t = strjoin(t, basename("/x/y")); }
	if (m[4] || strlen(self->s) > 3) { self->v = rindex(t, "a"); }
	printf("%s %s %d %d %s\n", t, self->s, self->v, i, lltostr(timestamp > 0 ? 7 : 8, 2));
	exit(0);
}
