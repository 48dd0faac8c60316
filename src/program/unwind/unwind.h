/* Stacks without frame pointers: turns .eh_frame into tables, and walks stacks by them.
 *
 * In: an object file (any bytes); registers and a way to read memory. Out: an unwind image
 * (wire/wire_unwind.h) of each file, the mappings of a process with their images, return addresses
 * from the innermost frame out.
 * Always true: an image accepted by unwind_image_parse() can be searched without further checks. A
 * walk ends after at most the requested number of frames and reports why it ended. */
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
#include "wire/wire_unwind.h"

/* --- unwind_image.c --- */
struct unwind_image {
	const struct wire_unwind_image *head; /* owned, all in one block of size bytes */
	size_t size;
	const uint32_t *pages, *rules, *rows;
	/* Of making it from the file: bytes of the file that were read, and 16 for each row; 0: the
	 * cache had it. */
	uint64_t work;
};

/* Builds the image of the file's .eh_frame, else .debug_frame. A file without either gets an image
 * without pages. */
struct err *unwind_image_build(struct object *o, struct unwind_image **ret);
/* Reads the image from the cache on disk, or builds it and writes it there. ESTALE: the file was
 * changed meanwhile. */
struct err *unwind_image_open(struct object *o, struct unwind_image **ret);
/* Checks all conditions of wire/wire_unwind.h and copies the bytes. */
struct err *unwind_image_parse(const char *name, const void *p, size_t n,
			       struct unwind_image **ret);
/* Removes old images of other versions, and old unfinished files of killed runs, from the cache's
 * folder. Called before an image is written there. */
void unwind_cache_sweep(int dir, time_t now);
/* Returns the files with tables that earlier runs have met, the latest first: malloc()ed, and their
 * count. */
uint32_t unwind_recent_read(char ***ret);
/* Puts the files that this run has met in front. */
void unwind_recent_write(const char *const *met, uint32_t n);
void unwind_image_free(struct unwind_image *u);
/* Frees the memory of pages, rules and rows, which must not be queried afterwards. Keeps the
 * head. */
void unwind_image_trim(struct unwind_image *u);
/* Returns the rule at a link-time address, 0 when nothing is known. */
uint32_t unwind_image_rule(const struct unwind_image *u, uint64_t addr);
/* Writes "CFA = rsp+16, rbp at CFA-16". */
void unwind_rule_format(uint32_t rule, char *buf, size_t n);

/* --- process_images.c --- */
/* Executable addresses, and the tables of the file mapped there. */
struct unwind_range {
	uint64_t start, end, bias;
	const struct unwind_image *image; /* NULL: no tables */
	struct unwind_file *file;         /* the owner of image; NULL: no tables */
};
/* A frame of a walk. */
struct unwind_cursor {
	uint64_t pc, sp, bp;
	bool called;    /* pc is a return address */
	bool first;     /* no frame of the walk before was in other code */
	uint32_t index; /* of the frame, from the innermost on */
};
/* Code for which no file has tables: code made by a JIT, and code in a file without tables. */
struct unwind_code {
	/* Goes from a frame to its caller. Returns false when the frame is not of this code. A
	 * frame without a known caller stays. */
	bool (*step)(void *arg, struct unwind_cursor *c);
	void *arg;
};

struct unwind_process {
	pid_t pid;
	VEC(struct unwind_range) ranges; /* by start */
	struct unwind_code code;         /* step NULL: none is known */
	/* Returns the range of an address, valid until the next call, or NULL. NULL: `ranges` has
	 * all. */
	const struct unwind_range *(*find)(void *arg, uint64_t addr);
	void *find_arg;
};

enum {
	UNWIND_IMAGES_MAX =
		256 << 20, /* bytes of all images: more than fits in the kernel's tables */
	/* A process may map any number of files with large tables, which cost no room on disk where
	 * they are holes. This is a dozen of Chromiums, and some seconds. */
	UNWIND_WORK_MAX = 512 << 20,
};

/* Images by file, shared by all processes. */
struct unwind_images;
struct unwind_images *unwind_images_new(void);
void unwind_images_free(struct unwind_images *s);
/* A file that was examined, with tables or without. */
struct unwind_file {
	uint64_t key;               /* wire_unwind_file_key(); 0: cannot be found by a key */
	int64_t delta;              /* link-time address - file offset, for its text */
	struct unwind_image *image; /* NULL: no tables */
	struct object *object;      /* headers only, for biases; NULL: cannot be opened */
	char *path;
	bool guessed;  /* opened in advance, and no process has been met that maps it */
	uint64_t used; /* time of the last use, by the clock of its images */
	/* The store's. */
	bool placed;            /* it is in chunk 1, and its tables in others if there was room */
	uint32_t pages, nwords; /* address of its pages, 0: none; words of all its tables */
	uint32_t refs;          /* number of lists that contain it */
	/* process_images.c's */
	uint32_t index;
	struct unwind_file_keys *keys;
};
/* Marks files opened from now on as guessed. */
void unwind_images_guess(struct unwind_images *s, bool guess);
/* Returns true when no more images are made: those of the files at hand have too many bytes, or
 * take too much work. */
bool unwind_images_full(const struct unwind_images *s);
/* Returns the number of files whose tables were left out for this reason. */
uint32_t unwind_images_left_out(const struct unwind_images *s);
/* Sets another limit of work, for tests. */
void unwind_images_limit(struct unwind_images *s, uint64_t work);
/* Opens the file at a path, so that its tables exist before a process maps it. Returns false when
 * it has none. */
bool unwind_images_add_path(struct unwind_images *s, const char *path);
/* Does the same by the inode that pid has mapped, because stat() may return another (overlayfs). */
bool unwind_images_add_inode(struct unwind_images *s, pid_t pid, const char *path, uint32_t dev,
			     uint64_t inode);
