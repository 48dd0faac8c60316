#define _GNU_SOURCE
#include "render/stackin/perfspace.h"

#include <sys/auxv.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/sorted.h"
#include "program/object/object.h"
#include "render/stackin/runs.h"

/* A name for the addresses [start, end). */
struct code {
	uint64_t start; /* first: runs_sort() */
	uint64_t end;
	const char *name; /* in the text of the list */
	uint32_t module;  /* index in modules; 0: the kernel itself */
};

/* What kallsyms and /tmp/perf-PID.map hold: "ADDRESS TYPE NAME [MODULE]" and "START SIZE NAME". */
struct code_list {
	char *text;
	VEC(struct code) codes; /* by start */
	VEC(const char *) modules;
};

/* A file that code came from. */
struct dso {
	const char *path;
	uint8_t build_id[20];
	uint32_t build_id_len; /* 0 not known */
	bool tried, other;     /* other: the file there is not the one that ran */
	bool jit, anonymous;
	struct object *object, *debug;
	struct code_list *list; /* of jit code */
	struct unwind_image *tables;
	bool tables_tried;
	uint64_t unnamed; /* addresses without a name */
};

/* A process: its mappings, whose files are dsos, and the unwind tables of those in a state of
 * it. */
struct recorded {
	struct space *space;
	struct unwind_process *unwind; /* NULL not made yet */
	uint32_t unwind_state;
};

struct thread {
	const char *comm; /* NULL not known */
	uint32_t names, nnames;
	bool named, java;
};

struct name_slot {
	uint64_t offset;
	uint32_t owner; /* of a dso; Java's names lose a letter, so these are kept apart */
	uint32_t name;  /* + 1; 0 free */
};

/* What an address was named when it was met last, by the mappings that were in force. */
struct recent {
	uint64_t ip;
	uint32_t owner; /* id of the mappings << 2 | kernel << 1 | Java */
	uint32_t name;  /* + 1; 0 free */
};

enum { KERNEL_DSO = 0, NO_DSO = 1, KSYMBOL_DSO = 1 << 24, FIRST_SLOTS = 4096, RECENT = 8192 };

struct perfspace {
	struct stackin *in;
	struct perf_names names;
	struct arena text;
	VEC(struct dso) dsos;
	struct hash dso_of;    /* path -> index */
	struct hash ids;       /* path -> build id of the file's table: index + 1 in dsos */
	struct hash processes; /* pid -> struct recorded * */
	struct hash thread_of; /* pid << 32 | tid -> index in threads */
	VEC(struct thread) threads;
	VEC(uint32_t) thread_names;
	struct name_slot *slots;
	uint32_t nslots, nnames;
	struct recorded *last; /* of last_pid */
	uint32_t last_pid;
	bool java;             /* the thread named last */
	uint32_t states;       /* ids of mappings given out */
	uint32_t kernel_state; /* another one with each kernel symbol that comes or goes */
	struct recent *recent; /* RECENT of them, by the hash of their address */

	struct code_list kernel;
	bool kernel_read;
	const char *kernel_why; /* no names, and the reason */
	uint64_t kernel_text;   /* _text while it was recorded; 0 not known */
	int64_t kernel_shift;   /* from an address recorded to one of the list */
	uint64_t kernel_unnamed;
	VEC(struct code) ksymbols; /* code that comes and goes; module: a number of its own */
	uint32_t ksymbols_seen;
};

static struct text text_of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

/* --- lists of code --- */

/* Of several names of one address the last line's is taken, which is what perf does. */
static const struct code *code_at(const struct code *v, uint32_t n, uint64_t addr)
{
	uint32_t lo = partition_point(n, i, v[i].start <= addr);

	return lo && addr < v[lo - 1].end ? &v[lo - 1] : NULL;
}

static void list_fini(struct code_list *l)
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

/* The next line of [*text, end), cut off; *ret_end: its end. NULL: there is none. */
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

/* kallsyms: a name holds until the next one begins. */
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

