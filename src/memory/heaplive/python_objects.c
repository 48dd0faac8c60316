/* Recognises objects and types of CPython by their first words. An object has a small number of
 * references and a type; a type is an object whose own type is a type of types. */
#include <sys/mman.h>

#include "base/limits.h"
#include "memory/heaplive/python_heap.h"

enum {
	TYPES_MAX = 1 << 22,
	BASIC_MAX = 1 << 20,
	BASES_MAX = 256,
	CELL_BYTES = 8, /* of the copy for each byte of cells; objects begin at whole words */
};
#define REFERENCES_MAX (1ull << 32) /* immortal objects have nearly as many */

const uint8_t *python_memory(struct python_reader *x, uint64_t addr, uint64_t n)
{
	return memory_at_near(x->copy, &x->last, addr, n);
}

/* Types of the interpreter's library may lie in pages that the process has not written, which are
 * not in the copy. */
static bool read_type(struct python_reader *x, uint64_t addr, uint8_t ret[PYTHON_TYPE_SIZE])
{
	return space_read_some(x->space, addr, ret, PYTHON_TYPE_SIZE) == PYTHON_TYPE_SIZE;
}

static uint64_t type_flags(struct python_reader *x, uint64_t type)
{
	uint64_t flags = 0;

	return !(type & 7) && space_word(x->space, type + PYTHON_TYPE_FLAGS, &flags) ? flags : 0;
}

enum { BASE_WORDS = 8 /* read of each base */ };

/* Sets and weak references have no flag: a class is what the static type is that it is derived
 * from. */
static enum python_kind kind_by_name(struct python_reader *x, uint64_t type)
{
	for (uint32_t i = 0; type && i < BASES_MAX && x->budget >= BASE_WORDS; i++) {
		uint64_t name;
		char text[32] = { 0 };

		x->budget -= BASE_WORDS;
		if (!space_word(x->space, type + PYTHON_TYPE_NAME, &name))
			break;
		space_read_some(x->space, name, text, sizeof(text) - 1);
		if (!(type_flags(x, type) & PYTHON_FLAG_HEAP)) {
			if (!strcmp(text, "set") || !strcmp(text, "frozenset"))
				return PYTHON_SET;
			if (!strncmp(text, "weakref", 7) || !strncmp(text, "weakproxy", 9) ||
			    !strncmp(text, "weakcallableproxy", 17))
				return PYTHON_WEAK;
		}
		if (!space_word(x->space, type + PYTHON_TYPE_BASE, &type))
			break;
	}
	return PYTHON_OTHER;
}

/* The bytes of an object that python_size() and python_refs() read without asking again. The number
 * of its items is among them, when it has items. */
static const uint32_t least_basic[] = {
	[PYTHON_OTHER] = 16,  [PYTHON_PLAIN] = 16, [PYTHON_STR] = 16,
	[PYTHON_LIST] = 40,   [PYTHON_TUPLE] = 24, [PYTHON_DICT] = 48,
	[PYTHON_A_TYPE] = 16, [PYTHON_SET] = 48,   [PYTHON_WEAK] = 16,
};
enum { LEAST_WITH_ITEMS = 24 };

