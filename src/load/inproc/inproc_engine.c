/* The in-process engine: load, attach, drain, detach. */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "load/inproc/attach/inproc_attach.h"
#include "load/inproc/attach/watchdog.h"
#include "load/inproc/events/proc_events.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/memory/inproc_shared.h"
#include "load/inproc/patch/bell.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/patch/islands.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/prog_run.h"

enum {
	NAP_MIN_MS = 1,
	NAP_MAX_MS = 20,
	NAP_QUIET_MS = 4,   /* a short nap, because threads wait for the tracer's lists */
	RANGES_SHARE = 50,  /* reading a process's mappings takes one part of this of the time */
	SWEEP_MS = 10000,   /* for children that begin while their parents are restored */
	STORE_MAX = 1 << 28 /* bytes */
};

static struct inproc_engine *inproc(struct engine *e)
{
	return (struct inproc_engine *)e;
}

static bool is_kernel_stack(const struct field *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (f[i].kind == FIELD_KSTACK || f[i].kind == FIELD_KSTACKID)
			return true;
	return false;
}

/* Returns an error when the image needs data that only the kernel has: its symbols, its stacks, its
 * task_structs, its thread switches. */
static struct err *check_all(const struct image *img)
{
	enum { CURRENT_TASK = 35 };
	bool stacks = false;

	for (uint32_t i = 0; i < img->nsegments; i++)
		stacks |= is_kernel_stack(img->segments[i].fields, img->segments[i].nfields);
	for (uint32_t i = 0; i < img->naggs; i++)
		stacks |= is_kernel_stack(img->aggs[i].keys, img->aggs[i].nkeys);
	if (stacks)
		return err_new(ENOTSUP, "kernel stacks");
	for (uint32_t i = 0; i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];

		if (!p->nprobes && !events_is_errno(p))
			return err_new(ENOTSUP, "program %s", p->name);
		for (uint32_t k = 0; k < p->ninsns; k++)
			if (p->insns[k].code == (BPF_JMP | BPF_CALL) && !p->insns[k].src_reg &&
			    p->insns[k].imm == CURRENT_TASK && p->attach != ATTACH_SELF)
				return err_new(ENOTSUP, "the kernel's task_struct");
	}
	return NULL;
}

/* Returns true when a process may yet load the file that the probe lies in. */
static bool is_waited_for(const struct inproc_engine *e, uint32_t probe)
{
	bool waiting = false;

	for (uint32_t i = 0; i < e->processes.n; i++)
		waiting |= e->processes.v[i].waiting && e->processes.v[i].waiting[probe];
	return waiting;
}

/* Leaves out the probes matched by a pattern that cannot be placed, with a note. The kernel engine
 * does the same with probes that the kernel refuses. */
static struct err *check_left_out(const struct inproc_engine *e)
{
	uint32_t there = 0, allowed;

	for (uint32_t i = 0; i < e->base.image->nprobes; i++)
		there += !is_waited_for(e, i);
	allowed = e->named.scope == ENGINE_EVERY_ONE ? 0 : there / 20;
	return e->placement.nrefused > allowed
		       ? err_new(ENOTSUP, "%u probes", e->placement.nrefused)
		       : NULL;
}

static struct err *inproc_load(struct engine *en, const struct image *img, bool measure)
{
	struct inproc_engine *e = inproc(en);
	struct err *err;

	en->image = img;
	en->ncpus = 1;
	e->measure = measure;
	e->aggs.stores = xcalloc(img->naggs + 1, sizeof(*e->aggs.stores));
	e->placement.placed = xcalloc(img->nprobes + 1, sizeof(*e->placement.placed));
	e->placement.refused = xcalloc(img->nprobes + 1, sizeof(*e->placement.refused));
	e->placement.left_out = xcalloc(img->nprobes + 1, sizeof(*e->placement.left_out));
	err = forging_check(e);
	if (!err && e->named.scope != ENGINE_WHAT_CAN_BE)
		err = check_all(img);
	err = err ?: area_create(e, img);
	err = err ?: unwind_start(e);
	err = err ?: progs_compile(e);
	err = err ?: forging_check_addresses(e);
	err = err ?: samples_start(e);
	for (uint32_t i = 0; i < e->named.ntargets && e->named.scope != ENGINE_WHAT_CAN_BE && !err;
	     i++)
		err = process_plan(e, e->named.targets[i].pid);
	return err || e->named.scope == ENGINE_WHAT_CAN_BE ? err : check_left_out(e);
}

