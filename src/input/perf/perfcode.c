#define _GNU_SOURCE
/* Finds names of code: in files by path and build id, in lists of compiled code, and in the
 * kernel's symbols. */
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/regular.h"
#include "base/sorted.h"
#include "input/perf/perfspace_private.h"
#include "input/perf/runs.h"

/* Of one list of compiled code, as in a process that is traced. */
enum { LIST_MAX = 256 << 20, LIST_CODES = 4 << 20 };

/* --- lists of code --- */

/* Of several names of one address, takes the last line's, as perf does. */
const struct code *perfspace_code_at(const struct code *v, uint32_t n, uint64_t addr)
{
	uint32_t lo = partition_point(n, i, v[i].start <= addr);

	return lo && addr < v[lo - 1].end ? &v[lo - 1] : NULL;
}

void perfspace_list_fini(struct code_list *l)
{
	free(l->text);
	vec_fini(&l->codes);
	vec_fini(&l->modules);
}

static uint32_t list_module(struct code_list *l, const char *name)
{
	for (uint32_t i = l->modules.n; i; i--)
		if (!strcmp(l->modules.v[i - 1], name))
			return i - 1;
	vec_push(&l->modules, name);
	return l->modules.n - 1;
}

static uint64_t take_hex(char **s)
{
	uint64_t v = 0;
	char *p = *s;

	if (p[0] == '0' && p[1] == 'x')
		p += 2;
	for (; is_hex(*p) || (*p >= 'A' && *p <= 'F'); p++)
		v = v << 4 | (uint64_t)(is_digit(*p) ? *p - '0' : (*p | 0x20) - 'a' + 10);
	*s = p;
	return v;
}

/* Cuts the next line off [*text, end) and returns it; *ret_end becomes its end. NULL: no line is
 * left. */
static char *next_line(char **text, char *end, char **ret_end)
{
	char *line = *text, *nl;

	if (line == end)
		return NULL;
	nl = memchr(line, '\n', (size_t)(end - line));
	if (nl)
		*nl = '\0';
	*ret_end = nl ? nl : end;
	*text = nl ? nl + 1 : end;
	return line;
}

static void list_sort(struct code_list *l)
{
	runs_sort(l->codes.v, l->codes.n, sizeof(*l->codes.v));
}

/* kallsyms: a name is valid until the next one begins. */
static struct err *list_kallsyms(struct code_list *l, const char *path)
{
	size_t len = 0;
	struct err *e = io_read_file(path, &l->text, &len);
	char *at, *line, *end;

	if (e)
		return e;
	vec_push(&l->modules, "[kernel.kallsyms]");
	for (at = l->text; (line = next_line(&at, l->text + len, &end));) {
		struct code c = { 0 };
		char *s = line, *tab;
		char type;

		c.start = take_hex(&s);
		if (*s++ != ' ')
			continue;
		type = (char)(*s & ~0x20);
		if ((type != 'T' && type != 'W' && type != 'D' && type != 'B') || s[1] != ' ')
			continue;
		c.name = s + 2;
		tab = end[-1] == ']' ? strchr(s + 2, '\t') : NULL;
		if (tab) {
			*tab = '\0';
			c.module = list_module(l, tab + 1);
		}
		vec_push(&l->codes, c);
	}
	list_sort(l);
	for (uint32_t i = 0; i < l->codes.n; i++)
		l->codes.v[i].end = i + 1 < l->codes.n ? l->codes.v[i + 1].start
						       : l->codes.v[i].start + 4096;
	return NULL;
}

/* Opens a list of compiled code. Any user can make the file, or a link, and the recording can have
 * any name for it. perf, too, asks for its owner. Returns -1 and why it is not read; NULL: there is
 * none. */
