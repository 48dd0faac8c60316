//@ engine: interp,kernel,inproc
/* nspec is 1: the second speculation() finds no free one, and the failure is counted. */
//@ err
//@ sub: /^descry: script .*\n//
#pragma D option quiet
#pragma D option nspec=1

BEGIN { a = speculation(); b = speculation(); }
BEGIN { printf("%d %d\n", a > 0, b); exit(0); }
