/* Finds the entries of aggregations whose only key is a text of the process, without copying the
 * text. Each thread remembers which entry a text had: by the text's address, or by the number that
 * Ruby has for a name. */
#include "agent/agent.h"
#include "agent/map.h"
#include "agent/words.h"
#include "wire/language.h"

enum { RUBY_DEFINITION_ID = 32, RUBY_DEFINITION_AT = 16 };
#define NAMED_BY_ID (1ull << 63) /* in wire_own_text.addr: no address of user space has it */

struct table {
	const struct wire_map *m;
	struct wire_agg_table *table;
	uint8_t *keys; /* of the first entry */
};

/* The verifier knows that `map` is one of the program's maps (compile/jit/helper.c). */
static inline bool find_table(struct wire_thread *t, uint64_t map, struct table *ret)
{
	ret->m = (const struct wire_map *)map;
	if (UNLIKELY(ret->m->kind != WIRE_MAP_AGG_HASH)) {
		refuse(t);
		return false;
	}
	ret->table = map_agg_table(ret->m, t, t->gen & 1);
	ret->keys = map_agg_entries(ret->m, ret->table) + 8;
	return true;
}

static inline struct wire_own_text *place_of(struct wire_thread *t, const struct table *a,
					     uint64_t addr)
{
	_Static_assert(WIRE_OWN_TEXTS == 1 << (64 - 58), "bits of the hash");
	return &own_words(t)->texts[(addr ^ a->m->index) * WIRE_THREAD_MIX >> 58];
}

/* Returns a number that tells keys apart: of the key's hash, which stands before it, and of its
 * first bytes. */
static inline uint64_t mark_of(const uint8_t *key)
{
	return *(const any64 *)key ^ *(const uint32_t *)(key - 8) * WIRE_THREAD_MIX;
}

static void note(struct wire_thread *t, const struct table *a, uint64_t addr, uint64_t value)
{
	const uint8_t *key = (const uint8_t *)value - map_pad8(a->m->key_size);

	*place_of(t, a, addr) =
		(struct wire_own_text){ addr, mark_of(key), a->m->index,
					(uint32_t)((uint64_t)(key - a->keys) / a->m->stride) };
}

/* Returns the key that was noted, NULL: none. It may be another text's by now. */
static inline uint8_t *noted(struct wire_thread *t, const struct table *a,
			     const struct wire_own_text *x, uint64_t addr)
{
	return x->addr == addr && x->map == a->m->index && x->entry < a->table->n &&
			       x->entry < a->m->max_entries
		       ? a->keys + (uint64_t)x->entry * a->m->stride
		       : NULL;
}

/* Returns the value whose key is the text at the address, if that text had it before. */
static inline void *value_of_text(struct wire_thread *t, const struct table *a, uint64_t addr)
{
	uint8_t *key = noted(t, a, place_of(t, a, addr), addr);

	return key && text_is(t, addr, key, a->m->key_size) ? key + map_pad8(a->m->key_size) : NULL;
}

/* entry: 0, or the value that was found in another way, to be noted. */
ENTRY void *agent_agg_text(uint64_t map, uint64_t addr, uint64_t entry, uint64_t r4, uint64_t r5,
			   struct wire_thread *t)
{
	struct table a;

	if (!find_table(t, map, &a))
		return NULL;
	if (!entry)
		return value_of_text(t, &a, addr);
	note(t, &a, addr, entry);
	return NULL;
}

/* A value's address, for a tail call. */
static NOINLINE void *count_load(struct wire_thread *t, void *value)
{
	(void)loads_are_survived(t, 1);
	return value;
}

/* Returns the value of a key to which an interpreter's frame has led by plain loads. The
 * interpreter reads the same memory there, so a fault is hardly possible, and a store at each
 * firing would cost a quarter of it. So these loads count where the value is a multiple of 64. */
static inline void *value_at(struct wire_thread *t, const struct wire_map *m, uint8_t *key)
{
	uint64_t *value = (uint64_t *)(key + map_pad8(m->key_size));

	return *value % 64 ? value : count_load(t, value);
}

/* Returns the value if the key is the text at the address. */
static NOINLINE void *value_of_long(struct wire_thread *t, const struct wire_map *m, uint8_t *key,
				    uint64_t s)
{
	/* no read goes beyond the page, which has at least the text's beginning */
	return words_are(key, m->key_size, s, (s | (PAGE - 1)) + 1) ? value_at(t, m, key) : NULL;
}

/* The same, mostly without a call: most names end in the first word. */
static inline void *value_of_name(struct wire_thread *t, const struct wire_map *m, uint8_t *key,
				  uint64_t s)
{
	uint64_t w, z;

	if (UNLIKELY(s % PAGE > PAGE - 8))
		return NULL;
	LOAD(64, s, w, bad);
	z = zero_bytes(w);
	if (!z)
		return value_of_long(t, m, key, s);
	if ((w & (z ^ (z - 1))) == *(const any64 *)key)
		return value_at(t, m, key);
bad:
	return NULL;
}

