/* Shared by the files of a recording's address spaces: perfspace.c follows processes and names
 * their addresses, perfcode.c reads files and lists of code. */
#ifndef DESCRY_INPUT_PERF_PERFSPACE_PRIVATE_H
#define DESCRY_INPUT_PERF_PERFSPACE_PRIVATE_H

#include "base/hash.h"
#include "input/perf/perfspace.h"
#include "program/object/object.h"

/* A name for the addresses [start, end). */
struct code {
	uint64_t start; /* first: runs_sort() */
	uint64_t end;
	const char *name; /* offset in the text of the list */
	uint32_t module;  /* index in modules; 0: the kernel itself */
};

/* The lists in kallsyms and /tmp/perf-PID.map: "ADDRESS TYPE NAME [MODULE]" and "START SIZE
 * NAME". */
struct code_list {
	char *text;
	VEC(struct code) codes; /* by start */
	VEC(const char *) modules;
};

/* Executable bytes of a file, and how far their offsets lie behind their addresses. */
struct dso_text {
	uint64_t off, n, delta;
};

/* A file with code, which several paths may lead to. perffile.c opens it. */
struct perf_file {
	struct object *object;
	struct unwind_image *tables;
	VEC(struct dso_text) texts; /* when it has tables */
	bool tables_tried, symbols_tried;
	bool unread; /* its symbols are left out, because those of all files are too large */
};

/* A path of code. */
struct dso {
	const char *path;
	uint8_t build_id[20];
	uint32_t build_id_len; /* 0 not known */
	bool tried, other;     /* other: the file at the path is not the one that ran */
	bool jit, anonymous;
	struct perf_file *file, *debug; /* NULL: there is none */
	struct code_list *list;         /* the list of jit code */
	uint64_t unnamed;               /* addresses without a name */
	const char *list_why;           /* the list of jit code was not read; the reason */
};

/* A process: its mappings, whose files are dsos. */
struct recorded {
	struct perfspace *of;
	struct space *space;
	struct unwind_process unwind; /* finds the mappings of `space` */
	struct unwind_range range;    /* the one found last */
	uint32_t range_state;         /* of `space` at that time */
};

struct thread {
	const char *comm; /* NULL not known */
	uint32_t names, nnames;
	bool named, java;
};

struct name_slot {
	uint64_t offset;
	uint32_t owner; /* for a dso; Java's names lose a letter, so they are kept apart */
	uint32_t name;  /* + 1; 0 free */
};

/* The name of an address when it was met last, by the mappings of that time. */
struct recent {
	uint64_t ip;
	uint32_t owner; /* id of the mappings << 2 | kernel << 1 | Java */
	uint32_t name;  /* + 1; 0 free */
};

enum { KERNEL_DSO = 0, NO_DSO = 1, KSYMBOL_DSO = 1 << 24, FIRST_SLOTS = 4096, RECENT = 8192 };

struct perfspace {
	struct stackin *in;
	struct perf_names names;
	struct arena text; /* see perfspace_keep() */
	uint64_t text_bytes;
	VEC(struct dso) dsos;
	struct hash dso_of;    /* path -> index */
	struct hash ids;       /* path -> index + 1 in dsos, by the build ids in the file's table */
	struct hash processes; /* pid -> struct recorded * */
	struct space_record_room room; /* of their mappings */
	struct hash thread_of;         /* pid << 32 | tid -> index in threads */
	VEC(struct thread) threads;
	VEC(uint32_t) thread_names;
	struct name_slot *slots;
	uint32_t nslots, nnames;
	struct hash symbol_names; /* of symbols (perfspace.c: struct symbol_key) */
	VEC(struct perf_file *) files;
	struct hash file_of;   /* device, inode, ... -> index in files */
	struct recorded *last; /* of last_pid */
	uint32_t last_pid;
	bool java;             /* the thread named last */
	uint32_t states;       /* number of ids given to lists of mappings */
	uint32_t kernel_state; /* changes with each kernel symbol that comes or goes */
	struct recent *recent; /* RECENT names, by the hash of their address */

	struct code_list kernel;
	bool kernel_read;
	const char *kernel_why; /* there are no names; the reason */
	uint64_t kernel_text;   /* address of _text during the recording; 0: not known */
	int64_t kernel_shift;   /* difference from a recorded address to one of the list */
	uint64_t kernel_unnamed;
	VEC(struct code) ksymbols; /* code that comes and goes; module: its own number */
	uint32_t ksymbols_seen;
	uint64_t ksymbol_moves_left; /* entries of the list that may still be moved */
	bool ksymbols_ended;         /* they were: the list stays empty */

	/* Bytes that further lists of compiled code, unwind tables and symbols may have: a
	 * recording can name any number of files. */
	uint64_t lists_left, tables_left, tables_work_left, symbols_left;
	uint32_t tables_left_out, symbols_left_out;
};

enum {
	PERF_LISTS_MAX = 512 << 20,   /* of all lists of compiled code */
	PERF_SYMBOLS_MAX = 512 << 20, /* of the symbols of all files */
	/* 10 GB in all. A list of 16,384 that comes in any order moves less than 135 million. */
	PERF_KSYMBOL_MOVES = 300000000,
};

/* Bytes that are kept of names, which Linux has less of: of a thread (16), of a function of the
 * kernel (512) and of a file without its folders (255). A recording of other makers may have 64 kB
 * for each, and a name is made anew for each thread, or for each address of 8 bytes. */
enum { PERF_COMM_MAX = 256, PERF_KSYMBOL_MAX = 512, PERF_BASE_MAX = 255 };
/* Returns a copy of at most `most` bytes that lives as long as s. */
const char *perfspace_keep(struct perfspace *s, const char *text, size_t most);
const struct code *perfspace_code_at(const struct code *v, uint32_t n, uint64_t addr);
void perfspace_list_fini(struct code_list *l);
uint32_t perfspace_dso_new(struct perfspace *s, const char *path);
uint32_t perfspace_dso_of(struct perfspace *s, const char *path, const uint8_t *id, uint32_t len);
void perfspace_dso_open(struct perfspace *s, struct dso *d);
/* Returns the file at the path, or NULL when it cannot be read or is not the one that ran. Two
 * paths of one file have one struct perf_file. */
struct perf_file *perf_file_open(struct perfspace *s, struct dso *d, const char *path);
struct perf_file *perf_file_vdso(struct perfspace *s, struct dso *d);
/* Returns the function at the address, or NULL. Valid as long as s. */
const struct object_symbol *perf_file_find(struct perfspace *s, struct perf_file *f, uint64_t addr);
/* Opens the unwind tables, unless those of all files would be too large. */
void perf_file_tables(struct perfspace *s, struct perf_file *f);
void perf_files_free(struct perfspace *s);
void perfspace_kernel_read(struct perfspace *s);

#endif
