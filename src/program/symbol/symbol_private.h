/* Private to program/symbol/: the contents of struct symbols. */
#ifndef DESCRY_PROGRAM_SYMBOL_SYMBOL_PRIVATE_H
#define DESCRY_PROGRAM_SYMBOL_SYMBOL_PRIVATE_H

#include "base/hash.h"
#include "base/mem.h"
#include "program/symbol/symbol.h"

struct kernel_symbol {
	uint64_t addr;
	uint32_t name;   /* offset in text */
	uint16_t module; /* index in modules; 0 is vmlinux */
	char type;       /* in nm's notation */
};

struct kallsyms {
	bool read;
	char *err; /* the reason why there are no addresses; NULL: there are */
	char *text;
	struct kernel_symbol *symbols; /* all lines, by address */
	uint32_t n;
	struct kernel_symbol *code; /* text symbols only, by address */
	uint32_t ncode;
	VEC(char *) modules;
	VEC(uint64_t) bases; /* lowest text address of each module */
};

/* The kernel's answers, by address. Names are interned. */
struct kernel_answers {
	const char *(*ask)(void *arg, uint64_t addr); /* NULL: the kernel cannot be queried */
	void *arg;
	bool shown;       /* kallsyms has been read, and shows addresses */
	struct hash addr; /* -> index in places */
	VEC(struct place) places;
};

/* One function of /tmp/perf-PID.map. */
struct jit_symbol {
	uint64_t start, size;
	const char *name; /* len bytes of the process's jit_text */
	uint32_t len;
	uint32_t order; /* line number: of two functions that cover an address the later is valid */
};

/* The place and the identity of a process's perf map, noted while the process lives, for use after
 * its end. */
struct jit_home {
	uint64_t noted_ns;   /* CLOCK_MONOTONIC of the last look */
	uint64_t wait_ns;    /* until the next look: doubles when nothing has changed */
	uint64_t dev, inode; /* of the folder that is its /tmp; inode 0: not known */
	bool elsewhere;      /* its /tmp is not descry's /tmp */
	pid_t pid, parent;   /* its pid in its own namespace, its parent's in descry's */
	uid_t uid;
	int64_t born_ns; /* CLOCK_REALTIME */
};

/* A file's object, shared by all processes that map the file. */
struct known_object {
	struct object *o;
	char *key;      /* in symbols.objects; NULL: in no table (the vdso) */
	uint32_t index; /* in symbols.known */
	uint64_t used;  /* symbols.uses at its last use */
	size_t bytes;   /* as counted in symbols.object_bytes */
	bool open;      /* as counted in symbols.open_objects */
	bool pinned;    /* symbols_object() has returned it: never dropped */
};

/* A mapping of a process, also one that another has replaced. Paths are interned. */
struct live_mapping {
	struct mapping m;
	struct known_object *known; /* NULL: not opened, or cannot be opened; owned by the cache */
	bool tried;
	bool dropped;   /* its object was dropped because of the limits */
	uint32_t first; /* mappings.c: index of the file's first mapping, when they are known */
};

/* Where the file of a mapping would begin in memory. */
struct file_begin {
	uint64_t at;
	uint32_t mapping; /* index */
};

struct past_mapping {
	struct live_mapping at;
	uint64_t until; /* CLOCK_MONOTONIC ns */
};

struct process {
	pid_t pid;
	struct space *space; /* holds its mappings; NULL: /proc does */
	bool exists;         /* it existed at the last look */
	bool told;           /* the kernel reported all its mappings since its start or exec() */
	bool asked;          /* a name was queried, or symbols_remember() was called */
	bool denied;         /* its mappings may not be read */
	bool unnamed;        /* an address of it has no name because of that */
	bool crowded;        /* it has too many mappings to follow: they are read now and then */
	bool cut;            /* mappings of it were dropped because of the limits */
	bool dropped;        /* all of them were, since the last read */
	uint64_t used_ns;    /* CLOCK_MONOTONIC of the last query or record */
	uint64_t start_time; /* distinguishes a reused pid */
	uint64_t read_ns;    /* CLOCK_MONOTONIC of the last read; a miss reads again later */
	uint64_t pause_ns;   /* from then until the next */
	VEC(struct live_mapping) maps; /* by address; no overlaps */
	VEC(struct past_mapping) past; /* in the order of their ends; the last PAST_MAX */
	/* Found when a long list needs them, valid until it changes. */
	bool firsts_known, begins_known;
	VEC(struct file_begin) begins; /* by address, then by mapping */

