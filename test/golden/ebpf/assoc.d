//@ cmd: -d ebpf
BEGIN
{
	a[1, "k"] = 5;
	a[1, "k"]++;
	a[2, "k"] = 0;
}