static void list_jit(struct code_list *l, const char *path)
{
	size_t len = 0;
	struct err *e = io_read_file(path, &l->text, &len);
	char *at, *line, *end;

	if (e) {
		err_free(e);
		return;
	}
	for (at = l->text; (line = next_line(&at, l->text + len, &end));) {
		struct code c = { 0 };
		char *s = line;

		c.start = take_hex(&s);
		if (*s++ != ' ')
			continue;
		c.end = c.start + take_hex(&s);
		if (*s++ != ' ' || !*s)
			continue;
		c.name = s;
		vec_push(&l->codes, c);
	}
	list_sort(l);
}

/* --- files --- */

static uint32_t dso_new(struct perfspace *s, const char *path)
{
	struct dso *d = vec_add(&s->dsos);

	d->path = arena_strdup(&s->text, path);
	d->jit = !strncmp(path, "/tmp/perf-", 10);
	d->anonymous = path[0] != '/';
	return s->dsos.n - 1;
}

/* Two files that had one path in turn differ in their build ids. */
static uint32_t dso_of(struct perfspace *s, const char *path, const uint8_t *id, uint32_t len)
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
		*index = dso_new(s, path); /* moves the dsos */
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
	*hash_put(&s->ids, path, strlen(path), NULL) = dso_of(s, path, id, len) + 1;
}

static void hex_of(const uint8_t *id, uint32_t len, char *ret)
{
	for (uint32_t i = 0; i < len; i++)
		sprintf(ret + i * 2, "%02x", id[i]);
}

static bool is_the_one(const struct dso *d, const struct object *o)
{
	uint32_t n;
	const uint8_t *id = object_build_id(o, &n);

	return !d->build_id_len ||
	       (n >= d->build_id_len && !memcmp(id, d->build_id, d->build_id_len));
}

static bool try_open(struct dso *d, const char *path, struct object **ret)
{
	struct err *e = object_open(path, ret);

	if (e) {
		err_free(e);
		*ret = NULL;
		return false;
	}
	if (is_the_one(d, *ret))
		return true;
	object_free(*ret);
	*ret = NULL;
	d->other = true;
	return false;
}

/* The vdso has no file; ours is the same one on the same kernel. */
static void open_vdso(struct dso *d)
{
	const uint8_t *p = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct err *e;

	if (!p)
		return;
	e = object_open_memory("[vdso]", p, 8192, &d->object);
	if (e) {
		err_free(e);
		d->object = NULL;
	} else if (!is_the_one(d, d->object)) {
		object_free(d->object);
		d->object = NULL;
	}
}

static void dso_open(struct perfspace *s, struct dso *d)
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
		list_jit(d->list, d->path);
		return;
	}
	if (!strcmp(d->path, "[vdso]"))
		open_vdso(d);
	if (d->anonymous)
		return;
	hex_of(d->build_id, d->build_id_len, hex);
	if (!try_open(d, d->path, &d->object) && d->build_id_len && home) {
		cleanup_free char *cached =
			xasprintf("%s/.debug/.build-id/%.2s/%s/elf", home, hex, hex + 2);

		(void)try_open(d, cached, &d->object);
	}
	if (d->object && !d->build_id_len) {
		uint32_t n;
		const uint8_t *id = object_build_id(d->object, &n);

		hex_of(id, n < 20 ? n : 20, hex);
	}
	if (*hex) {
		cleanup_free char *debug =
			xasprintf("/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
		bool other = d->other;

		(void)try_open(d, debug, &d->debug);
		d->other = other && !d->object;
	}
}

/* --- the kernel --- */

