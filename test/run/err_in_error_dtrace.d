//@ engine: interp,kernel,inproc
/* Under the name dtrace faults are printed beside ERROR clauses. */
//@ as: dtrace
//@ err
//@ sub: /^dtrace: script .*\n//
//@ sub: / at BPF pc \d+//
#pragma D option quiet
int zero;

ERROR { printf("ERROR clause\n"); }
BEGIN { trace(2 / zero); }
BEGIN { printf("done\n"); exit(0); }
