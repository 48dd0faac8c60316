/* The files of a recording by probes: one for each process, and for each program that it executes.
 *
 * In: processes, at their first records. Out: a file for each, whose numbers of threads, frames and
 * stacks are its own. The first file lists the others. All have one time 0.
 */
#ifndef DESCRY_MEMORY_ALLOC_RECORD_FILES_H
#define DESCRY_MEMORY_ALLOC_RECORD_FILES_H

#include "base/hash.h"
#include "memory/alloc/trace.h"

struct alloc_function;

struct record_thread {
	uint32_t index; /* in the file; from 1 */
	uint32_t stack; /* of the call that has not returned yet */
	/* Its last event is a free of this address, by this function; else 0. */
	uint64_t freed;
	const struct alloc_function *by;
};

struct record_file {
	pid_t pid, parent; /* parent 0: the first */
	char *path, *command;
	struct alloc_writer *writer;
	struct hash threads; /* tid -> index in known */
	VEC(struct record_thread) known;
	struct hash stacks;    /* addresses -> number */
	struct hash pcs;       /* text -> number of a frame */
	uint64_t used;         /* of record_files.room */
	uint64_t now, flushed; /* times of the last event, and of the last flush */
	uint32_t tid, last;    /* the last tid, to look it up once */
};

struct record_program {
	pid_t pid, parent;
	char *command;
};

struct record_files {
	const char *path;
	int dir; /* the folder of the files */
	struct record_file *first;
	struct record_file *recent;     /* the last that was asked for; NULL: ask anew */
	VEC(struct record_file *) open; /* all but the first */
	VEC(struct record_file *) done; /* without writer */
	VEC(uint64_t) events;           /* of each of done */
	struct hash numbers;            /* pid -> the number of its last file */
	/* Programs that were executed, while their processes were held: when a record comes, its
	 * process may have ended. */
	VEC(struct record_program) programs;
	bool first_over;    /* its process has executed another program */
	uint64_t began;     /* time 0; 0: there was no record yet */
	uint64_t now;       /* time of the last event, from `began` */
	uint64_t room;      /* for what the files define: ALLOC_DEFINED_MAX at first */
	uint64_t lost;      /* records */
	uint64_t faults;    /* calls left out because a clause could not read memory */
	uint64_t unstacked; /* calls whose stacks are left out, because `room` is used up */
	uint64_t refused;   /* records of processes that have no file */
	uint64_t look_at;   /* time of the next look for processes that have ended */
	uint32_t looks;
	struct err *error; /* why a file could not be made, or written; NULL: all could */
	/* Of an attached process. */
	pid_t attached;         /* whose blocks of before are recorded; 0: none */
	uint64_t before;        /* blocks that were allocated before the recording */
	struct err *not_before; /* the reason why they are not known, or NULL */
};

/* path is kept. */
void record_files_init(struct record_files *f, const char *path);
/* Makes the first file, or takes its writer, for unit tests. */
void record_files_begin(struct record_files *f, pid_t pid, struct alloc_writer *w);
/* Returns the file of a process, a new one if necessary. NULL: it cannot have one. */
struct record_file *record_file_of(struct record_files *f, pid_t pid);
/* The process has executed another program: its records from now on go to another file. */
void record_files_executed(struct record_files *f, pid_t pid);
/* Ends all files. Returns the error of the first. */
struct err *record_files_end(struct record_files *f);
void record_files_fini(struct record_files *f);

#endif