/* The build id of the running kernel: a note of /sys/kernel/notes. */
static bool running_kernel_is(const struct dso *k)
{
	enum { NOTE_BUILD_ID = 3 };
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct err *e;
	struct bytes b;

	if (!k->build_id_len)
		return true;
	e = io_read_file("/sys/kernel/notes", &text, &len);
	if (e) {
		err_free(e);
		return true;
	}
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

static void kernel_read(struct perfspace *s)
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
		if (e) {
			err_free(e);
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

	/* "[kernel.kallsyms]_text", and in pgoff where that symbol was */
	if (!strncmp(m->path, front, sizeof(front) - 1)) {
		s->kernel_text = !strcmp(m->path + sizeof(front) - 1, "text") ? m->pgoff : 0;
		if (m->build_id)
			perfspace_build_id(s, "[kernel.kallsyms]", m->build_id, m->build_id_len);
	}
}

void perfspace_ksymbol(struct perfspace *s, uint64_t addr, uint64_t len, const char *name,
		       bool gone)
{
	struct code c = { .start = addr, .end = addr + len, .module = s->ksymbols_seen++ };
	uint32_t i = 0, n = 0;

	if (c.end <= c.start)
		return;
	s->kernel_state++;
	/* what was there has gone, told or not */
	for (; i < s->ksymbols.n; i++)
		if (s->ksymbols.v[i].end <= addr || s->ksymbols.v[i].start >= c.end)
			s->ksymbols.v[n++] = s->ksymbols.v[i];
	s->ksymbols.n = n;
	if (gone)
		return;
	c.name = arena_strdup(&s->text, name);
	vec_push(&s->ksymbols, c);
	for (i = s->ksymbols.n - 1; i && s->ksymbols.v[i - 1].start > addr; i--) {
		s->ksymbols.v[i] = s->ksymbols.v[i - 1];
		s->ksymbols.v[i - 1] = c;
	}
}

/* --- processes --- */

struct perfspace *perfspace_new(struct stackin *in)
{
	struct perfspace *s = xcalloc(1, sizeof(*s));

	s->in = in;
	s->recent = xcalloc(RECENT, sizeof(*s->recent));
	arena_init(&s->text);
	dso_new(s, "[kernel.kallsyms]");
	dso_new(s, "[unknown]");
	return s;
}

static void recorded_free(struct recorded *r)
{
	if (!r)
		return;
	space_free(r->space);
	unwind_process_free(r->unwind);
	free(r);
}

void perfspace_free(struct perfspace *s)
{
	const void *key;
	uint32_t pos = 0;
	uint64_t *val;
	size_t len;

	if (!s)
		return;
	while (hash_next(&s->processes, &pos, &key, &len, &val))
		recorded_free((struct recorded *)(uintptr_t)*val);
	for (uint32_t i = 0; i < s->dsos.n; i++) {
		struct dso *d = &s->dsos.v[i];

		object_free(d->object);
		object_free(d->debug);
		unwind_image_free(d->tables);
		if (d->list)
			list_fini(d->list);
		free(d->list);
	}
	list_fini(&s->kernel);
	vec_fini(&s->ksymbols);
	vec_fini(&s->dsos);
	vec_fini(&s->threads);
	vec_fini(&s->thread_names);
	hash_fini(&s->dso_of);
	hash_fini(&s->ids);
	hash_fini(&s->processes);
	hash_fini(&s->thread_of);
	free(s->slots);
	free(s->recent);
	perf_names_fini(&s->names);
	arena_fini(&s->text);
	free(s);
}

/* What is known of a process; NULL nothing. */
static struct recorded *recorded_of(struct perfspace *s, uint32_t pid)
{
	uint64_t *val;

	if (s->last && s->last_pid == pid)
		return s->last;
	val = hash_get(&s->processes, &pid, sizeof(pid));
	s->last_pid = pid;
	s->last = val ? (struct recorded *)(uintptr_t)*val : NULL;
	return s->last;
}

/* Another space in the place of what a process had. */
static struct recorded *recorded_put(struct perfspace *s, uint32_t pid, struct space *space)
{
	uint64_t *val = hash_put(&s->processes, &pid, sizeof(pid), NULL);
	struct recorded *r = xcalloc(1, sizeof(*r));

	recorded_free((struct recorded *)(uintptr_t)*val);
	r->space = space;
	*val = (uint64_t)(uintptr_t)r;
	s->last = NULL;
	return r;
}

static const struct mappings *mappings_of(const struct recorded *r)
{
	const struct mappings *list = NULL;

	err_free(space_mappings(r->space, 0, &list));
	return list;
}

void perfspace_map(struct perfspace *s, uint32_t pid, const struct perfspace_map *p)
{
	static const char *const jits[] = { "//anon", "/dev/zero", "/anon_hugepage",
					    "/memfd:", "/SYSV" };
	struct mapping new = { .start = p->start, .end = p->start + p->len, .offset = p->pgoff };
	struct recorded *r;
	bool jit = !strncmp(p->path, "[anon", 5) || !*p->path;

	if (new.end <= new.start)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(jits); i++)
		jit |= !strncmp(p->path, jits[i], strlen(jits[i]));
	if (jit) {
		char path[40];

		snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
		new.file = dso_of(s, path, NULL, 0);
		new.offset = new.start; /* the list there has addresses */
	} else {
		new.file = dso_of(s, p->path, p->build_id, p->build_id ? p->build_id_len : 0);
	}
	new.path = s->dsos.v[new.file].path;
	r = recorded_of(s, pid);
	if (!r)
		r = recorded_put(s, pid, space_record((pid_t)pid));
	space_record_map(r->space, &new, ++s->states);
}

