/* Plans the tracer's own probes in a process: at libraries that come and go, at execve(2), and at
 * system calls that install seccomp filters. */
#include <sys/syscall.h>

#include "load/inproc/patch/bell.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/patch/plan_private.h"
#include "load/inproc/state/identity.h"

enum { RDEBUG_STATE = 24 /* of struct r_debug: r_state; RT_CONSISTENT is 0 */ };

/* --- libraries --- */

/* Returns true for an object that stays mapped while the program runs. */
bool loads_stays(struct object *o)
{
	const char *soname = object_soname(o);

	return object_is_executable(o) || identity_is_musl(o) ||
	       (soname && (!strncmp(soname, "libc.", 5) || !strncmp(soname, "ld-", 3)));
}

static bool any_waiting(const struct inproc_engine *e, const struct inproc_process *p)
{
	for (uint32_t i = 0; i < e->base.image->nprobes && p->waiting; i++)
		if (p->waiting[i])
			return true;
	return false;
}

bool loads_may_change(const struct inproc_engine *e, const struct inproc_process *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++)
		if (!loads_stays(p->modules.v[i].object))
			return true;
	return any_waiting(e, p);
}

struct err *loads_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
		       const struct mappings *maps)
{
	struct err *err = NULL;

	if (p->served || !loads_may_change(e, p))
		return NULL;
	for (uint32_t i = 0; i < maps->n && !err && !p->hooked; i++) {
		const struct mapping *m = &maps->v[i];
		struct object *o = m->exec ? symbols_object(e->symbols, p->pid, m) : NULL;
		struct inproc_point point = { .kind = WIRE_STUB_ENTRY, .probe = INPROC_LOADS };
		struct text_site s = { 0 };
		uint64_t hook, state;
		uint32_t module;

		if (!o || !loads_stays(o) || object_is_executable(o) ||
		    !object_symbol_value(o, "_dl_debug_state", &hook) ||
		    !object_symbol_value(o, "_r_debug", &state))
			continue;
		err = plan_module(pl, i, &module);
		err = err ?: text_entry(p->modules.v[module].text, hook, &s);
		if (err || s.mode != TEXT_PATCH)
			continue;
		if (!bell_hang(e))
			return NULL;
		p->modules.v[module].loads_state = state + RDEBUG_STATE + p->modules.v[module].bias;
		point.addr = s.addr + s.at;
		/* join_overlaps() clears it when the bytes belong to another probe */
		p->hooked = true;
		plan_site(pl, module, &s, &point);
	}
	return err;
}

/* --- execve() --- */

struct err *execs_plan(struct inproc_engine *e, struct inproc_process *p, struct plan *pl,
		       const struct mappings *maps)
{
	const struct inproc_point point = { .kind = WIRE_STUB_ENTRY, .probe = INPROC_EXECS };
	struct err *err = NULL;
	bool hung = false;

	for (uint32_t i = 0; i < maps->n && !err && !hung && !p->served; i++) {
		const struct mapping *m = &maps->v[i];
		struct object *o = m->exec ? symbols_object(e->symbols, p->pid, m) : NULL;
		struct inproc_point at = point;
		struct text_site s = { 0 };
		uint64_t addr;
		uint32_t module;

		if (!o || !loads_stays(o) || !object_symbol_value(o, "execve", &addr))
			continue;
		err = plan_module(pl, i, &module);
		err = err ?: text_entry(p->modules.v[module].text, addr, &s);
		if (err || s.mode != TEXT_PATCH || !bell_hang(e))
			continue;
		p->modules.v[module].execs = hung = true;
		at.addr = s.addr + s.at;
		plan_site(pl, module, &s, &at);
	}
	return err;
}

/* --- seccomp filters --- */

struct err *seccomp_functions(struct inproc_process *p, struct plan *pl, uint32_t module)
{
	static const struct {
		const char *name;
		uint32_t probe;
	} functions[] = { { "prctl", INPROC_PRCTL }, { "syscall", INPROC_SYSCALL } };
	struct err *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(functions) && !err; i++) {
		struct inproc_point at = { .kind = WIRE_STUB_ENTRY, .probe = functions[i].probe };
		const struct inproc_module *m = &p->modules.v[module];
		struct text_site s = { 0 };
		uint64_t addr;

		if (!object_symbol_value(m->object, functions[i].name, &addr))
			continue;
		err = text_entry(m->text, addr, &s);
		at.addr = s.addr + s.at;
		if (!err && s.mode == TEXT_PATCH)
			plan_site(pl, module, &s, &at);
	}
	return err;
}

void seccomp_site(struct plan *pl, uint32_t module, const struct text_syscall *s)
{
	struct inproc_point point = { .addr = s->addr,
				      .kind = s->site.kind,
				      .probe = INPROC_SECCOMP };

	if (s->number >= 0 && s->number != SYS_prctl && s->number != SYS_seccomp)
		return;
	if (s->site.mode == TEXT_PATCH)
		plan_site(pl, module, &s->site, &point);
}
