/* Strings whose page was not resident when the probe fired. They wait, by thread, for the return of
 * the system call. */
#ifndef DESCRY_WIRE_LATE_H
#define DESCRY_WIRE_LATE_H

#include "wire/wire_record.h"

enum { WIRE_LATE_ITEMS = 6 };

struct wire_late_item {
	uint64_t address; /* in the user's memory */
	uint32_t number;  /* wire_record.late of the waiting record */
	uint32_t offset;  /* of the string field in that record */
	uint32_t probe;
	uint32_t size; /* of the field; at most 256 are read */
};

/* The value of MAP_LATE (BPF_MAP_TYPE_HASH, key: uint32_t tid). */
struct wire_late_wait {
	uint32_t n;
	uint32_t pad;
	struct wire_late_item item[WIRE_LATE_ITEMS];
};

_Static_assert(sizeof(struct wire_late_item) == 24, "late item");
_Static_assert(sizeof(struct wire_late_wait) == 8 + 24 * WIRE_LATE_ITEMS, "late wait");

#endif
