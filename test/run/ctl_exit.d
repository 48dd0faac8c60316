//@ engine: interp,kernel
/* exit(): the status of the tracer; END still runs, later clauses of the firing too. */
#pragma D option quiet
BEGIN { printf("begin\n"); exit(7); printf("same clause\n"); }
BEGIN { printf("same firing\n"); }
tick-1ms { printf("not reached\n"); }
END { printf("end %s\n", probename); }
//@ exit: 7