static bool inproc_can(const struct probe *p)
{
	switch (p->kind) {
	case ATTACH_SELF:
	case ATTACH_TICK:
	case ATTACH_UPROBE:
	case ATTACH_URETPROBE:
	case ATTACH_SYSCALL_ENTRY:
	case ATTACH_SYSCALL_RETURN: return true;
	case ATTACH_PROFILE: return samples_can(p);
	case ATTACH_RAW_TP:
	case ATTACH_TP_BTF: return events_can(p);
	default: return false;
	}
}

/* Returns an error when all probes of user code were refused, because the run would record
 * nothing. */
static struct err *check_any(const struct inproc_engine *e)
{
	const struct image *img = e->base.image;
	const char *reason = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct probe *p = img->probes[i].probe;

		if (!p || (p->kind != ATTACH_UPROBE && p->kind != ATTACH_URETPROBE))
			continue;
		if (e->placement.placed[i] || is_waited_for(e, i) ||
		    !e->placement.refused[i].reason)
			return NULL;
		reason = e->placement.refused[i].reason;
		n++;
	}
	if (n > 1)
		return err_new(ENOTSUP, "none of %u probes can be enabled in-process; the last: %s",
			       n, reason);
	return n ? err_new(ENOTSUP, "the probe cannot be enabled in-process: %s", reason) : NULL;
}

static struct err *inproc_attach(struct engine *en)
{
	struct inproc_engine *e = inproc(en);
	const struct image *img = en->image;
	struct err *err = NULL;

	for (uint32_t i = 0; i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];
		const struct image_probe *ip = p->nprobes ? &img->probes[p->probes[0]] : NULL;

		if (events_is_errno(p))
			continue;
		if (!ip) {
			/* a program that helps the kernel engine: at thread switches, at returns of
			 * system calls */
			inproc_note(
				e,
				"the in-process engine does not see the kernel's %s: values made from it (%s) are 0 or empty",
				p->tracepoint ? p->tracepoint : "tracepoint", p->name);
			continue;
		}
		if (p->attach == ATTACH_SELF || (ip->probe && inproc_can(ip->probe)))
			continue;
		/* left out beside other probes of proc */
		if (e->events && !strcmp(ip->prov, "proc"))
			inproc_note(
				e, "%s:%s:%s:%s not enabled: the in-process engine does not see it",
				ip->prov, ip->mod, ip->func, ip->name);
		else
			return err_new(
				ENOTSUP,
				"%s:%s:%s:%s cannot fire in the in-process engine; use -x engine=kernel",
				ip->prov, ip->mod, ip->func, ip->name);
	}
	for (uint32_t i = 0; i < e->named.ntargets && !err; i++) {
		unwind_add(e, e->named.targets[i].pid);
		err = process_attach(e, e->named.targets[i].pid);
	}
	vec_fini(&e->named.held);
	err = err ?: check_any(e);
	return err ? err : inproc_start_timers(e);
}

static struct err *inproc_fire(struct engine *en, uint32_t prog)
{
	const struct image_prog *p = &en->image->progs[prog];
	struct err *err = prog_run(inproc(en), prog, p->nprobes ? p->probes[0] : 0);

	islands_turn(inproc(en));
	return err;
}

/* --- records --- */

/* Returns false: the next pass handles events of targets that have ended. */
static bool inproc_behind(struct engine *en, uint64_t time)
{
	return false;
}

