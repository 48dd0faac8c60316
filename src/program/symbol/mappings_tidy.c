/* Drops what is known of the mappings of processes when it is too much: first of those that have
 * ended, then the lists of live ones. A later query reads a list again. */
#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "program/symbol/symbol_private.h"

enum { PATHS_FEW = 4096 };
/* Records not read yet may still name a process that ended a moment ago. */
#define RECENT_NS 10000000000ull

static bool is_gone(const struct process *p)
{
	return !p->space && kill(p->pid, 0) && errno == ESRCH;
}

struct candidate {
	struct process *p;
	bool wanted; /* it was queried, or may be */
};

static int compare_candidate(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->wanted != b->wanted)
		return a->wanted ? 1 : -1;
	return COMPARE(a->p->used_ns, b->p->used_ns);
}

static uint32_t mappings_of(const struct process *p)
{
	return p->maps.n + p->past.n;
}

static int compare_live(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->wanted != b->wanted)
		return a->wanted ? 1 : -1;
	return COMPARE(mappings_of(b->p), mappings_of(a->p));
}

/* Drops lists of live processes when all have too many mappings: first the longest of those never
 * queried. A later query reads its list again. */
static void tidy_live(struct symbols *s, struct candidate *v, uint32_t n, uint64_t nmappings)
{
	if (nmappings <= s->limits.live_mappings)
		return;
	qsort(v, n, sizeof(*v), compare_live);
	for (uint32_t i = 0; i < n && nmappings > s->limits.live_mappings / 4 * 3; i++) {
		struct process *p = v[i].p;

		nmappings -= mappings_of(p);
		process_maps_changed(p);
		vec_fini(&p->maps);
		vec_fini(&p->past);
		vec_fini(&p->begins);
		p->told = false;
		p->cut = p->dropped = true;
	}
}

/* Drops the paths that no mapping has. */
static void tidy_paths(struct symbols *s)
{
	struct intern kept;
	uint32_t pos = 0;
	const void *key;
	uint64_t *val;
	size_t len;

	if (s->paths.n < PATHS_FEW || s->paths.n < 2 * s->npaths)
		return;
	intern_init(&kept);
	while (hash_next(&s->processes, &pos, &key, &len, &val)) {
		struct process *p = (struct process *)(uintptr_t)*val;

		for (uint32_t i = 0; i < mappings_of(p); i++) {
			struct mapping *m = i < p->maps.n ? &p->maps.v[i].m
							  : &p->past.v[i - p->maps.n].at.m;

			m->path = intern_text(&kept, intern_str(&kept, m->path));
		}
	}
	intern_fini(&s->paths);
	s->paths = kept;
	s->npaths = kept.n;
}

void process_tidy(struct symbols *s)
{
	VEC(struct candidate) gone = { 0 }, live = { 0 };
	uint64_t *val, now = now_ns(), nlive = 0;
	uint32_t pos = 0, nmappings = 0, left;
	const void *key;
	size_t len;

	while (hash_next(&s->processes, &pos, &key, &len, &val)) {
		struct process *p = (struct process *)(uintptr_t)*val;
		bool busy = p == s->asked || p->pid == s->told_of;

		if (busy || !is_gone(p)) {
			nlive += mappings_of(p);
			if (!busy && !p->space && mappings_of(p))
				vec_push(&live, (struct candidate){ p, p->asked });
			continue;
		}
		nmappings += mappings_of(p);
		vec_push(&gone, (struct candidate){ p, p->asked || now - p->used_ns < RECENT_NS });
	}
	left = gone.n;
	if (left > s->limits.processes || nmappings > s->limits.mappings) {
		qsort(gone.v, gone.n, sizeof(*gone.v), compare_candidate);
		for (uint32_t i = 0;
		     left > s->limits.processes / 4 * 3 || nmappings > s->limits.mappings / 4 * 3;
		     i++, left--) {
			struct process *p = gone.v[i].p;

			nmappings -= mappings_of(p);
			process_set_gone(s, p->pid, true);
			hash_del(&s->processes, &p->pid, sizeof(p->pid));
			process_drop(s, p);
		}
	}
	tidy_live(s, live.v, live.n, nlive);
	s->tidy_at = s->processes.n + s->limits.processes / 4 + 1;
	s->grown = 0;
	vec_fini(&gone);
	vec_fini(&live);
	tidy_paths(s);
}
