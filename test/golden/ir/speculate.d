//@ cmd: -d ir
BEGIN
{
	self->s = speculation();
}

BEGIN /self->s/
{
	speculate(self->s);
	printf("kept\n");
}

BEGIN /self->s/
{
	commit(self->s);
}
