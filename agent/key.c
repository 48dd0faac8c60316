/* Finds the entries of aggregations whose only key is a text of the process, without copying the
 * text. Each thread remembers which entry a text had: by the text's address, or by the number that
 * Python or Ruby has for a name. */
#include "agent/agent.h"
#include "agent/map.h"
#include "agent/words.h"
#include "wire/language.h"

struct table {
	const struct wire_map *m;
	uint8_t *values; /* of the first entry */
};

/* The verifier knows that `map` is one of the program's maps (compile/jit/helper.c). */
static inline bool find_table(struct wire_thread *t, uint64_t map, struct table *ret)
{
	ret->m = (const struct wire_map *)map;
	if (UNLIKELY(ret->m->kind != WIRE_MAP_AGG_HASH)) {
		refuse(t);
		return false;
	}
	ret->values = map_agg_entries(ret->m, map_agg_table(ret->m, t, t->gen & 1)) + 8 +
		      map_pad8(ret->m->key_size);
	return true;
}

static inline struct wire_own_text *place_of(struct wire_thread *t, const struct table *a,
					     uint64_t addr)
{
	return &own_words(t)->texts[wire_text_place(addr, a->m->index)];
}

/* Notes the entry that has the value. */
static void note(struct wire_thread *t, const struct table *a, uint64_t addr, uint64_t value)
{
	const uint64_t entry = (value - (uintptr_t)a->values) / a->m->stride;

	if (entry < a->m->max_entries)
		*place_of(t, a, addr) = (struct wire_own_text){
			addr, (uintptr_t)a->values + entry * a->m->stride - (uintptr_t)t,
			a->m->index, (uint32_t)t->gen
		};
}

/* Returns the value that was noted in this turn of the aggregations, in which an entry keeps its
 * key. NULL: none. */
static inline uint8_t *noted(struct wire_thread *t, const struct table *a, uint64_t addr)
{
	const struct wire_own_text *x = place_of(t, a, addr);

	return x->addr == addr && x->map == a->m->index && x->turn == (uint32_t)t->gen
		       ? (uint8_t *)t + x->value
		       : NULL;
}

/* entry: 0, or the value that was found in another way, to be noted. */
ENTRY void *agent_agg_text(uint64_t map, uint64_t addr, uint64_t entry, uint64_t r4, uint64_t r5,
			   struct wire_thread *t)
{
	uint8_t *value;
	struct table a;

	if (!find_table(t, map, &a))
		return NULL;
	if (entry) {
		note(t, &a, addr, entry);
		return NULL;
	}
	value = noted(t, &a, addr);
	return value && text_is(t, addr, value - map_pad8(a.m->key_size), a.m->key_size) ? value
											 : NULL;
}

/* --- names by a number that no other name has, by which also thunks find entries
 * (compile/jit/function_key.c) --- */

/* Returns true when a fault of the plain loads of a firing would be survived. The interpreter
 * itself reads the same memory there, so a fault is hardly possible, and WIRE_OWN_NAMED firings
 * pass between two checks. A thread whose loads were not checked yet takes the other way, which
 * checks them. */
static NOINLINE bool may_load(struct wire_thread *t)
{
	struct wire_own *o = own_words(t);

	if (!o->checks || !loads_are_survived(t, 0))
		return false;
	if (!o->named) {
		o->checks = 0;
		return false;
	}
	o->named--;
	return true;
}

/* entry: as above; it is returned when it was noted. id: 0 not known. */
static NOINLINE void *by_number(struct wire_thread *t, uint64_t map, uint64_t id, uint64_t entry)
{
	struct table a;

	if (!id || !find_table(t, map, &a))
		return NULL;
	id |= WIRE_NAMED;
	if (entry)
		note(t, &a, id, entry);
	return noted(t, &a, id);
}

/* The number is the hash that Python keeps in the name: of 64 bits, with a key that each process
 * chooses. path: WIRE_PYTHON_PATH(). */
ENTRY void *agent_agg_python(uint64_t map, uint64_t frame, uint64_t path, uint64_t entry,
			     uint64_t r5, struct wire_thread *t)
{
	uint64_t code, name, hash;

	if (!may_load(t))
		return NULL;
	LOAD(64, frame + (path & 0xffff), code, bad);
	LOAD(64, code + (path >> 16), name, bad);
	LOAD(64, name + WIRE_PYTHON_HASH, hash, bad);
	return by_number(t, map, hash + 1 ? hash : 0, entry); /* -1: not computed yet */
bad:
	return NULL;
}

/* Returns what the scope of a frame of Ruby has as its method entry, 0: plain loads do not find
 * it. */