static void fill_type(struct python_reader *x, struct python_type *t, const uint8_t *p)
{
	uint32_t least;

	t->flags = python_at(p, PYTHON_TYPE_FLAGS);
	t->basic = python_at(p, PYTHON_TYPE_BASIC);
	t->item = python_at(p, PYTHON_TYPE_ITEM);
	if (t->flags & PYTHON_FLAG_TYPE)
		t->kind = PYTHON_A_TYPE;
	else if (t->flags & PYTHON_FLAG_STR)
		t->kind = PYTHON_STR;
	else if (t->flags & PYTHON_FLAG_LIST)
		t->kind = PYTHON_LIST;
	else if (t->flags & PYTHON_FLAG_TUPLE)
		t->kind = PYTHON_TUPLE;
	else if (t->flags & PYTHON_FLAG_DICT)
		t->kind = PYTHON_DICT;
	else if (!(t->flags & (PYTHON_FLAG_GC | PYTHON_FLAG_HEAP)) &&
		 (t->flags & (PYTHON_FLAG_LONG | PYTHON_FLAG_BYTES) || t->basic <= 32))
		t->kind = PYTHON_PLAIN;
	else
		t->kind = kind_by_name(x, t->address);
	least = least_basic[t->kind];
	if ((t->item || t->flags & PYTHON_FLAG_LONG) && least < LEAST_WITH_ITEMS)
		least = LEAST_WITH_ITEMS;
	t->valid = t->basic >= least && t->basic <= BASIC_MAX && t->item <= BASIC_MAX;
}

static void grow_types(struct python_reader *x)
{
	uint32_t n = x->type_mask ? (x->type_mask + 1) * 2 : 4096;

	free(x->type_slots);
	x->type_slots = xcalloc(n, sizeof(*x->type_slots));
	x->type_mask = n - 1;
	for (uint32_t i = 0; i < x->types.n; i++) {
		uint32_t k = (uint32_t)hash_word(x->types.v[i]->address);

		while (x->type_slots[k & x->type_mask])
			k++;
		x->type_slots[k & x->type_mask] = i + 1;
	}
}

struct python_type *python_type(struct python_reader *x, uint64_t addr)
{
	uint32_t k = (uint32_t)hash_word(addr), i;
	uint8_t p[PYTHON_TYPE_SIZE];
	struct python_type *t;

	if (addr & 7 || addr < 4096)
		return NULL;
	if (x->types.n * 2ull >= x->type_mask)
		grow_types(x);
	for (; (i = x->type_slots[k & x->type_mask]); k++)
		if (x->types.v[i - 1]->address == addr)
			return x->types.v[i - 1]->valid ? x->types.v[i - 1] : NULL;
	if (x->types.n == TYPES_MAX || !x->budget)
		return NULL;
	x->budget--;
	t = arena_new(&x->arena, struct python_type);
	t->address = addr;
	vec_push(&x->types, t);
	x->type_slots[k & x->type_mask] = x->types.n;
	if (memory_region_at(x->copy, addr) && read_type(x, addr, p) && python_at(p, 0) &&
	    python_at(p, 0) < REFERENCES_MAX && type_flags(x, python_at(p, 8)) & PYTHON_FLAG_TYPE)
		fill_type(x, t, p);
	return t->valid ? t : NULL;
}

struct python_type *python_object(struct python_reader *x, uint64_t addr)
{
	const uint8_t *p = addr & 7 || addr < 4096 ? NULL : python_memory(x, addr, 24);
	uint64_t references;

	if (!p)
		return NULL;
	references = python_at(p, 0);
	return references && references < REFERENCES_MAX ? python_type(x, python_at(p, 8)) : NULL;
}

static uint64_t set_slot(const struct python_set *s, uint64_t addr)
{
	uint64_t k = hash_word(addr) & s->mask;

	while (s->v[k] && s->v[k] != addr)
		k = (k + 1) & s->mask;
	return k;
}

static void grow_set(struct python_set *s)
{
	struct python_set old = *s;

	s->mask = old.mask ? old.mask * 2 + 1 : (1 << 16) - 1;
	s->v = xcalloc(s->mask + 1, sizeof(*s->v));
	s->count = xcalloc(s->mask + 1, sizeof(*s->count));
	for (uint64_t i = 0; old.v && i <= old.mask; i++)
		if (old.v[i]) {
			uint64_t k = set_slot(s, old.v[i]);

			s->v[k] = old.v[i];
			s->count[k] = old.count[i];
		}
	free(old.v);
	free(old.count);
}

