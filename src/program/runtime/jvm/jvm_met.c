/* The data for programs that walk Java's frames (bpf/java.bpf.h), and the functions that they
 * met. */
#include <string.h>

#include "program/runtime/jvm/jvm.h"
#include "wire/language.h"

/* A function that is interpreted, or the functions at a place in compiled code. */
struct met {
	const struct jvm_method *method; /* NULL: compiled */
	uint32_t n;
	struct runtime_frame frames[];
};

static uint32_t member(struct jvm_member m)
{
	return WIRE_JAVA_MEMBER(m.at, m.width);
}

/* Returns true when a program's read of a piece of code, or of a ConstMethod, has the member. */
static bool is_read(struct jvm_member m, uint32_t size)
{
	return !m.width || m.at + 8u <= size;
}

static bool are_read(const struct jvm_layout *l)
{
	const struct jvm_member blob[] = {
		l->blob_name,
		l->blob_size,
		l->blob_frame_words,
		l->blob_complete,
		l->blob_code,
		l->blob_code_offset,
		l->compiled_method,
		l->compiled_number,
		l->compiled_deopt,
		l->compiled_deopt_mh,
		l->compiled_deopt_offset,
		l->compiled_deopt_mh_offset,
		l->compiled_original_pc,
	};

	for (size_t i = 0; i < ARRAY_SIZE(blob); i++)
		if (!is_read(blob[i], WIRE_JAVA_BLOB))
			return false;
	/* of the name, the program takes the aligned word that has it */
	return l->compiled_number.width && (l->const_name.at | 7u) < WIRE_JAVA_CONST &&
	       is_read(l->const_constants, WIRE_JAVA_CONST) &&
	       is_read(l->const_code_size, WIRE_JAVA_CONST);
}

/* Finds the parts of the code cache and the interpreter's code. */
static bool find_code(struct jvm *j, struct wire_java *w)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t queue;

	if (!l->variable.interpreter || !l->queue_buffer.width || !l->memory_end.width ||
	    !jvm_word(j, l->variable.interpreter, &queue) || !queue)
		return false;
	w->interpreter = jvm_get(j, queue, l->queue_buffer);
	w->interpreter_size = jvm_get(j, queue, l->queue_limit);
	w->stub_return = jvm_get(j, l->variable.call_stub_return, (struct jvm_member){ 0, 8 });
	jvm_heaps_read(j);
	if (!w->interpreter || !w->interpreter_size || !w->stub_return || !j->nheaps ||
	    j->nheaps > ARRAY_SIZE(w->heap))
		return false;
	w->shift = j->heaps[0].shift;
	for (uint32_t i = 0; i < j->nheaps; i++) {
		if (j->heaps[i].shift != w->shift)
			return false;
		w->heap[i].low = j->heaps[i].low;
		w->heap[i].size = j->heaps[i].high - j->heaps[i].low;
		w->heap[i].segments = j->heaps[i].segments;
	}
	return true;
}

bool jvm_wire(struct runtime *r, struct wire_language *ret)
{
	struct jvm *j = (struct jvm *)r;
	const struct jvm_layout *l = &j->layout;
	struct wire_java w = { 0 };

	if (!are_read(l) || !find_code(j, &w))
		return false;
	j->dense = jvm_option(j, "DebugNonSafepoints"); /* it may have begun just now */
	w.block = (uint32_t)l->size.block;
	w.blob_name = member(l->blob_name);
	w.blob_size = member(l->blob_size);
	w.blob_frame_words = member(l->blob_frame_words);
	w.blob_complete = member(l->blob_complete);
	w.blob_code = member(l->blob_code);
	w.blob_code_offset = member(l->blob_code_offset);
	w.method = member(l->compiled_method);
	w.compilation = member(l->compiled_number);
	w.original_pc = member(l->compiled_original_pc);
	w.deopt[0] = member(l->compiled_deopt);
	w.deopt[1] = member(l->compiled_deopt_mh);
	w.deopt_offset[0] = member(l->compiled_deopt_offset);
	w.deopt_offset[1] = member(l->compiled_deopt_mh_offset);
	w.method_const = l->method_const.at;
	w.const_constants = l->const_constants.at;
	w.const_name = l->const_name.at;
	w.const_code_size = l->const_code_size.at;
	w.const_size = (uint32_t)l->size.const_method;
	w.constants_class = l->constants_class.at;
	w.class_constants = l->class_constants.at;
	w.class_name = l->class_name.at;
	w.symbol_count = jvm_symbol_count(l);
	*ret = (struct wire_language){ .frames = WIRE_LANGUAGE_JAVA };
	ret->java = w;
	return true;
}

