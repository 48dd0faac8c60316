//@ engine: interp,kernel,inproc
/* A fault in an ERROR clause ends it and is counted; the tracer goes on. */
//@ err
//@ sub: /^descry: script .*\n//
//@ sub: / at BPF pc \d+//
#pragma D option quiet
int zero;

ERROR { printf("lost"); trace(1 / zero); }
ERROR { printf("second ERROR clause\n"); }
BEGIN { trace(2 / zero); }
BEGIN { printf("done\n"); exit(0); }
