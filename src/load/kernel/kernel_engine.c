/* The kernel engine: the operations of struct engine on maps, rings and programs in the kernel. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/epoll.h>

#include "base/io.h"
#include "load/inproc/patch/conflict.h"

static struct kernel_engine *kernel(struct engine *e)
{
	return (struct kernel_engine *)e;
}

void engine_note(struct kernel_engine *k, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	engine_remark(&k->e, xvasprintf(fmt, ap), false);
	va_end(ap);
}

/* Returns the number of CPUs for which the kernel sizes per-CPU values: 4 for "0-3". */
static uint32_t possible_cpus(void)
{
	cleanup_free char *text = NULL;
	struct err *e = io_read_file("/sys/devices/system/cpu/possible", &text, NULL);
	uint32_t last = 0;

	if (err_drop(e))
		return (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	for (char *p = text; *p;) {
		if (*p >= '0' && *p <= '9')
			last = (uint32_t)strtoul(p, &p, 10);
		else
			p++;
	}
	return last + 1;
}

static struct err *watch(struct kernel_engine *k, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return err_errno(errno, "waiting for a ring buffer");
	return NULL;
}

static bool kernel_permitted(void)
{
	struct err *e = feature_check_privilege();
	bool may = !e;

	err_free(e);
	return may;
}

static struct err *kernel_ready(struct engine *en, const struct image *img)
{
	(void)en;
	return inproc_conflict(img);
}

static struct err *kernel_load(struct engine *en, const struct image *img, bool measure)
{
	struct kernel_engine *k = kernel(en);
	struct err *e = feature_check_privilege();

	if (e)
		return e;
	k->e.image = img;
	k->e.ncpus = possible_cpus();
	k->measure = measure;
	if (measure) {
		union bpf_attr a = { .enable_stats = { .type = BPF_STATS_RUN_TIME } };

		k->stats_fd = sys_bpf(BPF_ENABLE_STATS, &a, sizeof(a));
		if (k->stats_fd < 0)
			engine_note(k, "descry cannot measure the time that programs take: %s",
				    strerror(errno));
	}
	k->trampoline = xcalloc(img->nprobes + 1, sizeof(*k->trampoline));
	e = maps_create(k);
	if (!e) {
		k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		if (k->epoll_fd < 0)
			e = err_errno(errno, "epoll");
	}
	if (!e && k->data.cons)
		e = watch(k, k->data.fd);
	if (!e && k->control.cons)
		e = watch(k, k->control.fd);
	if (!e && k->unwind)
		e = watch(k, unwind_tables_wanted(k->unwind));
	e = e ?: progs_load(k);
	return e;
}

static struct err *kernel_attach(struct engine *en)
{
	return attach_all(kernel(en));
}

static void watch_mappings(struct kernel_engine *k, bool targets)
{
	int fd;

	if (unwind_tables_watch_fd(k->unwind, 0) >= 0)
		return;
	unwind_tables_watch(k->unwind, targets);
	for (uint32_t i = 0; (fd = unwind_tables_watch_fd(k->unwind, i)) >= 0; i++)
		err_free(watch(k, fd));
}

static void kernel_add_process(struct engine *en, int pid, bool command)
{
	struct kernel_engine *k = kernel(en);

	if (!k->unwind)
		return;
	watch_mappings(k, pid != 0);
	/* Without tables, such as for a process that has ended, walks use frame pointers. */
	if (pid)
		err_free(unwind_tables_add(k->unwind, pid));
	else
		unwind_tables_add_running(k->unwind);
	if (!pid || command)
		unwind_tables_preload(k->unwind, pid != 0);
}

static void kernel_met(struct engine *en, void (*fn)(void *arg, int pid), void *arg)
{
	if (kernel(en)->unwind)
		unwind_tables_met(kernel(en)->unwind, fn, arg);
}

static struct err *kernel_fire(struct engine *en, uint32_t prog)
{
	struct kernel_engine *k = kernel(en);
	uint64_t ctx[12] = { 0 };

	for (uint32_t i = 0; i < k->instances.n; i++) {
		if (k->instances.v[i].prog != prog)
			continue;
		union bpf_attr a = { .test = { .prog_fd = (uint32_t)k->instances.v[i].fd,
					       .ctx_in = (uintptr_t)ctx,
					       .ctx_size_in = sizeof(ctx) } };

		if (sys_bpf(BPF_PROG_TEST_RUN, &a, sizeof(a)))
			return sys_err(errno, "running a program in this process");
		return NULL;
	}
	return err_new(0, "program %u is not loaded", prog);
}

static void kernel_poll(struct engine *en, int timeout_ms)
{
	struct kernel_engine *k = kernel(en);
	struct epoll_event ev[3];

	epoll_wait(k->epoll_fd, ev, 3, timeout_ms);
}

static int kernel_wait_fd(struct engine *en)
{
	return kernel(en)->epoll_fd;
}

static void kernel_drain(struct engine *en, record_fn *fn, void *arg)
{
	struct kernel_engine *k = kernel(en);

	if (k->unwind) {
		unwind_tables_refresh(k->unwind);
		if (unwind_tables_overflowed(k->unwind))
			engine_note(
				k,
				"unwind tables are full (%llu MB): other files' functions are walked by frame pointer",
				(unsigned long long)unwind_tables_bytes(k->unwind) >> 20);
	}
	/* Drains the control ring first. The data ring then has every data record that is older
	 * than these control records. */
	ring_drain(&k->control, fn, arg, true);
	ring_drain(&k->data, fn, arg, false);
	if (k->unwind)
		unwind_tables_learn(k->unwind);
}

static struct err *kernel_agg_read(struct engine *en, uint32_t agg, agg_fn *fn, void *arg)
{
	return maps_agg_read(kernel(en), agg, fn, arg);
}

static struct err *kernel_agg_delete(struct engine *en, uint32_t agg, const void *key,
				     uint64_t *ret_values)
{
	return maps_agg_delete(kernel(en), agg, key, ret_values);
}

static uint32_t kernel_stack(struct engine *en, int64_t id, uint64_t *frames, uint32_t max)
{
	return maps_stack(kernel(en), id, frames, max);
}

static uint32_t kernel_stack_end(struct engine *en, int64_t id)
{
	return maps_stack_end(kernel(en), id);
}

static void kernel_counters(struct engine *en, struct engine_counters *ret)
{
	struct kernel_engine *k = kernel(en);

	maps_counters(k, ret);
	ret->missed = missed_count(k);
	ret->lost_ticks = ticks_lost(k);
	ret->table_bytes = k->unwind ? unwind_tables_bytes(k->unwind) : 0;
}

static uint32_t kernel_report(struct engine *en, struct engine_prog_report *ret, uint32_t max)
{
	struct kernel_engine *k = kernel(en);
	uint32_t n = 0;

	for (; n < k->instances.n && n < max; n++) {
		const struct instance *in = &k->instances.v[n];
		struct bpf_prog_info info = { 0 };
		union bpf_attr a = { .info = { .bpf_fd = (uint32_t)in->fd,
					       .info_len = sizeof(info),
					       .info = (uintptr_t)&info } };

		ret[n] = (struct engine_prog_report){ .name = k->e.image->progs[in->prog].name,
						      .mode = in->mode,
						      .ninsns = in->ninsns,
						      .prog = in->prog };
		if (k->stats_fd >= 0 && !sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a))) {
			ret[n].runs = info.run_cnt;
			ret[n].run_ns = info.run_time_ns;
		}
	}
	return n;
}

