/* The mappings of a process: the lines of /proc/PID/maps as a value.
 *
 * Always true: start < end. The list of a process is in the order of the addresses, without
 * overlaps. */
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
	const char *path;    /* as in /proc/PID/maps; "": none */
	bool read, write, exec, shared;
	/* The program has moved this code of the file to other memory (moved.c). */
	bool moved;
	uint32_t dev_major, dev_minor;
	uint64_t inode; /* of the file; 0: no file, or not known */
	uint64_t time;  /* CLOCK_MONOTONIC ns when it was made; 0: not known */
	uint32_t file;  /* number that the list's owner gave the file; 0: none */
};

/* A list. Zero is empty. mappings_free() frees it. A vector of base/mem.h. */
struct mappings {
	struct mapping *v;
	uint32_t n, cap;
	char *text; /* malloc()ed; holds the paths. NULL: the owner holds them */
};

/* Reads the mappings of a process from /proc. A process all of whose threads have ended has none.
 * Memory that the program has put in place of its text has the text's file and offset.
 * E2BIG: their list is longer than MAPPINGS_TEXT_MAX, as a process can make it. */
enum { MAPPINGS_TEXT_MAX = 32 << 20 /* bytes */ };
struct err *mappings_read(pid_t pid, struct mappings *ret);
/* Reads them however long the list is, which may take seconds. Paths beyond MAPPINGS_TEXT_MAX
 * are left out, but for those of memory files. */
struct err *mappings_read_whole(pid_t pid, struct mappings *ret);
/* Parses the lines of a /proc/PID/maps: len bytes, malloc()ed, with a NUL behind them. Takes the
 * text. Skips lines that are malformed. */
void mappings_parse(char *text, size_t len, struct mappings *ret);
/* Cuts each mapping to the part behind the one before. /proc/PID/maps is no snapshot: every read(2)
 * returns about a page of text, so a mapping that has grown meanwhile is listed again, from its
 * old start. A process can repeat this at will. */
void mappings_order(struct mappings *list);
void mappings_free(struct mappings *m);
/* Gives each mapping that holds code which the process has moved the file and offset of this code.
 * Opens the files of such mappings. */
void mappings_claim_moved(pid_t pid, struct mappings *list);
/* Adds m. Replaces the parts of other mappings that it overlaps. */
void mappings_put(struct mappings *list, const struct mapping *m);
/* Returns the index of the first mapping that ends behind addr, or m->n. */
uint32_t mappings_from(const struct mappings *m, uint64_t addr);
/* Returns the mapping that holds addr, or NULL. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t addr);
/* Returns true when the process has a mapping whose path begins with `front`, and false when its
 * mappings cannot be read. */
bool mappings_any(pid_t pid, const char *front);

/* Calls fn with the flags of each mapping, a line of /proc/PID/smaps. The kernel counts the pages
 * of all mappings meanwhile. ETIMEDOUT: this takes longer than `ms`. */
struct err *mappings_flags(pid_t pid, uint32_t ms,
			   void (*fn)(void *arg, uint64_t start, uint64_t end, const char *flags),
			   void *arg);
/* Returns true when the flags have this one, of two letters. */
bool mapping_has_flag(const char *flags, const char *flag);

/* Returns true for a mapping of the memory file (memfd_create(2)) of this name. */
bool mapping_is_memfd(const struct mapping *m, const char *name);

/* Returns a path that opens the mapped file from this process: /proc/PID/map_files/...,
 * /proc/PID/root/... or the plain path. The caller frees it. NULL: there is none. */
char *mapping_open_path(pid_t pid, const struct mapping *m);
/* Returns true when the file that was opened by such a path is the mapped one, by its inode.
 * Another user can exchange what a path leads to before it is opened. */
struct stat;
bool mapping_is_of_file(const struct mapping *m, const char *path, const struct stat *st);
/* Returns the path for a mapping that no longer exists. Another file may be at its addresses. */
char *mapping_open_path_gone(pid_t pid, const struct mapping *m);

#endif
