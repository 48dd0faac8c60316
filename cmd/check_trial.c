/* descry check --trials: tries engines, providers, stacks and names by small D programs. */
#define _GNU_SOURCE
#include <regex.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/mem.h"
#include "check.h"

/* The privilege or file that a trial needs, for advice when it fails. */
enum need {
	NEED_BPF,
	NEED_FUNCTIONS,
	NEED_COUNTERS,
	NEED_PTRACE,
	NEED_EVENTS,
	NEED_SYMBOLS,
	NEED_BTF,
	NEED_NOTHING
};

static const struct {
	const char *user,
		*root; /* advice for an ordinary user; root: for root, who has the privilege
		        * already */
} remedies[] = {
	[NEED_BPF] = { "root, or CAP_BPF and CAP_PERFMON (setcap cap_bpf,cap_perfmon,cap_syslog+ep on descry)",
		       "a kernel with CONFIG_BPF_SYSCALL, and CAP_BPF and CAP_PERFMON of the machine itself, which a container must be given" },
	[NEED_FUNCTIONS] = { "root, and a kernel with CONFIG_KPROBES and CONFIG_FPROBE",
			     "a kernel with CONFIG_KPROBES and CONFIG_FPROBE, or one whose policy allows BPF trampolines" },
	[NEED_COUNTERS] = { "a machine, or a hypervisor, that gives hardware counters, and kernel.perf_event_paranoid below 2",
			    "a machine, or a hypervisor, that gives hardware counters" },
	[NEED_PTRACE] = { "ptrace(2) on processes of the same user: kernel.yama.ptrace_scope 0 for those already running, and "
			  "a container that does not forbid the call",
			  "a container that is given CAP_SYS_PTRACE and does not forbid ptrace(2)" },
	[NEED_EVENTS] = { "kernel.perf_event_paranoid of 2 or less",
			  "a container that does not forbid perf_event_open(2)" },
	[NEED_SYMBOLS] = { "CAP_SYSLOG and kernel.kptr_restrict below 2",
			   "kernel.kptr_restrict below 2" },
	[NEED_BTF] = { "a kernel with CONFIG_DEBUG_INFO_BTF, and /sys mounted",
		       "a kernel with CONFIG_DEBUG_INFO_BTF, and /sys mounted" },
	[NEED_NOTHING] = { NULL, NULL },
};

enum trial_subject { ENGINES, PROVIDERS, STACKS, NAMES };

/* A D program that prints something when the feature works. */
struct trial {
	enum trial_subject subject;
	const char *name, *engine, *program;
	enum need need;
	const char *expect; /* its output when the feature works; NULL: any */
	bool live;          /* traces a running process (-p) */
};

#define COUNT(probe) probe " { @ = count(); } END { printa(\"fired %@d times\\n\", @); }"

