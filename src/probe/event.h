/* Rows that describe probes made from a tracepoint or a system call. The providers sched, proc, io,
 * vminfo, sysinfo, ip, tcp, udp, mib and lockstat have such tables. Private to src/probe/.
 *
 * A name may have several rows, the best mechanism first. The probe is made from the first row
 * whose mechanism this kernel has. When the kernel has none of them, the probe is listed with the
 * reason of the last row. Ids follow the order of names.
 */
#ifndef DESCRY_PROBE_EVENT_H
#define DESCRY_PROBE_EVENT_H

#include "base/mem.h"
#include "probe/provider.h"

struct event_arg {
	const char *type;  /* C type of the native value */
	const char *xlate; /* D type of args[i]; NULL: args[i] has the native type */
	const char *expr;  /* D text over the context words arg0..; NULL: the context word .word */
	uint8_t word;
	const char *raw; /* D text for arg<n> when args[n] is a string; NULL: the same */
};

struct event {
	const char *name;
	enum attach_kind kind;
	const char *tracepoint; /* NULL: no mechanism, see why; ignored for ATTACH_PROFILE */
	int16_t number;         /* system call number, for ATTACH_SYSCALL_* */
	uint8_t min_params;     /* the least number of parameters that the tracepoint must have */
	bool by_next;           /* thread_arg is the tracepoint's argument 2, sched_switch's next */
	uint8_t software;       /* PERF_COUNT_SW_* for ATTACH_PROFILE */
	const char *enumerator; /* an enumerator that the kernel must have; NULL: none */
	const char *filter;
	uint8_t nargs;
	struct event_arg args[6];
	const char *note;
	const char *why; /* the reason why the probe cannot fire, when tracepoint is NULL */
	bool never;      /* with why: Linux never does it; a program may enable it */
	/* Makes the filter when the filter depends on the running kernel. Returns NULL and sets
	 * *ret_why when it cannot. */
	const char *(*make_filter)(struct probe_set *ps, const char **ret_why);
};

/* Rows of a table: a probe at a tracepoint, and one without a mechanism. Behind these come the
 * row's other members. */
// clang-format off
#define EVENT(name_, tracepoint_, ...) \
	{ .name = name_, .kind = ATTACH_RAW_TP, .tracepoint = tracepoint_, ##__VA_ARGS__ }
#define NO_EVENT(name_, why_, ...) { .name = name_, .why = why_, ##__VA_ARGS__ }
#define ARGS(...) \
	.nargs = ARRAY_SIZE(((struct event_arg[]){ __VA_ARGS__ })), .args = { __VA_ARGS__ }
/* arg0 of a counter is the amount that is added. */
#define COUNTS(amount) ARGS({ .type = "uint64_t", .expr = amount })

/* The members of a struct provider that has a table of events, and their functions. */
#define EVENTS_OF(table) \
	.events = table, .nevents = ARRAY_SIZE(table), .claims = provider_claims_name, \
	.match = events_match, .args = events_args
/* A provider with the usual stability that has nothing but the table; its ids are first to last. */
#define EVENTS(name_, first, last, table, doc_) \
	{ .name = name_, .doc = doc_, .first_id = first, .last_id = last, \
	  .stability = { E_ISA, P_UNKNOWN, P_UNKNOWN, E_ISA, E_ISA }, EVENTS_OF(table) }
// clang-format on
struct err *events_match(const struct provider *pv, struct probe_set *ps,
			 const struct probe_desc *pd, probe_fn *found, void *arg);
struct err *events_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);

#endif