static struct thread *thread_of(struct perfspace *s, uint32_t pid, uint32_t tid)
{
	uint64_t key = (uint64_t)pid << 32 | tid, *index;
	bool fresh;

	index = hash_put(&s->thread_of, &key, sizeof(key), &fresh);
	if (fresh) {
		*index = s->threads.n;
		(void)vec_add(&s->threads);
	}
	return &s->threads.v[*index];
}

void perfspace_comm(struct perfspace *s, uint32_t pid, uint32_t tid, const char *comm)
{
	struct thread *t = thread_of(s, pid, tid);

	t->named = false;
	t->comm = arena_strdup(&s->text, comm);
}

void perfspace_fork(struct perfspace *s, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid)
{
	const char *comm = thread_of(s, ppid, ptid)->comm;
	struct thread *t = thread_of(s, pid, tid);
	struct recorded *parent;

	t->named = false;
	t->comm = comm;
	parent = pid != ppid ? recorded_of(s, ppid) : NULL;
	if (pid != ppid)
		recorded_put(s, pid,
			     parent ? space_record_fork(parent->space, (pid_t)pid)
				    : space_record((pid_t)pid));
}

const uint32_t *perfspace_thread(struct perfspace *s, uint32_t pid, uint32_t tid, uint32_t *ret_n)
{
	struct thread *t = thread_of(s, pid, tid);

	if (!t->named) {
		char p[16], n[16], unknown[24];

		if (!t->comm && !tid)
			t->comm = "swapper";
		snprintf(p, sizeof(p), "%d", (int)pid);
		snprintf(n, sizeof(n), "%d", (int)tid);
		snprintf(unknown, sizeof(unknown), ":%d", (int)tid);
		perf_comm(s->in, &s->names, text_of(t->comm && *t->comm ? t->comm : unknown),
			  text_of(p), text_of(n));
		t->named = true;
		t->java = s->names.java;
		t->names = s->thread_names.n;
		t->nnames = s->names.comm.n;
		for (uint32_t i = 0; i < s->names.comm.n; i++)
			vec_push(&s->thread_names, s->names.comm.v[i]);
	}
	s->java = s->names.java = t->java;
	*ret_n = t->nnames;
	return s->thread_names.v + t->names;
}

/* --- names --- */

static uint32_t slot_at(const struct perfspace *s, uint64_t offset, uint32_t owner)
{
	uint64_t hash = (offset + (uint64_t)owner * 0x100000001b3u) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(hash >> 32) & (s->nslots - 1);
}

static void slots_grow(struct perfspace *s)
{
	struct name_slot *was = s->slots;
	uint32_t n = s->nslots;

	s->nslots = n ? n * 2 : FIRST_SLOTS;
	s->slots = xcalloc(s->nslots, sizeof(*s->slots));
	for (uint32_t i = 0; i < n; i++)
		if (was[i].name) {
			uint32_t j = slot_at(s, was[i].offset, was[i].owner);

			while (s->slots[j].name)
				j = (j + 1) & (s->nslots - 1);
			s->slots[j] = was[i];
		}
	free(was);
}

