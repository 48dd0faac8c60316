/* Places that a process has changed after descry patched them.
 *
 * A program that moves its text to huge pages may copy it from its file, without the patches. A
 * program that hooks a function writes a jump of its own over the patch. */
#include "base/procmem.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/state/process_state.h"

enum { PAGE = 4096, JMP_LEN = 5 };

/* A part of the text of a process, within one page and the next site's length. */
struct text_page {
	uint64_t lo;
	uint32_t n;
	uint8_t bytes[PAGE + TEXT_SITE_MAX];
};

/* Returns the bytes at a site, or NULL when they cannot be read. The page is in memory, because
 * descry has written to it. */
static const uint8_t *bytes_at(pid_t pid, struct text_page *t, uint64_t addr, uint32_t len)
{
	if (addr < t->lo || addr - t->lo > t->n || t->n - (addr - t->lo) < len) {
		const uint64_t end = (addr + len - 1) / PAGE * PAGE + PAGE;
		const ssize_t got = procmem_read(pid, t->bytes, end - addr, addr);

		t->lo = addr;
		t->n = got > 0 ? (uint32_t)got : 0;
	}
	return t->n - (addr - t->lo) < len ? NULL : t->bytes + (addr - t->lo);
}

enum change { KEPT, RESTORED /* as in the file */, OVERWRITTEN, CHANGES };

static enum change change_of(pid_t pid, struct text_page *t, const struct inproc_site *s)
{
	const uint8_t *have = bytes_at(pid, t, s->text.addr + s->bias, s->text.len);
	uint8_t patch[TEXT_SITE_MAX];

	text_patch(&s->text, s->bias, s->code_at, patch);
	/* The kernel may take the fill behind the jump for a breakpoint of its own. */
	if (!have || !memcmp(have, patch, s->text.len < JMP_LEN ? s->text.len : JMP_LEN))
		return KEPT;
	return memcmp(have, s->text.bytes, s->text.len) ? OVERWRITTEN : RESTORED;
}

/* Returns a probe of the D program at the site, or NULL. */
static const struct image_probe *probe_at(const struct inproc_engine *e,
					  const struct inproc_site *s)
{
	for (uint32_t i = 0; i < s->points.n; i++)
		if (s->points.v[i].probe < e->base.image->nprobes)
			return &e->base.image->probes[s->points.v[i].probe];
	return NULL;
}

static void look_at_module(struct inproc_engine *e, struct inproc_process *p,
			   struct inproc_module *mod, struct text_page *t)
{
	const struct image_probe *first[CHANGES] = { NULL };
	const char *path = object_path(mod->object);
	uint32_t n[CHANGES] = { 0 };

	for (uint32_t i = 0; i < mod->nsites; i++) {
		const struct inproc_site *s = &p->sites.v[mod->first_site + i];
		const struct image_probe *ip = s->skipped ? NULL : probe_at(e, s);
		const enum change c = ip ? change_of(p->pid, t, s) : KEPT;

		if (!n[c]++)
			first[c] = ip;
	}
	for (enum change c = RESTORED; c < CHANGES; c++)
		if (n[c] && process_is_ours(e, p->pid)) {
			mod->changed = true;
			inproc_blind(
				e,
				"process %d has %s in %u probed place%s of %s (%s:%s, for instance): %s",
				(int)p->pid,
				c == RESTORED ? "restored its code" : "overwritten descry's jump",
				n[c], n[c] == 1 ? "" : "s", path, first[c]->func, first[c]->name,
				c == RESTORED ? "they do not fire any more"
					      : "they fire only when its new code leads there");
		}
}

void changed_look_at(struct inproc_engine *e, struct inproc_process *p)
{
	struct text_page t = { 0 };

	for (uint32_t i = 0; i < p->modules.n; i++) {
		struct inproc_module *mod = &p->modules.v[i];

		if (mod->enabled && !mod->gone && !mod->changed)
			look_at_module(e, p, mod, &t);
	}
}
