/* What LTTng-UST needs of bench/inproc.c: one tracepoint with two numbers. Read several times, as
 * <lttng/tracepoint.h> wants it. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER descry_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_tp.h"

#if !defined(DESCRY_BENCH_LTTNG_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DESCRY_BENCH_LTTNG_TP_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(descry_bench, hot, LTTNG_UST_TP_ARGS(long, a, long, b),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, a, a)
						       lttng_ust_field_integer(long, b, b)))
#endif

#include <lttng/tracepoint-event.h>
