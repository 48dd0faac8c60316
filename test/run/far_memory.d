//@ engine: interp,kernel,inproc
//@ cmd: -q -x scratchsize=1m -s %s
/* An eBPF instruction's offset has 16 bits. Elements, members, keys and fields of records that lie
 * further from their variable's beginning are themselves, and not others. */
struct far {
	int first;
	int a[20000];
	char tail;
	long last;
	int bits : 3, more : 7;
};

int a[20000];
struct far g;
struct far x[int];
this struct far t;
string s;

BEGIN
{
	a[0] = 1; a[8191] = 2; a[8192] = 3; a[9000] = 4; a[16383] = 5; a[16384] = 6; a[19999] = 7;
	printf("global: %d %d %d %d %d %d %d\n", a[0], a[8191], a[8192], a[9000], a[16383], a[16384], a[19999]);
	a[16384]++; a[16384] += 3; a[9000]--;
	printf("  %d %d %d %d\n", a[0], a[8192], a[9000], a[16384]);
}

BEGIN
{
	g.first = 1; g.a[0] = 2; g.a[8191] = 3; g.a[16383] = 4; g.a[19999] = 5; g.tail = 'z';
	g.last = -6; g.bits = 3; g.more = 65;
	g.last--; g.more++;
	printf("struct: %d %d %d %d %d %c %d %d %d\n", g.first, g.a[0], g.a[8191], g.a[16383], g.a[19999],
	    g.tail, g.last, g.bits, g.more);
}

BEGIN
{
	this->t.first = 1; this->t.a[0] = 2; this->t.a[8191] = 3; this->t.a[16383] = 4;
	this->t.a[19999] = 5; this->t.last = -6; this->t.more = 9;
	printf("clause: %d %d %d %d %d %d %d\n", this->t.first, this->t.a[0], this->t.a[8191],
	    this->t.a[16383], this->t.a[19999], this->t.last, this->t.more);
}

BEGIN
{
	x[1].first = 1; x[1].a[0] = 2; x[1].a[8191] = 3; x[1].a[16383] = 4; x[1].a[19999] = 5;
	x[1].last = -6; x[2].last = 7; x[1].bits = 2;
	printf("element: %d %d %d %d %d %d %d %d\n", x[1].first, x[1].a[0], x[1].a[8191], x[1].a[16383],
	    x[1].a[19999], x[1].last, x[2].last, x[1].bits);
	g = x[1];
	printf("copy: %d %d %d\n", g.first, g.a[16383], g.last);
}

BEGIN { p = (int *)alloca(70000); p[0] = 1; p[8191] = 2; p[8192] = 3; p[16384] = 4; p[17499] = 5;
	printf("alloca: %d %d %d %d %d\n", p[0], p[8191], p[8192], p[16384], p[17499]);
	q = (struct far *)alloca(sizeof(struct far)); q->first = 1; q->last = 2; q->tail = 'y';
	printf("  %d %d %c\n", q->first, q->last, q->tail);
}

BEGIN { y = alloca(200); bcopy("0123456", y, 8); tracemem(y, 8); trace(1); printf(" %d\n", 2); exit(0); }