	struct jit_home home;
	uint64_t jit_next_ns;           /* CLOCK_MONOTONIC; the perf map is not read before */
	int64_t jit_mtime_ns, jit_size; /* -1: none read */
	uint64_t jit_used_ns;           /* CLOCK_MONOTONIC of the last query */
	size_t jit_bytes;               /* as counted in symbols.jit_bytes */
	size_t jit_names;               /* bytes of its names in symbols.names, of this epoch */
	uint64_t jit_epoch;             /* symbols.epoch in which jit_names was counted */
	bool jit_dropped;               /* a map was read, and dropped because of the limits */
	char *jit_text;
	VEC(struct jit_symbol) jit; /* by start */
};

struct symbols {
	uint32_t users; /* besides the first */
	struct kallsyms kernel;
	struct kernel_answers answers;
	struct intern names;
	struct intern paths;   /* of mappings; see process_tidy() */
	struct hash demangled; /* interned id of the mangled name -> interned id */
	struct hash objects;   /* dev, inode, path -> struct known_object * */
	VEC(struct known_object *) known;
	struct hash failed; /* files that a process has no path to -> CLOCK_MONOTONIC of the look */
	struct hash processes; /* pid -> struct process * */
	struct process *asked; /* the process of the running query; NULL: none */
	pid_t told_of;    /* process of the last event from the kernel; kept until the next event */
	uint32_t ntold;   /* events */
	uint32_t tidy_at; /* number of processes at which process_tidy() is due */
	uint32_t npaths;  /* paths that the last process_tidy() left */
	uint64_t grown;   /* mappings added since the last process_tidy() */
	uint64_t looks;   /* at mappings, one after the other: for tests */
	/* CLOCK_MONOTONIC; the end of the time of which reading lists again that were dropped has
	 * taken a tenth */
	uint64_t dropped_ns;
	struct hash sources; /* struct object * -> struct debug_info * (source.c) */
	struct known_object vdso;
	bool vdso_tried;
	struct map_watch *watch; /* NULL: not watching */
	uint8_t *gone;           /* a bit for each pid that process_tidy() dropped */

	/* budget.c */
	struct symbols_limits limits;
	uint64_t uses; /* number of queries: the clock of known_object.used */
	/* Files are idle whose last use is not behind idle_uses: 5 to 10 s ago. */
	uint64_t idle_uses, mark_uses, mark_ns;
	uint64_t idle_ns;      /* symbols_close_idle() does nothing before */
	uint32_t open_objects; /* descriptors */
	size_t object_bytes, jit_bytes;
	size_t jit_names; /* bytes of names of perf maps in names */
	uint64_t epoch;   /* number of times that symbols_tidy() has emptied names */
	struct symbols_losses losses;
};

/* Parses the text (len bytes and a NUL) and takes it. */
void kallsyms_parse(struct kallsyms *k, char *text, size_t len);
void kallsyms_fini(struct kallsyms *k);
/* Returns true when a /proc/kallsyms that begins with text shows addresses. */
bool kallsyms_shows(const char *text, size_t len);
/* Parses the output of "%pS". Returns false when it has no name. */
bool answer_parse(struct symbols *s, const char *text, struct place *ret);
/* Finds a name by querying the kernel. Returns false when the kernel cannot be queried, or has no
 * name that may be shown. */
bool answer_find(struct symbols *s, uint64_t addr, struct place *ret);
void answers_fini(struct kernel_answers *a);
/* Returns true for marks that end a range of text. The text behind them has no name. */
bool is_end_mark(const char *name);
void source_fini(struct symbols *s);
/* Drops the debugging information of an object that is being dropped. */
void source_drop(struct symbols *s, const struct object *o);
/* Forgets all answers, which hold names. */
void source_forget(struct symbols *s);
uint32_t object_source(struct symbols *s, const struct object *o, uint64_t link_addr,
		       const struct source_place **ret);
