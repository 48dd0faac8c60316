/* .gopclntab: the functions that Go's compiler has made, which strip(1) leaves in the file, for the
 * runtime unwinds by them.
 *
 * Formats of Go 1.2, 1.16, 1.18 and 1.20, which later ones kept but for one word (Go's
 * runtime/symtab.go: pcHeader, _func, step).
 * In: an object, any bytes. Out: functions in order of address that do not overlap; each begins and
 * ends in loaded text.
 */
#ifndef DESCRY_PROGRAM_OBJECT_GO_H
#define DESCRY_PROGRAM_OBJECT_GO_H

#include "base/mem.h"
#include "program/object/object.h"

struct go_function {
	const char *name;    /* "main.(*T).String"; in the table's bytes */
	uint64_t start, end; /* link-time addresses, without the padding behind it */
	bool is_top;         /* nobody has called it: goexit, mstart */
	bool moves_stack; /* writes another stack's address into rsp: depths do not tell where its frame is */
	bool is_assembly; /* known from Go 1.18 on */
	size_t depths;    /* offset of its depths in the table; 0 none */
};

struct go_table {
	uint8_t *data;       /* of the section */
	const uint8_t *head; /* where the table begins in it */
	size_t n;            /* from there on */
	bool has_flags;      /* from Go 1.17 on; before, moves_stack is guessed by name */
	VEC(struct go_function) functions;
};

/* False: the file has no such table that can be read. Else go_table_fini() frees it. */
bool go_table_read(const struct object *o, struct go_table *ret);
void go_table_fini(struct go_table *t);

/* How far rsp is below its place at the entry (where it points to the return address), from one
 * instruction on. */
struct go_depth {
	uint64_t addr, end;
	int64_t bytes;
	size_t pos; /* go_depth_next()'s */
};
/* The next one of f, beginning with *d all 0. False: there is none, or what is there is wrong. */
bool go_depth_next(const struct go_table *t, const struct go_function *f, struct go_depth *d);

#endif
