/* The compiler's product: everything a back end needs to run a D program, as a value.
 *
 * It can be printed (image_print), compared with a golden file, interpreted without root, loaded.
 * Always true: allocated in one arena; all cross references are indices.
 */
#ifndef DESCRY_DATA_IMAGE_H
#define DESCRY_DATA_IMAGE_H

#include <linux/bpf.h>

#include "data/options.h"
#include "data/schema.h"
#include "probe/probe.h"

/* Roles of the maps; the index of a map in image.maps is arbitrary, find fixed ones by role. */
enum map_role {
	MAP_STATE,    /* struct wire_state, one, mmapable array */
	MAP_DATA,     /* ring buffer of records */
	MAP_CONTROL,  /* ring buffer of records that must not be lost to a flood of data */
	MAP_GLOBALS,  /* all scalar globals, one value, array */
	MAP_RODATA,   /* string literals and tables, one value, array; .init gives its contents */
	MAP_SCRATCH,  /* array of ncpu * WIRE_SCRATCH_SLOTS values: uint64_t busy, then space */
	MAP_TLS,      /* task storage: the self-> scalars; for vtimestamp two words in front */
	MAP_SYSCALLS, /* array by system call number: struct wire_syscall */
	MAP_COUNTERS, /* per-CPU array of uint64_t: enum wire_counter, then WIRE_PROBE_SLOTS per probe */
	MAP_STACKS, /* kernel+user stacks of keys */
	MAP_AGG,
	MAP_ASSOC, /* associative array */
	MAP_LATE,  /* hash tid -> strings to read at return */
	MAP_UNWIND, /* unwind tables: what these three hold is wire/unwind.h; the loader makes and fills them */
	MAP_UNWIND_PROCESSES,
	MAP_UNWIND_WANTED, /* ring of struct wire_unwind_ask */
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
	RELOC_FUNC, /* CALL: another function of this program: target = index of insn of its start */
	RELOC_KSYM, /* LD_IMM64: address of kernel symbol `name` */
};
struct reloc {
	uint32_t insn;
	enum reloc_kind kind;
	uint32_t target; /* map index */
	int64_t addend;
	const char *name; /* routine or symbol */
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
	uint32_t *funcs; /* start instruction of each function in it, [0] = 0 */
	uint32_t nfuncs;
	/* Which probes it serves; the program learns which one fired from the attach cookie (=
	 * index in image.probes), except ATTACH_SYSCALL_* (dispatch table), ATTACH_SELF and
	 * programs with one probe (constant). Where a kernel has no cookies for this attach kind
	 * the loader loads one copy per probe, patching the LD_IMM64 at insn cookie_insn (its
	 * immediate is the probe index; UINT32_MAX: none). */
	uint32_t *probes;
	uint32_t nprobes;
	uint32_t cookie_insn;
	bool uses_cookie;
	/* KPROBE, KRETPROBE: index of the program that is the same for BPF trampolines and serves
	 * those of its probes that can be fired so; the loader gives it what it can. 0 none. */
	uint32_t fentry;
	/* Helpers of the run, not of a D probe: sched_switch for vtimestamp, sys_exit for late
	 * strings. nprobes is 0. */
	const char *tracepoint; /* their raw tracepoint */
};

/* A probe that is enabled. Index = "probe" of records. */
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
	uint32_t offset; /* bytes, among those of its scope; when `placed` */
	bool placed, array, read, written;
};
struct image_clause {
	loc_t loc, end;
	uint32_t index, number; /* of the clause, and of its first description among all */
	const char *desc;       /* its first description, as written */
	struct image_var *vars;
	uint32_t nvars;
};

/* Kernel structure offsets that bpf/ routines need: name "task_struct.fs" -> value; filled by the
 * compiler from BTF into MAP_RODATA where the routine finds them (wire/offsets.h). */

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
	/* Children of the traced processes are traced from inside; probes of named processes are
	 * for these alone unless -x follow is on. */
	bool family;
	bool has_begin, has_end;
	uint32_t begin_prog, end_prog; /* index into progs, when has_* */
};

void image_print(FILE *out, const struct image *img);
/* The same as DTrace lists it: for each program the clauses it serves, its instructions, their
 * variables. */
void image_list(FILE *out, const struct image *img); /* -d ebpf: maps, programs, schemas; stable */
void image_free(struct image *img);
/* Are user addresses (ustack(), usym(), %A...) printed as names? Then mappings must be seen while
 * they last. */
bool image_prints_user_addresses(const struct image *img);
/* Do indices of probes, strings, segments and aggregations mean the same in both? */
bool image_is_alike(const struct image *a, const struct image *b);
/* Leaves only what the probes do for which keep[] holds (by index in probes): programs of others
 * go, with BEGIN and END when they are among those. All indices but those of programs stay what
 * they are. */
void image_keep(struct image *img, const bool *keep);
int image_find_map(const struct image *img, enum map_role role); /* index or -1 */

#endif
