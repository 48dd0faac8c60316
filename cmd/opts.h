/* The options of a command, in one table. getopt(3), --help and the shells' completion are made
 * from it.
 *
 * In: an array of struct opt, ended by a zeroed one. Lifetime: static.
 */
#ifndef DESCRY_CMD_OPTS_H
#define DESCRY_CMD_OPTS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The member of a command's struct that opts_take() sets when the option is given. */
enum opt_type {
	OPT_NONE,    /* the command's take() takes the option */
	OPT_BOOL,    /* bool: true */
	OPT_STRING,  /* const char *: the argument */
	OPT_REAL,    /* double, from min to max */
	OPT_WHOLE,   /* uint32_t: such a number without its fraction */
	OPT_INTEGER, /* uint32_t: a whole number */
};
struct opt_into {
	enum opt_type type;
	size_t at; /* in the command's struct */
	double min, max;
};

enum { OPT_LONG = 256 }; /* the id of options without a letter that take() does not take */

struct opt {
	int id;             /* a short option's letter, else from OPT_LONG; 0: doc is a heading */
	const char *name;   /* the long name, NULL: none */
	const char *arg;    /* its argument in the help, NULL: none; "[=N]": optional */
	const char *values; /* for completion: words, or one of the OPT_* below; NULL: anything */
	const char *doc;    /* one line or more; NULL: accepted but not shown (another spelling) */
	struct opt_into into;
};

/* Values of .into, for members of OPTS_OF, which a command defines as its struct. */
#define OPT_IS(member, ctype) \
	sizeof(char[__builtin_types_compatible_p(__typeof__(((OPTS_OF *)0)->member), ctype) ? 1 \
											    : -1])
#define OPT_AT(member, ctype) offsetof(OPTS_OF, member) * OPT_IS(member, ctype)
#define FLAG(member) \
	{ \
		OPT_BOOL, OPT_AT(member, bool) \
	}
#define TEXT(member) \
	{ \
		OPT_STRING, OPT_AT(member, const char *) \
	}
#define REAL(member, min, max) \
	{ \
		OPT_REAL, OPT_AT(member, double), min, max \
	}
#define WHOLE(member, min, max) \
	{ \
		OPT_WHOLE, OPT_AT(member, uint32_t), min, max \
	}
#define INTEGER(member, min, max) \
	{ \
		OPT_INTEGER, OPT_AT(member, uint32_t), min, max \
	}

/* Kinds of values. */
#define OPT_FILE "@file"
#define OPT_DIR "@dir"
#define OPT_PROCESS "@pid"
#define OPT_COMMAND "@command" /* a command line */
#define OPT_SETTING "@setting" /* NAME or NAME=VALUE of options.def */
#define OPT_PROVIDER "@provider"
#define OPT_PROBE "@probe" /* a D program that begins with a probe description */

/* Options for the programs to run and the processes to trace, as descry itself has them; heat and
 * serve pass them on. */
// clang-format off
#define OPTS_PROGRAM \
	{ 'n', NULL, "PROGRAM", OPT_PROBE, "a D program: 'probe /predicate/ { actions }'" }, \
	{ 's', NULL, "FILE", OPT_FILE, "a D script; - is standard input" }, \
	{ 'P', NULL, "PROVIDER", OPT_PROVIDER, "every probe of a provider" }, \
	{ 'm', NULL, "MODULE", NULL, "every probe of a module" }, \
	{ 'f', NULL, "FUNCTION", NULL, "every probe of a function" }, \
	{ 'i', NULL, "ID", NULL, "one probe by its number (of -l)" }, \
	{ 'c', NULL, "COMMAND", OPT_COMMAND, "runs a command, traces it ($target), ends when it ends" }, \
	{ 'p', NULL, "PID", OPT_PROCESS, "traces a process ($target), ends when it ends" }, \
	{ 'x', NULL, "NAME[=VALUE]", OPT_SETTING, "sets an option; descry help options lists them" }, \
	{ 'b', NULL, "SIZE", NULL, "record buffer of each CPU" }, \
	{ 'w', NULL, NULL, NULL, "allows destructive actions" }, \
	{ 'Z', NULL, NULL, NULL, "allows descriptions that match nothing" }, \
	{ 'C', NULL, NULL, NULL, "runs cpp(1) first" }, \
	{ 'D', NULL, "NAME[=TEXT]", NULL, "defines a macro of cpp" }, \
	{ 'U', NULL, "NAME", NULL, "undefines a macro of cpp" }, \
	{ 'I', NULL, "DIRECTORY", OPT_DIR, "where cpp looks for #include files" }, \
	{ 'L', NULL, "DIRECTORY", OPT_DIR, "where more D library files are" }

#define OPT_HELP { 'h', "help", NULL, NULL, "prints this" }
// clang-format on

/* Arguments for getopt_long(3). It returns OPT_LONG and the index of the row for an option whose id
 * is not a letter. */
struct opt_getopt {
	char shorts[128];
	struct option longs[80];
};
void opt_getopt_init(struct opt_getopt *g, const char *prefix, const struct opt *table);

/* How a command takes its options. */
struct opt_parse {
	const char *prefix; /* of getopt's letters; NULL: none */
	const struct opt *table;
	const char *help; /* printed above the table */
	void *into; /* the struct that the rows name members of, and take()'s first argument */
	/* Takes the options whose .into is OPT_NONE. Returns 0; -1 when it does not know the
	 * option; else the exit status, after a message. NULL: there are none. */
	int (*take)(void *into, const struct opt *o, const char *arg);
	struct cmdline *program; /* takes the options that take() does not know; NULL: none */
};
/* Takes the options in front of argv[optind]. Returns 0, or the exit status after a message. Prints
 * the help and ends descry when the help is asked for. */
int opts_take(const struct opt_parse *p, int argc, char **argv);
/* Sets the member of `into` that o names. Returns 0, or the exit status after a message. */
int opt_set(const struct opt *o, void *into, const char *arg);

/* Prints the table as help: one or more lines for each option, and the headings. */
void opt_print(const struct opt *table, FILE *f);
/* Returns the option typed as "-o" or "--output"; NULL: none. */
const struct opt *opt_find(const struct opt *table, const char *typed);
/* Returns true when the option takes the next word as its argument. */
bool opt_takes_word(const struct opt *o);

#endif
