/* The sizes of Python's objects, as sys.getsizeof() gives them. */
#include "memory/heaplive/python_heap.h"

enum {
	ITEMS = 16, /* ob_size */
	ITEMS_MAX = INT32_MAX,
	LIST_ROOM = 32,
	SET_MASK = 32,
	SET_TABLE = 40,
	SET_SMALL = 64,
	SET_ENTRY = 16,
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	HEAD = 16, /* of the collector, in front of an object */
	VALUES = 16,
	STR_IS_COMPACT = 0x20, /* of its state */
	STR_IS_ASCII = 0x40,
	LONG_HEAD = 24,
	LONG_DIGIT = 4,
	LONG_COUNT_SHIFT = 3, /* 3.12 on: of the number of digits */
	KEYS_HEAD = 32,       /* of 3.11; 40 before */
	KEYS_LOG2_MAX = 32,   /* of the number of slots */
	CACHED_KEYS = 872,    /* of a class of 3.11 */
	HEAP_TYPE = 904,
};

/* 2/3 of the slots. */
static uint64_t usable(uint64_t slots)
{
	return slots / 3 * 2 + slots % 3 * 2 / 3;
}

/* Before 3.11: the number of slots is a word, and an index has as many bytes as it needs. */
static bool old_keys(struct python_reader *x, uint64_t addr, struct python_keys *ret)
{
	const uint8_t *p = python_memory(x, addr, KEYS_HEAD + 8);
	uint64_t slots = p ? python_at(p, 8) : 0;
	uint32_t index = slots <= 0xff ? 1 : slots <= 0xffff ? 2 : slots <= 0xffffffff ? 4 : 8;

	if (!slots || slots & (slots - 1) || slots > 1ull << KEYS_LOG2_MAX)
		return false;
	ret->references = python_at(p, 0);
	ret->n = python_at(p, 32);
	ret->room = usable(slots);
	ret->entry = 24;
	ret->entries = addr + 40 + slots * index;
	ret->bytes = 40 + slots * index + ret->room * ret->entry;
	return ret->n <= ret->room;
}

bool python_keys(struct python_reader *x, uint64_t addr, struct python_keys *ret)
{
	const uint8_t *p;

	if (addr & 7 || !addr)
		return false;
	if (x->python->layout.version < PYTHON_3_11)
		return old_keys(x, addr, ret);
	p = python_memory(x, addr, KEYS_HEAD);
	if (!p || p[8] > KEYS_LOG2_MAX || p[9] > KEYS_LOG2_MAX + 3)
		return false;
	ret->references = python_at(p, 0);
	ret->n = python_at(p, 24);
	ret->room = ret->n + python_at(p, 16);
	ret->entry = p[10] ? 16 : 24;
	ret->entries = addr + KEYS_HEAD + (1ull << p[9]);
	ret->bytes = KEYS_HEAD + (1ull << p[9]) + usable(1ull << p[8]) * ret->entry;
	return ret->n <= usable(1ull << p[8]) && ret->room <= 1ull << p[8];
}

static uint64_t dict_size(struct python_reader *x, const uint8_t *p)
{
	struct python_keys k;

	if (!python_keys(x, python_at(p, DICT_KEYS), &k))
		return 0;
	if (python_at(p, DICT_VALUES) && python_at(p, DICT_VALUES) != UINT64_MAX)
		return k.room * 8 + (k.references == 1 ? k.bytes : 0);
	return k.references == 1 ? k.bytes : 0;
}

