//@ engine: interp,kernel,inproc
/* A fault ends its clause only. The clause's data is dropped, and its assignments stay. */
#pragma D option quiet
int zero, n;

BEGIN { n = 1; printf("lost\n"); n = 2; trace(1 / zero); n = 3; }
BEGIN { printf("n %d\n", n); }
BEGIN /1 / zero/ { printf("predicate\n"); }
BEGIN { printf("after\n"); exit(0); }
