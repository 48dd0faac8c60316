//@ engine: interp,kernel,inproc
//@ cmd: -q -x nspec=3
/* One clause commits and discards several speculations. Invalid numbers are faults; for speculate() they are like 0. */
BEGIN { a = speculation(); b = speculation(); c = speculation(); printf("%d %d %d\n", a, b, c); }
BEGIN { speculate(a); printf("first\n"); }
BEGIN { speculate(b); printf("second\n"); }
BEGIN { speculate(c); printf("third\n"); }
BEGIN { commit(c); discard(b); commit(a); }
BEGIN { commit(0); discard(0); commit(2); }
BEGIN { commit(-1); }
BEGIN { discard(1024); }
BEGIN { speculate(4); printf("not shown\n"); }
BEGIN { exit(0); }
ERROR { printf("fault %d\n", arg4); }
