/* Tracing as a library: takes D programs and processes, and gives their output to a sink.
 *
 * In: options, processes, sources, a sink. Out: calls of the sink; messages for a person, by a
 * callback. Order of calls: session_init(), the options (session.options), session_grab() and
 * session_command(), session_source(), session_bind(), session_compile(), session_load(),
 * session_start(), session_poll() as long as it is true, session_stop(); session_fini() at any
 * time. Always true: only the sink prints, and nothing is global. Several sessions may be open, and
 * one thread at a time uses each.
 */
#ifndef DESCRY_SESSION_H
#define DESCRY_SESSION_H

#include <signal.h>

#include "compile/bind/bind.h"
#include "consume/consume.h"
#include "load/java_switch.h"
#include "load/plan/plan.h"
#include "load/ruby_watch.h"
#include "session/session_budget.h"

struct kernel_names;

/* The settings of a session; zeroes are the default. Borrowed for the session's life. */
struct session_setting {
	const char *progname; /* messages begin with it; NULL: "descry" */
	bool dtrace;          /* messages and listings have DTrace's form */
	FILE *diagnostics;    /* takes diagnostics; NULL: message() takes them */
	bool color;           /* diagnostics have colours */
	/* Takes text for a person, as a rule by whole lines. NULL: such text is dropped. */
	void (*message)(void *arg, const char *text, size_t n);
	/* Returns 1 when the user has requested the end, 2 for an end without output. NULL: the
	 * user never requests it. */
	int (*stop)(void *arg);
	void *arg;
	int output;       /* descriptor of started programs' standard output; 0: its own */
	const char *user; /* whose started programs are; NULL: this user's */
	char **args;      /* $0, $1... */
	uint32_t nargs;
	const char *const *libdirs; /* further directories of D libraries */
	uint32_t nlibdirs;
	const char *const *cpp_args; /* for the preprocessor */
	uint32_t ncpp_args;
	const char *not_destructive; /* reason against -x destructive; NULL: none */
	const char *not_engine;      /* reason against -x engine; NULL: none */
	const char *not_terminal;    /* reason against options for the user at the terminal: core,
				   * debug, tree, verbose; NULL: none */
	struct symbols *symbols;     /* of another session, to share; NULL: its own */
	const struct engine_type *engine; /* without -x engine; NULL: plan.c chooses */
	FILE *ir_out;                     /* where IR is printed; NULL: nowhere */
	bool parse_only;                  /* sources are not bound */
	bool silent_ends;                 /* no message when a target ends */
	bool brief;                       /* nothing will run: no message about replaced values */
	/* With -x follow, processes that execute another program are not traced there with the
	 * same probes. The caller takes them: session_executed(). */
	bool hands_over;
	bool leaves_commands; /* a command that still runs at the end is not terminated */
};

/* A process that has executed another program, held before it runs its own code. */
struct executed {
	pid_t pid;
	struct control *control; /* NULL: the process runs */
};

enum { SESSIONS_MAX = 64 }; /* of one run: session_poll_all() */

/* The subject of an error. The caller gives the error's text as a message, except for wrong D. */
enum session_failure {
	SESSION_WORLD,        /* a file, a process, a privilege */
	SESSION_WRONG_D,      /* messages have its diagnostics already */
	SESSION_WRONG_OPTION, /* an option has an invalid value */
};

struct session {
	struct session_setting o;
	enum session_failure failure; /* of the last error */
	struct arena arena;
	struct diags diags;
	struct options options;
	struct type_graph *types;
	struct symbols *symbols;
	struct languages *languages;       /* interpreters of traced processes */
	struct kernel_names *kernel_names; /* names of the kernel, for symbols */
	struct probe_set probes;
	struct macro_args macros;
	struct hash typedefs;
	struct parse_cx parse;
	struct bind_cx bind;
	VEC(struct node *) tops; /* of each source */
	VEC(struct target) targets;
	struct bound *bound;
	struct engine_plan plan;
	struct java_switches java; /* running JVMs that pass probes for this session */
	struct ruby_watch ruby;    /* Rubies that may begin to compile their methods */
	uint32_t ncompiled;        /* number of those that did */
	struct sink *sink;
	struct consumer *consumer;
	struct budget budget;
	double share;                    /* of the machine that tracing may use, 0: no limit */
	VEC(struct executed) executed;   /* not taken by session_executed() yet */
	bool names_user;                 /* reads mappings early, to name user addresses */
	uint64_t began;                  /* CLOCK_MONOTONIC ns */
	uint32_t remarks;                /* number of the engine's remarks that were reported */
	bool types_said;                 /* the limit of types was reported */
	bool untrusted_said;             /* a file of another user was */
	int status;                      /* given to exit() */
	volatile sig_atomic_t finishing; /* tracing has ended, and the collected data is printed */
};

