//@ engine: interp,kernel,inproc
//@ cmd: -q
//@ covers: predicate
/* The body of a clause defines a variable that its predicate reads. */
BEGIN
/self->last == 0 && !seen[pid] && this->text == ""/
{
	self->last = timestamp;
	seen[pid] = 1;
	this->text = "written";
	printf("first\n");
}

BEGIN
/self->last && seen[pid]/
{
	printf("then\n");
	exit(0);
}
