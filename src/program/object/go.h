/* .gopclntab: the table of functions by Go's compiler. strip(1) leaves it in the file, because the
 * runtime unwinds by it.
 *
 * Formats of Go 1.2, 1.16, 1.18 and 1.20, which later versions kept except for one word (Go's
 * runtime/symtab.go: pcHeader, _func, step).
 * In: an object, any bytes. Out: functions in order of address that do not overlap. Each begins and
 * ends in loaded text. */
#ifndef DESCRY_PROGRAM_OBJECT_GO_H
#define DESCRY_PROGRAM_OBJECT_GO_H

#include "base/mem.h"
#include "program/object/object.h"

struct go_function {
	const char *name;    /* "main.(*T).String"; in the table's bytes */
	uint64_t start, end; /* link-time addresses, without the padding behind it */
	bool is_top;         /* it has no caller: goexit, mstart */
	bool moves_stack; /* writes another stack's address to rsp: depths do not give its frame */
	bool is_assembly; /* known from Go 1.18 on */
	size_t depths;    /* offset of its depths in the table; 0: none */
};

struct go_table {
	uint8_t *data;       /* of the section */
	const uint8_t *head; /* start of the table in it */
	size_t n;            /* bytes from head on */
	uint32_t looked_at;  /* functions, of all heads that were tried */
	bool has_flags;      /* from Go 1.17 on; before, moves_stack is guessed by name */
	VEC(struct go_function) functions;
};

/* Reads the table. Returns false when the file has none that can be read. Otherwise go_table_fini()
 * frees it. */
bool go_table_read(const struct object *o, struct go_table *ret);
void go_table_fini(struct go_table *t);

/* The distance of rsp below its place at the entry (where it points to the return address), from an
 * instruction on. */
struct go_depth {
	uint64_t addr, end;
	int64_t bytes;
	size_t pos; /* private to go_depth_next() */
};
/* Reads the next depth of f. *d is all 0 at first. Returns false at the end, or when the data is
 * wrong. */
bool go_depth_next(const struct go_table *t, const struct go_function *f, struct go_depth *d);

#endif
