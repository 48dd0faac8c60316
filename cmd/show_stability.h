/* Prints stability as DTrace does. */
#ifndef DESCRY_CMD_SHOW_STABILITY_H
#define DESCRY_CMD_SHOW_STABILITY_H

#include "probe/stability.h"
#include "run.h"

/* Prints a heading and a line for each of the three attributes. */
void print_stability(FILE *out, const char *what, struct stability s);
/* Under DTrace's name: prints the stability of the program in `s`, for -v. */
void run_say_stability(const struct run *r, const struct bound *b, const struct source *s);

#endif