static uint64_t kernel_map_bytes(struct engine *en)
{
	return maps_bytes(kernel(en));
}

static const char *kernel_probe_mode(struct engine *en, uint32_t i)
{
	const struct probe *p = en->image->probes[i].probe;

	if (!p || !kernel(en)->trampoline[i])
		return NULL;
	return attach_kind_name(p->kind == ATTACH_KPROBE ? ATTACH_FENTRY : ATTACH_FEXIT);
}

static bool kernel_stop(struct engine *en, uint32_t i)
{
	struct kernel_engine *k = kernel(en);

	if (i >= k->instances.n || k->instances.v[i].first_link == k->instances.v[i].end_link)
		return false;
	detach_instance(k, &k->instances.v[i]);
	return true;
}

static struct err *kernel_detach(struct engine *en)
{
	detach_all(kernel(en));
	return NULL;
}

static void kernel_free(struct engine *en)
{
	struct kernel_engine *k = kernel(en);

	detach_all(k);
	ticks_free(k);
	progs_close(k);
	if (k->e.image)
		maps_close(k);
	if (k->epoll_fd >= 0)
		close(k->epoll_fd);
	if (k->stats_fd >= 0)
		close(k->stats_fd);
	engine_free_remarks(&k->e);
	free(k->values);
	k->values = NULL;
	k->values_n = 0;
	free(k->counters.fixed);
	free(k->counters.fired);
	free(k->counters.dropped);
	free(k->counters.left_out);
	free(k->trampoline);
	free(k);
}

static const struct engine_ops kernel_ops = {
	.name = "kernel",
	.ready = kernel_ready,
	.load = kernel_load,
	.attach = kernel_attach,
	.add_process = kernel_add_process,
	.met = kernel_met,
	.fire = kernel_fire,
	.poll = kernel_poll,
	.wait_fd = kernel_wait_fd,
	.drain = kernel_drain,
	.agg_read = kernel_agg_read,
	.agg_delete = kernel_agg_delete,
	.stack = kernel_stack,
	.stack_end = kernel_stack_end,
	.counters = kernel_counters,
	.report = kernel_report,
	.map_bytes = kernel_map_bytes,
	.probe_mode = kernel_probe_mode,
	.stop = kernel_stop,
	.detach = kernel_detach,
	.free = kernel_free,
};

static struct engine *kernel_new(const struct engine_setting *setting)
{
	struct kernel_engine *k = xcalloc(1, sizeof(*k));

	k->e.ops = &kernel_ops;
	k->stats_fd = k->epoll_fd = -1;
	k->languages = setting->languages;
	return &k->e;
}

const struct engine_type engine_kernel = {
	.name = "kernel",
	.target = { .task_btf = true,
		    .unwind = true,
		    .maps_max = PROG_MAPS_MAX,
		    .counts_timers = true,
		    .fentry_max = fentry_max,
		    .sleeps = feature_sleeps },
	.new = kernel_new,
	.permitted = kernel_permitted,
	.how = fentry_how,
	.advise = fentry_advise,
};
