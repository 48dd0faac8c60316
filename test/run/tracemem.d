//@ engine: interp,kernel,inproc
#pragma D option quiet
int n;

BEGIN
{
	this->p = (char *)alloca(32);
	bcopy("ABCDEFGHIJKLMNOPQRSTUVWXYZ", this->p, 27);
	this->p[27] = 0; this->p[28] = -1; this->p[29] = 10; this->p[30] = 127; this->p[31] = 32;
	tracemem(this->p, 32);
	tracemem(this->p, 5);
	n = 3;
	tracemem(this->p, 16, n);
	tracemem(this->p + 16, 16);
	exit(0);
}
