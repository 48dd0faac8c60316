/* Source texts, positions and the diagnostics of wrong D.
 *
 * A `loc` is a 32-bit offset into all sources read, in reading order. Every token, AST node, IR and
 * eBPF instruction has one. Loc 0 means "nowhere".
 *
 *	hot.d:12:9: error: unknown aggregation @x [D_AGG_NULL]
 *	   12 |   printa(@x);
 *	      |          ^~
 */
#ifndef DESCRY_BASE_DIAG_H
#define DESCRY_BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint32_t loc_t;

/* Limit of a message's bytes, and of a program's text that is printed as its name. */
enum { DIAG_TEXT_MAX = 1000 };

enum source_kind {
	SOURCE_FILE, /* -s file: a bare probe description is an error */
	SOURCE_ARG, /* -n, -P, -m, -f, -i argument; its name is its own text in DTrace's messages */
	SOURCE_LIB, /* dlib/ */
};

struct source {
	char *name; /* path, or the program text for SOURCE_ARG */
	enum source_kind kind;
	char *text; /* NUL-terminated copy, owned */
	uint32_t len;
	loc_t base;                /* loc of text[0]; text[i] is base + i */
	struct source_mark *marks; /* cpp's line markers, private to diag.c */
	uint32_t nmarks;
};

enum diag_level { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE };

struct diag {
	enum diag_level level;
	const char *tag; /* "D_SYNTAX", static; NULL for notes */
	loc_t loc, end;  /* end: offset behind the last byte to underline; 0: a single caret */
	char *text;
};

struct diags {
	struct source *sources;
	uint32_t nsources;
	struct diag *list;
	uint32_t n, cap, errors, warnings;
	uint32_t limit; /* errors and warnings above this are dropped and counted; 0: 20 */
	bool dropping;  /* the last error or warning was dropped: drop its notes too */
};

void diags_init(struct diags *d);
void diags_fini(struct diags *d);
/* Adds a source and copies its text. The returned pointer is valid until the next source_add; the
 * index (nsources - 1) stays valid. */
struct source *source_add(struct diags *d, enum source_kind kind, const char *name,
			  const char *text, size_t len);
const struct source *source_of(const struct diags *d, loc_t loc);
/* Returns the 1-based line and column (bytes) of a position, and false for loc 0 or a loc that no
 * source holds. A `# 12 "file"` line marker written by cpp (-C) renumbers lines, and ret_name is
 * its name. */
bool source_pos(const struct diags *d, loc_t loc, const char **ret_name, uint32_t *ret_line,
		uint32_t *ret_col);

/* Returns true when further errors are not shown. A caller need not search for a hint then. */
bool diags_full(const struct diags *d);
/* Returns how many bytes of text are shown, for printf's "%.*s%s" with DIAG_CUT() behind. */
int diag_shown(const char *text);
#define DIAG_CUT(text) ((text)[diag_shown(text)] ? "..." : "")

void diag_error(struct diags *d, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void diag_note(struct diags *d, loc_t loc, loc_t end, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void diag_warn(struct diags *d, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* A place in the list of diagnostics. diags_forget() removes all behind it. */
struct diags_mark {
	uint32_t n, errors, warnings;
};
struct diags_mark diags_mark(const struct diags *d);
void diags_forget(struct diags *d, struct diags_mark mark);

struct diag_style {
	bool color;
	bool dtrace; /* DTrace's own one-line form, "dtrace: failed to compile script F: line N: msg" */
	bool errtags;         /* with dtrace: "[D_TAG] line N: msg" */
	const char *progname; /* "descry" or "dtrace" */
};
/* Prints all diagnostics in order. Prints only the part of a long line around the caret. */
void diags_print(const struct diags *d, const struct diag_style *style, FILE *out);

#endif
