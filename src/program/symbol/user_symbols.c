/* Finds addresses of processes: mapping -> object -> function; JIT code by /tmp/perf-PID.map; the
 * vdso from this process's own copy. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/number.h"
#include "base/procdir.h"
#include "base/procstatus.h"
#include "base/regular.h"
#include "base/sorted.h"
#include "program/symbol/symbol_private.h"

enum {
	JIT_NS = 50 * 1000 * 1000,    /* a perf map is read again at most this often */
	FAILED_NS = 50 * 1000 * 1000, /* a file that could not be opened is tried again after it */
	FAILED_MAX = 1 << 14,         /* such files */
	HOME_NS = 1000 * 1000 * 1000, /* an unchanged home is noted at least this often */
	JIT_SIZE_MAX = 256 << 20,     /* bytes read from the front of one map */
	JIT_MAX = 4 << 20,            /* symbols */
	JIT_NAME_MAX = 512,           /* bytes shown of a name of a perf map */
	NAME_MAX_BYTES = 4096,        /* and of a file's symbol */
};
#define FILE_TIME_NS 2000000000ll /* the coarsest clock of a filesystem */

struct symbols *symbols_new(void)
{
	struct symbols *s = xcalloc(1, sizeof(*s));

	intern_init(&s->names);
	intern_init(&s->paths);
	symbols_limit(s, &(struct symbols_limits){ 0 });
	return s;
}

struct symbols *symbols_share(struct symbols *s)
{
	s->users++;
	return s;
}

void symbols_free(struct symbols *s)
{
	uint64_t *val;
	uint32_t pos = 0;
	const void *key;
	size_t len;

	if (!s || s->users--)
		return;
	while (hash_next(&s->processes, &pos, &key, &len, &val)) {
		process_drop(s, (struct process *)(uintptr_t)*val);
	}
	source_fini(s);
	known_fini(s);
	map_watch_free(s->watch);
	hash_fini(&s->processes);
	hash_fini(&s->failed);
	free(s->gone);
	intern_fini(&s->paths);
	hash_fini(&s->demangled);
	intern_fini(&s->names);
	kallsyms_fini(&s->kernel);
	answers_fini(&s->answers);
	free(s);
}

uint32_t symbols_name(struct symbols *s, const char *name, size_t n, uint32_t max)
{
	char cut[NAME_MAX_BYTES];

	if (n <= max)
		return intern_shown(&s->names, name, n);
	memcpy(cut, name, max - 3);
	memcpy(cut + max - 3, "...", 3);
	return intern_shown(&s->names, cut, max);
}

const char *symbols_demangle(struct symbols *s, const char *name)
{
	size_t n = strlen(name);
	uint32_t id;
	uint64_t *slot;
	bool is_new;

	/* symbol_demangle() takes none that is as long. */
	if (n > 2 * NAME_MAX_BYTES || name[0] != '_' ||
	    (strncmp(name, "_Z", 2) && strncmp(name, "_R", 2) && strncmp(name, "__Z", 3) &&
	     strncmp(name, "_D", 2)))
		return intern_text(&s->names, symbols_name(s, name, n, NAME_MAX_BYTES));
	id = intern_strn(&s->names, name, n);
	slot = hash_put(&s->demangled, &id, sizeof(id), &is_new);
	if (is_new) {
		char *text = symbol_demangle(name);

		*slot = text ? symbols_name(s, text, strlen(text), NAME_MAX_BYTES)
			     : intern_shown(&s->names, name, n);
		free(text);
	}
	return intern_text(&s->names, (uint32_t)*slot);
}

void symbols_tidy(struct symbols *s)
{
	if (s->names.bytes <= s->limits.names)
		return;
	source_forget(s);
	answers_fini(&s->answers);
	hash_fini(&s->demangled);
	intern_fini(&s->names);
	intern_init(&s->names);
	s->jit_names = 0;
	s->epoch++;
}

/* --- objects --- */

/* Returns the object with this key, or NULL when it is not known yet. */
static struct known_object *find_object(struct symbols *s, const char *key)
{
	uint64_t *slot = hash_get(&s->objects, key, strlen(key));

	return slot ? (struct known_object *)(uintptr_t)*slot : NULL;
}

/* Opens a new object by a path, which may be NULL, as the file of a mapping unless that is NULL. A
 * failure is not remembered, because another process may have a path to the file. */
