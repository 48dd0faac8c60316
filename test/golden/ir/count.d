//@ cmd: -d ir
BEGIN, END
{
	@[probename] = count();
	@total = count();
}
