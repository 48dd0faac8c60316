//@ engine: interp,kernel,inproc
//@ cmd: -q
struct point { int x; short y; char tag[6]; };
enum color { RED, GREEN = 5, BLUE };
typedef struct point point_t;
inline int twice[int v] = v * 2;
inline string greeting = "hi";

BEGIN
{
	p = (point_t *)alloca(sizeof(point_t));
	p->x = -70000;
	p->y = 300;
	bcopy("abc", p->tag, 4);
	printf("%d %d %s\n", p->x, p->y, stringof(p->tag));
	printf("%d %d %d\n", sizeof(struct point), offsetof(point_t, tag), sizeof(p->tag));
	printf("%d %d %d\n", RED, GREEN, BLUE);
	printf("%d %s\n", twice[21], greeting);
	exit(0);
}
