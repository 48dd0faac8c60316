/* A table of cache lines: open addressing with linear probing, as in live_blocks.c. */
#include "memory/alloc/shared_lines.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"

enum {
	LINES_FIRST = 1024,
	LINE_BITS = 6,
	LINES_GROWN_MAX = 1 << 30, /* slots of a table that can still be enlarged */
};

struct shared_line {
	uint64_t line;   /* its number + 1; 0: the slot is empty */
	uint32_t thread; /* of its blocks; UINT32_MAX: of several, since it was last empty */
	uint32_t blocks;
};

static struct shared_line *line_slot(const struct shared_lines *l, uint64_t line)
{
	uint32_t i = (uint32_t)hash_word(line) & (l->cap - 1);

	while (l->slots[i].line && l->slots[i].line != line)
		i = (i + 1) & (l->cap - 1);
	return &l->slots[i];
}

static bool is_full(const struct shared_lines *l)
{
	return (uint64_t)(l->n + 2) * 4 >= (uint64_t)l->cap * 3;
}

uint64_t shared_lines_growth(const struct shared_lines *l)
{
	if (!is_full(l))
		return 0;
	return l->cap > LINES_GROWN_MAX ? 1ull << 62 : 3 * (uint64_t)l->cap * sizeof(*l->slots);
}

static void enlarge(struct shared_lines *l)
{
	struct shared_lines old = *l;

	assert(old.cap <= LINES_GROWN_MAX);
	l->cap = old.cap ? old.cap * 2 : LINES_FIRST;
	l->slots = xcalloc_table(l->cap, sizeof(*l->slots));
	for (uint32_t i = 0; i < old.cap; i++)
		if (old.slots[i].line)
			*line_slot(l, old.slots[i].line) = old.slots[i];
	free(old.slots);
}

void shared_lines_fini(struct shared_lines *l)
{
	free(l->slots);
	*l = (struct shared_lines){ 0 };
}

static bool add_line(struct shared_lines *l, uint64_t line, uint32_t thread)
{
	struct shared_line *s = line_slot(l, line);
	bool shared = s->line && s->thread != thread;

	if (!s->line) {
		*s = (struct shared_line){ line, thread, 0 };
		l->n++;
	}
	if (shared)
		s->thread = UINT32_MAX;
	s->blocks++;
	return shared;
}

static void remove_line(struct shared_lines *l, uint64_t line)
{
	struct shared_line *s = line_slot(l, line);
	uint32_t hole, i;

	if (!s->line || --s->blocks)
		return;
	l->n--;
	hole = i = (uint32_t)(s - l->slots);
	for (;;) {
		uint32_t home;

		i = (i + 1) & (l->cap - 1);
		if (!l->slots[i].line)
			break;
		home = (uint32_t)hash_word(l->slots[i].line) & (l->cap - 1);
		if (((i - home) & (l->cap - 1)) >= ((i - hole) & (l->cap - 1))) {
			l->slots[hole] = l->slots[i];
			hole = i;
		}
	}
	l->slots[hole].line = 0;
}

static uint64_t last_line(uint64_t addr, uint64_t size)
{
	return ((addr + (size ? size - 1 : 0)) >> LINE_BITS) + 1;
}

bool shared_lines_add(struct shared_lines *l, uint64_t addr, uint64_t size, uint32_t thread)
{
	uint64_t first = (addr >> LINE_BITS) + 1, last = last_line(addr, size);
	bool shared;

	if (is_full(l))
		enlarge(l);
	shared = add_line(l, first, thread);
	if (last != first)
		shared |= add_line(l, last, thread);
	return shared;
}

void shared_lines_remove(struct shared_lines *l, uint64_t addr, uint64_t size)
{
	uint64_t first = (addr >> LINE_BITS) + 1, last = last_line(addr, size);

	if (!l->cap)
		return;
	remove_line(l, first);
	if (last != first)
		remove_line(l, last);
}
