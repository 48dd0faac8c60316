/* Where the objects of a language's heap were made (`descry heap alloc`).
 *
 * In: a process of Ruby or Python. Out: a D program that records the address and the innermost
 * functions of each object that is made, a sink that keeps the last record of each address, and a
 * table of the objects of a heap by these places.
 * Of Java: a program that records the objects that the JVM samples, by a library in it that keeps
 * them by weak references, and a table of these samples: how much of each place lives.
 * Of Node.js, and of a JVM that does not take the library: a program that records the objects for
 * which the runtime leaves its fast way of making objects, each with the bytes that it stands for.
 * The collectors move each object soon, so what became of it is not known.
 * Always true: nothing is recorded when an object goes. Whether an object lives is seen in the heap
 * itself, which is copied at one moment (sites_hold()); records of later moments wait, so that an
 * address that is used again keeps its place of before. The traced process chooses what it records:
 * places and addresses are limited.
 */
#ifndef DESCRY_MEMORY_SITES_SITES_H
#define DESCRY_MEMORY_SITES_SITES_H

#include "base/hash.h"
#include "base/out.h"
#include "consume/sink.h"
#include "memory/graph/graph.h"
#include "probe/probe.h"
#include "program/runtime/runtime.h"
#include "view/stacktree.h"

struct sites_address; /* an entry of the table of addresses */

/* A record that waits. */
struct sites_later {
	uint64_t address;
	uint32_t site;
};

/* A place: the words of a stack (wire/language.h) in `words`. */
struct sites_place {
	uint32_t at, n;
};

/* Of sampled objects: those of a class that one place made. */
struct sites_sample {
	uint32_t place, class;           /* class: in `classes` */
	uint64_t n, live;                /* samples */
	uint64_t bytes;                  /* for which they stand */
	double objects;                  /* likewise */
	double live_objects, live_bytes; /* for which those of them stand that live */
};

/* The last sample of an entry of the table in the JVM (wire/jvm_samples.h). */
struct sites_kept {
	uint64_t serial, size; /* serial 0: the entry has had no sample */
	uint32_t sample;       /* in `samples` */
};

/* What is known of sampled objects. */
enum sites_live {
	SITES_UNKNOWN,
	SITES_REACHABLE,   /* which of them a root reaches */
	SITES_UNCOLLECTED, /* which of them the collector has not taken */
};

struct sites {
	struct arena arena;
	pid_t pid;
	const char *language; /* "ruby", "python", "java" or "javascript" */
	bool sampled;         /* Java, JavaScript: the records are samples of what is made */
	bool shows;           /* the program is only shown */
	uint32_t depth;       /* functions that are recorded for each object, at least 1 */
	uint32_t sample;      /* the objects of one of so many addresses are recorded; 1: all */
	uint32_t factor;      /* of the hash that chooses these addresses */
	struct sink *sink;    /* borrowed from the session; NULL before and after */

	VEC(struct sites_place) places; /* place 0: not known */
	VEC(uint64_t) words;
	struct hash by_words; /* words of a place -> its number */
	struct sites_address *table;
	uint64_t naddresses, mask;

	struct intern classes;
	struct hash by_class; /* place, class -> index in samples */
	VEC(struct sites_sample) samples;

	bool keeps;        /* Java: the library in the JVM keeps the samples */
	uint64_t interval; /* bytes from one of these to the next, in the mean */
	int fifo;          /* java_attach(); -1: none */
	uint64_t kept_at;  /* the table's address in the JVM */
	VEC(struct sites_kept) kept;
	enum sites_live live;
	char reason[320]; /* why no more is known; "": not said */

	uint64_t until; /* records of later moments wait; UINT64_MAX: none does */
	VEC(struct sites_later) later;

	uint64_t recorded, lost, faults;
	uint64_t nowhere; /* objects that no function of the language made, or one that is not kept */
	uint64_t left_out; /* addresses for which there was no room */
};

void sites_init(struct sites *s);
void sites_fini(struct sites *s);

