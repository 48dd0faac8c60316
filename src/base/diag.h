/* Source texts, positions and the diagnostics of wrong D (STYLE: errors, kind 1).
 *
 * A `loc` is a 32-bit offset into all sources read, in reading order: token, AST node, IR and each
 * eBPF instruction carry one. Loc 0 means "nowhere".
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

/* A message is cut after so many bytes, and so is a program's text where it stands for its name. */
enum { DIAG_TEXT_MAX = 1000 };

enum source_kind {
	SOURCE_FILE, /* -s file: a bare probe description is an error */
	SOURCE_ARG, /* -n, -P, -m, -f, -i argument: name is e.g. "-n" argument's own text in DTrace's messages */
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
	loc_t loc, end;  /* end: one past the last byte to underline; 0 = one caret */
	char *text;
};

struct diags {
	struct source *sources;
	uint32_t nsources;
	struct diag *list;
	uint32_t n, cap, errors, warnings;
	uint32_t limit; /* further errors, and further warnings, are dropped and counted; 0 = 20 */
	bool dropping;  /* the last error or warning was: its notes go with it */
};

void diags_init(struct diags *d);
void diags_fini(struct diags *d);
/* Copies text. The returned pointer is valid until the next source_add; the index (nsources - 1)
 * stays. */
struct source *source_add(struct diags *d, enum source_kind kind, const char *name,
			  const char *text, size_t len);
const struct source *source_of(const struct diags *d, loc_t loc);
/* 1-based line and column (bytes). False for loc 0 or a loc no source holds. A `# 12 "file"` line
 * marker written by cpp (-C) renumbers: ret_name is the marked name. */
bool source_pos(const struct diags *d, loc_t loc, const char **ret_name, uint32_t *ret_line,
		uint32_t *ret_col);

/* Are there as many errors as are shown? Whoever searches for a hint may save the effort. */
bool diags_full(const struct diags *d);
/* The bytes of text that are shown of it, for printf's "%.*s%s" with DIAG_CUT() behind. */
int diag_shown(const char *text);
#define DIAG_CUT(text) ((text)[diag_shown(text)] ? "..." : "")

void diag_error(struct diags *d, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void diag_note(struct diags *d, loc_t loc, loc_t end, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void diag_warn(struct diags *d, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

struct diag_style {
	bool color;
	bool dtrace; /* DTrace's own one-line form, "dtrace: failed to compile script F: line N: msg" */
	bool errtags;         /* with dtrace: "[D_TAG] line N: msg" */
	const char *progname; /* "descry" or "dtrace" */
};
/* Prints all diagnostics in order. Of a long line only the part around the caret is shown. */
void diags_print(const struct diags *d, const struct diag_style *style, FILE *out);

#endif
