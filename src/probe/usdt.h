/* The argument text of stapsdt notes, "-4@%edi 8@-8(%rbp)"; the processes that have USDT probes:
 * private to src/probe/. */
#ifndef DESCRY_PROBE_USDT_H
#define DESCRY_PROBE_USDT_H

#include "probe/probe.h"

/* Decodes one operand of n bytes. addr is the probe's link-time address in o, for operands relative
 * to the instruction pointer and for symbols (refused when o is NULL). On false, *ret_reason is the
 * reason. */
bool usdt_parse_operand(const char *text, size_t n, struct object *o, uint64_t addr,
			struct usdt_operand *ret, const char **ret_reason);
/* Finds the next operand of an argument text and moves *text behind it. Returns false at the
 * end. */
bool usdt_next_operand(const char **text, const char **ret_start, size_t *ret_n);

/* Returns the register with this number in x86's order: enum user_reg. */
int8_t usdt_x86_reg(uint8_t number);

struct process_object;

/* --- usdt_machine.c --- */
/* Calls found for each executable object that has a probe of a matching provider, in each process
 * but descry itself. The pattern includes the process's pid. The first call for a probe set looks
 * at all processes. Later calls use what the first call saw, so all descriptions of a program see
 * the same processes. They do not see a process that started after the first call. */
void usdt_machine_match(struct probe_set *ps, const char *prov_pattern,
			void (*found)(void *arg, const struct process_object *po), void *arg);

/* --- usdt_questions.c --- */
/* Returns the places of the file where the program asks whether the probe is enabled. A function
 * that asks need not be the function that has the probe. The list lives as long as the probe set;
 * probes of one name share it. */
const struct object_question *const *usdt_questions(struct probe_set *ps, struct object *o,
						    const struct object_usdt *u, uint32_t *ret_n);
/* NULL: nothing. */
void usdt_questions_free(struct usdt_questions *q);

/* --- usdt_python.c --- */
/* Returns true for a probe that CPython passes only while another one is enabled. */
bool usdt_is_python_entry(struct object *o, const struct object_usdt *u);
/* Returns what stands for the notes of functions that a Python lacks: they have no address. *ret_n
 * of them. */
const struct object_usdt *usdt_python_unnoted(struct object *o, uint32_t *ret_n);
/* Places that are always passed instead, by link-time address: file, function and line. */
enum { USDT_PYTHON_PLACES = 8, USDT_PYTHON_ARGS = 3 };
struct usdt_python_place {
	uint64_t addr;
	struct usdt_operand args[USDT_PYTHON_ARGS];
};
struct usdt_python {
	struct usdt_python_place v[USDT_PYTHON_PLACES];
	uint32_t n;
};
/* Finds them, once for each file and probe set. Returns NULL and sets *ret_reason when they are not
 * known. */
const struct usdt_python *usdt_python_places(struct probe_set *ps, const struct process_object *po,
					     const struct object_usdt *u, const char **ret_reason);

/* --- usdt_names.c --- */
struct usdt_names {
	const char *mod, *func; /* as struct probe's */
	/* Of texts without an end: D texts of their addresses and lengths; NULL: they have one. */
	const char *mod_at, *mod_length, *func_at, *func_length;
	/* D texts of the arguments of __by_id() that are the texts; NULL: the texts move. */
	const char *texts;
	/* D conditions under which the process has the texts; where it has not, they are not
	 * ASCII. NULL: it always has. */
	const char *mod_known, *func_known;
	const char *java; /* name of the probe of the provider java; NULL: none */
	bool slashes;     /* a class has slashes where a description has dots */
};
/* Returns the names of a probe that fires in functions of a language, NULL: of another probe. */
const struct usdt_names *usdt_names(const struct object_usdt *u);
/* Returns the D condition by which patterns select names, "": all. Comparing texts is inside of
 * __by_id(). NULL: the patterns have more wildcards than one at the beginning and one at the
 * end. */
const char *usdt_names_filter(struct arena *a, const struct usdt_names *names, const char *mod,
			      const char *func);

/* --- usdt_java.c --- */
/* Returns the place of the access flags in a Method, 0: arguments of methods cannot be read in this
 * JVM. */
uint32_t usdt_java_access(struct probe_set *ps, pid_t pid);
/* Returns what descry's library needs where the interpreter has no code for the probes of methods.
 * NULL: not in this JVM. */
const struct probe_java_interpreter *usdt_java_interpreter(struct probe_set *ps, pid_t pid);
/* Sets args[] of the methods that a description names. */
void usdt_java_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);
/* Returns true when a flag of a JVM that is true is so by another tracer, and false soon. */
bool usdt_java_flag_is_tracers(pid_t pid, const char *name);
/* NULL: nothing. */
void usdt_javas_free(struct usdt_java *v);

/* --- usdt_interpreter.c --- */
struct jvm;
/* The same, in the arena. */
const struct probe_java_interpreter *usdt_interpreter(struct arena *a, struct jvm *v);

