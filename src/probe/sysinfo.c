/* Provider sysinfo: the counters of kstat's "sys", one probe for each counter. arg0 is the amount
 * that is added. */
#include "probe/event.h"

// clang-format off
/* contention_begin(lock, flags): 1 spin, 2 read, 4 write, 32 mutex */
#define BIO "((struct bio *)arg0)"
#define BIO_OP(op) "(" BIO "->bi_opf & 0xff) == " op " && " BIO "->bi_iter.bi_size != 0"
#define NEXT "((struct task_struct *)arg2)"
#define PREV "((struct task_struct *)arg1)"
/* sys_enter(regs, number), sys_exit(regs, result). The numbers are those of read, pread64, readv,
 * preadv and preadv2, and of the same calls for writing. */
#define CALL "((struct pt_regs *)arg0)->orig_ax"
#define READS(n) "(" n " == 0 || " n " == 17 || " n " == 19 || " n " == 295 || " n " == 327)"
#define WRITES(n) "(" n " == 1 || " n " == 18 || " n " == 20 || " n " == 296 || " n " == 328)"
#define READ_NOTE "read(2), pread(2), readv(2) and similar calls; other calls that move data are syscall's"
#define WRITE_NOTE "write(2), pwrite(2), writev(2) and similar calls; other calls that move data are syscall's"
// clang-format on
#define NO_TTY "terminals have no tracepoints"
#define NO_UFS "there is no UFS; see the tracepoints of the file system: sdt:ext4::, sdt:xfs::"
#define UNSEEN "the kernel counts this without a tracepoint"

static const struct event events[] = {
	EVENT("bread", "block_bio_queue", .filter = BIO_OP("0"), COUNTS("1"),
	      .note = "every read of a block device"),
	EVENT("bwrite", "block_bio_queue", .filter = BIO_OP("1"), COUNTS("1"),
	      .note = "every write of a block device"),
	EVENT("cpumigrate", "sched_migrate_task", COUNTS("1")),
	EVENT("idlethread", "sched_switch", .min_params = 3, .filter = NEXT "->pid == 0",
	      COUNTS("1")),
	EVENT("inv_swtch", "sched_switch", .min_params = 4,
	      .filter = "(arg0 != 0 || arg3 == 0) && " PREV "->pid != 0", COUNTS("1"),
	      .note = "a thread that yields counts as preempted"),
	EVENT("inv_swtch", "sched_switch",
	      .filter = "(arg0 != 0 || " PREV "->__state == 0) && " PREV "->pid != 0", COUNTS("1"),
	      .note = "a thread that yields counts as preempted"),
	EVENT("modload", "module_load", COUNTS("1")),
	EVENT("modunload", "module_free", COUNTS("1")),
	EVENT("msg", "sys_enter", .min_params = 2, .filter = "arg1 == 69 || arg1 == 70",
	      COUNTS("1"), .note = "msgsnd(2) and msgrcv(2)"),
	EVENT("mutex_adenters", "contention_begin", .min_params = 2, .filter = "(arg1 & 32) != 0",
	      COUNTS("1"), .note = "mutexes that had to be waited for, also by spinning"),
	EVENT("nthreads", "sched_process_fork", COUNTS("1")),
	EVENT("pswitch", "sched_switch", COUNTS("1")),
	EVENT("readch", "sys_exit", .min_params = 2, .filter = "(int64_t)arg1 > 0 && " READS(CALL),
	      ARGS({ .type = "uint64_t", .word = 1 }), .note = READ_NOTE),
	EVENT("rw_rdfails", "contention_begin", .min_params = 2, .filter = "(arg1 & 2) != 0",
	      COUNTS("1")),
	EVENT("rw_wrfails", "contention_begin", .min_params = 2, .filter = "(arg1 & 4) != 0",
	      COUNTS("1")),
	EVENT("sema", "sys_enter", .min_params = 2, .filter = "arg1 == 65 || arg1 == 220",
	      COUNTS("1"), .note = "semop(2) and semtimedop(2)"),
	EVENT("sysexec", "sys_enter", .min_params = 2, .filter = "arg1 == 59 || arg1 == 322",
	      COUNTS("1"), .note = "calls of execve(2) and execveat(2), failing ones too"),
	EVENT("sysfork", "sched_process_fork", .min_params = 2,
	      .filter = "((struct task_struct *)arg1)->pid == ((struct task_struct *)arg1)->tgid",
	      COUNTS("1"), .note = "new processes, however they are made"),
	EVENT("sysread", "sys_enter", .min_params = 2, .filter = READS("arg1"), COUNTS("1"),
	      .note = READ_NOTE),
	EVENT("sysvfork", "sys_enter", .min_params = 2, .filter = "arg1 == 58", COUNTS("1"),
	      .note = "vfork(2) itself; posix_spawn(3) of libc calls clone(2)"),
	EVENT("syswrite", "sys_enter", .min_params = 2, .filter = WRITES("arg1"), COUNTS("1"),
	      .note = WRITE_NOTE),
	EVENT("trap", "page_fault_user", COUNTS("1"),
	      .note = "page faults of programs only: other exceptions have no tracepoint"),
	EVENT("writech", "sys_exit", .min_params = 2,
	      .filter = "(int64_t)arg1 > 0 && " WRITES(CALL),
	      ARGS({ .type = "uint64_t", .word = 1 }), .note = WRITE_NOTE),
	EVENT("xcalls", "ipi_send_cpu", COUNTS("1"),
	      .note = "to one CPU; those to several at once are sdt:::ipi_send_cpumask"),
	NO_EVENT("bawrite", "Linux does not distinguish asynchronous writes"),
	NO_EVENT("lread", UNSEEN),
	NO_EVENT("lwrite", UNSEEN),
	NO_EVENT("phread", UNSEEN),
	NO_EVENT("phwrite", UNSEEN),
	NO_EVENT("intrblk", "interrupts are not threads in Linux: they do not block",
		 .never = true),
	NO_EVENT("namei", UNSEEN),
	NO_EVENT("procovf", "a fork(2) that fails has no tracepoint: see syscall, errno EAGAIN"),
	NO_EVENT("canch", NO_TTY),
	NO_EVENT("outch", NO_TTY),
	NO_EVENT("rawch", NO_TTY),
	NO_EVENT("rcvint", NO_TTY),
	NO_EVENT("xmtint", NO_TTY),
	NO_EVENT("mdmint", NO_TTY),
	NO_EVENT("cpu_ticks_idle", UNSEEN),
	NO_EVENT("cpu_ticks_kernel", UNSEEN),
	NO_EVENT("cpu_ticks_user", UNSEEN),
	NO_EVENT("cpu_ticks_wait", UNSEEN),
	NO_EVENT("wait_ticks_io", UNSEEN),
	NO_EVENT("ufsblkpage", NO_UFS, .never = true),
	NO_EVENT("ufsdirblk", NO_UFS, .never = true),
	NO_EVENT("ufsiget", NO_UFS, .never = true),
	NO_EVENT("ufsinopage", NO_UFS, .never = true),
	NO_EVENT("ufsipage", NO_UFS, .never = true),
};

const struct provider provider_sysinfo =
	EVENTS("sysinfo", 29900, 29999, events,
	       "system statistics: switches, reads and writes, forks, contention");
