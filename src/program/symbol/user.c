/* Addresses of processes: mapping -> object -> function; JIT code by /tmp/perf-PID.map; the vdso from our own copy. */
#include <ctype.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "program/symbol/cache.h"

enum {
	REREAD_NS = 50 * 1000 * 1000, /* a miss reads maps again at most this often */
	PAST_MAX = 256,
};

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct symbols *symbols_new(void)
{
	struct symbols *s = xcalloc(1, sizeof(*s));

	intern_init(&s->names);
	return s;
}

static void forget_maps(struct process *p)
{
	mappings_free(p->maps, p->nmaps);
	free(p->objects);
	free(p->tried);
	p->maps = NULL;
	p->objects = NULL;
	p->tried = NULL;
	p->nmaps = 0;
}

static void forget_past(struct process *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(p->past.v[i].m.path);
	p->past.n -= n;
	if (n && p->past.n)
		memmove(p->past.v, p->past.v + n, p->past.n * sizeof(*p->past.v));
}

void symbols_free(struct symbols *s)
{
	uint64_t *val;
	uint32_t pos = 0;
	const void *key;
	size_t len;

	if (!s)
		return;
	while (hash_next(&s->processes, &pos, &key, &len, &val)) {
		struct process *p = (struct process *)(uintptr_t)*val;

		forget_maps(p);
		forget_past(p, p->past.n);
		vec_fini(&p->past);
		vec_fini(&p->jit);
		free(p);
	}
	source_fini(s);
	for (uint32_t i = 0; i < s->all_objects.n; i++)
		object_free(s->all_objects.v[i]);
	map_watch_free(s->watch);
	object_free(s->vdso);
	vec_fini(&s->all_objects);
	hash_fini(&s->processes);
	hash_fini(&s->objects);
	hash_fini(&s->demangled);
	intern_fini(&s->names);
	kallsyms_fini(&s->kernel);
	free(s);
}

const char *symbols_demangle(struct symbols *s, const char *name)
{
	uint32_t id;
	uint64_t *slot;
	bool is_new;

	if (name[0] != '_' || (strncmp(name, "_Z", 2) && strncmp(name, "_R", 2) &&
			       strncmp(name, "__Z", 3) && strncmp(name, "_D", 2)))
		return intern_text(&s->names, intern_str(&s->names, name));
	id = intern_str(&s->names, name);
	slot = hash_put(&s->demangled, &id, sizeof(id), &is_new);
	if (is_new) {
		char *text = symbol_demangle(name);

		*slot = text ? intern_str(&s->names, text) : id;
		free(text);
	}
	return intern_text(&s->names, (uint32_t)*slot);
}

/* --- objects --- */

/* An object by its identity; path is opened when it is new. */
static struct object *cached_object(struct symbols *s, uint64_t dev, uint64_t inode,
				    const char *path,
				    char *(*open_path)(pid_t, const struct mapping *), pid_t pid,
				    const struct mapping *m)
{
	cleanup_free char *key =
		xasprintf("%llx:%llx:%s", (unsigned long long)dev, (unsigned long long)inode, path);
	cleanup_free char *file = NULL;
	struct object *o = NULL;
	uint64_t *slot = hash_get(&s->objects, key, strlen(key));
	struct err *e;

	if (slot && s->all_objects.v[*slot - 1])
		return s->all_objects.v[*slot - 1];
	file = open_path ? open_path(pid, m) : xstrdup(path);
	if (!file)
		return NULL; /* not remembered: another process may give a way to it */
	e = object_open(file, &o);
	if (e) {
		err_free(e);
		return NULL;
	}
	vec_push(&s->all_objects, o);
	*hash_put(&s->objects, key, strlen(key), NULL) = s->all_objects.n;
	return o;
}

static uint64_t device(uint64_t major, uint64_t minor)
{
	return major << 32 | minor;
}

