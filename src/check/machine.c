/* Reports the machine's identity, its limits and its switches. */
#define _GNU_SOURCE
#include "check/machine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>

#include "check/small.h"

static const struct check_column here_columns[] = { { "name", CHECK_COLUMN },
						    { "value", CHECK_COLUMN } };

static void here(struct check_table *t, const char *name, const char *value)
{
	check_row(t, (const char *const[]){ name, value });
}

/* Returns the value of a line "Name:\tvalue" of /proc/self/status. */
static char *status_line(const char *name)
{
	cleanup_free char *text = small_read("/proc/self/status");
	size_t n = strlen(name);

	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, n) && line[n] == ':') {
			const char *v = line + n + 1 + strspn(line + n + 1, " \t");

			return xstrndup(v, strcspn(v, "\n"));
		}
	}
	return NULL;
}

/* Returns the names of the capabilities that tracing needs and this process has. */
static char *capabilities(void)
{
	static const struct {
		int bit;
		const char *name;
	} caps[] = { { 12, "net_admin" }, { 19, "sys_ptrace" }, { 21, "sys_admin" },
		     { 34, "syslog" },    { 38, "perfmon" },    { 39, "bpf" } };
	cleanup_free char *hex = status_line("CapEff");
	uint64_t set = hex ? strtoull(hex, NULL, 16) : 0;
	char *text = xstrdup("");

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
		if (set >> caps[i].bit & 1) {
			char *longer = xasprintf("%s%s%s", text, *text ? " " : "", caps[i].name);

			free(text);
			text = longer;
		}
	if (!*text) {
		free(text);
		text = xstrdup("none of those that tracing needs");
	}
	return text;
}

/* Returns evidence that this is a container: files of container runtimes, or a process 1 of another
 * name space. */
static char *container(void)
{
	cleanup_free char *sort = small_read("/run/systemd/container");
	cleanup_free char *cgroup = small_read("/proc/1/cgroup");
	cleanup_free char *pids = small_link("/proc/self/ns/pid");
	cleanup_free char *users = small_read("/proc/self/uid_map");
	unsigned long from, to, n;

	if (users && sscanf(users, "%lu %lu %lu", &from, &to, &n) == 3 && (from != to || n < 65536))
		return xstrdup("yes, a user name space: its root is an ordinary user outside");
	if (sort)
		return sort[0] ? xasprintf("yes, %s", sort) : xstrdup("yes");
	if (!access("/.dockerenv", F_OK))
		return xstrdup("yes, Docker (/.dockerenv)");
	if (!access("/run/.containerenv", F_OK))
		return xstrdup("yes, Podman (/run/.containerenv)");
	if (cgroup &&
	    (strstr(cgroup, "docker") || strstr(cgroup, "kubepods") || strstr(cgroup, "lxc")))
		return xstrdup("yes (/proc/1/cgroup)");
	/* The first name space of process ids has this number in every kernel
	 * (PROC_PID_INIT_INO). */
	if (pids && strcmp(pids, "pid:[4026531836]") != 0)
		return xstrdup("yes, a name space of process ids: processes outside are not seen");
	return xstrdup("no sign of one");
}

static void setting(struct check_table *t, const char *name, const char *path)
{
	cleanup_free char *v = small_read("%s", path);
	cleanup_free char *chosen = v ? small_chosen(v) : NULL;

	here(t, name, chosen ? chosen : "not there");
}

/* Adds the limits of this process's control group. The root group has none. */
static void limits(struct check_table *t)
{
	cleanup_free char *group = small_read("/proc/self/cgroup"), *cpu = NULL, *memory = NULL,
			  *cpus = NULL;
	const char *path = group && !strncmp(group, "0::", 3) ? group + 3 : "";
	unsigned long long quota, period;
	cpu_set_t may;

	if (!sched_getaffinity(0, sizeof(may), &may)) {
		cpus = xasprintf("%d of %ld", CPU_COUNT(&may), sysconf(_SC_NPROCESSORS_ONLN));
		here(t, "CPUs that may be used", cpus);
	}
	cpu = small_read("/sys/fs/cgroup%s/cpu.max", path);
	if (cpu && sscanf(cpu, "%llu %llu", &quota, &period) == 2 && period) {
		cleanup_free char *share =
			xasprintf("%.2f CPUs (cpu.max)", (double)quota / (double)period);

		here(t, "limit of CPU time", share);
	} else {
		here(t, "limit of CPU time", "none");
	}
	memory = small_read("/sys/fs/cgroup%s/memory.max", path);
	here(t, "limit of memory", memory && strcmp(memory, "max") != 0 ? memory : "none");
}

