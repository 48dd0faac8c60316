/* Attaches and detaches the programs of the kernel engine: tracepoints and timers; calls the files
 * for uprobes and kernel functions. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/shield.h"

static struct err *attach_raw_tp(struct kernel_engine *k, const struct instance *in,
				 const char *tracepoint, uint64_t cookie)
{
	/* The kernel knows a typed program's tracepoint since the program was loaded. */
	int fd = sys_raw_tp_open(
		in->tracepoint && k->e.image->progs[in->prog].attach == ATTACH_TP_BTF ? NULL
										      : tracepoint,
		in->fd, cookie);

	if (fd < 0 && errno == ENOENT)
		return err_new(ENOENT, "this kernel has no tracepoint %s", tracepoint);
	if (fd < 0)
		return err_wrap(sys_err(errno, "attaching"), "tracepoint %s", tracepoint);
	vec_push(&k->links, fd);
	return NULL;
}

/* --- perf events --- */

/* Reads the online CPUs from a text such as "0-3,5" into ret; only CPU 0 when the file cannot be
 * read. */
static uint32_t online_cpus(uint32_t *ret, uint32_t max)
{
	cleanup_free char *text = NULL;
	struct err *e = io_read_file("/sys/devices/system/cpu/online", &text, NULL);
	uint32_t n = 0;

	if (err_drop(e)) {
		ret[0] = 0;
		return 1;
	}
	for (char *p = text; *p >= '0' && *p <= '9';) {
		uint32_t from = (uint32_t)strtoul(p, &p, 10), to = from;

		if (*p == '-')
			to = (uint32_t)strtoul(p + 1, &p, 10);
		for (; from <= to && n < max; from++)
			ret[n++] = from;
		if (*p == ',')
			p++;
	}
	return n;
}

/* Attaches the program to event ev. The link keeps the event, and closing the link detaches the
 * program. On a kernel without such links the event keeps the program. Closes ev when nothing keeps
 * it. what: for messages. */
static struct err *attach_to_event(struct kernel_engine *k, const struct instance *in, int ev,
				   uint64_t cookie, const char *what)
{
	int error;

	if (feature(FEATURE_PERF_LINK)) {
		int link = sys_link_perf(in->fd, ev, cookie);

		error = errno;
		close(ev);
		if (link < 0)
			return sys_err(error, what);
		vec_push(&k->links, link);
		return NULL;
	}
	if (ioctl(ev, PERF_EVENT_IOC_SET_BPF, in->fd)) {
		error = errno;
		close(ev);
		return sys_err(error, what);
	}
	vec_push(&k->links, ev);
	return NULL;
}

/* --- events with their text form --- */

