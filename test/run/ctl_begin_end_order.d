//@ engine: interp,kernel,inproc
/* BEGIN first, END last, each clause in order, globals shared. */
#pragma D option quiet
int n;
END { printf("end 1: %d\n", n); n++; }
BEGIN { n = 1; }
END { printf("end 2: %d\n", n); }
BEGIN { n++; exit(0); }
