//@ cmd: -d bind
struct in { int a; char name[8]; struct in *up; };
typedef struct inner { int twice; } inner_t;
typedef struct out { int64_t a; string name; inner_t in; } out_t;
translator inner_t < int I > { twice = I * 2; };
translator out_t < struct in *P > { a = P->a; name = P->name; in = xlate <inner_t>(P->a); };
struct in *g;
BEGIN
{
	trace(xlate <out_t *>(g)->a);
	trace(xlate <out_t>(g->up).name);
	trace(xlate <out_t *>(g)->in.twice);
}