static struct known_object *open_object(struct symbols *s, const char *key, const char *path,
					const struct mapping *m)
{
	struct object *o = NULL;
	struct stat st;

	if (path)
		err_free(object_open(path, &o));
	/* All processes that map the file get this object's names. */
	if (o && m && (!object_stat(o, &st) || !mapping_is_of_file(m, path, &st))) {
		object_free(o);
		o = NULL;
	}
	return o ? known_add(s, o, xstrdup(key)) : NULL;
}

static char *file_key(uint64_t dev, uint64_t inode, const char *path)
{
	return xasprintf("%llx:%llx:%s", (unsigned long long)dev, (unsigned long long)inode, path);
}

struct known_object *mapping_object(struct symbols *s, struct space *space, pid_t pid,
				    const struct mapping *m, bool past)
{
	cleanup_free char *key =
		space ? xasprintf("%s:%s", space->name, m->path)
		      : file_key((uint64_t)m->dev_major << 32 | m->dev_minor, m->inode, m->path);
	const uint64_t failure[] = { (uint64_t)pid, past, hash_bytes(key, strlen(key)) };
	struct known_object *k = find_object(s, key);
	uint64_t *failed = k ? NULL : hash_get(&s->failed, failure, sizeof(failure));
	cleanup_free char *path = NULL;

	if (k)
		return k;
	/* A process may have 65,000 mappings of one file that is no object. */
	if (failed && now_ns() - *failed < FAILED_NS)
		return NULL;
	path = space  ? space_open_path(space, m)
	       : past ? mapping_open_path_gone(pid, m)
		      : mapping_open_path(pid, m);
	k = open_object(s, key, path, space ? NULL : m);
	if (!k) {
		if (s->failed.n >= FAILED_MAX)
			hash_fini(&s->failed);
		*hash_put(&s->failed, failure, sizeof(failure), NULL) = now_ns();
	}
	return k;
}

struct known_object *space_vdso(struct symbols *s, struct space *space, const struct mapping *m)
{
	cleanup_free char *key = xasprintf("%s:%s", space->name, m->path);
	struct known_object *k = find_object(s, key);
	struct object *o = NULL;

	if (!k)
		err_free(space_object(space, m->start, (uint32_t)(m->end - m->start), &o));
	return o ? known_add(s, o, xstrdup(key)) : k;
}

struct object *symbols_object(struct symbols *s, pid_t pid, const struct mapping *m)
{
	struct known_object *k = m->path[0] == '/' ? mapping_object(s, NULL, pid, m, false) : NULL;
	cleanup_free char *file = NULL;

	if (!k)
		return NULL;
	if (!object_is_open(k->o) && !object_reopen(k->o))
		file = mapping_open_path(pid, m);
	return known_pin(s, k, file);
}

struct object *symbols_object_at(struct symbols *s, const char *path)
{
	cleanup_free char *key = NULL;
	struct known_object *k;
	struct stat st;

	if (stat(path, &st) < 0)
		return NULL;
	key = file_key(st.st_dev, st.st_ino, path);
	k = find_object(s, key) ?: open_object(s, key, path, NULL);
	return k ? known_pin(s, k, path) : NULL;
}

/* Returns this process's vdso, which is the same in every 64-bit process. */
struct known_object *vdso_object(struct symbols *s)
{
	const uint8_t *p = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	const struct mapping *m;
	struct mappings maps;

	if (s->vdso_tried)
		return s->vdso.o ? &s->vdso : NULL;
	s->vdso_tried = true;
	if (err_drop(mappings_read(getpid(), &maps)))
		return NULL;
	m = mappings_find(&maps, (uintptr_t)p);
	if (m && !strcmp(m->path, "[vdso]"))
		err_free(object_open_memory("[vdso]", p, m->end - m->start, &s->vdso.o));
	mappings_free(&maps);
	return s->vdso.o ? &s->vdso : NULL;
}

/* --- JIT code --- */