static bool has_id(const struct jvm *j, uint64_t address, uint64_t place, uint64_t id)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t about[WIRE_LANGUAGE_ABOUT] = { jvm_get(j, address, l->blob_name) };
	uint64_t frame = jvm_get(j, address, l->blob_frame_words) * 8;

	if (frame && frame < WIRE_JAVA_FRAME_MAX) {
		about[1] = jvm_get(j, address, l->compiled_method);
		about[2] = jvm_get(j, address, l->compiled_number);
	}
	return wire_language_blob_id((uint32_t)j->runtime.space->pid, address, about, place) == id;
}

static struct met *met_new(struct jvm *j, uint32_t n)
{
	const size_t size = sizeof(struct met) + n * sizeof(struct runtime_frame);
	struct met *m = jvm_afford(j, size) ? arena_alloc(&j->names, size) : NULL;

	if (m) {
		m->method = NULL;
		m->n = n;
	}
	return m;
}

static struct met *met_compiled(struct jvm *j, const struct jvm_blob *b, uint64_t place)
{
	struct jvm_scope scopes[JVM_SCOPES_MAX];
	uint32_t n =
		jvm_scopes(j, b, WIRE_JAVA_PLACE_PC(place), WIRE_JAVA_PLACE_CALLED(place), scopes);
	struct met *m = n ? met_new(j, n) : NULL;

	for (uint32_t i = 0; m && i < n; i++) {
		const struct jvm_method *method = jvm_method_now(j, scopes[i].method);

		m->frames[i] = (struct runtime_frame){ .code = scopes[i].method };
		if (!method)
			continue;
		m->frames[i].function = method->function;
		m->frames[i].file = method->file;
		m->frames[i].line = scopes[i].sure ? jvm_line(j, method, scopes[i].bci) : 0;
	}
	return m;
}

static struct met *met_stub(struct jvm *j, const struct jvm_blob *b, uint64_t place)
{
	uint64_t returns =
		jvm_get(j, j->layout.variable.call_stub_return, (struct jvm_member){ 0, 8 });
	struct met *m = met_new(j, 1);

	if (m)
		m->frames[0] = (struct runtime_frame){
			.code = b->address,
			.function = WIRE_JAVA_PLACE_PC(place) == returns ? "call_stub" : b->name,
			.file = "[jvm]",
		};
	return m;
}

static const void *learn_method(struct jvm *j, uint64_t address, uint64_t id)
{
	const struct jvm_method *method;
	struct met *m;
	uint64_t now;

	if (!jvm_method_id(j, address, &now) || now != id)
		return NULL;
	method = jvm_method_now(j, address);
	if (!method || !jvm_method_id(j, address, &now) || now != id)
		return NULL;
	m = met_new(j, 0);
	if (m)
		m->method = method;
	return m;
}

const void *jvm_learn(struct runtime *r, uint64_t address, uint64_t entry, uint64_t id)
{
	struct jvm *j = (struct jvm *)r;
	struct jvm_blob b;
	struct met *m;
	uint64_t at;

	j->work = JVM_WORK;
	if (!entry)
		return learn_method(j, address, id);
	/* A stub without a place: any address of its code will do. */
	at = entry == WIRE_JAVA_NOWHERE ? address + jvm_get(j, address, j->layout.blob_code_offset)
					: WIRE_JAVA_PLACE_PC(entry) - WIRE_JAVA_PLACE_CALLED(entry);
	if (entry == WIRE_JAVA_NOWHERE && j->layout.blob_code.width)
		at = jvm_get(j, address, j->layout.blob_code);
	if (!has_id(j, address, entry, id) || !jvm_blob_find(j, at, &b) || b.address != address)
		return NULL;
	m = b.kind == JVM_COMPILED ? met_compiled(j, &b, entry) : met_stub(j, &b, entry);
	/* The code may go, and another may take its place, while it is read. */
	return has_id(j, address, entry, id) ? m : NULL;
}

uint32_t jvm_describe(struct runtime *r, const void *code, uint32_t at, uint32_t i,
		      struct runtime_frame *ret)
{
	struct jvm *j = (struct jvm *)r;
	const struct met *m = code;

	if (!m->method) {
		*ret = i < m->n ? m->frames[i] : (struct runtime_frame){ 0 };
		return m->n;
	}
	*ret = (struct runtime_frame){
		.code = m->method->address,
		.function = m->method->function,
		.file = m->method->file,
		.line = at == WIRE_LANGUAGE_BEFORE ? 0 : jvm_line(j, m->method, at),
	};
	return 1;
}
