/* Types of blocks, from the debugging information of a program.
 *
 * In: blocks, and the program's variables and types (type_user_each()). Out: the types of blocks to
 * which typed pointers lead, and what a block's own words say of its type.
 * Always true: a type that is not known is 0. The memory and the types are untrusted: every walk
 * ends. */
#ifndef DESCRY_MEMORY_LEAKS_TYPED_BLOCKS_H
#define DESCRY_MEMORY_LEAKS_TYPED_BLOCKS_H

#include "memory/leaks/leaks_private.h"
#include "program/type/type.h"

enum field_kind {
	FIELD_POINTER, /* to an object */
	FIELD_CODE,    /* to a function */
	FIELD_FLAG,    /* 0 or 1 */
	FIELD_NUMBER,  /* no pointer */
	FIELD_OTHER,   /* a union, or bytes: anything */
};

struct layout_field {
	uint32_t at, size; /* bytes */
	uint8_t kind;      /* enum field_kind */
	type_id to;        /* of a pointer */
};

/* A struct without its levels: { int a; struct { char *b; } c[2]; } has the fields a, b, b. An
 * array of pointers has the layout of a pointer. */
struct layout {
	const char *name; /* "struct node", "shop::Order"; NULL: it has none that says anything */
	uint64_t size;
	uint32_t first, n; /* of layouts.fields, in no order */
	uint64_t tail_at;  /* of an array without bounds at its end */
	type_id tail;      /* of its elements, T_VOID: there is none */
};

struct layout_item {
	const char *name;
	type_id type;
	uint64_t size;
};

struct layouts {
	struct type_graph *g;
	struct arena *arena;
	VEC(struct layout) v; /* number 0 is none */
	VEC(struct layout_field) fields;
	VEC(struct layout_item) items; /* for guesses; by size after layouts_ready() */
	struct hash by_type;           /* type_id -> number */
	struct hash by_name;           /* of the kind, name and size of a struct -> number */
	struct hash shown;             /* the same key -> the name that is shown; 0: several */
	struct hash of_class;          /* name with its namespaces -> type_id */
	uint32_t steps;                /* members and elements of all that were looked at */
	bool cut;                      /* there are too many: the last layouts are not whole */
};

/* --- struct_layout.c --- */
void layouts_init(struct layouts *ls, struct type_graph *g, struct arena *arena);
void layouts_fini(struct layouts *ls);
void layouts_add(struct layouts *ls, const struct type_user_item *item);
void layouts_ready(struct layouts *ls);
/* Returns the number of the layout of a struct, of a pointer, or of an array's elements; 0 for what
 * leads nowhere. */
uint32_t layout_of(struct layouts *ls, type_id t);
/* Returns the number of a C++ class, by its name with its namespaces. */
uint32_t layout_of_class(struct layouts *ls, const char *name);

/* --- typed_blocks.c --- */
struct typed_variable {
	uint64_t addr;
	type_id type;
	const char *name; /* NULL: it has none */
};

struct typed_blocks {
	const struct memory_copy *c;
	const struct leaks_heap *h;
	const struct mappings *maps;
	struct layouts layouts;
	VEC(struct typed_variable) variables;
	struct hash at; /* address of a variable -> its layout */
	uint32_t *of;   /* for each chunk, its layout, and TYPED_LOOSE */
	VEC(uint32_t) queue;
	const struct memory_region *last;
	uint64_t steps;
};
/* The block is larger than the type: it may be the beginning of another one. */
static const uint32_t TYPED_LOOSE = 1u << 31;

/* Gives a type to each block to which variables lead by typed pointers, and to C++ objects.
 * class_of returns the name of an object's class, by its first word, or NULL. */
void typed_blocks_find(struct typed_blocks *t, const char *(*class_of)(void *arg, uint64_t word),
		       void *arg);
void typed_blocks_fini(struct typed_blocks *t);
/* Notes the type of a block. typed_blocks_follow() gives types to those to which it leads. */
void typed_block_set(struct typed_blocks *t, uint32_t chunk, uint32_t layout);
void typed_blocks_follow(struct typed_blocks *t);
/* Returns true when a block has the size that malloc(3) gives for this type. */
bool typed_block_fits(const struct leaks_chunk *k, const struct layout *y);
/* Returns the index of the used chunk whose block begins at addr, or LEAKS_NONE. */
uint32_t typed_block_at(const struct typed_blocks *t, uint64_t addr);
bool typed_word(struct typed_blocks *t, uint64_t addr, uint64_t *ret);
/* Returns false when a walk has taken too many steps: the rest has no types. */
bool typed_step(struct typed_blocks *t);

/* --- guessed_type.c --- */
/* Returns the layout that alone agrees with the block's words, and that they give a reason for: a
 * pointer to a block of the right type or size. 0: there is none. Types of the C library do not
 * count: it has hundreds of structs, and rarely loses one. */
uint32_t typed_block_guess(struct typed_blocks *t, uint32_t chunk);

#endif
