//@ cmd: -d ir
string s;

BEGIN
{
	s = strjoin(probename, "x");
	trace(s == "BEGINx");
}
