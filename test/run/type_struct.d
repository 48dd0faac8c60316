//@ engine: interp,kernel,inproc
/* Structs, unions, enums, typedefs and arrays declared in D. */
#pragma D option quiet
enum colour { RED, GREEN = 5, BLUE };
typedef struct point { int x; int y; } point_t;
struct rec { char c; short s; int i; long l; char name[6]; point_t p; struct { int in; } anon; enum colour col; };
union word { uint32_t w; uint16_t h[2]; uint8_t b[4]; };
struct rec g;
point_t pts[3];
union word u;
this struct point tp;
self point_t sp;

BEGIN
{
	g.c = 300; g.s = 70000; g.i = -5; g.l = 1 << 20; g.p.x = 1; g.p.y = 2; g.anon.in = 3; g.col = BLUE;
	g.name[0] = 'h'; g.name[1] = 'i';
	printf("%d %d %d %d %d %d %d %d %s\n", g.c, g.s, g.i, g.l, g.p.x, g.p.y, g.anon.in, g.col, stringof(g.name));
	pts[0].x = 4; pts[2].y = 9; pts[2].x = pts[2].y + 1;
	printf("%d %d %d %d\n", pts[0].x, pts[1].x, pts[2].x, pts[2].y);
	u.w = 0x12345678;
	printf("%x %x %x %x\n", u.h[0], u.h[1], u.b[0], u.b[3]);
	u.b[1] = 0xff; printf("%x\n", u.w);
	this->tp.x = 7; this->tp.y = this->tp.x++;
	printf("%d %d\n", this->tp.x, this->tp.y);
	self->sp.y = 11; self->sp.x = self->sp.y - 1;
	printf("%d %d\n", self->sp.x, self->sp.y);
	g.p.x += 10; g.s--; printf("%d %d\n", g.p.x, g.s);
	printf("%d %d %d\n", RED, GREEN, BLUE);
	printf("%d %d\n", (enum colour)5 == GREEN, g.col > GREEN);
	exit(0);
}
