/* Memory that a program has allocated and can no longer reach (`descry leaks`).
 *
 * In: an address space, of a process that is stopped or of a core file. Out: the blocks of
 * malloc(3) to which no word of the program's data, stacks, registers and thread-local storage
 * leads, in groups.
 * Always true: nothing changes the process. A block counts as reachable when a word that may be a
 * pointer holds an address in it, so that a leak may be missed, and a block in use is reported only
 * when the program hides its address. The memory is untrusted: every walk ends.
 */
#ifndef DESCRY_MEMORY_LEAKS_LEAKS_H
#define DESCRY_MEMORY_LEAKS_LEAKS_H

#include "base/out.h"
#include "memory/copy/memory_copy.h"
#include "program/space/space.h"
#include "program/symbol/symbol.h"

struct leaks_stack {
	const char **frames; /* the innermost first */
	uint32_t n;
};

/* What a type is known by. */
enum leaks_by {
	LEAKS_BY_NOTHING,
	LEAKS_BY_TABLE,    /* of virtual functions: it is certain */
	LEAKS_BY_STACK,    /* blocks in use that this stack has allocated are of this type */
	LEAKS_BY_POINTERS, /* no other type of this size agrees with its words */
};

/* Leaked blocks of one kind. */
struct leaks_group {
	const char *type; /* NULL: not known */
	enum leaks_by by;
	uint64_t size;             /* bytes that each of its blocks can hold */
	uint64_t n, bytes;         /* blocks to which nothing leads, or a circle of leaked blocks */
	uint64_t held, held_bytes; /* further blocks to which only these lead */
	uint64_t first;            /* address of the one that holds most */
	uint32_t stack;            /* of leaks.stacks, 0: not known */
};

struct leaks_block {
	uint64_t addr, size;
	uint64_t held, held_bytes;
	const char *type; /* NULL: not known */
	enum leaks_by by;
	uint32_t group;
	uint32_t chunk; /* of leaks.heap */
	uint32_t stack; /* that has allocated it: of leaks.stacks, 0: not known */
};

struct leaks_heap;
struct leaks {
	struct arena arena;             /* holds the texts */
	VEC(struct leaks_group) groups; /* the most bytes first */
	VEC(struct leaks_block) blocks; /* the roots of the leaked blocks, the most bytes first */
	VEC(struct leaks_stack) stacks; /* of a recording; number 0 is none */
	struct leaks_heap *heap;        /* blocks.h; NULL: leaks_find() has not made this */
	uint32_t *chunk_stacks;         /* for each of its chunks, of stacks; NULL: no recording */
	VEC(const char *) remarks;      /* on heaps that are damaged, and on types */
	uint64_t used, used_bytes;      /* blocks in use, leaked ones too */
	uint64_t unused, unused_bytes;  /* free blocks */
	uint64_t leaked, leaked_bytes;  /* all leaked blocks */
	uint64_t scanned;               /* bytes in which pointers were searched */
	uint64_t search_ns;             /* processor time of this search */
	uint32_t arenas, maps;          /* glibc's arenas; blocks that are mappings of their own */
	bool torn; /* the heap is not consistent: it was being changed, or it is damaged */
};

/* Finds the leaks in a copy. ENOENT: there is no heap of an allocator that is known in it. */
struct err *leaks_find(const struct memory_copy *c, struct leaks **ret);
/* types.c: names the types of leaked blocks and makes the groups, of equal type, size and stack.
 * The space supplies what is not in the copy: the tables of C++ types, and files with DWARF. */
void leaks_group(struct leaks *l, const struct memory_copy *c, struct space *s,
		 struct symbols *symbols);
void leaks_free(struct leaks *l);

/* A global variable, by DWARF. */
struct leaks_variable {
	uint64_t addr, size;
	const char *name;
};
/* What the tables of C++ types and DWARF say of all blocks of a heap. The texts are in l->arena. */
struct leaks_types {
	struct leaks_block_type {
		const char *name;             /* NULL: not known */
		bool several;                 /* objects of this type */
	} * of;                               /* for each of the heap's chunks */
	VEC(struct leaks_variable) variables; /* by address */
};
/* types.c: l->heap was found in the copy. The space supplies what is not in the copy. */
void leaks_types_find(struct leaks *l, const struct memory_copy *c, struct space *s,
		      struct symbols *symbols, struct leaks_types *ret);
void leaks_types_fini(struct leaks_types *t);

struct leaks_shown {
	const char *name;  /* of the process or core */
	uint64_t pause_ns; /* as long was the process stopped; 0: it was not */
	const char *whole; /* NULL: no copy by clone(2) was asked for; "": made; else why not */
	uint32_t most;     /* groups that are listed */
	bool blocks;       /* each block of these */
};
/* leaks_print.c */
void leaks_print(const struct leaks *l, const struct memory_copy *c, const struct leaks_shown *how,
		 struct out *o);
void leaks_json(const struct leaks *l, const struct leaks_shown *how, struct out *o);

#endif
