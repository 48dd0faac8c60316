/* The names of IDs. An ID has a number. A table has the name and the Symbol of each number: 512 of
 * them in an Array, and these Arrays in another Array. */
#include <elf.h>

#include "program/runtime/ruby/ruby.h"

enum {
	UNIT = 512,
	NUMBER_SHIFT = 4,  /* below it is the kind of name: local, constant... */
	NUMBERS_MIN = 100, /* limit of operators and keywords in all versions */
	NUMBERS_MAX = 1 << 28,
	STATIC_SYMBOL = 0x0c, /* low byte of a Symbol that is no object */
	STATIC_SHIFT = 8,
	SYMBOL_ID = 32, /* bit of a Symbol that is an object */
	/* limit of bytes of the interpreter's variables that are searched, in all its segments */
	VARIABLES_MAX = 1 << 24,
	CHUNK = 1 << 16,
	SEARCHES_MAX = 4, /* the table may be changing, or not be there yet */
	SEARCH_READS = 500000,
	SEARCH_MS = 2000, /* of a search: each page may come late */
};

/* rb_symbols_t: the last number, a hash table, the Array. */
struct symbols {
	uint64_t last, table, ids;
};

static bool entry(const struct ruby *r, uint64_t ids, uint64_t number, uint64_t *ret_name,
		  uint64_t *ret_symbol)
{
	uint32_t at = (uint32_t)(number % UNIT) * 2;
	uint64_t unit;

	return ruby_array_item(r, ids, (uint32_t)(number / UNIT), &unit) &&
	       ruby_array_item(r, unit, at, ret_name) &&
	       ruby_array_item(r, unit, at + 1, ret_symbol);
}

static bool is_symbols(const struct ruby *r, const struct symbols *s)
{
	uint64_t name, symbol;
	uint32_t n;

	if (s->last < NUMBERS_MIN || s->last > NUMBERS_MAX || !s->table || s->table & 7)
		return false;
	n = ruby_array_length(r, s->ids);
	return n > s->last / UNIT && n <= s->last / UNIT + 2 &&
	       entry(r, s->ids, s->last, &name, &symbol) && ruby_is(r, name, RUBY_STRING);
}

static bool take_symbols(struct ruby *r, uint64_t addr, const uint64_t *w)
{
	const struct symbols s = { w[0], w[1], w[2] };

	if (!is_symbols(r, &s))
		return false;
	r->symbols = addr;
	return true;
}

static bool each_word(struct ruby *r, uint64_t start, uint64_t size,
		      bool (*fn)(struct ruby *r, uint64_t addr, const uint64_t *w))
{
	cleanup_free uint64_t *w = xmalloc(CHUNK);

	for (uint64_t at = 0; at < size; at += CHUNK - RUBY_VARIABLE_WORDS * 8) {
		uint32_t n = size - at < CHUNK ? (uint32_t)(size - at) : CHUNK;

		n = space_read_some(r->runtime.space, start + at, w, n) / 8;
		for (uint32_t i = 0; i + RUBY_VARIABLE_WORDS <= n; i++)
			if (fn(r, start + at + i * 8, w + i))
				return true;
	}
	return false;
}

bool ruby_each_variable(struct ruby *r,
			bool (*fn)(struct ruby *r, uint64_t addr, const uint64_t *w))
{
	struct object_segment g;
	uint64_t left = VARIABLES_MAX;

	for (uint32_t i = 0; object_segment(r->object, i, &g); i++) {
		uint64_t start = (g.addr + 7) & ~7ull, size = g.memsz & ~7ull;

		if (g.type != PT_LOAD || !(g.flags & PF_W) || size > left)
			continue;
		left -= size;
		if (each_word(r, r->bias + start, size, fn))
			return true;
	}
	return false;
}

void ruby_find_symbols(struct ruby *r)
{
	struct space_limit outer;

	if (r->symbols || r->symbol_searches == SEARCHES_MAX)
		return;
	r->symbol_searches++;
	outer = space_limit_within(r->runtime.space, SEARCH_READS, SEARCH_MS);
	ruby_each_variable(r, take_symbols);
	(void)space_limit_end(r->runtime.space, &outer);
}

/* Returns the entry of a number, when its Symbol has this ID. */
static const char *name_of(struct ruby *r, uint64_t ids, uint64_t number, uint64_t id)
{
	uint64_t name, symbol, own;

	if (!entry(r, ids, number, &name, &symbol))
		return NULL;
	if ((symbol & 0xff) == STATIC_SYMBOL)
		own = symbol >> STATIC_SHIFT;
	else if (symbol & 7 || !ruby_word(r, symbol + SYMBOL_ID, &own))
		return NULL;
	return own == id ? ruby_text(r, name) : NULL;
}

const char *ruby_id_name(struct ruby *r, uint64_t id)
{
	const char *name;
	uint64_t ids;

	ruby_find_symbols(r);
	if (!r->symbols || id >> NUMBER_SHIFT > NUMBERS_MAX ||
	    !ruby_word(r, r->symbols + offsetof(struct symbols, ids), &ids))
		return NULL;
	name = name_of(r, ids, id >> NUMBER_SHIFT, id);
	return name ?: name_of(r, ids, id, id); /* operators are their own numbers */
}
