/* Provider sdt, probes with the names that other systems' kernels use: interrupts and timers, made
 * from tracepoints. */
#include "probe/event.h"

// clang-format off
#define IRQ { .type = "struct irqaction *", .word = 1 }, { .type = "int", .word = 0 }
#define TIMER { .type = "struct timer_list *", .word = 0 }
// clang-format on

/* irq_handler_entry(irq, action), irq_handler_exit(irq, action, ret); timer_expire_entry(timer,
 * base clock) */
static const struct event events[] = {
	EVENT("interrupt-start", "irq_handler_entry", .min_params = 2, ARGS(IRQ),
	      .note = "interrupts of devices; those of the processor itself (timers, calls between CPUs) are sdt:irq_vectors:::"),
	NO_EVENT("interrupt-start", "this kernel has no tracepoint irq_handler_entry"),
	EVENT("interrupt-complete", "irq_handler_exit", .min_params = 2, ARGS(IRQ)),
	NO_EVENT("interrupt-complete", "this kernel has no tracepoint irq_handler_exit"),
	EVENT("callout-start", "timer_expire_entry", .min_params = 1, ARGS(TIMER),
	      .note = "timers of the kernel (struct timer_list); those of high resolution are sdt:timer::hrtimer_expire_entry"),
	NO_EVENT("callout-start", "this kernel has no tracepoint timer_expire_entry"),
	EVENT("callout-end", "timer_expire_exit", .min_params = 1, ARGS(TIMER)),
	NO_EVENT("callout-end", "this kernel has no tracepoint timer_expire_exit"),
};

const struct provider provider_sdt_old =
	EVENTS("sdt", 39000, 39999, events, "interrupts and timers by the names of other systems");
