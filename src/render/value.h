/* Writes a typed value from its bytes, for print(), as C-like text and as JSON.
 *
 * In: a type, and the value's bytes as in memory (little-endian), possibly fewer than the type's
 * size. Out: text appended to a struct out. Always true: no byte beyond the given ones is read,
 * whatever the type is. The output marks parts that are cut off.
 *
 *	0xffff888100041a00 = *                  only when style->has_addr; lines after the first are indented
 *	(struct a) {
 *	 .x = (int)5,
 *	 .name = (char [16])"bash",
 *	 .color = (enum color)RED,
 *	 (union) {                              an anonymous member
 *	  .low = (unsigned int)5,
 *	 },
 *	 .v = (int [8]) [
 *	  (int)1,
 *	  [3] = (int)4,                         elements between were zero
 *	 ],
 *	 .next = (struct a *)0xffff888100041b00,
 *	 ...                                    the rest was cut off
 *	}
 */
#ifndef DESCRY_RENDER_VALUE_H
#define DESCRY_RENDER_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "program/type/type.h"

struct value_style {
	/* with has_addr: the address of the bytes, which is the value of the printed pointer */
	uint64_t addr;
	bool has_addr;
	uint32_t indent; /* columns in front of every line but the first; DTrace: 44 */
	bool zeros;      /* prints members and elements that are all zero, too */
	/* Prints exactly as Oracle's dtrace: char arrays element by element, zero arrays as empty
	 * ones, no [n] = in front of elements. */
	bool dtrace;
	/* Finds the name of a code address, as mod`sym. Returns false when there is none. NULL: hex
	 * only. */
	bool (*symbol)(void *arg, uint64_t addr, char *buf, size_t n);
	void *symbol_arg;
};

/* Writes the value with a newline at the end. style NULL: all zero. */
void value_print(struct out *o, struct type_graph *g, type_id t, const void *bytes, size_t n,
		 const struct value_style *style);

/* One object on one line, without newline:
 *
 *	{"type":"struct a","addr":"0x...","value":{"x":5,...},"truncated":true}
 *
 * addr and truncated only where they apply; with has_addr the type is the pointee's. Structs and
 * unions are objects by member name (members of anonymous members are their own), arrays are
 * arrays, char arrays and strings are strings, integers are numbers (beyond 64 bits: hex strings),
 * enums their constant's name or a number, bools true and false, pointers hex strings. Zero members
 * are there too; what was cut off is absent. */
void value_json(struct out *o, struct type_graph *g, type_id t, const void *bytes, size_t n,
		const struct value_style *style);

/* --- for both forms --- */

/* The work of a value: 1 for each member and element, and more where a name is long or an enum has
 * many constants, both of which a process's own types may have. */
enum { VALUE_DEPTH = 32, VALUE_WORK = 30000, VALUE_NAME_BYTES = 64, VALUE_CONSTANTS = 256 };

/* Reads an integer of bit_size bits at a bit offset. Returns false when it is not within the
 * bytes. */
bool value_bits(const void *bytes, size_t n, uint64_t bit_offset, uint64_t bit_size, bool is_signed,
		uint64_t *ret);
/* Returns the constant of that value, NULL: there is none. Adds to *work. */
const char *value_enumerator(struct type_graph *g, type_id t, uint64_t v, uint32_t *work);
/* Reads the float of that size at p. Returns false for a size that no float has. */
bool value_float(const void *p, uint64_t size, long double *ret);

#endif
