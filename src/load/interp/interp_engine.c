/* The interpreting engine: runs programs in this process, at timers and at events of the process
 * connector. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/clock.h"
#include "data/agg.h"
#include "load/interp/interp_private.h"

/* The most instructions of one firing. The kernel has no such limit, but a program that its
 * verifier accepts stays far below. */
static const uint64_t BUDGET = 50 * 1000 * 1000;

static int32_t map_number(void *arg, uint32_t index)
{
	return (int32_t)index;
}

static struct err *engine_load(struct engine *eng, const struct image *img, bool measure)
{
	struct interp_engine *e = (struct interp_engine *)eng;
	const struct link_hooks hooks = { .arg = e, .map = map_number };
	struct err *err;
	int state = image_find_map(img, MAP_STATE);

	eng->image = img;
	eng->ncpus = 1;
	e->measure = measure;
	e->maps = xcalloc(img->nmaps, sizeof(*e->maps));
	e->progs = xcalloc(img->nprogs, sizeof(*e->progs));
	interp_mem_add(&e->mem, e->context, sizeof(e->context), true);
	for (uint32_t i = 0; i < img->nmaps; i++) {
		err = interp_map_init(&e->maps[i], &img->maps[i], i, eng->ncpus, &e->mem);
		if (err)
			return err;
	}
	if (state < 0 || img->maps[state].value_size < sizeof(struct wire_state))
		return err_new(0, "the image has no state map");
	eng->state = (struct wire_state *)e->maps[state].blocks.v[0];

	for (uint32_t i = 0; i < img->nprogs; i++) {
		struct linked *code = &e->progs[i].code;

		err = link_prog(&img->progs[i], &hooks, code);
		err = err ?: ebpf_check(code->insns, code->ninsns, 0);
		if (err)
			return err_wrap(err, "program %s", img->progs[i].name);
	}
	return NULL;
}

/* Returns the place of instruction `insn` in the D source: " at hot.d:3:5", or "". */
static char *source_place(const struct interp_engine *e, uint32_t prog, uint32_t insn)
{
	const struct image *img = e->base.image;
	const struct linked *code = &e->progs[prog].code;
	const char *name;
	uint32_t line, col;

	if (insn < code->nown && img->diags && img->progs[prog].locs &&
	    source_pos(img->diags, img->progs[prog].locs[insn], &name, &line, &col))
		return xasprintf(", at %s:%u:%u", name, line, col);
	return xstrdup("");
}

struct err *interp_run_prog(struct interp_engine *e, uint32_t prog, uint64_t cookie)
{
	const struct image_prog *p = &e->base.image->progs[prog];
	struct interp_prog *ip = &e->progs[prog];
	cleanup_free char *place = NULL;
	struct interp in;
	struct err *err;
	uint64_t r0, start = e->measure ? now_ns() : 0;

	e->cookie = cookie;
	interp_init(&in, &interp_engine_ops, e, ip->code.insns, ip->code.ninsns, &e->mem);
	in.budget = e->budget;
	err = interp_run(&in, 0, (uintptr_t)e->context, &r0);
	ip->runs++;
	if (e->measure)
		ip->run_ns += now_ns() - start;
	if (err) {
		place = source_place(e, prog, in.failed_at);
		err = err_wrap(err, "interpreting program %s%s", p->name, place);
	}
	interp_fini(&in);
	return err;
}

static struct err *engine_fire(struct engine *eng, uint32_t prog)
{
	const struct image_prog *p = &eng->image->progs[prog];

	return interp_run_prog((struct interp_engine *)eng, prog, p->nprobes ? p->probes[0] : 0);
}

/* Runs programs for events that have come, then for timers that are due. */
static void run_due(struct interp_engine *e)
{
	const uint64_t now = now_ns();
	const struct timer *t;
	int n = 0;

	interp_events_run(e);
	/* Older events run first. */
	while (n < TIMERS_AT_ONCE && !e->failed && !e->base.state->exiting &&
	       (t = timers_take(&e->timers, e->events_until && e->events_until < now
						    ? e->events_until
						    : now))) {
		n++;
		e->failed = interp_run_prog(e, t->prog, t->probe);
	}
	if (e->failed) {
		e->base.state->exit_status = 1;
		e->base.state->exiting = 1;
		e->base.state->active = WIRE_OFF;
	}
	if (n)
		err_free(timers_arm(&e->timers)); /* arming was possible before */
}

