/* The numbers and texts that V8's objects are. */
#include "memory/heaplive/v8_heap.h"

enum {
	HEAP_NUMBER = 130,
	ODDBALL = 131, /* undefined, null, true, false */
	NUMBER_AT = 8,
	ODDBALL_NAME = 16,
	TEXT_MAX = 1 << 16, /* characters */
	STRING_FIRST = 128, /* the first type that is no string */
};

static void string_add(struct v8_reader *x, uint64_t addr)
{
	struct v8_string s;
	uint64_t n, left;
	const uint8_t *p;

	/* a tree of strings has its parts as references */
	if (!v8_string_open(x->v8, addr + V8_TAG, &s))
		return;
	n = s.length < TEXT_MAX ? s.length : TEXT_MAX;
	p = v8_memory(x, s.address, &left);
	if (!p || left < n << s.wide || x->budget <= n)
		return;
	/* many slices can be of one string */
	x->budget -= n / 4 + 1;
	graph_characters(x->graph, p, n, s.wide ? 2 : 1);
}

static void oddball_add(struct v8_reader *x, const uint8_t *p)
{
	const char *name = v8_text(x->v8, v8_at(p, ODDBALL_NAME));

	if (!name)
		return;
	if (!strcmp(name, "true") || !strcmp(name, "false"))
		graph_number(x->graph, GRAPH_LABEL_NONE, 'Z', *name == 't');
	else if (!strcmp(name, "null") || !strcmp(name, "undefined"))
		graph_number(x->graph, GRAPH_LABEL_NONE, 'N', 0);
}

void v8_values(struct v8_reader *x, const struct v8_map *m, uint64_t addr, const uint8_t *p,
	       uint64_t size)
{
	if (!graph_wanted(x->graph)->values)
		return;
	if (m->type < STRING_FIRST)
		string_add(x, addr);
	else if (m->type == HEAP_NUMBER && size >= NUMBER_AT + 8)
		graph_number(x->graph, GRAPH_LABEL_NONE, 'D', v8_at(p, NUMBER_AT));
	else if (m->type == ODDBALL && size >= ODDBALL_NAME + 8)
		oddball_add(x, p);
}
