/* The data for programs that walk the frames of Ruby, and the functions that they met. */
#include "program/runtime/ruby/ruby.h"
#include "wire/language.h"

/* A function that a program met. */
struct met {
	uint64_t address;
	const struct ruby_code *code; /* NULL: it is one of C */
	const char *name;             /* NULL: not known */
};

bool ruby_wire(struct runtime *runtime, struct wire_language *ret)
{
	const struct ruby *r = (const struct ruby *)runtime;
	const struct ruby_layout *l = &r->layout;

	*ret = (struct wire_language){ .root = r->vm, .frames = WIRE_LANGUAGE_RUBY };
	ret->ruby = (struct wire_ruby){
		.vm_ractors = l->vm_ractors,
		.ractor_threads = (int32_t)l->ractor_threads - l->ractor_node,
		.vm_threads = l->vm_threads,
		.thread_native = l->thread_native,
		.thread_id = l->thread_id,
		.thread_context = l->thread_context,
		.frame_size = l->frame_size,
		.vm_main = l->vm_main,
	};
	return true;
}

static bool words(const struct ruby *r, uint64_t addr, uint64_t ret[WIRE_LANGUAGE_ABOUT])
{
	const uint32_t n = WIRE_LANGUAGE_ABOUT * sizeof(*ret);

	return space_read_some(r->runtime.space, addr, ret, n) == n;
}

static bool has_id(const struct ruby *r, uint64_t address, uint64_t entry, uint64_t id)
{
	uint64_t about[WIRE_LANGUAGE_ABOUT] = { 0 }, method[WIRE_LANGUAGE_ABOUT] = { 0 }, body;

	if (address && (!ruby_word(r, address + WIRE_RUBY_ISEQ_BODY, &body) ||
			!words(r, body + WIRE_RUBY_BODY_ABOUT, about)))
		return false;
	if (entry && (ruby_imemo(r, entry) != RUBY_IMEMO_METHOD ||
		      !words(r, entry + WIRE_RUBY_METHOD_ABOUT, method)))
		return false;
	return wire_language_method_id((uint32_t)r->runtime.space->pid, address, about, entry,
				       method) == id;
}

const void *ruby_learn(struct runtime *runtime, uint64_t address, uint64_t entry, uint64_t id)
{
	struct ruby *r = (struct ruby *)runtime;
	struct met *m;

	/* The object may go, and another may take its place, while it is read. */
	if ((!address && !entry) || !has_id(r, address, entry, id) || !ruby_afford(r, sizeof(*m)))
		return NULL;
	m = arena_new(&r->names, struct met);
	m->address = address ?: entry;
	if (address) {
		m->code = ruby_code_read(r, address);
		if (!m->code)
			return NULL;
		ruby_find_core(r, m->code);
	}
	m->name = ruby_function_name(r, m->code, entry);
	return has_id(r, address, entry, id) ? m : NULL;
}

uint32_t ruby_describe(struct runtime *runtime, const void *code, uint32_t at, uint32_t i,
		       struct runtime_frame *ret)
{
	const struct ruby *r = (const struct ruby *)runtime;
	const struct met *m = code;

	(void)i;
	*ret = (struct runtime_frame){ .code = m->address, .function = m->name };
	if (!m->code)
		return 1;
	ret->file = m->code->file;
	ret->line = at == WIRE_LANGUAGE_BEFORE
			    ? m->code->first_line
			    : ruby_line(r, m->code, m->code->instructions + at * 8ull);
	return 1;
}