void machine_here(struct check_table *ret)
{
	cleanup_free char *caps = capabilities(), *box = container();
	cleanup_free char *seccomp = status_line("Seccomp");
	cleanup_free char *user = xasprintf("%u%s", geteuid(), geteuid() ? "" : " (root)");
	struct utsname u;

	check_table_init(ret, "here", "Where this runs", here_columns, ARRAY_SIZE(here_columns));
	if (!uname(&u)) {
		cleanup_free char *kernel = xasprintf("%s %s", u.release, u.machine);

		here(ret, "kernel", kernel);
	}
	here(ret, "user", user);
	here(ret, "capabilities", caps);
	here(ret, "container", box);
	limits(ret);
	here(ret, "seccomp filter", seccomp && strcmp(seccomp, "2") == 0 ? "yes" : "no");
	setting(ret, "kernel lockdown", "/sys/kernel/security/lockdown");
	setting(ret, "kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid");
	setting(ret, "kernel.unprivileged_bpf_disabled",
		"/proc/sys/kernel/unprivileged_bpf_disabled");
	setting(ret, "kernel.kptr_restrict", "/proc/sys/kernel/kptr_restrict");
	setting(ret, "kernel.yama.ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope");
	here(ret, "/sys",
	     access("/sys/devices", F_OK) ? "not mounted: tunables and hardware are not seen"
					  : "mounted");
	here(ret, "types of the kernel (BTF)",
	     access("/sys/kernel/btf/vmlinux", R_OK)
		     ? "not there: /sys/kernel/btf/vmlinux cannot be read"
		     : "/sys/kernel/btf/vmlinux");
	here(ret, "names of tracepoints",
	     access("/sys/kernel/tracing/events", R_OK)
		     ? "/sys/kernel/tracing is not mounted, or not to be read by this user"
		     : "/sys/kernel/tracing");
}

/* --- switches --- */

static void row(struct check_table *t, const char *name, const char *value, const char *what,
		const char *program)
{
	check_row(t, (const char *const[]){ name, value, what, program });
}

static void mitigations(struct check_table *t)
{
	static const char dir[] = "/sys/devices/system/cpu/vulnerabilities";
	char **names;
	unsigned n = small_names(dir, &names), affected = 0;

	for (unsigned i = 0; i < n; i++) {
		cleanup_free char *v = small_read("%s/%s", dir, names[i]);
		cleanup_free char *name = xasprintf("mitigation.%s", names[i]);

		if (v && strcmp(v, "Not affected") != 0) {
			row(t, name, v, NULL, NULL);
			affected++;
		}
	}
	small_names_free(names, n);
	if (n)
		row(t, "mitigations", affected ? "on, where it says so above" : "none needed",
		    "Each makes entering the kernel, or branches in it, more expensive. The boot option mitigations=off turns all off; "
		    "the system call in the table of costs includes their cost here",
		    "descry check --cost");
}

/* Adds HZ. The coarse clock advances once a tick of the kernel, so its resolution is the tick. */
static void tick(struct check_table *t)
{
	cleanup_free char *value = NULL;
	struct timespec ts;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &ts) || !ts.tv_nsec)
		return;
	value = xasprintf("%ld", 1000000000L / ts.tv_nsec);
	row(t, "HZ", value,
	    "Interrupts a second of the kernel's clock on a busy CPU; no time slice is shorter than their distance",
	    "descry -n 'sdt:timer::hrtimer_expire_entry { @[cpu] = count(); } tick-10s { exit(0); }'");
}

static void file_row(struct check_table *t, const char *name, const char *path, const char *empty,
		     const char *what, const char *program)
{
	cleanup_free char *text = small_read("%s", path);
	cleanup_free char *chosen = text ? small_chosen(text) : NULL;

	row(t, name, !chosen ? "not there" : *chosen ? chosen : empty, what, program);
}

