/* The command line of dtrace(1), as a value. */
#ifndef DESCRY_CMD_CMDLINE_H
#define DESCRY_CMD_CMDLINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"
#include "base/mem.h"
#include "compile/parse/parse.h"
#include "data/options.h"

/* One -s, -n, -P, -m, -f or -i, in order. */
struct cmd_program {
	enum pdesc_form form;
	bool file;
	const char *text; /* program text, or path */
};

struct cmd_set {
	const char *text;
}; /* -x name=value, in order */

enum cmd_mode {
	CMD_TRACE,
	CMD_LIST,
	CMD_COMPILE /* -e */,
	CMD_VERSION,
	CMD_HELP,
	CMD_HEADER /* -h */,
	CMD_OBJECT /* -G */
};

struct cmdline {
	const char *progname; /* "descry" or "dtrace": prefix of messages */
	bool dtrace_name;
	enum cmd_mode mode;
	VEC(struct cmd_program) programs;
	VEC(struct cmd_set) sets;
	VEC(const char *) cpp_args; /* -D -U -I -H for the preprocessor */
	VEC(const char *) libdirs;
	VEC(const char *) commands; /* -c */
	VEC(pid_t) pids;            /* -p */
	VEC(uint64_t) starts;       /* procdir_start() of each of them, when it was named */
	VEC(char *) args;           /* $0, $1... */
	const char *output;         /* -o */
	const char *
		dump; /* -d parse,bind,ir,ebpf: printed, and the run ends with the last; -S is ebpf and goes on */
	bool dump_only;
	const char *not_destructive; /* reason against -x destructive; NULL: none */
	const char *not_terminal; /* why programs may not set options for the user at the terminal;
				   * NULL: they may */
	const char *not_engine;   /* why programs may not set the option engine; NULL: they may */
	bool catalog;             /* CMD_LIST prints as descry list does, `words` too */
	VEC(const char *) words;  /* each a part of a probe's name */
	bool verbose, json;
};

/* Makes an empty command line. name is $0 and begins messages. */
void cmdline_init(struct cmdline *c, char *name);
/* Takes one option of trace_opts. Returns 0; -1 when the table has no option o; else the exit
 * status, after a message. */
int cmdline_take(struct cmdline *c, int o, const char *arg);
/* Called after the last option: makes $0 the script's name if there is a script. */
void cmdline_name_script(struct cmdline *c);
/* Parses the command line. Returns 0, or the exit status after a message: 2 for wrong usage. */
int cmdline_parse(struct cmdline *c, int argc, char **argv);
void cmdline_fini(struct cmdline *c);
/* Print the options of tracing, and the options of -x. */
void cmdline_help(const char *progname, FILE *out);
void cmdline_help_settings(FILE *out);

/* list.c */
struct bind_cx;
int cmdline_list(struct cmdline *c, struct bind_cx *cx);

/* header.c: writes the header for building a program with probes of its own (USDT), from the
 * provider definitions in the sources. */
int cmd_header(struct cmdline *c, struct node *const *tops, uint32_t n);
/* link_object.c: -G. Returns the exit status. Wrong D is in bind's diagnostics, which are not
 * printed yet. */
int cmd_object(struct cmdline *c, struct bind_cx *bind, struct node *const *tops, uint32_t n);

#endif
