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
	uint64_t scan_of, scanned; /* frames.c: of the stop that began then, ns spent */
	bool own;                  /* started by us */
	int options;               /* PTRACE_O_ */
	uint64_t stop_begun;       /* ns */
	VEC(struct control_thread) threads;
	struct mappings maps;
	uint64_t *auxv;
	uint32_t nauxv;
	uint64_t stub;   /* where the system call stub is, 0 not placed */
	bool stub_left;  /* it was there already: left by a tracer that was killed */
	bool stub_known; /* what it replaced is known: stub_before */
	uint8_t stub_before[CONTROL_STUB_SIZE];
	int service, files; /* it serves itself (served.c): our ends of two sockets, -1 no */
	int their_files;    /* its end of the second: its number there */
	pid_t caller; /* thread that made the last system call, whose stack is [caller_lo, caller_hi) */
	uint64_t caller_lo, caller_hi;
};

/* control.c. *ret is made in any case, to be freed. */
struct err *control_new(pid_t pid, struct control **ret);
struct err *control_open_mem(struct control *c);
struct err *control_gone(const struct control *c);

/* facts.c: what /proc says. */
/* A file of /proc/PID/task/TID, whole; TID is c->alive. */
struct err *control_proc(const struct control *c, const char *file, char **ret_text, size_t *ret_n);
/* The same of another thread; NULL when it cannot be read. */
char *control_task_file(pid_t pid, pid_t tid, const char *file);
struct err *control_read_status(pid_t pid, char **ret);
/* The value behind "KEY:" of a status file, -1 when there is none. */
long control_status_number(const char *text, const char *key, int base);
/* The letter of its state, 0 when it is gone. */
char control_thread_state(pid_t pid, pid_t tid);
/* The first thread that is not a zombie, 0 none; the main one may be, while others run on. */
pid_t control_living_thread(pid_t pid);
char *control_comm(pid_t pid); /* "?" when it is gone */
/* ns that a process's tracer of this name is waited for. */
uint64_t control_patience(const char *comm);
/* What forbids that it be traced. refused: why was it, with errno `code`? */
struct err *control_check_class(struct control *c); /* 64-bit? */
struct err *control_check_status(struct control *c, const char *status);
struct err *control_refused(const struct control *c, const char *status, int code);

struct err *control_filter_refuses(pid_t pid, const char *name);

/* served.c: where control_start() finds that ptrace(2) is forbidden. */
struct err *control_start_served(char *const argv[], struct control **ret);
/* A system call of a process that serves itself; its program begins; it is let go of as it is,
 * which ends it. */
struct err *control_serve(struct control *c, long nr, const uint64_t args[6], int64_t *ret_value);
void control_serve_go(struct control *c);
void control_serve_end(struct control *c);

/* start.c: from a trap, or a stop at a system call, of the only thread to a stop like all
 * others. */
struct err *control_hold(struct control *c);

/* stop.c */
bool control_get_regs(struct control_thread *t);
/* Stops those that are not yet among c->threads. */
struct err *control_stop_more(struct control *c, int timeout_ms);

/* seize.c */
/* A child of this process: control_ended() knows of its end. */
void control_adopt(pid_t pid);
/* waitpid(2), WNOHANG, of any thread. */
pid_t control_waitpid(pid_t tid, int *ret_status);
/* PTRACE_SEIZE; and PTRACE_INTERRUPT. c: whose other threads are held, NULL none. False: errno.
 * Between rescue_begin() and rescue_end() (they use SIGALRM and ITIMER_REAL) it does not wait for
 * ever when the process executes another program. */
bool control_seize_running(const struct control *c, pid_t tid, int options);
bool control_seize(const struct control *c, pid_t tid, int options);
void control_rescue_begin(void);
void control_rescue_end(void);
/* Does this process trace it? */
bool control_is_ours(pid_t tid);
/* Of a stopped thread. One that was killed meanwhile is waited for. */
void control_detach(pid_t tid);
/* By control_settle(): of one that has not stopped. When it executes a program before it does, it
 * gets the number of its process `pid`, and is let go of under that. */
void control_let_go_later(pid_t tid, pid_t pid);
/* A thread that may end before it has executed a program: its end is waited for while another
 * thread is seized. control_followed_ended() says that this was so; waitpid(2) does not know it any
 * more then. */
void control_follow(pid_t tid, pid_t pid);
void control_unfollow(pid_t tid);
bool control_followed_ended(pid_t tid);
/* What a wait that began then (ns) does between two looks. */
void control_wait_a_bit(uint64_t begun);
/* Waits for a stop of tid; signals that want to be delivered are delivered, up to the next stop by
 * PTRACE_INTERRUPT. */
bool control_wait(pid_t tid, int *ret_status, uint64_t deadline);
bool control_wait_interrupt(pid_t tid, int status, uint64_t deadline);
/* syscall.c: the program counter and registers with which the thread will go on, once the kernel
 * has set up a restart. */
void control_restarted(const struct control_thread *t, struct user_regs_struct *ret);

/* patch.c: writes to text, whatever the protection. */
struct err *control_write_text(struct control *c, uint64_t addr, const void *buf, uint32_t n);

/* syscall.c: a thread that a dead tracer left in front of a system call (at the stub's first
 * instruction) does not make it: gives it back its own registers. */
bool control_cancel_call(struct control *c, struct control_thread *t);
/* syscall.c: takes the stub out of the text again. */
void control_unstub(struct control *c);

#endif
