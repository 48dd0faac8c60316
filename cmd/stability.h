/* Stability, as DTrace prints it. */
#ifndef DESCRY_CMD_STABILITY_H
#define DESCRY_CMD_STABILITY_H

#include "probe/stability.h"
#include "run.h"

/* A heading, and a line for each of the three. */
void print_stability(FILE *out, const char *what, struct stability s);
/* Under DTrace's name: what -v says of the program in `s`. */
void run_say_stability(const struct run *r, const struct bound *b, const struct source *s);

#endif
