/* Keeps the present and past mappings of each process: lists read from /proc, updated by the
 * kernel's reports of mmap(), fork() and exec().
 *
 * Text that another file replaces, or that exec() removes, is remembered with the time of its end.
 * The kernel does not report munmap(), so a mapping stays until another replaces it, or until there
 * are too many: any process can make mappings without end. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "base/sorted.h"
#include "program/symbol/symbol_private.h"

enum {
	REREAD_NS = 50 * 1000 * 1000, /* a miss reads maps again at most this often */
	PAST_MAX = 256,
	FIRST_PAGE = 4096,  /* bytes */
	TIDY_EVENTS = 4096, /* the kernel's events between two runs of process_tidy() */
	PID_END = 1 << 22,  /* limit of pids in all kernels */
	/* Mappings of a process that events may add to. Each event moves those behind it. */
	FOLLOWED_MAX = 8192,
	FORKED_MAX = 4096, /* mappings that a child gets from its parent's list */
	/* Mappings that a query looks at one by one. Lists may have 65,000. */
	LOOKS_FEW = 64,
};
/* See may_read_dropped(): nine times a fifth of a second. */
#define DROPPED_NS 1800000000ull

void process_drop(struct symbols *s, struct process *p)
{
	vec_fini(&p->maps);
	vec_fini(&p->past);
	vec_fini(&p->begins);
	jit_drop(s, p);
	free(p);
}

void process_maps_changed(struct process *p)
{
	p->firsts_known = p->begins_known = false;
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

static bool tidy_due(const struct symbols *s)
{
	return s->processes.n >= s->tidy_at || s->grown > s->limits.live_mappings / 4;
}

struct process *process_asked(struct symbols *s, pid_t pid)
{
	struct process *p = process_of(s, pid, NULL);

	p->asked = true;
	p->used_ns = now_ns();
	s->asked = p;
	if (tidy_due(s))
		process_tidy(s);
	return p;
}

/* --- lists --- */

static bool same_mapping(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->offset == b->offset && a->inode == b->inode &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Returns the index of the first mapping that ends behind addr. */
static uint32_t lower_bound(const struct process *p, uint64_t addr)
{
	return partition_point(p->maps.n, i, p->maps.v[i].m.end <= addr);
}

static void push_past(struct process *p, const struct live_mapping *l, uint64_t until)
{
	if (p->past.n == PAST_MAX) {
		p->past.n -= PAST_MAX / 2;
		memmove(p->past.v, p->past.v + PAST_MAX / 2, p->past.n * sizeof(*p->past.v));
	}
	vec_push(&p->past, (struct past_mapping){ *l, until });
}

/* Remembers a mapping that ends, if it is text of a file. */
static void keep_past(struct process *p, const struct live_mapping *l, uint64_t until)
{
	if (l->m.exec && l->m.path[0] == '/')
		push_past(p, l, until);
}

/* Adds a mapping and removes all that it overlaps. */
static void replace(struct process *p, struct live_mapping *new, uint64_t now)
{
	uint32_t from = lower_bound(p, new->m.start), to = from;

	for (; to < p->maps.n && p->maps.v[to].m.start < new->m.end; to++) {
		const struct live_mapping *old = &p->maps.v[to];

		if (!same_mapping(&old->m, &new->m)) {
			keep_past(p, old, now);
			continue;
		}
		/* The same mapping, reported again because it grew or has other rights. Keep the
		 * older time. */
		new->known = old->known;
		new->tried = old->tried;
		new->dropped = old->dropped;
		if (!new->m.time || (old->m.time && old->m.time < new->m.time))
			new->m.time = old->m.time;
	}
	process_maps_changed(p);
	if (from == to)
		(void)vec_add(&p->maps);
	else
		p->maps.n -= to - from - 1;
	memmove(p->maps.v + from + 1, p->maps.v + to, (p->maps.n - from - 1) * sizeof(*p->maps.v));
	p->maps.v[from] = *new;
}

/* Compares an old mapping with a list just read. Returns true when nothing in the list overlaps
 * it. */
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
		list[i].known = old->known;
		list[i].tried = old->tried;
		list[i].dropped = old->dropped;
		list[i].m.time = old->m.time;
	}
	if (!same && (overlapped || p->maps.n > FOLLOWED_MAX))
		keep_past(p, old, p->read_ns);
	return !overlapped && p->maps.n <= FOLLOWED_MAX;
}

