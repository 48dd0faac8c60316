/* Provider sdt, probes with the names that other systems' kernels use: interrupts and timers, made
 * from tracepoints. */
#include "probe/event.h"
#include "probe/provider.h"

// clang-format off
#define IRQ { { .type = "struct irqaction *", .word = 1 }, { .type = "int", .word = 0 } }
#define TIMER { { .type = "struct timer_list *", .word = 0 } }
// clang-format on

/* irq_handler_entry(irq, action), irq_handler_exit(irq, action, ret); timer_expire_entry(timer,
 * base clock) */
static const struct event events[] = {
	{ .name = "interrupt-start",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "irq_handler_entry",
	  .min_params = 2,
	  .nargs = 2,
	  .args = IRQ,
	  .note = "interrupts of devices; those of the processor itself (timers, calls between CPUs) are sdt:irq_vectors:::" },
	{ .name = "interrupt-start", .why = "this kernel has no tracepoint irq_handler_entry" },
	{ .name = "interrupt-complete",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "irq_handler_exit",
	  .min_params = 2,
	  .nargs = 2,
	  .args = IRQ },
	{ .name = "interrupt-complete", .why = "this kernel has no tracepoint irq_handler_exit" },
	{ .name = "callout-start",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "timer_expire_entry",
	  .min_params = 1,
	  .nargs = 1,
	  .args = TIMER,
	  .note = "timers of the kernel (struct timer_list); those of high resolution are sdt:timer::hrtimer_expire_entry" },
	{ .name = "callout-start", .why = "this kernel has no tracepoint timer_expire_entry" },
	{ .name = "callout-end",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "timer_expire_exit",
	  .min_params = 1,
	  .nargs = 1,
	  .args = TIMER },
	{ .name = "callout-end", .why = "this kernel has no tracepoint timer_expire_exit" },
};

const struct provider provider_sdt_old = {
	.name = "sdt",
	.doc = "interrupts and timers by the names of other systems",
	.first_id = 39000,
	.last_id = 39999,
	.stability = { E_ISA, P_UNKNOWN, P_UNKNOWN, E_ISA, E_ISA },
	.events = events,
	.nevents = ARRAY_SIZE(events),
	.claims = provider_claims_name,
	.match = events_match,
	.args = events_args,
};
