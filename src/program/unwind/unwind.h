/* Stacks without frame pointers: .eh_frame turned into tables, and walks over them.
 *
 * In: an object file (any bytes); registers and a way to read memory. Out: an unwind image
 * (wire/unwind.h) of each file, the mappings of a process with their images, return addresses from
 * the innermost frame out.
 * Always true: an image that passed unwind_image_parse() can be searched without further checks; a
 * walk ends after at most the number of frames asked for and says why it ended.
 */
#ifndef DESCRY_PROGRAM_UNWIND_UNWIND_H
#define DESCRY_PROGRAM_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "program/object/object.h"
#include "program/space/space.h"
#include "wire/unwind.h"

/* --- image.c --- */
struct unwind_image {
	const struct wire_unwind_image *head; /* owned, all in one block of size bytes */
	size_t size;
	const uint32_t *pages, *rules, *rows;
};

/* From the file's .eh_frame, else .debug_frame. A file without either gives an image without
 * pages. */
struct err *unwind_image_build(struct object *o, struct unwind_image **ret);
/* The same from the cache on disk, where it is put when it was not there. ESTALE: the file was
 * changed meanwhile. */
struct err *unwind_image_open(struct object *o, struct unwind_image **ret);
/* Checks every promise of wire/unwind.h; copies the bytes. */
struct err *unwind_image_parse(const char *name, const void *p, size_t n,
			       struct unwind_image **ret);
/* Takes images of other versions and what a killed run has left unfinished out of the cache's
 * folder, when they are old. Done before an image is put there. */
void unwind_cache_sweep(const char *dir, time_t now);
/* Files with tables that earlier runs have met, the last ones first: malloc()ed, and their
 * count. */
uint32_t unwind_recent_read(char ***ret);
/* Puts those that this run has met in front. */
void unwind_recent_write(const char *const *met, uint32_t n);
void unwind_image_free(struct unwind_image *u);
/* Gives back the memory of pages, rules and rows, which are not to be asked any more; the head
 * stays. */
void unwind_image_trim(struct unwind_image *u);
/* The rule at a link-time address; 0 nothing known. */
uint32_t unwind_image_rule(const struct unwind_image *u, uint64_t addr);
/* "CFA = rsp+16, rbp at CFA-16" */
void unwind_rule_format(uint32_t rule, char *buf, size_t n);

/* --- process.c --- */
/* Executable addresses, and the tables of the file mapped there. */
struct unwind_range {
	uint64_t start, end, bias;
	const struct unwind_image *image; /* NULL: no tables */
	struct unwind_file *file;         /* whose it is; NULL: no tables */
};
struct unwind_process {
	pid_t pid;
	VEC(struct unwind_range) ranges; /* by start */
};

/* Images by file, shared by all processes. */
struct unwind_images;
struct unwind_images *unwind_images_new(void);
void unwind_images_free(struct unwind_images *s);
/* A file that was looked at, with tables or without. */
struct unwind_file {
	uint64_t key;               /* wire_unwind_file_key(); 0: not to be found by it */
	int64_t delta;              /* link-time address - file offset, of its text */
	struct unwind_image *image; /* NULL: no tables, why is not worth telling */
	struct object *object;      /* headers only: for biases; NULL: cannot be opened */
	char *path;
	bool guessed;  /* it was opened in case that somebody maps it, and nobody was met who did */
	uint64_t used; /* by the clock of its images: the larger the later */
	/* the store's */
	bool placed; /* it has been put into chunk 1, and its tables into others if there was room */
	uint32_t pages, nwords; /* address of its pages, 0 none; words of all its tables */
	uint32_t refs;          /* lists that it is on */
	/* process.c's */
	uint32_t index;
	struct unwind_file_keys *keys;
};
/* Files opened from now on are guesses. */
void unwind_images_guess(struct unwind_images *s, bool guess);
/* No more are made. */
bool unwind_images_full(const struct unwind_images *s);
/* Opens the file at a path, so that its tables are there before anybody maps it. False: it has
 * none. */
bool unwind_images_add_path(struct unwind_images *s, const char *path);
/* The same by the inode that pid has mapped: stat() may give another one (overlayfs). */
bool unwind_images_add_inode(struct unwind_images *s, pid_t pid, const char *path, uint32_t dev,
			     uint64_t inode);
