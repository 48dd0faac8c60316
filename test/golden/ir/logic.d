//@ cmd: -d ir
int a;
int b;

BEGIN /a && !b || a == 3/
{
	a = b ? a : a ^^ b;
}
