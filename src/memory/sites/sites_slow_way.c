/* The D programs of `descry heap alloc` for Java and Node.js.
 *
 * A JVM samples the objects for descry's library, which keeps them by weak references. Its function
 * has a probe.
 *
 * Without the library, and in Node.js: their code makes an object by moving a pointer in a part of
 * memory that belongs to the thread. It calls the runtime only when that part is used up. These
 * calls are a sample of all objects: each stands for the bytes of such a part. */
#include <errno.h>

#include "load/java_attach.h"
#include "memory/sites/sites.h"
#include "probe/process.h"
#include "program/runtime/jvm/jvm.h"
#include "wire/jvm_samples.h"

enum {
	DEPTH = 16,            /* functions of the language that are recorded, at least */
	INTERVAL = 512 * 1024, /* bytes from one sample of a JVM to the next, as JVM TI has it */
	/* of V8 */
	PAGE_BYTES = 1 << 18,
	LARGE_BYTES = 1 << 17, /* an object of this size has a page of its own */
};

/* Returns the name of the first function that begins so, or NULL. */
static const char *function_like(struct object *o, const char *begin)
{
	uint32_t n;
	const struct object_symbol *v = object_symbols(o, &n);

	for (uint32_t i = 0; i < n; i++)
		if (v[i].is_func && !strncmp(v[i].name, begin, strlen(begin)) &&
		    probe_name_is_plain(v[i].name))
			return v[i].name;
	return NULL;
}

static struct err *no_function(const struct sites *s, const struct process_object *po,
			       const char *function)
{
	return err_new(
		ENOENT,
		"process %d, %s: its file has no symbol of %s(), which it calls when it makes "
		"objects",
		(int)s->pid, po->name, function);
}

/* --- Java --- */

/* Reads where a Klass has its name. */
static struct err *read_layout(pid_t pid, struct jvm_layout *ret)
{
	struct space *space = NULL;
	struct runtime *r = NULL;
	struct err *e = space_live(pid, &space);

	e = e ?: runtime_find(space, &r);
	if (!e && (!r || r->type != &runtime_jvm))
		e = err_new(ESRCH, "process %d: its JVM has not begun yet", (int)pid);
	if (!e)
		*ret = ((struct jvm *)r)->layout;
	runtime_free(r);
	space_free(space);
	return e;
}

/* AllocTracer's functions have the class, the object, [the bytes of the thread's new part], the
 * object's bytes, and the thread. */
static void put_java(const struct sites *s, const char *module, const char *function,
		     const struct jvm_layout *l, bool part, struct out *o)
{
	out_printf(o, "pid$target:%s:%s:entry\n{\n", module, function);
	out_printf(o, "\tthis->name = *(uint64_t *)copyin(arg0 + %u, 8);\n", l->class_name.at);
	out_printf(o, "\ttrace((uint64_t)arg2);\n\ttrace((uint64_t)arg%u);\n", part ? 3 : 2);
	out_printf(
		o,
		"\ttrace(copyinstr(this->name + %u, *(uint16_t *)copyin(this->name + %u, 2)));\n",
		l->symbol_text.at, l->symbol_length.at);
	out_printf(o, "\tustack(%u);\n}\n\n", WIRE_STACK_FRAMES);
}

/* Has the JVM sample its objects. Returns false with s->reason when it does not. */
static bool start_samples(struct sites *s, struct probe_set *ps)
{
	cleanup_free char *text = xasprintf("*%llx", (unsigned long long)s->interval);
	struct err *e = java_attach(s->pid, text, &s->fifo);

	if (e) {
		snprintf(s->reason, sizeof(s->reason), "%s", e->text);
		err_free(e);
		s->fifo = -1;
		return false;
	}
	process_objects_forget(ps, s->pid);
	return true;
}

/* The arguments are read as registers: of args, descry would seek the debugging information. */
static void put_samples(struct out *o)
{
	static const char *const numbers[] = { "RDI", "RSI", "RDX", "RCX" };
	char library[JAVA_LIBRARY_SIZE];

	java_library_name(library);
	out_printf(o, "pid$target:%s:" WIRE_JVM_SAMPLED ":entry\n{\n", library);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		out_printf(o, "\ttrace((uint64_t)uregs[R_%s]);\n", numbers[i]);
	out_printf(o, "\ttrace(copyinstr(uregs[R_R8]));\n\tustack(%u);\n}\n", WIRE_STACK_FRAMES);
}

