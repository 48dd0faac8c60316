/* The D program of `descry malloc record`. For a function that is number 3:
 *
 *	entry    /!self->in || uregs[R_RSP] >= self->sp/   the outermost call, or one that a jump left
 *	         notes the number, the stack pointer and the arguments
 *	return   /self->in == 3 && uregs[R_RSP] >= self->sp/
 *	         records size and address
 *
 * realloc(NULL, n) of glibc jumps to malloc() on the same stack, and so counts as malloc(n). A call
 * whose return is not seen is left in the same way by the thread's next call.
 *
 * free() and the call of realloc() record the address that they are given at the entry. */
#include <errno.h>
#include <string.h>

#include "base/out.h"
#include "calls/returns.h"
#include "memory/alloc/alloc_record.h"

// clang-format off
static const struct alloc_function functions[] = {
	{ "malloc", ALLOC_MALLOC, 0, -1, -1, -1, false, false },
	{ "calloc", ALLOC_CALLOC, 1, 0, -1, -1, false, false },
	{ "realloc", ALLOC_REALLOC, 1, -1, -1, 0, false, false },
	{ "reallocarray", ALLOC_REALLOC, 2, 1, -1, 0, false, false },
	{ "posix_memalign", ALLOC_ALIGNED, 2, -1, 1, -1, true, false },
	{ "aligned_alloc", ALLOC_ALIGNED, 1, -1, 0, -1, false, false },
	{ "memalign", ALLOC_ALIGNED, 1, -1, 0, -1, false, false },
	{ "valloc", ALLOC_ALIGNED, 0, -1, -1, -1, false, false },
	{ "pvalloc", ALLOC_ALIGNED, 0, -1, -1, -1, false, false },
	{ "free", ALLOC_FREE, -1, -1, -1, 0, false, false },
	{ "cfree", ALLOC_FREE, -1, -1, -1, 0, false, false },
	/* jemalloc's */
	{ "mallocx", ALLOC_MALLOC, 0, -1, -1, -1, false, false },
	{ "rallocx", ALLOC_REALLOC, 1, -1, -1, 0, false, false },
	{ "dallocx", ALLOC_FREE, -1, -1, -1, 0, false, false },
	{ "sdallocx", ALLOC_FREE, -1, -1, -1, 0, false, false },
	/* mimalloc's, which have its prefix always */
	{ "zalloc", ALLOC_CALLOC, 0, -1, -1, -1, false, false },
	{ "malloc_aligned", ALLOC_ALIGNED, 0, -1, 1, -1, false, false },
	{ "zalloc_aligned", ALLOC_ALIGNED, 0, -1, 1, -1, false, false },
	{ "realloc_aligned", ALLOC_REALLOC, 1, -1, -1, 0, false, false },
	{ "free_size", ALLOC_FREE, -1, -1, -1, 0, false, false },
	{ "free_size_aligned", ALLOC_FREE, -1, -1, -1, 0, false, false },
	{ "free_aligned", ALLOC_FREE, -1, -1, -1, 0, false, false },
	{ "_Znwm", ALLOC_MALLOC, 0, -1, -1, -1, false, true },
	{ "_Znam", ALLOC_MALLOC, 0, -1, -1, -1, false, true },
	{ "_ZnwmRKSt9nothrow_t", ALLOC_MALLOC, 0, -1, -1, -1, false, true },
	{ "_ZnamRKSt9nothrow_t", ALLOC_MALLOC, 0, -1, -1, -1, false, true },
	{ "_ZnwmSt11align_val_t", ALLOC_ALIGNED, 0, -1, 1, -1, false, true },
	{ "_ZnamSt11align_val_t", ALLOC_ALIGNED, 0, -1, 1, -1, false, true },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", ALLOC_ALIGNED, 0, -1, 1, -1, false, true },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", ALLOC_ALIGNED, 0, -1, 1, -1, false, true },
	{ "_ZdlPv", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdaPv", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdlPvm", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdaPvm", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdlPvSt11align_val_t", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdaPvSt11align_val_t", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdlPvmSt11align_val_t", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdaPvmSt11align_val_t", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdlPvRKSt9nothrow_t", ALLOC_FREE, -1, -1, -1, 0, false, true },
	{ "_ZdaPvRKSt9nothrow_t", ALLOC_FREE, -1, -1, -1, 0, false, true },
};
// clang-format on

/* Allocators that live beside another malloc() have names of their own: mimalloc, jemalloc (as the
 * build was told; as Rust's crate tells it), tcmalloc. */
static const char *const prefixes[] = { "", "mi_", "je_", "_rjem_", "_rjem_je_", "tc_" };

enum { LATER_MAX = 32 };

struct maker {
	struct alloc_record *r;
	struct probe_set *ps;
	struct returns *returns;
	const struct process_objects *objects;
	VEC(struct process_object) later; /* that may be loaded */
	const struct process_object *po;
	const struct alloc_function *f;
	const char *name; /* of the function there: f's, with a prefix */
	uint32_t number;
	struct out o;
};

