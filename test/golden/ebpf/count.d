//@ cmd: -d ebpf
BEGIN, END
{
	@[probename] = count();
	@total = count();
}
