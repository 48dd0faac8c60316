/* One BTF file: look-ups by id and by name. Nothing is copied.
 *
 * In: the bytes of /sys/kernel/btf/vmlinux, or of a module's file, which continues the ids and
 * strings of vmlinux.
 * Out: type records by id, names, ids by (kind, name).
 * Always true: every id below btf_end() names a record whose fixed and variable parts lie within
 * the file, and every name is terminated within it. Ids inside records are not checked: they may
 * form cycles or name nothing. */
#ifndef DESCRY_PROGRAM_TYPE_BTF_H
#define DESCRY_PROGRAM_TYPE_BTF_H

#include <linux/btf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mapped.h"

struct btf_slot {
	uint32_t hash, id; /* id 0: free */
};

/* Name -> id for some kinds. Built after SCANS_MAX look-ups. */
struct btf_index {
	struct btf_slot *slots;
	uint32_t mask;  /* 0: not built */
	uint32_t scans; /* look-ups without the index so far */
};

/* An enumeration constant: slot.id is an index into enumerators. */
struct btf_enumerator {
	uint32_t type, nth;
};

struct btf_file {
	const struct btf_file *base; /* split BTF: the file that this continues; else NULL */
	const uint8_t *data;         /* the whole file */
	size_t len;
	bool mapped; /* data belongs to map; else it is malloc memory */
	struct mapped map;
	const uint8_t *types;
	uint32_t types_len;
	const char *strs;
	uint32_t strs_len;
	uint32_t first;             /* id of the first record here */
	uint32_t n;                 /* records here */
	uint32_t *off;              /* n offsets into types */
	struct btf_index by_type;   /* struct union enum typedef int float fwd */
	struct btf_index by_symbol; /* func var */
	struct btf_index by_enumerator;
	struct btf_enumerator *enumerators;
	uint32_t nenumerators;
};

/* Reads and scans the file. A damaged record or one of an unknown kind ends the scan. The records
 * before it can be used, and *ret_note is a note about this (NULL when all was read). */
struct err *btf_open(struct btf_file *f, const char *path, const struct btf_file *base,
		     struct err **ret_note);
void btf_close(struct btf_file *f);

/* Returns the id behind the last id of f. */
static inline uint32_t btf_end(const struct btf_file *f)
{
	return f->first + f->n;
}

/* Returns the record, or NULL for id 0 (void) and ids that name nothing. Looks up ids below
 * f->first in the base. */
const struct btf_type *btf_type(const struct btf_file *f, uint32_t id);
/* Returns the string, never NULL. Returns "" for an offset outside the section. */
const char *btf_str(const struct btf_file *f, uint32_t off);
/* Returns the lowest id of this name among records of f itself (not its base) whose kind is one of
 * the bits in kinds. Returns 0 when there is none. */
uint32_t btf_find(struct btf_file *f, uint32_t kinds, const char *name);
/* Finds the constant `name` in any enum of f itself. Returns the enum's id and the constant's place
 * in it. */
bool btf_find_enumerator(struct btf_file *f, const char *name, uint32_t *ret_type,
			 uint32_t *ret_nth);

#define BTF_BIT(kind) (1u << (kind))

#endif
