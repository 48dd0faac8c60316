//@ engine: interp,kernel,inproc
/* Chooses one of several translators to a type: the exact one, through typedefs and qualifiers; else the first one for an
 * integer from an integer, and for a void * from a pointer. */
#pragma D option quiet
struct one { int a; };
struct two { int b; };
union both { int c; };
enum size { SMALL, BIG = 7 };
typedef struct one one_t;
typedef const one_t *one_p;
typedef int number_t;
typedef struct info { string from; int value; } info_t;
typedef struct info2 { string from; int value; } info2_t;

translator info_t < struct two *P > { from = "two *"; value = P->b; };
translator info_t < one_t *P > { from = "one *"; value = P->a; };
translator info_t < one_t **P > { from = "one **"; value = (*P)->a; };
translator info_t < union both *P > { from = "both *"; value = P->c; };
translator info_t < uint64_t N > { from = "uint64_t"; value = (int)N; };
translator info_t < number_t N > { from = "int"; value = N; };
translator info_t < enum size N > { from = "enum"; value = (int)N; };
translator info2_t < enum size N > { from = "enum to info2"; value = (int)N; };
translator info2_t < one_t *P > { from = "one * to info2"; value = P->a; };

struct one *o;
one_p typed;
struct one **oo;
union both *u;
enum size e;
short s;
void *v;
BEGIN
{
	o = (struct one *)alloca(8);
	o->a = 1;
	oo = (struct one **)alloca(8);
	*oo = o;
	typed = o;
	u = (union both *)o;
	v = o;
	e = BIG;
	s = 3;
	printf("%s %d\n", xlate <info_t *>(o)->from, xlate <info_t *>(o)->value);
	printf("%s %d\n", xlate <info_t *>(typed)->from, xlate <info_t *>(typed)->value);
	printf("%s %d\n", xlate <info_t *>(oo)->from, xlate <info_t *>(oo)->value);
	printf("%s %d\n", xlate <struct info *>(u)->from, xlate <struct info *>(u)->value);
	printf("%s %d\n", xlate <info_t>(4).from, xlate <info_t>(4).value);
	printf("%s %d\n", xlate <info_t>(e).from, xlate <info_t>(e).value);
	printf("%s %d\n", xlate <info_t>(s).from, xlate <info_t>(s).value);
	printf("%s %d\n", xlate <info_t *>(v)->from, xlate <info_t *>(v)->value);
	printf("%s %d\n", xlate <info2_t>(s).from, xlate <info2_t>(s).value);
	printf("%s %d\n", xlate <info2_t *>(v)->from, xlate <info2_t *>(v)->value);
	exit(0);
}
