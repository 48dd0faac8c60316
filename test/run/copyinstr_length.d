/* copyinstr(addr, n): a constant n counts the NUL, a computed n is the number of characters. */
//@ engine: kernel,inproc
//@ c: dd if=/dev/zero of=/dev/null bs=7 count=1
#pragma D option quiet
#pragma D option strsize=10

int four, zero, big;
inline int THREE = 3;

BEGIN
{
	four = 4;
	big = -1;
}

syscall::openat:entry
/pid == $target && copyinstr(arg1, 10) == "/dev/null"/
{
	this->p = arg1 + 5;
	printf("[%s] [%s] [%s] [%s]\n", copyinstr(this->p, 1), copyinstr(this->p, 0), copyinstr(this->p, 4), copyinstr(this->p, 100));
	printf("[%s] [%s]\n", copyinstr(this->p, THREE), copyinstr(this->p, sizeof (int)));
	printf("[%s] [%s] [%s]\n", copyinstr(this->p, zero), copyinstr(this->p, zero + 1), copyinstr(this->p, four));
	printf("[%s] [%s] [%s]\n", copyinstr(this->p, four + 1), copyinstr(this->p, four + 4), copyinstr(this->p, big));
	this->s = copyinstr(this->p, four / 2);
	printf("%d [%s]\n", strlen(this->s), strjoin(this->s, copyinstr(this->p + 2, four - 1)));
	@[copyinstr(this->p, four - 1)] = count();
}

syscall::openat:entry
/pid == $target && copyinstr(arg1, four) == "/dev" && copyinstr(arg1, four + 4) == "/dev/nul"/
{
	found++;
}

END
{
	printf("%d\n", found);
}
