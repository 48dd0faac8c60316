//@ cmd: -d parse
/* Only what fails is shown: everything a thread does within open() is held back until its result is known. */
#pragma D option flowindent
#pragma D option nspec=16

self int spec;

syscall::openat:entry
{
	self->spec = speculation();
	speculate(self->spec);
	printf("%s", copyinstr(arg1));
}

fbt:::
/self->spec/
{
	speculate(self->spec);
}

syscall::openat:return
/self->spec && errno != 0/
{
	commit(self->spec);
	self->spec = 0;
}

syscall::openat:return
/self->spec && errno == 0/
{
	discard(self->spec);
	self->spec = 0;
}