/* No thread wakes the tracer for a record, because a thread that records makes no system call. So
 * this function sleeps and looks. */
static void inproc_poll_all(struct engine *const *en, uint32_t n, int timeout_ms)
{
	struct inproc_engine *const *e = (struct inproc_engine *const *)en;
	int nap = NAP_MAX_MS;

	for (uint32_t i = 0; i < n; i++)
		nap = e[i]->bells.nap_ms < nap ? e[i]->bells.nap_ms : nap;
	if (timeout_ms >= 0 && nap > timeout_ms)
		nap = timeout_ms;
	bell_wait(e, n, nap);
	for (uint32_t i = 0; i < n; i++) {
		events_answer(e[i]);
		events_hurry(e[i]);
		__atomic_store_n(&e[i]->area->heartbeat, now_ns(), __ATOMIC_RELAXED);
	}
}

static void inproc_poll(struct engine *en, int timeout_ms)
{
	inproc_poll_all(&en, 1, timeout_ms);
}

static struct err *inproc_enter(struct engine *en, int pid, int like, struct control *c)
{
	return process_take(inproc(en), pid, like, c);
}

static uint32_t inproc_nprocesses(const struct engine *en)
{
	const struct inproc_engine *e = (const struct inproc_engine *)en;
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->processes.n; i++)
		n += e->processes.v[i].attached;
	return n;
}

static int inproc_wait_fd(struct engine *en)
{
	return -1;
}

struct draining {
	struct inproc_engine *e;
	record_fn *fn;
	void *arg;
	bool control, any;
	bool own; /* the ring is the tracer's */
};

/* Returns true when a traced process may have written the record. Only the tracer writes records of
 * BEGIN, END and ticks, so no process can request their actions, such as exit() or system(). The
 * process that made the fault runs ERROR. */
static bool may_say(const struct image *img, const struct wire_record *r)
{
	const struct image_probe *ip = r->probe < img->nprobes ? &img->probes[r->probe] : NULL;
	const struct probe *p = ip ? ip->probe : NULL;

	if (p && (p->kind == ATTACH_TICK || (p->kind == ATTACH_SELF && strcmp(ip->name, "ERROR"))))
		return false;
	return r->segment >= img->nsegments || !img->segments[r->segment].own;
}

static void drain_record(void *arg, const void *record, uint32_t n)
{
	struct draining *d = arg;

	if (n < sizeof(struct wire_record) || (!d->own && !may_say(d->e->base.image, record)) ||
	    forging_refuses(d->e, record)) {
		d->e->trust.forged++;
		return;
	}
	d->fn(d->arg, record, n, d->control);
	d->any = true;
}

/* Reads again the mappings of processes whose agent has met memory that it does not know, and of
 * new children. */
static void ranges_look(struct inproc_engine *e)
{
	const uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const uint32_t n = e->processes.n;
	uint64_t from = begun;

	for (uint32_t k = 0; k < n && from - begun < PACE_ROUND; k++) {
		struct inproc_process *p = &e->processes.v[e->family.ranges_at++ % n];
		uint64_t to;

		if (!p->attached || now_ns() < p->ranges_next ||
		    (!p->ranges_new &&
		     !__atomic_load_n(&e->said[p->index].ranges_wanted, __ATOMIC_RELAXED)))
			continue;
		p->ranges_new = false;
		err_free(process_ranges(e, p));
		to = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		p->ranges_next = pace_next(now_ns(), to - from, RANGES_SHARE);
		from = to;
	}
}

