/* The value of an expression of D for an object of a graph (`descry heap --find`, `--by`).
 *
 * In: a syntax tree without binding, an object. Out: nothing, a number, a text or an object.
 * Always true: an evaluation never fails in the middle of a heap for what one object has: what is
 * not there is nothing. What no object can have (a wrong operator) is the error of the query.
 */
#ifndef DESCRY_MEMORY_HEAP_HEAP_QUERY_H
#define DESCRY_MEMORY_HEAP_HEAP_QUERY_H

#include "base/out.h"
#include "compile/parse/ast.h"
#include "memory/graph/graph.h"

enum heap_kind {
	HEAP_NOTHING, /* NULL, and a member that the object does not have */
	HEAP_INTEGER,
	HEAP_REAL,
	HEAP_TEXT,
	HEAP_OBJECT, /* also a text or a number that is an object */
};

struct heap_value {
	enum heap_kind kind;
	int64_t integer;
	double real;
	const char *text;
	graph_id id;
};

/* A name that members are asked for by. */
struct heap_member {
	const char *name;
	uint32_t label, variable; /* variable: @name, as Ruby has it */
	bool seen;                /* an object has such a member */
	/* By class: where the instances have their number. */
	struct heap_member_at {
		uint32_t at;
		char type; /* 0: nowhere, '?': not looked for yet */
	} * by_class;
};

struct heap_query {
	struct graph *g;
	graph_id id; /* the object at hand */
	struct out text[2];
	VEC(struct heap_member) members;
	uint32_t label_dict, label_elements;
	uint64_t budget; /* references and words of text that may still be looked at */
	struct err *error;
};

void heap_query_init(struct heap_query *q, struct graph *g);
void heap_query_fini(struct heap_query *q);
struct heap_value heap_eval(struct heap_query *q, const struct node *n);
bool heap_is_true(struct heap_query *q, struct heap_value v);
/* Returns the number or text that a value is when it is an object that is one; else the value. */
struct heap_value heap_plain(struct heap_query *q, struct heap_value v);
/* Returns the text of a value, NULL: it is none. Valid until the next call with this place. */
const char *heap_text_of(struct heap_query *q, struct heap_value v, unsigned place);
/* Makes an error of the query. */
struct heap_value heap_bad(struct heap_query *q, const char *why, const char *name);

/* heap_members.c: what an object has under a name or an index. */
struct heap_value heap_member_of(struct heap_query *q, graph_id id, const char *name);
struct heap_value heap_element_of(struct heap_query *q, graph_id id, uint64_t index);

static inline struct heap_value heap_integer(int64_t n)
{
	return (struct heap_value){ .kind = HEAP_INTEGER, .integer = n };
}
/* Returns the value of a number of the graph. */
struct heap_value heap_number(struct heap_query *q, char type, uint64_t value);

#endif
