/* The numbers and texts of Ruby's objects, and those that stand in other objects' words. */
#include "memory/heaplive/ruby_heap.h"

enum {
	RUBY_3_2 = 0x0302,
	TEXT_MAX = 1 << 16, /* bytes */
	/* of a value that is no object */
	FIXNUM = 1,
	FLONUM = 2,
	FLONUM_MASK = 3,
	SYMBOL = 0xc,
	SYMBOL_SHIFT = 8,
	IS_TRUE = 0x14,
	FLOAT_AT = 16, /* of a Float that is an object */
};
#define FLONUM_ZERO 0x8000000000000002ull

/* Returns the bits of the double that a value stands for: it lacks two bits of the exponent. */
static uint64_t flonum(uint64_t value)
{
	const uint64_t bits = (2 - (value >> 63)) | (value & ~(uint64_t)FLONUM_MASK);

	return value == FLONUM_ZERO ? 0 : bits >> 3 | bits << 61;
}

static uint32_t symbol_label(struct ruby_reader *x, uint64_t id)
{
	bool fresh;
	uint64_t *known = hash_put(&x->symbols, &id, sizeof(id), &fresh);
	const char *name = fresh ? ruby_id_name(x->ruby, id) : NULL;

	if (name)
		*known = graph_label(x->graph, name, strlen(name));
	return (uint32_t)*known;
}

void ruby_number(struct ruby_reader *x, uint64_t value, uint32_t label)
{
	const uint64_t nil = x->ruby->layout.version >= RUBY_3_2 ? 4 : 8;
	uint32_t name;

	if (!graph_wanted(x->graph)->values || label == GRAPH_LABEL_NONE)
		return;
	if (value & FIXNUM) {
		graph_number(x->graph, label, 'J', (uint64_t)((int64_t)value >> 1));
	} else if ((value & FLONUM_MASK) == FLONUM) {
		graph_number(x->graph, label, 'D', flonum(value));
	} else if ((value & 0xff) == SYMBOL) {
		name = symbol_label(x, value >> SYMBOL_SHIFT);
		if (name != GRAPH_LABEL_NONE)
			graph_number(x->graph, label, 'T', name);
	} else if (value == IS_TRUE || !value) {
		graph_number(x->graph, label, 'Z', value != 0);
	} else if (value == nil) {
		graph_number(x->graph, label, 'N', 0);
	}
}

static void text_add(struct ruby_reader *x, uint64_t addr)
{
	uint64_t at, n;
	const uint8_t *p;
	uint8_t *to;

	if (!ruby_string_bytes(x->ruby, addr, &at, &n))
		return;
	if (!n) {
		graph_text(x->graph, "");
		return;
	}
	n = n < TEXT_MAX ? n : TEXT_MAX;
	p = x->budget > n / 8 ? ruby_memory(x, at, n) : NULL;
	if (!p)
		return;
	x->budget -= n / 8 + 1;
	graph_content(x->graph, p, n);
	to = graph_values(x->graph, n);
	if (to)
		memcpy(to, p, n);
}

void ruby_values(struct ruby_reader *x, uint64_t addr, const uint8_t *slot)
{
	const uint32_t type = ruby_type(ruby_slot_word(slot, 0));

	if (type == RUBY_STRING &&
	    (graph_wanted(x->graph)->values || graph_wanted(x->graph)->contents))
		text_add(x, addr);
	else if (type == RUBY_FLOAT)
		graph_number(x->graph, GRAPH_LABEL_NONE, 'D', ruby_slot_word(slot, FLOAT_AT));
}