static struct err *java_program(struct sites *s, struct probe_set *ps,
				const struct process_object *po, const char *module, struct out *o)
{
	const char *part = function_like(po->object,
					 "_ZN11AllocTracer27send_allocation_in_new_tlabE"),
		   *alone = function_like(po->object,
					  "_ZN11AllocTracer28send_allocation_outside_tlabE");
	struct jvm_layout l = { 0 };
	struct err *e;

	if (!s->interval)
		s->interval = s->sample > 1 ? s->sample : INTERVAL;
	s->keeps = s->shows || start_samples(s, ps);
	if (s->keeps) {
		put_samples(o);
		return NULL;
	}
	if (!part || !alone)
		return no_function(s, po, "AllocTracer::send_allocation_in_new_tlab");
	e = read_layout(s->pid, &l);
	if (e)
		return e;
	if (l.symbol_length.width != 2)
		return err_new(EINVAL,
			       "process %d: the names of its classes are not as they should "
			       "be",
			       (int)s->pid);
	put_java(s, module, part, &l, true, o);
	put_java(s, module, alone, &l, false, o);
	return NULL;
}

/* --- V8 --- */

/* V8's part is what is left of a page, from which C++ takes, too. So an object stands for the bytes
 * from the sampled one before it: on its page, or on the page before and its own. */
static void put_v8(const char *module, const char *function, const char *last, struct out *o)
{
	out_printf(o, "self uint64_t %s;\n", last);
	out_printf(o, "pid$target:%s:%s:entry\n{\n", module, function);
	out_str(o, "\tself->size = *(uint64_t *)copyin(arg1, 8) >> 32;\n}\n");
	out_printf(o, "pid$target:%s:%s:return\n/self->size/\n{\n", module, function);
	out_printf(o,
		   "\ttrace(self->size >= %#x ? self->size\n"
		   "\t    : !self->%s ? (uint64_t)arg1 %% %#x\n"
		   "\t    : (self->%s ^ arg1) < %#x && arg1 > self->%s ? arg1 - self->%s\n"
		   "\t    : %#x - self->%s %% %#x + (uint64_t)arg1 %% %#x);\n",
		   LARGE_BYTES, last, PAGE_BYTES, last, PAGE_BYTES, last, last, PAGE_BYTES, last,
		   PAGE_BYTES, PAGE_BYTES);
	out_printf(o, "\ttrace(self->size);\n\tustack(%u);\n", WIRE_STACK_FRAMES);
	out_printf(o, "\tself->%s = self->size >= %#x ? self->%s : arg1;\n", last, LARGE_BYTES,
		   last);
	out_str(o, "\tself->size = 0;\n}\n\n");
}

static struct err *v8_program(struct sites *s, struct probe_set *ps,
			      const struct process_object *po, const char *module, struct out *o)
{
	const char *young = function_like(po->object,
					  "_ZN2v88internal33Runtime_AllocateInYoungGenerationE"),
		   *old = function_like(po->object,
					"_ZN2v88internal31Runtime_AllocateInOldGenerationE");

	if (!young || !old)
		return no_function(s, po, "v8::internal::Runtime_AllocateInYoungGeneration");
	out_str(o, "self uint64_t size;\n");
	put_v8(module, young, "young", o);
	put_v8(module, old, "old", o);
	return NULL;
}

/* One row for each runtime: a symbol that its object has. */
static const struct {
	const char *language, *symbol;
	struct err *(*program)(struct sites *s, struct probe_set *ps,
			       const struct process_object *po, const char *module, struct out *o);
} runtimes[] = {
	{ "java", "gHotSpotVMStructs", java_program },
	{ "javascript", "v8dbg_SmiShiftSize", v8_program },
};

bool sites_slow_way(struct sites *s, struct probe_set *ps, const struct process_object *po,
		    char **ret, struct err **ret_error)
{
	const char *module = po->is_main ? "a.out" : po->name;
	uint64_t value;
	struct out o;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		if (!object_symbol_value(po->object, runtimes[i].symbol, &value))
			continue;
		s->language = runtimes[i].language;
		s->sampled = true;
		if (s->depth < DEPTH)
			s->depth = DEPTH;
		if (!probe_name_is_plain(module)) {
			*ret_error =
				err_new(EINVAL, "D cannot hold the name of the file %s", po->name);
			return true;
		}
		out_init(&o, NULL);
		*ret_error = runtimes[i].program(s, ps, po, module, &o);
		out_char(&o, '\0');
		if (!*ret_error)
			*ret = xstrdup(o.v);
		out_fini(&o);
		return true;
	}
	return false;
}
