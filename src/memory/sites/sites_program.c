/* The D program of `descry heap alloc`: a clause for each register that has the object's address at
 * places in the interpreter's code.
 *
 * Of a sample, a random number of objects is skipped each time: a loop that makes two objects a
 * round would otherwise have one of them in all samples. */
#include <errno.h>

#include "memory/sites/sites.h"
#include "probe/process.h"
#include "program/runtime/python/python.h"
#include "program/runtime/ruby/ruby.h"

/* In x86's order. */
static const char *const sites_registers[] = {
	"R_RAX", "R_RCX", "R_RDX", "R_RBX", "R_RSP", "R_RBP", "R_RSI", "R_RDI",
	"R_R8",	 "R_R9",  "R_R10", "R_R11", "R_R12", "R_R13", "R_R14", "R_R15",
};
enum { REGISTERS = ARRAY_SIZE(sites_registers) };

struct instruction {
	uint64_t addr;
	uint8_t object;
};
typedef VEC(struct instruction) instruction_vec;

static const char *of_ruby(struct object *o, instruction_vec *ret)
{
	struct ruby_allocations a;
	const char *reason = ruby_allocations(o, &a);

	for (uint32_t i = 0; !reason && i < a.n; i++)
		vec_push(ret, ((struct instruction){ a.v[i].addr, a.v[i].object }));
	return reason;
}

/* One row for each interpreter: a symbol that its object exports. */
static const struct {
	const char *language, *symbol;
	const char *(*places)(struct object *o, instruction_vec *ret);
} interpreters[] = {
	{ "ruby", "ruby_api_version", of_ruby },
};

static void put_clause(struct sites *s, const char *module, const instruction_vec *v,
		       uint8_t reg, struct out *o)
{
	bool any = false;

	for (uint32_t i = 0; i < v->n; i++) {
		if (v->v[i].object != reg)
			continue;
		out_printf(o, "%spid$target:%s:-:%llx", any ? ",\n" : "", module,
			   (unsigned long long)v->v[i].addr);
		any = true;
	}
	if (!any)
		return;
	out_char(o, '\n');
	if (s->sample > 1)
		out_str(o, "/self->left-- <= 0/\n");
	out_str(o, "{\n");
	if (s->sample > 1)
		out_printf(o, "\tself->left = rand() %% %u;\n", 2 * s->sample - 1);
	out_printf(o, "\ttrace((uint64_t)uregs[%s]);\n\tlstack(%u);\n}\n\n", sites_registers[reg],
		   s->depth);
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
	if (s->sample > 1)
		out_str(&o, "self int64_t left;\n\n");
	for (uint8_t reg = 0; reg < REGISTERS; reg++)
		put_clause(s, module, v, reg, &o);
	out_char(&o, '\0');
	*ret = xstrdup(o.v);
	out_fini(&o);
	return NULL;
}

struct err *sites_program(struct sites *s, struct probe_set *ps, pid_t pid, char **ret)
{
	const struct process_objects *objects;
	struct err *e = process_objects(ps, pid, &objects);

	for (uint32_t i = 0; !e && i < objects->n; i++) {
		const struct process_object *po = &objects->v[i];

		for (size_t k = 0; k < ARRAY_SIZE(interpreters); k++) {
			instruction_vec v = { 0 };
			uint64_t value;
			const char *reason;

			if (!object_symbol_value(po->object, interpreters[k].symbol, &value))
				continue;
			s->language = interpreters[k].language;
			s->pid = pid;
			reason = interpreters[k].places(po->object, &v);
			e = reason ? err_new(ENOENT, "process %d, %s: %s", (int)pid, po->name,
					     reason)
				   : put_program(s, po, &v, ret);
			vec_fini(&v);
			return e;
		}
	}
	return e ?: err_new(ENOENT,
			    "process %d: descry knows where objects are made in Ruby and Python "
			    "alone, and it runs neither",
			    (int)pid);
}
