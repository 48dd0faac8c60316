/* The internals of the type graph. Only the files of this folder include this header. */
#ifndef DESCRY_PROGRAM_TYPE_TYPE_PRIVATE_H
#define DESCRY_PROGRAM_TYPE_TYPE_PRIVATE_H

#include "base/hash.h"
#include "base/nearest.h"
#include "base/mem.h"
#include "btf.h"
#include "type.h"

enum {
	CHAIN_LIMIT =
		64,      /* limit of typedefs, qualifiers, dimensions followed; the kernel has 32 */
	NEST_LIMIT = 64, /* structs within structs */
	WORK_LIMIT = 100000, /* steps of one recursive query; hostile BTF can branch into itself */
	CHUNK = 512,         /* nodes per block, so that their addresses stay */
};

struct tnode {
	uint8_t kind;  /* enum type_kind */
	uint8_t flags; /* enum type_int_flag */
	bool complete; /* struct, union, enum: all members are known */
	bool varargs;
	bool is_union;      /* TYPE_FORWARD, and struct/union alike */
	bool ref_pending;   /* ref is a BTF id that is not a node yet */
	bool parts_pending; /* members, enumerators or params are still in BTF */
	bool busy;          /* its alignment is being computed */
	bool user;          /* from DWARF: file is an index into user files, die the offset */
	uint8_t skip;       /* leading parameters of the BTF prototype that are left out */
	uint16_t file;      /* index into graph->files, for *_pending */
	uint32_t btf_id;
	uint64_t die;
	type_id ref;
	uint32_t nelems;
	uint32_t align; /* 0: not computed */
	uint32_t nparts, cap;
	uint64_t size; /* bytes */
	uint64_t bits; /* struct under construction: first free bit */
	const char *name;
	union {
		struct type_member *members;
		struct type_enumerator *enumerators;
		struct type_param *params;
	};
};

/* A BTF file and the nodes already made from it. */
struct kernel_file {
	struct btf_file btf;
	char *module; /* "" for vmlinux */
	char *path;
	type_id *node; /* by BTF id - btf.first; 0: no node (void is never stored) */
	bool tried;    /* opening has been tried */
	bool open;
};

struct constant {
	type_id type;
	int64_t value;
};

struct type_graph {
	struct arena arena;
	VEC(struct tnode *) chunks;
	uint32_t n;
	uint32_t strsize;
	/* key: "S", "U", "E", "T" (tag or typedef) or "C" (constant) and the name. Value: node id;
	 * of "C": index into constants */
	struct hash names;
	VEC(struct constant) constants;
	struct hash derived; /* (kind, ref, nelems) -> id */
	uint32_t nest;       /* depth of the running type_align() */

	char *kernel_path; /* NULL: no kernel */
	char *kernel_err;
	bool kernel_tried;
	bool modules_listed;
	VEC(struct kernel_file *) files; /* [0] is vmlinux */
	struct user_types *user;         /* NULL: no process */
	struct hash tracepoints;         /* (file, typedef id) -> func without __data */
};

static inline struct tnode *tnode(const struct type_graph *g, type_id t)
{
	return t < g->n ? &g->chunks.v[t / CHUNK][t % CHUNK] : &g->chunks.v[0][T_VOID];
}

type_id tnode_new(struct type_graph *g, enum type_kind kind, const char *name);
char graph_space(enum type_kind kind);

/* type_layout.c: returns the alignment of a struct or union whose members are known. */
uint32_t layout_align(struct type_graph *g, type_id t);

/* kernel_types.c: types from BTF, loaded when first needed. */
void kernel_fini(struct type_graph *g);
void kernel_load_ref(struct type_graph *g, struct tnode *n);
void kernel_load_parts(struct type_graph *g, struct tnode *n);
bool kernel_lookup(struct type_graph *g, const char *module, enum type_kind kind, const char *name,
		   type_id *ret);
bool kernel_enumerator(struct type_graph *g, const char *name, int64_t *ret_value,
		       type_id *ret_enum);

/* user_types.c: types from DWARF, loaded when first needed. */
void user_fini(struct type_graph *g);
void user_load_ref(struct type_graph *g, struct tnode *n);
void user_load_parts(struct type_graph *g, struct tnode *n);
bool user_enumerator(struct type_graph *g, const char *name, int64_t *ret_value, type_id *ret_enum);
void user_nearest(struct type_graph *g, enum type_kind kind, struct nearest *n);
bool user_lookup(struct type_graph *g, const char *module, enum type_kind kind, const char *name,
		 type_id *ret);

/* type_name.c: finds the builtin of "unsigned long int" and the like. Returns false when the words
 * are no base type. */
bool name_base_type(const char *text, type_id *ret);

#endif
