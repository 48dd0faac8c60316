/* JavaScript functions: name, script, and the lines of their bytecodes. */

#include "program/runtime/v8/v8.h"

enum {
	LAST_FUNCTION = 16, /* the types of JSFunction and of its subclasses follow each other */
	/* Flags of a ScopeInfo (scope-info.tq). */
	SCOPE_CLASS_VARIABLE = 1 << 10,
	SCOPE_FUNCTION_VARIABLE = 3 << 12,
	SCOPE_INFERRED_NAME = 1 << 14,
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

static const char *name_of(struct v8 *v, uint64_t shared)
{
	uint64_t name = v8_get(v, shared, (uint32_t)v->n.shared_name);

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

const struct v8_function *v8_function(struct v8 *v, uint64_t shared)
{
	struct v8_function *f;
	uint64_t *known, script;

	if (v8_type(v, &shared) != v->n.type_shared)
		return NULL;
	known = hash_get(&v->functions, &shared, sizeof(shared));
	if (known)
		return (const struct v8_function *)(uintptr_t)*known;
	if (!v8_afford(v, sizeof(*f)))
		return NULL;
	f = arena_new(&v->names, struct v8_function);
	*hash_put(&v->functions, &shared, sizeof(shared), NULL) = (uintptr_t)f;
	f->address = shared;
	f->name = name_of(v, shared);
	script = script_of(v, shared);
	if (!script)
		return f;
	f->script = v8_script(v, script);
	f->bytecodes = bytecodes_of(v, shared);
	if (f->bytecodes)
		f->positions = v8_bytes(v, v8_get(v, f->bytecodes, v->version->bytecodes_positions),
					(uint32_t)v->n.array_data, &f->npositions);
	return f;
}

const struct v8_function *v8_function_of(struct v8 *v, uint64_t function)
{
	int32_t type = v8_type(v, &function);

	if (type < v->n.type_function || type > v->n.type_function + LAST_FUNCTION)
		return NULL;
	return v8_function(v, v8_get(v, function, (uint32_t)v->n.function_shared));
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

/* Reads the entries: the number of bytes to step forward (n, or -n - 1), and the change of the
 * position. A position is the offset in the source plus one, above a bit
 * (source-position-table.cc). */
static uint32_t v8_line(const struct v8_function *f, int32_t place)
{
	int64_t at = -1, position = 0, found = 0; /* -1: the function's entry */
	uint32_t i = 0;

	if (!f->script || place < 0)
		return 0;
	while (i < f->npositions) {
		int64_t step = take_signed(f->positions, f->npositions, &i);

		if (__builtin_add_overflow(at, step < 0 ? -(step + 1) : step, &at) || at > place ||
		    __builtin_add_overflow(position, take_signed(f->positions, f->npositions, &i),
					   &position))
			break;
		found = position;
	}
	found = (found >> 1 & 0x3fffffff) - 1;
	return found < 0 ? 0 : v8_script_line(f->script, (uint32_t)found);
}

void v8_add(const struct v8_function *f, int32_t place, runtime_frame_vec *ret)
{
	vec_push(ret, (struct runtime_frame){
			      .code = f->address,
			      .function = f->name ?: "<anonymous>",
			      .file = f->script ? f->script->file : "[v8]",
			      .line = v8_line(f, place),
		      });
}
