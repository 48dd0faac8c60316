/* Provider proc: processes and threads that begin or end, exec, signals. */
#include "probe/event.h"

enum { SYS_rt_sigtimedwait_ = 128 };

#define TASK "struct task_struct *"
// clang-format off
#define THREAD_WORD(w) \
	{ .type = TASK, .xlate = "lwpsinfo_t *", .word = w }, \
	{ .type = TASK, .xlate = "psinfo_t *", .word = w }
// clang-format on
#define CHILD "((struct task_struct *)arg1)"
#define EXITING "((struct task_struct *)arg0)"
#define NEXT "((struct task_struct *)arg2)"
#define REGS "((struct pt_regs *)arg0)"

/* sys_enter(struct pt_regs *regs, long number), sys_exit(struct pt_regs *regs, long result). execve
 * is 59, execveat 322. 32-bit calls (TS_COMPAT) have other numbers. */
#define NATIVE "(curthread->thread_info.status & 2) == 0"
#define ENTERS_EXEC "(arg1 == 59 || arg1 == 322) && " NATIVE
#define FAILED_EXEC "arg1 < 0 && (" REGS "->orig_ax == 59 || " REGS "->orig_ax == 322) && " NATIVE
#define EXEC_PATH "arg1 == 59 ? " REGS "->di : " REGS "->si"

/* the values of D's scripts: CLD_EXITED 1, CLD_KILLED 2, CLD_DUMPED 3 */
#define EXIT_REASON \
	"(int)((" EXITING "->exit_code & 0x7f) == 0 ? 1 : (" EXITING \
	"->exit_code & 0x80) != 0 ? 3 : 2)"

/* A thread that the kernel has never switched off is about to run for the first time. */
#define FIRST_RUN NEXT "->nvcsw == 0 && " NEXT "->nivcsw == 0 && " NEXT "->pid != 0"

/* signal_generate(sig, info, task, group, result): result 1 ignored, 3 could not be queued */
static const struct event events[] = {
	EVENT("create", "sched_process_fork", .filter = CHILD "->pid == " CHILD "->tgid",
	      ARGS({ .type = TASK, .xlate = "psinfo_t *", .word = 1 })),
	EVENT("lwp-create", "sched_process_fork", ARGS(THREAD_WORD(1)),
	      .note = "a new process's first thread counts too"),
	{ .name = "start",
	  .kind = ATTACH_TP_BTF,
	  .tracepoint = "sched_switch",
	  .by_next = true,
	  .filter = FIRST_RUN " && " NEXT "->pid == " NEXT "->tgid",
	  .note = "just before the process's first instruction, in the kernel" },
	{ .name = "lwp-start",
	  .kind = ATTACH_TP_BTF,
	  .tracepoint = "sched_switch",
	  .by_next = true,
	  .filter = FIRST_RUN,
	  .note = "just before the thread's first instruction, in the kernel" },
	EVENT("exec", "sys_enter", .filter = ENTERS_EXEC,
	      ARGS({ .type = "string", .expr = "copyinstr(" EXEC_PATH ")", .raw = EXEC_PATH })),
	EVENT("exec-success", "sched_process_exec"),
	EVENT("exec-failure", "sys_exit", .filter = FAILED_EXEC,
	      ARGS({ .type = "int", .expr = "(int)-arg1" })),
	EVENT("exit", "sched_process_exit", .min_params = 2, .filter = "arg1 != 0",
	      ARGS({ .type = "int", .expr = EXIT_REASON })),
	EVENT("exit", "sched_process_exit", .filter = EXITING "->signal->live.counter == 0",
	      ARGS({ .type = "int", .expr = EXIT_REASON }),
	      .note = "a process whose last two threads end at once can be seen twice"),
	EVENT("lwp-exit", "sched_process_exit"),
	EVENT("signal-send", "signal_generate", .filter = "arg4 != 3",
	      ARGS(THREAD_WORD(2), { .type = "int", .word = 0 })),
	EVENT("signal-discard", "signal_generate", .filter = "arg4 == 1",
	      ARGS(THREAD_WORD(2), { .type = "int", .word = 0 })),
	EVENT("signal-handle", "signal_deliver",
	      .filter = "(uint64_t)((struct k_sigaction *)arg2)->sa.sa_handler > 1",
	      ARGS({ .type = "int", .word = 0 }, { .type = "struct kernel_siginfo *", .word = 1 },
		   { .type = "void *",
		     .expr = "(void *)((struct k_sigaction *)arg2)->sa.sa_handler" })),
	{ .name = "signal-clear",
	  .kind = ATTACH_SYSCALL_RETURN,
	  .tracepoint = "sys_exit",
	  .number = SYS_rt_sigtimedwait_,
	  .filter = "arg1 > 0",
	  .nargs = 1,
	  .args = { { .type = "int", .expr = "(int)arg1" } } },
	NO_EVENT("fault",
		 "Linux reports a machine fault as the signal it becomes: use proc:::signal-send"),
};

const struct provider provider_proc =
	EVENTS("proc", 20100, 20199, events,
	       "processes and threads created, started and ended; exec; signals sent and handled");
