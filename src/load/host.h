/* What the compiler may ask of this machine. */
#ifndef DESCRY_LOAD_HOST_H
#define DESCRY_LOAD_HOST_H

#include "compile/target.h"

/* Which socket and memory node each CPU is on (curcpu->cpu_chip, lgrp): fills t's tables. They live
 * as long as the program. */
void host_find_cpus(struct compile_target *t);
/* The clock of each CPU: the highest where the kernel drives it, else the present one. Same
 * life. */
void host_find_clocks(struct compile_target *t);

#endif
