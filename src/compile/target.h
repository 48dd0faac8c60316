/* What an engine lets programs do: how the compiler's product differs from engine to engine. */
#ifndef DESCRY_COMPILE_TARGET_H
#define DESCRY_COMPILE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

struct options;
struct type_graph;

struct compile_target {
	bool task_btf; /* the engine lets programs read task_struct through a BTF pointer (kernel) */
	/* Fill the tables below; called when a program first asks. NULL: not known. */
	void (*find_cpus)(struct compile_target *t);
	void (*find_clocks)(struct compile_target *t);
	/* In the traced process: a system call's context is its struct pt_regs, as a uprobe's is;
	 * what is not resident is faulted in; threads ask for their own CPU time. */
	bool inside;
	uint32_t maps_max; /* most maps a program may use, 0: any number */
	/* inside: as struct image has it. */
	bool family;
	bool unwind; /* the engine keeps unwind tables: ustack() walks by them, not by frame pointers */
	const int32_t *cpu_chip, *cpu_node; /* by CPU number */
	const int32_t *cpu_mhz;             /* 0: not known */
	uint32_t ncpus;
	/* Up to how many probes of kernel functions have a program each for BPF trampolines, beside
	 * the one of all for kprobes; asked when there are some. NULL: none. */
	uint32_t (*fentry_max)(struct type_graph *types, const struct options *options);
	/* Can a uprobe's program wait for memory to be brought in? Asked when one would; NULL:
	 * yes. */
	bool (*sleeps)(void);
};

/* MAX_USED_MAPS of kernel/bpf/verifier.c. */
enum { PROG_MAPS_MAX = 64 };

#endif
