/* What each process has mapped, and had: lists read from /proc and kept by what the kernel tells of mmap(), fork() and exec().
 *
 * Text that gives way to another file's, or that exec() takes away, is remembered with the time until which it was there. A
 * munmap() is not told of: a mapping stays until something takes its place.
 */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/procdir.h"
#include "program/symbol/cache.h"

enum {
	REREAD_NS = 50 * 1000 * 1000, /* a miss reads maps again at most this often */
	PAST_MAX = 256,
	FIRST_PAGE = 4096,  /* bytes */
	WATCHED_MAX = 8192, /* then the mappings of processes that are gone go too */
};

void process_drop(struct process *p)
{
	vec_fini(&p->maps);
	vec_fini(&p->past);
	jit_drop(p);
	free(p);
}

struct process *process_of(struct symbols *s, pid_t pid, bool *ret_new)
{
	uint64_t *slot = hash_put(&s->processes, &pid, sizeof(pid), ret_new);

	if (!*slot) {
		struct process *p = xcalloc(1, sizeof(*p));

		p->pid = pid;
		p->jit_size = -1;
		*slot = (uintptr_t)p;
	}
	return (struct process *)(uintptr_t)*slot;
}

/* --- lists --- */

static bool same_mapping(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->offset == b->offset && a->inode == b->inode &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* The first mapping that ends behind addr. */
static uint32_t lower_bound(const struct process *p, uint64_t addr)
{
	uint32_t lo = 0, hi = p->maps.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->maps.v[mid].m.end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void push_past(struct process *p, const struct live_mapping *l, uint64_t until)
{
	if (p->past.n == PAST_MAX) {
		p->past.n -= PAST_MAX / 2;
		memmove(p->past.v, p->past.v + PAST_MAX / 2, p->past.n * sizeof(*p->past.v));
	}
	vec_push(&p->past, (struct past_mapping){ *l, until });
}

/* Text of a file is remembered when it goes. */
static void keep_past(struct process *p, const struct live_mapping *l, uint64_t until)
{
	if (l->m.exec && l->m.path[0] == '/')
		push_past(p, l, until);
}

/* A mapping in the place of all that it overlaps. */
static void replace(struct process *p, struct live_mapping *new, uint64_t now)
{
	uint32_t from = lower_bound(p, new->m.start), to = from;

	for (; to < p->maps.n && p->maps.v[to].m.start < new->m.end; to++) {
		const struct live_mapping *old = &p->maps.v[to];

		if (!same_mapping(&old->m, &new->m)) {
			keep_past(p, old, now);
			continue;
		}
		/* Told of again: grown, or with other rights. It has been there since then. */
		new->o = old->o;
		new->tried = old->tried;
		if (!new->m.time || (old->m.time && old->m.time < new->m.time))
			new->m.time = old->m.time;
	}
	if (from == to)
		(void)vec_add(&p->maps);
	else
		p->maps.n -= to - from - 1;
	memmove(p->maps.v + from + 1, p->maps.v + to, (p->maps.n - from - 1) * sizeof(*p->maps.v));
	p->maps.v[from] = *new;
}

/* What an old mapping is to a list just read. True: nothing of the list is where it was. */
static bool outlives(struct process *p, const struct live_mapping *old, struct live_mapping *list,
		     uint32_t n, uint32_t *at)
{
	bool overlapped = false, same = false;

	while (*at < n && list[*at].m.end <= old->m.start)
		++*at;
	for (uint32_t i = *at; i < n && list[i].m.start < old->m.end; i++) {
		overlapped = true;
		if (!same_mapping(&old->m, &list[i].m))
			continue;
		same = true;
		list[i].o = old->o;
		list[i].tried = old->tried;
		list[i].m.time = old->m.time;
	}
	if (overlapped && !same)
		keep_past(p, old, p->read_ns);
	return !overlapped;
}

/* Takes the mappings of a /proc/PID/maps. Text of the same program that was unmapped since (dlclose) stays known as long as
 * nothing took its place. */
static void take_read(struct symbols *s, struct process *p, const struct mapping *maps, uint32_t n)
{
	struct live_mapping *list = xcalloc(n, sizeof(*list)), *all;
	uint32_t at = 0, next = 0, total = 0;

	for (uint32_t i = 0; i < n; i++) {
		list[i].m = maps[i];
		list[i].m.path =
			(char *)intern_text(&s->names, intern_str(&s->names, maps[i].path));
	}
	all = xcalloc(n + p->maps.n, sizeof(*all));
	for (uint32_t i = 0; i < p->maps.n; i++) {
		const struct live_mapping *old = &p->maps.v[i];

		if (!old->m.exec || !outlives(p, old, list, n, &at))
			continue;
		while (next < n && list[next].m.start < old->m.start)
			all[total++] = list[next++];
		all[total++] = *old;
	}
	while (next < n)
		all[total++] = list[next++];
	vec_fini(&p->maps);
	p->maps.v = all;
	p->maps.n = p->maps.cap = total;
	free(list);
}

/* Its number is another's now. */
static void process_clear(struct process *p)
{
	p->exists = false;
	p->told = false;
	p->start_time = 0;
	p->read_ns = 0;
	p->maps.n = 0;
	p->past.n = 0;
	p->home = (struct jit_home){ 0 };
	jit_drop(p);
}

static void read_process(struct symbols *s, struct process *p)
{
	uint64_t start, read_ns = now_ns();
	struct mapping *maps;
	uint32_t n;
	struct err *e;

	p->read_ns = read_ns;
	start = procdir_start(p->pid);
	e = start ? mappings_read(p->pid, &maps, &n) : NULL;
	if (!start || e) {
		err_free(e);
		p->exists = false;
		return;
	}
	/* A zombie has no mappings: what it had is kept. */
	p->exists = n > 0;
	if (n) {
		if (p->start_time && p->start_time != start)
			process_clear(p);
		p->read_ns = read_ns;
		p->exists = true;
		take_read(s, p, maps, n);
		p->start_time = start;
	}
	mappings_free(maps, n);
}

/* Has the kernel told of all that p has mapped since it began? Then /proc has nothing to add. */
static bool is_told(const struct symbols *s, const struct process *p)
{
	return p->told && !map_watch_lost(s->watch);
}

/* --- their files --- */

/* Of what was there, the file can be opened by its name alone: at its addresses in /proc is another one. */
static struct object *file_object(struct symbols *s, struct process *p, struct live_mapping *l,
				  bool past)
{
	if (!l->tried) {
		l->tried = true;
		if (!strcmp(l->m.path, "[vdso]"))
			l->o = vdso_object(s);
		else if (l->m.path[0] == '/')
			l->o = mapping_object(s, p->pid, &l->m,
					      past ? mapping_open_path_gone : mapping_open_path);
	}
	return l->o;
}

/* Opens the objects too: their files may be out of reach when the process is gone. */
void symbols_remember(struct symbols *s, pid_t pid)
{
	struct process *p = process_of(s, pid, NULL);

	symbols_watch_drain(s);
	jit_remember(p);
	/* While the kernel tells of every mapping, there is nothing new to read. */
	if (!is_told(s, p) && (!p->read_ns || (!s->watch && now_ns() - p->read_ns >= REREAD_NS)))
		read_process(s, p);
	for (uint32_t i = 0; i < p->maps.n; i++)
		if (p->maps.v[i].m.exec)
			file_object(s, p, &p->maps.v[i], false);
}

/* --- asking --- */

static bool find_mapping(const struct process *p, uint64_t addr, uint32_t *ret)
{
	*ret = lower_bound(p, addr);
	return *ret < p->maps.n && addr >= p->maps.v[*ret].m.start;
}

/* The mapping at an address, read again when there is none; false: there is none. */
static bool ask_mapping(struct symbols *s, struct process *p, uint64_t addr, uint32_t *ret)
{
	symbols_watch_drain(s);
	if (!p->read_ns && !is_told(s, p))
		read_process(s, p);
	if (find_mapping(p, addr, ret))
		return true;
	if (p->read_ns && (!p->exists || now_ns() - p->read_ns < REREAD_NS))
		return false;
	read_process(s, p);
	return find_mapping(p, addr, ret);
}

/* What was mapped at an address at that time; 0: the last of all that were. */
static struct live_mapping *find_past(struct process *p, uint64_t addr, uint64_t time)
{
	for (uint32_t i = p->past.n; i--;) {
		struct past_mapping *past = &p->past.v[i];

		if (addr >= past->at.m.start && addr < past->at.m.end &&
		    (!time || (past->at.m.time <= time && time < past->until)))
			return &past->at;
	}
	return NULL;
}

/* Where the file begins in memory, by the lowest of its mappings that adjoin i: only text is told of, what of the file lies in front
 * of it may not be known. */
static uint64_t load_address(const struct process *p, uint32_t i)
{
	const struct live_mapping *v = p->maps.v;
	const struct mapping *first = &v[i].m;

	for (uint32_t k = i; k--;) {
		if (v[k].m.path == first->path) /* interned */
			first = &v[k].m;
		else if (v[k].m.path[0] == '/')
			break;
	}
	return first->path[0] == '/' && first->start >= first->offset ? first->start - first->offset
								      : first->start;
}

/* Only text is told of; where a module begins, which stands for it in keys, is in front of that: the file's first page. */
static bool is_beginning(const struct mapping *m, uint64_t addr)
{
	return m->path[0] == '/' && m->start >= m->offset && addr < m->start &&
	       addr - (m->start - m->offset) < FIRST_PAGE;
}

static bool find_module(struct symbols *s, struct process *p, uint64_t addr, struct process_at *ret)
{
	struct live_mapping *l = NULL;
	bool past = false;
	uint32_t i;

	for (i = lower_bound(p, addr); i < p->maps.n && !l; i++)
		if (is_beginning(&p->maps.v[i].m, addr))
			l = &p->maps.v[i];
	for (i = p->past.n; i-- && !l && !s->as_of;) {
		past = is_beginning(&p->past.v[i].at.m, addr);
		if (past)
			l = &p->past.v[i].at;
	}
	if (l)
		*ret = (struct process_at){ &l->m, l->m.start - l->m.offset,
					    file_object(s, p, l, past) };
	return l;
}

bool process_find(struct symbols *s, struct process *p, uint64_t addr, struct process_at *ret)
{
	struct live_mapping *past = NULL;
	uint32_t i;
	bool found = ask_mapping(s, p, addr, &i);

	/* Without a time: what is there, or else was there last. */
	if (s->as_of || !found)
		past = find_past(p, addr, s->as_of);
	if (past)
		*ret = (struct process_at){ &past->m, past->m.start - past->m.offset,
					    file_object(s, p, past, true) };
	else if (found)
		*ret = (struct process_at){ &p->maps.v[i].m, load_address(p, i),
					    file_object(s, p, &p->maps.v[i], false) };
	return past || found || find_module(s, p, addr, ret);
}

void symbols_refresh(struct symbols *s, pid_t pid)
{
	uint64_t *slot = hash_get(&s->processes, &pid, sizeof(pid));
	struct process *p;

	if (!slot)
		return;
	p = (struct process *)(uintptr_t)*slot;
	p->maps.n = 0;
	p->past.n = 0;
	p->told = false;
	p->read_ns = 0;
	jit_drop(p);
}

/* --- what watch.c hears --- */

static void forget_gone(struct symbols *s)
{
	uint64_t *val;
	uint32_t pos = 0;
	const void *key;
	size_t len;

	while (hash_next(&s->processes, &pos, &key, &len, &val)) {
		struct process *p = (struct process *)(uintptr_t)*val;

		if (!p->exists && p->maps.n && !procdir_start(p->pid)) {
			vec_fini(&p->maps);
			vec_fini(&p->past);
		}
	}
	s->nwatched = 0;
}

static struct process *watched(struct symbols *s, pid_t pid)
{
	bool is_new;
	struct process *p = process_of(s, pid, &is_new);

	if (is_new && ++s->nwatched > WATCHED_MAX)
		forget_gone(s);
	return p;
}

void process_map(struct symbols *s, pid_t pid, struct mapping *m)
{
	struct process *p = watched(s, pid);
	struct live_mapping new = { .m = *m };

	new.m.path = (char *)intern_text(&s->names, intern_str(&s->names, m->path));
	free(m->path);
	/* What is known is newer: this one was there before it. */
	for (uint32_t i = lower_bound(p, m->start); i < p->maps.n && p->maps.v[i].m.start < m->end;
	     i++) {
		struct mapping *known = &p->maps.v[i].m;
		uint64_t since = known->time ? known->time : p->read_ns;

		if (since <= m->time)
			continue;
		if (same_mapping(m, known))
			known->time = m->time;
		else
			keep_past(p, &new, since);
		return;
	}
	replace(p, &new, m->time);
}

void process_forked(struct symbols *s, pid_t parent, pid_t child)
{
	struct process *p = watched(s, parent), *c = watched(s, child);

	if (!p->read_ns && !p->maps.n)
		read_process(s, p);
	process_clear(c);
	c->told = s->watch && p->maps.n;
	vec_reserve(&c->maps, p->maps.n);
	if (p->maps.n)
		memcpy(c->maps.v, p->maps.v, p->maps.n * sizeof(*p->maps.v));
	c->maps.n = p->maps.n;
}

void process_exec(struct symbols *s, pid_t pid, uint64_t time)
{
	struct process *p = watched(s, pid);
	uint32_t kept = 0;

	/* A list read since then is of the new program, but for what the old one is known to have had. */
	for (uint32_t i = 0; i < p->maps.n; i++) {
		const struct live_mapping *l = &p->maps.v[i];

		if ((l->m.time ? l->m.time : p->read_ns) > time)
			p->maps.v[kept++] = *l;
		else
			keep_past(p, l, time);
	}
	p->maps.n = kept;
	p->told = s->watch != NULL;
	if (p->read_ns && p->read_ns <= time)
		p->read_ns = 0;
	jit_drop(p);
	p->home.noted_ns = p->home.wait_ns = 0; /* it may be another user's now */
}
