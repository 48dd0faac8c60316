/* What a process has mapped where: the lines of /proc/PID/maps as a value.
 *
 * Always true: start < end. The list of a process is in the order of the addresses, and none lies
 * over another.
 */
#ifndef DESCRY_PROGRAM_SPACE_MAPPING_H
#define DESCRY_PROGRAM_SPACE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct mapping {
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* of start, in the file */
	const char *path;    /* as in /proc/PID/maps; "" none */
	bool read, write, exec, shared;
	uint32_t dev_major, dev_minor;
	uint64_t inode; /* of the file; 0: there is none, or it is not known */
	uint64_t time; /* CLOCK_MONOTONIC ns when it was made, where the kernel told; 0 not known */
	uint32_t file; /* a number that whoever keeps the list has given the file; 0 none */
};

/* Zero is empty; mappings_free() it. A vector of base/mem.h. */
struct mappings {
	struct mapping *v;
	uint32_t n, cap;
	char *text; /* malloc()ed; holds the paths. NULL: they are the owner's */
};

/* The mappings of a process, read from /proc. A process of which all threads have ended has
 * none. */
struct err *mappings_read(pid_t pid, struct mappings *ret);
/* The lines of a /proc/PID/maps: len bytes, malloc()ed, with a NUL behind them. Takes the text.
 * Leaves out lines that are none. */
void mappings_parse(char *text, size_t len, struct mappings *ret);
void mappings_free(struct mappings *m);
/* Puts m in the place of all that it overlaps, of which the parts beside it stay. */
void mappings_put(struct mappings *list, const struct mapping *m);
/* The index of the first one that ends behind addr; m->n: none does. */
uint32_t mappings_from(const struct mappings *m, uint64_t addr);
/* The one that holds addr, NULL none. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t addr);
/* Does the process have a mapping whose path begins so? What cannot be read has none. */
bool mappings_any(pid_t pid, const char *front);

/* Is it of the memory file (memfd_create(2)) of this name? */
bool mapping_is_memfd(const struct mapping *m, const char *name);

/* A path that opens the mapped file from here: /proc/PID/map_files/..., /proc/PID/root/...,
 * whichever works. malloc()ed; NULL: there is none. */
char *mapping_open_path(pid_t pid, const struct mapping *m);
/* The same of what is mapped no more: another file may be at its addresses. */
char *mapping_open_path_gone(pid_t pid, const struct mapping *m);

#endif
