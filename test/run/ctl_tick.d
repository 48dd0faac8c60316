//@ engine: interp,kernel,inproc
/* tick: the same clause many times; self-> and this-> of a probe that is not BEGIN. */
#pragma D option quiet
tick-1ms { n++; this->t = n; }
tick-1ms /this->t == 3/ { printf("third\n"); exit(0); }
tick-1ms /n > 3/ { late = 1; }
END { printf("%d\n", n >= 3); }
