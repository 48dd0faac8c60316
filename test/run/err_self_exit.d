//@ engine: interp,kernel,inproc
/* exit() in ERROR: the usual way to stop at the first fault. */
#pragma D option quiet
ERROR { printf("stopping\n"); exit(4); }
BEGIN { this->x = *(long *)0x8; printf("not reached\n"); }
BEGIN { printf("not reached\n"); }
END { printf("end\n"); }
//@ exit: 4
