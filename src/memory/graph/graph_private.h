/* The inside of struct graph, shared by the files of this folder. */
#ifndef DESCRY_MEMORY_GRAPH_GRAPH_PRIVATE_H
#define DESCRY_MEMORY_GRAPH_GRAPH_PRIVATE_H

#include "base/hash.h"
#include "base/sorted.h"
#include "graph_memory.h"
#include "memory/graph/graph.h"

#define GRAPH_OBJECTS_MAX (UINT32_MAX - 16)
#define GRAPH_SIZE_MAX (1ull << 56)  /* of an object; larger ones are damage */
#define GRAPH_BYTES_MAX (1ull << 60) /* of all objects */

/* The addresses of the objects as ranks. The pages that have objects are numbered; a cell has a
 * bit for each of 32 slots, and the number of bits before it. */
enum {
	CELL_SLOTS = 32,
	PAGE_CELLS = 64,
	PAGE_BITS = 11, /* log2 of a page's slots */
};
_Static_assert(CELL_SLOTS *PAGE_CELLS == 1 << PAGE_BITS, "a page's slots");
struct graph_cell {
	uint32_t rank;
	uint32_t bits;
};
struct graph_index {
	uint32_t n;      /* objects, each address once */
	uint64_t base;   /* address of slot 0 */
	unsigned shift;  /* log2 of the bytes of a slot */
	uint64_t npages; /* of page[] */
	uint32_t *page;  /* number + 1 of the page, 0: it has no objects; NULL: hashed[] has it */
	struct {
		uint64_t page;
		uint32_t number; /* + 1 */
	} * hashed;
	uint32_t hash_mask;
	uint64_t *page_at; /* the pages, by number */
	uint32_t nused;
	struct graph_cell *cells; /* PAGE_CELLS for each number */
	uint64_t *sorted;         /* all addresses, when cells would take too much; else NULL */
};

/* A reference that is kept apart: weak, or from an object other than the last. */
struct graph_apart {
	uint64_t from, to; /* addresses, later ids */
	uint32_t label;
	enum graph_strength strength;
};

struct graph_class {
	uint64_t key, size, object; /* object: address; 0: none */
	uint32_t name;              /* in names; 0: none */
	graph_id id;                /* of the object */
	/* Of a graph that counts: objects, their bytes, and objects of `size` bytes each. */
	uint64_t n, bytes, n_of_size;
};

/* Class and size in one number: a heap has millions of objects, and thousands of kinds. */
struct graph_kind {
	uint64_t size; /* GRAPH_SIZE_OF_CLASS: that of the class, until graph_finish() */
	uint32_t class;
	graph_id class_id; /* of the finished graph: of the object that is the class */
};

/* A growing array of more than UINT32_MAX elements; g->failed is set when there is no room. */
struct graph_list {
	void *v;
	size_t n, cap;
};

/* Objects and their references by arrival, from one thread. */
struct graph_part {
	uint32_t n;
	size_t cap;
	uint64_t *addresses; /* later ids, of 4 bytes */
	uint32_t *kind;
	uint32_t *degree;         /* references of each object */
	struct graph_list to;     /* uint32_t: coded addresses (code_edge()), later ids */
	struct graph_list labels; /* uint32_t, one for each reference, when wanted */
	uint64_t first;           /* address of the first object, from which the code counts */
	unsigned code_shift;
	uint64_t low, differ; /* the least address; the bits in which addresses differ */
	uint64_t dangling;    /* references that lead to no object */
};

struct graph_raw_root {
	uint64_t address;
	const char *kind;
};

/* A field with a number, of a class. */
struct graph_field_of {
	uint32_t class, order, name; /* name: in names */
	struct graph_field f;
};
struct graph_fields {
	VEC(struct graph_field_of) v; /* later by class, in the order of arrival */
};
/* A number under a label. */
struct graph_number_of {
	uint32_t object; /* by arrival, later its id */
	uint32_t label;
	uint64_t value;
	char type;
};
/* Where the numbers of an object are in `values`. */
struct graph_values_at {
	uint32_t object; /* number by arrival, later its id */
	uint64_t at, n;
};

struct graph {
	struct graph_wanted wanted;
	struct graph_memory memory; /* of the arrays that grow with the objects */
	struct graph_totals totals;
	struct err *failed; /* the first error of making it */
	VEC(char *) remarks;

	VEC(struct graph_class) classes;
	struct hash class_ids; /* key -> number + 1 */
	uint64_t last_key;     /* the class that was asked for last */
	uint32_t last_class;
	uint32_t counted; /* of a graph that counts: the class of the object that was added last */
	VEC(char *) class_texts; /* of classes without a name */
	struct hash aliases;     /* reference -> address */
	struct intern names;
	struct intern label_names;

	/* graph_kinds.c */
	struct graph_list kinds; /* struct graph_kind */
	uint32_t *kind_hash;     /* number + 1 */
	uint32_t kind_mask;

