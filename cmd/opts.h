/* The options of a command, in one table. getopt(3), --help and the shells' completion are made
 * from it.
 *
 * In: an array of struct opt, ended by a zeroed one. Lifetime: static.
 */
#ifndef DESCRY_CMD_OPTS_H
#define DESCRY_CMD_OPTS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

struct opt {
	int id;             /* a short option's letter, else from 256; 0: doc is a heading */
	const char *name;   /* the long name, NULL: none */
	const char *arg;    /* its argument in the help, NULL: none; "[=N]": optional */
	const char *values; /* for completion: words, or one of the OPT_* below; NULL: anything */
	const char *doc;    /* one line or more; NULL: accepted but not shown (another spelling) */
};

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

/* Arguments for getopt_long(3). */
struct opt_getopt {
	char shorts[128];
	struct option longs[80];
};
void opt_getopt_init(struct opt_getopt *g, const char *prefix, const struct opt *table);

/* Prints the table as help: one or more lines for each option, and the headings. */
void opt_print(const struct opt *table, FILE *f);
/* Returns the option typed as "-o" or "--output"; NULL: none. */
const struct opt *opt_find(const struct opt *table, const char *typed);
/* Returns the long name of the option with this id; NULL: none. */
const char *opt_long_name(const struct opt *table, int id);
/* Returns true when the option takes the next word as its argument. */
bool opt_takes_word(const struct opt *o);

#endif
