//@ engine: interp,kernel,inproc
/* A _Bool is 0 or 1 after every conversion (dsmith seeds 45, 116). */
#pragma D option quiet
_Bool b;
this _Bool t;
struct s { _Bool m; };
struct s s;
int i;

BEGIN
{
	i = 256; b = i; this->t = i; s.m = i;
	printf("%d %d %d %d\n", b, this->t, s.m, (_Bool)i);
	i = 2; b = i; printf("%d %d\n", b, (_Bool)(i - 2));
	b = 1; b -= 8; printf("%d\n", b);
	b ^= 0x8000000000000000; printf("%d\n", b);
	b = 0; b += 256; printf("%d\n", b);
	b--; printf("%d\n", b);
	b--; printf("%d\n", b);
	b++; printf("%d\n", ++b);
	exit(0);
}
