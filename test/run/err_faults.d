//@ engine: interp,kernel,inproc
/* ERROR: arg1 the EPID, arg2 the action, arg3 the pc, arg4 the fault, arg5 its value. */
#pragma D option quiet
int zero, n;
int *np;
int arr[4];

ERROR { printf("%s fault %d value %x epid %d\n", probename, arg4, arg5, arg1 > 0); }
BEGIN { trace(*np); }
BEGIN { n = 5 / zero; }
BEGIN { n = 5 % zero; }
BEGIN { np = (int *)0x10; n = *np; }
BEGIN { n = np[3]; }
BEGIN { trace(stringof((char *)0x20)); }
BEGIN { arr[zero + 4] = 1; }
BEGIN { this->p = (char *)alloca((pid ? 1 : 0) << 30); this->p[0] = 1; }
BEGIN { *np = 3; }
BEGIN { printf("n is still %d\n", n); exit(0); }
END / *np / { printf("not reached\n"); }