static void clause(struct maker *m, int what)
{
	vec_push(&m->r->clauses, (struct alloc_clause){ what, m->f });
}

/* An object that is not loaded has its path, because a name is looked up in fewer places. */
static const char *module_of(const struct maker *m, const struct process_object *po)
{
	bool loaded = po >= m->objects->v && po < m->objects->v + m->objects->n;

	return po->is_main ? "a.out" : loaded ? po->name : po->seen;
}

static const char *probe(struct maker *m, const char *name)
{
	return arena_printf(&m->r->arena, "pid$target:%s:%s:%s", module_of(m, m->po), m->name,
			    name);
}

static void put_pid(struct maker *m)
{
	if (m->r->follow)
		out_str(&m->o, "\ttrace(pid);\n");
}

static void put_stack(struct maker *m)
{
	if (m->r->depth)
		out_printf(&m->o, "\tustack(%u);\n", m->r->depth);
}

static void put_free(struct maker *m)
{
	out_printf(&m->o, "%s\n/arg0 && (!self->in || uregs[R_RSP] >= self->sp)/\n{\n",
		   probe(m, "entry"));
	put_pid(m);
	out_str(&m->o, "\ttrace((uint64_t)arg0);\n");
	put_stack(m);
	out_str(&m->o, "}\n\n");
	clause(m, ALLOC_EVENT);
}

static void put_entry(struct maker *m)
{
	const struct alloc_function *f = m->f;
	bool records = f->addr >= 0 || m->r->depth;

	out_printf(&m->o, "%s\n/!self->in || uregs[R_RSP] >= self->sp/\n{\n\tself->in = %u;\n",
		   probe(m, "entry"), m->number);
	out_str(&m->o, "\tself->sp = uregs[R_RSP];\n");
	if (f->count >= 0)
		out_printf(&m->o, "\tself->size = (uint64_t)arg%d * (uint64_t)arg%d;\n", f->count,
			   f->size);
	else
		out_printf(&m->o, "\tself->size = (uint64_t)arg%d;\n", f->size);
	if (f->align >= 0)
		out_printf(&m->o, "\tself->align = (uint64_t)arg%d;\n", f->align);
	if (f->by_pointer && !m->r->no_addresses)
		out_str(&m->o, "\tself->to = (uint64_t)arg0;\n");
	if (records)
		put_pid(m);
	if (f->addr >= 0)
		out_printf(&m->o, "\ttrace((uint64_t)arg%d);\n", f->addr);
	put_stack(m);
	out_str(&m->o, "}\n\n");
	clause(m, records ? ALLOC_AT_STACK : ALLOC_NOTHING);
}

static void put_return(struct maker *m, const char *places, const char *result)
{
	const struct alloc_function *f = m->f;
	bool left_out = f->by_pointer && m->r->no_addresses;

	out_printf(&m->o, "%s\n/self->in == %u && uregs[R_RSP] >= self->sp/\n{\n\tself->in = 0;\n",
		   places, m->number);
	put_pid(m);
	if (left_out)
		out_str(&m->o, "\ttrace((uint64_t)0);\n");
	else if (f->by_pointer)
		out_printf(
			&m->o,
			"\tthis->p = %s ? 0 : *(uint64_t *)copyin(self->to, 8);\n\ttrace(this->p);\n",
			result);
	else
		out_printf(&m->o, "\ttrace((uint64_t)%s);\n", result);
	out_str(&m->o, "\ttrace(self->size);\n");
	if (f->op == ALLOC_ALIGNED)
		out_str(&m->o,
			f->align >= 0 ? "\ttrace(self->align);\n" : "\ttrace((uint64_t)4096);\n");
	out_str(&m->o, "}\n\n");
	clause(m, left_out ? ALLOC_LEFT_OUT : ALLOC_EVENT);
}

/* Adds a function of the object m->po. */
static struct err *put_function(struct maker *m, const struct object_symbol *s)
{
	struct return_places places = { 0 };
	struct err *e;

	if (m->f->op == ALLOC_FREE) {
		put_free(m);
		return NULL;
	}
	e = returns_find(m->returns, m->po, s, false, &places);
	if (!e && (places.symbolic || places.rets.n)) {
		m->number++;
		put_entry(m);
		if (places.symbolic)
			put_return(m, probe(m, "return"), "arg1");
		if (places.rets.n) {
			struct out list;

			out_init(&list, NULL);
			for (uint32_t i = 0; i < places.rets.n; i++)
				if (probe_name_is_plain(module_of(m, places.rets.v[i].in)))
					out_printf(&list, "%spid$target:%s:--:%llx",
						   list.n ? ",\n" : "",
						   module_of(m, places.rets.v[i].in),
						   (unsigned long long)places.rets.v[i].addr);
			out_char(&list, '\0');
			if (list.n > 1)
				put_return(m, arena_strdup(&m->r->arena, list.v), "uregs[R_RAX]");
			out_fini(&list);
		}
	}
	vec_fini(&places.rets);
	return e;
}

