/* Reads stacks of tracers and profilers into a stack tree.
 *
 * In: the bytes of a file or pipe, in pieces of any size, gzipped or not. Texts: folded, perf
 * script, bpftrace, SystemTap, DTrace or descry. Documents: perf.data, pprof, speedscope. The first
 * bytes and lines determine the format. Out: stacks with counts in `tree`, and counts of the data
 * that could not be read. Always true: for a text, memory grows with the distinct frames and
 * stacks, not with the input. Lines that are no stack are skipped and counted, and are never an
 * error. A damaged document is an error. Control bytes and invalid UTF-8 pass into the names
 * unchanged. The text of all stacks grows with the input: a frame of a few bytes can stand for a
 * name of 64 kB, so a small document could make any amount of text.
 */
#ifndef DESCRY_INPUT_STACKIN_STACKIN_H
#define DESCRY_INPUT_STACKIN_STACKIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/out.h"
#include "input/input_lines.h"
#include "view/stacktree.h"

enum stackin_format {
	STACKIN_AUTO,
#define FORMAT(id, reader, name) STACKIN_##id,
#include "input/stackin/formats.def"
#undef FORMAT
	STACKIN_NFORMATS
};
/* Returns the format, or NULL and AUTO when there is none of this name. */
const char *stackin_format_name(enum stackin_format f);
enum stackin_format stackin_format_named(const char *name);
/* Returns true for a format that is read as a whole, not line by line. */
bool stackin_is_document(enum stackin_format f);

struct stackin_options {
	enum stackin_format format;
	double factor; /* counts are multiplied by it; 0 = 1 */
	/* for perf script and perf.data: */
	bool kernel, jit; /* frames are of these kinds; otherwise native */
	bool module;      /* MODULE`FUNCTION */
	bool addrs;       /* shows the address where there is no name */
	bool pid, tid;    /* adds the numbers behind the command's name */
	/* takes only samples of this event (type, profile); NULL: of the first */
	const char *event;
	bool no_symbols; /* perf.data: opens no other file; frames are [module] */
};

/* A stack that a reader collects. */
struct stackin_frames {
	VEC(uint32_t) ids; /* leaf first */
	VEC(uint32_t)
	base; /* root first: what is known of the whole stack, such as the command's name */
	VEC(char) scratch;
};

struct stackin {
	struct stacktree *tree;
	struct stackin_options options;
	enum stackin_format format; /* as recognised */
	uint64_t lines, stacks;
	uint64_t skipped, first_skipped; /* lines not understood; the number of the first, from 1 */
	uint64_t skipped_above;          /* ... those before the first stack */
	uint64_t filtered;               /* samples of other events */
	uint64_t given;                  /* bytes of the input, unpacked */
	uint64_t text_bytes;             /* of the distinct stacks that readers counted as frames */
	char *event;       /* the event whose samples were taken, NULL when the input has none */
	char *unit;        /* of a document: the unit of the counts; NULL: not known */
	VEC(char *) notes; /* remarks on the input: losses, missing names */

	const struct stackin_reader *reader;
	void *state;
	struct stackin_frames frames;
	struct lines text;
	struct out document;           /* the part of a document that was read so far */
	struct stackin_gzip *gzip;     /* NULL: the input is not gzipped */
	bool begun, broken, overgrown; /* overgrown: text_bytes is too large for `given` */
};

void stackin_init(struct stackin *in, struct stacktree *tree, const struct stackin_options *o);
void stackin_feed(struct stackin *in, const char *text, size_t len);
/* Ends the input: counts an open stack, reads a document. */
struct err *stackin_end(struct stackin *in);
void stackin_fini(struct stackin *in);

/* Reads a whole file ("-" is standard input): feed and end. */
struct err *stackin_read(struct stackin *in, const char *path);

#endif
