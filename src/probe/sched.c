/* Provider sched: the scheduler's decisions, from its tracepoints. */
#include "probe/event.h"

enum { SYS_sched_yield_ = 24 };

#define TASK "struct task_struct *"
#define PREV "((struct task_struct *)arg1)"
/* The two arguments that describe the thread: lwpsinfo_t and psinfo_t, made from a task. */
// clang-format off
#define THREAD_WORD(w) \
	{ .type = TASK, .xlate = "lwpsinfo_t *", .word = w }, \
	{ .type = TASK, .xlate = "psinfo_t *", .word = w }
#define THREAD_EXPR(e) \
	{ .type = TASK, .xlate = "lwpsinfo_t *", .expr = e }, \
	{ .type = TASK, .xlate = "psinfo_t *", .expr = e }
#define TASK_DEAD "0x80" /* <linux/sched.h>, unchanged since 4.14 */
#define CPU_OF(task) { .type = "int", .xlate = "cpuinfo_t *", .expr = "(int)" task "->thread_info.cpu" }
// clang-format on

/* Makes the filter of the scheduler's tick, which is one hrtimer of each CPU with a known
 * function. */
static const char *tick_filter(struct probe_set *ps, const char **ret_why)
{
	static const char *const functions[] = { "tick_nohz_handler", "tick_sched_timer" };
	uint64_t addr;

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		if (symbols_kernel_addr(ps->symbols, NULL, functions[i], &addr) && addr)
			return arena_printf(
				&ps->arena,
				"(uint64_t)((struct hrtimer *)arg0)->function == 0x%llxull",
				(unsigned long long)addr);
	}
	*ret_why =
		"the address of the kernel's tick function is not in /proc/kallsyms (no privilege, or another name)";
	return NULL;
}

/* sched_switch(bool preempt, prev, next[, unsigned int prev_state]) runs in thread prev. prev_state
 * 0: prev is still runnable. */
static const struct event events[] = {
	{ .name = "on-cpu", .kind = ATTACH_TP_BTF, .tracepoint = "sched_switch", .by_next = true },
	EVENT("off-cpu", "sched_switch", ARGS(THREAD_WORD(2))),
	EVENT("remain-cpu", "sched_exit_tp", .min_params = 1, .filter = "arg0 == 0"),
	EVENT("sleep", "sched_switch", .min_params = 4,
	      .filter = "arg0 == 0 && arg3 != 0 && (arg3 & " TASK_DEAD ") == 0"),
	EVENT("sleep", "sched_switch", .filter = "arg0 == 0 && " PREV "->__state != 0"),
	EVENT("preempt", "sched_switch", .min_params = 4,
	      .filter = "(arg0 != 0 || arg3 == 0) && " PREV "->pid != 0",
	      .note = "a thread that yields counts as preempted"),
	EVENT("preempt", "sched_switch",
	      .filter = "(arg0 != 0 || " PREV "->__state == 0) && " PREV "->pid != 0",
	      .note = "a thread that yields counts as preempted"),
	{ .name = "surrender",
	  .kind = ATTACH_SYSCALL_ENTRY,
	  .tracepoint = "sys_enter",
	  .number = SYS_sched_yield_,
	  .nargs = 2,
	  .args = { THREAD_EXPR("curthread") },
	  .note = "sched_yield(2) only: a yield inside the kernel has no tracepoint" },
	EVENT("wakeup", "sched_waking", ARGS(THREAD_WORD(0))),
	EVENT("wakeup", "sched_wakeup", ARGS(THREAD_WORD(0))),
	EVENT("enqueue", "sched_wakeup",
	      ARGS(THREAD_WORD(0), CPU_OF("((struct task_struct *)arg0)")),
	      .note = "threads that wake up; new threads and moves to another CPU are sdt:::sched_wakeup_new and "
		      "sdt:::sched_migrate_task"),
	EVENT("dequeue", "sched_switch", .min_params = 4, .filter = "arg0 == 0 && arg3 != 0",
	      ARGS(THREAD_WORD(1), CPU_OF(PREV), { .type = "int", .expr = "0" }),
	      .note = "threads that block; moves to another CPU are sdt:::sched_migrate_task"),
	NO_EVENT("dequeue", "this kernel's sched_switch does not say whether a thread blocks"),
	EVENT("tick", "hrtimer_expire_entry", .make_filter = tick_filter,
	      ARGS(THREAD_EXPR("curthread"))),
	EVENT("change-pri", "sched_pi_setprio", .min_params = 2,
	      ARGS(THREAD_WORD(0),
		   { .type = "int",
		     .expr = "arg1 != 0 && " PREV
			     "->prio < ((struct task_struct *)arg0)->normal_prio"
			     " ? " PREV "->prio : ((struct task_struct *)arg0)->normal_prio" }),
	      .note = "priority inheritance only: nice(2) and sched_setscheduler(2) have no tracepoint, use syscall"),
	NO_EVENT("schedctl-nopreempt",
		 "Linux has no schedctl(3C): a thread cannot refuse preemption"),
	NO_EVENT("schedctl-preempt",
		 "Linux has no schedctl(3C): a thread cannot refuse preemption"),
	NO_EVENT("schedctl-yield", "Linux has no schedctl(3C): a thread cannot refuse preemption"),
	NO_EVENT("cpucaps-sleep", "CPU bandwidth control has no tracepoint"),
	NO_EVENT("cpucaps-wakeup", "CPU bandwidth control has no tracepoint"),
};

const struct provider provider_sched =
	EVENTS("sched", 20000, 20099, events,
	       "threads going on and off CPUs, sleeping, waking, being preempted");
