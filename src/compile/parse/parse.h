/* D text -> tree.
 *
 * In: source texts added to `diags`, macro values, and the callback is_type.
 * Out: a list of top-level nodes. Errors go to diags (several per run, one per cause), and parsing
 * continues at the next statement or clause.
 * Always true: no input makes the parser crash or loop; every node has loc and end. */
#ifndef DESCRY_COMPILE_PARSE_PARSE_H
#define DESCRY_COMPILE_PARSE_PARSE_H

#include "ast.h"

/* Values for $1.. $target etc. */
struct macro_args {
	char **argv; /* argv[0] = $0 */
	uint32_t argc;
	bool *used;     /* argc entries; the parser sets those that the source uses */
	int64_t target; /* $target; -1: not set */
	int64_t pid, ppid, pgid, sid, uid, euid, gid, egid;
	bool defaultargs; /* -x defaultargs: a missing argument is 0 or "" */
	const char *(*get)(void *arg,
			   const char *name); /* further names (-x define); may be NULL */
	void *get_arg;
};

struct parse_cx {
	struct arena *arena;
	struct diags *diags;
	struct macro_args *macros;
	/* The parser calls is_type() for an identifier at a place where both a type name and an
	 * expression could stand, unless the program has declared the name by typedef. is_type()
	 * must return false for the caller's variables and inlines: "(pid) - 1" is a difference,
	 * even if the kernel has a type pid. */
	bool (*is_type)(void *arg, const char *module, const char *name);
	void *is_type_arg;
	/* `#pragma D option` in the source also sets pspec, empty and macros->defaultargs. */
	bool pspec; /* -x pspec */
	bool empty; /* -x empty: a source without any program is no error */
	/* Whether a clause without a body is an error depends on source->kind: it is in a file (-s)
	 * and is not in an argument (-n etc.). */
	struct hash *typedefs; /* names declared by typedef, kept between sources; may start empty */
};

/* The field of a probe description that the first word of a -P/-m/-f/-n argument gives. -n: the
 * name; the other three fields may precede it. */
enum pdesc_form { PDESC_NAME, PDESC_FUNC, PDESC_MOD, PDESC_PROV, PDESC_ID };

/* Parses all of source number `src` (index into diags->sources). Returns its top-level nodes, NULL
 * when there are none. `form` selects how its probe descriptions are read. Files use PDESC_NAME. */
struct node *parse_source(struct parse_cx *cx, uint32_t src, enum pdesc_form form);

/* Parses "pid$target:libc.so::entry", for tools and tests. Returns NULL, with a diagnostic, when
 * the text is malformed. */
struct pdesc *parse_pdesc_text(struct parse_cx *cx, uint32_t src, enum pdesc_form form);

#endif
