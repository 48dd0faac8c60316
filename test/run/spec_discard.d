//@ engine: interp,kernel,inproc
/* Discarded data is never printed. Committed data is printed at the commit. Without a speculation there is no data. */
#pragma D option quiet
#pragma D option nspec=2

BEGIN { keep = speculation(); drop = speculation(); }
BEGIN { speculate(keep); printf("kept 1\n"); }
BEGIN { speculate(drop); printf("dropped\n"); }
BEGIN { printf("direct\n"); }
BEGIN { speculate(keep); printf("kept 2\n"); }
BEGIN /keep && drop && keep != drop/ { discard(drop); }
BEGIN { commit(keep); }
BEGIN { printf("after\n"); }
BEGIN { speculate(0); printf("nowhere\n"); }
BEGIN { commit(0); discard(0); }
BEGIN { again = speculation(); printf("%d\n", again > 0); exit(0); }
