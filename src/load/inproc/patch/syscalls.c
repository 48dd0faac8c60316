/* System calls of a process: plans every system call instruction that can be patched, when a
 * program names its call, or when its number is known only at run time. */
#include <sys/syscall.h>

#include "load/inproc/events/proc_events.h"
#include "load/inproc/patch/plan_private.h"
#include "wire/syscall.h"

struct wanted {
	enum wire_stub_kind kind;
	uint32_t prog, probe; /* probe: for an event */
	uint64_t bits[WIRE_SYSCALL_MAX / 64];
};
struct calls {
	struct plan *pl;
	VEC(struct wanted) entry, ret;
	struct hash done; /* objects */
	uint32_t found, unseen;
	const char *reason; /* of the first instruction that could not be patched */
	uint64_t addr;
	const char *path;
};

static bool wants(const struct wanted *w, int32_t number)
{
	return number < 0 || (number < WIRE_SYSCALL_MAX && w->bits[number / 64] >> number % 64 & 1);
}

static bool any_wants(const struct calls *c, int32_t number)
{
	bool any = false;

	for (uint32_t i = 0; i < c->entry.n; i++)
		any |= wants(&c->entry.v[i], number);
	for (uint32_t i = 0; i < c->ret.n; i++)
		any |= wants(&c->ret.v[i], number);
	return any;
}

static void want(struct calls *c, struct wanted w)
{
	if (wire_stub_is_behind(w.kind))
		vec_push(&c->ret, w);
	else
		vec_push(&c->entry, w);
}

static void collect(struct calls *c, const struct image *img, const struct inproc_process *of)
{
	for (uint32_t i = 0; i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];
		struct wanted w = { .prog = i,
				    .kind = p->attach == ATTACH_SYSCALL_ENTRY ? WIRE_STUB_SYSCALL
									      : WIRE_STUB_SYSRET };

		if (events_is_errno(p)) {
			struct wanted every = { .prog = i,
						.kind = WIRE_STUB_LEAVES,
						.probe = INPROC_ERRNO };

			memset(every.bits, 0xff, sizeof(every.bits));
			want(c, every);
		}
		for (uint32_t k = 0; k < p->nprobes; k++) {
			struct wanted event = { .prog = i, .probe = p->probes[k] };

			for (uint32_t n = 0; events_calls(img->probes[event.probe].probe, n,
							  &event.kind, event.bits);
			     n++)
				want(c, event);
		}
		if (p->attach != ATTACH_SYSCALL_ENTRY && p->attach != ATTACH_SYSCALL_RETURN)
			continue;
		for (uint32_t k = 0; k < p->nprobes; k++) {
			const struct probe *probe = img->probes[p->probes[k]].probe;

			if (probe->number >= 0 && probe->number < WIRE_SYSCALL_MAX &&
			    (!probe->pid || probe->pid == of->root))
				w.bits[probe->number / 64] |= 1ull << probe->number % 64;
		}
		want(c, w);
	}
}

/* Returns the probe whose drops are counted: that of the call where the number is known. */
static uint32_t probe_for(const struct image *img, const struct wanted *w, int32_t number)
{
	const struct image_prog *p = &img->progs[w->prog];

	for (uint32_t k = 0; k < p->nprobes && w->kind < WIRE_STUB_EVENTS; k++)
		if (img->probes[p->probes[k]].probe->number == number)
			return p->probes[k];
	return w->kind < WIRE_STUB_EVENTS ? p->probes[0] : w->probe;
}

static bool usable(const struct text_site *s)
{
	return s->mode == TEXT_PATCH;
}

static void unseen(struct calls *c, const struct object *o, const struct text_syscall *s,
		   const char *reason)
{
	if (c->unseen++)
		return;
	c->reason = reason;
	c->addr = s->addr;
	c->path = object_path(o);
}

/* Leaves the system call instruction in its place where possible, so that a thread that waits in
 * the kernel is in its own function. */
static const struct text_site *place_of_entry(const struct text_syscall *s)
{
	return usable(&s->before) ? &s->before : &s->site;
}

static void plan_entry(struct calls *c, const struct image *img, uint32_t module,
		       const struct text_syscall *s, bool note)
{
	const struct text_site *at = place_of_entry(s);
	struct inproc_point p = { .addr = s->addr, .shown = s->addr + 2, .number = s->number };

	for (uint32_t i = 0; i < c->entry.n; i++) {
		if (!wants(&c->entry.v[i], s->number))
			continue;
		p.kind = c->entry.v[i].kind;
		p.prog = c->entry.v[i].prog;
		p.probe = probe_for(img, &c->entry.v[i], s->number);
		plan_site(c->pl, module, at, &p);
	}
	if (note) {
		p.kind = WIRE_STUB_SYSNOTE;
		p.prog = c->ret.v[0].prog;
		p.probe = probe_for(img, &c->ret.v[0], s->number);
		plan_site(c->pl, module, at, &p);
	}
}

