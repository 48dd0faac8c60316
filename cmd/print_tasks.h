/* The tasks of event loops as text. */
#ifndef DESCRY_CMD_PRINT_TASKS_H
#define DESCRY_CMD_PRINT_TASKS_H

#include "base/out.h"
#include "consume/sink.h"
#include "program/runtime/runtime.h"

/* Adds ", waits for Task-2 and Task-3" and the like. */
void print_task_state(const struct runtime_tasks *all, const struct runtime_task *t, struct out *o);

struct print_tasks {
	struct sink *sink;
	struct out *out;
	uint32_t pid;
	const char *language;
};
/* Prints the tasks of the loop that a thread runs, each behind those that it waits for, unless they
 * are printed already. */
void print_tasks(struct runtime_tasks *all, uint64_t thread, struct print_tasks *how);
/* Prints the tasks that print_tasks() has not printed: no thread runs their loops. */
void print_tasks_left(const struct runtime_tasks *all, struct print_tasks *how);

#endif
