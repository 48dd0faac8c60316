/* JavaScript functions: name, script, and the lines of their bytecodes. */
#include <string.h>

#include "program/runtime/v8/v8.h"
#include "wire/language.h"

enum {
	/* Flags of a ScopeInfo (scope-info.tq). */
	SCOPE_CLASS_VARIABLE = 1 << 10,
	SCOPE_FUNCTION_VARIABLE = 3 << 12,
	SCOPE_INFERRED_NAME = 1 << 14,
	/* flags of a SharedFunctionInfo: the kind of function (function-kind.h) */
	FUNCTION_KIND = 0x1f,
	MEMBERS_INITIALIZER = 24,
	STATIC_INITIALIZER = 25,
	INLINE_LOCALS_MAX = 75, /* with more locals than this, the names are in one table */
};

/* Returns the name in a ScopeInfo: the function's, else the one that V8 has inferred. */
static const char *scope_name(struct v8 *v, uint64_t scope)
{
	uint32_t first = 8 * (1 + (uint32_t)v->n.scope_first), flags;
	uint64_t word = v8_get(v, scope, 8);
	int32_t locals;

	if (!v8_small(v8_get(v, scope, 8 * (1 + (uint32_t)v->n.scope_locals)), &locals) ||
	    locals < 0 || locals > 1 << 20)
		return NULL;
	flags = (uint32_t)word ? (uint32_t)word : (uint32_t)(word >> 32);
	first += 8 * (uint32_t)(locals < INLINE_LOCALS_MAX ? locals : 1) + 8 * (uint32_t)locals;
	if (flags & SCOPE_CLASS_VARIABLE)
		first += 8;
	if (flags & SCOPE_FUNCTION_VARIABLE) {
		const char *name = v8_text(v, v8_get(v, scope, first));

		if (name)
			return name;
		first += 16;
	}
	return flags & SCOPE_INFERRED_NAME ? v8_text(v, v8_get(v, scope, first)) : NULL;
}

uint32_t v8_scope_names(struct v8 *v, uint64_t scope, uint32_t *ret_n)
{
	int32_t locals;

	*ret_n = 0;
	if (v8_type(v, &scope) != v->n.type_scope ||
	    !v8_small(v8_get(v, scope, 8 * (1 + (uint32_t)v->n.scope_locals)), &locals) ||
	    locals <= 0 || locals >= INLINE_LOCALS_MAX)
		return 0;
	*ret_n = (uint32_t)locals;
	return 1 + (uint32_t)v->n.scope_first;
}

const char *v8_shared_name(struct v8 *v, uint64_t shared)
{
	const uint32_t flags = v8_u32(v, shared - 1 + (uint32_t)v->n.shared_flags);
	uint64_t name = v8_get(v, shared, (uint32_t)v->n.shared_name);

	/* Since V8 12 these have the name of the class, and V8 takes no notice of it. */
	if ((flags & FUNCTION_KIND) == MEMBERS_INITIALIZER)
		return "<instance_members_initializer>";
	if ((flags & FUNCTION_KIND) == STATIC_INITIALIZER)
		return "<static_initializer>";
	return v8_type(v, &name) == v->n.type_scope ? scope_name(v, name) : v8_text(v, name);
}

/* Returns the bytecodes, which code or the debugger's information may lead to. */
static uint64_t bytecodes_of(struct v8 *v, uint64_t shared)
{
	uint64_t data = v8_get(v, shared, v->version->shared_data);
	int32_t type = v8_type(v, &data);

	if (type == v->n.type_code) {
		data = v8_get(v, data, v->version->code_data);
		type = v8_type(v, &data);
	}
	if (type == v->n.type_interpreter_data)
		return v8_member(v, data, 8, v->n.type_bytecodes);
	return type == v->n.type_bytecodes ? data : 0;
}

/* Returns the Script. For a function that is debugged, the debugger's information leads to it. */
static uint64_t script_of(struct v8 *v, uint64_t shared)
{
	uint64_t script = v8_get(v, shared, (uint32_t)v->n.shared_script);

	return v8_type(v, &script) == v->n.type_script ? script : 0;
}

/* Returns the hash and the length of a function's name, if it is a string. 0: it is not. */
static uint64_t name_number(struct v8 *v, uint64_t name)
{
	const int32_t type = v8_type(v, &name);
	uint64_t word;

	if (type < 0 || type >= v->n.type_no_string)
		return 0;
	word = v8_get(v, name, WIRE_V8_NAME);
	return (word & WIRE_V8_HASH_FORM) == WIRE_V8_HASH_WHOLE ? word : 0;
}

static uint64_t shared_id(struct v8 *v, uint64_t shared)
{
	const uint32_t pid = (uint32_t)v->runtime.space->pid;
	uint64_t script, name, number;

	if (v8_type(v, &shared) != v->n.type_shared)
		return 0;
	script = script_of(v, shared);
	if (script)
		return wire_language_v8_id(pid, v8_script_number(v, script),
					   v8_get(v, shared, (uint32_t)v->n.shared_flags) >> 32);
	name = v8_get(v, shared, (uint32_t)v->n.shared_name);
	number = name_number(v, name);
	return number ? wire_language_v8_id(pid, 0, number)
		      : wire_language_v8_id(pid, shared & ~1ull, name);
}

uint64_t v8_function_id(struct v8 *v, uint64_t object)
{
	uint64_t id, name, number;

	if (!v8_is_function(v, &object))
		return shared_id(v, object);
	id = shared_id(v, v8_get(v, object, (uint32_t)v->n.function_shared));
	number = id ? v8_own_name(v, object, &name) : 0;
	return number ? wire_language_v8_id((uint32_t)v->runtime.space->pid, id, number) : id;
}

