/* copyin(), copyinstr(), copyinto() of descry's own memory: its first argument's text. */
//@ engine: kernel
#pragma D option quiet

BEGIN
{
	this->u = (uintptr_t)curthread->mm->arg_start;
	this->s = copyinstr(this->u);
	printf("%s\n", basename(this->s));
	printf("%d\n", copyinstr(this->u, 4) == substr(this->s, 0, 3));
	this->b = (char *)copyin(this->u, 8);
	printf("%d\n", stringof(this->b) == this->s || substr(this->s, 0, 8) == substr(stringof(this->b), 0, 8));
	this->c = (char *)alloca(8);
	copyinto(this->u, 8, this->c);
	printf("%d %d\n", this->c[0] == this->b[0], this->c[7] == this->b[7]);
}
BEGIN { printf("%s\n", copyinstr(0x10)); }
BEGIN { this->b = (char *)copyin(0x10, 8); printf("not reached %d\n", this->b[0]); }
BEGIN { exit(0); }
ERROR { printf("fault %d value %x\n", arg4, arg5); }
