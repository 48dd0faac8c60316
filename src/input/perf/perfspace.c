#define _GNU_SOURCE
/* The processes and threads of a recording: their mappings, and the name of each address. */
#include "input/perf/perfspace_private.h"

static struct text perfspace_text_of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

/* --- processes --- */

struct perfspace *perfspace_new(struct stackin *in)
{
	struct perfspace *s = xcalloc(1, sizeof(*s));

	s->in = in;
	s->lists_left = PERF_LISTS_MAX;
	s->tables_left = UNWIND_IMAGES_MAX;
	s->tables_work_left = UNWIND_WORK_MAX;
	s->symbols_left = PERF_SYMBOLS_MAX;
	s->ksymbol_moves_left = PERF_KSYMBOL_MOVES;
	s->recent = xcalloc(RECENT, sizeof(*s->recent));
	arena_init(&s->text);
	perfspace_dso_new(s, "[kernel.kallsyms]");
	perfspace_dso_new(s, "[unknown]");
	return s;
}

static void recorded_free(struct recorded *r)
{
	if (!r)
		return;
	space_free(r->space);
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

		if (d->list)
			perfspace_list_fini(d->list);
		free(d->list);
	}
	perf_files_free(s);
	hash_fini(&s->symbol_names);
	perfspace_list_fini(&s->kernel);
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

static const struct unwind_range *range_find(void *recorded, uint64_t addr);

/* Returns the process, NULL: not known. */
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

/* Replaces the space of a process. */
static struct recorded *recorded_put(struct perfspace *s, uint32_t pid, struct space *space)
{
	uint64_t *val = hash_put(&s->processes, &pid, sizeof(pid), NULL);
	struct recorded *r = xcalloc(1, sizeof(*r));

	recorded_free((struct recorded *)(uintptr_t)*val);
	r->of = s;
	r->space = space;
	r->unwind.find = range_find;
	r->unwind.find_arg = r;
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
		new.file = perfspace_dso_of(s, path, NULL, 0);
		new.offset = new.start; /* the list of that mapping has addresses */
	} else {
		new.file = perfspace_dso_of(s, p->path, p->build_id,
					    p->build_id ? p->build_id_len : 0);
	}
	new.path = s->dsos.v[new.file].path;
	r = recorded_of(s, pid);
	if (!r)
		r = recorded_put(s, pid, space_record((pid_t)pid, &s->room));
	space_record_map(r->space, &new, ++s->states);
}

const char *perfspace_keep(struct perfspace *s, const char *text, size_t most)
{
	const size_t n = strnlen(text, most);

	s->text_bytes += n + 1;
	return arena_strndup(&s->text, text, n);
}

uint64_t perfspace_bytes(const struct perfspace *s)
{
	/* with the space, its name and list, and the places in tables */
	enum { PROCESS = 512, THREAD = 96, DSO = sizeof(struct dso) + 96 };

	return s->text_bytes + (uint64_t)s->processes.n * PROCESS +
	       (uint64_t)s->threads.n * THREAD + (uint64_t)s->dsos.n * DSO +
	       s->room.n * sizeof(struct mapping) +
	       (uint64_t)s->thread_names.n * sizeof(*s->thread_names.v);
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

	if (t->comm && !strncmp(t->comm, comm, PERF_COMM_MAX))
		return;
	t->named = false;
	t->comm = perfspace_keep(s, comm, PERF_COMM_MAX);
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
				    : space_record((pid_t)pid, &s->room));
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
		perf_comm(s->in, &s->names,
			  perfspace_text_of(t->comm && *t->comm ? t->comm : unknown),
			  perfspace_text_of(p), perfspace_text_of(n));
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
	return (uint32_t)hash_pair(offset, owner) & (s->nslots - 1);
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

/* Returns the place for a name. The name is 0 when it is not known yet. */
static struct name_slot *perfspace_slot_of(struct perfspace *s, uint32_t dso, uint64_t offset)
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

/* Remembers names. Code is hot: most addresses of a stack were met a few samples before, with the
 * same mappings. */
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
	const struct code *c = perfspace_code_at(s->ksymbols.v, s->ksymbols.n, ip);
	uint32_t dso = c ? KSYMBOL_DSO + c->module : KERNEL_DSO;
	struct name_slot *slot = perfspace_slot_of(s, dso, ip);
	struct text mod = perfspace_text_of("[kernel.kallsyms]"), func = { "", 0 };

	if (slot->name)
		return slot->name - 1;
	if (!s->kernel_read)
		perfspace_kernel_read(s);
	if (!c) {
		c = perfspace_code_at(s->kernel.codes.v, s->kernel.codes.n,
				      ip + (uint64_t)s->kernel_shift);
		if (c)
			mod = perfspace_text_of(s->kernel.modules.v[c->module]);
	}
	if (c)
		func = perfspace_text_of(c->name);
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

char *symbol_demangle_short(const char *name); /* program/symbol/demangle.c */

/* A function of a file, as its symbol tells. */
struct symbol_key {
	uint64_t addr, size;
	uint32_t owner, debug; /* the debug file and the file may have symbols at one address */
};

/* Returns the name of a symbol, which is made once. It may be of 16 kB, and a hot function has
 * thousands of recorded addresses. */