void session_init(struct session *s, const struct session_setting *o);
void session_fini(struct session *s);

/* Adds a running process to the targets; $target is the last target. */
struct err *session_grab(struct session *s, pid_t pid);
/* Adds a command line to the targets: starts it and holds it. Uses the options engine and
 * evaltime. */
struct err *session_command(struct session *s, const char *command);

/* Adds a process that session_executed() of another session has given. Takes ownership of its
 * control. */
struct err *session_hold(struct session *s, const struct executed *x);

/* Prepares the compiler when the options are final. session_source() calls it if necessary. */
void session_ready(struct session *s);
/* Parses a program: a text, or the file at the path `text`. Keeps the diagnostics for later. */
struct err *session_source(struct session *s, enum pdesc_form form, bool file, const char *text);
/* Binds all sources: sets s->bound. For wrong D, this function, session_compile() and
 * session_load() give the diagnostics as messages and fail with SESSION_WRONG_D. */
struct err *session_bind(struct session *s);
/* Returns true when the program has a probe that could fire. */
bool session_enables(const struct session *s);
/* Compiles s->plan.image for the first engine that may run here. Fails with SESSION_WRONG_OPTION
 * when an option has an invalid value. */
struct err *session_compile(struct session *s);
/* Returns true when the options permit running the compiled program. */
struct err *session_allowed(const struct session *s);
/* Loads the image. When an engine is refused, compiles for the next one and loads that. */
struct err *session_load(struct session *s);

/* Starts tracing. Takes ownership of sink even on failure; of its fields the caller may set only
 * `out`. */
struct err *session_start(struct session *s, struct sink *sink);
/* Waits for records, at most timeout_ms (-1: as long as the option switchrate says), and runs their
 * actions. Returns false when tracing must end; *ret_err is the error, if any. */
bool session_poll(struct session *s, int timeout_ms, struct err **ret_err);
/* Does the same for n sessions: their records come out in one order. Returns false when s[0] must
 * end; *ret_err is the error of any. */
bool session_poll_all(struct session *const *s, uint32_t n, int timeout_ms, struct err **ret_err);
/* Takes the next process that has executed another program (setting.hands_over). Returns false when
 * there is none. */
bool session_executed(struct session *s, struct executed *ret);
/* Traces such a process of any session with the probes that this one has for its target `like`,
 * which began in the same program. Takes ownership of its control, also on failure. */
struct err *session_enter(struct session *s, const struct executed *x, pid_t like);
/* Returns true when the session can trace such processes. */
bool session_can_enter(const struct session *s);
/* Returns true when the session traces no process now. */
bool session_is_idle(const struct session *s);
/* Does session_catch_up() for n sessions, in one order. */
struct err *session_catch_up_all(struct session *const *s, uint32_t n, uint64_t until);
/* Runs the actions of the records of events that happened before `until` (CLOCK_MONOTONIC). Ends
 * early when the user requests the end meanwhile. */
struct err *session_catch_up(struct session *s, uint64_t until);
/* Gives the sink the present aggregations (printa with r and a NULL). */
struct err *session_show(struct session *s);
/* After session_load() or session_start() has failed: is it that all processes of -p have ended
 * meanwhile? Says so, as of processes that end while they are traced. */
bool session_outlived(struct session *s);
/* Ends tracing, and gives the sink the remaining data. e: the error of session_poll(), or NULL;
 * takes ownership of it. */
struct err *session_stop(struct session *s, struct err *e);

/* Gives text as a message: whole lines. */
void session_message(void *session, const char *text, size_t n);
/* Gives a message, with the program's name in front and a line feed at the end. */
void session_say(const struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Gives the compiler's diagnostics so far as messages. Returns true when there are errors. */
bool session_diagnose(struct session *s);
/* Prints once what of the debugging information was not read. */
void session_say_debug(struct session *s);

/* cpp.c: preprocesses the text of a program with cpp(1). */
struct err *session_preprocess(const struct session *s, const char *name, const char *text,
			       size_t len, char **ret_text, size_t *ret_len);

#endif
