/* Notes of the engine while it plans and traces. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>

#include "load/inproc/state/inproc_state.h"

void inproc_note(struct inproc_engine *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	engine_remark(&e->base, xvasprintf(fmt, ap), false);
	va_end(ap);
}

void inproc_blind(struct inproc_engine *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	engine_remark(&e->base, xvasprintf(fmt, ap), true);
	va_end(ap);
}