static void inproc_drain(struct engine *en, record_fn *fn, void *arg)
{
	struct inproc_engine *e = inproc(en);
	const enum map_role order[] = { MAP_CONTROL, MAP_DATA };
	struct draining to = { .e = e, .fn = fn, .arg = arg };
	bool settled;

	processes_round(e);
	inproc_run_timers(e);
	islands_turn(e);
	bell_take(e);
	leaving_look(e);
	processes_look(e);
	loads_look(e);
	twice_look(e);
	ranges_look(e);
	bell_answer(e);
	execs_look(e);
	forging_look(e);
	settled = control_settle();
	unwind_refresh(e);
	/* The control ring comes first, as in the kernel engine. */
	for (int k = 0; k < 2; k++) {
		int map = image_find_map(en->image, order[k]);
		const struct wire_map *m = map < 0 ? NULL : &e->maps[map];

		to.control = order[k] == MAP_CONTROL;
		for (uint32_t i = 0; m && i < e->room.nthreads; i++) {
			uint8_t *t = (uint8_t *)area_thread(e, i);

			to.own = !i;
			if (__atomic_load_n(&((struct wire_thread *)t)->owner, __ATOMIC_ACQUIRE))
				shared_ring_take((struct wire_ring *)(t + m->base), m->max_entries,
						 &e->tails[k][i], &e->aggs.copy, drain_record, &to);
		}
	}
	to.any |= unwind_learn(e);
	reclaim_look(e);
	if (to.any || e->family.execs.n || !settled)
		e->bells.nap_ms = NAP_MIN_MS;
	else if (e->bells.nap_ms < (seccomp_any(e) ? NAP_QUIET_MS : NAP_MAX_MS))
		e->bells.nap_ms *= 2;
}

/* --- aggregations and stacks --- */

static struct err *inproc_agg_read(struct engine *en, uint32_t agg, agg_fn *fn, void *arg)
{
	return aggs_read(inproc(en), agg, fn, arg);
}

static struct err *inproc_agg_delete(struct engine *en, uint32_t agg, const void *key,
				     uint64_t *ret_values)
{
	return aggs_delete(inproc(en), agg, key, ret_values);
}

static const struct wire_stack *find_stack(struct engine *en, int64_t id)
{
	struct inproc_engine *e = inproc(en);
	int map = image_find_map(en->image, MAP_STACKS);

	return map < 0 ? NULL : shared_hash_find(&e->maps[map], &id);
}

static uint32_t inproc_stack(struct engine *en, int64_t id, uint64_t *frames, uint32_t max)
{
	const struct wire_stack *s = find_stack(en, id);
	uint32_t n = s ? __atomic_load_n(&s->n, __ATOMIC_RELAXED) : 0;

	if (n > WIRE_STACK_FRAMES)
		n = WIRE_STACK_FRAMES;
	if (n > max)
		n = max;
	if (n)
		memcpy(frames, s->pc, (size_t)n * 8);
	return n;
}

static uint32_t inproc_stack_end(struct engine *en, int64_t id)
{
	const struct wire_stack *s = find_stack(en, id);

	return s ? s->end : 0;
}

static void inproc_counters(struct engine *en, struct engine_counters *ret)
{
	struct inproc_engine *e = inproc(en);
	int map = image_find_map(en->image, MAP_COUNTERS);
	struct engine_counters *c = &e->counters;
	uint32_t nprobes = en->image->nprobes;

	if (!c->fixed) {
		c->ncpus = 1;
		c->fixed = xcalloc(WIRE_FIXED_COUNTERS, 8);
		c->fired = xcalloc(nprobes + 1, 8);
		c->dropped = xcalloc(nprobes + 1, 8);
	}
	memset(c->fixed, 0, WIRE_FIXED_COUNTERS * 8);
	memset(c->fired, 0, nprobes * 8);
	memset(c->dropped, 0, nprobes * 8);
	for (uint32_t i = 0; map >= 0 && i < e->room.nthreads; i++) {
		const struct wire_thread *t = area_thread(e, i);
		const uint64_t *v = (const uint64_t *)((const uint8_t *)t + e->maps[map].base);

		if (!t->owner)
			continue;
		for (uint32_t k = 0; k < WIRE_FIXED_COUNTERS; k++)
			c->fixed[k] += v[k];
		for (uint32_t k = 0; k < nprobes; k++) {
			const uint64_t *slot = v + WIRE_FIXED_COUNTERS + k * WIRE_PROBE_SLOTS;

			c->fired[k] += slot[WIRE_PROBE_FIRED];
			c->dropped[k] += slot[WIRE_PROBE_DROPPED];
		}
		c->fixed[WIRE_DROP_SCRATCH] += t->skipped_nested;
	}
	c->fixed[WIRE_DROP_SCRATCH] += e->common->no_thread;
	c->fixed[WIRE_DROP_DATA] += e->trust.forged;
	c->fixed[WIRE_DROP_AGG] += e->aggs.unstored;
	c->lost_ticks = e->bells.timers.lost;
	*ret = *c;
}

