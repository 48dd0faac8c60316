/* Facts of this machine that the compiler uses. */
#ifndef DESCRY_LOAD_HOST_H
#define DESCRY_LOAD_HOST_H

#include "compile/engine_target.h"

/* Fills t's tables with the socket and memory node of each CPU (curcpu->cpu_chip, lgrp). They live
 * as long as the process. */
void host_find_cpus(struct compile_target *t);
/* Fills in the clock of each CPU: the highest where the kernel drives it, else the present one.
 * Same lifetime. */
void host_find_clocks(struct compile_target *t);

#endif
