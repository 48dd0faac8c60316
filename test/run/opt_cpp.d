//@ engine: interp,kernel,inproc
//@ cmd: -q -C -D LIMIT=7 -D NAME="\"cpp\"" -s %s
#define TWICE(x) ((x) * 2)
#ifdef LIMIT
int limit;
BEGIN { limit = LIMIT; printf("%d %d %s\n", limit, TWICE(limit + 1), NAME); exit(0); }
#else
BEGIN { printf("not defined\n"); exit(1); }
#endif
