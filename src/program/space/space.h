/* An address space as a value: what is mapped where, memory, threads and their registers.
 *
 * In: a live process (live.c, and target/ for one that is stopped), a core file (core.c), a
 * recording (record.c), or what a test makes up.
 * Out: the same questions, answered the same way, whoever fills it.
 * Always true: nothing that is asked changes the process; what cannot be read is an error or a
 * false, never a guess. Untrusted all the same: a process may have written anything into its
 * memory, and a core file may hold any bytes.
 */
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
	struct user_regs_struct regs; /* fs_base: where its thread-local variables are */
	uint32_t signal;              /* that ended or stopped it; 0 none */
};

/* Where bytes of memory come from: a layer. Layers lie over one another; a byte is the uppermost
 * layer's that has it. */
struct space_memory {
	const char *name; /* for messages: "the core file"; as long as the space */
	/* Up to n bytes from addr on: their count, 0 when the byte at addr is not here. Then
	 * *ret_gap, which is n before the call, may become smaller: so many bytes further on there
	 * may be some. */
	uint32_t (*read)(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap);
};

/* What fills a space. Optional ones are NULL. */
struct space_ops {
	/* time: CLOCK_MONOTONIC ns, 0 now, or at the end. The list is valid until the next call. */
	struct err *(*mappings)(struct space *s, uint64_t time, const struct mappings **ret);
	struct space_memory memory[3]; /* the uppermost first; up to one without read */
	/* Optional. Valid as long as the space, or as long as it is stopped. */
	struct err *(*threads)(struct space *s, const struct space_thread **ret, uint32_t *ret_n);
	/* The auxiliary vector: pairs of words, AT_NULL left out. Valid as long as the space. */
	struct err *(*auxv)(struct space *s, const uint64_t **ret, uint32_t *ret_n);
	/* A path that opens a mapping's file, malloc()ed; NULL: there is none, or it is not the
	 * file that was mapped. */
	char *(*open_path)(struct space *s, const struct mapping *m);
	void (*free)(struct space *s);
};

struct space {
	const struct space_ops *ops;
	char *name; /* for messages: "process 12", "core FILE"; freed by space_free() */
	pid_t pid;  /* of the process; 0 not known */
	bool record; /* of a process that may have ended: what has its number now is not to be asked */
};

struct err *space_live(pid_t pid, struct space **ret);
/* Of a core file of x86-64 Linux, the kernel's or gdb's. What of it is missing (a file cut short,
 * pages not written) is missing from the space's memory; files mapped take their place where they
 * are the same by build id. */
struct err *space_core(const char *path, struct space **ret);
/* What is not as it should be with the core, a line each, to be shown to people; NULL: no more. */
const char *space_core_remark(const struct space *s, uint32_t i);
/* Of a process in a recording, which is told of in the order of time: it has mappings and nothing
 * else. The recording's reader gives each change another number, its state. m->path is borrowed. */
struct space *space_record(pid_t pid);
struct space *space_record_fork(struct space *parent, pid_t pid);
void space_record_map(struct space *s, const struct mapping *m, uint32_t state);
/* The state of the last change: 0 none. Spaces of one state have the same mappings. */
uint32_t space_record_state(const struct space *s);
void space_free(struct space *s);

struct err *space_mappings(struct space *s, uint64_t time, const struct mappings **ret);
struct err *space_threads(struct space *s, const struct space_thread **ret, uint32_t *ret_n);
/* An entry of the auxiliary vector (AT_ENTRY, AT_PHDR...), 0 when there is none. */
uint64_t space_auxv(struct space *s, uint64_t type);
char *space_open_path(struct space *s, const struct mapping *m);

/* Up to n bytes: the count of those that can be read from addr on. */
uint32_t space_read_some(struct space *s, uint64_t addr, void *buf, uint32_t n);
/* All of them, or an error that names the space, the address and what has no bytes there. */
struct err *space_read(struct space *s, uint64_t addr, void *buf, uint32_t n);
bool space_word(struct space *s, uint64_t addr, uint64_t *ret);
/* A string of less than max bytes, malloc()ed; NULL: it cannot be read, or does not end. */
char *space_string(struct space *s, uint64_t addr, uint32_t max);

/* The object of which the headers are in memory at base, where its file's first page is mapped:
 * build id and segments, no sections, unless all of its n bytes are there (n 0: one page). */
struct err *space_object(struct space *s, uint64_t base, uint32_t n, struct object **ret);

/* What the dynamic linker has loaded, by its own list (r_debug). */
struct space_module {
	uint64_t bias;    /* what is added to the file's addresses */
	uint64_t dynamic; /* address of its dynamic section */
	char *path;       /* "" of the program itself */
};
typedef VEC(struct space_module) space_module_vec;
/* ENOENT: the program has none (it is static, or has only begun). */
struct err *space_modules(struct space *s, space_module_vec *ret);
void space_modules_free(space_module_vec *v);

#endif