/* Takes the mappings of a /proc/PID/maps. Keeps text of the same program that was unmapped since
 * (dlclose), as long as nothing has replaced it and the old list is not too long. */
static void take_read(struct symbols *s, struct process *p, const struct mappings *maps)
{
	const uint32_t n = maps->n;
	struct live_mapping *list = xcalloc(n, sizeof(*list)), *all;
	uint32_t at = 0, next = 0, total = 0;

	for (uint32_t i = 0; i < n; i++) {
		list[i].m = maps->v[i];
		list[i].m.path = intern_text(&s->paths, intern_str(&s->paths, list[i].m.path));
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
	process_maps_changed(p);
	vec_fini(&p->maps);
	p->maps.v = total ? xrealloc(all, total * sizeof(*all)) : all;
	p->maps.n = p->maps.cap = total;
	s->grown += total;
	free(list);
}

/* Clears the process, because another process has its number now. */
static void process_clear(struct symbols *s, struct process *p)
{
	p->exists = false;
	p->told = false;
	p->start_time = 0;
	p->read_ns = 0;
	process_maps_changed(p);
	p->maps.n = 0;
	p->past.n = 0;
	p->crowded = false;
	p->cut = false;
	p->dropped = false;
	p->home = (struct jit_home){ 0 };
	p->asked = false;
	p->jit_dropped = false;
	jit_drop(s, p);
}

void process_set_gone(struct symbols *s, pid_t pid, bool gone)
{
	if (pid < 0 || pid >= PID_END || (!s->gone && !gone))
		return;
	if (!s->gone)
		s->gone = xcalloc(PID_END / 8, 1);
	if (gone)
		s->gone[pid / 8] |= (uint8_t)(1 << pid % 8);
	else
		s->gone[pid / 8] &= (uint8_t) ~(1 << pid % 8);
}

bool process_was_dropped(const struct symbols *s, pid_t pid)
{
	return s->gone && pid >= 0 && pid < PID_END && (s->gone[pid / 8] >> pid % 8 & 1);
}

static void read_space(struct symbols *s, struct process *p)
{
	const struct mappings *maps;
	struct err *e = space_mappings(p->space, 0, &maps);

	p->read_ns = now_ns();
	if (!e)
		take_read(s, p, maps);
	err_free(e);
}

static void read_proc(struct symbols *s, struct process *p)
{
	uint64_t start, read_ns = now_ns();
	struct mappings maps = { 0 };
	struct err *e;

	p->read_ns = read_ns;
	start = procdir_start(p->pid);
	e = start ? mappings_read(p->pid, &maps) : NULL;
	p->denied = e && (e->code == EACCES || e->code == EPERM);
	if (!start || e) {
		err_free(e);
		p->exists = false;
		return;
	}
	/* A zombie has no mappings. Keep those it had. */
	p->exists = maps.n > 0;
	if (maps.n) {
		if (p->start_time && p->start_time != start)
			process_clear(s, p);
		process_set_gone(s, p->pid, false);
		p->read_ns = read_ns;
		p->exists = true;
		take_read(s, p, &maps);
		p->start_time = start;
	}
	mappings_free(&maps);
}

static void read_process(struct symbols *s, struct process *p)
{
	uint64_t took = now_ns();

	if (p->space)
		read_space(s, p);
	else
		read_proc(s, p);
	took = now_ns() - took;
	p->pause_ns = took * 9 > REREAD_NS ? took * 9 : REREAD_NS;
	if (p->dropped && s->dropped_ns < p->read_ns)
		s->dropped_ns = p->read_ns;
	if (p->dropped)
		s->dropped_ns += took * 9;
	p->dropped = false;
}

/* Returns true when a list that tidy_live() dropped may be read again: all of them together take a
 * tenth of the time, or a fifth of a second. Their processes may be many, and each query may be
 * about another one. */
static bool may_read_dropped(const struct symbols *s)
{
	return now_ns() + DROPPED_NS >= s->dropped_ns;
}

/* Returns true when p may be read again: not too often, when its list is long. */
static bool may_reread(const struct process *p)
{
	return now_ns() - p->read_ns >= p->pause_ns;
}

/* Returns true when the kernel has reported all of p's mappings since its start. Reading /proc then
 * adds nothing. */
static bool is_told(const struct symbols *s, const struct process *p)
{
	return p->told && !map_watch_lost(s->watch);
}

/* --- their files --- */

/* Returns the object of a mapping. past: opens the file only by its name, because another mapping
 * is at its addresses in /proc. */
static struct known_object *find_file(struct symbols *s, struct process *p, struct live_mapping *l,
				      bool past)
{
	if (!l->tried) {
		l->tried = true;
		if (!strcmp(l->m.path, "[vdso]"))
			l->known = p->space ? space_vdso(s, p->space, &l->m) : vdso_object(s);
		else if (l->m.path[0] == '/')
			l->known = mapping_object(s, p->space, p->pid, &l->m, past);
		if (l->known)
			l->dropped = false;
	}
	return l->known;
}

/* Sets the result of a query from a mapping's file. */
static void file_at(struct symbols *s, struct process *p, struct live_mapping *l, bool past,
		    struct process_at *at)
{
	at->m = &l->m;
	at->known = find_file(s, p, l, past);
	at->o = at->known ? at->known->o : NULL;
	at->lost = at->known ? !known_use(s, at->known) : l->dropped;
}

/* Opens the objects too, because their files may be out of reach after the process's end. */
static void remember(struct symbols *s, pid_t pid, bool again)
{
	struct process *p = process_asked(s, pid);

	symbols_watch_drain(s);
	jit_remember(s, p);
	/* While the kernel reports every mapping, there is nothing new to read. */
	if (!is_told(s, p) && (again || !p->dropped || may_read_dropped(s)) &&
	    (again || !p->read_ns || ((!s->watch || p->crowded) && may_reread(p))))
		read_process(s, p);
	for (uint32_t i = 0; i < p->maps.n; i++)
		if (p->maps.v[i].m.exec && !p->maps.v[i].dropped)
			(void)find_file(s, p, &p->maps.v[i], false);
}

void symbols_remember(struct symbols *s, pid_t pid)
{
	remember(s, pid, false);
}

void symbols_look(struct symbols *s, pid_t pid)
{
	remember(s, pid, true);
}

/* --- queries --- */

static bool find_mapping(const struct process *p, uint64_t addr, uint32_t *ret)
{
	*ret = lower_bound(p, addr);
	return *ret < p->maps.n && addr >= p->maps.v[*ret].m.start;
}

/* Finds the mapping at an address. Reads the list again when there is none. Returns false when
 * there is still none. */
static bool ask_mapping(struct symbols *s, struct process *p, uint64_t addr, uint32_t *ret)
{
	symbols_watch_drain(s);
	if (p->dropped) {
		if (!may_read_dropped(s))
			return false;
		read_process(s, p);
	}
	if (p->crowded ? may_reread(p) : !p->read_ns && !is_told(s, p))
		read_process(s, p);
	if (find_mapping(p, addr, ret))
		return true;
	if (p->read_ns && (!p->exists || !may_reread(p)))
		return false;
	read_process(s, p);
	return find_mapping(p, addr, ret);
}

/* Returns the past mapping of an address at this time (0: the last of all), or NULL. */
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

/* Notes for each mapping the first one of its file: the lowest of those of one path, without
 * another file's between them. Of mappings without a file, only adjacent ones are of one path. */
static void find_firsts(struct symbols *s, struct process *p)
{
	struct live_mapping *v = p->maps.v;
	uint32_t before = 0; /* the last mapping of a file */

	if (p->firsts_known)
		return;
	for (uint32_t i = 0; i < p->maps.n; i++) {
		const bool file = v[i].m.path[0] == '/';
		const uint32_t other = file ? before : i - 1;

		v[i].first = i && v[other].m.path == v[i].m.path ? v[other].first : i;
		before = file ? i : before;
	}
	s->looks += p->maps.n;
	p->firsts_known = true;
}

/* Returns the index of the file's lowest mapping, of those adjacent to i. */
static uint32_t first_of(struct symbols *s, struct process *p, uint32_t i)
{
	const struct live_mapping *v = p->maps.v;
	const uint32_t low = i > LOOKS_FEW ? i - LOOKS_FEW : 0;
	uint32_t first = i;

	for (uint32_t k = i; k-- > low; s->looks++) {
		if (v[k].m.path == v[i].m.path) /* interned */
			first = k;
		else if (v[k].m.path[0] == '/')
			return first;
	}
	if (!low)
		return first;
	find_firsts(s, p);
	return v[i].first;
}

/* Returns where the file begins in memory, by its lowest mapping. The kernel reports only text, so
 * the file's mappings in front of it may not be known. */
static uint64_t load_address(struct symbols *s, struct process *p, uint32_t i)
{
	const struct mapping *first = &p->maps.v[first_of(s, p, i)].m;

	return first->path[0] == '/' && first->start >= first->offset ? first->start - first->offset
								      : first->start;
}

/* Returns true for an address in the first page of m's file, in front of m. Keys use this address
 * for a module, but the kernel reports only text. */
static bool is_beginning(const struct mapping *m, uint64_t addr)
{
	return m->path[0] == '/' && m->start >= m->offset && addr < m->start &&
	       addr - (m->start - m->offset) < FIRST_PAGE;
}

static int compare_begin(const void *pa, const void *pb)
{
	const struct file_begin *a = pa, *b = pb;

	return a->at != b->at ? COMPARE(a->at, b->at) : COMPARE(a->mapping, b->mapping);
}

static void find_begins(struct symbols *s, struct process *p)
{
	if (p->begins_known)
		return;
	p->begins.n = 0;
	for (uint32_t i = 0; i < p->maps.n; i++) {
		const struct mapping *m = &p->maps.v[i].m;

		if (m->path[0] == '/' && m->start >= m->offset)
			vec_push(&p->begins, ((struct file_begin){ m->start - m->offset, i }));
	}
	if (p->begins.n)
		qsort(p->begins.v, p->begins.n, sizeof(*p->begins.v), compare_begin);
	s->looks += p->maps.n;
	p->begins_known = true;
}

/* Returns the first mapping behind addr in the first page of whose file addr is, or NULL. */
static struct live_mapping *begins_at(struct symbols *s, struct process *p, uint64_t addr)
{
	const uint64_t page = addr & ~(FIRST_PAGE - 1ull);
	const uint32_t from = lower_bound(p, addr);
	uint32_t i = from;

	if (p->maps.n - from <= LOOKS_FEW) {
		for (; i < p->maps.n && !is_beginning(&p->maps.v[i].m, addr); i++)
			s->looks++;
		return i < p->maps.n ? &p->maps.v[i] : NULL;
	}
	find_begins(s, p);
	i = partition_point(p->begins.n, k,
			    p->begins.v[k].at < page ||
				    (p->begins.v[k].at == page && p->begins.v[k].mapping < from));
	return i < p->begins.n && p->begins.v[i].at == page ? &p->maps.v[p->begins.v[i].mapping]
							    : NULL;
}

static bool find_module(struct symbols *s, struct process *p, uint64_t time, uint64_t addr,
			struct process_at *ret)
{
	struct live_mapping *l = begins_at(s, p, addr);
	bool past = false;

	for (uint32_t i = p->past.n; i-- && !l && !time;) {
		past = is_beginning(&p->past.v[i].at.m, addr);
		if (past)
			l = &p->past.v[i].at;
	}
	if (l) {
		ret->base = l->m.start - l->m.offset;
		file_at(s, p, l, past, ret);
	}
	return l;
}

bool process_find(struct symbols *s, struct process *p, uint64_t time, uint64_t addr,
		  struct process_at *ret)
{
	struct live_mapping *past = NULL;
	uint32_t i;
	bool found = ask_mapping(s, p, addr, &i);

	/* Without a time, use the present mapping, or else the last. */
	if (time || !found)
		past = find_past(p, addr, time);
	if (past) {
		ret->base = past->m.start - past->m.offset;
		file_at(s, p, past, true, ret);
	} else if (found) {
		ret->base = load_address(s, p, i);
		file_at(s, p, &p->maps.v[i], false, ret);
	}
	return past || found || find_module(s, p, time, addr, ret);
}

void symbols_space(struct symbols *s, struct space *space)
{
	struct process *p = process_of(s, space->pid, NULL);

	process_clear(s, p);
	p->space = space;
}

void symbols_space_gone(struct symbols *s, struct space *space)
{
	struct process *p = process_of(s, space->pid, NULL);

	process_clear(s, p);
	p->space = NULL;
}

void symbols_refresh(struct symbols *s, pid_t pid)
{
	uint64_t *slot = hash_get(&s->processes, &pid, sizeof(pid));
	struct process *p;

	if (!slot)
		return;
	p = (struct process *)(uintptr_t)*slot;
	process_maps_changed(p);
	p->maps.n = 0;
	p->past.n = 0;
	p->told = false;
	p->read_ns = 0;
	jit_drop(s, p);
}

/* --- events from watch.c --- */

static struct process *watched(struct symbols *s, pid_t pid)
{
	struct process *p = process_of(s, pid, NULL);

	p->used_ns = now_ns();
	process_set_gone(s, pid, false);
	return p;
}

/* Runs process_tidy() when it is due. Called before a process is looked up, because process_tidy()
 * may drop it. */
static void told(struct symbols *s, pid_t pid)
{
	s->told_of = pid;
	if (++s->ntold % TIDY_EVENTS && !tidy_due(s))
		return;
	process_tidy(s);
}

/* Reads a list that has become too long, which leaves what is mapped now. Of a process that has
 * many mappings, or has ended, events add no more. */
static void process_prune(struct symbols *s, struct process *p)
{
	read_process(s, p);
	if (p->maps.n <= FOLLOWED_MAX / 2)
		return;
	p->crowded = p->cut = true;
	p->told = false;
}

void process_map(struct symbols *s, pid_t pid, const struct mapping *m)
{
	struct live_mapping new = { .m = *m };
	struct process *p;

	told(s, pid);
	p = watched(s, pid);
	if (p->crowded)
		return;
	new.m.path = intern_text(&s->paths, intern_str(&s->paths, m->path));
	/* The known mapping is newer, so this one came before it. */
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
	s->grown++;
	if (p->maps.n > FOLLOWED_MAX)
		process_prune(s, p);
}

void process_forked(struct symbols *s, pid_t parent, pid_t child)
{
	struct process *p, *c;

	told(s, parent);
	p = watched(s, parent);
	c = watched(s, child);
	if (!p->read_ns && !p->maps.n)
		read_process(s, p);
	process_clear(s, c);
	/* The child's list is read when it is queried, if the child lives then. */
	if (p->cut || p->maps.n > FORKED_MAX) {
		c->cut = true;
		return;
	}
	c->told = s->watch && p->maps.n;
	s->grown += p->maps.n;
	vec_reserve(&c->maps, p->maps.n);
	if (p->maps.n)
		memcpy(c->maps.v, p->maps.v, p->maps.n * sizeof(*p->maps.v));
	c->maps.n = p->maps.n;
}

void process_exec(struct symbols *s, pid_t pid, uint64_t time)
{
	struct process *p;
	uint32_t kept = 0;

	told(s, pid);
	p = watched(s, pid);
	/* A list read since the exec is of the new program, except for mappings known to be
	 * older. */
	for (uint32_t i = 0; i < p->maps.n; i++) {
		const struct live_mapping *l = &p->maps.v[i];

		if ((l->m.time ? l->m.time : p->read_ns) > time)
			p->maps.v[kept++] = *l;
		else
			keep_past(p, l, time);
	}
	process_maps_changed(p);
	p->maps.n = kept;
	p->crowded = false;
	p->told = s->watch != NULL;
	if (p->read_ns && p->read_ns <= time)
		p->read_ns = 0;
	jit_drop(s, p);
	p->home.noted_ns = p->home.wait_ns = 0; /* its user may have changed */
}
