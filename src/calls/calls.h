/* Library calls of traced processes as one D program, and the text made of its records (`descry
 * calls`).
 *
 * In: processes, filters in ltrace's words, prototypes. Out: a D program, and a sink that takes the
 * program's records: a line for each call, or a table of all. Always true: the program also counts
 * and prints without the sink, which only improves the output. A return belongs to the call whose
 * return address lies at the same place of the thread's stack.
 */
#ifndef DESCRY_CALLS_CALLS_H
#define DESCRY_CALLS_CALLS_H

#include <regex.h>

#include "base/embedded.h"
#include "consume/sink.h"
#include "probe/probe.h"
#include "program/prototype/prototype.h"
#include "program/type/type.h"

/* Argument registers as D has them: the last four lie on the stack. */
enum { CALLS_IN_REGISTERS = 6, CALLS_REGISTERS = 10 };
enum { CALLS_VECTORS = 8, CALLS_MEMORY_MAX = 256, CALLS_UNKNOWN_ARGS = 4 };

struct process_object;

/* One rule of a filter: [+-][SYMBOL][@LIBRARY], both patterns, or regular expressions between
 * slashes. A library that begins with a slash, and does not end with one, is a path. */
struct calls_rule {
	bool minus;
	bool main;                    /* of the program itself: the library is "MAIN" */
	const char *symbol, *library; /* "": any */
	const regex_t *symbol_regex, *library_regex; /* NULL: it is a pattern */
};

/* Zero takes nothing. */
struct calls_filter {
	VEC(struct calls_rule) rules;
	VEC(regex_t *) regexes;
};

/* filter.c: reads a filter such as "malloc+free-@libc.so*" and adds its rules. Returns false when
 * the text is no filter. The rules' texts come from the arena. */
bool calls_filter_read(struct arena *a, struct calls_filter *f, const char *text);
/* Returns true when the last rule that matches includes the symbol of the object. */
bool calls_filter_takes(const struct calls_filter *f, const char *symbol,
			const struct process_object *po);
/* Adds the rule "@LIBRARY" of -l, whose text may have signs. Returns false for a wrong regular
 * expression. */
bool calls_filter_add_library(struct arena *a, struct calls_filter *f, const char *text);
/* Returns true when the rule may mean several functions. */
bool calls_rule_is_pattern(const struct calls_rule *r);
void calls_filter_fini(struct calls_filter *f);

/* A pointer that lies in memory behind a parameter or the result. Its own memory is read, too. */
enum { CALLS_INNER_DEPTH = 8, CALLS_INNER_MAX = 32 };
struct calls_inner {
	uint32_t param; /* of the prototype's; their number: the result */
	bool at_return;
	const struct prototype_type *type; /* the pointer's */
	/* Each pointer on the way lies at this offset in the memory of the one before. */
	uint32_t depth, offsets[CALLS_INNER_DEPTH];
	/* the structure that the pointer lies in, and its offset there; NULL: none */
	const struct prototype_type *around;
	uint32_t around_at;
};

struct calls_function {
	const char *name;
	uint32_t number;                   /* in the order in which they were found */
	const struct prototype *prototype; /* never NULL */
	bool guessed;                      /* no prototype is known, and none by its types */
	VEC(const char *) entries;         /* probe descriptions */
	VEC(const char *) returns;         /* FUNCTION:return */
	VEC(const char *) rets;            /* addresses of ret instructions */
	pid_t placed; /* the process in which its returns were looked for last */
	bool blind;   /* it returns, but no probe can see this */
	const struct process_object *entered; /* the last object whose entries it has */
	bool counted;                         /* among calls.without_returns */
	bool outputs_unread; /* as calls.outputs_unread, and memory behind its result: another function's
				returns are at its own */
	bool nests;          /* a call of it may be within another one */
	bool jumps;          /* it may end with a jump to another function */
	bool linkage;        /* calls through linkage tables; else all calls */
	bool syscall;        /* a system call; its name is shown as SYS_NAME */
	VEC(struct calls_inner) inner; /* of lines */
};

