/* Recognises MRI in an object: by the symbols that it exports. */
#include "program/runtime/ruby/ruby.h"

#include <stdlib.h>
#include <string.h>

enum { BUDGET = 64 << 20 };

static bool is_library(const char *name)
{
	return !strncmp(name, "libruby", 7) || !strncmp(name, "ruby", 4);
}

static bool symbol(const struct ruby *r, const char *name, uint64_t *ret)
{
	if (!object_symbol_value(r->object, name, ret))
		return false;
	*ret += r->bias;
	return true;
}

static void find_version(struct ruby *r, uint32_t *ret_major, uint32_t *ret_minor)
{
	cleanup_free char *text = NULL;
	uint64_t addr;
	char *end;

	if (symbol(r, "ruby_version", &addr))
		text = space_string(r->runtime.space, addr, sizeof(r->runtime.version));
	if (!text)
		return;
	snprintf(r->runtime.version, sizeof(r->runtime.version), "%s", text);
	*ret_major = (uint32_t)strtoul(text, &end, 10);
	if (*end == '.')
		*ret_minor = (uint32_t)strtoul(end + 1, &end, 10);
}

static bool take_vm(struct ruby *r, uint64_t addr, const uint64_t *w)
{
	if (w[0] < 4096 || w[0] & 7 || !ruby_is_vm(r, w[0]))
		return false;
	r->vm = addr;
	return true;
}

/* Returns the VM, whose threads lead back to it. Before 3.3 a variable of a known name has its
 * address. 0: Ruby has not begun, or has ended. */
static bool find_vm(struct ruby *r)
{
	uint64_t vm;

	if (!symbol(r, "ruby_current_vm_ptr", &r->vm))
		return ruby_each_variable(r, take_vm);
	return ruby_word(r, r->vm, &vm) && (!vm || ruby_is_vm(r, vm));
}

static void find_text(struct ruby *r)
{
	uint64_t off, n, addr;

	for (uint32_t i = 0; object_text_segment(r->object, i, &off, &n, &addr); i++) {
		if (!i)
			r->text.start = r->bias + addr;
		r->text.size = r->bias + addr + n - r->text.start;
	}
}

static void find_loop(struct ruby *r)
{
	const struct object_symbol *f = object_find_name(r->object, "rb_vm_exec");

	if (!f)
		f = object_find_name(r->object, "vm_exec");
	if (f)
		r->exec = (struct ruby_range){ r->bias + f->addr, f->size };
}

static void ruby_ended(struct runtime *runtime)
{
	struct ruby *r = (struct ruby *)runtime;

	object_free(r->object);
	r->object = NULL;
}

static void ruby_free(struct runtime *runtime)
{
	struct ruby *r = (struct ruby *)runtime;

	object_free(r->object);
	arena_fini(&r->names);
	hash_fini(&r->codes);
	hash_fini(&r->functions);
	hash_fini(&r->labels);
	free(r->table);
	free(r);
}

static struct err *ruby_open(struct space *s, struct object *o, uint64_t bias, struct runtime **ret)
{
	const struct ruby_layout *layout;
	uint32_t major = 0, minor = 0;
	struct err *e = NULL;
	struct ruby *r;
	uint64_t addr;

	*ret = NULL;
	if (!object_symbol_value(o, "ruby_version", &addr) ||
	    !object_symbol_value(o, "rb_cString", &addr))
		return NULL;
	r = xcalloc(1, sizeof(*r));
	r->runtime.type = &runtime_ruby;
	r->runtime.space = s;
	r->object = o;
	r->bias = bias;
	r->budget = BUDGET;
	r->string_class = bias + addr;
	arena_init(&r->names);
	find_version(r, &major, &minor);
	layout = ruby_layout(major, minor);
	if (!layout) {
		e = err_new(0, "%s: the structures of Ruby %s are not known to descry",
			    object_path(o), r->runtime.version);
	} else {
		r->layout = *layout;
		find_text(r);
		find_loop(r);
		if (!find_vm(r))
			e = err_new(0, "%s: the structures of Ruby %s are not as they should be",
				    object_path(o), r->runtime.version);
	}
	if (!e) {
		*ret = &r->runtime;
		return NULL;
	}
	r->object = NULL; /* the caller's */
	ruby_free(&r->runtime);
	return e;
}

static bool is_in(const struct ruby_range *f, uint64_t addr)
{
	return addr - f->start < f->size;
}

static bool is_loop(const struct runtime *runtime, uint64_t addr)
{
	const struct ruby *r = (const struct ruby *)runtime;

	return is_in(r->exec.size ? &r->exec : &r->core, addr);
}

static void loop_range(const struct runtime *runtime, uint64_t *ret_start, uint64_t *ret_size)
{
	const struct ruby *r = (const struct ruby *)runtime;

	*ret_start = r->exec.start;
	*ret_size = r->exec.size;
}

static bool is_part(const struct runtime *runtime, uint64_t addr)
{
	return is_in(&((const struct ruby *)runtime)->core, addr);
}

const struct runtime_type runtime_ruby = {
	.name = "ruby",
	.is_library = is_library,
	.open = ruby_open,
	.frames = ruby_frames,
	.is_loop = is_loop,
	.loop = loop_range,
	.is_part = is_part,
	.wire = ruby_wire,
	.learn = ruby_learn,
	.describe = ruby_describe,
	.ended = ruby_ended,
	.free = ruby_free,
};