// clang-format off
static const struct trial trials[] = {
	{ ENGINES, "kernel", "kernel", COUNT("syscall:::entry"), NEED_BPF, NULL, false },
	{ ENGINES, "in-process, a command", "inproc", COUNT("pid$target:libc.so.6:rand_r:entry"), NEED_PTRACE, NULL, false },
	{ ENGINES, "in-process, a running process", "inproc",
	  "syscall::clock_nanosleep:entry { printf(\"attached to process %d\\n\", pid); exit(0); }", NEED_PTRACE, NULL, true },
	{ ENGINES, "interpreter", "interp", "BEGIN { printf(\"ran\\n\"); exit(0); }", NEED_NOTHING, NULL, false },

	{ PROVIDERS, "dtrace", "interp", "BEGIN { printf(\"fired\\n\"); exit(0); }", NEED_NOTHING, NULL, false },
	{ PROVIDERS, "syscall", "kernel", COUNT("syscall:::entry"), NEED_BPF, NULL, false },
	{ PROVIDERS, "syscall, own process", "inproc", COUNT("syscall:::entry"), NEED_PTRACE, NULL, false },
	{ PROVIDERS, "profile", "kernel", COUNT("profile-997"), NEED_BPF, NULL, false },
	{ PROVIDERS, "profile, own process", "inproc", COUNT("profile-997"), NEED_EVENTS, NULL, false },
	{ PROVIDERS, "sdt", "kernel", COUNT("sdt:::sched_switch"), NEED_BPF, NULL, false },
	{ PROVIDERS, "rawtp", "kernel", COUNT("rawtp:::sched_switch"), NEED_BPF, NULL, false },
	{ PROVIDERS, "sched", "kernel", COUNT("sched:::on-cpu"), NEED_BPF, NULL, false },
	{ PROVIDERS, "proc", "kernel", COUNT("proc:::exec-success"), NEED_BPF, NULL, false },
	{ PROVIDERS, "proc, own process", "inproc", COUNT("proc:::create"), NEED_PTRACE, NULL, false },
	{ PROVIDERS, "io", "kernel", COUNT("io:::start"), NEED_BPF, NULL, false },
	{ PROVIDERS, "vminfo", "kernel", COUNT("vminfo:::as_fault"), NEED_BPF, NULL, false },
	{ PROVIDERS, "sysinfo", "kernel", COUNT("sysinfo:::pswitch"), NEED_BPF, NULL, false },
	{ PROVIDERS, "ip", "kernel", COUNT("ip:::send"), NEED_BPF, NULL, false },
	{ PROVIDERS, "tcp", "kernel", COUNT("tcp:::state-change"), NEED_BPF, NULL, false },
	{ PROVIDERS, "udp", "kernel", COUNT("udp:::send"), NEED_BPF, NULL, false },
	{ PROVIDERS, "mib", "kernel", COUNT("mib:::"), NEED_BPF, NULL, false },
	{ PROVIDERS, "lockstat", "kernel", COUNT("lockstat:::"), NEED_BPF, NULL, false },
	{ PROVIDERS, "cpc", "kernel", COUNT("cpc:::cpu_cycles-all-100000"), NEED_COUNTERS, NULL, false },
	{ PROVIDERS, "cpc, software events", "kernel", COUNT("cpc:::page_faults-all-10"), NEED_BPF, NULL, false },
	{ PROVIDERS, "fbt", "kernel", COUNT("fbt::vfs_write:entry"), NEED_FUNCTIONS, NULL, false },
	{ PROVIDERS, "pid", "kernel", COUNT("pid$target:libc.so.6:rand_r:entry"), NEED_BPF, NULL, false },
	{ PROVIDERS, "pid, own process", "inproc", COUNT("pid$target:libc.so.6:rand_r:entry"), NEED_PTRACE, NULL, false },
	{ PROVIDERS, "plt, own process", "inproc", COUNT("plt$target:::entry"), NEED_PTRACE, NULL, false },
	{ PROVIDERS, "plockstat", "kernel", COUNT("plockstat$target:::mutex-block"), NEED_BPF, NULL, false },
	{ PROVIDERS, "plockstat, own process", "inproc", COUNT("plockstat$target:::mutex-acquire"), NEED_PTRACE, NULL, false },
	{ PROVIDERS, "USDT", "kernel", COUNT("descry$target:::check"), NEED_BPF, NULL, false },
	{ PROVIDERS, "USDT, own process", "inproc", COUNT("descry$target:::check"), NEED_PTRACE, NULL, false },

	{ STACKS, "of the kernel", "kernel", "syscall::write:entry { @[stack(8)] = count(); }", NEED_BPF, "[^ \n]+`[^\n]*\n[^\n]*(`|0x)", false },
	{ STACKS, "of programs, by the kernel", "kernel", "pid$target:libc.so.6:rand_r:entry { @[ustack(8)] = count(); }", NEED_BPF,
	  "[^ \n]+`rand_r[^\n]*\n[^\n]*`", false },
	{ STACKS, "of programs, in-process", "inproc", "pid$target:libc.so.6:rand_r:entry { @[ustack(8)] = count(); }", NEED_PTRACE,
	  "[^ \n]+`rand_r[^\n]*\n[^\n]*`", false },

	{ NAMES, "of kernel functions", "kernel", "sched:::off-cpu { @[stack(8)] = count(); }", NEED_SYMBOLS, "[a-z0-9_]+`[a-z_]+[^\n]*", false },
	{ NAMES, "of programs' functions, by the kernel", "kernel", "pid$target:libc.so.6:rand_r:entry { @[ufunc(uregs[R_RIP])] = count(); }",
	  NEED_BPF, "[^ \n]+`rand_r[^\n]*", false },
	{ NAMES, "of programs' functions, in-process", "inproc", "pid$target:libc.so.6:rand_r:entry { @[ufunc(uregs[R_RIP])] = count(); }",
	  NEED_PTRACE, "[^ \n]+`rand_r[^\n]*", false },
	{ NAMES, "of files behind descriptors", "kernel", "syscall::write:entry /pid == $target/ { @[fds[arg0].fi_pathname] = count(); }", NEED_BPF,
	  "[^\n ]+ +[0-9]+", false },
	{ NAMES, "of the kernel's types (BTF)", "interp", "BEGIN { printf(\"struct task_struct has %d bytes\\n\", sizeof(struct task_struct)); exit(0); }",
	  NEED_BTF, NULL, false },
};
// clang-format on