/* jit_parse() replaces p's functions by the lines of a perf map, and takes the text. jit_search()
 * returns the function that covers an address, or NULL. */
void jit_parse(struct symbols *s, struct process *p, char *text, size_t len);
const struct jit_symbol *jit_search(const struct process *p, uint64_t addr);
/* Drops maps with the oldest last use until a map of so many bytes fits. */
void jit_make_room(struct symbols *s, const struct process *keep, size_t bytes);
/* jit_remember() notes the data needed to read the map after the process's end. jit_drop() drops
 * the map that was read. */
void jit_remember(struct symbols *s, struct process *p);
void jit_drop(struct symbols *s, struct process *p);
/* Returns the object at a process's address, and its link-time address there, or NULL. */
struct object *process_object(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr,
			      uint64_t *ret);
/* Returns the object of a mapping, by the mapping's identity. space: the mapping's space; NULL: it
 * is pid's. past: pid no longer has the mapping. */
struct known_object *mapping_object(struct symbols *s, struct space *space, pid_t pid,
				    const struct mapping *m, bool past);
/* Returns the vdso of an address space that is a record. */
struct known_object *space_vdso(struct symbols *s, struct space *space, const struct mapping *m);
struct known_object *vdso_object(struct symbols *s);
/* --- budget.c: limits, and the order of dropping --- */
/* Adds a new object. Takes key. */
struct known_object *known_add(struct symbols *s, struct object *o, char *key);
/* Pins an object, because a caller gets it. path opens its file when the file is closed and cannot
 * be opened again; NULL: there is no path. */
struct object *known_pin(struct symbols *s, struct known_object *k, const char *path);
/* Notes a use. Opens its file again when it was closed and is needed. Returns false when that is
 * not possible and there are no symbols. */
bool known_use(struct symbols *s, struct known_object *k);
/* Counts k's symbols, which may have been read. Drops other objects when there are too many
 * symbols. */
void known_grown(struct symbols *s, struct known_object *k);
/* Frees all objects. */
void known_fini(struct symbols *s);

/* --- mappings.c: mappings of processes, over time --- */
struct process *process_of(struct symbols *s, pid_t pid, bool *ret_new);
/* Returns the process of a query. It is kept until the next call. */
struct process *process_asked(struct symbols *s, pid_t pid);
void process_drop(struct symbols *s, struct process *p);
/* Drops ended processes when there are more than symbols.limits allows: first those never queried,
 * then those with the oldest last query. Drops the longest lists of processes that live, when they
 * are too long together. Drops paths that no mapping has any more. */
void process_tidy(struct symbols *s);
/* To be called at each change of p->maps. */
void process_maps_changed(struct process *p);
/* Notes that process_tidy() has dropped pid, or that it is known again. */
void process_set_gone(struct symbols *s, pid_t pid, bool gone);
/* Returns true when process_tidy() has dropped pid and no event has come from pid since. */
bool process_was_dropped(const struct symbols *s, pid_t pid);
/* The mapping at an address at some time (0: now), its file's object and where the object begins in
 * memory. process_find() returns false when nothing is known to be mapped there. It reads /proc
 * again when this may help. */
struct process_at {
	const struct mapping *m;
	uint64_t base;
	struct object *o;           /* NULL: none, or it cannot be opened */
	struct known_object *known; /* the owner of o */
	bool lost; /* its object was dropped or closed because of the limits, for good */
};
bool process_find(struct symbols *s, struct process *p, uint64_t time, uint64_t addr,
		  struct process_at *ret);
/* Handle events of the kernel: m was mapped; child has parent's mappings; pid executes another
 * program. */
void process_map(struct symbols *s, pid_t pid, const struct mapping *m);
void process_forked(struct symbols *s, pid_t parent, pid_t child);
void process_exec(struct symbols *s, pid_t pid, uint64_t time);
char *symbol_demangle(const char *name); /* demangle.c */
char *symbol_demangle_short(const char *name);
/* Interns a name. Of one longer than max bytes (up to 4096), interns the first bytes and "...". */
uint32_t symbols_name(struct symbols *s, const char *name, size_t n, uint32_t max);

#endif
