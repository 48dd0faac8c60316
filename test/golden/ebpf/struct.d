//@ cmd: -d ebpf
/* A listing counts the members of a struct; sizeof() counts the padding behind them too. */
struct seen {
	int id;
	long when;
	char how;
} s;
this struct seen t;
self struct seen u;
union { struct seen one; char text[30]; } both;

BEGIN
{
	s.how = sizeof(s);
	this->t.how = s.how;
	self->u.how = this->t.how;
	both.one.how = self->u.how;
}
