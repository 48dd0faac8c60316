/* Finds, reads and writes the tunable settings of this machine. */
#define _GNU_SOURCE
#include "check/tunable.h"

#include <ctype.h>
#include <errno.h>
#include <sys/resource.h>

#include "base/nearest.h"
#include "base/number.h"
#include "check/ethtool.h"
#include "check/small.h"

/* D programs that measure the effect of several knobs. */
#define DISK_TIMES \
	"descry -n 'io:::start { t[arg0] = timestamp; } io:::done /t[arg0]/ " \
	"{ @[args[1]->dev_statname] = quantize(timestamp - t[arg0]); t[arg0] = 0; } tick-10s { exit(0); }'"
#define WRITE_STALLS \
	"descry -n 'syscall::write:entry { self->t = timestamp; } syscall::write:return /self->t/ " \
	"{ @[execname] = quantize(timestamp - self->t); self->t = 0; } tick-10s { exit(0); }'"
#define RECEIVE_TIMES \
	"descry -n 'sdt:napi::napi_poll { @[\"packets per poll\"] = quantize(arg1); } tick-10s { exit(0); }'"
#define CPU_OF_RECEIVE \
	"descry -n 'sdt:irq::softirq_entry /arg0 == 3/ { @[cpu] = count(); } tick-10s { exit(0); }'"
#define ACCEPT_TIMES \
	"descry -n 'tcp:::accept-established { @[args[4]->tcp_dport] = count(); } tick-10s { exit(0); }'"
#define TCP_SEND_SIZES \
	"descry -n 'tcp:::send { @[args[2]->ip_daddr] = quantize(args[2]->ip_plength); } tick-10s { exit(0); }'"
#define FAULT_TIMES "descry -n 'vminfo:::as_fault { @[execname] = count(); } tick-10s { exit(0); }'"
#define SWITCHES "descry -n 'sched:::on-cpu { @[execname] = count(); } tick-10s { exit(0); }'"
#define RUN_QUEUE \
	"descry -n 'sched:::enqueue { t[args[0]->pr_lwpid] = timestamp; } sched:::on-cpu /t[curlwpsinfo->pr_lwpid]/ " \
	"{ @[\"ns waited\"] = quantize(timestamp - t[curlwpsinfo->pr_lwpid]); t[curlwpsinfo->pr_lwpid] = 0; } " \
	"tick-10s { exit(0); }'"
#define OPEN_ERRORS \
	"descry -n 'syscall:::return /errno == 24 || errno == 23/ { @[execname, probefunc] = count(); } tick-10s { exit(0); }'"