/* The place of a name; its name is 0 when it is not known yet. */
static struct name_slot *slot_of(struct perfspace *s, uint32_t dso, uint64_t offset)
{
	uint32_t owner = dso << 1 | s->java, i;

	if (s->nnames * 2 >= s->nslots)
		slots_grow(s);
	i = slot_at(s, offset, owner);
	while (s->slots[i].name && (s->slots[i].offset != offset || s->slots[i].owner != owner))
		i = (i + 1) & (s->nslots - 1);
	if (!s->slots[i].name) {
		s->slots[i].offset = offset;
		s->slots[i].owner = owner;
	}
	return &s->slots[i];
}

/* Code is hot: most addresses of a stack were met a few samples before, with the same mappings. */
static struct recent *recent_of(struct perfspace *s, uint64_t ip)
{
	return &s->recent[ip * 0x9e3779b97f4a7c15u >> 40 & (RECENT - 1)];
}

static uint32_t slot_set(struct perfspace *s, struct name_slot *slot, uint32_t name)
{
	slot->name = name + 1;
	s->nnames++;
	return name;
}

static uint32_t make_name(struct perfspace *s, struct text func, uint64_t ip, struct text mod)
{
	char pc[24];
	int n = snprintf(pc, sizeof(pc), "%llx", (unsigned long long)ip);

	if (!func.n)
		func = (struct text){ "[unknown]", 9 };
	s->names.java = s->java;
	return perf_function(s->in, &s->names, func, (struct text){ pc, (size_t)n }, mod, false);
}

static uint32_t kernel_name(struct perfspace *s, uint64_t ip)
{
	const struct code *c = code_at(s->ksymbols.v, s->ksymbols.n, ip);
	uint32_t dso = c ? KSYMBOL_DSO + c->module : KERNEL_DSO;
	struct name_slot *slot = slot_of(s, dso, ip);
	struct text mod = text_of("[kernel.kallsyms]"), func = { "", 0 };

	if (slot->name)
		return slot->name - 1;
	if (!s->kernel_read)
		kernel_read(s);
	if (!c) {
		c = code_at(s->kernel.codes.v, s->kernel.codes.n, ip + (uint64_t)s->kernel_shift);
		if (c)
			mod = text_of(s->kernel.modules.v[c->module]);
	}
	if (c)
		func = text_of(c->name);
	else
		s->kernel_unnamed++;
	return slot_set(s, slot, make_name(s, func, ip, mod));
}

uint32_t perfspace_kernel(struct perfspace *s, uint64_t ip)
{
	uint32_t owner = s->kernel_state << 2 | 2 | s->java;
	struct recent *r = recent_of(s, ip);

	if (!r->name || r->ip != ip || r->owner != owner)
		*r = (struct recent){ ip, owner, kernel_name(s, ip) + 1 };
	return r->name - 1;
}

char *perf_demangle(const char *name); /* perfdemangle.c */

static struct text dso_name(struct perfspace *s, struct dso *d, uint64_t offset)
{
	const struct object_symbol *sym = NULL;
	const struct code *c;
	uint64_t addr;

	dso_open(s, d);
	if (d->list) {
		c = code_at(d->list->codes.v, d->list->codes.n, offset);
		return c ? text_of(c->name) : (struct text){ "", 0 };
	}
	if (d->object && object_offset_to_addr(d->object, offset, &addr)) {
		if (d->debug)
			sym = object_find_addr(d->debug, addr);
		if (!sym)
			sym = object_find_addr(d->object, addr);
	}
	if (!sym)
		return (struct text){ "", 0 };
	if (!strncmp(sym->name, "_Z", 2) || !strncmp(sym->name, "_R", 2)) {
		cleanup_free char *plain = perf_demangle(sym->name);

		if (plain)
			return text_of(arena_strdup(&s->text, plain));
	}
	return text_of(sym->name);
}