static bool is_timer(const struct probe *p)
{
	return (p->kind == ATTACH_TICK || p->kind == ATTACH_PROFILE) && !p->perf.hardware &&
	       !p->perf.event;
}

static bool interp_can(const struct probe *p)
{
	enum connector_kind kind;

	return p->kind == ATTACH_SELF || (p->kind == ATTACH_TICK && is_timer(p)) ||
	       interp_listens(p, &kind);
}

static struct err *interp_engine_watch(struct interp_engine *e, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (fd < 0)
		return NULL;
	if (e->epoll_fd < 0)
		e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (e->epoll_fd < 0 || epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return err_errno(errno, "waiting for timers and events");
	return NULL;
}

/* Attaches. When some probes of provider proc can fire, leaves the others out with a remark. */
static struct err *engine_attach(struct engine *eng)
{
	struct interp_engine *e = (struct interp_engine *)eng;
	const struct image *img = eng->image;
	uint64_t now = now_ns();
	VEC(const struct image_probe *) cannot = { 0 };
	const struct image_probe *first = NULL;
	struct err *err;

	for (uint32_t i = 0; i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];

		for (uint32_t j = 0; j < p->nprobes && p->attach != ATTACH_SELF; j++) {
			const struct image_probe *pr = &img->probes[p->probes[j]];
			struct interp_listener l = { .prog = i, .probe = p->probes[j] };

			if (is_timer(pr->probe)) {
				timers_add(&e->timers,
					   &(struct timer){ .prog = i,
							    .probe = p->probes[j],
							    .next = now + pr->probe->period_ns,
							    .period = pr->probe->period_ns });
			} else if (interp_listens(pr->probe, &l.kind)) {
				l.by_child = pr->probe->thread_arg == 2;
				vec_push(&e->listeners, l);
			} else {
				vec_push(&cannot, pr);
				if (!first || strcmp(pr->prov, "proc"))
					first = pr;
			}
		}
	}
	if (first && (!e->listeners.n || strcmp(first->prov, "proc"))) {
		vec_fini(&cannot);
		return err_new(
			ENOTSUP,
			"%s:%s:%s:%s cannot fire in the interpreter: it runs BEGIN, END, ERROR, "
			"tick- and profile- probes, and those of proc that the process connector "
			"reports",
			first->prov, first->mod, first->func, first->name);
	}
	for (uint32_t i = 0; i < cannot.n; i++)
		engine_remark(
			eng,
			xasprintf(
				"%s:%s:%s:%s not enabled: the process connector does not report it; "
				"it reports fork, exec, exit, core dumps, and changes of ids, name, "
				"session and tracer",
				cannot.v[i]->prov, cannot.v[i]->mod, cannot.v[i]->func,
				cannot.v[i]->name),
			false);
	vec_fini(&cannot);
	err = timers_arm(&e->timers);
	err = err ?: interp_events_open(e);
	err = err ?: interp_engine_watch(e, e->timers.fd);
	if (!err && e->connector)
		err = interp_engine_watch(e, connector_fd(e->connector));
	return err;
}

static bool has_records(const struct interp_engine *e)
{
	for (uint32_t i = 0; i < e->base.image->nmaps; i++) {
		if (e->maps[i].ring.n)
			return true;
	}
	return false;
}

static void engine_poll(struct engine *eng, int timeout_ms)
{
	struct interp_engine *e = (struct interp_engine *)eng;
	struct timespec t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	struct pollfd fd = { .fd = e->epoll_fd, .events = POLLIN };

	run_due(e);
	if (has_records(e) || e->base.state->exiting)
		return;
	if (ppoll(&fd, 1, timeout_ms < 0 ? NULL : &t, NULL) > 0)
		run_due(e);
}

static bool engine_behind(struct engine *eng, uint64_t time)
{
	struct interp_engine *e = (struct interp_engine *)eng;

	return !e->failed && e->events_until && e->events_until < time;
}

