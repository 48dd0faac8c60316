//@ engine: interp,kernel,inproc
#pragma D option quiet
uint32_t *p;

BEGIN
{
	printf("%x %x %x\n", htons(0x1234), htonl(0x12345678), htonll(0x0102030405060708));
	printf("%x %x %x\n", ntohs(0x1234), ntohl(0x12345678), ntohll(0x0102030405060708));
	this->v4 = (uint32_t *)alloca(4);
	*this->v4 = 0x0100007f;
	printf("%s %s\n", inet_ntoa(this->v4), inet_ntop(2, this->v4));
	*this->v4 = 0xffffffff;
	printf("%s\n", inet_ntoa(this->v4));
	this->v6 = (uint64_t *)alloca(16);
	this->v6[0] = 0; this->v6[1] = htonll(1);
	printf("%s\n", inet_ntop(10, this->v6));
	this->v6[0] = htonll(0xfe80000000000000); this->v6[1] = htonll(0x0211223344556677);
	printf("%s\n", inet_ntop(10, this->v6));
	this->v6[0] = htonll(0x20010db800000000);
	this->v6[1] = htonll(0x0001000000000001);
	printf("%s\n", inet_ntop(10, this->v6));
	printf("%d %d\n", getmajor(0x800001), getminor(0x800001));
	exit(0);
}