static void plan_return(struct calls *c, const struct image *img, uint32_t module,
			const struct text_syscall *s, bool fork)
{
	struct text_site at = s->behind;
	struct inproc_point p = { .addr = s->addr + 2, .number = s->number };
	const struct wanted *any = c->ret.n ? &c->ret.v[0] : &c->entry.v[0];

	if (!usable(&at)) {
		at = s->site;
		at.at += 2;
	}
	for (uint32_t i = 0; i < c->ret.n; i++) {
		if (!wants(&c->ret.v[i], s->number))
			continue;
		p.kind = c->ret.v[i].kind;
		p.prog = c->ret.v[i].prog;
		p.probe = probe_for(img, &c->ret.v[i], s->number);
		plan_site(c->pl, module, &at, &p);
	}
	if (fork) {
		p.kind = WIRE_STUB_SYSFORK;
		p.prog = any->prog;
		p.probe = probe_for(img, any, s->number);
		plan_site(c->pl, module, &at, &p);
	}
}

static void plan_call(struct calls *c, const struct image *img, uint32_t module,
		      const struct object *o, const struct text_syscall *s)
{
	bool fork = s->number < 0 || s->number == SYS_clone || s->number == SYS_vfork ||
		    s->number == SYS_clone3;
	bool entry = false, ret = false, note;

	for (uint32_t i = 0; i < c->entry.n; i++)
		entry |= wants(&c->entry.v[i], s->number);
	for (uint32_t i = 0; i < c->ret.n; i++)
		ret |= wants(&c->ret.v[i], s->number);
	if (s->number == SYS_exit || s->number == SYS_exit_group)
		ret = false; /* never comes */
	if (!entry && !ret && !fork)
		return;
	c->found++;
	note = ret && s->number < 0;
	if ((entry || note) && !usable(place_of_entry(s)))
		unseen(c, o, s, place_of_entry(s)->reason);
	else if (entry || note)
		plan_entry(c, img, module, s, note);
	if ((ret || fork) && !usable(&s->behind) && !usable(&s->site))
		unseen(c, o, s, s->site.reason);
	else if (ret || fork)
		plan_return(c, img, module, s, fork);
}

static bool is_done(struct calls *c, struct object *o)
{
	bool is_new;

	(void)hash_put(&c->done, &o, sizeof(o), &is_new);
	return !is_new;
}

static struct err *plan_object(struct calls *c, struct inproc_engine *e, struct inproc_process *p,
			       uint32_t map, struct object *o)
{
	struct text_syscall *found = NULL;
	uint32_t n = 0, module;
	struct err *err = plan_module(c->pl, map, &module);
	const char *why;

	if (!err && (why = text_refused(p->modules.v[module].text))) {
		inproc_note(e, "process %d: system calls of %s are not seen (%s)", (int)p->pid,
			    object_path(o), why);
		e->placement.nrefused++;
		return NULL;
	}
	err = err ?: text_syscalls(p->modules.v[module].text, 0, &found, &n);
	for (uint32_t i = 0; i < n && !err; i++)
		plan_call(c, e->base.image, module, o, &found[i]);
	free(found);
	return err;
}

struct err *syscalls_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
			  const struct mappings *maps)
{
	struct calls c = { .pl = pl };
	struct err *err = NULL;

	collect(&c, e->base.image, p);
	for (uint32_t i = 0; i < maps->n && !err && (c.entry.n || c.ret.n); i++) {
		const struct mapping *m = &maps->v[i];
		struct object *o = m->exec ? symbols_object(e->symbols, p->pid, m) : NULL;

		if (o && !is_done(&c, o))
			err = plan_object(&c, e, p, i, o);
	}
	if (c.unseen && !err) {
		e->placement.nrefused++;
		inproc_note(
			e,
			"process %d: %u of %u places that make these system calls cannot be patched "
			"(the first: 0x%llx in %s, %s): calls from there are not seen",
			(int)p->pid, c.unseen, c.found, (unsigned long long)c.addr, c.path,
			c.reason);
	}
	if (!c.found && !err && (c.entry.n || c.ret.n)) {
		bool known = any_wants(&c, SYS_rt_sigreturn);

		e->placement.nrefused++;
		inproc_note(e, "process %d: no place that makes these system calls was found%s",
			    (int)p->pid, known ? "; rt_sigreturn is not seen in-process" : "");
	}
	vec_fini(&c.entry);
	vec_fini(&c.ret);
	hash_fini(&c.done);
	return err;
}