/* A knob in a file. A '*' in its path and name stands for any of several devices. */
static const struct knob {
	const char *name, *path, *what, *program;
} knobs[] = {
	{ "net.core.somaxconn", "/proc/sys/net/core/somaxconn",
	  "Connections that may wait for accept(2), per listening socket; more are refused",
	  ACCEPT_TIMES },
	{ "net.ipv4.tcp_max_syn_backlog", "/proc/sys/net/ipv4/tcp_max_syn_backlog",
	  "Half-open connections remembered, per listening socket", ACCEPT_TIMES },
	{ "net.core.dev_weight", "/proc/sys/net/core/dev_weight",
	  "NAPI weight: packets a CPU takes from one backlog queue before the next one's turn",
	  RECEIVE_TIMES },
	{ "net.core.netdev_budget", "/proc/sys/net/core/netdev_budget",
	  "Packets received in one round of the receive softirq", RECEIVE_TIMES },
	{ "net.core.netdev_max_backlog", "/proc/sys/net/core/netdev_max_backlog",
	  "Packets that may wait for a CPU's receive softirq (RPS, loopback); more are dropped",
	  CPU_OF_RECEIVE },
	{ "net.core.rps_sock_flow_entries", "/proc/sys/net/core/rps_sock_flow_entries",
	  "RFS: flows whose reader's CPU is remembered; 0 is off", CPU_OF_RECEIVE },
	{ "net.core.busy_poll", "/proc/sys/net/core/busy_poll",
	  "Microseconds poll(2) spins for packets before it sleeps: earlier answers, busy CPUs",
	  RECEIVE_TIMES },
	{ "net.core.rmem_max", "/proc/sys/net/core/rmem_max",
	  "Largest receive buffer a program may ask for, bytes", TCP_SEND_SIZES },
	{ "net.core.wmem_max", "/proc/sys/net/core/wmem_max",
	  "Largest send buffer a program may ask for, bytes", TCP_SEND_SIZES },
	{ "net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem",
	  "Receive buffer of a TCP socket, bytes: least, first, most", TCP_SEND_SIZES },
	{ "net.ipv4.tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem",
	  "Send buffer of a TCP socket, bytes: least, first, most", TCP_SEND_SIZES },
	{ "net.ipv4.tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control",
	  "The algorithm by which TCP adapts its speed", TCP_SEND_SIZES },
	{ "net.ipv4.tcp_slow_start_after_idle", "/proc/sys/net/ipv4/tcp_slow_start_after_idle",
	  "1: a connection that was idle starts slowly again", TCP_SEND_SIZES },
	{ "net.core.default_qdisc", "/proc/sys/net/core/default_qdisc",
	  "Queue discipline of interfaces that come up from now on", TCP_SEND_SIZES },
	{ "net.*.tx_queue_len", "/sys/class/net/*/tx_queue_len", "Packets that may wait to be sent",
	  TCP_SEND_SIZES },
	{ "net.*.gro_flush_timeout", "/sys/class/net/*/gro_flush_timeout",
	  "Nanoseconds that GRO may hold packets back to join them", RECEIVE_TIMES },
	{ "net.*.napi_defer_hard_irqs", "/sys/class/net/*/napi_defer_hard_irqs",
	  "Polls without packets before interrupts are allowed again", RECEIVE_TIMES },
	{ "net.*.*.rps_cpus", "/sys/class/net/*/queues/*/rps_cpus",
	  "RPS: mask of the CPUs that a receive queue's packets are spread over; 0 is off",
	  CPU_OF_RECEIVE },
	{ "net.*.*.rps_flow_cnt", "/sys/class/net/*/queues/*/rps_flow_cnt",
	  "RFS: flows remembered for this queue", CPU_OF_RECEIVE },
	{ "net.*.*.xps_cpus", "/sys/class/net/*/queues/*/xps_cpus",
	  "XPS: mask of the CPUs that send through this queue", CPU_OF_RECEIVE },
	{ "irq.*.affinity", "/proc/irq/*/smp_affinity_list", "CPUs that take this interrupt",
	  "descry -n 'sdt:irq::irq_handler_entry { @[cpu, arg0] = count(); } tick-10s { exit(0); }'" },
	{ "block.*.scheduler", "/sys/block/*/queue/scheduler",
	  "Order in which requests go to the disk", DISK_TIMES },
	{ "block.*.read_ahead_kb", "/sys/block/*/queue/read_ahead_kb",
	  "Read ahead of a program that reads in order, kB", DISK_TIMES },
	{ "block.*.nr_requests", "/sys/block/*/queue/nr_requests",
	  "Requests that may wait in a queue of the disk", DISK_TIMES },
	{ "block.*.wbt_lat_usec", "/sys/block/*/queue/wbt_lat_usec",
	  "Writeback is held back when reads take longer than so many microseconds; 0 is off",
	  DISK_TIMES },
	{ "block.*.rq_affinity", "/sys/block/*/queue/rq_affinity",
	  "Where a request's end is handled: 0 anywhere, 1 near the CPU that asked, 2 on it",
	  DISK_TIMES },
	{ "vm.dirty_ratio", "/proc/sys/vm/dirty_ratio",
	  "Percent of memory that may be dirty before a writer has to wait", WRITE_STALLS },
	{ "vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio",
	  "Percent of memory that may be dirty before the kernel begins to write", WRITE_STALLS },
	{ "vm.dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs",
	  "Age at which dirty pages are written, hundredths of a second", WRITE_STALLS },
	{ "vm.dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs",
	  "Time between looks for old dirty pages, hundredths of a second", WRITE_STALLS },
	{ "vm.swappiness", "/proc/sys/vm/swappiness",
	  "How readily programs' pages are swapped out rather than files' pages dropped",
	  "descry -n 'sdt:vmscan::mm_vmscan_direct_reclaim_begin { @[execname] = count(); } tick-10s { exit(0); }'" },
	{ "vm.min_free_kbytes", "/proc/sys/vm/min_free_kbytes",
	  "Memory kept free, kB: fewer stalls in allocations, less memory for use", FAULT_TIMES },
	{ "vm.max_map_count", "/proc/sys/vm/max_map_count", "Mappings that a process may have",
	  FAULT_TIMES },
	{ "vm.transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled",
	  "Memory in pages of 2 MB: fewer page faults and TLB misses, more memory used, stalls while pages are gathered",
	  FAULT_TIMES },
	{ "vm.transparent_hugepage_defrag", "/sys/kernel/mm/transparent_hugepage/defrag",
	  "When a page fault waits until 2 MB are gathered", FAULT_TIMES },
	{ "kernel.numa_balancing", "/proc/sys/kernel/numa_balancing",
	  "1: pages move to the memory node of the CPU that uses them, found by extra page faults",
	  FAULT_TIMES },
	{ "kernel.sched_autogroup_enabled", "/proc/sys/kernel/sched_autogroup_enabled",
	  "1: CPU time is shared among terminals and sessions first, then among their programs",
	  RUN_QUEUE },
	{ "cpu.*.governor", "/sys/devices/system/cpu/*/cpufreq/scaling_governor",
	  "The policy for the CPU's frequency: performance chooses the highest, powersave the lowest",
	  RUN_QUEUE },
	{ "fs.file-max", "/proc/sys/fs/file-max", "Files open in the whole machine", OPEN_ERRORS },
	{ "fs.nr_open", "/proc/sys/fs/nr_open",
	  "Highest limit of open files (nofile) that a process may be given", OPEN_ERRORS },
	{ "fs.inotify.max_user_watches", "/proc/sys/fs/inotify/max_user_watches",
	  "Files that a user's programs may watch",
	  "descry -n 'syscall::inotify_add_watch:return /errno/ { @[execname, errno] = count(); } tick-10s { exit(0); }'" },
	{ "kernel.pid_max", "/proc/sys/kernel/pid_max", "Highest process id",
	  "descry -n 'proc:::create { @[execname] = count(); } tick-10s { exit(0); }'" },
	{ "kernel.threads-max", "/proc/sys/kernel/threads-max", "Threads in the whole machine",
	  "descry -n 'proc:::lwp-create { @[execname] = count(); } tick-10s { exit(0); }'" },
};

