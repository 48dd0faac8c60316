/* Tracing as a library: D programs and processes in, what a sink makes of them out.
 *
 * In: options, processes, sources, a sink. Out: calls of the sink; messages for a person, by a
 * callback. Order of calls: session_init(), the options (session.options), session_grab() and
 * session_command(), session_source(), session_bind(), session_compile(), session_load(),
 * session_start(), session_poll() as long as it is true, session_stop(); session_fini() at any
 * time. Always true: nothing is printed but by the sink, nothing is global; several sessions may be
 * open, each used by one thread at a time.
 */
#ifndef DESCRY_SESSION_H
#define DESCRY_SESSION_H

#include <signal.h>

#include "compile/bind/bind.h"
#include "consume/consume.h"
#include "load/plan.h"
#include "session/budget.h"

struct kernel_names;

/* What a session is made for; zeroes are the default. Borrowed as long as it lives. */
struct session_setting {
	const char *progname; /* messages begin with it; NULL: "descry" */
	bool dtrace;          /* messages and listings as DTrace has them */
	FILE *diagnostics;    /* takes diagnostics; NULL: they are messages */
	bool color;           /* diagnostics have colours */
	/* Takes text for a person: whole lines as a rule. NULL: nobody reads it. */
	void (*message)(void *arg, const char *text, size_t n);
	/* Has somebody asked for the end? 2: and for no output at the end. NULL: nobody ever
	 * does. */
	int (*stop)(void *arg);
	void *arg;
	char **args; /* $0, $1... */
	uint32_t nargs;
	const char *const *libdirs; /* further directories of D libraries */
	uint32_t nlibdirs;
	const char *const *cpp_args; /* of the preprocessor */
	uint32_t ncpp_args;
	const char *not_destructive;      /* why programs may not set the option; NULL: they may */
	const char *not_engine;           /* likewise of `engine` */
	const struct engine_type *engine; /* where -x engine does not name one; NULL: it is chosen */
	FILE *ir_out;                     /* where IR is printed; NULL: nowhere */
	bool parse_only;                  /* sources are not bound */
	bool silent_ends;                 /* no message when a target ends */
	bool brief; /* no message of a value that is taken for another one: nothing will run */
};

struct session {
	struct session_setting o;
	FILE *err; /* calls o.message */
	struct arena arena;
	struct diags diags;
	struct options options;
	struct type_graph *types;
	struct symbols *symbols;
	struct kernel_names *kernel_names; /* which symbols asks */
	struct probe_set probes;
	struct macro_args macros;
	struct hash typedefs;
	struct parse_cx parse;
	struct bind_cx bind;
	VEC(struct node *) tops; /* of each source */
	VEC(struct target) targets;
	struct bound *bound;
	struct engine_plan plan;
	struct sink *sink;
	struct consumer *consumer;
	struct budget budget;
	double share;     /* of the machine that tracing may take, 0 any */
	bool names_user;  /* user addresses become names: mappings must be seen while they last */
	uint64_t began;   /* CLOCK_MONOTONIC ns */
	uint32_t remarks; /* of the engine, that were said */
	int status;       /* of exit() */
	volatile sig_atomic_t
		finishing; /* what was gathered is printed; nothing is traced any more */
};

void session_init(struct session *s, const struct session_setting *o);
void session_fini(struct session *s);

/* The next process to be traced, which runs already; $target is the last one. */
struct err *session_grab(struct session *s, pid_t pid);
/* ... a command line, which is started and held. Looks at the options engine and evaltime. */
struct err *session_command(struct session *s, const char *command);

/* The options are settled: gets the compiler ready. Called by session_source(), if need be. */
void session_ready(struct session *s);
/* A program: its text, or of a file the path. Diagnostics are kept for later. */
struct err *session_source(struct session *s, enum pdesc_form form, bool file, const char *text);
/* All sources are there: s->bound. Wrong D is an error here and in the next two, after its
 * diagnostics have been given as messages: s->diags.errors is not 0 then. */
struct err *session_bind(struct session *s);
/* Would something ever happen? */
bool session_enables(const struct session *s);
/* s->plan.image, for the first engine that may run here. EDOM: an option's value is none. */
struct err *session_compile(struct session *s);
/* May what was compiled be run? */
struct err *session_allowed(const struct session *s);
/* Loads it; compiles for another engine when this one is refused. */
struct err *session_load(struct session *s);

/* Probes fire from now on. Takes sink, of which the caller has set `out` at most, in any case. */
struct err *session_start(struct session *s, struct sink *sink);
/* Waits for records, at most timeout_ms (-1: as long as the option switchrate says), and does what
 * the program says of them. False: tracing is to end, or *ret_err says what failed. */
bool session_poll(struct session *s, int timeout_ms, struct err **ret_err);
/* The sink gets the aggregations as they are now (printa of it, r and a NULL). */
struct err *session_show(struct session *s);
/* Ends tracing, and gives the sink the rest. e: the error of session_poll(), or NULL; taken. */
struct err *session_stop(struct session *s, struct err *e);

/* A message, with the program's name before it and a line feed behind. */
void session_say(const struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Gives what the compiler has said so far as messages. Were there errors? */
bool session_diagnose(struct session *s);

/* cpp.c: text of a program after cpp(1). */
struct err *session_preprocess(const struct session *s, const char *name, const char *text,
			       size_t len, char **ret_text, size_t *ret_len);

#endif
