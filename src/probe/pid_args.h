/* Private to src/probe/: arguments of pid probes. */
#ifndef DESCRY_PROBE_PID_ARGS_H
#define DESCRY_PROBE_PID_ARGS_H

#include "probe/probe.h"

/* Describes the arguments. Entry: the psABI's integer arguments, in registers and then on the
 * stack, and args[] when debug information has the function. Return: arg1 is the value. arg0 is the
 * offset of the return instruction in DTrace, but a kernel return probe does not know it. */
struct err *pid_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);

#endif