static uint32_t user_name(struct perfspace *s, const struct recorded *r, uint64_t ip)
{
	const struct mapping *m = r ? mappings_find(mappings_of(r), ip) : NULL;
	uint32_t dso = NO_DSO;
	struct text func = { "", 0 };
	struct name_slot *slot;
	uint64_t offset = s->in->options.addrs ? ip : 0;

	if (m) {
		dso = m->file;
		offset = ip - m->start + m->offset;
	}
	slot = slot_of(s, dso, offset);
	if (slot->name)
		return slot->name - 1;
	if (dso != NO_DSO)
		func = dso_name(s, &s->dsos.v[dso], offset);
	if (!func.n)
		s->dsos.v[dso].unnamed++;
	return slot_set(s, slot, make_name(s, func, ip, text_of(s->dsos.v[dso].path)));
}

uint32_t perfspace_user(struct perfspace *s, uint32_t pid, uint64_t ip)
{
	const struct recorded *p = recorded_of(s, pid);
	uint32_t owner = (p ? space_record_state(p->space) : 0) << 2 | s->java;
	struct recent *r = recent_of(s, ip);

	if (!r->name || r->ip != ip || r->owner != owner)
		*r = (struct recent){ ip, owner, user_name(s, p, ip) + 1 };
	return r->name - 1;
}

/* --- unwind tables --- */

/* How far a mapping lies from the addresses in its file; false when it holds none of its text. */
static bool bias_of(const struct object *o, const struct mapping *m, uint64_t *ret)
{
	uint64_t off, n, addr;

	for (uint32_t i = 0; object_text_segment(o, i, &off, &n, &addr); i++)
		if (off < m->offset + (m->end - m->start) && off + n > m->offset) {
			*ret = m->start - m->offset + off - addr;
			return true;
		}
	return false;
}

const struct unwind_process *perfspace_unwind(struct perfspace *s, uint32_t pid)
{
	static const struct unwind_process nothing;
	struct recorded *r = recorded_of(s, pid);
	const struct mappings *list;

	if (!r)
		return &nothing;
	if (r->unwind && r->unwind_state == space_record_state(r->space))
		return r->unwind;
	unwind_process_free(r->unwind);
	r->unwind = xcalloc(1, sizeof(*r->unwind));
	r->unwind_state = space_record_state(r->space);
	list = mappings_of(r);
	for (uint32_t i = 0; i < list->n; i++) {
		const struct mapping *m = &list->v[i];
		struct dso *d = &s->dsos.v[m->file];
		struct unwind_range range = { m->start, m->end, m->start, NULL };

		dso_open(s, d);
		if (d->object && !d->tables_tried)
			err_free(unwind_image_open(d->object, &d->tables));
		d->tables_tried = true;
		if (d->tables && bias_of(d->object, m, &range.bias))
			range.image = d->tables;
		vec_push(&r->unwind->ranges, range);
	}
	return r->unwind;
}

void perfspace_notes(struct perfspace *s)
{
	uint32_t gone = 0, changed = 0;
	const char *example = NULL;

	if (s->kernel_why && s->kernel_unnamed)
		stackin_note(s->in, "kernel functions have no names: %s", s->kernel_why);
	if (s->in->options.no_symbols)
		return;
	for (uint32_t i = NO_DSO + 1; i < s->dsos.n; i++) {
		const struct dso *d = &s->dsos.v[i];

		if (d->jit || d->anonymous || d->object || !d->tried || !d->unnamed)
			continue;
		if (d->other)
			changed++;
		else
			gone++;
		example = example ? example : d->path;
	}
	if (gone || changed)
		stackin_note(s->in, "no names from %u file%s that %s (%s)", gone + changed,
			     gone + changed == 1 ? "" : "s",
			     !gone      ? "changed since it was recorded"
			     : !changed ? "cannot be read"
					: "cannot be read or changed since",
			     example);
}