	/* While it is made. */
	struct graph_part made;        /* what is added now; arrival counts from its first */
	VEC(struct graph_part) joined; /* what graph_join() has added */

	uint32_t nobjects;            /* of `made`, later all */
	uint32_t *kind;               /* by id */
	struct graph_list to;         /* uint32_t: ids */
	struct graph_list labels;     /* uint32_t, one for each reference, when wanted */
	VEC(struct graph_apart) more; /* strong ones from any object, while it is made */
	VEC(struct graph_apart) weak; /* later by from */
	struct graph_list raw_roots;  /* struct graph_raw_root */

	/* Of the finished graph. */
	uint64_t references_max; /* with those to classes; GRAPH_OBJECTS_MAX, but in tests */
	struct graph_index index;
	VEC(struct graph_class_of {
		graph_id id;
		uint32_t class;
	}) by_object;     /* in order of ids */
	uint32_t *offset; /* nobjects + 1: edges of id are to.v[offset[id]] to to.v[offset[id + 1]] */
	struct graph_root_of *roots;
	size_t nroots;

	/* The inverse, when it was asked for. */
	uint32_t *in_offset, *in_from;
	uint32_t *weak_by_to; /* the weak ones by their target */

	/* dominators.c */
	struct graph_reach reach;
	uint64_t *reached; /* a bit for each object */
	uint64_t *reached_weakly;
	graph_id *dominator;
	uint64_t *retained;
	uint32_t *child_offset; /* nobjects + 2; the children of GRAPH_NONE are at [nobjects] */
	graph_id *children;

	/* values.c */
	struct graph_fields fields[2]; /* of instances, static ones */
	VEC(struct graph_values_at) values_at;
	struct graph_list values;  /* bytes */
	struct graph_list numbers; /* struct graph_number_of; later by object and label */

	/* content.c */
	struct graph_duplicate *contents;
	uint64_t *content_hash;
	uint32_t ncontents, content_cap;
};

static inline bool graph_bit(const uint64_t *bits, graph_id i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static inline void graph_bit_set(uint64_t *bits, graph_id i)
{
	bits[i / 64] |= 1ull << (i % 64);
}

/* graph_index.c */
void graph_index_make(struct graph_index *x, struct graph_memory *m, const struct graph_part *parts,
		      unsigned n);
void graph_index_fini(struct graph_index *x);
graph_id graph_index_find(const struct graph_index *x, uint64_t address);
uint64_t graph_index_address(const struct graph_index *x, graph_id id);

void graph_fail(struct graph *g, struct err *e);
/* graph_make.c: reads the address at *at, and moves *at behind it. */
uint64_t graph_decode(const struct graph_part *p, size_t *at);
void graph_part_free(struct graph_part *p);

/* graph_kinds.c: the number of the kind, which it makes. */
uint32_t graph_kind(struct graph *g, uint32_t class, uint64_t size);
void graph_kinds_finish(struct graph *g);
void graph_kinds_fini(struct graph *g);
static inline const struct graph_kind *graph_kind_at(const struct graph *g, uint32_t kind)
{
	return (const struct graph_kind *)g->kinds.v + kind;
}
static inline uint32_t graph_class_at(const struct graph *g, graph_id id)
{
	return graph_kind_at(g, g->kind[id])->class;
}
static inline uint64_t graph_size_at(const struct graph *g, graph_id id)
{
	return graph_kind_at(g, g->kind[id])->size;
}

/* Adds n elements of `size` bytes. Returns NULL when there is no room. */
void *graph_list_add(struct graph *g, struct graph_list *l, size_t size, size_t n);

/* graph_values.c: puts them in the order of ids; NULL: they are. */
void graph_values_order(struct graph *g, const graph_id *ids);
void graph_values_fini(struct graph *g);

/* graph_members.c: the same. */
void graph_numbers_order(struct graph *g, const graph_id *ids);

/* graph_content.c */
void graph_content_fini(struct graph *g);

/* graph_look.c */
/* Searches the first `most` references of `from`. Returns the label of the one to `to`; when it is
 * not among them, none, or GRAPH_LABEL_INDEX when `from` has elements. */
uint32_t graph_label_between(const struct graph *g, graph_id from, graph_id to, uint32_t most);

/* Returns how many threads a walk over all objects is worth. */
unsigned graph_threads(const struct graph *g);

/* graph_dominators.c */
void graph_dominators(struct graph *g);
/* Calls for the k-th strong reference of an object; the last is the implied one to its class.
 * Returns false behind the last. */
static inline bool graph_edge_at(const struct graph *g, graph_id id, uint32_t k, graph_id *ret)
{
	uint32_t at = g->offset[id] + k, end = g->offset[id + 1];

	if (at < end) {
		*ret = ((const uint32_t *)g->to.v)[at];
		return true;
	}
	*ret = graph_kind_at(g, g->kind[id])->class_id;
	return at == end && *ret != GRAPH_NONE;
}

#endif
