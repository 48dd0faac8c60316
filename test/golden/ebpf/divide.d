//@ cmd: -d ebpf
int a;
int b;

ERROR
{
	trace(arg4);
}

BEGIN
{
	a = a / b;
}
