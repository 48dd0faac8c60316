//@ engine: interp,kernel,inproc
//@ covers: divide-by-zero
/* A division by zero at run time is a fault; so is the remainder, and neither assigns. */
#pragma D option quiet
int x, zero;
BEGIN { x = 5; x /= zero; }
BEGIN { x = 6 % zero; }
BEGIN { x = 6 / (zero, 0); } /* a constant, but not a constant expression */
BEGIN { printf("x %d\n", x); exit(0); }
ERROR { printf("fault %d, divide-by-zero is %d\n", arg4, DTRACEFLT_DIVZERO); }
