/* The compiler's product: everything that an engine needs to run a D program, as a value.
 *
 * It can be printed (image_print), compared with a golden file, interpreted without root, and
 * loaded.
 * Always true: allocated in one arena; all cross references are indices. */
#ifndef DESCRY_DATA_IMAGE_H
#define DESCRY_DATA_IMAGE_H

#include <linux/bpf.h>

#include "data/options.h"
#include "data/schema.h"
#include "probe/probe.h"

/* Roles of maps. The index of a map in image.maps is arbitrary: find fixed maps by their role. */
enum map_role {
	MAP_STATE,    /* struct wire_state, one, mmapable array */
	MAP_DATA,     /* ring buffer of records */
	MAP_CONTROL,  /* ring buffer of records that a flood of data must not displace */
	MAP_GLOBALS,  /* all scalar globals, one value, array */
	MAP_RODATA,   /* string literals and tables, one value, array; .init gives its contents */
	MAP_SCRATCH,  /* array of ncpu * WIRE_SCRATCH_SLOTS values: uint64_t busy, then space */
	MAP_TLS,      /* task storage: two words for vtimestamp, then the self-> scalars */
	MAP_SYSCALLS, /* array by system call number: struct wire_syscall */
	MAP_COUNTERS, /* per-CPU array of uint64_t: enum wire_counter, then WIRE_PROBE_SLOTS per probe */
	MAP_STACKS, /* kernel+user stacks of keys */
	MAP_AGG,
	MAP_ASSOC, /* associative array */
	MAP_LATE,  /* hash tid -> strings to read at return */
	MAP_UNWIND, /* unwind tables (these three: wire/wire_unwind.h), made and filled by the loader */
	MAP_UNWIND_PROCESSES,
	MAP_UNWIND_WANTED, /* ring of struct wire_unwind_ask */
	MAP_TICKS,         /* struct wire_tick of each tick, one value, mmapable array */
	MAP_SAMPLES,       /* per-CPU array of struct wire_samples */
	MAP_FUNCTIONS,     /* what is known of functions, one value, array: gen_by_id() */
	MAP_OTHER,
};

struct image_map {
	const char *name;
	enum map_role role;
	enum bpf_map_type type;
	uint32_t key_size, value_size;
	uint32_t max_entries; /* MAP_SCRATCH: per CPU; the loader multiplies by the number of CPUs */
	uint32_t flags;       /* BPF_F_* */
	const void *init;     /* first value's contents, value_size bytes, NULL: zero */
	/* MAP_SYSCALLS: number of initial entries in init, each value_size */
	uint32_t ninit;
};

enum reloc_kind {
	RELOC_MAP,       /* LD_IMM64: the map's fd (BPF_PSEUDO_MAP_FD) */
	RELOC_MAP_VALUE, /* LD_IMM64: address of the map's first value + addend (BPF_PSEUDO_MAP_VALUE) */
	RELOC_ROUTINE, /* CALL: routine `name` of bpf/ (BPF_PSEUDO_CALL) */
};
struct reloc {
	uint32_t insn;
	enum reloc_kind kind;
	uint32_t target; /* map index */
	int64_t addend;
	const char *name; /* routine or symbol */
};

/* A variable in MAP_GLOBALS. */
struct image_guard {
	uint32_t offset, size;
};

