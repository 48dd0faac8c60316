/* The types of a process: what the files of them share. */
#ifndef DESCRY_PROGRAM_TYPE_USER_PRIVATE_H
#define DESCRY_PROGRAM_TYPE_USER_PRIVATE_H

#include "program/object/dwarf.h"
#include "program/space/space.h"
#include "type_private.h"

/* A type's name in one file. */
struct named {
	uint32_t file, next; /* next: index + 1 of the same name in another file */
	uint64_t die;
};

/* A file whose functions were queried. Looked up by path, because it may not be mapped yet. */
struct user_file {
	char *path;
	Dwfl *dwfl;
	Dwarf *dwarf; /* NULL: it has none */
	struct dwarf_copies copies;
	Dwfl_Module *mod;
	Dwarf_Addr bias;   /* of the symbols' addresses in mod */
	bool all;          /* every unit has been indexed */
	struct hash units; /* offset of a unit's DIE, if the unit is indexed */
	struct hash funcs; /* link-time address -> offset of the DIE + 1 */
};

/* A mapping of a file's text. */
struct user_text {
	Dwfl_Module *mod;
	uint64_t start, offset; /* its address, and where it is in the file */
};

struct user_types {
	pid_t pid;
	struct space *space; /* NULL: the files are those of pid */
	VEC(struct user_file *) files;
	Dwfl *dwfl;
	struct dwarf_copies copies;
	VEC(struct user_text) texts;
	VEC(Dwarf *) dwarfs; /* by tnode.file */
	VEC(char *) modules; /* by tnode.file: the name before a backquote, "" for parts */
	struct hash dies;    /* struct die_key -> type_id + 1 */
	struct hash names;   /* space, name -> struct named + 1, first of a list */
	VEC(struct named) named;
	uint32_t nest; /* depth of user_node() */
	bool indexed;
	size_t budget; /* bytes of names, members, nodes that may still be kept */
	bool is_cut;   /* something was left out because of it */
};

enum {
	NAMESPACES = 16,
	ENTRY_BYTES = 64, /* of a hash table, beside the key */
};

/* A file's author chooses how many names and members there are, and a few bytes of the file suffice
 * for each. Returns false when no more may be kept. */
bool user_afford(struct user_types *u, size_t n);
/* Returns the text as long as the graph lives. name: NULL for none. */
const char *user_keep_name(struct type_graph *g, const char *name);
/* Finds the files of the process, and the names of their types. */
void user_index(struct user_types *u);
/* Returns the node of a DIE of a type. */
type_id user_node(struct type_graph *g, Dwarf_Die *die);
/* Returns the type of DW_AT_type, or T_VOID when there is none. */
type_id user_type_of(struct type_graph *g, Dwarf_Die *die);
/* user_functions.c */
void user_file_free(struct user_file *f);

#endif
