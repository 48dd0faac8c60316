/* Stacks that tracers and profilers write, read into a stack tree.
 *
 * In: the bytes of a file or pipe, in pieces of any size, gzipped or not. Texts: folded, perf
 * script, bpftrace, SystemTap, DTrace or our own. Documents: perf.data, pprof, speedscope. Which of
 * them is seen from the first bytes and lines.
 * Out: stacks with counts in `tree`, and what could not be read, counted.
 * Always true: of a text, memory grows with the distinct frames and stacks, not with the input, and
 * lines that are no stack are skipped and counted, never an error; a document that does not hold
 * together is an error. Control bytes and invalid UTF-8 pass into the names as they are.
 */
#ifndef DESCRY_INPUT_STACKIN_STACKIN_H
#define DESCRY_INPUT_STACKIN_STACKIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/out.h"
#include "input/lines.h"
#include "view/stacktree.h"

enum stackin_format {
	STACKIN_AUTO,
#define FORMAT(id, reader, name) STACKIN_##id,
#include "input/stackin/formats.def"
#undef FORMAT
	STACKIN_NFORMATS
};
/* NULL and AUTO when there is no such format. */
const char *stackin_format_name(enum stackin_format f);
enum stackin_format stackin_format_named(const char *name);
/* Read as a whole, not line by line? */
bool stackin_is_document(enum stackin_format f);

struct stackin_options {
	enum stackin_format format;
	double factor; /* counts are multiplied by it; 0 = 1 */
	/* of perf script and perf.data: */
	bool kernel, jit;  /* frames are of these kinds; otherwise native */
	bool module;       /* MODULE`FUNCTION */
	bool addrs;        /* the address where there is no name */
	bool pid, tid;     /* behind the command's name */
	const char *event; /* only samples of this event (type, profile); NULL = of the first */
	bool no_symbols;   /* perf.data: opens no other file; frames are [module] */
};

struct stackin {
	struct stacktree *tree;
	struct stackin_options options;
	enum stackin_format format; /* as recognised */
	uint64_t lines, stacks;
	uint64_t skipped, first_skipped; /* lines not understood; the number of the first, from 1 */
	uint64_t skipped_above;          /* ... those before the first stack */
	uint64_t filtered;               /* samples of other events */
	char *event;                     /* the event taken, NULL when the input has none */
	char *unit;                      /* of a document: what is counted; NULL not known */
	VEC(char *) notes;               /* remarks on the input: what is lost, what has no names */

	const struct stackin_reader *reader;
	void *state;
	struct lines text;
	struct out document;       /* what came of a document so far */
	struct stackin_gzip *gzip; /* NULL: the input is not gzipped */
	bool begun, broken;
};

void stackin_init(struct stackin *in, struct stacktree *tree, const struct stackin_options *o);
void stackin_feed(struct stackin *in, const char *text, size_t len);
/* The end of the input: what stands open is counted, a document is read. */
struct err *stackin_end(struct stackin *in);
void stackin_fini(struct stackin *in);

/* All of a file, "-" is standard input: feed and end. */
struct err *stackin_read(struct stackin *in, const char *path);

#endif
