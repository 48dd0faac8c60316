//@ engine: interp,kernel,inproc
//@ covers: int16_t int32_t ssize_t u_longlong_t longlong_t id_t uint_t ushort_t uchar_t ulong_t intptr_t ptrdiff_t anonymous-member forward-declaration
/* Every name of an integer type: its width and sign; members without a name; a structure named before it is defined. */
#pragma D option quiet
int16_t a; int32_t b; ssize_t c; u_longlong_t d; longlong_t e; id_t f;
uint_t g; ushort_t h; uchar_t i; ulong_t j; intptr_t k; ptrdiff_t l;
struct later;
struct holds {
	struct later *p;
	union { int whole; short half[2]; };
	struct { char inner; };
};
struct later { int n; };
struct holds s;

BEGIN
{
	a = -1; b = -1; c = -1; d = -1; e = -1; f = -1; g = -1; h = -1; i = -1; j = -1; k = -1; l = -1;
	printf("%d %d %d %d %d %d\n", sizeof (a), sizeof (b), sizeof (c), sizeof (d), sizeof (e), sizeof (f));
	printf("%d %d %d %d %d %d\n", sizeof (g), sizeof (h), sizeof (i), sizeof (j), sizeof (k), sizeof (l));
	printf("%d %d %d %d %d %d\n", a < 0, b < 0, c < 0, d < 0, e < 0, f < 0);
	printf("%d %d %d %d %d %d\n", g < 0, h < 0, i < 0, j < 0, k < 0, l < 0);
	s.whole = 0x20001;
	s.inner = 'q';
	printf("%d %d %c %d\n", s.half[0], s.half[1], s.inner, sizeof (struct later));
	this->q = (struct later *)alloca(sizeof (struct later));
	this->q->n = 9;
	s.p = this->q;
	printf("%d\n", s.p->n);
	exit(0);
}