/* Returns the slot of an address, which is added when it is new. */
static uint64_t put_slot(struct python_set *s, uint64_t addr, bool *ret_new)
{
	uint64_t k;

	if (s->n * 2 >= s->mask)
		grow_set(s);
	k = set_slot(s, addr);
	*ret_new = !s->v[k];
	s->n += *ret_new;
	s->v[k] = addr;
	return k;
}

bool python_set_put(struct python_set *s, uint64_t addr)
{
	bool new;

	put_slot(s, addr, &new);
	return new;
}

static uint8_t *cells_map(size_t size)
{
	uint8_t *p;

	limits_reserve((int64_t)size);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p != MAP_FAILED)
		return p;
	limits_reserve(-(int64_t)size);
	return NULL;
}

static void cells_unmap(uint8_t *p, size_t size)
{
	munmap(p, size);
	limits_reserve(-(int64_t)size);
}

/* Returns the cell of an address. NULL: it is not in the copy, or there is no room. */
static uint8_t *cell_of(struct python_reader *x, uint64_t addr)
{
	const struct memory_region *r;
	uint32_t i;

	if (!python_memory(x, addr, 1))
		return NULL;
	r = x->last;
	i = (uint32_t)(r - x->copy->regions.v);
	if (!x->cells)
		x->cells = xcalloc(x->copy->regions.n, sizeof(*x->cells));
	if (!x->cells[i])
		x->cells[i] = cells_map((r->end - r->start) / CELL_BYTES + 1);
	if (!x->cells[i])
		return NULL;
	return x->cells[i] + (addr - r->start) / CELL_BYTES;
}

bool python_mark(struct python_reader *x, uint64_t addr)
{
	uint8_t *cell = cell_of(x, addr);

	if (!cell || *cell)
		return false;
	*cell = 1;
	x->seen++;
	return true;
}

static void count_reference(struct python_reader *x, uint64_t addr, uint8_t *cell)
{
	uint64_t k;
	bool new;

	if (*cell < PYTHON_MANY && ++*cell < PYTHON_MANY)
		return;
	k = put_slot(&x->many, addr, &new);
	if (new)
		x->many.count[k] = PYTHON_MANY - 1;
	else if (x->many.count[k] < UINT32_MAX)
		x->many.count[k]++;
}

static uint32_t references_found(const struct python_reader *x, uint64_t addr, const uint8_t *cell)
{
	return *cell < PYTHON_MANY ? *cell - 1u : x->many.count[set_slot(&x->many, addr)];
}

bool python_is_held(struct python_reader *x, uint64_t addr)
{
	const uint8_t *p = python_memory(x, addr, 8), *cell = cell_of(x, addr);

	return !cell || !*cell || (p && python_at(p, 0) > references_found(x, addr, cell));
}

void python_own(struct python_reader *x, uint64_t addr)
{
	uint32_t k = heap_chunk(&x->blocks, addr);

	if (k != LEAKS_NONE)
		x->blocks.chunks.v[k].bits |= CHUNK_REACHED;
}

bool python_see(struct python_reader *x, uint64_t addr, bool counts)
{
	uint8_t *cell = python_object(x, addr) ? cell_of(x, addr) : NULL;

	if (!cell)
		return false;
	if (!*cell) {
		*cell = 1;
		x->seen++;
		vec_push(&x->queue, addr);
		python_own(x, addr);
	}
	if (counts)
		count_reference(x, addr, cell);
	return true;
}

void python_objects_fini(struct python_reader *x)
{
	for (uint32_t i = 0; x->cells && i < x->copy->regions.n; i++) {
		const struct memory_region *r = &x->copy->regions.v[i];

		if (x->cells[i])
			cells_unmap(x->cells[i], (r->end - r->start) / CELL_BYTES + 1);
	}
	free(x->cells);
	free(x->many.v);
	free(x->many.count);
	free(x->pages.v);
	free(x->pages.count);
	vec_fini(&x->queue);
	vec_fini(&x->types);
	arena_fini(&x->arena);
	free(x->type_slots);
	vec_fini(&x->found);
}
