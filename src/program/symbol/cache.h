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

/* What the kernel said of addresses, by address. Names are interned. */
struct kernel_answers {
	const char *(*ask)(void *arg, uint64_t addr); /* NULL: it cannot be asked */
	void *arg;
	bool shown;       /* kallsyms has been looked into, and shows addresses */
	struct hash addr; /* -> index in places */
	VEC(struct place) places;
};

/* One function of /tmp/perf-PID.map. */
struct jit_symbol {
	uint64_t start, size;
	const char *name; /* len bytes of the process's jit_text */
	uint32_t len;
	uint32_t order; /* line: of two covering an address the later one is meant */
};

/* Where a process's perf map is, and what tells it from another's: noted while the process lives,
 * for when it is gone. */
struct jit_home {
	uint64_t noted_ns;   /* CLOCK_MONOTONIC of the last look */
	uint64_t wait_ns;    /* until the next one: twice as long when nothing has changed */
	uint64_t dev, inode; /* the folder that it has as /tmp; inode 0: nothing is known */
	bool elsewhere;      /* that is not our /tmp */
	pid_t pid, parent;   /* its own in its pid namespace, its parent's in ours */
	uid_t uid;
	int64_t born_ns; /* CLOCK_REALTIME */
};

/* A file's object, shared by all that map the file. */
struct known_object {
	struct object *o;
	char *key;      /* in symbols.objects; NULL: it is in no table (the vdso) */
	uint32_t index; /* in symbols.known */
	uint64_t used;  /* symbols.uses when it was last asked for */
	size_t bytes;   /* as counted in symbols.object_bytes */
	bool open;      /* as counted in symbols.open_objects */
	bool pinned;    /* given out by symbols_object(): it stays */
};

/* A mapping of a process, and what it had where something else is now. Paths are interned. */
struct live_mapping {
	struct mapping m;
	struct known_object *known; /* NULL not opened, or cannot be; owned by the cache */
	bool tried;
	bool dropped; /* there was one, and it had to go for want of room */
};

struct past_mapping {
	struct live_mapping at;
	uint64_t until; /* CLOCK_MONOTONIC ns */
};

struct process {
	pid_t pid;
	struct space *space; /* that answers for it; NULL: /proc does */
	bool exists;         /* it did when last looked at */
	bool told;           /* of all its mappings, since it was born or exec() */
	bool asked;          /* for a name, or to be remembered for one */
	bool denied;         /* its mappings may not be read */
	bool unnamed;        /* so an address of it has no name */
	uint64_t used_ns;    /* CLOCK_MONOTONIC of the last time it was asked for, or told of */
	uint64_t start_time; /* tells a reused pid */
	uint64_t read_ns;    /* CLOCK_MONOTONIC of the last read; misses re-read, but not at once */
	VEC(struct live_mapping) maps; /* by address; no two overlap */
	VEC(struct past_mapping) past; /* in the order in which they went; the last PAST_MAX */

	struct jit_home home;
	uint64_t jit_next_ns;           /* CLOCK_MONOTONIC; no look at the perf map before that */
	int64_t jit_mtime_ns, jit_size; /* -1 none read */
	uint64_t jit_used_ns;           /* CLOCK_MONOTONIC of the last question */
	size_t jit_bytes;               /* as counted in symbols.jit_bytes */
	bool jit_dropped;               /* a map was read, and had to go for want of room */
	char *jit_text;
	VEC(struct jit_symbol) jit; /* by start */
};

struct symbols {
	struct kallsyms kernel;
	struct kernel_answers answers;
	struct intern names;
	struct intern paths;   /* of mappings; see process_tidy() */
	struct hash demangled; /* interned id of the mangled name -> interned id */
	struct hash objects;   /* dev, inode, path -> struct known_object * */
	VEC(struct known_object *) known;
	struct hash processes; /* pid -> struct process * */
	struct process *asked; /* whose address is being asked for; NULL nobody's */
	pid_t told_of;  /* by the last event that the kernel told of; it stays until the next one */
	uint32_t ntold; /* events */
	uint32_t tidy_at;    /* processes: process_tidy() is due */
	uint32_t npaths;     /* that the last process_tidy() has left */
	struct hash sources; /* struct object * -> struct debug_info * (source.c) */
	struct known_object vdso;
	bool vdso_tried;
	struct map_watch *watch; /* NULL not watching */
	uint8_t *gone;           /* a bit for each pid that was dropped by process_tidy() */