struct image_prog {
	const char *name; /* "syscall_entry", for messages and the kernel's prog name */
	enum attach_kind attach;
	bool sleepable;
	struct bpf_insn *insns;
	uint32_t ninsns;
	loc_t *locs; /* source position of each instruction */
	struct reloc *relocs;
	uint32_t nrelocs;
	/* The probes that the program serves. The program reads the probe that fired from the
	 * attach cookie (an index into image.probes). Exceptions: ATTACH_SYSCALL_* (dispatch
	 * table), ATTACH_SELF, and programs with one probe (constant). Where a kernel has no
	 * cookies for this attach kind, the loader loads a copy for each probe and puts the probe's
	 * index in place of the call that reads the cookie. */
	uint32_t *probes;
	uint32_t nprobes;
	bool uses_cookie;
	/* KPROBE, KRETPROBE: index of the same program for BPF trampolines, or 0. It serves those
	 * of the probes that can use a trampoline. The loader decides which of them do. */
	uint32_t fentry;
	/* For an engine whose timers may leave programs out: index + 1 of its struct wire_tick
	 * (TICK) or wire_samples (PROFILE). Such a program has one probe. */
	uint32_t tick, samples;
	/* The program does nothing while all its guards are 0, and only programs that the tracer
	 * runs (BEGIN, END, TICK) set them to anything else. nguards 0: it may always do
	 * something. */
	struct image_guard *guards;
	uint32_t nguards;
	/* Programs of the session, not of a D probe: sched_switch for vtimestamp, sys_exit for late
	 * strings. nprobes is 0. */
	const char *tracepoint; /* its raw tracepoint */
};

/* A probe that is enabled. Its index is the "probe" of records. */
struct image_probe {
	const struct probe *probe;
	uint32_t id; /* for the ID column */
	const char *prov, *mod, *func, *name;
};

/* A variable that a clause uses, for listings. */
struct image_var {
	const char *name, *scope; /* scope: glb, tls, loc */
	const char *type;         /* in words, with its size in bytes */
	uint32_t id;
	uint32_t offset; /* bytes, among the variables of its scope; when `placed` */
	bool placed, array, read, written;
};
struct image_clause {
	loc_t loc, end;
	uint32_t index, number; /* of the clause; of its first description among all */
	const char *desc;       /* its first description, as written */
	struct image_var *vars;
	uint32_t nvars;
};

/* Kernel structure offsets that the routines of bpf/ need. The compiler reads them from BTF and
 * puts them into MAP_RODATA (wire/offsets.h). */

struct image {
	struct arena arena;
	struct type_graph *types; /* borrowed */
	struct diags *diags;      /* borrowed: for locs */
	struct options *options;  /* borrowed */
	struct image_map *maps;
	uint32_t nmaps;
	struct image_prog *progs;
	uint32_t nprogs;
	struct image_probe *probes;
	uint32_t nprobes;
	struct segment *segments;
	uint32_t nsegments;
	struct agg *aggs;
	uint32_t naggs;
	struct image_clause *clauses;
	uint32_t nclauses;
	const char **strings;
	uint32_t nstrings;
	bool destructive; /* uses actions that need -w */
	bool uses_error;  /* has ERROR clauses: faults are not printed by default */
	/* The engine also traces children of the traced processes. Probes of named processes fire
	 * only in these, unless -x follow is on. */
	bool family;
	/* A named process's first thread has ended while others run. The kernel's filter by the
	 * process would find no memory, so the programs compare the process themselves. */
	bool compares;
	bool has_begin, has_end;
	uint32_t begin_prog, end_prog; /* index into progs, when has_* */
};

void image_print(FILE *out, const struct image *img);
/* Lists the image in DTrace's form: for each program the clauses it serves, its instructions and
 * their variables. */
void image_list(FILE *out, const struct image *img); /* -d ebpf: maps, programs, schemas; stable */
void image_free(struct image *img);
/* Returns true when the program prints user addresses (ustack(), usym(), %A...) as names. Then the
 * session must record mappings while they exist. */
bool image_prints_user_addresses(const struct image *img);
/* Returns true when indices of probes, strings, segments and aggregations mean the same in both
 * images. */
bool image_is_alike(const struct image *a, const struct image *b);
/* Removes the probes without keep[] (by index in probes), and the programs that then serve none,
 * BEGIN and END included. All indices except those of programs stay valid. */
void image_keep(struct image *img, const bool *keep);
int image_find_map(const struct image *img, enum map_role role); /* index, or -1 */

/* Returns the action's name in D: "printf". */
const char *action_name(enum action_kind kind);

#endif
