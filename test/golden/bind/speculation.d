//@ cmd: -d bind
BEGIN
{
	self->spec = speculation();
	speculate(self->spec);
	printf("held\n");
}
BEGIN
/self->spec/
{
	commit(self->spec);
}
BEGIN
{
	exit(0);
}
