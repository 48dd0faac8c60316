//@ cmd: -d ebpf
tick-1s
{
	n++;
	exit(n);
}