static uint32_t inproc_report(struct engine *en, struct engine_prog_report *ret, uint32_t max)
{
	struct inproc_engine *e = inproc(en);
	uint32_t n = en->image->nprogs < max ? en->image->nprogs : max;

	for (uint32_t i = 0; i < n; i++) {
		const struct image_prog *p = &en->image->progs[i];
		bool patched = p->attach == ATTACH_UPROBE || p->attach == ATTACH_URETPROBE ||
			       inproc_is_syscall(p->attach) || events_of(en->image, i);
		bool placed = events_is_errno(p);

		for (uint32_t k = 0; k < p->nprobes; k++)
			placed |= e->placement.placed[p->probes[k]];
		ret[i] = (struct engine_prog_report){
			.name = p->name,
			.mode = p->attach == ATTACH_PROFILE ? "sampled"
				: !patched                  ? "own thread"
				: placed                    ? "patched jump"
							    : "not enabled",
			.runs = e->progs[i].runs,
			.ninsns = e->progs[i].linked.ninsns,
		};
	}
	return n;
}

static const char *inproc_probe_mode(struct engine *en, uint32_t i)
{
	struct inproc_engine *e = inproc(en);
	const struct probe *p = en->image->probes[i].probe;

	if (e->placement.placed[i])
		return "patched jump";
	if (e->placement.refused[i].mode)
		return e->placement.refused[i].mode;
	for (uint32_t k = 0; k < e->processes.n; k++)
		if (e->processes.v[k].waiting && e->processes.v[k].waiting[i])
			return "patched jump, when its file is loaded";
	if (p && (p->kind == ATTACH_UPROBE || p->kind == ATTACH_URETPROBE ||
		  inproc_is_syscall(p->kind) || events_can(p)))
		return "not in these processes";
	return p && p->kind == ATTACH_PROFILE ? "sampled" : "own thread";
}

/* --- the end --- */

static struct err *inproc_detach(struct engine *en)
{
	struct inproc_engine *e = inproc(en);
	struct err *err = NULL, *one;
	bool more = true;

	if (e->area)
		__atomic_store_n(&e->area->closing, 1, __ATOMIC_SEQ_CST);
	timers_stop(&e->bells.timers);
	bell_stop(e);
	execs_stop(e);
	events_stop(e);
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (e->processes.v[i].attached)
			twice_look_at(e, &e->processes.v[i]);
	/* Also restores children that were not found yet, and those that begin while their parents
	 * still run. These may go on for ever, so the watchdog restores the last ones. */
	while (more) {
		for (uint32_t i = 0; i < e->processes.n; i++) {
			one = process_detach(e, &e->processes.v[i]);
			if (err)
				err_free(one);
			else
				err = one;
		}
		processes_round(e);
		if (!e->sweep_end)
			e->sweep_end = now_ns() + (uint64_t)SWEEP_MS * 1000000;
		more = e->list && (processes_adopt(e) || processes_sweep(e, e->sweep_end));
		if (more && now_ns() >= e->sweep_end) {
			inproc_blind(
				e,
				"traced processes fork faster than their children's probes are removed: descry's watchdog removes the others");
			e->unrestored = true;
			more = false;
		}
	}
	/* The watchdog restores a process that could not be restored here. This function may be
	 * called again. */
	e->unrestored |= err != NULL;
	if (!e->unrestored && e->watchdog >= 0) {
		watchdog_stop(e->area, e->watchdog);
		e->watchdog = -1;
	}
	return err;
}