/* Queries the kernel's audit state. The answer is a struct audit_status. */
static char *audit_state(void)
{
	cleanup_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
	struct nlmsghdr ask = { .nlmsg_len = sizeof(ask),
				.nlmsg_type = AUDIT_GET,
				.nlmsg_flags = NLM_F_REQUEST };
	struct timeval second = { .tv_sec = 1 };
	struct {
		struct nlmsghdr h;
		union {
			struct audit_status status;
			struct nlmsgerr error;
			char room[512];
		};
	} got;
	ssize_t n;

	if (fd < 0)
		return xstrdup(errno == EPROTONOSUPPORT ? "not built into this kernel"
							: strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	if (send(fd, &ask, sizeof(ask), 0) < 0)
		return xasprintf("not known: %s", strerror(errno));
	n = recv(fd, &got, sizeof(got), 0);
	if (n < (ssize_t)(sizeof(got.h) + sizeof(got.error)))
		return xstrdup("not known: no answer");
	if (got.h.nlmsg_type == NLMSG_ERROR)
		return xasprintf("not known: %s", strerror(-got.error.error));
	return xstrdup(got.status.enabled ? "on" : "off");
}

/* Adds the steal time since boot: time that the hypervisor gave to other machines while a CPU here
 * wanted to run. */
static void steal(struct check_table *t)
{
	cleanup_free char *text = small_read("/proc/stat");
	unsigned long long v[8] = { 0 }, sum = 0;
	cleanup_free char *value = NULL;

	if (!text || sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
			    &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		return;
	for (int i = 0; i < 8; i++)
		sum += v[i];
	value = xasprintf("%.2f%% since the machine began",
			  sum ? 100.0 * (double)v[7] / (double)sum : 0);
	row(t, "steal time", value,
	    "Share of time in which a CPU here wanted to run and the hypervisor ran others; measured times include it",
	    "descry -n 'profile-97 { @[cpu] = count(); } tick-10s { exit(0); }'");
}

void machine_switches(struct check_table *ret)
{
	static const struct check_column columns[] = { { "name", CHECK_COLUMN },
						       { "value", CHECK_COLUMN },
						       { "what", CHECK_BELOW },
						       { "measure", CHECK_BELOW } };
	static const char faults[] =
		"descry -n 'vminfo:::as_fault { @[execname] = count(); } tick-10s { exit(0); }'";
	static const char queue[] =
		"descry -n 'sched:::enqueue { t[args[0]->pr_lwpid] = timestamp; } "
		"sched:::on-cpu /t[curlwpsinfo->pr_lwpid]/ { @[\"ns waited\"] = quantize(timestamp - "
		"t[curlwpsinfo->pr_lwpid]); t[curlwpsinfo->pr_lwpid] = 0; } tick-10s { exit(0); }'";
	cleanup_free char *audit = audit_state();

	check_table_init(ret, "machine", "The machine's switches", columns, ARRAY_SIZE(columns));
	mitigations(ret);
	row(ret, "audit", audit,
	    "When on, every system call takes a longer path; auditctl -e 0 turns it off",
	    "descry check --cost");
	tick(ret);
	file_row(
		ret, "tickless CPUs", "/sys/devices/system/cpu/nohz_full", "none",
		"CPUs without that clock while they run one program (boot option nohz_full=); system calls cost more there",
		queue);
	file_row(ret, "isolated CPUs", "/sys/devices/system/cpu/isolated", "none",
		 "CPUs on which the scheduler places no task by itself (boot option isolcpus=)",
		 queue);
	file_row(ret, "SMT", "/sys/devices/system/cpu/smt/control", "not there",
		 "Two threads a core: more work in all, each of them slower", queue);
	file_row(
		ret, "huge pages", "/sys/kernel/mm/transparent_hugepage/enabled", "not there",
		"Memory in pages of 2 MB: fewer page faults and TLB misses, stalls while they are gathered",
		faults);
	file_row(
		ret, "frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		"not there",
		"The policy for the CPU's frequency; when missing, the hypervisor or the firmware decides",
		queue);
	file_row(ret, "idle governor", "/sys/devices/system/cpu/cpuidle/current_governor",
		 "not there",
		 "The policy for the sleep of idle CPUs: deeper sleep saves power and wakes later",
		 queue);
	file_row(
		ret, "clock", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		"not there",
		"The source of time: tsc and kvm-clock are read without entering the kernel, hpet and acpi_pm are slow",
		"descry check --cost");
	file_row(ret, "NUMA balancing", "/proc/sys/kernel/numa_balancing", "not there",
		 "1: pages move to the node that uses them, which extra page faults find out",
		 faults);
	steal(ret);
}
