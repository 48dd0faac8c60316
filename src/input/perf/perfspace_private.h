/* A recording's address spaces, between their files: perfspace.c follows processes and names their
 * addresses, perfcode.c reads files and lists of code. */
#ifndef DESCRY_INPUT_PERF_PERFSPACE_PRIVATE_H
#define DESCRY_INPUT_PERF_PERFSPACE_PRIVATE_H

#include "base/hash.h"
#include "input/perf/perfspace.h"
#include "program/object/object.h"

/* A name for the addresses [start, end). */
struct code {
	uint64_t start; /* first: runs_sort() */
	uint64_t end;
	const char *name; /* in the text of the list */
	uint32_t module;  /* index in modules; 0: the kernel itself */
};

/* What kallsyms and /tmp/perf-PID.map hold: "ADDRESS TYPE NAME [MODULE]" and "START SIZE NAME". */
struct code_list {
	char *text;
	VEC(struct code) codes; /* by start */
	VEC(const char *) modules;
};

/* A file that code came from. */
struct dso {
	const char *path;
	uint8_t build_id[20];
	uint32_t build_id_len; /* 0 not known */
	bool tried, other;     /* other: the file there is not the one that ran */
	bool jit, anonymous;
	struct object *object, *debug;
	struct code_list *list; /* of jit code */
	struct unwind_image *tables;
	bool tables_tried;
	uint64_t unnamed; /* addresses without a name */
};

/* A process: its mappings, whose files are dsos, and the unwind tables of those in a state of
 * it. */
struct recorded {
	struct space *space;
	struct unwind_process *unwind; /* NULL not made yet */
	uint32_t unwind_state;
};

struct thread {
	const char *comm; /* NULL not known */
	uint32_t names, nnames;
	bool named, java;
};

struct name_slot {
	uint64_t offset;
	uint32_t owner; /* of a dso; Java's names lose a letter, so these are kept apart */
	uint32_t name;  /* + 1; 0 free */
};

/* What an address was named when it was met last, by the mappings that were in force. */
struct recent {
	uint64_t ip;
	uint32_t owner; /* id of the mappings << 2 | kernel << 1 | Java */
	uint32_t name;  /* + 1; 0 free */
};

enum { KERNEL_DSO = 0, NO_DSO = 1, KSYMBOL_DSO = 1 << 24, FIRST_SLOTS = 4096, RECENT = 8192 };

struct perfspace {
	struct stackin *in;
	struct perf_names names;
	struct arena text;
	VEC(struct dso) dsos;
	struct hash dso_of;    /* path -> index */
	struct hash ids;       /* path -> build id of the file's table: index + 1 in dsos */
	struct hash processes; /* pid -> struct recorded * */
	struct hash thread_of; /* pid << 32 | tid -> index in threads */
	VEC(struct thread) threads;
	VEC(uint32_t) thread_names;
	struct name_slot *slots;
	uint32_t nslots, nnames;
	struct recorded *last; /* of last_pid */
	uint32_t last_pid;
	bool java;             /* the thread named last */
	uint32_t states;       /* ids of mappings given out */
	uint32_t kernel_state; /* another one with each kernel symbol that comes or goes */
	struct recent *recent; /* RECENT of them, by the hash of their address */

	struct code_list kernel;
	bool kernel_read;
	const char *kernel_why; /* no names, and the reason */
	uint64_t kernel_text;   /* _text while it was recorded; 0 not known */
	int64_t kernel_shift;   /* from an address recorded to one of the list */
	uint64_t kernel_unnamed;
	VEC(struct code) ksymbols; /* code that comes and goes; module: a number of its own */
	uint32_t ksymbols_seen;
};

const struct code *perfspace_code_at(const struct code *v, uint32_t n, uint64_t addr);
void perfspace_list_fini(struct code_list *l);
uint32_t perfspace_dso_new(struct perfspace *s, const char *path);
uint32_t perfspace_dso_of(struct perfspace *s, const char *path, const uint8_t *id, uint32_t len);
void perfspace_dso_open(struct perfspace *s, struct dso *d);
void perfspace_kernel_read(struct perfspace *s);

#endif
