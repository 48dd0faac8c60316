//@ engine: interp,kernel,inproc
/* exit(): the status of the tracer. Its clause goes on, later clauses of the firing do not run, END does. */
#pragma D option quiet
BEGIN { printf("begin\n"); exit(7); printf("same clause\n"); }
BEGIN { printf("not reached\n"); }
tick-1ms { printf("not reached\n"); }
END { printf("end %s\n", probename); }
//@ exit: 7
