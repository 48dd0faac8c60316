/* Reads V8's heap. Pointers to objects have the lowest bit set; small integers lie in the upper
 * half of a word. */

#include "program/runtime/v8/v8.h"

enum {
	POINTER = 1,
	TAG_MASK = 3,
	WEAK = 2,
	BYTES_MAX = 1 << 22,
	FORWARDS_MAX = 2,
	TYPE_SIZE = 32, /* bytes that a Map's type takes */
};

bool v8_word(const struct v8 *v, uint64_t addr, uint64_t *ret)
{
	return space_word(v->runtime.space, addr, ret);
}

uint32_t v8_u32(const struct v8 *v, uint64_t addr)
{
	uint32_t n = 0;

	return space_read_some(v->runtime.space, addr, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

bool v8_is_pointer(uint64_t word)
{
	return (word & 7) == POINTER && word >> 47 == 0 && word > 4096;
}

bool v8_small(uint64_t word, int32_t *ret)
{
	*ret = (int32_t)(word >> 32);
	return (uint32_t)word == 0;
}

uint64_t v8_get(const struct v8 *v, uint64_t object, uint32_t at)
{
	uint64_t word;

	return object && v8_word(v, object - POINTER + at, &word) ? word : 0;
}

static int32_t type_of_map(struct v8 *v, uint64_t map)
{
	uint64_t *known = hash_get(&v->types, &map, sizeof(map)), own;
	int32_t type = V8_NO_TYPE;
	uint32_t at = (uint32_t)v->n.map_type;

	if (known)
		return (int32_t)*known - 1;
	own = v8_get(v, map, 0);
	if (v8_is_pointer(own) &&
	    (uint16_t)v8_u32(v, own - POINTER + at) == (uint16_t)v->n.type_map)
		type = (uint16_t)v8_u32(v, map - POINTER + at);
	if (v8_afford(v, TYPE_SIZE)) {
		v->passing_size += TYPE_SIZE;
		*hash_put(&v->types, &map, sizeof(map), NULL) = (uint64_t)(type + 1);
	}
	return type;
}

int32_t v8_type(struct v8 *v, uint64_t *object)
{
	uint64_t at = *object;

	for (uint32_t i = 0; i < FORWARDS_MAX && v8_is_pointer(at); i++) {
		uint64_t map = v8_get(v, at, 0);

		if (v8_is_pointer(map)) {
			*object = at;
			return type_of_map(v, map);
		}
		if (!map || map & TAG_MASK)
			return V8_NO_TYPE;
		at = map + POINTER; /* the garbage collector has moved it there */
	}
	return V8_NO_TYPE;
}

uint64_t v8_member(struct v8 *v, uint64_t object, uint32_t at, int32_t type)
{
	uint64_t member = v8_get(v, object, at) & ~(uint64_t)WEAK;

	return v8_type(v, &member) == type ? member : 0;
}

static size_t *budget_of(struct v8 *v)
{
	return v->runtime.budget ? v->runtime.budget : &v->budget;
}

bool v8_has(struct v8 *v, size_t n)
{
	const bool has = n <= *budget_of(v);

	v->runtime.spent |= !has;
	return has;
}

bool v8_afford(struct v8 *v, size_t n)
{
	return runtime_afford(&v->runtime, &v->budget, n);
}

void v8_pass(struct v8 *v)
{
	*budget_of(v) += v->passing_size;
	v->passing_size = 0;
	v->pass++;
	hash_fini(&v->types);
	hash_fini(&v->arrays);
	hash_fini(&v->lines);
	arena_fini(&v->passing);
	arena_init(&v->passing);
	v->codes.n = 0;
}

/* An array that was read, followed by its bytes. */
struct bytes {
	uint32_t n;
	uint8_t v[];
};

const uint8_t *v8_bytes(struct v8 *v, uint64_t array, uint32_t at, uint32_t *ret_n)
{
	const uint64_t *known = hash_get(&v->arrays, &array, sizeof(array));
	struct bytes *b = known ? (struct bytes *)(uintptr_t)*known : NULL;
	int32_t n;

	*ret_n = 0;
	if (!b) {
		uint64_t object = array;

		if (!v8_is_pointer(array) || v8_type(v, &object) == V8_NO_TYPE ||
		    !v8_small(v8_get(v, object, (uint32_t)v->n.array_length), &n) || n <= 0 ||
		    n > BYTES_MAX || !v8_afford(v, sizeof(*b) + (size_t)n))
			return NULL;
		v->passing_size += sizeof(*b) + (size_t)n;
		b = arena_alloc(&v->passing, sizeof(*b) + (size_t)n);
		b->n = space_read_some(v->runtime.space, object - POINTER + at, b->v, (uint32_t)n);
		if (b->n != (uint32_t)n)
			return NULL;
		*hash_put(&v->arrays, &array, sizeof(array), NULL) = (uintptr_t)b;
	}
	*ret_n = b->n;
	return b->v;
}

uint32_t v8_number(const uint8_t *p, uint32_t n, uint32_t *i)
{
	uint32_t sum = 0;

	for (uint32_t shift = 0; shift < 35 && *i < n; shift += 7) {
		uint8_t byte = p[(*i)++];

		if (shift < 32)
			sum |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return sum;
}
