//@ engine: interp,kernel,inproc
//@ cmd: -q
/* The arguments of ERROR: the probe's id, the clause in program order, the fault and its value. */
int me;
ERROR { printf("%d %d %d %d\n", arg1 == me, arg2, arg4, arg5); }
BEGIN { me = id; }
BEGIN { trace(*(int *)64); }
BEGIN { z = 0; trace(5 / z); }
BEGIN { trace(((struct task_struct *)z)->pid); }
int five[5];
BEGIN { z = 8; trace(five[z]); }
BEGIN { exit(0); }
