/* The functions of Python and Ruby in the stacks of a command that is recorded by a preloaded
 * library: what walks need to know of the interpreter, the names of its functions, and whole
 * stacks.
 *
 * In: the process, and requests in the shared memory, which the command may have forged. Out: data
 * for walks there, names, and stacks whose frames of the interpreter's loop are replaced.
 */
#ifndef DESCRY_MEMORY_ALLOC_SHIM_LANGUAGE_H
#define DESCRY_MEMORY_ALLOC_SHIM_LANGUAGE_H

#include "program/runtime/languages.h"
#include "program/unwind/unwind.h"
#include "wire/alloc.h"

/* A word of the last stack, and languages_called() of it. */
struct shim_called {
	uint64_t word, called;
};

/* Of a process. */
struct shim_language {
	struct languages *languages; /* of all processes */
	struct wire_alloc *m;
	pid_t pid;
	uint32_t number;   /* of its address space */
	uint32_t address;  /* of its struct wire_language in the tables; 0: none */
	uint64_t again_ns; /* when to look for an interpreter again; 0: never */
	uint32_t served;   /* ticket of the last request that was answered */
	uint64_t unfilled; /* ns: since when the next request is taken and not written; 0: ... */
	VEC(struct shim_called) called; /* the outermost first */
};
void shim_language_fini(struct shim_language *l);

/* Looks for an interpreter, for the next shim_language_publish(). */
void shim_language_find(struct shim_language *l, struct unwind_store *store);
/* Tells walks. Called while the tables change. */
void shim_language_publish(struct shim_language *l);
/* Returns true when the process waits for names. */
bool shim_language_asked(const struct shim_language *l);
/* Reads them. Returns false when some are left. is_same: returns false when the process executes
 * another program, whose memory is not read. */
bool shim_language_names(struct shim_language *l, bool (*is_same)(const void *arg),
			 const void *arg);
/* A frame of a stack. */
struct shim_pc {
	uint64_t pc;   /* or a word of wire/language.h */
	uint32_t node; /* that has this pc; 0: none has */
};
typedef VEC(struct shim_pc) shim_pcs_vec;
/* Puts words of frames (wire/language.h) into the places of the interpreter's loop; all innermost
 * first. whole: the native frames go to the thread's first one. words[] may change. */
void shim_language_merge(struct shim_language *l, const shim_pcs_vec *native, bool whole,
			 shim_pcs_vec *words, shim_pcs_vec *ret);

#endif