/* Returns true when a fault of the plain loads of a firing would be survived. A thread whose loads
 * were not checked yet takes the other way, which checks them. */
static inline bool may_load(struct wire_thread *t)
{
	return own_words(t)->checks && loads_are_survived(t, 0);
}

/* The same for a name of Python that the code object of a frame has. The interpreter itself reads
 * the frame and the code object there. path: WIRE_PYTHON_PATH(). */
ENTRY void *agent_agg_python(uint64_t map, uint64_t frame, uint64_t path, uint64_t r4, uint64_t r5,
			     struct wire_thread *t)
{
	uint64_t code, name;
	struct table a;
	uint32_t state;
	uint8_t *key;

	if (!find_table(t, map, &a) || !may_load(t))
		return NULL;
	LOAD(64, frame + (path & 0xffff), code, bad);
	LOAD(64, code + (path >> 16 & 0xffff), name, bad);
	LOAD(32, name + (path >> 32 & 0xff), state, bad);
	if (!(state & WIRE_PYTHON_ASCII))
		return NULL;
	name += path >> 40 & 0xff;
	key = noted(t, &a, place_of(t, &a, name), name);
	if (key)
		return value_of_name(t, a.m, key, name);
bad:
	return NULL;
}

/* Returns the method entry of a frame. method: it is known; 0: the frame's scope has it. Returns 0
 * when plain loads do not find it. */
static inline uint64_t ruby_entry(uint64_t frame, uint64_t method)
{
	uint64_t scope, flags;

	if (!method) {
		LOAD(64, frame + WIRE_RUBY_FRAME_SCOPE, scope, bad);
		LOAD(64, scope - 16, method, bad);
	}
	LOAD(64, method, flags, bad);
	return (flags & WIRE_RUBY_KIND_MASK) == WIRE_RUBY_METHOD ? method : 0;
bad:
	return 0;
}

/* Reads the ID of the name of a frame's method. Returns 0 when plain loads do not find an ID. */
static uint64_t ruby_id(uint64_t frame, uint64_t method)
{
	uint64_t definition, id;

	method = ruby_entry(frame, method);
	if (!method)
		return 0;
	LOAD(64, method + WIRE_RUBY_METHOD_ABOUT, definition, bad);
	LOAD(64, definition + RUBY_DEFINITION_ID, id, bad);
	return id;
bad:
	return 0;
}

/* The same for the name of a method of Ruby, which never gives the ID of a name to another one. The
 * text is not read: the number of an entry means another text in another generation, and then the
 * mark differs. */
ENTRY void *agent_agg_ruby(uint64_t map, uint64_t frame, uint64_t method, uint64_t entry,
			   uint64_t r5, struct wire_thread *t)
{
	const struct wire_own_text *x;
	struct table a;
	uint8_t *key;
	uint64_t id;

	if (!find_table(t, map, &a) || !may_load(t) || !(id = ruby_id(frame, method)))
		return NULL;
	id |= NAMED_BY_ID;
	if (entry) {
		note(t, &a, id, entry);
		return NULL;
	}
	x = place_of(t, &a, id);
	key = noted(t, &a, x, id);
	return key && mark_of(key) == x->mark ? value_at(t, a.m, key) : NULL;
}

/* --- numbers of functions: bpf/function_id.bpf.h --- */

static inline uint64_t id_of(uint64_t code, uint64_t at, uint64_t salt)
{
	uint64_t first, second, third;

	LOAD(64, at, first, bad);
	LOAD(64, at + 8, second, bad);
	LOAD(64, at + 16, third, bad);
	return wire_function_id(code, (uint64_t[]){ first, second, third }, salt);
bad:
	return 0;
}

/* The interpreter itself reads the frame and the code object there. */
ENTRY uint64_t agent_id_python(uint64_t frame, uint64_t path, uint64_t salt, uint64_t r4,
			       uint64_t r5, struct wire_thread *t)
{
	uint64_t code;

	if (!loads_are_survived(t, 1))
		return 0;
	LOAD(64, frame + (path & 0xffff), code, bad);
	return id_of(code, code + (path >> 16), salt);
bad:
	return 0;
}

ENTRY uint64_t agent_id_ruby(uint64_t frame, uint64_t entry, uint64_t salt, uint64_t r4,
			     uint64_t r5, struct wire_thread *t)
{
	if (!loads_are_survived(t, 1))
		return 0;
	entry = ruby_entry(frame, entry);
	return entry ? id_of(entry, entry + RUBY_DEFINITION_AT, salt) : 0;
}
