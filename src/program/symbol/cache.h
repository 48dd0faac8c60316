/* Inside program/symbol/: what struct symbols holds. */
#ifndef DESCRY_PROGRAM_SYMBOL_CACHE_H
#define DESCRY_PROGRAM_SYMBOL_CACHE_H

#include "base/hash.h"
#include "base/mem.h"
#include "program/symbol/symbol.h"

struct kernel_symbol {
	uint64_t addr;
	uint32_t name;   /* offset in text */
	uint16_t module; /* index in modules; 0 is vmlinux */
	char type;       /* as nm prints it */
};

struct kallsyms {
	bool read;
	char *err; /* why there are no addresses; NULL fine */
	char *text;
	struct kernel_symbol *symbols; /* every line, by address */
	uint32_t n;
	struct kernel_symbol *code; /* text symbols only, by address */
	uint32_t ncode;
	VEC(char *) modules;
	VEC(uint64_t) bases; /* lowest text address of each module */
};

/* One function of /tmp/perf-PID.map. */
struct jit_symbol {
	uint64_t start, size;
	const char *name; /* interned */
	uint32_t order;   /* line: of two covering an address the later one is meant */
};

/* What was mapped where something else is now. */
struct past_mapping {
	struct mapping m;
	struct object *o; /* NULL not opened, or cannot be */
	bool tried;
	uint64_t until;
};

struct process {
	pid_t pid;
	bool exists;         /* it did when last looked at */
	uint64_t start_time; /* tells a reused pid */
	uint64_t read_ns;    /* CLOCK_MONOTONIC of the last read; misses re-read, but not at once */
	struct mapping *maps;
	uint32_t nmaps;
	struct object **objects; /* per mapping, NULL not opened; owned by the cache */
	bool *tried;
	VEC(struct past_mapping) past; /* the last PAST_MAX */

	uint64_t jit_read_ns;
	int64_t jit_mtime_ns, jit_size;
	VEC(struct jit_symbol) jit; /* by start */
};

struct symbols {
	struct kallsyms kernel;
	struct intern names;
	struct hash demangled;            /* interned id of the mangled name -> interned id */
	struct hash objects;              /* dev, inode, path -> index + 1 in all_objects */
	VEC(struct object *) all_objects; /* NULL: could not be opened */
	struct hash processes;            /* pid -> struct process * */
	struct hash sources;              /* struct object * -> struct debug_info * (source.c) */
	struct object *vdso;
	bool vdso_tried;
	struct map_watch *watch; /* NULL not watching */
	uint32_t nwatched;       /* processes known by it alone */
	uint64_t as_of;          /* 0 now */
};

void kallsyms_fini(struct kallsyms *k);
void source_fini(struct symbols *s);
uint32_t object_source(struct symbols *s, const struct object *o, uint64_t link_addr,
		       const struct source_place **ret);
/* The lines of a perf map, in place of those p had; the symbol that covers an address, NULL none. */
void jit_parse(struct symbols *s, struct process *p, const char *text);
const struct jit_symbol *jit_search(const struct process *p, uint64_t addr);
/* The object behind a process's address, and its link-time address there; NULL: none. */
struct object *process_object(struct symbols *s, pid_t pid, uint64_t addr, uint64_t *ret);
/* What the kernel told: m was mapped (m->path is taken), child has parent's mappings. */
void process_map(struct symbols *s, pid_t pid, struct mapping *m);
void process_forked(struct symbols *s, pid_t parent, pid_t child);
char *symbol_demangle(const char *name); /* demangle.c */

#endif
