//@ engine: interp,kernel,inproc
//@ cmd: -w
//@ covers: chill
/* chill() spends time. */
#pragma D option quiet
inline int MS = 1000000;

BEGIN { then = timestamp; chill(20 * MS); }
tick-1ms { printf("%s\n", timestamp - then >= 20 * MS ? "later" : "too soon"); exit(0); }