static const struct object_symbol *defined(const struct process_object *po, const char *name)
{
	const struct object_symbol *s = object_find_name(po->object, name);

	return s && s->is_func && s->is_global && !s->is_ifunc ? s : NULL;
}

static const struct object_symbol *prefixed(struct maker *m, const char *prefix, const char *name)
{
	m->name = arena_printf(&m->r->arena, "%s%s", prefix, name);
	return defined(m->po, m->name);
}

static bool defines_malloc(struct maker *m)
{
	bool any = false;

	for (uint32_t i = 0; i < ARRAY_SIZE(prefixes) && !any; i++)
		any = prefixed(m, prefixes[i], "malloc");
	return any;
}

static struct err *put_object(struct maker *m)
{
	uint64_t seen[ARRAY_SIZE(functions) * ARRAY_SIZE(prefixes)];
	struct err *e = NULL;

	for (uint32_t i = 0, n = 0; i < ARRAY_SIZE(functions) * ARRAY_SIZE(prefixes) && !e; i++) {
		const char *prefix = prefixes[i / ARRAY_SIZE(functions)];
		const struct alloc_function *f = &functions[i % ARRAY_SIZE(functions)];
		const struct object_symbol *s;
		bool is_new;

		if (!prefixed(m, prefix, "malloc") || (*prefix && !prefixed(m, prefix, "free")))
			continue;
		s = prefixed(m, prefix, f->name);
		is_new = s != NULL;
		for (uint32_t k = 0; k < n && is_new; k++)
			is_new = seen[k] != s->addr; /* another name of the same function */
		if (!is_new)
			continue;
		seen[n++] = s->addr;
		m->f = f;
		e = put_function(m, s);
	}
	return e;
}

/* --- objects that are loaded later --- */

static void take_later(void *arg, const struct process_object *po)
{
	struct maker *m = arg;
	bool known = false;

	for (uint32_t i = 0; i < m->objects->n; i++)
		known |= m->objects->v[i].dev == po->dev && m->objects->v[i].inode == po->inode;
	for (uint32_t i = 0; i < m->later.n; i++)
		known |= m->later.v[i].dev == po->dev && m->later.v[i].inode == po->inode;
	m->po = po;
	if (!known && m->later.n < LATER_MAX && object_is_x86_64(po->object) && defines_malloc(m) &&
	    probe_name_is_plain(po->seen))
		vec_push(&m->later, *po);
}

/* Puts the functions of allocators that the process may yet load by dlopen(3): all libraries near
 * the program, and those with such a name where the system has its libraries. */
static struct err *put_later(struct maker *m, pid_t pid)
{
	struct err *e = NULL;

	process_libraries_near(m->ps, pid, m->objects, take_later, m);
	process_libraries(m->ps, pid, m->objects, "lib*malloc*.so*", take_later, m);
	for (uint32_t i = 0; i < m->later.n && !e; i++) {
		m->po = &m->later.v[i];
		e = put_object(m);
	}
	return e;
}

struct err *alloc_record_program(struct alloc_record *r, struct probe_set *ps, pid_t pid,
				 char **ret)
{
	const struct process_objects *objects;
	struct maker m = { .r = r, .ps = ps };
	struct err *e = process_objects(ps, pid, &objects);

	m.objects = objects;
	e = e ?: returns_new(pid, objects, &m.returns);
	out_init(&m.o, NULL);
	out_str(&m.o, "self uint64_t in, sp, size, align, to;\n\n");
	for (uint32_t i = 0; !e && i < objects->n; i++) {
		m.po = &objects->v[i];
		/* The dynamic linker has a malloc() for itself. */
		if (process_object_is_linker(m.po) || !defines_malloc(&m))
			continue;
		if (!probe_name_is_plain(module_of(&m, m.po))) {
			e = err_new(
				EINVAL,
				"%s defines malloc(), and D cannot hold the file's name: rename it",
				m.po->name);
			break;
		}
		vec_push(&r->objects, arena_strdup(&r->arena, m.po->name));
		e = put_object(&m);
	}
	if (!e && !r->objects.n)
		e = err_new(ENOENT, "nothing in process %d defines malloc()", (int)pid);
	if (!e && r->later)
		e = put_later(&m, pid);
	out_char(&m.o, '\0');
	if (!e)
		*ret = xstrdup(m.o.v);
	out_fini(&m.o);
	vec_fini(&m.later);
	returns_free(m.returns);
	return e;
}

void alloc_record_init(struct alloc_record *r)
{
	memset(r, 0, sizeof(*r));
	arena_init(&r->arena);
}

void alloc_record_fini(struct alloc_record *r)
{
	vec_fini(&r->clauses);
	vec_fini(&r->objects);
	arena_fini(&r->arena);
}