static int64_t file_time(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int compare_jit(const void *pa, const void *pb)
{
	const struct jit_symbol *a = pa, *b = pb;

	return COMPARE(a->start, b->start) ?: COMPARE(a->order, b->order);
}

static const char *skip_spaces(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* Takes a hexadecimal number, with or without 0x, and the spaces around it. */
static bool user_symbols_take_number(const char **p, const char *end, uint64_t *ret)
{
	bool found;

	*p = skip_spaces(*p, end);
	if (end - *p > 2 && (*p)[0] == '0' && (*p)[1] == 'x')
		*p += 2;
	found = number_take_hex(p, end, ret);
	*p = skip_spaces(*p, end);
	return found;
}

/* Parses START SIZE name, in hex, one a line. */
static bool parse_jit_line(const char *p, const char *end, struct jit_symbol *ret)
{
	if (!user_symbols_take_number(&p, end, &ret->start) ||
	    !user_symbols_take_number(&p, end, &ret->size) || !ret->size)
		return false;
	ret->name = p;
	ret->len = (uint32_t)strnlen(p, end - p <= JIT_NAME_MAX ? (size_t)(end - p)
								: JIT_NAME_MAX + 1);
	return ret->len;
}

/* Counts the bytes of p's map. */
static void count_jit(struct symbols *s, struct process *p, size_t text)
{
	size_t bytes = text + p->jit.cap * sizeof(*p->jit.v);

	s->jit_bytes += bytes - p->jit_bytes;
	p->jit_bytes = bytes;
}

void jit_parse(struct symbols *s, struct process *p, char *text, size_t len)
{
	p->jit.n = 0;
	free(p->jit_text);
	p->jit_text = text;
	for (const char *line = text, *end = text + len; line < end && p->jit.n < JIT_MAX;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		const char *stop = nl ? nl : end;
		struct jit_symbol j = { .order = p->jit.n };

		if (parse_jit_line(line, stop, &j))
			vec_push(&p->jit, j);
		line = stop + 1;
	}
	if (p->jit.n)
		qsort(p->jit.v, p->jit.n, sizeof(*p->jit.v), compare_jit);
	count_jit(s, p, len);
	p->jit_dropped = false;
}

void jit_drop(struct symbols *s, struct process *p)
{
	vec_fini(&p->jit);
	free(p->jit_text);
	p->jit_text = NULL;
	count_jit(s, p, 0);
	p->jit_size = -1;
	p->jit_next_ns = 0;
}

/* Converts a start time to the clock of files. */
static int64_t born(uint64_t start)
{
	uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);

	return (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + start * tick);
}

static bool same_home(const struct jit_home *a, const struct jit_home *b)
{
	return a->dev == b->dev && a->inode == b->inode && a->parent == b->parent &&
	       a->uid == b->uid;
}

/* Notes the process's home. Keeps the known home when the process has ended, or another has its
 * number. */
static void note_home(struct process *p)
{
	cleanup_free char *text = NULL;
	uint64_t start = procdir_start(p->pid), wait = p->home.wait_ns * 2;
	struct jit_home h = { .noted_ns = now_ns(), .wait_ns = JIT_NS };
	char path[64];
	struct stat tmp, ours;

	p->home.noted_ns = h.noted_ns;
	p->home.wait_ns = JIT_NS;
	if (!start || (p->start_time && p->start_time != start))
		return;
	snprintf(path, sizeof(path), "/proc/%d/root/tmp", (int)p->pid);
	if (stat(path, &tmp) < 0)
		return;
	text = procstatus_read(p->pid);
	if (!text)
		return;
	h.dev = tmp.st_dev;
	h.inode = tmp.st_ino;
	h.elsewhere = stat("/tmp", &ours) < 0 || ours.st_dev != tmp.st_dev ||
		      ours.st_ino != tmp.st_ino;
	h.pid = (pid_t)procstatus_number(text, "NSpid", PROCSTATUS_LAST);
	if (h.pid < 0)
		h.pid = p->pid;
	h.parent = (pid_t)procstatus_number(text, "PPid", 0);
	h.uid = (uid_t)procstatus_number(text, "Uid", 1);
	h.born_ns = born(start);
	if (same_home(&h, &p->home))
		h.wait_ns = wait < HOME_NS ? wait : HOME_NS;
	p->home = h;
	p->start_time = start;
}

/* Opens the folder that is, or was, the process's /tmp, if there is a path to it. */
static int open_tmp(const struct process *p)
{
	const pid_t ways[] = { p->pid, 0, p->home.parent };

	for (uint32_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		char path[64] = "/tmp";
		struct stat st;
		int fd;

		if (ways[i])
			snprintf(path, sizeof(path), "/proc/%d/root/tmp", (int)ways[i]);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && st.st_dev == p->home.dev && st.st_ino == p->home.inode)
			return fd;
		close(fd);
	}
	return -1;
}

/* Opens the perf map, under the pid that the process has in its namespace. It is untrusted: it must
 * belong to the process's user or to root, or anyone could name another's code. A map last written
 * before the process began belongs to an earlier process with its pid. Opens only regular files,
 * because opening a device could have an effect. */
