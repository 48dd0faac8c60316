/* A stand-in for a process's struct task_struct, for programs that run outside the kernel. It has
 * the members that the D libraries read: ids, names, parent, credentials, the place of the
 * arguments. All other members are 0; without BTF every member is 0.
 */
#ifndef DESCRY_LOAD_TASK_H
#define DESCRY_LOAD_TASK_H

#include <sys/types.h>

#include "program/type/type.h"

/* A cache of members' offsets, because looking one up takes longer than writing it. */
struct task_layout {
	struct {
		const char *tag,
			*member; /* NULL: the structure itself; names compare as pointers */
		type_id type;
		int64_t offset; /* or size; -1: BTF lacks it */
	} v[64];
	uint32_t n;
};

struct task_memory {
	/* Returns `size` bytes of zeroed memory that programs may read and that stay until the
	 * engine ends. NULL: there is no room. */
	uint8_t *(*alloc)(void *arg, uint64_t size);
	void *arg;
	struct task_layout *layout; /* shared by several tasks; NULL: no cache */
};

/* Facts of a thread, from /proc or from another source. */
struct task_facts {
	int pid, tgid, ppid, pgid, sid, threads;
	int uid, gid, euid, egid;
	int exit_code;
	int live; /* threads of its process that have not ended; 0: the same as `threads` */
	bool dead;
	uint64_t start_stack, arg_start, arg_end;
	char comm[16];
};

/* Reads the facts of a thread. Returns false when the thread does not exist; *ret is unchanged
 * then. */
bool task_facts_read(pid_t pid, struct task_facts *ret);
/* Makes a task and returns the address of its task_struct; 0: there was no room. parent: the
 * address of the parent's stand-in; 0: the task is its own parent, as the kernel's first task is.
 * Allocates the same objects in the same order each time. */
uint64_t task_from_facts(struct type_graph *types, const struct task_facts *self, uint64_t parent,
			 const struct task_memory *mem);
/* Makes the stand-in of an ancestor: ids, name and parent only. */
uint64_t task_ancestor(struct type_graph *types, const struct task_facts *f, uint64_t parent,
		       const struct task_memory *mem);
/* Changes the parent of a task made with this layout. */
void task_set_parent(struct type_graph *types, uint64_t task, uint64_t parent,
		     struct task_layout *layout);
/* Makes the stand-in of a process that may have ended, with the facts that are still available.
 * types may be NULL. Returns the address of the task_struct. */
uint64_t task_stand_in(struct type_graph *types, pid_t pid, const struct task_memory *mem);

#endif
