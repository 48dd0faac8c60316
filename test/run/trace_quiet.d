//@ engine: interp,kernel,inproc
#pragma D option quiet
char c;
long l;
string s;

BEGIN
{
	c = -5; l = -9223372036854775807; s = "str";
	trace(c); trace("|"); trace(l); trace("|"); trace(s); trace("|"); trace(7U); trace("|"); trace(-1UL); trace("\n");
	trace(c == -5); trace(!c); trace(sizeof(l)); trace(s == "str" ? "yes" : "no"); trace("\n");
	exit(0);
}