/* --- usdt_jvm.c --- */
/* Finds a variable by which a program knows whether to pass a probe. The in-process engine writes
 * there, so it must be data of this file. */
bool usdt_flag_find(struct object *o, const char *name, uint64_t *ret);
/* Returns true when an address is in data of the file that the program may write. */
bool usdt_is_data(struct object *o, uint64_t addr);
/* Returns the flag's byte in the process, 0 when it cannot be read. */
uint8_t usdt_flag_now(const struct process_object *po, uint64_t addr);
/* A flag of the JVM without which it does not pass a probe. */
struct usdt_jvm_flag {
	const char *name;            /* NULL: the probe needs none, or the flag is set already */
	uint64_t addr;               /* as struct probe's flag; 0: none */
	const char *refused;         /* the reason why nothing sets it */
	struct probe_java_switch on; /* of a running JVM; what NULL: none */
};
/* loaded: the JVM is in the process, and may have compiled functions. */
struct usdt_jvm_flag usdt_jvm_flag(struct probe_set *ps, const struct process_object *po,
				   const struct object_usdt *u, bool loaded);

/* The methods' probes of a running JVM that was built without notes, and the texts that name the
 * methods. Returns their number, 0: it has notes, or descry does not know where they would be. */
enum { USDT_JAVA_UNNOTED = 2 };
uint32_t usdt_java_unnoted(struct probe_set *ps, const struct process_object *po,
			   struct object_usdt ret[USDT_JAVA_UNNOTED],
			   struct usdt_names ret_names[USDT_JAVA_UNNOTED]);

/* --- usdt_ruby.c --- */
/* The probes that Ruby passes only while a TracePoint is enabled. */
enum usdt_ruby_kind {
	USDT_RUBY_OTHER,
	USDT_RUBY_ENTRY,
	USDT_RUBY_RETURN,
	/* only where a build has no notes */
	USDT_RUBY_MARK_BEGIN,
	USDT_RUBY_MARK_END,
	USDT_RUBY_RAISE,
	USDT_RUBY_KINDS,
};
enum usdt_ruby_kind usdt_ruby_kind(const struct object_usdt *u);
/* Returns why a probe of Ruby must stay off: Ruby's own code for it harms the program. NULL: it
 * need not. */
const char *usdt_ruby_refusal(const struct object_usdt *u);
/* Returns the name that a probe had in other systems, NULL: none. */
const char *usdt_ruby_old_name(const struct object_usdt *u);
/* Places that are always passed instead: class, method, file and line. The first nentries begin a
 * method. At the others a frame of any kind ends, whose flags are there. */
enum { USDT_RUBY_ARGS = 4, USDT_RUBY_LINE_ARGS = 2, USDT_RUBY_RAISE_ARGS = 3 };
struct usdt_ruby_place {
	uint64_t addr;
	struct usdt_operand args[USDT_RUBY_ARGS], flags;
};
struct usdt_ruby {
	struct usdt_ruby_place *v;
	uint32_t n, nentries;
};
/* The probe `line`, for which Ruby has no note. */
struct usdt_ruby_line {
	uint64_t addr;
	uint64_t flag;       /* as struct probe's; 0: it is set already */
	const char *refused; /* the reason why it cannot fire; the rest is not set */
	struct usdt_operand args[USDT_RUBY_LINE_ARGS]; /* file, line */
};
/* Finds it. loaded: Ruby has run in the process. Returns false when the object is not Ruby. */
bool usdt_ruby_line(const struct process_object *po, bool loaded, struct usdt_ruby_line *ret);

/* As usdt_python_unnoted(), for a Ruby's notes of methods: *ret_n of them. */
const struct object_usdt *usdt_ruby_unnoted(struct object *o, uint32_t *ret_n);
/* Returns why these places would miss calls in a Ruby that runs, NULL: they do not. */
const char *usdt_ruby_compiled(const struct process_object *po);
/* Finds the place of an exception in a file: class, file and line. Returns the reason when it does
 * not. */
const char *usdt_ruby_raise(struct object *o, struct usdt_ruby_place *ret);
/* Finds the place of a USDT_RUBY_MARK_* in a file. Returns the reason when it does not. */
const char *usdt_ruby_mark(struct object *o, enum usdt_ruby_kind kind, uint64_t *ret_addr);
/* As usdt_python_places(). */
const struct usdt_ruby *usdt_ruby_places(struct probe_set *ps, const struct process_object *po,
					 const char **ret_reason);

/* The data of a probe that usdt_args() needs. */
struct usdt_place {
	struct object *object;
	uint64_t addr;
	const char *args;
	const char *types; /* as struct object_usdt's */
	/* instead of args, when noperands is not 0 */
	struct usdt_operand operands[USDT_RUBY_ARGS];
	uint32_t noperands;
	struct usdt_operand flags; /* of Ruby's frame, for the filter; size 0: none */
};

/* usdt_args.c: provider.args. */
struct err *usdt_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);

#endif
