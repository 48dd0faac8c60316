/* The data for programs that walk JavaScript's frames (bpf/javascript.bpf.h), and the functions
 * that they met. */

#include "program/runtime/v8/v8.h"
#include "wire/language.h"

enum {
	LEARN_WORK = 1 << 26, /* bytes that are searched for one function */
	DOUBTS = 4,           /* times that tables are tried to be read again */
	DOUBT_BYTES = 64,     /* of the budget, for a place that is doubtful */
};

/* A function that is interpreted, whose place a word has, or the functions at a place in code that
 * was compiled. */
struct met {
	uint32_t n;        /* 0: interpreted, or the place is not known */
	struct v8_at at[]; /* innermost first; at least one */
};

/* Returns true when frames and objects are as programs expect. */
static bool is_usual(const struct v8_numbers *n)
{
	const int32_t members[] = { n->function_shared, n->shared_name,   n->shared_script,
				    n->shared_flags,    n->script_source, n->script_ends + 8,
				    n->array_length };
	const int32_t ends[] = { WIRE_V8_FUNCTION_WORDS,
				 WIRE_V8_SHARED_WORDS,
				 WIRE_V8_SHARED_WORDS,
				 WIRE_V8_SHARED_WORDS,
				 WIRE_V8_OBJECT_WORDS,
				 WIRE_V8_OBJECT_WORDS,
				 2 };

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i] < 8 || members[i] % 8 || members[i] / 8 >= ends[i])
			return false;
	return n->frame_context == -8 && n->frame_function == -16 && n->frame_bytecodes == -32 &&
	       n->frame_place == -WIRE_V8_FRAME_BELOW && n->string_length == WIRE_V8_NAME + 4;
}

/* Returns true when the properties of functions are as programs expect. */
static bool are_properties_usual(const struct v8_numbers *n)
{
	const int32_t members[] = { n->map_type,      n->map_bits3, n->map_descriptors,
				    n->map_first,     n->map_words, n->object_properties,
				    n->map_dictionary };
	const int32_t ends[] = { 8 * WIRE_V8_MAP_WORDS - 1,
				 8 * WIRE_V8_MAP_WORDS - 3,
				 8 * WIRE_V8_MAP_WORDS - 7,
				 8 * WIRE_V8_MAP_WORDS,
				 8 * WIRE_V8_MAP_WORDS,
				 8 * WIRE_V8_FUNCTION_WORDS - 7,
				 32 };

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i] <= 0 || members[i] >= ends[i])
			return false;
	return n->map_type % 2 == 0 && n->map_bits3 % 4 == 0 && n->map_descriptors % 8 == 0 &&
	       n->object_properties % 8 == 0 && n->names_prefix > 0 && n->names_prefix < 16 &&
	       n->string_one_byte == WIRE_V8_NAME + 8 && n->string_second == n->string_first + 8;
}

static void wire_properties(const struct v8_numbers *n, struct wire_v8 *w)
{
	w->map_bits3 = (uint32_t)n->map_bits3;
	w->map_dictionary = (uint32_t)n->map_dictionary;
	w->map_descriptors = (uint32_t)n->map_descriptors;
	w->map_first = (uint32_t)n->map_first;
	w->map_words = (uint32_t)n->map_words;
	w->function_properties = (uint32_t)n->object_properties;
	w->array_data = (uint32_t)n->array_data;
	w->names_prefix = (uint32_t)n->names_prefix;
	w->text_form = (uint32_t)n->string_form_mask;
	w->text_bits = (uint32_t)(n->string_form_mask | n->string_width_mask);
	w->text_cons = (uint32_t)n->string_cons;
	w->text_flat = (uint32_t)(n->string_sequential | n->string_is_one_byte);
	w->text_first = (uint32_t)n->string_first;
	w->text_bytes = (uint32_t)n->string_one_byte;
}

bool v8_wire(struct runtime *r, struct wire_language *ret)
{
	struct v8 *v = (struct v8 *)r;
	const struct v8_numbers *n = &v->n;

	if (!v->blob)
		err_free(v8_builtins_find(v));
	if (!v->blob || !v->blob_size || !is_usual(n))
		return false;

	struct wire_v8 w = {
		.blob = v->blob - v->bias,
		.blob_size = v->blob_size,
		.map_type = (uint32_t)n->map_type,
		.type_map = (uint32_t)n->type_map,
		.type_no_string = (uint32_t)n->type_no_string,
		.function_shared = (uint32_t)n->function_shared,
		.shared_name = (uint32_t)n->shared_name,
		.shared_script = (uint32_t)n->shared_script,
		.shared_flags = (uint32_t)n->shared_flags,
		.script_source = (uint32_t)n->script_source,
		.script_number = (uint32_t)n->script_ends + 8,
		.bytecodes_length = (uint32_t)n->array_length,
		.bytecodes_data = (uint32_t)n->bytecodes_data,
		.opcodes = v->version->opcodes,
		.builtin_exit = (uint32_t)n->frame_builtin_exit,
	};

	if (are_properties_usual(n))
		wire_properties(n, &w);

	w.types[WIRE_V8_FUNCTION] = (uint32_t)n->type_function;
	w.types[WIRE_V8_SHARED] = (uint32_t)n->type_shared;
	w.types[WIRE_V8_SCRIPT] = (uint32_t)n->type_script;
	w.types[WIRE_V8_BYTECODES] = (uint32_t)n->type_bytecodes;
	*ret = (struct wire_language){ .frames = WIRE_LANGUAGE_V8 };
	ret->v8 = w;
	return true;
}