static int open_jit(const struct process *p, struct stat *ret)
{
	cleanup_close int dir = p->home.inode ? open_tmp(p) : -1, at = -1;
	char name[64];

	if (dir < 0)
		return -1;
	snprintf(name, sizeof(name), "perf-%d.map", (int)p->home.pid);
	at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0 || fstat(at, ret) < 0 || !S_ISREG(ret->st_mode) ||
	    (ret->st_uid && ret->st_uid != p->home.uid) ||
	    file_time(ret) < p->home.born_ns - FILE_TIME_NS)
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
	return open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static void take_jit(struct symbols *s, struct process *p)
{
	struct stat st;
	cleanup_close int fd = open_jit(p, &st);
	size_t len, size;
	char *text;

	if (fd < 0 || (file_time(&st) == p->jit_mtime_ns && st.st_size == p->jit_size))
		return;
	size = st.st_size < JIT_SIZE_MAX ? (size_t)st.st_size : JIT_SIZE_MAX;
	/* The old map is useless now. The data kept of a line takes at most twice the line's
	 * length. */
	jit_drop(s, p);
	jit_make_room(s, p, size + size / 2);
	text = regular_read(fd, size, &len);
	jit_parse(s, p, text, len);
	p->jit_mtime_ns = file_time(&st);
	p->jit_size = st.st_size;
}

/* Reads the map, but not too often when it is large and grows. */
static void read_jit(struct symbols *s, struct process *p)
{
	uint64_t begun = now_ns(), took;

	if (begun < p->jit_next_ns)
		return;
	note_home(p);
	take_jit(s, p);
	took = now_ns() - begun;
	p->jit_next_ns = begun + took + (took * 8 > JIT_NS ? took * 8 : JIT_NS);
}

/* Returns true when there is a perf map that was not read in its present state. Does not check its
 * owner. */
static bool has_new_jit(const struct process *p)
{
	struct stat st;
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", (int)p->pid,
		 (int)p->home.pid);
	return !lstat(path, &st) &&
	       (file_time(&st) != p->jit_mtime_ns || st.st_size != p->jit_size);
}

/* Called on each pass. The place and owner of its map rarely change, except by an exec(), which the
 * kernel reports. A map in a /tmp that will be out of reach after the process's end is read while
 * there is a path. */
void jit_remember(struct symbols *s, struct process *p)
{
	if (!p->home.noted_ns || now_ns() - p->home.noted_ns >= p->home.wait_ns)
		note_home(p);
	if (p->home.elsewhere && now_ns() >= p->jit_next_ns && has_new_jit(p))
		read_jit(s, p);
}

const struct jit_symbol *jit_search(const struct process *p, uint64_t addr)
{
	uint32_t lo = partition_point(p->jit.n, i, p->jit.v[i].start <= addr);

	/* JIT compilers put code into freed space, so stale entries remain. The cover is a few
	 * steps back. */
	for (uint32_t steps = 0; lo-- && steps < 16; steps++)
		if (addr - p->jit.v[lo].start < p->jit.v[lo].size)
			return &p->jit.v[lo];
	return NULL;
}

/* Interns the name of a function of a perf map. A process can write another map each second, and
 * names are kept until symbols_tidy(), so they have a budget, of which one process gets a quarter.
 * Returns false when it is used up. */
static bool keep_jit_name(struct symbols *s, struct process *p, const struct jit_symbol *j,
			  const char **ret)
{
	uint32_t before = s->names.n, n = j->len < JIT_NAME_MAX ? j->len : JIT_NAME_MAX, id;

	if (p->jit_epoch != s->epoch) {
		p->jit_epoch = s->epoch;
		p->jit_names = 0;
	}
	if ((s->jit_names + n > s->limits.jit_names ||
	     p->jit_names + n > s->limits.jit_names / 4) &&
	    !hash_get(&s->names.ids, j->name, n))
		return false;
	id = symbols_name(s, j->name, j->len, JIT_NAME_MAX);
	if (s->names.n > before) {
		s->jit_names += n;
		p->jit_names += n;
	}
	*ret = intern_text(&s->names, id);
	return true;
}

/* Sets the function and the offset in it. */
static bool name_jit(struct symbols *s, struct process *p, uint64_t addr, struct place *ret)
{
	const struct jit_symbol *j = jit_search(p, addr);

	p->jit_used_ns = now_ns();
	/* For a recorded process, the map may belong to another process that has its number now. */
	if (!j && !p->space) {
		read_jit(s, p);
		j = jit_search(p, addr);
	}
	if (!j) {
		s->losses.limited += p->jit_dropped;
		return false;
	}
	if (!keep_jit_name(s, p, j, &ret->function)) {
		s->losses.limited++;
		return false;
	}
	ret->offset = addr - j->start;
	return true;
}