struct object *symbols_object(struct symbols *s, pid_t pid, const struct mapping *m)
{
	if (m->path[0] != '/')
		return NULL;
	return cached_object(s, device(m->dev_major, m->dev_minor), m->inode, m->path,
			     mapping_open_path, pid, m);
}

struct object *symbols_object_at(struct symbols *s, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return NULL;
	return cached_object(s, st.st_dev, st.st_ino, path, NULL, 0, NULL);
}

/* The vdso is the same in every 64-bit process: ours stands for all. */
static struct object *vdso(struct symbols *s)
{
	const uint8_t *p = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct mapping *maps;
	uint32_t n;
	struct err *e;

	if (s->vdso_tried)
		return s->vdso;
	s->vdso_tried = true;
	e = mappings_read(getpid(), &maps, &n);
	if (e) {
		err_free(e);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (maps[i].start != (uintptr_t)p || strcmp(maps[i].path, "[vdso]"))
			continue;
		e = object_open_memory("[vdso]", p, maps[i].end - maps[i].start, &s->vdso);
		err_free(e);
	}
	mappings_free(maps, n);
	return s->vdso;
}

/* --- processes --- */

static uint64_t start_time(pid_t pid)
{
	cleanup_free char *text = NULL;
	char path[64];
	unsigned long long t = 0;
	const char *p;
	size_t n;
	struct err *e;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	e = io_read_file(path, &text, &n);
	if (e) {
		err_free(e);
		return 0;
	}
	p = strrchr(text, ')'); /* the name may hold anything */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		t = strtoull(p + 1, NULL, 10);
	return t;
}

static char *past_open_path(pid_t pid, const struct mapping *m)
{
	char *path = xasprintf("/proc/%d/root%s", (int)pid, m->path);
	struct stat st;

	/* gone: as it is from here */
	if (stat(path, &st) < 0) {
		free(path);
		path = xstrdup(m->path);
	}
	if (!stat(path, &st) && st.st_ino == m->inode)
		return path;
	free(path);
	return NULL;
}

static bool overlaps(const struct mapping *m, const struct mapping *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (m->start < list[i].end && list[i].start < m->end)
			return true;
	return false;
}

static int compare_start(const void *pa, const void *pb)
{
	const struct mapping *a = pa, *b = pb;

	return (a->start > b->start) - (a->start < b->start);
}

