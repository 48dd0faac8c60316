/* An address space as a value: mappings, memory, threads and their registers.
 *
 * In: a live process (live.c, and target/ for one that is stopped), a core file (core.c), a
 * recording (recording.c), or a test's own data.
 * Out: the same functions for all of these.
 * Always true: no query changes the process. Missing data is an error or false, never a guess. The
 * data is untrusted: a process may have written anything into its memory, and a core file may hold
 * any bytes. */
#ifndef DESCRY_PROGRAM_SPACE_SPACE_H
#define DESCRY_PROGRAM_SPACE_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/err.h"
#include "base/mem.h"
#include "program/space/mapping.h"

struct object;
struct space;

struct space_thread {
	pid_t tid;
	struct user_regs_struct regs; /* fs_base: address of its thread-local variables */
	uint32_t signal;              /* signal that ended or stopped it; 0: none */
};

/* A layer of memory, a source of bytes. Layers lie over each other. The uppermost layer that has a
 * byte supplies it. */
struct space_memory {
	const char *name; /* for messages: "the core file"; lives as long as the space */
	/* Reads up to n bytes from addr on. Returns their count, or 0 when this layer does not have
	 * the byte at addr. *ret_gap is n before the call. With the result 0, the function may
	 * lower it to the distance of the next byte that this layer may have. */
	uint32_t (*read)(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap);
};

/* Parts of an address space. */
struct space_range {
	uint64_t start, end;
};
typedef VEC(struct space_range) space_range_vec;

/* The operations of a space. Optional operations are NULL. */
struct space_ops {
	/* time: CLOCK_MONOTONIC ns, 0: now, or the end. The list is valid until the next call. */
	struct err *(*mappings)(struct space *s, uint64_t time, const struct mappings **ret);
	struct space_memory memory[3]; /* the uppermost first; ends at a layer without read */
	/* Optional. Valid as long as the space, or as long as the process is stopped. */
	struct err *(*threads)(struct space *s, const struct space_thread **ret, uint32_t *ret_n);
	/* Returns the auxiliary vector: pairs of words without AT_NULL. Valid as long as the
	 * space. */
	struct err *(*auxv)(struct space *s, const uint64_t **ret, uint32_t *ret_n);
	/* Optional: see space_resident(). */
	struct err *(*resident)(struct space *s, struct space_range in, space_range_vec *ret);
	/* Returns a path that opens a mapping's file, malloc()ed. NULL: there is none, or it is not
	 * the mapped file. */
	char *(*open_path)(struct space *s, const struct mapping *m);
	void (*free)(struct space *s);
};

/* A limit of the reads of memory. */
struct space_limit {
	bool is_set, spent;
	uint64_t reads, until_ns;
	/* of an inner limit */
	uint64_t most;       /* reads at the beginning */
	uint64_t waited_max; /* of space.waited.ns; 0: none */
};

struct space {
	const struct space_ops *ops;
	char *name;  /* for messages: "process 12", "core FILE"; freed by space_free() */
	pid_t pid;   /* of the process; 0 not known */
	bool record; /* of a process that may have ended: another process may have its number now */
	struct space_limit limit; /* see space_limit() */
	/* Reads under an inner limit: pages may come late. See space_waited(). */
	struct {
		uint64_t ns;      /* that they have taken */
		uint64_t settled; /* of them; the time without a processor is taken off those */
		uint64_t starved; /* procmem_starved_ns() then; 0: not read yet */
	} waited;
	uint64_t table_ns; /* that space_resident_of() has taken, for all ranges */
};

struct err *space_live(pid_t pid, struct space **ret);
/* Opens a core file of x86-64 Linux, of the kernel or gdb. Data missing in the core (a truncated
 * file, pages not written) is missing in the space's memory. The mapped files supply it where their
 * build ids are equal. */
struct err *space_core(const char *path, struct space **ret);
/* Returns the i-th remark on defects of the core, a line for people, or NULL. */
const char *space_core_remark(const struct space *s, uint32_t i);
/* Makes the space of a process in a recording, which is read in the order of time. It has mappings
 * and nothing else. The recording's reader numbers each change, and the number is the state.
 * m->path is borrowed. */