/* The meaning of a clause of the program, by its number in the program. */
struct calls_clause {
	enum calls_event {
		CALLS_ENTRY,
		CALLS_RETURN,
		CALLS_TEXT, /* a text that a format's %s may mean, before its entry: register, text */
		CALLS_WIDE,   /* likewise, of wide characters */
		CALLS_VECTOR, /* likewise, numbers that a format's %f may mean */
		CALLS_INNER,  /* memory behind a pointer in memory, before its entry or return */
		CALLS_SIGNAL, /* a signal comes: its number */
		CALLS_IGNORED, /* a signal is not delivered, because it is ignored: number, process */
		CALLS_FATAL,   /* a process ends by a signal: its number */
		CALLS_OTHER,   /* has no records */
	} event;
	bool whole; /* its record has the texts and memory that pointers point to */
	const struct calls_function *function;
	const struct calls_inner *inner; /* CALLS_INNER */
};

struct calls_options {
	struct calls_filter plt;       /* -e: no rules: all calls of the main program */
	struct calls_filter entries;   /* -x */
	struct calls_filter libraries; /* -l: the called libraries; no rules: any */
	bool count;                    /* -c */
	bool syscalls, no_library;     /* -S, -L */
	bool no_signals;               /* -b */
	uint32_t text_max;             /* -s */
	uint32_t elements_max;         /* -A */
	/* Addresses come from registers and scalar variables alone: memory behind arguments on the
	 * stack, and behind pointers that lie in memory, is not read. A program that follows
	 * children of root's processes from inside must do so (load/inproc/follow/forging.c). */
	bool own_addresses;

	/* of lines */
	uint32_t align;  /* -a */
	uint32_t indent; /* -n */
	bool durations;  /* -T */
	bool relative;   /* -r */
	uint32_t clock;  /* -t, -tt, -ttt: 1 to 3; 0: none */
	bool callers;    /* -e or -l: CALLER-> in front of the name */
	bool threads;    /* -f: [pid TID] in front of every line */
	bool numbered;   /* likewise, though nothing is followed: -o with -p */
	bool to_file;    /* -o: TID without brackets */
	bool demangled;  /* -C */
	bool addresses;  /* -i: the return address in front of the call */
	uint32_t frames; /* -w: of the stack behind the call */
	uint64_t min_ns; /* --min-time: only calls that take as long */
	bool json;       /* an object for each call, or for each row of the table */
	bool coloured;   /* the lines are for a terminal */

	/* of the table */
	bool histograms; /* of each function */
	bool time_all;   /* every call is timed, however often a short function is called */
	bool progress;   /* on standard error, each second */
	/* Returns how the traced command ended ("exited (status 3)"), malloc()ed; NULL: it has
	 * not. */
	char *(*ended)(void *arg);
	void *arg;
};

/* Each function takes some 40 kB when it is compiled, and a program may call any number of them.
 * The kernel has room for the variables of no more. */
enum { CALLS_FUNCTIONS_MAX = 4000 };

struct calls {
	struct arena arena;
	const struct calls_options *o;
	struct prototypes *prototypes;
	VEC(struct calls_function *) functions;
	struct hash by_name;
	struct hash by_type; /* of typed.c */
	VEC(struct calls_clause) clauses;
	uint32_t nleft_out; /* names that cannot stand in a D program; left_out is the first */
	const char *left_out;
	uint32_t ntoo_many; /* functions beyond CALLS_FUNCTIONS_MAX */
	/* With own_addresses, there is no room to keep the addresses of output arguments: their
	 * memory is not read. */
	bool outputs_unread;
	uint32_t without_returns;   /* functions whose returns are too many, or too much to find */
	VEC(const char *) programs; /* names of the targets' own objects */
	/* The events beside library calls that this program has. */
	struct calls_around {
		bool syscalls, signals;
	} sees;
	bool around;       /* it has no library calls: another session's program has them */
	const char *whose; /* predicate of system calls and signals: those of the targets */
	const char *ours;  /* behind it, leaves out system calls that descry makes; "": nothing */
	const char *receiver; /* predicate of ignored signals: those to the targets */
	bool inside;          /* only calls of traced processes are seen, whoever they are */
	uint32_t main_thread; /* the lines of others begin with their number; 0: all do */
};

void calls_init(struct calls *c, const struct calls_options *o, struct prototypes *prototypes);
void calls_fini(struct calls *c);
/* find.c: finds the functions that the filters select in the targets of ps. */
struct err *calls_find(struct calls *c, struct probe_set *ps);
/* around.c: finds the system calls of a program without library calls. `of` has the targets. */
struct err *calls_find_around(struct calls *c, struct probe_set *ps, const struct probe_set *of);
/* inner.c: finds the function's inner pointers. */
void calls_find_inner(struct calls *c, struct calls_function *fn);
/* typed.c: makes a prototype of the function at a link-time address of a file, by its debugging
 * information. NULL: it has none. */