/* sites_program.c: makes the D program for process pid of the set, malloc()ed. ENOENT: no
 * interpreter runs in it of which descry knows where it makes objects. */
struct err *sites_program(struct sites *s, struct probe_set *ps, pid_t pid, char **ret);
/* sites_slow_way.c: the same for an object of a process that is Java's or Node.js's. Returns false
 * when it is neither. Loads the library into the JVM, unless `s->shows`. */
struct process_object;
bool sites_slow_way(struct sites *s, struct probe_set *ps, const struct process_object *po,
		    char **ret, struct err **ret_error);

/* sites_sink.c: the records go to s, which the sink borrows. */
struct sink *sites_sink(struct sites *s);
/* Lets records of later moments than `time` (CLOCK_MONOTONIC) wait, or takes those that wait. */
void sites_hold(struct sites *s, uint64_t time);
void sites_go_on(struct sites *s);

/* Finds the place of the object at an address; 0: not known. */
uint32_t sites_find(const struct sites *s, uint64_t address);
/* Forgets the addresses for which keep() is false. */
void sites_forget(struct sites *s, bool (*keep)(void *arg, uint64_t address), void *arg);
/* Calls fn for each address, in any order. */
void sites_each(const struct sites *s, void (*fn)(void *arg, uint64_t address, uint32_t place),
		void *arg);

/* sites_samples.c: adds a sample of an object of `size` bytes that stands for `bytes`. text: its
 * class, as the runtime names it; n 0: not known. Returns its row in `samples`, or UINT32_MAX. */
uint32_t sites_sample_add(struct sites *s, uint32_t place, const char *text, size_t n,
			  uint64_t size, uint64_t bytes);
/* sites_kept.c: adds a sample that the library in the JVM keeps. numbers: the first four arguments
 * of WIRE_JVM_SAMPLED (wire/jvm_samples.h). */
void sites_kept_add(struct sites *s, uint32_t place, const char *text, size_t n,
		    const uint64_t *numbers);
/* Finds out which samples live, in a copy of the JVM's memory. g: its objects, NULL when they could
 * not be read. garbage: also those live that no root reaches. */
void sites_kept_look(struct sites *s, struct space *copied, struct graph *g, bool garbage);

/* ---- sites_show.c: the answers ---- */

struct sites_shown {
	uint32_t most; /* rows */
	bool garbage;  /* objects count that no root reaches, too, until the collector takes them */
	bool json;
};

/* One row: objects of a class that one line made. */
struct sites_row {
	const char *file; /* NULL: not known */
	uint32_t line;
	uint32_t class;
	uint64_t n, bytes; /* multiplied by the sample */
};
struct sites_rows {
	VEC(struct sites_row) v; /* the most objects first */
	uint64_t objects, bytes; /* of all rows */
};
/* Joins the places with the objects of a heap. Forgets addresses that have no object any more. */
void sites_rows(struct sites *s, struct graph *g, bool garbage, struct sites_rows *ret);
void sites_rows_fini(struct sites_rows *r);
/* Writes them in the form of memprof, `COUNT FILE:LINE:CLASS`, or as JSON lines. */
void sites_show(struct sites *s, struct graph *g, const struct sites_shown *how, struct out *o);
/* sites_samples.c: the same of samples, without a heap. */
void sites_samples_show(struct sites *s, const struct sites_shown *how, struct out *o);
void sites_samples_stacktree(struct sites *s, struct stacktree *ret);
/* Finds the function at position i of a place, from the innermost on, and in *ret_n the number of
 * functions that stand there, of which this is number k. */
struct runtime_frame sites_frame(const struct sites *s, uint32_t place, uint32_t i, uint32_t k,
				 uint32_t *ret_n);
/* Adds a frame to a tree; ';' in its text would end it. */
uint32_t sites_tree_text(struct stacktree *t, enum frame_kind kind, char *text);
/* Adds the bytes of the same objects by the functions that made them, with the class as leaf. */
void sites_stacktree(struct sites *s, struct graph *g, bool garbage, struct stacktree *ret);

#endif
