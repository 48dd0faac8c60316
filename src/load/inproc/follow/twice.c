/* Files whose code a process has mapped twice. Probes are in the first mapping only.
 *
 * dlmopen(3) loads a library once more. V8 maps the part of its program that holds its built-in
 * functions beside the code that it compiles, and calls this copy.
 */
#include "base/clock.h"
#include "base/sorted.h"
#include "load/inproc/follow/inproc_follow.h"

enum { FIRST_MS = 50, LAST_MS = 10000 };

/* The key of a module in a table of them. */
struct module_place {
	const struct object *object;
	uint64_t bias;
};

/* Returns true when the module's code is at this mapping, where no module is. */
static bool is_copy(const struct hash *places, const struct inproc_module *mod,
		    const struct mapping *m, uint64_t *ret_addr)
{
	struct module_place at = { .object = mod->object };

	if (!m->exec || m->inode != mod->inode ||
	    !object_text_mapping_addr(mod->object, m->offset, ret_addr))
		return false;
	at.bias = m->start - *ret_addr;
	return !hash_get(places, &at, sizeof(at));
}

/* Returns how many of the module's sites, which are sorted, have link-time addresses below addr. */
static uint32_t sites_below(const struct inproc_process *p, const struct inproc_module *mod,
			    uint64_t addr)
{
	return partition_point(mod->nsites, i, p->sites.v[mod->first_site + i].text.addr < addr);
}

void twice_look_at(struct inproc_engine *e, struct inproc_process *p)
{
	struct mappings maps = { 0 };
	struct hash places = { 0 }, looked = { 0 };

	err_free(mappings_read(p->pid, &maps));
	for (uint32_t i = 0; i < p->modules.n; i++) {
		const struct module_place at = { p->modules.v[i].object, p->modules.v[i].bias };

		(void)hash_put(&places, &at, sizeof(at), NULL);
	}
	for (uint32_t i = 0; i < p->modules.n; i++) {
		struct inproc_module *mod = &p->modules.v[i];
		bool is_new = false;

		/* Once for each file: probes are in its first mapping. */
		if (mod->enabled && mod->nsites)
			(void)hash_put(&looked, &mod->object, sizeof(mod->object), &is_new);
		for (uint32_t k = 0; k < maps.n && is_new && !mod->twice; k++) {
			const struct mapping *m = &maps.v[k];
			uint64_t addr;
			uint32_t n;

			if (!is_copy(&places, mod, m, &addr))
				continue;
			n = sites_below(p, mod, addr + (m->end - m->start)) -
			    sites_below(p, mod, addr);
			if (!n)
				continue;
			mod->twice = true;
			inproc_blind(
				e,
				"process %d has mapped code of %s twice: calls of the second copy, with %u probed place%s, are not seen; -x engine=kernel sees both",
				(int)p->pid, m->path, n, n == 1 ? "" : "s");
		}
	}
	mappings_free(&maps);
	hash_fini(&places);
	hash_fini(&looked);
	changed_look_at(e, p);
}

void twice_look(struct inproc_engine *e)
{
	const uint64_t now = now_ns();

	for (uint32_t i = 0; i < e->processes.n; i++) {
		struct inproc_process *p = &e->processes.v[i];

		if (!p->attached || p->child || now < p->twice_next)
			continue;
		p->twice_ms = p->twice_ms ? p->twice_ms * 2 : FIRST_MS;
		if (p->twice_ms > LAST_MS)
			p->twice_ms = LAST_MS;
		p->twice_next = now + p->twice_ms * 1000000ull;
		twice_look_at(e, p);
	}
}