/* Mappings in the memory of a recording's spaces. A forked process with one more mapping has a
 * copy of its parent's, so that a small recording can have any number. A new mapping moves those
 * behind it in the list, so that a small recording can move any number. */
struct space_record_room {
	uint64_t most; /* 0: 16 million */
	uint64_t n;
	uint64_t most_moved; /* 0: 300 million */
	uint64_t moved;      /* entries of lists that were moved or copied */
	uint64_t left_out;   /* mappings beyond a limit, or of a process that has 131,072 */
};
/* The room must live as long as the space and those that are forked from it. */
struct space *space_record(pid_t pid, struct space_record_room *room);
struct space *space_record_fork(struct space *parent, pid_t pid);
void space_record_map(struct space *s, const struct mapping *m, uint32_t state);
/* Returns the state of the last change, 0: none. Spaces with the same state have the same
 * mappings. */
uint32_t space_record_state(const struct space *s);
void space_free(struct space *s);

struct err *space_mappings(struct space *s, uint64_t time, const struct mappings **ret);
struct err *space_threads(struct space *s, const struct space_thread **ret, uint32_t *ret_n);
/* Returns an entry of the auxiliary vector (AT_ENTRY, AT_PHDR...), 0 when there is none. */
uint64_t space_auxv(struct space *s, uint64_t type);
char *space_open_path(struct space *s, const struct mapping *m);

/* Lets reads of memory fail from now on after this number of reads, or at this time (now_ns()), so
 * that every walk of structures that the process has made comes to an end. UINT64_MAX: never. */
void space_limit(struct space *s, uint64_t reads, uint64_t until_ns);
/* Sets a limit inside the present one, which stays in force: a number of reads, and the
 * milliseconds that they may take together (a busy machine does not make them more, as it would a
 * time from now on). Returns the present one. */
struct space_limit space_limit_within(struct space *s, uint64_t reads, uint32_t ms);
/* Puts the outer limit back. Returns true when a read failed because of a limit. */
bool space_limit_end(struct space *s, const struct space_limit *outer);
/* Returns true when a read failed because of the limit. */
bool space_is_spent(const struct space *s);
/* Returns how long the process has let this thread wait in reads under inner limits, in ns: the
 * time in which a busy machine had no processor for them does not count. */
uint64_t space_waited(struct space *s);
/* Takes a step of a walk from the limit, as one read: for work on memory that was read before.
 * Returns false when the limit is reached. */
bool space_step(struct space *s);

/* Reads up to n bytes. Returns the count of bytes that can be read from addr on. */
uint32_t space_read_some(struct space *s, uint64_t addr, void *buf, uint32_t n);
/* Reads all n bytes, or returns an error that names the space, the address and the layers without
 * the bytes. */
struct err *space_read(struct space *s, uint64_t addr, void *buf, uint32_t n);
bool space_word(struct space *s, uint64_t addr, uint64_t *ret);
/* Adds the parts of a range, whole pages, whose bytes the process has made: pages that it has
 * touched, or those that a core file holds. The other pages have zeros or the bytes of a mapped
 * file. A space that does not know adds the whole range. */
struct err *space_resident(struct space *s, struct space_range in, space_range_vec *ret);
/* The same of a live process, by its page table. */
struct err *space_resident_of(struct space *s, struct space_range in, space_range_vec *ret);
/* Returns a string of less than max bytes, malloc()ed, or NULL when it cannot be read or does not
 * end. */
char *space_string(struct space *s, uint64_t addr, uint32_t max);

/* Opens the object whose headers are in memory at base, where its file's first page is mapped. It
 * has build id and segments, but no sections, unless all of its n bytes are there (n 0: one
 * page). */
struct err *space_object(struct space *s, uint64_t base, uint32_t n, struct object **ret);

/* An object in the dynamic linker's own list (r_debug). */
struct space_module {
	uint64_t bias;    /* offset between memory and the file's addresses */
	uint64_t dynamic; /* address of its dynamic section */
	char *path;       /* "" for the program itself */
};
typedef VEC(struct space_module) space_module_vec;
/* Lists the objects. ENOENT: the program has no list (it is static, or has only begun). */
struct err *space_modules(struct space *s, space_module_vec *ret);
void space_modules_free(space_module_vec *v);

#endif