static bool has_id(struct v8 *v, uint64_t object, uint64_t place, uint64_t id)
{
	uint64_t now = v8_function_id(v, object), code[4];

	if (!now || !place)
		return now && now == id;
	return space_read_some(v->runtime.space, WIRE_JAVA_PLACE_PC(place) - WIRE_V8_BEFORE, code,
			       sizeof(code)) == sizeof(code) &&
	       wire_language_v8_place(now, place, code) == id;
}

/* Returns true when baseline code is that of a function. */
static bool belongs_to(struct v8 *v, const struct v8_code *c, const struct v8_function *f)
{
	uint64_t data = v8_get(v, c->object, v->version->code_data);
	int32_t type = v8_type(v, &data);

	if (type == v->n.type_interpreter_data)
		data = v8_member(v, data, 8, v->n.type_bytecodes);
	return f->bytecodes && data == f->bytecodes;
}

/* Finds the functions at a place in compiled code, innermost first. Returns their number. Sets
 * *ret_doubtful when there is code, or there are tables, that could not be read. */
static uint32_t find_functions(struct v8 *v, const struct v8_function *f, uint64_t place,
			       struct v8_at ret[V8_INLINED_MAX], bool *ret_doubtful)
{
	const uint64_t pc = WIRE_JAVA_PLACE_PC(place);
	const bool called = WIRE_JAVA_PLACE_CALLED(place);
	struct v8_code code;
	bool found = v8_code_find(v, pc - called, &code);
	uint32_t n = 0;

	if (found && called && code.kind > (uint32_t)v->n.code_baseline)
		n = v8_optimized(v, &code, f, pc, ret);
	if (n)
		return n;
	*ret_doubtful = !found || (called && code.kind > (uint32_t)v->n.code_baseline &&
				   v8_optimized_has(v, &code, pc));
	ret[0] = (struct v8_at){ f, V8_NOWHERE };
	if (found && code.kind == (uint32_t)v->n.code_baseline && belongs_to(v, &code, v8_plain(f)))
		ret[0].place = v8_baseline_place(v, &code, v8_plain(f)->bytecodes, pc, called);
	return 1;
}

/* The collector moves tables while they are read, and what was read so stays. So a place without
 * its functions is tried again a few times. */
static bool is_tried_again(struct v8 *v, uint64_t id)
{
	uint64_t *times = hash_get(&v->doubtful, &id, sizeof(id));
	bool is_new;

	if (!times) {
		if (!v8_afford(v, DOUBT_BYTES))
			return false;
		times = hash_put(&v->doubtful, &id, sizeof(id), &is_new);
		*times = 0;
	}
	return (*times)++ < DOUBTS;
}

const void *v8_learn(struct runtime *r, uint64_t address, uint64_t entry, uint64_t id)
{
	struct v8 *v = (struct v8 *)r;
	struct v8_at at[V8_INLINED_MAX];
	const struct v8_function *f;
	struct met *m;
	bool doubtful = false;
	uint32_t n = 1;

	v8_pass(v);
	v->work = LEARN_WORK;
	if (!has_id(v, address, entry, id))
		return NULL;
	/* The walk asks for a JSFunction only if the object has a name of its own. */
	f = v8_function(v, address) ?: v8_function_of(v, address);
	if (!f)
		return NULL;
	at[0] = (struct v8_at){ f, V8_NOWHERE };
	if (entry)
		n = find_functions(v, f, entry, at, &doubtful);
	if (doubtful && is_tried_again(v, id))
		return NULL;
	if (!v8_afford(v, sizeof(*m) + n * sizeof(m->at[0])))
		return NULL;
	m = arena_alloc(&v->names, sizeof(*m) + n * sizeof(m->at[0]));
	m->n = entry ? n : 0;
	for (uint32_t i = 0; i < n; i++)
		m->at[i] = at[i];
	/* Objects may have moved while they were read. */
	return has_id(v, address, entry, id) ? m : NULL;
}

uint32_t v8_describe(struct runtime *r, const void *code, uint32_t at, uint32_t i,
		     struct runtime_frame *ret)
{
	struct v8 *v = (struct v8 *)r;
	const struct met *m = code;

	if (m->n) {
		*ret = i < m->n ? v8_frame(v, &m->at[i]) : (struct runtime_frame){ 0 };
		return m->n;
	}
	*ret = v8_frame(v,
			&(struct v8_at){ m->at[0].function, at == WIRE_LANGUAGE_BEFORE ? V8_NOWHERE
							    : at == WIRE_V8_ENTRY      ? V8_ENTRY
										  : (int32_t)at });
	return 1;
}
