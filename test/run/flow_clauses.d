//@ engine: interp,kernel,inproc
/* Several clauses run in program order; predicates choose; the comma lists probes. */
#pragma D option quiet
int n;

BEGIN { printf("1 "); n = 1; }
BEGIN /n == 1/ { printf("2 "); n = 2; }
BEGIN /n == 1/ { printf("not "); }
BEGIN, END { printf("%s ", probename); }
BEGIN /0/ { printf("not "); }
BEGIN /n == 2 && pid/ { printf("3 "); }
BEGIN /execname == "descry"/ { printf("4 "); }
BEGIN /execname != "descry"/ { printf("not "); }
BEGIN { ; ; printf("5\n"); ; exit(0) }
BEGIN { printf("not "); }
dtrace:::END { printf("7\n"); }
:::END { printf("8\n"); }
