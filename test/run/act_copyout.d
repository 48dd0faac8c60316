//@ engine: interp
//@ cmd: -w
//@ covers: copyout copyoutstr
/* copyout() writes memory of the process, here descry itself. Kernels refuse this under lockdown; act_copyout.sh tests that. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(16);
	copyoutstr("abcdef", (uintptr_t)this->p, 16);
	printf("%s\n", stringof(this->p));
	copyout("xyzw", (uintptr_t)this->p, 2);
	printf("%s\n", stringof(this->p));
	copyoutstr("123456789", (uintptr_t)this->p, 3);
	printf("%s\n", stringof(this->p));
}
BEGIN { copyoutstr("a", 0, 2); }
ERROR { printf("fault %d\n", arg4); exit(0); }