/* Returns the i-th file examined so far, from 0 on, or NULL. */
struct unwind_file *unwind_images_file(const struct unwind_images *s, uint32_t i);
uint32_t unwind_images_count(const struct unwind_images *s);
/* Drops a file that is in no process read any more. Another file gets its number. */
void unwind_images_remove(struct unwind_images *s, struct unwind_file *f);
/* Frees the memory of its tables, which are in use elsewhere. */
void unwind_images_trim(struct unwind_images *s, struct unwind_file *f);
/* Reads the executable mappings of an address space (time as in space_mappings()), and their
 * images, which live as long as s. */
struct err *unwind_process_read(struct unwind_images *s, struct space *space, uint64_t time,
				struct unwind_process **ret);
/* Does the same for a running process. */
struct err *unwind_process_live(struct unwind_images *s, pid_t pid, struct unwind_process **ret);
void unwind_process_free(struct unwind_process *p);
const struct unwind_range *unwind_process_find(const struct unwind_process *p, uint64_t addr);

/* --- walk.c --- */
struct unwind_regs {
	uint64_t pc, sp, bp;
	/* The innermost frame's, by DWARF's numbers: rax rdx rcx rbx rsi rdi rbp rsp r8... */
	uint64_t reg[16];
};
/* Reads 8 bytes of the process at addr. */
typedef bool unwind_read_fn(void *arg, uint64_t addr, uint64_t *ret);
/* Walks a stack. pcs: pc itself, then return addresses. sps: the stack pointer of each frame, or
 * NULL. Returns the number of frames. */
uint32_t unwind_walk(const struct unwind_process *p, const struct unwind_regs *regs,
		     unwind_read_fn *read, void *arg, uint64_t *pcs, uint64_t *sps, uint32_t max,
		     enum wire_unwind_end *ret_end);
/* Walks a stopped thread of an address space, by its memory. */
uint32_t unwind_thread(const struct unwind_process *p, struct space *space,
		       const struct space_thread *t, uint64_t *pcs, uint64_t *sps, uint32_t max,
		       enum wire_unwind_end *ret_end);
const char *unwind_end_text(enum wire_unwind_end end);
/* Returns the end of a walk as a word: "root", "no-table"... */
const char *unwind_end_name(enum wire_unwind_end end);

/* --- store.c --- */
/* The tables of many processes in chunks, in the form of the kernel's maps. */
struct unwind_store;
struct unwind_store_ops {
	/* Writes a chunk's words to the map. Called for a new chunk and for every change. */
	struct err *(*put_chunk)(void *arg, uint32_t chunk, const uint32_t *words);
	struct err *(*put_process)(void *arg, uint32_t pid, const struct wire_unwind_process *p);
	void (*del_process)(void *arg, uint32_t pid);
	/* Optional: removes the last chunk, which has become free. */
	void (*drop_chunk)(void *arg, uint32_t chunk);
};
struct unwind_store *unwind_store_new(const struct unwind_store_ops *ops, void *arg);
void unwind_store_free(struct unwind_store *s);
/* Reads pid's mappings (again) and writes the new tables. */
struct err *unwind_store_add(struct unwind_store *s, pid_t pid);
/* Puts n words at address `at`, 0: where there is room, at a multiple of align. Returns the
 * address, or 0 when there is no room. They are in the maps after the next unwind_store_add(). */
uint32_t unwind_store_words_at(struct unwind_store *s, uint32_t at, const void *words, uint32_t n,
			       uint32_t align);
/* Drops words of unwind_store_words_at(). */
void unwind_store_drop_words(struct unwind_store *s, uint32_t at, uint32_t n);
void unwind_store_del(struct unwind_store *s, pid_t pid);
/* Writes the tables of files that no process may have mapped yet. Skips files without tables. */
struct err *unwind_store_add_files(struct unwind_store *s, const char *const *paths, uint32_t n);
/* Adds a file that pid has mapped, by the inode that the kernel reports: dev is major << 20 |
 * minor. The maps have it after unwind_store_flush(). */
void unwind_store_met_file(struct unwind_store *s, pid_t pid, const char *path, uint32_t dev,
			   uint64_t inode);
struct err *unwind_store_flush(struct unwind_store *s);
/* Drops tables of files in no list, beyond so many words or files, those with the oldest last use
 * first. Their room is used again in a later call, a second later at the earliest, because walks
 * may still read it. Call it every few seconds. 0: the default. */
struct unwind_store_limits {
	uint32_t idle_words, idle_files;
};
struct err *unwind_store_tidy(struct unwind_store *s, const struct unwind_store_limits *l,
			      uint64_t now_ns);
/* Returns true when a new mapping overlaps a different mapping in pid's list. Memory without a file
 * does not count where the list has no tables. */
bool unwind_store_conflicts(const struct unwind_store *s, pid_t pid, uint64_t start, uint64_t end,
			    bool file);
/* Marks files added from now on as guessed: no process has been met that maps them. */
void unwind_store_guess(struct unwind_store *s, bool guess);
/* Records the files that were met, for the next run to add first. */
void unwind_store_remember(const struct unwind_store *s);
/* Allows d_ustack to search the kernel's tree of mappings. */
struct err *unwind_store_enable_files(struct unwind_store *s);
/* Returns the number of a rule, which is the same for all files. Returns 0, NONE, when there are
 * too many rules: the store is then full. */
uint32_t unwind_store_rule(struct unwind_store *s, uint32_t rule);
/* Returns true when some file's tables or rules, or some process's list, had no room. */
bool unwind_store_full(const struct unwind_store *s);
/* Returns the words taken so far, with those that are free again. */
uint64_t unwind_store_words(const struct unwind_store *s);

#endif