/* Opens the event on one CPU; the program runs on all CPUs. */
static struct err *attach_tracepoint(struct kernel_engine *k, const struct instance *in,
				     const struct probe *p, uint64_t cookie)
{
	struct perf_event_attr a = { .type = PERF_TYPE_TRACEPOINT,
				     .size = sizeof(a),
				     .config = (uint32_t)p->number };
	int ev = (int)syscall(SYS_perf_event_open, &a, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (ev < 0)
		return err_wrap(sys_err(errno, "opening an event"), "tracepoint %s", p->object);
	return attach_to_event(k, in, ev, cookie, "attaching to an event");
}

/* --- timers --- */

struct err *timer_open(const struct probe *p, uint64_t period, uint32_t cpu, bool on, int *ret_fd)
{
	/* Sets a period and not a frequency. A clock event turns one into the other, but only a
	 * frequency has an upper limit. */
	struct perf_event_attr a = {
		.type = p->perf.hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = p->perf.event, /* 0: PERF_COUNT_SW_CPU_CLOCK */
		.sample_period = period,
		.disabled = !on,
		.exclude_user = p->perf.no_user,
		.exclude_kernel = p->perf.no_kernel,
	};
	int ev = (int)syscall(SYS_perf_event_open, &a, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (ev < 0 && errno != ENODEV)
		return err_wrap(sys_err(errno, "opening a timer"), "CPU %u", cpu);
	*ret_fd = ev;
	return NULL;
}

struct err *timer_attach(struct kernel_engine *k, const struct instance *in, int event,
			 uint64_t cookie)
{
	return attach_to_event(k, in, event, cookie, "attaching to a timer");
}

static struct err *attach_timer_on(struct kernel_engine *k, const struct instance *in,
				   const struct probe *p, uint32_t cpu, uint64_t cookie)
{
	struct err *e;
	int ev;

	if (k->e.image->progs[in->prog].tick)
		return ticks_add(k, in, p, cpu, cookie);
	e = timer_open(p, p->period_ns, cpu, true, &ev);
	return e || ev < 0 ? e : timer_attach(k, in, ev, cookie);
}

static struct err *attach_timer(struct kernel_engine *k, const struct instance *in, uint32_t probe)
{
	const struct probe *p = k->e.image->probes[probe].probe;
	int64_t only = k->e.image->options ? opt_num(k->e.image->options, OPT_CPU) : -1;
	cleanup_free uint32_t *cpus = xcalloc(k->e.ncpus + 1, sizeof(*cpus));
	uint32_t n = online_cpus(cpus, k->e.ncpus);
	struct err *e = NULL;

	if (only >= 0) {
		cpus[0] = (uint32_t)only;
		n = 1;
	} else if (p->kind == ATTACH_TICK) {
		n = 1;
	}
	for (uint32_t i = 0; i < n && !e; i++)
		e = attach_timer_on(k, in, p, cpus[i], probe);
	return e;
}

/* --- all kinds --- */

static bool serves(const struct instance *in, const struct probe *p, uint32_t index)
{
	if (in->probe != UINT32_MAX)
		return in->probe == index;
	return !in->tracepoint || !strcmp(in->tracepoint, p->object);
}

static struct err *attach_instance(struct kernel_engine *k, struct instance *in)
{
	const struct image *img = k->e.image;
	const struct image_prog *p = &img->progs[in->prog];
	struct err *e = NULL;

	if (!p->nprobes && p->tracepoint)
		return attach_raw_tp(k, in, p->tracepoint, 0);
	switch (p->attach) {
	case ATTACH_SELF: return NULL;
	case ATTACH_SYSCALL_ENTRY: return attach_raw_tp(k, in, "sys_enter", 0);
	case ATTACH_SYSCALL_RETURN: return attach_raw_tp(k, in, "sys_exit", 0);
	case ATTACH_UPROBE:
	case ATTACH_URETPROBE: return attach_uprobes(k, in);
	case ATTACH_KPROBE:
	case ATTACH_KRETPROBE: return attach_kprobes(k, in);
	case ATTACH_FENTRY:
	case ATTACH_FEXIT: fentry_attach(k, in); return NULL;
	default: break;
	}
	for (uint32_t i = 0; i < p->nprobes && !e; i++) {
		uint32_t index = p->probes[i];
		const struct image_probe *ip = &img->probes[index];

		if (!serves(in, ip->probe, index))
			continue;
		if (p->attach == ATTACH_PROFILE || p->attach == ATTACH_TICK)
			e = attach_timer(k, in, index);
		else if (p->attach == ATTACH_TRACEPOINT)
			e = attach_tracepoint(k, in, ip->probe, index);
		else
			e = attach_raw_tp(k, in, ip->probe->object,
					  p->uses_cookie && in->probe == UINT32_MAX ? index : 0);
		if (e)
			e = err_wrap(e, "%s:%s:%s:%s", ip->prov, ip->mod, ip->func, ip->name);
	}
	return e;
}

/* The order of attaching. Helper programs of the run come first, because a probe that fires needs
 * their data. Then trampolines, then kprobes for the remaining functions. */
enum turn { TURN_HELPERS, TURN_TRAMPOLINES, TURN_OTHERS };

static enum turn turn_of(const struct image_prog *p)
{
	return !p->nprobes                ? TURN_HELPERS
	       : is_trampoline(p->attach) ? TURN_TRAMPOLINES
					  : TURN_OTHERS;
}

static struct err *attach_turn(struct kernel_engine *k, enum turn turn)
{
	struct err *e = NULL;

	for (uint32_t i = 0; i < k->instances.n && !e; i++) {
		struct instance *in = &k->instances.v[i];

		if (turn_of(&k->e.image->progs[in->prog]) != turn)
			continue;
		in->first_link = k->links.n;
		e = attach_instance(k, in);
		in->end_link = k->links.n;
	}
	return e;
}

struct err *attach_all(struct kernel_engine *k)
{
	struct err *e = attach_turn(k, TURN_HELPERS);

	e = e ?: attach_turn(k, TURN_TRAMPOLINES);
	for (uint32_t i = 0; i < k->e.image->nprogs && !e; i++)
		if (k->e.image->progs[i].fentry)
			e = kprobes_load(k, i);
	if (!e)
		e = attach_turn(k, TURN_OTHERS);
	return e ? e : ticks_watch(k);
}

/* --- detaching --- */

enum { CLOSERS_MAX = 16 };

struct closer {
	pthread_t thread;
	bool started;
	const int *fds;
	uint32_t n;
};

static void *close_some(void *arg)
{
	struct closer *c = arg;

	shield_close(c->fds, c->n);
	return NULL;
}

/* Detaches everything in several threads. Closing a link of perf events or uprobes waits for a
 * grace period, and links that close at the same time share it. */
void detach_all(struct kernel_engine *k)
{
	struct closer c[CLOSERS_MAX] = { 0 };
	uint32_t n = k->links.n < CLOSERS_MAX ? k->links.n : CLOSERS_MAX, done = 0;

	ticks_stop(k);
	for (uint32_t i = 0; n && i < k->instances.n; i++)
		missed_keep(k, &k->instances.v[i]);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t share = (k->links.n - done) / (n - i);

		c[i].fds = k->links.v + done;
		c[i].n = share;
		done += share;
		/* This thread closes the last share. */
		c[i].started = i + 1 < n && !pthread_create(&c[i].thread, NULL, close_some, &c[i]);
		if (!c[i].started)
			close_some(&c[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		if (c[i].started)
			pthread_join(c[i].thread, NULL);
	vec_fini(&k->links);
}

void detach_instance(struct kernel_engine *k, struct instance *in)
{
	missed_keep(k, in);
	shield_close(k->links.v + in->first_link, in->end_link - in->first_link);
	for (uint32_t i = in->first_link; i < in->end_link; i++)
		k->links.v[i] = -1;
}
