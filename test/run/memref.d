//@ engine: interp,kernel,inproc
//@ covers: memref memstr printm printt typeref
#pragma D option quiet
struct point { int x; short y[2]; };
int n;

BEGIN
{
	this->p = (char *)alloca(32);
	bcopy("lsx-lx/tmpx", this->p, 12);
	this->p[2] = this->p[5] = this->p[10] = 0;
	printf("[%s] [%s]\n", memstr(this->p, ' ', 11), memstr(this->p, '+', 12));
	printf("[%s] [%s] [%s]\n", memstr(this->p, '.', 4), memstr(this->p, '.', 1), memstr(this->p, '.', 0));
	n = 7;
	printf("%d [%s]\n", strlen(memstr(this->p, '\n', n)), memstr((uintptr_t)this->p, 65, n));
	args_of[pid] = memstr(this->p, ' ', 11);
	printf("%s\n", args_of[pid]);
}

BEGIN
{
	this->p = (char *)alloca(32);
	bcopy("ABCDEFGHIJKLMNOPQRSTUVWXYZ", this->p, 27);
	printm(32, memref(this->p, 5));
	printm(4, memref(this->p, 20));
	this->r = memref(this->p + 16, n);
	printm(16, this->r);
	printf("%d %d\n", this->r[1], this->r[0] == (uintptr_t)this->p + 16);
}

BEGIN
{
	this->q = (struct point *)alloca(16);
	this->q->x = -5;
	this->q->y[0] = 1;
	this->q->y[1] = 300;
	printt(64, typeref(this->q, 1, "struct point", sizeof (struct point)));
	printt(64, typeref(this->q, 2, "short", sizeof (short)));
	printt(8, typeref(this->q, 1, "int", sizeof (int)));
}

BEGIN
{
	printf("%s\n", memstr(16, ' ', 20));
}

ERROR
{
	printf("fault %d at 0x%x\n", arg4, arg5);
	exit(0);
}