static uint64_t str_size(struct python_reader *x, uint64_t addr, const struct python_type *t)
{
	const struct python_layout *l = &x->python->layout;
	const uint8_t *p = python_memory(x, addr, l->text_other + 8);
	uint64_t n, size, state, text, utf8;
	uint32_t kind;

	if (!p)
		return t->basic;
	n = python_at(p, l->text_length);
	state = python_at(p, l->text_state);
	kind = state >> 2 & 7;
	if (state & STR_IS_COMPACT && state & STR_IS_ASCII)
		return l->text_ascii + n + 1;
	/* one of a derived class has a pointer to its characters */
	text = state & STR_IS_COMPACT ? addr + l->text_other : python_at(p, l->text_other);
	size = l->text_other + (state & STR_IS_COMPACT ? 0 : 8) + (n + 1) * kind;
	/* the same text in UTF-8, when it was asked for */
	utf8 = python_at(p, l->text_ascii + 8);
	if (utf8 && utf8 != text)
		size += python_at(p, l->text_ascii) + 1;
	return size;
}

static uint64_t type_size(struct python_reader *x, uint64_t addr, const struct python_type *t)
{
	const struct python_type *own = python_type(x, addr);
	struct python_keys k;
	const uint8_t *p;

	if (!own || !(own->flags & PYTHON_FLAG_HEAP))
		return PYTHON_TYPE_SIZE;
	p = x->python->layout.version == PYTHON_3_11 ? python_memory(x, addr, HEAP_TYPE) : NULL;
	if (!p)
		return t->basic;
	return HEAP_TYPE + (python_keys(x, python_at(p, CACHED_KEYS), &k) ? k.bytes : 0);
}

/* Generators have items but not their number, which is in their code. */
static uint64_t items_size(struct python_reader *x, uint64_t addr, const struct python_type *t,
			   const uint8_t *p)
{
	uint64_t n = t->item ? python_at(p, ITEMS) : 0;

	if ((int64_t)n < 0)
		n = -n;
	if (n > ITEMS_MAX || !python_memory(x, addr, t->basic + n * t->item))
		n = 0;
	return t->basic + n * t->item;
}

/* An int of 3.12 or later. */
static uint64_t long_size(struct python_reader *x, uint64_t addr, const struct python_type *t,
			  const uint8_t *p)
{
	uint64_t n = python_at(p, ITEMS) >> LONG_COUNT_SHIFT;

	if (n > ITEMS_MAX || !python_memory(x, addr, LONG_HEAD + n * LONG_DIGIT))
		n = 0;
	return t->basic + (n ?: 1) * LONG_DIGIT;
}

uint64_t python_size(struct python_reader *x, uint64_t addr, const struct python_type *t)
{
	const uint8_t *p = python_memory(x, addr, t->basic);
	uint64_t size = t->flags & PYTHON_FLAG_GC ? HEAD : 0;

	if (t->flags & PYTHON_FLAG_VALUES && x->python->layout.version >= PYTHON_3_11)
		size += VALUES;
	if (!p)
		return size + t->basic;
	switch (t->kind) {
	case PYTHON_STR: return size + str_size(x, addr, t);
	case PYTHON_LIST: return size + t->basic + (python_at(p, LIST_ROOM) & INT64_MAX / 8) * 8;
	case PYTHON_DICT: return size + t->basic + dict_size(x, p);
	case PYTHON_SET:
		return size + t->basic +
		       (python_at(p, SET_TABLE) != addr + SET_SMALL
				? ((python_at(p, SET_MASK) & INT64_MAX / 16) + 1) * SET_ENTRY
				: 0);
	case PYTHON_A_TYPE:
		/* a class that is static is not one that the collector frees */
		return (python_type(x, addr) && python_type(x, addr)->flags & PYTHON_FLAG_HEAP
				? size
				: 0) +
		       type_size(x, addr, t);
	case PYTHON_OTHER:
	case PYTHON_PLAIN:
	case PYTHON_WEAK:
	case PYTHON_TUPLE: break;
	}
	if (t->flags & PYTHON_FLAG_LONG && x->python->layout.version >= PYTHON_3_12)
		return size + long_size(x, addr, t, p);
	if (t->flags & PYTHON_FLAG_LONG)
		return size + LONG_HEAD +
		       (python_at(p, ITEMS) ? items_size(x, addr, t, p) - t->basic : LONG_DIGIT);
	return size + items_size(x, addr, t, p);
}
