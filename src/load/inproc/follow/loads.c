/* Libraries that a process loads and unloads while it is traced.
 *
 * The dynamic linker calls an empty function, _dl_debug_state(), for debuggers: after it has mapped
 * libraries, and before it unmaps some. This function has a bell (patch/bell.c), so that the first
 * calls into a library are seen too. Where there is no such function (no dynamic linker, or one
 * that cannot be patched), loads_look() reads the mappings a few times a second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/procmem.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/follow/mapped_code.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/patch/records.h"

enum { UNASKED_MS = 100 };

struct look {
	struct inproc_engine *e;
	struct inproc_process *p;
	struct mapped_codes maps;
};

/* Returns true when a place holds descry's jump (ours), or the file's own bytes. */
static bool holds(const struct inproc_process *p, const struct inproc_site *s, bool ours)
{
	uint64_t at = s->text.addr + s->bias;
	uint8_t have[TEXT_SITE_MAX], after[TEXT_SITE_MAX];

	if (procmem_read(p->pid, have, s->text.len, at) != s->text.len)
		return false;
	text_patch(&s->text, s->bias, s->code_at, after);
	return !memcmp(have, ours ? after : s->text.bytes, s->text.len);
}

/* Returns true when at least one of the module's places holds these bytes. The module is then
 * mapped, even if the list of mappings does not show it. */
static bool any_holds(const struct inproc_process *p, const struct inproc_module *m, bool ours)
{
	for (uint32_t i = 0; i < m->nsites; i++)
		if (holds(p, &p->sites.v[m->first_site + i], ours))
			return true;
	return false;
}

/* Returns true when the bell in the dynamic linker is this tracer's. Another tracer's patch may be
 * there instead. */
static bool is_hooked(const struct inproc_process *p)
{
	for (uint32_t i = 0; i < p->sites.n; i++)
		for (uint32_t k = 0; k < p->sites.v[i].points.n; k++)
			if (p->sites.v[i].points.v[k].probe == INPROC_LOADS)
				return holds(p, &p->sites.v[i], true);
	return false;
}

/* Returns the first mapping of the module's text, or NULL. */
static const struct mapped_code *find_mapped(const struct look *l, const struct inproc_module *m)
{
	uint32_t n;
	const struct mapped_code *v = mapped_codes_of(&l->maps, m->dev, m->inode, &n);
	uint64_t addr;

	for (uint32_t i = 0; i < n; i++)
		if (object_text_mapping_addr(m->object, v[i].offset, &addr))
			return &v[i];
	return NULL;
}

/* Finds modules that are gone, and modules that are mapped again, perhaps elsewhere. Returns true
 * when some must be patched. */
static bool look_at_modules(struct look *l)
{
	struct inproc_process *p = l->p;
	bool todo = false;

	for (uint32_t i = 0; i < p->modules.n; i++) {
		struct inproc_module *m = &p->modules.v[i];
		const struct mapped_code *x;
		uint64_t addr = 0;

		if (!m->nsites || loads_stays(m->object) || (m->enabled && any_holds(p, m, true)))
			continue;
		x = find_mapped(l, m);
		if (x && !object_text_mapping_addr(m->object, x->offset, &addr))
			x = NULL;
		/* neither descry's bytes nor the file's: another tool's */
		if (x && m->enabled && x->lo - addr == m->bias && !any_holds(p, m, false))
			continue;
		process_forget(l->e, p, i);
		m->gone = true;
		if (!x)
			continue;
		m->gone = false;
		m->bias = x->lo - addr;
		m->lo = x->lo;
		m->hi = x->hi;
		for (uint32_t k = 0; k < m->nsites; k++)
			p->sites.v[m->first_site + k].bias = m->bias;
		todo = true;
	}
	return todo;
}

/* Returns true when a file is mapped that probes wait for. Probes of one file mostly follow one
 * another, so each file is looked up once. */
static bool look_for_files(const struct look *l)
{
	const struct image *img = l->e->base.image;
	const char *last = NULL;

	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct probe *p = img->probes[i].probe;
		struct stat st;
		uint32_t n;

		if (!l->p->waiting[i] || !p->object || (last && !strcmp(last, p->object)))
			continue;
		last = p->object;
		if (stat(p->object, &st))
			continue;
		(void)mapped_codes_of(&l->maps, st.st_dev, st.st_ino, &n);
		if (n)
			return true;
	}
	return false;
}

/* Adds the plan for new modules to the process. Returns true when it has sites. */
static bool take_over(struct inproc_process *p, struct inproc_process *late)
{
	uint32_t modules = p->modules.n, sites = p->sites.n;
	bool any = late->sites.n > 0;

	for (uint32_t i = 0; i < late->modules.n; i++) {
		late->modules.v[i].first_site += sites;
		vec_push(&p->modules, late->modules.v[i]);
	}
	for (uint32_t i = 0; i < late->sites.n; i++) {
		late->sites.v[i].module += modules;
		vec_push(&p->sites, late->sites.v[i]);
	}
	for (uint32_t i = 0; i < late->semaphores.n; i++) {
		late->semaphores.v[i].module += modules;
		vec_push(&p->semaphores, late->semaphores.v[i]);
	}
	vec_fini(&late->modules);
	vec_fini(&late->sites);
	vec_fini(&late->semaphores);
	return any;
}

static struct err *loads_look_at(struct inproc_engine *e, struct inproc_process *p)
{
	struct inproc_process late = inproc_process_of(p->pid);
	struct look l = { .e = e, .p = p };
	struct err *err = mapped_codes_read(&l.maps, p->pid);
	bool todo = false;

	late.root = p->root;
	late.taken = p->taken;
	if (!err && l.maps.v.n) { /* no mappings: the process ends, or executes another program */
		todo = look_at_modules(&l);
		if (look_for_files(&l)) {
			err = sites_plan_late(e, p, &late);
			if (!err)
				todo |= take_over(p, &late);
		}
	}
	mapped_codes_fini(&l.maps);
	sites_free(&late);
	if (!err && todo) {
		err = process_extend(e, p);
		unwind_add(e, p->pid);
	}
	return err;
}

void loads_look(struct inproc_engine *e)
{
	bool unasked = false;

	if (!e->family.loads_asked && now_ns() < e->family.loads_next)
		return;
	for (uint32_t i = 0; i < e->processes.n; i++) {
		struct inproc_process *p = &e->processes.v[i];
		struct err *err;

		if (!p->attached || p->child || !p->waiting || !loads_may_change(e, p) ||
		    (!e->family.loads_asked && p->hooked && p->looked))
			continue;
		if (execs_pending(e, p->pid)) { /* soon after, when the execve(2) has failed */
			p->looked = false;
			unasked = true;
			continue;
		}
		if (!p->looked)
			p->hooked &= is_hooked(p);
		p->looked = true;
		unasked |= !p->hooked;
		err = loads_look_at(e, p);
		if (err && err->code != ESRCH && !p->complained)
			inproc_note(e, "%s", err->text);
		p->complained |= err && err->code != ESRCH;
		err_free(err);
	}
	e->family.loads_next = unasked || !e->bells.bell ? now_ns() + UNASKED_MS * 1000000ull
							 : UINT64_MAX;
	e->family.loads_asked = false;
}