/* Returns the value of the chosen word in a file with several, such as a disk's scheduler. */
struct err *tunable_read(const struct tunable *t, char **ret)
{
	cleanup_free char *text = NULL;
	uint32_t v;
	struct err *e;

	*ret = NULL;
	if (t->interface) {
		e = ethtool_get(t->interface, (enum ethtool_knob)t->command, &v);
		if (!e)
			*ret = xasprintf("%u", v);
		return e;
	}
	if (!t->path)
		return err_new(EINVAL, "%s has no file", t->name);
	text = small_read("%s", t->path);
	if (!text)
		return err_errno(errno, "%s: read", t->path);
	*ret = small_chosen(text);
	for (char *p = *ret; *p; p++)
		if (*p == '\t' || *p == '\n')
			*p = ' ';
	return NULL;
}

static void tunable_add(struct tunables *t, const struct knob *k, char *name, char *path)
{
	struct tunable v = { .name = name, .path = path, .what = k->what, .program = k->program };
	struct err *e = tunable_read(&v, &v.value);

	if (e && e->code != EACCES && e->code != EPERM) {
		/* The file exists but cannot be read, because the device lacks this knob. */
		free(name);
		free(path);
	} else {
		vec_push(&t->v, v);
	}
	err_free(e);
}

/* Returns text with the first star replaced. */
static char *with_star(const char *text, const char *star, const char *by)
{
	return xasprintf("%.*s%s%s", (int)(star - text), text, by, star + 1);
}

/* Adds a knob for every file that path's stars match. Replaces name's stars by the same words.
 * Frees or keeps name and path. */
static void expand(struct tunables *t, const struct knob *k, char *name, char *path)
{
	char *star = strchr(path, '*'), *in_name = strchr(name, '*');
	cleanup_free char *dir = NULL;
	char **names;
	unsigned n;

	if (!star || !in_name) {
		if (!access(path, F_OK)) {
			tunable_add(t, k, name, path);
			return;
		}
	} else {
		dir = xstrndup(path, (size_t)(star - path));
		n = small_names(dir, &names);
		for (unsigned i = 0; i < n; i++)
			expand(t, k, with_star(name, in_name, names[i]),
			       with_star(path, star, names[i]));
		small_names_free(names, n);
	}
	free(name);
	free(path);
}

static void add_ethtool(struct tunables *t)
{
	char **names;
	unsigned n = small_names("/sys/class/net", &names);

	for (unsigned i = 0; i < n; i++)
		for (enum ethtool_knob k = 0; k < ETHTOOL_KNOB_COUNT; k++) {
			uint32_t v;
			struct err *e = ethtool_get(names[i], k, &v);

			if (!e)
				vec_push(&t->v,
					 (struct tunable){ .name = xasprintf("net.%s.%s", names[i],
									     ethtool_docs[k].name),
							   .interface = xstrdup(names[i]),
							   .command = k,
							   .value = xasprintf("%u", v),
							   .what = ethtool_docs[k].what,
							   .program = ethtool_docs[k].program });
			err_free(e);
		}
	small_names_free(names, n);
}