	/* budget.c */
	struct symbols_limits limits;
	uint64_t uses;         /* counts the questions: the clock of known_object.used */
	uint32_t open_objects; /* descriptors */
	size_t object_bytes, jit_bytes;
	struct symbols_losses losses;
};

/* Takes the text (len bytes and a NUL). */
void kallsyms_parse(struct kallsyms *k, char *text, size_t len);
void kallsyms_fini(struct kallsyms *k);
/* Does a /proc/kallsyms that begins so show addresses? */
bool kallsyms_shows(const char *text, size_t len);
/* What "%pS" printed. False: that names nothing. */
bool answer_parse(struct symbols *s, const char *text, struct place *ret);
/* By what the kernel says. False: it cannot be asked, or names nothing that it should. */
bool answer_find(struct symbols *s, uint64_t addr, struct place *ret);
void answers_fini(struct kernel_answers *a);
/* Marks that end a range of text: what follows them has no name. */
bool is_end_mark(const char *name);
void source_fini(struct symbols *s);
/* Forgets what was read for an object that goes. */
void source_drop(struct symbols *s, const struct object *o);
uint32_t object_source(struct symbols *s, const struct object *o, uint64_t link_addr,
		       const struct source_place **ret);
/* The lines of a perf map (text is taken) in place of those p had; the symbol that covers an
 * address, NULL none. */
void jit_parse(struct symbols *s, struct process *p, char *text, size_t len);
const struct jit_symbol *jit_search(const struct process *p, uint64_t addr);
/* Room for a map of so many bytes is made: those not asked for longest go. */
void jit_make_room(struct symbols *s, const struct process *keep, size_t bytes);
/* What is needed to read the map after the process's end; as if none had been read. */
void jit_remember(struct symbols *s, struct process *p);
void jit_drop(struct symbols *s, struct process *p);
/* The object behind a process's address, and its link-time address there; NULL: none. */
struct object *process_object(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr,
			      uint64_t *ret);
/* An object by the identity of a mapping. space: whose it is, NULL: pid's, which has it no more
 * when it is past. */
struct known_object *mapping_object(struct symbols *s, struct space *space, pid_t pid,
				    const struct mapping *m, bool past);
/* The vdso of an address space that is a record. */
struct known_object *space_vdso(struct symbols *s, struct space *space, const struct mapping *m);
struct known_object *vdso_object(struct symbols *s);
/* --- budget.c: how much is kept, and what goes first --- */
/* A new object; takes key. */
struct known_object *known_add(struct symbols *s, struct object *o, char *key);
/* It is given out, and stays. path opens it when its file is closed and cannot be opened again;
 * NULL: there is none. */
struct object *known_pin(struct symbols *s, struct known_object *k, const char *path);
/* It is asked for: its file is opened again when it was closed and is needed. False: that cannot be
 * done, and there are no symbols. */
bool known_use(struct symbols *s, struct known_object *k);
/* Its symbols may have been read: counts them, and has others go when these are too many. k
 * stays. */
void known_grown(struct symbols *s, struct known_object *k);
/* Frees all. */
void known_fini(struct symbols *s);

/* --- process.c: what processes have mapped, over time --- */
struct process *process_of(struct symbols *s, pid_t pid, bool *ret_new);
/* The one that is asked for now; it stays until the next one is. */
struct process *process_asked(struct symbols *s, pid_t pid);
void process_drop(struct symbols *s, struct process *p);
/* Processes that are gone leave when there are more than symbols.limits allows: first those never
 * asked for, then those not asked for longest. Paths that no mapping has any more go as well. */
void process_tidy(struct symbols *s);
/* Was pid dropped by that, and nothing heard of it since? */
bool process_was_dropped(const struct symbols *s, pid_t pid);
/* What is mapped at an address (time 0), or was at that time: the mapping, its file's object and
 * where that begins in memory. False: nothing, as far as is known; /proc is read again when that
 * may help. */
struct process_at {
	const struct mapping *m;
	uint64_t base;
	struct object *o;           /* NULL: none, or it cannot be opened */
	struct known_object *known; /* what it belongs to */
	bool lost; /* it had to go, or its file was closed, for want of room, and it cannot be had again */
};
bool process_find(struct symbols *s, struct process *p, uint64_t time, uint64_t addr,
		  struct process_at *ret);
/* What the kernel told: m was mapped, child has parent's mappings, pid runs another program. */
void process_map(struct symbols *s, pid_t pid, const struct mapping *m);
void process_forked(struct symbols *s, pid_t parent, pid_t child);
void process_exec(struct symbols *s, pid_t pid, uint64_t time);
char *symbol_demangle(const char *name); /* demangle.c */

#endif
