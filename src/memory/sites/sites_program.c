/* The D program of `descry heap alloc`: a clause for each register that has the object's address at
 * places in the interpreter's code.
 *
 * A sample is of addresses, by a hash that differs from run to run, and not of every so many-th
 * object: all objects of a sampled address are recorded, so that no record stays behind when
 * another object takes the address. The hash is the low half of a product, which a probe's code
 * computes before it saves the registers (compile/jit/shortcut.c). */
#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"

#include "memory/sites/sites.h"
#include "probe/process.h"
#include "program/runtime/python/python.h"
#include "program/runtime/ruby/ruby.h"

/* In x86's order. */
static const char *const sites_registers[] = {
	"R_RAX", "R_RCX", "R_RDX", "R_RBX", "R_RSP", "R_RBP", "R_RSI", "R_RDI",
	"R_R8",  "R_R9",  "R_R10", "R_R11", "R_R12", "R_R13", "R_R14", "R_R15",
};
_Static_assert(ARRAY_SIZE(sites_registers) == 16, "all");

/* The object's address is at `moved` behind the register's value. */
struct instruction {
	uint64_t addr;
	uint8_t object;
	int16_t moved;
};
typedef VEC(struct instruction) instruction_vec;

static const char *of_ruby(struct object *o, instruction_vec *ret)
{
	struct ruby_allocations a;
	const char *reason = ruby_allocations(o, &a);

	for (uint32_t i = 0; !reason && i < a.n; i++)
		vec_push(ret, ((struct instruction){ a.v[i].addr, a.v[i].object, 0 }));
	return reason;
}

static const char *of_python(struct object *o, instruction_vec *ret)
{
	struct python_allocations *a = xcalloc(1, sizeof(*a));
	const char *reason = python_allocations(o, a);

	for (uint32_t i = 0; !reason && i < a->n; i++)
		vec_push(ret,
			 ((struct instruction){ a->v[i].addr, a->v[i].object, a->v[i].moved }));
	free(a);
	return reason;
}

/* One row for each interpreter: a symbol that its object exports. */
static const struct {
	const char *language, *symbol;
	const char *(*places)(struct object *o, instruction_vec *ret);
} interpreters[] = {
	{ "ruby", "ruby_api_version", of_ruby },
	{ "python", "PyInterpreterState_Head", of_python },
};

/* Puts the clause of all places like the one at `first`, unless an earlier one is like it. */
static void put_clause(struct sites *s, const char *module, const instruction_vec *v,
		       uint32_t first, struct out *o)
{
	const struct instruction *like = &v->v[first];
	cleanup_free char *object =
		xasprintf("((uint64_t)uregs[%s] + %d)", sites_registers[like->object], like->moved);
	bool any = false;

	for (uint32_t i = 0; i < first; i++)
		if (v->v[i].object == like->object && v->v[i].moved == like->moved)
			return;
	for (uint32_t i = first; i < v->n; i++) {
		if (v->v[i].object != like->object || v->v[i].moved != like->moved)
			continue;
		out_printf(o, "%spid$target:%s:--:%llx", any ? ",\n" : "", module,
			   (unsigned long long)v->v[i].addr);
		any = true;
	}
	out_char(o, '\n');
	if (s->sample > 1)
		out_printf(o, "/(uint32_t)(%s * %#x) <= %#x/\n", object, s->factor,
			   UINT32_MAX / s->sample);
	/* the table has no functions' names */
	out_printf(o, "{\n\ttrace(%s);\n\tlstack(%u%s);\n}\n\n", object, s->depth,
		   s->depth == 1 ? ", 1" : "");
}

static struct err *put_program(struct sites *s, const struct process_object *po,
			       const instruction_vec *v, char **ret)
{
	const char *module = po->is_main ? "a.out" : po->name;
	struct out o;

	if (!probe_name_is_plain(module))
		return err_new(EINVAL, "D cannot hold the name of the interpreter's file, %s",
			       po->name);
	out_init(&o, NULL);
	for (uint32_t i = 0; i < v->n; i++)
		put_clause(s, module, v, i, &o);
	out_char(&o, '\0');
	*ret = xstrdup(o.v);
	out_fini(&o);
	return NULL;
}

struct err *sites_program(struct sites *s, struct probe_set *ps, pid_t pid, char **ret)
{
	const struct process_objects *objects;
	struct err *e = process_objects(ps, pid, &objects);

	s->pid = pid;
	s->factor = (uint32_t)(hash_word((uint64_t)pid ^ now_ns()) >> 33) | 1;
	for (uint32_t i = 0; !e && i < objects->n; i++) {
		const struct process_object *po = &objects->v[i];

		if (sites_slow_way(s, ps, po, ret, &e))
			return e;
		for (size_t k = 0; k < ARRAY_SIZE(interpreters); k++) {
			instruction_vec v = { 0 };
			uint64_t value;
			const char *reason;

			if (!object_symbol_value(po->object, interpreters[k].symbol, &value))
				continue;
			s->language = interpreters[k].language;
			reason = interpreters[k].places(po->object, &v);
			e = reason ? err_new(ENOENT, "process %d, %s: %s", (int)pid, po->name,
					     reason)
				   : put_program(s, po, &v, ret);
			vec_fini(&v);
			return e;
		}
	}
	return e
		       ?: err_new(ENOENT,
				  "process %d: descry knows where objects are made in Ruby, Python, "
				  "Java and Node.js, and it runs none of them",
				  (int)pid);
}
