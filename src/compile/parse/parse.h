/* D text -> tree.
 *
 * In: source texts added to `diags`, macro values, and an answer to "is this a type name?".
 * Out: a list of top-level nodes; errors go to diags (several per run, one per cause) and parsing
 * goes on at the next statement or clause.
 * Always true: never crashes or loops on any bytes; every node has loc and end.
 */
#ifndef DESCRY_COMPILE_PARSE_PARSE_H
#define DESCRY_COMPILE_PARSE_PARSE_H

#include "ast.h"

/* Values for $1.. $target etc. */
struct macro_args {
	char **argv; /* argv[0] = $0 */
	uint32_t argc;
	bool *used;     /* argc entries, set by the parser */
	int64_t target; /* $target; -1: not set */
	int64_t pid, ppid, pgid, sid, uid, euid, gid, egid;
	bool defaultargs; /* -x defaultargs: missing is 0 or "" */
	const char *(*get)(void *arg,
			   const char *name); /* further names (-x define style), may be NULL */
	void *get_arg;
};

struct parse_cx {
	struct arena *arena;
	struct diags *diags;
	struct macro_args *macros;
	/* Asked for an identifier in a place where a type name and an expression both could stand,
	 * and the program itself has not declared the name by typedef (the parser knows those by
	 * itself). Must be false for the names of variables and inlines the caller knows: "(pid) -
	 * 1" is a difference, whatever the kernel calls pid. */
	bool (*is_type)(void *arg, const char *module, const char *name);
	void *is_type_arg;
	/* These two, and macros->defaultargs, are also set by `#pragma D option` in the source. */
	bool pspec; /* -x pspec */
	bool empty; /* -x empty: a source that holds no program is no error */
	/* A file given by -s: clauses without body are errors. -n etc.: allowed. Taken from
	 * source->kind. */
	struct hash *
		typedefs; /* names declared by typedef so far, kept between sources; may start empty */
};

/* Which field of a probe description the first word of a -P/-m/-f/-n argument is (-n: name, all
 * four allowed). */
enum pdesc_form { PDESC_NAME, PDESC_FUNC, PDESC_MOD, PDESC_PROV, PDESC_ID };

/* Parses all of source number `src` (index into diags->sources) and returns its top-level nodes,
 * NULL when none. `form` says how its probe descriptions are read: files use PDESC_NAME. */
struct node *parse_source(struct parse_cx *cx, uint32_t src, enum pdesc_form form);

/* "pid$target:libc.so::entry" -> pdesc, for tools and tests. NULL (with diag) when malformed. */
struct pdesc *parse_pdesc_text(struct parse_cx *cx, uint32_t src, enum pdesc_form form);

#endif
