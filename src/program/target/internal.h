/* What the files of target/ share. */
#ifndef DESCRY_PROGRAM_TARGET_INTERNAL_H
#define DESCRY_PROGRAM_TARGET_INTERNAL_H

#include "base/mem.h"
#include "target.h"

enum { CONTROL_STUB_SIZE = 32, CONTROL_PAGE = 4096, CONTROL_RED_ZONE = 128 };

struct control {
	pid_t pid;
	pid_t alive;       /* a thread that is not a zombie: whose files in /proc are read */
	char *name;        /* comm, for messages */
	int mem;           /* /proc/PID/mem */
	bool no_mem_write; /* /proc/PID/mem does not write to read-only pages: PTRACE_POKETEXT */
	bool stopped;
	bool own;            /* started by us */
	int options;         /* PTRACE_O_ */
	uint64_t stop_begun; /* ns */
	VEC(struct control_thread) threads;
	VEC(struct control_map) maps;
	char *maps_text;
	uint64_t *auxv;
	uint32_t nauxv;
	uint64_t stub;   /* where the system call stub is, 0 not placed */
	bool stub_left;  /* it was there already: left by a tracer that was killed */
	bool stub_known; /* what it replaced is known: stub_before */
	uint8_t stub_before[CONTROL_STUB_SIZE];
	pid_t caller; /* thread that made the last system call, whose stack is [caller_lo, caller_hi) */
	uint64_t caller_lo, caller_hi;
};

/* *ret is made in any case, to be freed. */
struct err *control_new(pid_t pid, struct control **ret);
struct err *control_open_mem(struct control *c);
struct err *control_check_class(struct control *c); /* 64-bit? */
bool control_get_regs(struct control_thread *t);
/* Stops those that are not yet among c->threads. */
struct err *control_stop_more(struct control *c, int timeout_ms);
struct err *control_gone(const struct control *c);
/* Waits for a stop of tid; signals that want to be delivered are delivered, up to the next stop by PTRACE_INTERRUPT. */
bool control_wait(pid_t tid, int *ret_status, uint64_t deadline);
bool control_wait_interrupt(pid_t tid, int status, uint64_t deadline);
/* The program counter and registers with which the thread will go on, once the kernel has set up a restart. */
void control_restarted(const struct control_thread *t, struct user_regs_struct *ret);
uint64_t control_now(void); /* CLOCK_MONOTONIC ns */

/* patch.c: writes to text, whatever the protection. */
struct err *control_write_text(struct control *c, uint64_t addr, const void *buf, uint32_t n);

/* syscall.c: a thread that a dead tracer left in front of a system call (at the stub's first instruction) does not make it:
 * gives it back its own registers. */
bool control_cancel_call(struct control *c, struct control_thread *t);
/* syscall.c: takes the stub out of the text again. */
void control_unstub(struct control *c);

/* A file of /proc/PID/task/TID, whole. */
struct err *control_proc(const struct control *c, const char *file, char **ret_text, size_t *ret_n);

#endif
