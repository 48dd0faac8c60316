/* Prototypes of library functions, in the language of ltrace's configuration files
 * (ltrace.conf(5)), and values printed by them.
 *
 * In: text such as "addr malloc(ulong);". Out: the types of a function's parameters and result, and
 * text of their values.
 * Always true: a type lives as long as the set that read it. A wrong line is reported and left out,
 * the others count. No text makes the parser recurse deeper than PROTOTYPE_DEPTH types.
 */
#ifndef DESCRY_PROGRAM_PROTOTYPE_PROTOTYPE_H
#define DESCRY_PROGRAM_PROTOTYPE_PROTOTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/out.h"

enum { PROTOTYPE_DEPTH = 24, PROTOTYPE_PARAMS = 32 };
/* Limits of a type that the parser makes, through names of types too: the types that a walk through
 * all its elements meets (not what is behind pointers), and how deep they are nested. An array
 * counts PROTOTYPE_ELEMENTS elements at most. */
enum { PROTOTYPE_PARTS = 16384, PROTOTYPE_NESTED = 32, PROTOTYPE_ELEMENTS = 256 };

enum prototype_kind {
	PROTOTYPE_VOID,
	PROTOTYPE_INT, /* .size bytes, .is_signed */
	PROTOTYPE_FLOAT,
	PROTOTYPE_POINTER, /* to .target */
	PROTOTYPE_STRUCT,  /* .fields */
	PROTOTYPE_ARRAY,   /* of .target, .length elements */
};

enum prototype_lens {
	LENS_DEFAULT,
	LENS_HEX,
	LENS_OCT,
	LENS_BOOL,
	LENS_BITVEC, /* the numbers of the bits that are set */
	LENS_CHAR,
	LENS_STRING, /* an array of char, or a pointer to one, as text */
	LENS_FORMAT, /* likewise, and the string determines the further arguments */
	LENS_HIDE,   /* nothing */
	LENS_DOTS,   /* "...": what cannot be shown */
	LENS_ENUM,   /* .names */
	LENS_FLAGS,  /* the names of the bits that are set */
};

/* The number of an array's elements. */
struct prototype_length {
	enum prototype_count {
		COUNT_NUMBER,  /* .value */
		COUNT_ARG,     /* argument .value, from 1 */
		COUNT_ELEMENT, /* element .value of the structure around it, from 1 */
		COUNT_RESULT,
		COUNT_ZERO, /* no bound but a zero element */
	} count;
	uint64_t value;
	bool zero; /* a zero element ends it before */
};

struct prototype_type {
	enum prototype_kind kind;
	enum prototype_lens lens;
	uint32_t size, align; /* bytes; of an array of unknown length 0 */
	uint32_t parts;       /* parser: other types in it, at most PROTOTYPE_PARTS */
	uint32_t nested;      /* parser: their depth, at most PROTOTYPE_NESTED */
	bool is_signed;
	bool unknown; /* a structure without its elements */
	bool fails;   /* -1, or an address of 0, says that errno has the reason */
	const struct prototype_type *target;
	struct prototype_length length;
	const struct prototype_type **fields;
	const char **field_names; /* NULL: a field has none */
	uint32_t nfields;
	const struct prototype_name {
		const char *name;
		int64_t value;
		int64_t mask; /* flags: a name counts when (v & mask) == value */
	} * names;
	uint32_t nnames;
};

struct prototype_param {
	const struct prototype_type *type;
	bool out; /* has its value when the function returns */
};

struct prototype {
	const char *name;
	const struct prototype_type *result;
	struct prototype_param *params;
	uint32_t nparams;
};

/* All prototypes and type names that were read. Zero is not a set: prototypes_init(). */
struct prototypes {
	struct arena arena;
	struct hash types, functions; /* name -> pointer */
	uint32_t ntexts;              /* that were read */
	/* Reads what a text imports; from: the text's name. NULL: nothing is imported. */
	void (*import)(void *arg, const char *from, const char *name);
	void *import_arg;
};

void prototypes_init(struct prototypes *p);
void prototypes_fini(struct prototypes *p);
/* Reads `n` bytes of text. Later prototypes of a function replace earlier ones. Calls `wrong` for
 * each wrong line with "NAME:LINE: REASON"; NULL: drops it. Returns the number of wrong lines. */
uint32_t prototypes_read(struct prototypes *p, const char *name, const char *text, size_t n,
			 void (*wrong)(void *arg, const char *message), void *arg);
/* Returns the prototype of the function, or NULL when no file has one. */
const struct prototype *prototypes_find(const struct prototypes *p, const char *function);
/* Prints a prototype or type in the language that prototypes_read() reads. */
void prototype_print(struct out *o, const struct prototype *f);
void prototype_type_print(struct out *o, const struct prototype_type *t);

/* prototype_value.c: values as text. */

/* Bytes of the traced process that a pointer points to. bytes NULL: they could not be read. */
struct prototype_memory {
	const uint8_t *bytes;
	uint32_t n;
	bool cut; /* there is more of it in the process */
	/* of prototype_values.inner: the pointer's type and value */
	const struct prototype_type *type;
	uint64_t address;
};

/* The values around the one that is printed. */
struct prototype_values {
	const uint64_t *args; /* the arguments, as they are in registers */
	uint32_t nargs;
	uint64_t result;
	bool returned;         /* `result` is known */
	uint32_t max_elements; /* of an array that are printed; structures within each other */
	uint32_t max_text;     /* characters of a wide text */
	/* the memory behind pointers that lie in memory */
	const struct prototype_memory *inner;
	uint32_t ninner;
};

/* Prints a value that came in a register. memory: the bytes that it points to, if it is a
 * pointer. */
void prototype_value(struct out *o, const struct prototype_type *t, uint64_t value,
		     const struct prototype_memory *memory, const struct prototype_values *values);
/* Prints a value of which n bytes are there: a structure that is passed by value. */
void prototype_bytes(struct out *o, const struct prototype_type *t, const void *bytes, uint32_t n,
		     const struct prototype_values *values);
/* Return true when the type is text: a string, or a pointer to one. prototype_is_wide(): of wide
 * characters. */
bool prototype_is_text(const struct prototype_type *t);
bool prototype_is_wide(const struct prototype_type *t);
/* Returns the bytes that the pointer type t points to; 0: not known. */
uint64_t prototype_pointed(const struct prototype_type *t, const struct prototype_values *values);

#endif
