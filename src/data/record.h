/* Fields of records and keys, decoded: numbers, text, stacks.
 *
 * In: a field and the bytes that hold it (a record from its header on, or a key). Out: values.
 * Always true: nothing outside the field's own bytes is read, whatever they contain. */
#ifndef DESCRY_DATA_RECORD_H
#define DESCRY_DATA_RECORD_H

#include "data/image.h"

enum field_trait {
	TRAIT_SIGNED = 1,
	TRAIT_TEXT = 2, /* string or array of char */
	TRAIT_FLOAT = 4,
	TRAIT_POINTER = 8,
	TRAIT_BOOL = 16,
};
/* Returns the traits of a field's type that matter for printing. g NULL: no types are known. */
uint32_t field_traits(struct type_graph *g, const struct field *f);

/* Returns the 1, 2, 4 or 8 bytes at the field, zero-extended. */
uint64_t field_uint(const struct field *f, const uint8_t *data);
/* Returns them as a signed number. Extends the sign when `is_signed`. */
int64_t field_int(const struct field *f, const uint8_t *data, bool is_signed);
static inline uint64_t read_u64(const uint8_t *p)
{
	uint64_t v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}
static inline uint32_t read_u32(const uint8_t *p)
{
	uint32_t v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

/* Returns the text of a FIELD_STRID value, or "" for an id that the image does not have. */
const char *image_strid(const struct image *img, uint32_t id);

/* Returns the text of a FIELD_STRING, FIELD_STRID or FIELD_BYTES, up to the first NUL. The text is
 * not NUL-terminated when it fills the field. Returns false for every other kind. */
bool field_text(const struct image *img, const struct field *f, const uint8_t *data,
		const char **ret, uint32_t *ret_n);

struct field_stack {
	bool user;
	uint32_t pid;       /* user only */
	int64_t id;         /* ...STACKID: id in the stack map; -1 otherwise */
	uint32_t end;       /* end of its walk: 1 + enum wire_unwind_end; 0: not known, or an id */
	int error;          /* errno value, 0 none */
	const uint8_t *pcs; /* uint64_t each, unaligned; NULL for ids */
	uint32_t n;
};
/* Decodes a FIELD_KSTACK, USTACK, KSTACKID or USTACKID. Returns false for other kinds. */
bool field_stack(const struct field *f, const uint8_t *data, struct field_stack *ret);

/* Decodes the address of a FIELD_SYM, MOD, USYM, UMOD or UADDR, and the process of the user kinds
 * (0: kernel). */
bool field_address(const struct field *f, const uint8_t *data, uint64_t *ret_addr,
		   uint32_t *ret_pid);

/* Returns the bytes of a FIELD_MEM, and in *ret_n how many of them to show. */
const uint8_t *field_mem(const struct field *f, const uint8_t *data, uint32_t *ret_n);

#endif
