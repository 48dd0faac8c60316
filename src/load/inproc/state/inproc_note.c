/* Notes of the engine while it plans and traces. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>

#include "load/inproc/state/inproc_state.h"

static void remark(struct inproc_engine *e, bool blind, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		text = xstrdup(fmt);
	engine_remark(&e->base, text, blind);
}

void inproc_note(struct inproc_engine *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	remark(e, false, fmt, ap);
	va_end(ap);
}

void inproc_blind(struct inproc_engine *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	remark(e, true, fmt, ap);
	va_end(ap);
}