static int engine_wait_fd(struct engine *eng)
{
	return ((struct interp_engine *)eng)->epoll_fd;
}

static void engine_drain(struct engine *eng, record_fn *fn, void *arg)
{
	struct interp_engine *e = (struct interp_engine *)eng;

	run_due(e);
	for (uint32_t i = 0; i < eng->image->nmaps; i++) {
		struct interp_map *m = &e->maps[i];
		struct ring_record *list = m->ring.v;
		uint32_t n = m->ring.n;

		/* fn may run programs that make further records, which wait for the next call */
		memset(&m->ring, 0, sizeof(m->ring));
		m->ring_used = 0;
		for (uint32_t j = 0; j < n; j++) {
			if (list[j].state == RING_READY)
				fn(arg, (const struct wire_record *)list[j].data, list[j].size,
				   m->def->role == MAP_CONTROL);
			else if (list[j].state == RING_BUSY)
				interp_mem_del(&e->mem, list[j].data);
			free(list[j].data);
		}
		free(list);
	}
}

static struct err *engine_agg_read(struct engine *eng, uint32_t agg, agg_fn *fn, void *arg)
{
	struct interp_engine *e = (struct interp_engine *)eng;
	const struct agg *a = &eng->image->aggs[agg];
	struct interp_map *m = &e->maps[a->map];
	VEC(void *) keys = { 0 };
	uint32_t pos = 0, zero = 0;
	const void *key;
	size_t len;

	for (uint32_t s = 0; s < a->nslots; s++) {
		const uint64_t *words = (const uint64_t *)interp_map_lookup(m, &s);

		if (words[0])
			fn(arg, agg_slot_key(a, s), words, 1);
	}
	if (a->nslots)
		return NULL;
	if (interp_map_is_array(m)) {
		fn(arg, NULL, (const uint64_t *)interp_map_lookup(m, &zero), 1);
		return NULL;
	}
	/* fn may delete keys */
	while (hash_next(&m->keys, &pos, &key, &len, NULL))
		vec_push(&keys, xmemdup(key, len));
	for (uint32_t i = 0; i < keys.n; i++) {
		const uint8_t *value = interp_map_lookup(m, keys.v[i]);

		if (value)
			fn(arg, keys.v[i], (const uint64_t *)value, 1);
		free(keys.v[i]);
	}
	vec_fini(&keys);
	return NULL;
}

static struct err *engine_agg_delete(struct engine *eng, uint32_t agg, const void *key,
				     uint64_t *ret_values)
{
	struct interp_engine *e = (struct interp_engine *)eng;
	const struct agg *a = &eng->image->aggs[agg];
	struct interp_map *m = &e->maps[a->map];
	uint32_t at = a->nslots ? agg_key_slot(a, key) : 0;
	uint8_t *value = interp_map_lookup(m, interp_map_is_array(m) ? (const void *)&at : key);
	size_t size = (size_t)a->nwords * 8;

	if (ret_values && value)
		memcpy(ret_values, value, size);
	else if (ret_values)
		memset(ret_values, 0, size);
	if (interp_map_is_array(m) && value)
		memset(value, 0, size);
	else if (value)
		interp_map_delete(m, key);
	return NULL;
}

static uint32_t engine_stack(struct engine *eng, int64_t id, uint64_t *frames, uint32_t max)
{
	return 0; /* no id exists, because bpf_get_stackid() fails here */
}

