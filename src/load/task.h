/* A stand-in for a process's struct task_struct, for programs that do not run in the kernel: a
 * readable copy with what the D libraries ask of one: ids, names, parent, credentials, where the
 * arguments are; all else is 0, and all of it where there is no BTF.
 */
#ifndef DESCRY_LOAD_TASK_H
#define DESCRY_LOAD_TASK_H

#include <sys/types.h>

#include "program/type/type.h"

/* Where the members lie that have been asked for: looking one up takes longer than writing it. */
struct task_layout {
	struct {
		const char *tag,
			*member; /* member NULL: the structure itself; compared as pointers */
		type_id type;
		int64_t offset; /* or size; -1: there is none */
	} v[64];
	uint32_t n;
};

struct task_memory {
	/* size bytes of zeroed memory that programs may read; they stay until the engine ends.
	 * NULL: there is no room */
	uint8_t *(*alloc)(void *arg, uint64_t size);
	void *arg;
	struct task_layout *layout; /* kept from one task to the next; NULL: nothing is kept */
};

/* What /proc tells of a thread, or what is known of it from elsewhere. */
struct task_facts {
	int pid, tgid, ppid, pgid, sid, threads;
	int uid, gid, euid, egid;
	int exit_code;
	int live; /* threads of its process that have not ended; 0: `threads` of them */
	bool dead;
	uint64_t start_stack, arg_start, arg_end;
	char comm[16];
};

/* pid: any thread's. False when there is no such thread (any more): *ret is then as it was. */
bool task_facts_read(pid_t pid, struct task_facts *ret);
/* Address of the task_struct; 0: there was no room for it. parent: address of the parent's
 * stand-in; 0: the task is its own parent, as the kernel's first one is. Allocates the same objects
 * in the same order each time. */
uint64_t task_from_facts(struct type_graph *types, const struct task_facts *self, uint64_t parent,
			 const struct task_memory *mem);
/* Of a process that others descend from: ids, name and parent only. */
uint64_t task_ancestor(struct type_graph *types, const struct task_facts *f, uint64_t parent,
		       const struct task_memory *mem);
/* Gives a task made with this layout another parent. */
void task_set_parent(struct type_graph *types, uint64_t task, uint64_t parent,
		     struct task_layout *layout);
/* Of a process that has gone: what can still be known. types may be NULL. The address of the
 * task_struct. */
uint64_t task_stand_in(struct type_graph *types, pid_t pid, const struct task_memory *mem);

#endif