const struct prototype *calls_typed(struct calls *c, struct type_graph *g, const char *path,
				    uint64_t addr, const char *name);
/* program.c: returns the D program, malloc()ed, and sets c->clauses. */
char *calls_program(struct calls *c);
/* places.c: the place of an argument or a result: up to two registers, or memory on the stack. */
struct calls_place {
	uint32_t npieces; /* 0: on the stack, or it has no bytes */
	struct {
		bool vector;
		uint32_t number; /* as in arg0 or R_XMM0; in a result the first or second of its kind */
	} piece[2];              /* eight bytes each */
	uint32_t stack, size; /* distance from the first argument there; size 0: not there */
};
struct calls_place calls_place(const struct prototype *f, uint32_t param);
/* Of a result on the stack, the function returns the address. */
struct calls_place calls_result_place(const struct prototype *f);
/* Returns the number of the register argument that a parameter begins in, -1: it comes in none, or
 * in a vector register. */
int calls_register(const struct prototype *f, uint32_t param);
/* Returns true when the memory behind a parameter is read at the entry (out false) or at the
 * return, if it has a type that is. */
bool calls_is_read(const struct calls *c, const struct calls_function *fn, uint32_t i, bool out);
/* Returns the number of the vector register that a parameter begins in, -1: it comes in none. */
int calls_vector(const struct prototype *f, uint32_t param);
/* Return the numbers of registers that the record of an entry has. */
uint32_t calls_nregisters(const struct prototype *f);
uint32_t calls_nvectors(const struct prototype *f);
/* Returns true when the record has the parameter's bytes on the stack, as memory. */
bool calls_on_stack(const struct prototype *f, uint32_t param);
/* Returns true when a structure is the result, whose record has all registers that may hold it:
 * CALLS_RESULTS numbers more. */
enum { CALLS_RESULTS = 4 };
static inline bool calls_returns_struct(const struct prototype *f)
{
	return f->result->kind == PROTOTYPE_STRUCT && f->result->lens != LENS_DOTS;
}
/* Returns true for a float or a double, which comes in a vector register. */
static inline bool calls_is_vector(const struct prototype_type *t)
{
	return t->kind == PROTOTYPE_FLOAT && (t->size == 4 || t->size == 8);
}
/* Returns true when lines are held until their calls return. */
static inline bool calls_held(const struct calls_options *o)
{
	return o->json || o->min_ns;
}
/* Returns the object that calls through its linkage table; NULL: the probe is another one. */
const char *calls_caller(const struct image_probe *p);
/* Returns the library whose function the probe is in; NULL: the probe is another one, or the
 * function is the program's own. */
const char *calls_library(const struct calls *c, const struct image_probe *p);
/* Returns the name of a function as it is shown. */
const char *calls_shown(const struct calls *c, const struct sink *s, const char *name);
/* Returns true when the parameter's memory is part of the record: text, or a value behind a
 * pointer. */
bool calls_reads_text(const struct prototype_type *t);
bool calls_reads_memory(const struct prototype_type *t);

/* call_lines.c: a sink that writes a line for each call. The sink's `out` takes them. The sinks of
 * several sessions may share a page, which outlives them: their lines are one output, and the last
 * sink that ends completes it. */
struct calls_page;
struct calls_page *calls_page_new(void);
void calls_page_free(struct calls_page *p);
struct sink *calls_lines_new(const struct calls *c, struct calls_page *p);
/* Notes that the process has executed another program: its calls do not return. */
void calls_executed(struct sink *s, uint32_t pid);
void calls_report(struct sink *s, const struct run_report *r);
/* summary.c: a sink that writes the table of -c at the end. Sinks may share a table likewise: a
 * row has the calls of all. */
struct calls_table;
struct calls_table *calls_table_new(void);
void calls_table_free(struct calls_table *t);
struct sink *calls_summary_new(const struct calls *c, struct calls_table *t);

/* The shipped prototypes: prototypes/NAME.conf. */
extern const struct embedded_file prototype_files[];

#endif
