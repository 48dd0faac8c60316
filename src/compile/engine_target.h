/* The differences between engines that the compiler must know. */
#ifndef DESCRY_COMPILE_ENGINE_TARGET_H
#define DESCRY_COMPILE_ENGINE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

struct options;
struct type_graph;

struct compile_target {
	bool task_btf; /* programs may read task_struct through a BTF pointer (kernel) */
	/* Fill the tables below. The compiler calls them when a program first needs the table.
	 * NULL: the engine cannot know. */
	void (*find_cpus)(struct compile_target *t);
	void (*find_clocks)(struct compile_target *t);
	/* Programs run in the traced process. The context of a system call is its struct pt_regs,
	 * as for a uprobe. A page that is not resident is faulted in. Threads query their own CPU
	 * time. */
	bool inside;
	uint32_t maps_max; /* most maps a program may use, 0: any number */
	/* See struct image. family: only with inside; compares: only without. */
	bool family, compares;
	bool unwind; /* the engine keeps unwind tables: ustack() walks by them, not by frame pointers */
	/* Return true when a walk of a user stack may meet a JVM, or V8. The code for Java's frames
	 * costs the verifier more than the rest. Called when there are such walks. NULL: false. */
	bool (*meets_java)(const void *arg), (*meets_javascript)(const void *arg);
	const void *meets_arg;
	const int32_t *cpu_chip, *cpu_node; /* index: CPU number */
	const int32_t *cpu_mhz;             /* 0: not known */
	uint32_t ncpus;
	/* The engine's timers may leave a program out: the programs of ticks count their periods,
	 * and with -x report those of profile probes their firings (wire/tick.h). */
	bool counts_timers;
	/* Returns how many probes of kernel functions may have a program each for BPF trampolines,
	 * beside the program that all kprobes share. Called when there are such probes. NULL: 0. */
	uint32_t (*fentry_max)(struct type_graph *types, const struct options *options);
	/* Returns true when a uprobe's program can wait until memory is brought in. Called when a
	 * program would wait. NULL: true. */
	bool (*sleeps)(void);
};

/* MAX_USED_MAPS of kernel/bpf/verifier.c. */
enum { PROG_MAPS_MAX = 64 };

#endif