static void engine_counters(struct engine *eng, struct engine_counters *ret)
{
	struct interp_engine *e = (struct interp_engine *)eng;
	const struct image *img = eng->image;
	int index = image_find_map(img, MAP_COUNTERS);
	uint32_t nprobes = img->nprobes ? img->nprobes : 1;

	if (!e->fixed) {
		e->fixed = xcalloc(WIRE_FIXED_COUNTERS, sizeof(uint64_t));
		e->fired = xcalloc(nprobes, sizeof(uint64_t));
		e->dropped = xcalloc(nprobes, sizeof(uint64_t));
	}
	for (uint32_t i = 0;
	     index >= 0 && i < WIRE_FIXED_COUNTERS + img->nprobes * WIRE_PROBE_SLOTS; i++) {
		const struct interp_map *m = &e->maps[index];
		uint64_t v = 0, off = (uint64_t)i * 8;
		uint32_t slot = i - WIRE_FIXED_COUNTERS;

		/* Counters are one word in each entry or all words in one entry; the offset is the
		 * same. */
		if (off + 8 <= (uint64_t)m->stride * m->max_entries)
			memcpy(&v, m->blocks.v[0] + off, 8);
		if (i < WIRE_FIXED_COUNTERS)
			e->fixed[i] = v;
		else if (slot % WIRE_PROBE_SLOTS == WIRE_PROBE_FIRED)
			e->fired[slot / WIRE_PROBE_SLOTS] = v;
		else
			e->dropped[slot / WIRE_PROBE_SLOTS] = v;
	}
	*ret = (struct engine_counters){
		.ncpus = 1,
		.fixed = e->fixed,
		.fired = e->fired,
		.dropped = e->dropped,
		.lost_ticks = e->timers.lost,
		.lost_events = e->connector ? connector_lost(e->connector) : e->lost,
	};
}

static bool is_listener(const struct interp_engine *e, uint32_t prog)
{
	const struct image_prog *p = &e->base.image->progs[prog];
	enum connector_kind kind;

	return p->nprobes && p->attach != ATTACH_SELF &&
	       interp_listens(e->base.image->probes[p->probes[0]].probe, &kind);
}

static uint32_t engine_report(struct engine *eng, struct engine_prog_report *ret, uint32_t max)
{
	struct interp_engine *e = (struct interp_engine *)eng;
	uint32_t n = eng->image->nprogs < max ? eng->image->nprogs : max;

	for (uint32_t i = 0; i < n; i++)
		ret[i] = (struct engine_prog_report){
			.name = eng->image->progs[i].name,
			.mode = is_listener(e, i) ? "interpreted, process connector"
						  : "interpreted",
			.runs = e->progs[i].runs,
			.run_ns = e->progs[i].run_ns,
			.ninsns = e->progs[i].code.ninsns,
		};
	return n;
}

static struct err *engine_detach(struct engine *eng)
{
	struct interp_engine *e = (struct interp_engine *)eng;
	struct err *err = e->failed;

	interp_events_close(e);
	timers_stop(&e->timers);
	if (e->epoll_fd >= 0)
		close(e->epoll_fd);
	e->epoll_fd = -1;
	e->failed = NULL;
	return err;
}

static void engine_free(struct engine *eng)
{
	struct interp_engine *e = (struct interp_engine *)eng;

	if (!e)
		return;
	err_free(engine_detach(eng));
	interp_task_free(e, e->self);
	interp_task_free(e, e->idle);
	engine_free_remarks(eng);
	for (uint32_t i = 0; eng->image && i < eng->image->nmaps; i++)
		interp_map_fini(&e->maps[i], &e->mem);
	for (uint32_t i = 0; eng->image && i < eng->image->nprogs; i++)
		linked_free(&e->progs[i].code);
	interp_mem_fini(&e->mem);
	free(e->maps);
	free(e->progs);
	free(e->fixed);
	free(e->fired);
	free(e->dropped);
	free(e);
}

static const struct engine_ops engine_interp_ops = {
	.name = "interp",
	.ready = interp_ready,
	.load = engine_load,
	.attach = engine_attach,
	.fire = engine_fire,
	.poll = engine_poll,
	.behind = engine_behind,
	.wait_fd = engine_wait_fd,
	.drain = engine_drain,
	.agg_read = engine_agg_read,
	.agg_delete = engine_agg_delete,
	.stack = engine_stack,
	.counters = engine_counters,
	.report = engine_report,
	.detach = engine_detach,
	.free = engine_free,
};

static struct engine *interp_new(const struct engine_setting *setting)
{
	struct interp_engine *e = xcalloc(1, sizeof(*e));

	e->base.ops = &engine_interp_ops;
	timers_init(&e->timers);
	e->epoll_fd = -1;
	e->budget = BUDGET;
	e->named = setting->ntargets > 0;
	return &e->base;
}

const struct engine_type engine_interp = {
	.name = "interp",
	.new = interp_new,
	.can = interp_can,
};