/* Adds the limit of open files. It comes from the parent process, so it cannot be set from here. */
static void add_nofile(struct tunables *t)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	vec_push(
		&t->v,
		(struct tunable){
			.name = xstrdup("limit.nofile"),
			.value = xasprintf("%llu (at most %llu)", (unsigned long long)l.rlim_cur,
					   (unsigned long long)l.rlim_max),
			.what = "Files that a process started here may have open; set by ulimit -n, "
				"/etc/security/limits.conf or LimitNOFILE= of a systemd unit",
			.program = OPEN_ERRORS,
			.fixed = true });
}

void tunables_find(struct tunables *t)
{
	*t = (struct tunables){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		expand(t, &knobs[i], xstrdup(knobs[i].name), xstrdup(knobs[i].path));
	add_ethtool(t);
	add_nofile(t);
}

void tunables_fini(struct tunables *t)
{
	for (uint32_t i = 0; i < t->v.n; i++) {
		free(t->v.v[i].name);
		free(t->v.v[i].path);
		free(t->v.v[i].value);
		free(t->v.v[i].interface);
	}
	vec_fini(&t->v);
}

struct err *tunables_get(const struct tunables *t, const char *name, struct tunable **ret)
{
	struct nearest near = { .word = name };

	for (uint32_t i = 0; i < t->v.n; i++) {
		if (!strcmp(t->v.v[i].name, name)) {
			*ret = &t->v.v[i];
			return NULL;
		}
		nearest_offer(&near, t->v.v[i].name);
	}
	if (near.name)
		return err_new(0, "this machine has no knob named %s; did you mean %s?", name,
			       near.name);
	return err_new(
		0, "this machine has no knob named %s; descry check --tunables lists those it has",
		name);
}

/* Returns the value in a form to compare: one space between words, and a mask of CPUs,
 * "00000000,00000003", without leading zeros. The caller frees it. */
static char *canonical(const char *text)
{
	char *ret = xmalloc(strlen(text) + 1), *to = ret;

	while (*(text += strspn(text, " \t\n"))) {
		size_t n;

		while (!strncmp(text, "00000000,", 9))
			text += 9;
		while (*text == '0' && isxdigit((unsigned char)text[1]))
			text++;
		n = strcspn(text, " \t\n");
		if (to > ret)
			*to++ = ' ';
		memcpy(to, text, n);
		to += n;
		text += n;
	}
	*to = '\0';
	return ret;
}

bool tunable_same(const char *a, const char *b)
{
	cleanup_free char *x = canonical(a), *y = canonical(b);

	return !strcmp(x, y);
}

static struct err *set(const struct tunable *t, const char *value)
{
	int64_t v;

	if (!t->interface)
		return small_write(t->path, value);
	if (!number_parse(value, 0, UINT32_MAX, &v))
		return err_new(EINVAL, "%s wants a whole number, not %s", t->name, value);
	return ethtool_set(t->interface, (enum ethtool_knob)t->command, (uint32_t)v);
}

struct err *tunable_write(const struct tunable *t, const char *value)
{
	cleanup_free char *before = NULL, *now = NULL;
	struct err *e;

	if (t->fixed)
		return err_new(0, "%s cannot be set from here. %s", t->name, t->what);
	e = tunable_read(t, &before);
	e = e ?: set(t, value);
	e = e ?: tunable_read(t, &now);
	if (e || tunable_same(now, value))
		return e;
	e = set(t, before);
	return e ? err_wrap(e, "%s: the kernel made %s of %s, and putting %s back failed", t->name,
			    now, value, before)
		 : err_new(EINVAL, "%s: the kernel made %s of %s; it is %s again", t->name, now,
			   value, before);
}

void tunables_table(const struct tunables *t, struct check_table *ret)
{
	static const struct check_column columns[] = { { "name", CHECK_COLUMN },
						       { "value", CHECK_COLUMN },
						       { "what", CHECK_BELOW },
						       { "measure", CHECK_BELOW } };

	check_table_init(ret, "tunables", "What can be tuned", columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < t->v.n; i++) {
		const struct tunable *v = &t->v.v[i];

		check_row(ret, (const char *const[]){ v->name, v->value, v->what, v->program });
	}
	if (!t->v.n)
		check_note(ret, "neither /proc/sys nor /sys can be read here");
}