static NOINLINE uint64_t method_of_scope(uint64_t frame)
{
	uint64_t scope, method;

	LOAD(64, frame + WIRE_RUBY_FRAME_SCOPE, scope, bad);
	LOAD(64, scope - 16, method, bad);
	return method;
bad:
	return 0;
}

/* Returns the method entry of a frame. method: it is known; 0: the frame's scope has it. Returns 0
 * when plain loads do not find it. */
static NOINLINE uint64_t ruby_entry(uint64_t frame, uint64_t method)
{
	uint64_t flags;

	if (!method)
		method = method_of_scope(frame);
	LOAD(64, method, flags, bad);
	return (flags & WIRE_RUBY_KIND_MASK) == WIRE_RUBY_METHOD ? method : 0;
bad:
	return 0;
}

/* The number is the ID of the name of the frame's method: Ruby never gives it to another name. */
ENTRY void *agent_agg_ruby(uint64_t map, uint64_t frame, uint64_t method, uint64_t entry,
			   uint64_t r5, struct wire_thread *t)
{
	uint64_t definition, id;

	if (!may_load(t) || !(method = ruby_entry(frame, method)))
		return NULL;
	LOAD(64, method + WIRE_RUBY_METHOD_ABOUT, definition, bad);
	LOAD(64, definition + WIRE_RUBY_DEFINITION_NAME, id, bad);
	return by_number(t, map, id, entry);
bad:
	return NULL;
}

/* --- answers about functions: bpf/function_id.bpf.h --- */

static NOINLINE bool loads_once(struct wire_thread *t)
{
	return loads_are_survived(t, 1);
}

static uint64_t kept_answer(struct wire_thread *t, uint64_t map, uint64_t number)
{
	const struct wire_map *m = (const struct wire_map *)map;

	if (m->kind != WIRE_MAP_ARRAY || m->value_size != 8 * WIRE_FUNCTIONS) {
		refuse(t);
		return WIRE_FUNCTION_UNKNOWN;
	}
	return wire_function_answer((const uint64_t *)m->base, number);
}

static uint64_t answer_of(struct wire_thread *t, uint64_t map, uint64_t code, uint64_t at,
			  uint64_t salt)
{
	uint64_t first, second, third;

	LOAD(64, at, first, bad);
	LOAD(64, at + 8, second, bad);
	LOAD(64, at + 16, third, bad);
	return kept_answer(t, map,
			   wire_function_id(code, (uint64_t[]){ first, second, third }, salt));
bad:
	return WIRE_FUNCTION_UNKNOWN;
}

/* The interpreter itself reads the frame and the code object there. */
ENTRY uint64_t agent_id_python(uint64_t map, uint64_t frame, uint64_t path, uint64_t salt,
			       uint64_t r5, struct wire_thread *t)
{
	uint64_t code;

	if (!loads_once(t))
		return WIRE_FUNCTION_UNKNOWN;
	LOAD(64, frame + (path & 0xffff), code, bad);
	return answer_of(t, map, code, code + (path >> 16), salt);
bad:
	return WIRE_FUNCTION_UNKNOWN;
}

ENTRY uint64_t agent_id_ruby(uint64_t map, uint64_t frame, uint64_t entry, uint64_t salt,
			     uint64_t r5, struct wire_thread *t)
{
	if (!loads_once(t) || !(entry = ruby_entry(frame, entry)))
		return WIRE_FUNCTION_UNKNOWN;
	return answer_of(t, map, entry, entry + WIRE_RUBY_METHOD_ABOUT, salt);
}

/* Returns h with the words of a text of n bytes (0: up to a NUL). 0: not known. */
static uint64_t mix_text(uint64_t h, uint64_t s, uint32_t n)
{
	uint64_t w, z;

	for (uint32_t i = 0; i < WIRE_FUNCTION_TEXT; i++, s += 8, n -= 8) {
		LOAD(64, s, w, bad);
		z = n >= 8 ? 0 : n ? 1ull << 8 * n : zero_bytes(w);
		if (z)
			w &= n ? z - 1 : z ^ (z - 1);
		h = wire_function_mix(h, w);
		if (z || n == 8)
			return h;
		n += n ? 0 : 8;
	}
bad:
	return 0;
}

ENTRY uint64_t agent_id_texts(uint64_t map, uint64_t first, uint64_t second, uint64_t lengths,
			      uint64_t salt, struct wire_thread *t)
{
	uint64_t h = wire_function_mix(salt, lengths);

	if (!loads_once(t) || !(h = mix_text(h, first, (uint32_t)lengths)) ||
	    !(h = mix_text(h, second, (uint32_t)(lengths >> 32))))
		return WIRE_FUNCTION_UNKNOWN;
	return kept_answer(t, map, wire_function_number(h));
}
