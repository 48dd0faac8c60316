//@ cmd: -d ir
tick-1s
{
	n++;
	exit(n);
}
