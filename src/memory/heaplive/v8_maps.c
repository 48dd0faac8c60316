/* The Maps of V8's heap, and the sizes of the objects that have them. */
#include "memory/heaplive/v8_heap.h"

enum {
	MAPS_FIRST = 1 << 12,
	/* members of Code that say how long its instructions are */
	CODE_MORE = 4,
	CODE_ALIGN = 64,
	DESCRIPTOR = 24,
	LENGTH = 8,
	STRING_LENGTH = 12,
	PROPERTIES_MASK = 0x3ff,
};
#define BYTES_MAX (1ull << 40)

static uint32_t map_slot(const struct v8_reader *x, uint64_t pointer)
{
	return (uint32_t)hash_word(pointer) & x->map_mask;
}

static void maps_grow(struct v8_reader *x)
{
	uint32_t n = x->map_slots ? (x->map_mask + 1) * 2 : MAPS_FIRST;

	free(x->map_slots);
	x->map_slots = xcalloc(n, sizeof(*x->map_slots));
	x->map_mask = n - 1;
	for (uint32_t i = 0; i < x->maps.n; i++) {
		uint32_t at = map_slot(x, x->maps.v[i].address);

		while (x->map_slots[at])
			at = (at + 1) & x->map_mask;
		x->map_slots[at] = i + 1;
	}
}

static uint16_t map_type(const struct v8_reader *x, const uint8_t *map)
{
	uint16_t type;

	memcpy(&type, map + x->v8->n.map_type, sizeof(type));
	return type;
}

/* A Map has a Map, too: one of Maps. */
static bool is_map(const struct v8_reader *x, const uint8_t *p)
{
	const uint8_t *own = v8_object(x, v8_at(p, 0), V8_MAP_SIZE);

	return own && map_type(x, own) == x->version->map;
}

struct v8_map *v8_map_at(struct v8_reader *x, uint64_t pointer)
{
	const uint8_t *p;
	struct v8_map *m;
	uint32_t at;

	if (x->maps.n * 2 >= x->map_mask)
		maps_grow(x);
	for (at = map_slot(x, pointer); x->map_slots[at]; at = (at + 1) & x->map_mask)
		if (x->maps.v[x->map_slots[at] - 1].address == pointer)
			return &x->maps.v[x->map_slots[at] - 1];
	p = v8_object(x, pointer, V8_MAP_SIZE);
	if (!p || !is_map(x, p))
		return NULL;
	m = vec_add(&x->maps);
	*m = (struct v8_map){ .address = pointer, .type = map_type(x, p) };
	v8_type_learn(x, m, p[x->v8->n.map_words]);
	x->map_slots[at] = x->maps.n;
	return m;
}

/* Returns a length that is a small integer, more than an object can have if it is none. */
static uint64_t small(const uint8_t *p, uint32_t at)
{
	const uint64_t word = v8_at(p, at);

	return (uint32_t)word || word >> 63 ? BYTES_MAX : word >> 32;
}

/* The size of the instructions and tables in code. */
static uint64_t code_size(const struct v8_reader *x, const struct v8_map *m, const uint8_t *p)
{
	const struct v8_version *v = x->v8->version;
	uint64_t n;

	if (x->version->stream_size) {
		n = v8_at4(p, x->version->stream_size);
	} else {
		if (m->sizing == V8_STREAM)
			p = v8_object(x, v8_at(p, v->stream_code), v->code_size + 8ull);
		if (!p)
			return BYTES_MAX;
		n = (uint64_t)v8_at4(p, v->code_size) + v8_at4(p, v->code_size + CODE_MORE);
	}
	return round_up(m->size + n, CODE_ALIGN);
}

/* Goes on to the next word that is a Map: no member of these types is one. */
static uint64_t search_size(struct v8_reader *x, const struct v8_map *m, const uint8_t *p,
			    uint64_t most)
{
	uint64_t at = m->size;

	while (at < most && !v8_map_at(x, v8_at(p, at)))
		at += 8;
	return at;
}

static uint64_t size_of(struct v8_reader *x, const struct v8_map *m, const uint8_t *p,
			uint64_t most)
{
	switch (m->sizing) {
	case V8_FIXED: return m->size;
	case V8_SMALL_WORDS: return m->size + small(p, LENGTH) * 8;
	case V8_SMALL_BYTES: return round_up(m->size + small(p, LENGTH), 8);
	case V8_STRING_BYTES: return round_up(m->size + (uint64_t)v8_at4(p, STRING_LENGTH), 8);
	case V8_STRING_PAIRS: return round_up(m->size + 2ull * v8_at4(p, STRING_LENGTH), 8);
	case V8_DESCRIPTORS: return m->size + (v8_at4(p, LENGTH) & UINT16_MAX) * DESCRIPTOR;
	case V8_PROPERTIES: return m->size + (small(p, LENGTH) & PROPERTIES_MASK) * 8;
	case V8_SLOTS: return m->size + v8_at4(p, LENGTH) * 8ull;
	case V8_DIGITS: return m->size + (v8_at4(p, LENGTH) >> 1) * 8ull;
	case V8_CODE:
	case V8_STREAM: return most > m->size ? code_size(x, m, p) : 0;
	case V8_GIVEN: return small(p, LENGTH) * m->size;
	default: return search_size(x, m, p, most);
	}
}

uint64_t v8_size(struct v8_reader *x, const struct v8_map *m, const uint8_t *p, uint64_t most)
{
	const struct v8_map copy = *m; /* the search may move the Maps */
	uint64_t size;

	if (copy.sizing != V8_FIXED && most < 16)
		return copy.sizing == V8_SEARCHED && most == 8 ? 8 : 0;
	size = size_of(x, &copy, p, most);
	return size >= 8 && size <= most ? size : 0;
}
