//@ engine: interp,kernel,inproc
/* Floating-point values come from memory, because D has no floating-point constants or arithmetic. */
#pragma D option quiet

BEGIN
{
	this->d = (double *)alloca(8);
	*(uint64_t *)this->d = 0x3ff8000000000000;
	printf("[%f] [%g] [%e] [%.2f] [%8.1f]\n", *this->d, *this->d, *this->d, *this->d, *this->d);
	*(uint64_t *)this->d = 0xc0590c0000000000;
	printf("[%f] [%g] [%E] [%G]\n", *this->d, *this->d, *this->d, *this->d);
	this->f = (float *)this->d;
	*(uint32_t *)this->f = 0x40490fdb;
	printf("[%f] [%.3f]\n", *this->f, *this->f);
	exit(0);
}