/* Returns the advice for a failed trial. The reason may be a general one, and not the trial's own
 * need. */
static const char *remedy_of(enum need need, const char *reason)
{
	if (strstr(reason, "/sys/kernel/btf/"))
		need = NEED_BTF;
	else if (strstr(reason, "CAP_BPF"))
		need = NEED_BPF;
	return geteuid() ? remedies[need].user : remedies[need].root;
}

static const struct check_column columns[] = { { "name", CHECK_COLUMN },
					       { "answer", CHECK_COLUMN },
					       { "seen", CHECK_COLUMN },
					       { "because", CHECK_BELOW },
					       { "would be enabled by", CHECK_BELOW } };

/* Returns the first match up to the end of its line, without leading spaces; NULL: none. free()
 * it. */
static char *evidence(const char *text, const char *expect)
{
	regmatch_t at = { 0 };
	regex_t re;
	bool found;

	if (expect) {
		if (regcomp(&re, expect, REG_EXTENDED))
			return NULL;
		found = !regexec(&re, text, 1, &at, 0);
		regfree(&re);
		if (!found)
			return NULL;
		text += at.rm_so;
	}
	text += strspn(text, " \t\n");
	return *text ? xstrndup(text, strcspn(text, "\n")) : NULL;
}

/* Starts a process that sleeps a thousand times a second; 0: none. */
static pid_t start_idle(void)
{
	char *const argv[] = { "descry", "check", "--loop", "idle", NULL };
	const struct child c = { .file = "/proc/self/exe", .argv = argv, .at_end = SIGKILL };
	const pid_t pid = child_start(&c);

	return pid > 0 ? pid : 0;
}

static void try(const struct trial *t, struct check_table *table)
{
	cleanup_free char *engine = xasprintf("engine=%s", t->engine);
	cleanup_free char *command = xasprintf("%s check --loop work", check_self());
	cleanup_free char *pid = NULL, *seen = NULL, *reason = NULL;
	bool itself = !strncmp(t->program, "BEGIN", 5);
	pid_t idle = t->live ? start_idle() : 0;
	struct check_run r;

	pid = xasprintf("%d", (int)idle);
	{
		const char *const args[] = { "-q",
					     "-x",
					     engine,
					     "-n",
					     t->program,
					     itself    ? NULL
					     : t->live ? "-p"
						       : "-c",
					     t->live ? pid : command,
					     NULL };

		check_run(args, 20, &r);
	}
	if (idle) {
		kill(idle, SIGKILL);
		waitpid(idle, NULL, 0);
	}
	seen = r.status ? NULL : evidence(r.out, t->expect);
	if (seen) {
		check_row(table, (const char *const[]){ t->name, "yes", seen, NULL, NULL });
	} else if (!r.status && !t->expect) {
		check_row(table,
			  (const char *const[]){ t->name, "attached",
						 "nothing fired it during the trial", NULL, NULL });
	} else {
		reason = r.status ? check_reason(&r)
				  : xasprintf("it ran, but printed no such thing: \"%.*s\"",
					      (int)strcspn(r.out + strspn(r.out, " \n"), "\n"),
					      r.out + strspn(r.out, " \n"));
		check_row(table, (const char *const[]){ t->name, "no", NULL, reason,
							remedy_of(t->need, reason) });
	}
	check_run_fini(&r);
}

void check_trials(struct check_table ret[TRIAL_SUBJECTS])
{
	static const char *const subjects[TRIAL_SUBJECTS][2] = {
		[ENGINES] = { "engines", "Engines" },
		[PROVIDERS] = { "providers", "Providers" },
		[STACKS] = { "stacks", "Stacks" },
		[NAMES] = { "names", "Names" },
	};

	for (int i = 0; i < TRIAL_SUBJECTS; i++)
		check_table_init(&ret[i], subjects[i][0], subjects[i][1], columns,
				 ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(trials); i++)
		try(&trials[i], &ret[trials[i].subject]);
}