static uint32_t symbol_name(struct perfspace *s, const struct object_symbol *sym, uint32_t dso,
			    bool debug, uint64_t ip, struct text mod)
{
	struct symbol_key key = { sym->addr, sym->size, dso << 1 | s->java, debug };
	bool fresh, mangled = !strncmp(sym->name, "_Z", 2) || !strncmp(sym->name, "_R", 2);
	uint64_t *name = hash_put(&s->symbol_names, &key, sizeof(key), &fresh);
	cleanup_free char *plain = fresh && mangled ? symbol_demangle_short(sym->name) : NULL;

	if (fresh)
		*name = make_name(s, perfspace_text_of(plain ? plain : sym->name), ip, mod);
	return (uint32_t)*name;
}

/* Returns the name of the code at that offset of a dso. */
static uint32_t dso_name(struct perfspace *s, uint32_t dso, uint64_t offset, uint64_t ip)
{
	struct dso *d = &s->dsos.v[dso];
	struct text mod = perfspace_text_of(d->path);
	const struct object_symbol *sym = NULL;
	const struct code *c = NULL;
	bool debug = false;
	uint64_t addr;

	if (dso != NO_DSO)
		perfspace_dso_open(s, d);
	if (d->list)
		c = perfspace_code_at(d->list->codes.v, d->list->codes.n, offset);
	if (c)
		return make_name(s, perfspace_text_of(c->name), ip, mod);
	if (!d->list && d->file && object_offset_to_addr(d->file->object, offset, &addr)) {
		if (d->debug)
			sym = perf_file_find(s, d->debug, addr);
		debug = sym != NULL;
		if (!sym)
			sym = perf_file_find(s, d->file, addr);
	}
	if (sym && *sym->name)
		return symbol_name(s, sym, dso, debug, ip, mod);
	d->unnamed++;
	return make_name(s, (struct text){ "", 0 }, ip, mod);
}

static uint32_t user_name(struct perfspace *s, const struct recorded *r, uint64_t ip)
{
	const struct mapping *m = r ? mappings_find(mappings_of(r), ip) : NULL;
	uint32_t dso = NO_DSO;
	struct name_slot *slot;
	uint64_t offset = s->in->options.addrs ? ip : 0;

	if (m) {
		dso = m->file;
		offset = ip - m->start + m->offset;
	}
	slot = perfspace_slot_of(s, dso, offset);
	if (slot->name)
		return slot->name - 1;
	return slot_set(s, slot, dso_name(s, dso, offset, ip));
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

/* Looks in the list of mappings itself: a list of ranges would be made anew after each change. */
static const struct unwind_range *range_find(void *recorded, uint64_t addr)
{
	struct recorded *r = recorded;
	uint32_t state = space_record_state(r->space);
	const struct mapping *m;
	struct dso *d;

	if (r->range_state == state && addr >= r->range.start && addr < r->range.end)
		return &r->range;
	m = mappings_find(mappings_of(r), addr);
	if (!m)
		return NULL;
	d = &r->of->dsos.v[m->file];
	perfspace_dso_open(r->of, d);
	r->range = (struct unwind_range){ m->start, m->end, m->start, NULL, NULL };
	r->range_state = state;
	if (d->file)
		perf_file_tables(r->of, d->file);
	for (uint32_t i = 0; d->file && i < d->file->texts.n; i++) {
		const struct dso_text *t = &d->file->texts.v[i];

		if (t->off < m->offset + (m->end - m->start) && t->off + t->n > m->offset) {
			r->range.bias = m->start - m->offset + t->delta;
			r->range.image = d->file->tables;
			break;
		}
	}
	return &r->range;
}

const struct unwind_process *perfspace_unwind(struct perfspace *s, uint32_t pid)
{
	static const struct unwind_process nothing;
	const struct recorded *r = recorded_of(s, pid);

	return r ? &r->unwind : &nothing;
}

void perfspace_notes(struct perfspace *s)
{
	uint32_t gone = 0, changed = 0, lists = 0;
	const char *example = NULL, *list = NULL, *list_why = NULL;

	if (s->kernel_why && s->kernel_unnamed)
		stackin_note(s->in, "kernel functions have no names: %s", s->kernel_why);
	if (s->ksymbols_ended)
		stackin_note(s->in, "BPF programs have no names: too many of them came and went");
	if (s->room.left_out)
		stackin_note(s->in, "%llu mappings are left out: the processes have too many",
			     (unsigned long long)s->room.left_out);
	if (s->tables_left_out)
		stackin_note(
			s->in,
			"stacks through %u file%s are cut off: the unwind tables are too large",
			s->tables_left_out, s->tables_left_out == 1 ? "" : "s");
	if (s->symbols_left_out)
		stackin_note(s->in,
			     "no names from %u file%s: the symbols of all files are too large",
			     s->symbols_left_out, s->symbols_left_out == 1 ? "" : "s");
	if (s->in->options.no_symbols)
		return;
	for (uint32_t i = NO_DSO + 1; i < s->dsos.n; i++) {
		const struct dso *d = &s->dsos.v[i];

		if (d->list_why && d->unnamed) {
			lists++;
			list = list ?: d->path;
			list_why = list_why ?: d->list_why;
		}
		if (d->jit || d->anonymous || d->file || !d->tried || !d->unnamed)
			continue;
		if (d->other)
			changed++;
		else
			gone++;
		example = example ? example : d->path;
	}
	if (lists)
		stackin_note(s->in, "no names from %u list%s of compiled code: %s %s", lists,
			     lists == 1 ? "" : "s", list, list_why);
	if (gone || changed)
		stackin_note(s->in, "no names from %u file%s that %s (%s)", gone + changed,
			     gone + changed == 1 ? "" : "s",
			     !gone      ? "changed since it was recorded"
			     : !changed ? "cannot be read"
					: "cannot be read or changed since",
			     example);
}