static bool same_mapping(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->offset == b->offset && a->inode == b->inode &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Takes m's path. */
static void push_past(struct process *p, struct mapping *m, struct object *o, uint64_t until)
{
	if (p->past.n == PAST_MAX)
		forget_past(p, PAST_MAX / 2);
	vec_push(&p->past,
		 (struct past_mapping){ .m = *m, .o = o, .tried = o != NULL, .until = until });
	m->path = NULL;
}

/* What p had at i gives way to the n of list: text of another file is remembered. */
static void give_way(struct process *p, uint32_t i, const struct mapping *list, uint32_t n,
		     uint64_t now)
{
	if (!p->maps[i].exec || p->maps[i].path[0] != '/')
		return;
	for (uint32_t k = 0; k < n; k++)
		if (same_mapping(&p->maps[i], &list[k]))
			return;
	push_past(p, &p->maps[i], p->objects[i], now);
}

/* Takes n mappings as p's. Text that was unmapped since (dlclose) stays known as long as nothing took its place. */
static void set_maps(struct process *p, struct mapping *maps, uint32_t n, bool same_program)
{
	VEC(struct mapping) all = { .v = maps, .n = n, .cap = n };

	for (uint32_t i = 0; same_program && i < p->nmaps; i++) {
		if (overlaps(&p->maps[i], maps, n)) {
			for (uint32_t k = 0; k < n; k++)
				if (same_mapping(&p->maps[i], &maps[k]))
					maps[k].time = p->maps[i].time;
			give_way(p, i, maps, n, p->read_ns);
			continue;
		}
		if (!p->maps[i].exec)
			continue;
		vec_push(&all, p->maps[i]);
		p->maps[i].path = NULL;
		maps = all.v;
	}
	forget_maps(p);
	if (all.n > n)
		qsort(all.v, all.n, sizeof(*all.v), compare_start);
	p->maps = all.v;
	p->nmaps = all.n;
	p->objects = xcalloc(all.n + 1, sizeof(*p->objects));
	p->tried = xcalloc(all.n + 1, sizeof(*p->tried));
}

/* Adds n mappings, given in address order, to p's: all that they do not overlap stays. */
static void add_maps(struct process *p, struct mapping *maps, uint32_t n)
{
	VEC(struct mapping) all = { .v = maps, .n = n, .cap = n };

	for (uint32_t i = 0; i < p->nmaps; i++) {
		if (overlaps(&p->maps[i], maps, n)) {
			give_way(p, i, maps, n, maps[n - 1].time);
			continue;
		}
		vec_push(&all, p->maps[i]);
		p->maps[i].path = NULL;
		maps = all.v;
	}
	qsort(all.v, all.n, sizeof(*all.v), compare_start);
	set_maps(p, all.v, all.n, false);
}

static void read_process(struct process *p, bool same_program)
{
	struct mapping *maps;
	uint64_t start;
	uint32_t n;
	struct err *e;

	p->read_ns = clock_ns();
	start = start_time(p->pid);
	e = start ? mappings_read(p->pid, &maps, &n) : NULL;
	if (!start || e) {
		err_free(e);
		p->exists = false;
		return;
	}
	if (!n) { /* a zombie has no mappings: keep what it had */
		free(maps);
		p->exists = false;
		return;
	}
	set_maps(p, maps, n, same_program && (p->start_time == start || !p->start_time));
	p->start_time = start;
	p->exists = true;
}

static struct process *process_of(struct symbols *s, pid_t pid, bool *ret_new)
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

static struct object *mapped_object(struct symbols *s, struct process *p, uint32_t i)
{
	if (!p->tried[i]) {
		p->tried[i] = true;
		if (!strcmp(p->maps[i].path, "[vdso]"))
			p->objects[i] = vdso(s);
		else
			p->objects[i] = symbols_object(s, p->pid, &p->maps[i]);
	}
	return p->objects[i];
}

/* Opens the objects too: their files may be out of reach when the process is gone. */
static void open_objects(struct symbols *s, struct process *p)
{
	for (uint32_t i = 0; i < p->nmaps; i++)
		if (p->maps[i].exec)
			mapped_object(s, p, i);
}

void symbols_remember(struct symbols *s, pid_t pid)
{
	struct process *p = process_of(s, pid, NULL);

	symbols_watch_drain(s);
	/* While the kernel tells of every mapping, there is nothing new to read. */
	if (!p->read_ns || (clock_ns() - p->read_ns >= REREAD_NS && !s->watch))
		read_process(p, true);
	open_objects(s, p);
}

/* --- what watch.c hears --- */

enum { WATCHED_MAX = 8192 }; /* then the mappings of processes that are gone go too */

static void forget_gone(struct symbols *s)
{
	uint64_t *val;
	uint32_t pos = 0;
	const void *key;
	size_t len;

	while (hash_next(&s->processes, &pos, &key, &len, &val)) {
		struct process *p = (struct process *)(uintptr_t)*val;

		if (!p->exists && p->nmaps && !start_time(p->pid))
			forget_maps(p);
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
	struct mapping *list;
	uint32_t n = 0, later = 0;

	/* What is known is newer: this one was there before it. */
	while (later < p->nmaps &&
	       (!overlaps(m, &p->maps[later], 1) ||
		(p->maps[later].time ? p->maps[later].time : p->read_ns) <= m->time))
		later++;
	if (later < p->nmaps) {
		if (same_mapping(m, &p->maps[later]))
			p->maps[later].time = m->time;
		else if (m->path[0] == '/')
			push_past(p, m, NULL,
				  p->maps[later].time ? p->maps[later].time : p->read_ns);
		free(m->path);
		return;
	}
	list = xcalloc(m->offset ? 2 : 1, sizeof(*list));
	/* Only text is told of: what of the file lies in front of it gives the load address. */
	if (m->offset && m->path[0] == '/' && m->start >= m->offset) {
		list[n] = *m;
		list[n].path = xstrdup(m->path);
		list[n].exec = false;
		list[n].end = m->start;
		list[n].start = m->start - m->offset;
		list[n++].offset = 0;
	}
	list[n++] = *m;
	add_maps(p, list, n);
}

void process_forked(struct symbols *s, pid_t parent, pid_t child)
{
	struct process *p = watched(s, parent), *c = watched(s, child);
	struct mapping *list;

	if (!p->read_ns && !p->nmaps)
		read_process(p, true);
	list = xcalloc(p->nmaps + 1, sizeof(*list));
	for (uint32_t i = 0; i < p->nmaps; i++) {
		list[i] = p->maps[i];
		list[i].path = xstrdup(p->maps[i].path);
	}
	c->read_ns = 0;
	c->start_time = 0;
	set_maps(c, list, p->nmaps, false);
}

void symbols_refresh(struct symbols *s, pid_t pid)
{
	uint64_t *slot = hash_get(&s->processes, &pid, sizeof(pid));
	struct process *p;

	if (!slot)
		return;
	p = (struct process *)(uintptr_t)*slot;
	forget_maps(p);
	p->read_ns = 0;
	p->jit.n = 0;
	p->jit_size = -1;
	p->jit_read_ns = 0;
}

/* --- JIT code --- */

static int compare_jit(const void *pa, const void *pb)
{
	const struct jit_symbol *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* START SIZE name, in hex, one a line. */
void jit_parse(struct symbols *s, struct process *p, const char *text)
{
	p->jit.n = 0;
	for (const char *line = text; *line;) {
		const char *end = line + strcspn(line, "\n");
		unsigned long long start, size;
		int name = -1;

		if (sscanf(line, "%llx %llx %n", &start, &size, &name) == 2 && name > 0 &&
		    line + name < end && size)
			vec_push(&p->jit,
				 (struct jit_symbol){
					 .start = start,
					 .size = size,
					 .order = p->jit.n,
					 .name = intern_text(
						 &s->names,
						 intern_strn(&s->names, line + name,
							     (size_t)(end - line) - (size_t)name)),
				 });
		line = *end ? end + 1 : end;
	}
	if (p->jit.n)
		qsort(p->jit.v, p->jit.n, sizeof(*p->jit.v), compare_jit);
}

static pid_t inner_pid(pid_t pid)
{
	cleanup_free char *text = NULL;
	char path[64];
	const char *line;
	size_t n;
	struct err *e;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	e = io_read_file(path, &text, &n);
	if (e) {
		err_free(e);
		return pid;
	}
	line = strstr(text, "\nNSpid:");
	if (line) {
		size_t len = strcspn(line + 1, "\n");
		size_t last = len;

		while (last && isdigit((unsigned char)line[last]))
			last--;
		if (last < len)
			return (pid_t)strtol(line + last + 1, NULL, 10);
	}
	return pid;
}

/* The file as the process sees it: in its mount namespace, under the pid it has there. Untrusted: it must belong to
 * the process's user or to root, or anyone could name another's code. */
static void read_jit(struct symbols *s, struct process *p)
{
	uint64_t now = clock_ns();
	cleanup_free char *path = NULL, *text = NULL;
	char proc[64];
	struct stat st, owner;
	int64_t mtime;
	size_t n;
	struct err *e;

	if (p->jit_read_ns && now - p->jit_read_ns < REREAD_NS)
		return;
	p->jit_read_ns = now;
	path = xasprintf("/proc/%d/root/tmp/perf-%d.map", (int)p->pid, (int)inner_pid(p->pid));
	snprintf(proc, sizeof(proc), "/proc/%d", (int)p->pid);
	if (stat(proc, &owner) < 0 || lstat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (st.st_uid && st.st_uid != owner.st_uid))
		return;
	mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (mtime == p->jit_mtime_ns && st.st_size == p->jit_size)
		return;
	e = io_read_file(path, &text, &n);
	if (e) {
		err_free(e);
		return;
	}
	p->jit_mtime_ns = mtime;
	p->jit_size = st.st_size;
	jit_parse(s, p, text);
}

const struct jit_symbol *jit_search(const struct process *p, uint64_t addr)
{
	uint32_t lo = 0, hi = p->jit.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->jit.v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* Code is recompiled into freed space, so stale entries lie about: a few steps back find the cover. */
	for (uint32_t steps = 0; lo-- && steps < 16; steps++)
		if (addr - p->jit.v[lo].start < p->jit.v[lo].size)
			return &p->jit.v[lo];
	return NULL;
}

static const struct jit_symbol *find_jit(struct symbols *s, struct process *p, uint64_t addr)
{
	const struct jit_symbol *j = jit_search(p, addr);

	if (!j) {
		read_jit(s, p);
		j = jit_search(p, addr);
	}
	return j;
}

/* --- asking --- */

static bool find_mapping(const struct process *p, uint64_t addr, uint32_t *ret)
{
	uint32_t lo = 0, hi = p->nmaps;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->maps[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret = lo;
	return lo < p->nmaps && addr >= p->maps[lo].start;
}

/* Base name without the " (deleted)" of a replaced file. */
static const char *module_name(struct symbols *s, const char *path)
{
	static const char deleted[] = " (deleted)";
	const char *slash = strrchr(path, '/'), *base = slash && path[0] == '/' ? slash + 1 : path;
	size_t n = strlen(base);

	if (n > sizeof(deleted) - 1 && !strcmp(base + n - (sizeof(deleted) - 1), deleted))
		n -= sizeof(deleted) - 1;
	return intern_text(&s->names, intern_strn(&s->names, base, n));
}

/* Where the file begins in memory: the lowest of its mappings that adjoin i. */
static uint64_t load_address(const struct process *p, uint32_t i)
{
	uint64_t base = p->maps[i].start;

	for (uint32_t k = i; k--;) {
		if (!strcmp(p->maps[k].path, p->maps[i].path))
			base = p->maps[k].start;
		else if (p->maps[k].path[0] == '/')
			break;
	}
	return base;
}

/* The mapping at an address, read again when there is none; false: there is none. */
static bool ask_mapping(struct symbols *s, struct process *p, uint64_t addr, uint32_t *ret)
{
	symbols_watch_drain(s);
	if (!p->read_ns)
		read_process(p, true);
	if (find_mapping(p, addr, ret))
		return true;
	if (!p->exists || clock_ns() - p->read_ns < REREAD_NS)
		return false;
	read_process(p, true);
	return find_mapping(p, addr, ret);
}

void symbols_as_of(struct symbols *s, uint64_t time)
{
	if (s)
		s->as_of = time;
}

/* What was mapped at an address at the time asked for; NULL: what is there now, as far as is known. */
static struct past_mapping *find_past(struct symbols *s, struct process *p, uint64_t addr)
{
	for (uint32_t i = 0; s->as_of && i < p->past.n; i++) {
		struct past_mapping *past = &p->past.v[i];

		if (addr >= past->m.start && addr < past->m.end && past->m.time <= s->as_of &&
		    s->as_of < past->until)
			return past;
	}
	return NULL;
}

struct at {
	const struct mapping *m;
	uint64_t base; /* where its file begins */
	struct object *o;
};

/* Its file can be opened by its name alone: at its addresses in /proc is another one. */
static struct object *past_object(struct symbols *s, struct process *p, struct past_mapping *past)
{
	if (!past->tried) {
		past->tried = true;
		past->o = cached_object(s, device(past->m.dev_major, past->m.dev_minor),
					past->m.inode, past->m.path, past_open_path, p->pid,
					&past->m);
	}
	return past->o;
}

static bool ask(struct symbols *s, struct process *p, uint64_t addr, struct at *ret)
{
	bool found;
	struct past_mapping *past;
	uint32_t i;

	found = ask_mapping(s, p, addr, &i);
	past = find_past(s, p, addr);
	if (past)
		*ret = (struct at){ &past->m, past->m.start - past->m.offset,
				    past_object(s, p, past) };
	else if (found)
		*ret = (struct at){ &p->maps[i], load_address(p, i), mapped_object(s, p, i) };
	return past || found;
}

struct object *process_object(struct symbols *s, pid_t pid, uint64_t addr, uint64_t *ret)
{
	struct process *p = process_of(s, pid, NULL);
	struct at at;

	if (!ask(s, p, addr, &at) || !at.o ||
	    !object_offset_to_addr(at.o, addr - at.m->start + at.m->offset, ret))
		return NULL;
	return at.o;
}

const char *symbols_user_path(struct symbols *s, pid_t pid, uint64_t addr)
{
	struct process *p = process_of(s, pid, NULL);
	const char *path;
	struct at at;

	if (!ask(s, p, addr, &at))
		return NULL;
	path = at.m->path;
	return intern_text(&s->names,
			   intern_str(&s->names, *path == '/' || *path == '[' ? path : ""));
}

bool symbols_user(struct symbols *s, pid_t pid, uint64_t addr, struct place *ret)
{
	struct process *p = process_of(s, pid, NULL);
	const struct object_symbol *f = NULL;
	const struct jit_symbol *j;
	const struct mapping *m;
	uint64_t link_addr;
	struct at at;

	memset(ret, 0, sizeof(*ret));
	if (!ask(s, p, addr, &at))
		return false;
	m = at.m;
	if (m->path[0] != '/' && m->path[0] != '[') {
		j = find_jit(s, p, addr);
		if (!j)
			return false;
		ret->function = j->name;
		ret->offset = addr - j->start;
		ret->module = intern_text(&s->names, intern_str(&s->names, "[jit]"));
		ret->module_base = m->start;
		return true;
	}
	if (m->path[0] == '[' && strcmp(m->path, "[vdso]") && strcmp(m->path, "[vsyscall]")) {
		/* [heap], [stack], [anon:...]: JIT code lives there too, other names do not */
		j = find_jit(s, p, addr);
		if (!j)
			return false;
		*ret = (struct place){
			.function = j->name,
			.offset = addr - j->start,
			.module = module_name(s, m->path),
			.module_base = m->start,
		};
		return true;
	}
	ret->module = module_name(s, m->path);
	ret->module_base = at.base;
	ret->offset = addr - ret->module_base;
	if (!at.o) {
		/* memfd and /dev/zero: a JIT's double mapping */
		j = find_jit(s, p, addr);
		if (j) {
			ret->function = j->name;
			ret->offset = addr - j->start;
		}
		return true;
	}
	if (object_offset_to_addr(at.o, addr - m->start + m->offset, &link_addr))
		f = object_find_addr(at.o, link_addr);
	if (f) {
		ret->function = symbols_demangle(s, f->name);
		ret->offset = link_addr - f->addr;
	}
	return true;
}

void place_format(const struct place *p, uint64_t addr, bool with_offset, char *buf, uint32_t n)
{
	unsigned long long a = addr, off = p->offset;

	if (!p->module && !p->function)
		snprintf(buf, n, "0x%llx", a);
	else if (!p->function)
		snprintf(buf, n, "%s`0x%llx", p->module, a);
	else if (!with_offset)
		snprintf(buf, n, "%s`%s", p->module ? p->module : "", p->function);
	else
		snprintf(buf, n, "%s`%s+0x%llx", p->module ? p->module : "", p->function, off);
}
