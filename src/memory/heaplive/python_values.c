/* The numbers and texts that Python's objects are. */
#include "memory/heaplive/python_heap.h"

enum {
	SIZE_AT = 16,
	DIGITS_AT = 24, /* of an int: 30 bits in each word of 32 */
	DIGIT_BITS = 30,
	FLOAT_AT = 16,
	/* from 3.12 on */
	SIGN_MASK = 3,
	SIGN_ZERO = 1,
	SIGN_MINUS = 2,
	COUNT_SHIFT = 3,
	TEXT_MAX = 1 << 16, /* characters */
	STR_IS_COMPACT = 0x20,
	STR_IS_ASCII = 0x40,
};

/* Ints beyond 60 bits have no number. */
static void int_add(struct python_reader *x, const uint8_t *p)
{
	const uint64_t head = python_at(p, SIZE_AT);
	const bool tagged = x->python->layout.version >= PYTHON_3_12;
	uint64_t n = tagged ? head >> COUNT_SHIFT : (int64_t)head < 0 ? -head : head, value = 0;

	if (tagged && (head & SIGN_MASK) == SIGN_ZERO)
		n = 0;
	if (n > 2)
		return;
	for (uint64_t i = n; i-- > 0;) {
		uint32_t digit;

		memcpy(&digit, p + DIGITS_AT + i * 4, sizeof(digit));
		value = value << DIGIT_BITS | (digit & ((1u << DIGIT_BITS) - 1));
	}
	if (tagged ? (head & SIGN_MASK) == SIGN_MINUS : (int64_t)head < 0)
		value = 0 - value;
	graph_number(x->graph, GRAPH_LABEL_NONE, 'J', value);
}

static void str_add(struct python_reader *x, uint64_t addr)
{
	const struct python_layout *l = &x->python->layout;
	const uint8_t *p = python_memory(x, addr, l->text_other + 8);
	uint64_t n, state, at;
	uint32_t width;

	if (!p)
		return;
	n = python_at(p, l->text_length);
	n = n < TEXT_MAX ? n : TEXT_MAX;
	state = python_at(p, l->text_state);
	width = state >> 2 & 7;
	if (width != 1 && width != 2 && width != 4)
		return;
	at = state & STR_IS_COMPACT ? addr + (state & STR_IS_ASCII ? l->text_ascii : l->text_other)
				    : python_at(p, l->text_other);
	p = x->budget > n * width / 8 ? python_memory(x, at, n * width) : NULL;
	if (!p)
		return;
	x->budget -= n * width / 8 + 1;
	graph_content(x->graph, p, n * width);
	graph_characters(x->graph, p, n, width);
}

void python_values(struct python_reader *x, uint64_t addr, const struct python_type *t)
{
	const uint8_t *p;

	if (t->kind == PYTHON_STR) {
		if (graph_wanted(x->graph)->values || graph_wanted(x->graph)->contents)
			str_add(x, addr);
	} else if (!graph_wanted(x->graph)->values) {
		return;
	} else if (t->flags & PYTHON_FLAG_LONG) {
		p = python_memory(x, addr, DIGITS_AT + 8);
		if (p)
			int_add(x, p);
	} else if (t->is_float) {
		p = python_memory(x, addr, FLOAT_AT + 8);
		if (p)
			graph_number(x->graph, GRAPH_LABEL_NONE, 'D', python_at(p, FLOAT_AT));
	} else if (t->is_none) {
		graph_number(x->graph, GRAPH_LABEL_NONE, 'N', 0);
	}
}