static void inproc_free(struct engine *en)
{
	struct inproc_engine *e = inproc(en);

	if (!e)
		return;
	err_free(inproc_detach(en));
	for (uint32_t i = 0; i < e->processes.n; i++)
		process_free(&e->processes.v[i]);
	vec_fini(&e->processes);
	for (uint32_t i = 0; i < e->placement.texts.n; i++)
		text_free(e->placement.texts.v[i].text);
	vec_fini(&e->placement.texts);
	unwind_stop(e);
	samples_stop(e);
	events_free(e);
	for (uint32_t i = 0; e->placement.refused && i < en->image->nprobes; i++)
		free(e->placement.refused[i].mode);
	free(e->own_shared);
	free(e->placement.refused);
	free(e->placement.left_out);
	free(e->placement.placed);
	if (en->image) {
		progs_free(e);
		aggs_store_free(e);
	}
	area_free(e);
	engine_free_remarks(en);
	free(e->counters.fixed);
	free(e->counters.fired);
	free(e->counters.dropped);
	shared_copy_fini(&e->aggs.copy);
	vec_fini(&e->named.held);
	hash_fini(e->family.looked);
	free(e->family.looked);
	vec_fini(&e->family.execs);
	vec_fini(&e->family.ancestors);
	vec_fini(&e->walks);
	free(e);
}

static bool inproc_left_out(const struct engine *en, bool *ret)
{
	const struct inproc_engine *e = (const struct inproc_engine *)en;
	bool any = false;

	for (uint32_t i = 0; e->placement.left_out && i < en->image->nprobes; i++)
		any |= ret[i] = e->placement.left_out[i];
	return any;
}

static void inproc_hold(struct engine *en, struct control *c)
{
	vec_push(&inproc(en)->named.held, c);
}

static const struct engine_ops engine_inproc_ops = {
	.name = "inproc",
	.hold = inproc_hold,
	.left_out = inproc_left_out,
	.load = inproc_load,
	.attach = inproc_attach,
	.fire = inproc_fire,
	.poll = inproc_poll,
	.poll_all = inproc_poll_all,
	.enter = inproc_enter,
	.nprocesses = inproc_nprocesses,
	.behind = inproc_behind,
	.wait_fd = inproc_wait_fd,
	.drain = inproc_drain,
	.agg_read = inproc_agg_read,
	.agg_delete = inproc_agg_delete,
	.stack = inproc_stack,
	.stack_end = inproc_stack_end,
	.counters = inproc_counters,
	.report = inproc_report,
	.probe_mode = inproc_probe_mode,
	.detach = inproc_detach,
	.free = inproc_free,
};

static struct engine *inproc_new(const struct engine_setting *setting)
{
	struct inproc_engine *e = xcalloc(1, sizeof(*e));

	e->base.ops = &engine_inproc_ops;
	e->files.code.fd = e->files.facts.fd = e->files.shared.fd = -1;
	e->watchdog = -1;
	e->family.looked = xcalloc(1, sizeof(*e->family.looked));
	e->family.oldest = procdir_start(getpid());
	timers_init(&e->bells.timers);
	e->bells.nap_ms = NAP_MIN_MS;
	e->aggs.bytes_max = STORE_MAX;
	e->named.targets = setting->targets;
	e->named.ntargets = setting->ntargets;
	e->symbols = setting->symbols;
	e->languages = setting->languages;
	e->named.scope = setting->scope;
	e->named.executed = setting->executed;
	e->named.executed_arg = setting->executed_arg;
	return &e->base;
}

const struct engine_type engine_inproc = {
	.name = "inproc",
	.target = { .unwind = true, .inside = true },
	.new = inproc_new,
	.can = inproc_can,
	.how = sites_how,
	.print = progs_print,
};
