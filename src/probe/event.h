/* Probes that are made from a tracepoint or system call by a table: sched, proc, io, vminfo,
 * sysinfo, ip, tcp, udp, mib, lockstat. Private to src/probe/.
 *
 * A name may stand in several rows, best mechanism first: the first row whose mechanism this kernel
 * has is the probe. When none has, the probe is listed with the reason of the last row. Ids follow
 * the order of names.
 */
#ifndef DESCRY_PROBE_EVENT_H
#define DESCRY_PROBE_EVENT_H

#include "probe/probe.h"

struct event_arg {
	const char *type;  /* C type of the native value */
	const char *xlate; /* D type of args[i], NULL: the native value itself */
	const char *expr;  /* D over the context words arg0..; NULL: context word .word */
	uint8_t word;
	const char *raw; /* D for arg<n> when args[n] is no number (a string); NULL: the same value */
};

struct event {
	const char *name;
	enum attach_kind kind;
	const char *tracepoint; /* NULL: no mechanism, see why; of ATTACH_PROFILE not looked at */
	int16_t number;         /* of ATTACH_SYSCALL_* */
	uint8_t min_params;     /* the tracepoint must have at least so many parameters */
	bool by_next;           /* thread_arg is the tracepoint's argument 2, sched_switch's next */
	uint8_t software;       /* of ATTACH_PROFILE: PERF_COUNT_SW_*, each one of it */
	const char *enumerator; /* the kernel must have it; NULL: none is asked for */
	const char *filter;
	uint8_t nargs;
	struct event_arg args[6];
	const char *note;
	const char *why; /* tracepoint NULL: reason it cannot be */
	bool never; /* with why: Linux does not do it, so that the probe may be enabled and never fires */
	/* Makes the filter when it depends on the running kernel; NULL with *ret_why when it
	 * cannot. */
	const char *(*make_filter)(struct probe_set *ps, const char **ret_why);
};

/* provider.match and .args of a provider with events. */
struct err *events_match(const struct provider *pv, struct probe_set *ps,
			 const struct probe_desc *pd, void (*found)(void *arg, struct probe *p),
			 void *arg);
struct err *events_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);

#endif