/* --- queries --- */

/* Returns the base name without the " (deleted)" of a replaced file. */
static const char *module_name(struct symbols *s, const char *path)
{
	static const char deleted[] = " (deleted)";
	const char *slash = strrchr(path, '/'), *base = slash && path[0] == '/' ? slash + 1 : path;
	size_t n = strlen(base);

	if (n > sizeof(deleted) - 1 && !strcmp(base + n - (sizeof(deleted) - 1), deleted))
		n -= sizeof(deleted) - 1;
	return intern_text(&s->names, intern_shown(&s->names, base, n));
}

struct object *process_object(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr,
			      uint64_t *ret)
{
	struct process *p = process_asked(s, pid);
	struct process_at at;

	if (!process_find(s, p, time, addr, &at) || !at.o ||
	    !object_offset_to_addr(at.o, addr - at.m->start + at.m->offset, ret))
		return NULL;
	return at.o;
}

const char *symbols_user_path(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr)
{
	struct process *p = process_asked(s, pid);
	const char *path;
	struct process_at at;

	if (!process_find(s, p, time, addr, &at))
		return NULL;
	path = at.m->path;
	if (*path != '/' && *path != '[')
		return "";
	return intern_text(&s->names, intern_shown(&s->names, path, strlen(path)));
}

/* Sets the function and the offset in it, if the file has a function there. */
static void name_by_object(struct symbols *s, const struct process_at *at, uint64_t addr,
			   struct place *ret)
{
	const struct object_symbol *f;
	uint64_t link_addr;

	if (!object_offset_to_addr(at->o, addr - at->m->start + at->m->offset, &link_addr))
		return;
	f = at->lost ? NULL : object_find_addr(at->o, link_addr);
	if (f) {
		ret->function = symbols_demangle(s, f->name);
		ret->offset = link_addr - f->addr;
	} else if (at->lost) {
		s->losses.limited++;
	} else if (object_changed(at->o)) {
		s->losses.changed++;
	}
	known_grown(s, at->known);
}

bool symbols_user(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr, struct place *ret)
{
	struct process *p = process_asked(s, pid);
	const struct mapping *m;
	struct process_at at;

	memset(ret, 0, sizeof(*ret));
	if (!process_find(s, p, time, addr, &at)) {
		s->losses.numberless += !pid && addr;
		s->losses.limited += p->cut || process_was_dropped(s, pid);
		if (p->denied && !p->unnamed && !s->losses.denied++)
			s->losses.denied_pid = pid;
		p->unnamed |= p->denied;
		return false;
	}
	m = at.m;
	if (m->path[0] != '/' && m->path[0] != '[') {
		if (!name_jit(s, p, addr, ret))
			return false;
		ret->module = intern_text(&s->names, intern_str(&s->names, "[jit]"));
		ret->module_base = m->start;
		return true;
	}
	if (m->path[0] == '[' && strcmp(m->path, "[vdso]") && strcmp(m->path, "[vsyscall]")) {
		/* [heap], [stack], [anon:...]: may hold JIT code, but no other names. */
		if (!name_jit(s, p, addr, ret))
			return false;
		ret->module = module_name(s, m->path);
		ret->module_base = m->start;
		return true;
	}
	ret->module = module_name(s, m->path);
	ret->module_base = at.base;
	ret->offset = addr - ret->module_base;
	if (!at.o && at.lost) {
		s->losses.limited++;
		return true;
	}
	if (!at.o) {
		/* memfd and /dev/zero: a JIT's double mapping. */
		(void)name_jit(s, p, addr, ret);
		return true;
	}
	name_by_object(s, &at, addr, ret);
	return true;
}

void place_format(const struct place *p, uint64_t addr, bool with_offset, char *buf, uint32_t n)
{
	unsigned long long a = addr, off = p->offset;

	if (!p->module && !p->function)
		snprintf(buf, n, "0x%llx", a);
	else if (!p->function && p->module_base)
		snprintf(buf, n, "%s+0x%llx", p->module, a - p->module_base);
	else if (!p->function)
		snprintf(buf, n, "%s`0x%llx", p->module, a);
	else if (!with_offset)
		snprintf(buf, n, "%s`%s", p->module ? p->module : "", p->function);
	else
		snprintf(buf, n, "%s`%s+0x%llx", p->module ? p->module : "", p->function, off);
}