static int list_open(const char *path, size_t *ret_size, const char **ret_why)
{
	struct stat at, st;
	int fd;

	if (lstat(path, &at))
		return -1;
	*ret_why = "is no file that descry reads";
	if (!S_ISREG(at.st_mode))
		return -1;
	*ret_why = "belongs to another user (chown makes it yours)";
	if (at.st_uid && at.st_uid != geteuid())
		return -1;
	*ret_why = "cannot be read";
	fd = regular_open(path);
	if (fd >= 0 && !fstat(fd, &st) && st.st_dev == at.st_dev && st.st_ino == at.st_ino) {
		*ret_why = NULL;
		*ret_size = (size_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static void list_jit(struct perfspace *s, struct dso *d)
{
	struct code_list *l = d->list;
	size_t size = 0, len;
	cleanup_close int fd = list_open(d->path, &size, &d->list_why);
	static const char too_large[] = "is too large, or those before it were";
	char *at, *line, *end;
	uint64_t bytes;

	if (fd < 0)
		return;
	if (size > LIST_MAX || size > s->lists_left) {
		d->list_why = too_large;
		return;
	}
	l->text = regular_read(fd, size, &len);
	for (at = l->text; (line = next_line(&at, l->text + len, &end));) {
		struct code c = { 0 };
		char *p = line;

		c.start = take_hex(&p);
		if (*p++ != ' ')
			continue;
		c.end = c.start + take_hex(&p);
		if (*p++ != ' ' || !*p)
			continue;
		c.name = p;
		bytes = len + (l->codes.n + 1ull) * sizeof(c);
		if (l->codes.n == LIST_CODES || bytes > s->lists_left) {
			d->list_why = too_large;
			break;
		}
		vec_push(&l->codes, c);
	}
	s->lists_left -= len + l->codes.n * sizeof(struct code);
	list_sort(l);
}

/* --- files --- */

/* Keeps as much of a path as Linux has room for, and of its last part, which is the name of each
 * address without a symbol. */
static const char *path_keep(struct perfspace *s, const char *path)
{
	const size_t n = strnlen(path, PATH_MAX);
	const char *slash = memrchr(path, '/', n);
	const size_t dirs = slash ? (size_t)(slash + 1 - path) : 0;

	return perfspace_keep(s, path, n - dirs > PERF_BASE_MAX ? dirs + PERF_BASE_MAX : n);
}

uint32_t perfspace_dso_new(struct perfspace *s, const char *path)
{
	struct dso *d = vec_add(&s->dsos);

	d->path = path_keep(s, path);
	d->jit = !strncmp(path, "/tmp/perf-", 10) && !strchr(path + 10, '/');
	d->anonymous = path[0] != '/';
	return s->dsos.n - 1;
}

/* Two files that had the same path at different times have different build ids. */
uint32_t perfspace_dso_of(struct perfspace *s, const char *path, const uint8_t *id, uint32_t len)
{
	cleanup_free char *key = NULL;
	size_t n = strlen(path);
	uint64_t *index;
	bool fresh;

	if (!len) {
		uint64_t *known = hash_get(&s->ids, path, n);

		if (known) {
			id = s->dsos.v[*known - 1].build_id;
			len = s->dsos.v[*known - 1].build_id_len;
		}
	}
	key = xmalloc(n + 1 + len);
	memcpy(key, path, n + 1);
	if (len)
		memcpy(key + n + 1, id, len);
	index = hash_put(&s->dso_of, key, n + 1 + len, &fresh);
	if (fresh) {
		uint8_t copy[20] = { 0 };

		if (len)
			memcpy(copy, id, len);
		*index = perfspace_dso_new(s, path); /* moves the dsos */
		memcpy(vec_last(&s->dsos)->build_id, copy, sizeof(copy));
		vec_last(&s->dsos)->build_id_len = len;
	}
	return (uint32_t)*index;
}

void perfspace_build_id(struct perfspace *s, const char *path, const uint8_t *id, uint32_t len)
{
	if (len > sizeof(s->dsos.v[0].build_id))
		len = sizeof(s->dsos.v[0].build_id);
	if (!strcmp(path, "[kernel.kallsyms]")) {
		memcpy(s->dsos.v[KERNEL_DSO].build_id, id, len);
		s->dsos.v[KERNEL_DSO].build_id_len = len;
		return;
	}
	*hash_put(&s->ids, path, strlen(path), NULL) = perfspace_dso_of(s, path, id, len) + 1;
}

static void hex_of(const uint8_t *id, uint32_t len, char *ret)
{
	for (uint32_t i = 0; i < len; i++)
		sprintf(ret + i * 2, "%02x", id[i]);
}

void perfspace_dso_open(struct perfspace *s, struct dso *d)
{
	const char *home = getenv("HOME");
	char hex[48] = "";

	if (d->tried)
		return;
	d->tried = true;
	if (s->in->options.no_symbols)
		return;
	if (d->jit) {
		d->list = xcalloc(1, sizeof(*d->list));
		list_jit(s, d);
		return;
	}
	if (!strcmp(d->path, "[vdso]"))
		d->file = perf_file_vdso(s, d);
	if (d->anonymous)
		return;
	hex_of(d->build_id, d->build_id_len, hex);
	d->file = perf_file_open(s, d, d->path);
	if (!d->file && d->build_id_len && home) {
		cleanup_free char *cached =
			xasprintf("%s/.debug/.build-id/%.2s/%s/elf", home, hex, hex + 2);

		d->file = perf_file_open(s, d, cached);
	}
	if (d->file && !d->build_id_len) {
		uint32_t n;
		const uint8_t *id = object_build_id(d->file->object, &n);

		hex_of(id, n < 20 ? n : 20, hex);
	}
	if (*hex) {
		cleanup_free char *debug =
			xasprintf("/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
		bool other = d->other;

		d->debug = perf_file_open(s, d, debug);
		d->other = other && !d->file;
	}
}

/* --- the kernel --- */

/* Returns the build id of the running kernel, from a note in /sys/kernel/notes. */
static bool running_kernel_is(const struct dso *k)
{
	enum { NOTE_BUILD_ID = 3 };
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct bytes b;

	if (!k->build_id_len)
		return true;
	if (err_drop(io_read_file("/sys/kernel/notes", &text, &len)))
		return true;
	b = bytes_of(text, len, "notes");
	while (bytes_left(&b)) {
		uint32_t nname = bytes_u32(&b), ndesc = bytes_u32(&b), type = bytes_u32(&b);
		const char *name = bytes_take(&b, (nname + 3ull) & ~3ull);
		const uint8_t *desc = bytes_take(&b, (ndesc + 3ull) & ~3ull);

		if (!bytes_ok(&b))
			return true;
		if (type == NOTE_BUILD_ID && nname == 4 && !memcmp(name, "GNU", 4))
			return ndesc >= k->build_id_len &&
			       !memcmp(desc, k->build_id, k->build_id_len);
	}
	return true;
}

void perfspace_kernel_read(struct perfspace *s)
{
	struct dso *k = &s->dsos.v[KERNEL_DSO];
	const char *home = getenv("HOME");
	struct err *e;

	s->kernel_read = true;
	if (s->in->options.no_symbols)
		return;
	if (running_kernel_is(k)) {
		e = list_kallsyms(&s->kernel, "/proc/kallsyms");
		if (!e && s->kernel.codes.n && vec_last(&s->kernel.codes)->start == 0)
			e = err_new(0, "/proc/kallsyms shows addresses only to root");
	} else {
		char hex[48];
		cleanup_free char *path = NULL;

		hex_of(k->build_id, k->build_id_len, hex);
		path = xasprintf("%s/.debug/[kernel.kallsyms]/%s/kallsyms", home ? home : "", hex);
		e = list_kallsyms(&s->kernel, path);
		if (err_drop(e)) {
			e = err_new(
				0,
				"it was recorded on another kernel, whose symbols are not in ~/.debug");
		}
	}
	if (e) {
		s->kernel_why = arena_strdup(&s->text, e->text);
		err_free(e);
		s->kernel.codes.n = 0;
	}
	for (uint32_t i = 0; s->kernel_text && i < s->kernel.codes.n; i++)
		if (!strcmp(s->kernel.codes.v[i].name, "_text")) {
			s->kernel_shift = (int64_t)(s->kernel.codes.v[i].start - s->kernel_text);
			break;
		}
}

void perfspace_kernel_map(struct perfspace *s, const struct perfspace_map *m)
{
	static const char front[] = "[kernel.kallsyms]_";

	/* the name is "[kernel.kallsyms]_text", and pgoff is the address of that symbol */
	if (!strncmp(m->path, front, sizeof(front) - 1)) {
		s->kernel_text = !strcmp(m->path + sizeof(front) - 1, "text") ? m->pgoff : 0;
		if (m->build_id)
			perfspace_build_id(s, "[kernel.kallsyms]", m->build_id, m->build_id_len);
	}
}

enum { KSYMBOLS_MAX = 1 << 14 /* at one time */ };

/* Each change moves those behind it, so a small recording can move any number. Returns false when
 * it has moved too many. */
static bool may_move(struct perfspace *s, uint32_t n)
{
	s->ksymbols_ended = n > s->ksymbol_moves_left;
	if (s->ksymbols_ended)
		s->ksymbols.n = 0;
	else
		s->ksymbol_moves_left -= n;
	return !s->ksymbols_ended;
}

void perfspace_ksymbol(struct perfspace *s, uint64_t addr, uint64_t len, const char *name,
		       bool gone)
{
	struct code c = { .start = addr, .end = addr + len, .module = s->ksymbols_seen++ };
	uint32_t i = 0, n = 0;

	if (c.end <= c.start || s->ksymbols_ended)
		return;
	s->kernel_state++;
	/* The code that was there is gone, even without a record of that. The list is in order and
	 * without overlaps, so that it is one piece. */
	i = partition_point(s->ksymbols.n, k, s->ksymbols.v[k].end <= addr);
	for (n = i; n < s->ksymbols.n && s->ksymbols.v[n].start < c.end;)
		n++;
	if (!may_move(s, s->ksymbols.n - n))
		return;
	if (!gone && (i != n || s->ksymbols.n < KSYMBOLS_MAX)) {
		c.name = perfspace_keep(s, name, PERF_KSYMBOL_MAX);
		if (i == n) {
			vec_push(&s->ksymbols, c); /* room for one */
			memmove(s->ksymbols.v + i + 1, s->ksymbols.v + i,
				(s->ksymbols.n - 1 - i) * sizeof(c));
			n++;
		}
		s->ksymbols.v[i++] = c;
	}
	if (i != n)
		memmove(s->ksymbols.v + i, s->ksymbols.v + n, (s->ksymbols.n - n) * sizeof(c));
	s->ksymbols.n -= n - i;
}
