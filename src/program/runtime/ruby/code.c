/* Instruction sequences ("iseq"): a piece of code's name, file and lines. */
#include <string.h>

#include "program/runtime/ruby/ruby.h"
#include "wire/language.h"

enum {
	/* in the body */
	BODY_KIND = 0,
	BODY_SIZE = 4,
	BODY_FILE = 64,
	BODY_BASE = 72,
	BODY_LABEL = 80,
	BODY_FIRST_LINE = 88,
	BODY_BYTES = 192, /* limit of words read */
	/* in the part about lines */
	LINES = 0,
	LINES_POSITIONS = 8,
	LINES_COUNT = 16,
	LINES_STARTS = 24,
	LINES_MAX = 1 << 18, /* entries of a table */
	SIZE_MAX_WORDS = 1 << 22,
};

static uint64_t load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)load(p);
}

/* Reads the path: a String, or an Array of the path and the real path. */
static const char *path(struct ruby *r, uint64_t value)
{
	uint64_t first;

	if (ruby_array_item(r, value, 0, &first))
		value = first;
	return ruby_text(r, value);
}

/* Reads n bytes of the process into the arena. Returns NULL when they cannot be read. */
static const void *copy(struct ruby *r, uint64_t addr, size_t n)
{
	void *p;

	if (!addr || !ruby_afford(r, n))
		return NULL;
	p = arena_alloc(&r->names, n + 1);
	return space_read_some(r->runtime.space, addr, p, (uint32_t)n) == n ? p : NULL;
}

/* Returns the bytes of the bit vector for code of so many words (lines.c). */
static uint32_t starts_size(uint32_t size)
{
	return size < 54 ? (size + 8) / 9 * 8 : 48 + (size + 457) / 512 * 80;
}

static void read_lines(struct ruby *r, struct ruby_code *c, const uint8_t *lines)
{
	uint32_t n = load32(lines + LINES_COUNT);

	if (!n || n > LINES_MAX || c->size > SIZE_MAX_WORDS)
		return;
	c->lines = copy(r, load(lines + LINES), (size_t)n * r->layout.line_size);
	if (!c->lines || n == 1) {
		c->nlines = c->lines ? 1 : 0;
		return;
	}
	c->nlines = n;
	c->nstarts = starts_size(c->size);
	c->starts = copy(r, load(lines + LINES_STARTS), c->nstarts);
	if (!c->starts)
		c->positions = copy(r, load(lines + LINES_POSITIONS), (size_t)n * 4);
}

bool ruby_code_is(const struct ruby *r, uint64_t address, uint32_t kind)
{
	uint64_t at, word;

	return ruby_imemo(r, address) == RUBY_IMEMO_ISEQ &&
	       ruby_word(r, address + WIRE_RUBY_ISEQ_BODY, &at) &&
	       ruby_word(r, at + BODY_KIND, &word) && (uint32_t)word == kind;
}

const struct ruby_code *ruby_code_read(struct ruby *r, uint64_t address)
{
	uint8_t body[BODY_BYTES];
	struct ruby_code *c;
	uint64_t at;

	if (ruby_imemo(r, address) != RUBY_IMEMO_ISEQ ||
	    !ruby_word(r, address + WIRE_RUBY_ISEQ_BODY, &at) || !ruby_afford(r, sizeof(*c)) ||
	    space_read_some(r->runtime.space, at, body, sizeof(body)) != sizeof(body))
		return NULL;
	c = arena_new(&r->names, struct ruby_code);
	c->address = address;
	c->kind = load32(body + BODY_KIND);
	c->size = load32(body + BODY_SIZE);
	c->instructions = load(body + WIRE_RUBY_BODY_INSTRUCTIONS);
	c->local = load(body + r->layout.body_local);
	c->file = path(r, load(body + BODY_FILE));
	c->base = ruby_text(r, load(body + BODY_BASE));
	c->label = ruby_text(r, load(body + BODY_LABEL));
	c->first_line = load32(body + BODY_FIRST_LINE);
	if (r->layout.line_fixnum)
		c->first_line >>= 1;
	read_lines(r, c, body + r->layout.body_lines);
	return c;
}

const struct ruby_code *ruby_code(struct ruby *r, uint64_t address)
{
	const uint64_t *known = hash_get(&r->codes, &address, sizeof(address));
	const struct ruby_code *c;

	if (known)
		return (const struct ruby_code *)(uintptr_t)*known;
	c = ruby_code_read(r, address);
	if (c)
		*hash_put(&r->codes, &address, sizeof(address), NULL) = (uintptr_t)c;
	return c;
}

/* How many entries begin at an instruction or before it, by their positions. */
static uint32_t rank_by_positions(const struct ruby_code *c, uint32_t at)
{
	uint32_t n = 0, end = c->positions ? c->nlines : 0;

	while (n < end) {
		const uint32_t middle = n + (end - n) / 2;

		if (c->positions[middle] <= at)
			n = middle + 1;
		else
			end = middle;
	}
	return n;
}

uint32_t ruby_line(const struct ruby *r, const struct ruby_code *c, uint64_t pc)
{
	uint64_t at = (pc - c->instructions) / 8;
	uint32_t rank = 1;

	if (pc < c->instructions || at > c->size)
		return 0;
	at -= at > 0;
	if (c->nlines > 1)
		rank = c->starts ? ruby_lines_rank(c->starts, c->nstarts, (uint32_t)at)
				 : rank_by_positions(c, (uint32_t)at);
	if (!rank || rank > c->nlines)
		return 0;
	return load32(c->lines + (size_t)(rank - 1) * r->layout.line_size);
}