/* All files looked at so far, from 0 on; NULL: no more. */
struct unwind_file *unwind_images_file(const struct unwind_images *s, uint32_t i);
uint32_t unwind_images_count(const struct unwind_images *s);
/* Forgets a file that no process read is on any more; another takes its number. */
void unwind_images_remove(struct unwind_images *s, struct unwind_file *f);
/* Its tables are in use elsewhere: gives back what they take here. */
void unwind_images_trim(struct unwind_images *s, struct unwind_file *f);
/* The executable mappings of an address space (time as in space_mappings()), and the images behind
 * them, which live as long as s. */
struct err *unwind_process_read(struct unwind_images *s, struct space *space, uint64_t time,
				struct unwind_process **ret);
/* The same of a running process. */
struct err *unwind_process_live(struct unwind_images *s, pid_t pid, struct unwind_process **ret);
void unwind_process_free(struct unwind_process *p);
const struct unwind_range *unwind_process_find(const struct unwind_process *p, uint64_t addr);

/* --- walk.c --- */
struct unwind_regs {
	uint64_t pc, sp, bp;
	uint64_t reg[16]; /* by DWARF's numbers: rax rdx rcx rbx rsi rdi rbp rsp r8...; of the innermost frame */
};
/* Reads 8 bytes of the process at addr. */
typedef bool unwind_read_fn(void *arg, uint64_t addr, uint64_t *ret);
/* pcs: pc itself, then return addresses; their count. */
uint32_t unwind_walk(const struct unwind_process *p, const struct unwind_regs *regs,
		     unwind_read_fn *read, void *arg, uint64_t *pcs, uint32_t max,
		     enum wire_unwind_end *ret_end);
/* The walk of a stopped thread of an address space, by its memory. */
uint32_t unwind_thread(const struct unwind_process *p, struct space *space,
		       const struct space_thread *t, uint64_t *pcs, uint32_t max,
		       enum wire_unwind_end *ret_end);
const char *unwind_end_text(enum wire_unwind_end end);
/* The same in a word: "root", "no-table"... */
const char *unwind_end_name(enum wire_unwind_end end);

/* --- store.c --- */
/* The tables of many processes laid out in chunks, as the kernel's maps take them. */
struct unwind_store;
struct unwind_store_ops {
	/* Puts a chunk's words into the map; called for a new chunk and for every change of it. */
	struct err *(*put_chunk)(void *arg, uint32_t chunk, const uint32_t *words);
	struct err *(*put_process)(void *arg, uint32_t pid, const struct wire_unwind_process *p);
	void (*del_process)(void *arg, uint32_t pid);
};
struct unwind_store *unwind_store_new(const struct unwind_store_ops *ops, void *arg);
void unwind_store_free(struct unwind_store *s);
/* Reads pid's mappings (again) and puts what is new. */
struct err *unwind_store_add(struct unwind_store *s, pid_t pid);
void unwind_store_del(struct unwind_store *s, pid_t pid);
/* Puts the tables of files nobody may have mapped yet; those that have none are left out. */
struct err *unwind_store_add_files(struct unwind_store *s, const char *const *paths, uint32_t n);
/* The same of a file that pid has mapped, whose inode the kernel gives: dev is major << 20 | minor.
 * In the maps after unwind_store_flush(). */
void unwind_store_met_file(struct unwind_store *s, pid_t pid, const char *path, uint32_t dev,
			   uint64_t inode);
struct err *unwind_store_flush(struct unwind_store *s);
/* Tables of files that are on no list, beyond so many words or files, go: those not met for
 * longest. Their room is used again not before the next call a second later, for walks may be at
 * them. To be called every few seconds; 0: as usual. */
struct unwind_store_limits {
	uint32_t idle_words, idle_files;
};
struct err *unwind_store_tidy(struct unwind_store *s, const struct unwind_store_limits *l,
			      uint64_t now_ns);
/* Does a new mapping lie where pid's list has another one? Memory without a file does not matter
 * where the list has no tables. */
bool unwind_store_conflicts(const struct unwind_store *s, pid_t pid, uint64_t start, uint64_t end,
			    bool file);
/* What is added from now on is added in advance: nobody has met it. */
void unwind_store_guess(struct unwind_store *s, bool guess);
/* Those that were met are the first ones the next run thinks of. */
void unwind_store_remember(const struct unwind_store *s);
/* From now on d_ustack may look into the kernel's tree of mappings. */
struct err *unwind_store_enable_files(struct unwind_store *s);
/* Some file's tables, or some process's list, had no room. */
bool unwind_store_full(const struct unwind_store *s);
/* Words taken so far, those that are free again among them. */
uint64_t unwind_store_words(const struct unwind_store *s);

#endif
