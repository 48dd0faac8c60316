//@ cmd: -d ebpf
string s;

BEGIN
{
	s = strjoin(probename, "x");
	trace(s == "BEGINx");
}
