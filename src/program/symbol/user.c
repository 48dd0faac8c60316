/* Addresses of processes: mapping -> object -> function; JIT code by /tmp/perf-PID.map; the vdso from our own copy. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "program/symbol/cache.h"

enum { JIT_NS = 50 * 1000 * 1000 }; /* a perf map is looked at again at most this often */

struct symbols *symbols_new(void)
{
	struct symbols *s = xcalloc(1, sizeof(*s));

	intern_init(&s->names);
	return s;
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
		process_drop((struct process *)(uintptr_t)*val);
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

struct object *mapping_object(struct symbols *s, pid_t pid, const struct mapping *m,
			      char *(*open_path)(pid_t, const struct mapping *))
{
	return cached_object(s, (uint64_t)m->dev_major << 32 | m->dev_minor, m->inode, m->path,
			     open_path, pid, m);
}

struct object *symbols_object(struct symbols *s, pid_t pid, const struct mapping *m)
{
	return m->path[0] == '/' ? mapping_object(s, pid, m, mapping_open_path) : NULL;
}

struct object *symbols_object_at(struct symbols *s, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return NULL;
	return cached_object(s, st.st_dev, st.st_ino, path, NULL, 0, NULL);
}

/* The vdso is the same in every 64-bit process: ours stands for all. */
struct object *vdso_object(struct symbols *s)
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

/* --- JIT code --- */

static int compare_jit(const void *pa, const void *pb)
{
	const struct jit_symbol *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static const char *skip_spaces(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* A hexadecimal number, with or without 0x, and the spaces around it. */
static bool take_number(const char **p, const char *end, uint64_t *ret)
{
	bool found;

	*p = skip_spaces(*p, end);
	if (end - *p > 2 && (*p)[0] == '0' && (*p)[1] == 'x')
		*p += 2;
	found = take_hex(p, end, ret);
	*p = skip_spaces(*p, end);
	return found;
}

/* START SIZE name, in hex, one a line. */
static bool parse_jit_line(struct symbols *s, const char *p, const char *end,
			   struct jit_symbol *ret)
{
	if (!take_number(&p, end, &ret->start) || !take_number(&p, end, &ret->size) || !ret->size ||
	    p == end)
		return false;
	ret->name = intern_text(&s->names, intern_strn(&s->names, p, (size_t)(end - p)));
	return true;
}

void jit_parse(struct symbols *s, struct process *p, const char *text)
{
	p->jit.n = 0;
	for (const char *line = text; *line;) {
		const char *end = strchrnul(line, '\n');
		struct jit_symbol j = { .order = p->jit.n };

		if (parse_jit_line(s, line, end, &j))
			vec_push(&p->jit, j);
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
	uint64_t now = now_ns();
	cleanup_free char *path = NULL, *text = NULL;
	char proc[64];
	struct stat st, owner;
	int64_t mtime;
	size_t n;
	struct err *e;

	if (p->jit_read_ns && now - p->jit_read_ns < JIT_NS)
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

void symbols_as_of(struct symbols *s, uint64_t time)
{
	if (s)
		s->as_of = time;
}

struct object *process_object(struct symbols *s, pid_t pid, uint64_t addr, uint64_t *ret)
{
	struct process *p = process_of(s, pid, NULL);
	struct process_at at;

	if (!process_find(s, p, addr, &at) || !at.o ||
	    !object_offset_to_addr(at.o, addr - at.m->start + at.m->offset, ret))
		return NULL;
	return at.o;
}

const char *symbols_user_path(struct symbols *s, pid_t pid, uint64_t addr)
{
	struct process *p = process_of(s, pid, NULL);
	const char *path;
	struct process_at at;

	if (!process_find(s, p, addr, &at))
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
	struct process_at at;

	memset(ret, 0, sizeof(*ret));
	if (!process_find(s, p, addr, &at))
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
