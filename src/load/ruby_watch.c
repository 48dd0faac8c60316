/* Watches the mappings of the Rubies whose methods an image probes. */
#include "load/ruby_watch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "probe/probe.h"
#include "program/runtime/ruby/ruby.h"
#include "program/symbol/symbol.h"

/* A process that is traced, or a child of one. */
struct seen {
	pid_t pid;
	bool ruby; /* has a file of Ruby's */
	bool compiled, reported;
};

struct ruby_watched {
	pid_t pid;
	struct map_watch *watch; /* NULL: not permitted, or the process has ended */
	bool follow;             /* its children are traced, too */
	VEC(struct seen) seen;   /* itself first */
};

enum { SEEN_MAX = 1024 }; /* the first of its children are forgotten */

static struct seen *known(struct ruby_watched *p, pid_t pid)
{
	for (uint32_t i = 0; i < p->seen.n; i++)
		if (p->seen.v[i].pid == pid)
			return &p->seen.v[i];
	return NULL;
}

/* Returns NULL for a process that is not traced. */
static struct seen *seen_of(struct ruby_watched *p, pid_t pid)
{
	struct seen *s = known(p, pid);

	if (s || !p->follow)
		return s;
	if (p->seen.n == SEEN_MAX)
		memmove(p->seen.v + 1, p->seen.v + 2, (--p->seen.n - 1) * sizeof(*p->seen.v));
	vec_push(&p->seen, (struct seen){ .pid = pid });
	return vec_last(&p->seen);
}

static void mapped(void *arg, pid_t pid, const struct mapping *m)
{
	const char *slash = strrchr(m->path, '/');
	const bool ruby = slash && strstr(slash, "ruby"), code = ruby_compiled_is(m);
	struct seen *s = ruby || code ? seen_of(arg, pid) : NULL;

	if (s && ruby)
		s->ruby = true;
	else if (s && s->ruby)
		s->compiled = true;
}

static void forked(void *arg, pid_t parent, pid_t child)
{
	const struct seen *from = known(arg, parent);
	struct seen *to = from && from->ruby ? seen_of(arg, child) : NULL;

	if (to)
		*to = (struct seen){ .pid = child, .ruby = true };
}

static void executed(void *arg, pid_t pid, uint64_t time)
{
	struct seen *s = known(arg, pid);

	if (s)
		*s = (struct seen){ .pid = pid };
}

static bool is_watched(const struct ruby_watch *w, pid_t pid)
{
	for (uint32_t i = 0; i < w->processes.n; i++)
		if (w->processes.v[i]->pid == pid)
			return true;
	return false;
}

static void add(struct ruby_watch *w, pid_t pid, bool follow)
{
	static const struct map_watch_ops ops = { mapped, forked, executed };
	struct ruby_watched *p;

	if (is_watched(w, pid))
		return;
	p = xcalloc(1, sizeof(*p));
	p->pid = pid;
	p->follow = follow;
	vec_push(&p->seen, ((struct seen){ .pid = pid, .ruby = true }));
	p->watch = map_watch_new(&ops, p, pid, false);
	vec_push(&w->processes, p);
}

void ruby_watch_begin(const struct image *img, bool follow, struct ruby_watch *ret)
{
	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct probe *p = img->probes[i].probe;

		if (p && p->misses_compiled && p->pid)
			add(ret, p->pid, follow);
	}
}

void ruby_watch_like(struct ruby_watch *w, pid_t pid, pid_t like)
{
	if (is_watched(w, like))
		add(w, pid, false);
}

/* The watch is read after the process was seen to have ended, so that no report of it is missed.
 * Its children may live longer. */
static void look(struct ruby_watched *p)
{
	const bool gone = !p->follow && kill(p->pid, 0) && errno == ESRCH;
	struct mappings maps = { 0 };

	map_watch_drain(p->watch);
	if (gone) {
		map_watch_free(p->watch);
		p->watch = NULL;
	} else if (p->seen.v[0].ruby && !p->seen.v[0].compiled) {
		err_free(mappings_read(p->pid, &maps));
		p->seen.v[0].compiled = ruby_compiled_in(&maps);
		mappings_free(&maps);
	}
}

bool ruby_watch_next(struct ruby_watch *w, pid_t *ret)
{
	for (uint32_t i = 0; i < w->processes.n; i++) {
		struct ruby_watched *p = w->processes.v[i];

		look(p);
		for (uint32_t k = 0; k < p->seen.n; k++) {
			struct seen *s = &p->seen.v[k];

			if (!s->compiled || s->reported)
				continue;
			s->reported = true;
			*ret = s->pid;
			return true;
		}
	}
	return false;
}

void ruby_watch_end(struct ruby_watch *w)
{
	for (uint32_t i = 0; i < w->processes.n; i++) {
		map_watch_free(w->processes.v[i]->watch);
		vec_fini(&w->processes.v[i]->seen);
		free(w->processes.v[i]);
	}
	vec_fini(&w->processes);
}