/* Reads what V8 may have made since a function was read. */
static void read_code(struct v8 *v, uint64_t shared, struct v8_function *f)
{
	const uint8_t *positions;
	uint32_t n;

	f->pass = v->pass;
	f->bytecodes = f->script ? bytecodes_of(v, shared) : 0;
	if (!f->bytecodes || f->positions)
		return;
	positions = v8_bytes(v, v8_get(v, f->bytecodes, v->version->bytecodes_positions),
			     (uint32_t)v->n.array_data, &n);
	if (!positions || !v8_afford(v, n))
		return;
	f->positions = memcpy(arena_alloc(&v->names, n), positions, n);
	f->npositions = n;
}

const struct v8_function *v8_function(struct v8 *v, uint64_t shared)
{
	struct v8_function *f;
	struct v8_key key;
	uint64_t *known, script;

	if (v8_type(v, &shared) != v->n.type_shared)
		return NULL;
	/* A function that has moved is still the same. */
	key = (struct v8_key){ v->pass ? 0 : shared, v8_function_id(v, shared) };
	known = hash_get(&v->functions, &key, sizeof(key));
	if (known) {
		f = (struct v8_function *)(uintptr_t)*known;
		if (f->pass != v->pass)
			read_code(v, shared, f);
		return f;
	}
	if (!v8_afford(v, sizeof(*f)))
		return NULL;
	f = arena_new(&v->names, struct v8_function);
	*hash_put(&v->functions, &key, sizeof(key), NULL) = (uintptr_t)f;
	f->address = shared;
	f->name = v8_shared_name(v, shared);
	script = script_of(v, shared);
	if (script)
		f->script = v8_script(v, script);
	read_code(v, shared, f);
	return f;
}

/* Returns the function under another name. */
static const struct v8_function *with_name(struct v8 *v, const struct v8_function *plain,
					   uint64_t function, uint64_t name)
{
	const struct v8_key key = { v->pass ? 0 : name, v8_function_id(v, function) };
	const uint64_t *known = hash_get(&v->functions, &key, sizeof(key));
	struct v8_function *f;
	const char *text;

	if (known)
		return (const struct v8_function *)(uintptr_t)*known;
	text = v8_text(v, name);
	if (!v8_afford(v, sizeof(*f)))
		return plain;
	f = arena_new(&v->names, struct v8_function);
	*f = (struct v8_function){
		.address = plain->address, .name = text, .script = plain->script, .plain = plain
	};
	*hash_put(&v->functions, &key, sizeof(key), NULL) = (uintptr_t)f;
	return f;
}

const struct v8_function *v8_function_of(struct v8 *v, uint64_t function)
{
	const struct v8_function *plain;
	uint64_t name;

	if (!v8_is_function(v, &function))
		return NULL;
	plain = v8_function(v, v8_get(v, function, (uint32_t)v->n.function_shared));
	if (!plain || !v8_own_name(v, function, &name))
		return plain;
	return with_name(v, plain, function, name);
}

/* Reads a number with its sign in the lowest bit, inverted if it is negative. */
static int64_t take_signed(const uint8_t *p, uint32_t n, uint32_t *i)
{
	uint64_t sum = 0;

	for (uint32_t shift = 0; shift < 63 && *i < n; shift += 7) {
		uint8_t byte = p[(*i)++];

		sum |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return (int64_t)(sum >> 1) ^ -(int64_t)(sum & 1);
}

enum { LINES_KEPT = 1 << 16 };

/* Reads the entries: the number of bytes to step forward (n, or -n - 1), and the change of the
 * position. A position is the offset in the source plus one, above a bit
 * (source-position-table.cc). */
static uint32_t read_line(struct v8 *v, const struct v8_function *f, int32_t place)
{
	int64_t at = V8_ENTRY, position = 0, found = 0;
	uint32_t i = 0;

	if (v->work < f->npositions)
		return 0;
	while (i < f->npositions) {
		int64_t step = take_signed(f->positions, f->npositions, &i);

		if (__builtin_add_overflow(at, step < 0 ? -(step + 1) : step, &at) || at > place ||
		    __builtin_add_overflow(position, take_signed(f->positions, f->npositions, &i),
					   &position))
			break;
		found = position;
	}
	v->work -= i > V8_FREE_TABLE ? i : 0;
	found = (found >> 1 & 0x3fffffff) - 1;
	return found < 0 ? 0 : v8_script_line(f->script, (uint32_t)found);
}

/* A table may be long, and many frames may be at one place. */
static uint32_t v8_line(struct v8 *v, const struct v8_function *named, int32_t place)
{
	const struct v8_function *f = v8_plain(named);
	const uint64_t key[] = { (uintptr_t)f, (uint64_t)place };
	uint64_t *known;
	bool is_new;

	if (!f->script || place < V8_ENTRY)
		return 0;
	if (v->lines.n >= LINES_KEPT)
		hash_fini(&v->lines);
	known = hash_put(&v->lines, key, sizeof(key), &is_new);
	if (is_new)
		*known = read_line(v, f, place);
	return (uint32_t)*known;
}

struct runtime_frame v8_frame(struct v8 *v, const struct v8_at *at)
{
	const struct v8_function *f = at->function;

	return (struct runtime_frame){
		.code = f->address,
		.function = f->name ?: "<anonymous>",
		.file = f->script ? f->script->file : "[v8]",
		.line = v8_line(v, f, at->place),
	};
}

void v8_add(struct v8 *v, const struct v8_function *f, int32_t place, runtime_frame_vec *ret)
{
	vec_push(ret, v8_frame(v, &(struct v8_at){ f, place }));
}
