/* Shared by the files of target/. */
#ifndef DESCRY_PROGRAM_TARGET_TARGET_PRIVATE_H
#define DESCRY_PROGRAM_TARGET_TARGET_PRIVATE_H

#include "base/hash.h"
#include "base/mem.h"
#include "target.h"

enum {
	CONTROL_STUB_SIZE = 32,
	CONTROL_CODE_MAX = 256,
	CONTROL_PAGE = 4096,
	CONTROL_RED_ZONE = 128
};

struct control {
	pid_t pid;
	pid_t alive;       /* a thread that is not a zombie; its files in /proc are read */
	char *name;        /* comm, for messages */
	int mem;           /* /proc/PID/mem */
	bool no_mem_write; /* /proc/PID/mem does not write read-only pages: use PTRACE_POKETEXT */
	bool stopped;
	uint64_t scan_of, scanned; /* target_frames.c: ns spent in the stop that began at scan_of */
	bool own;                  /* started by this process */
	int options;               /* PTRACE_O_ */
	uint64_t stop_begun;       /* ns */
	VEC(struct control_thread) threads;
	struct hash by_tid; /* of threads: tid -> index + 1; entries may be of some that are gone */
	bool any_blocked;   /* a thread of them may be blocked */
	struct mappings maps;
	bool maps_known; /* maps is as the process is, which is stopped */
	uint64_t *auxv;
	uint32_t nauxv;
	uint64_t stub; /* address of the system call stub, 0: not placed */
	/* Code that threads under Syscall User Dispatch may make system calls in; hi 0: none is */
	struct control_range dispatched;
	bool stub_left;  /* the stub was there already: a killed tracer left it */
	bool stub_known; /* stub_before holds the bytes that the stub replaced */
	uint8_t stub_before[CONTROL_STUB_SIZE];
	int service, files; /* it serves itself (served.c): this side of two sockets, -1: no */
	int their_files;    /* its side of the second socket: the descriptor's number in it */
	pid_t caller; /* thread of the last system call; its stack is [caller_lo, caller_hi) */
	uint64_t caller_lo, caller_hi;
};

/* control.c. Sets *ret in any case. The caller frees it. */
struct err *control_new(pid_t pid, struct control **ret);
struct err *control_open_mem(struct control *c); /* of c->alive */
/* As pread(2) and pwrite(2) of its memory; ETIMEDOUT when it holds a page back (base/procmem.h). */
ssize_t control_pread(const struct control *c, void *buf, size_t n, uint64_t addr);
ssize_t control_pwrite(const struct control *c, const void *buf, size_t n, uint64_t addr);
struct err *control_gone(const struct control *c);

/* stop.c */
/* Returns the child that `tid` waits for in vfork(), if it shares the thread's memory, or 0. Such a
 * thread cannot stop and need not, because it runs no instruction before the child has left the
 * memory. */
/* Adds a thread to those that are stopped. Valid until the next one is added. */
struct control_thread *control_add_thread(struct control *c, pid_t tid);
pid_t control_vfork_child(pid_t pid, pid_t tid, uint64_t *ret_pc, uint64_t *ret_sp);

/* facts.c: facts from /proc. */
/* Reads a whole file of /proc/PID/task/TID, where TID is c->alive. */
struct err *control_proc(const struct control *c, const char *file, char **ret_text, size_t *ret_n);
/* Returns the file of another thread, or NULL when it cannot be read. */
char *control_task_file(pid_t pid, pid_t tid, const char *file);
struct err *control_read_status(pid_t pid, char **ret);
/* Returns the letter of the thread's state, or 0 when it has ended. */
char control_thread_state(pid_t pid, pid_t tid);
bool control_without_memory(pid_t pid, pid_t tid);
/* Returns the first thread that is not a zombie, or 0. The main thread may be a zombie while others
 * run. A thread that has memory comes before one that has released it in exit(2). */
pid_t control_living_thread(pid_t pid);
char *control_comm(pid_t pid); /* "?" when it has ended */
/* Returns the ns to wait for a process's tracer of this name. */
uint64_t control_patience(const char *comm);
/* Return an error when the process may not be traced. control_refused() returns the reason for
 * errno `code`. */
struct err *control_check_class(struct control *c); /* 64-bit? */
struct err *control_check_status(struct control *c, const char *status);
struct err *control_refused(const struct control *c, const char *status, int code);

struct err *control_filter_refuses(pid_t pid, const char *name);

/* dispatch.c: fills c->dispatched, for control_unused_end(). */
void control_find_dispatched(struct control *c);
/* Returns true when a system call of the thread at c->stub (or where the stub will be)
 * would come to a handler of its own. */
bool control_dispatches(struct control *c, const struct control_thread *t);

/* served.c: called when ptrace(2) is forbidden to control_start(). */
struct err *control_start_served(char *const argv[], const struct control_as *as,
				 struct control **ret);
/* In a child that will execute a program: takes its output and its user. */
struct err *control_cannot_run(const char *name, const struct control_as *as, int error);
/* For a process that serves itself. control_serve() makes a system call in it, control_serve_go()
 * starts its program, and control_serve_end() closes the connection, which ends it if it has not
 * started. */
struct err *control_serve(struct control *c, long nr, const uint64_t args[6], int64_t *ret_value);
void control_serve_go(struct control *c);
void control_serve_end(struct control *c);

/* start.c: takes the only thread from a trap, or from a stop at a system call, to the usual kind of
 * stop. */
struct err *control_hold(struct control *c);

/* stop.c */
/* Reads the registers. Turns EINTR of a call that the stop has interrupted into a restart, which is
 * the only change that does not wait until prove() has checked the thread's memory, because it
 * depends only on the registers. */
bool control_get_regs(struct control_thread *t);
/* Stops the threads that are not among c->threads yet. */
struct err *control_stop_more(struct control *c, int timeout_ms);

/* seize.c */
/* Registers a child of this process, so that control_ended() can report its end. */
void control_adopt(pid_t pid);
/* Calls waitpid(2) with WNOHANG for any thread. */
pid_t control_waitpid(pid_t tid, int *ret_status);
/* Call PTRACE_SEIZE; control_seize() also PTRACE_INTERRUPT. c: the process whose other threads are
 * held, or NULL. Return false with errno. Between control_rescue_begin() and control_rescue_end(),
 * which use SIGALRM and ITIMER_REAL, they do not wait for ever while the process executes another
 * program. */
bool control_seize_running(const struct control *c, pid_t tid, int options);
bool control_seize(const struct control *c, pid_t tid, int options);
void control_rescue_begin(void);
void control_rescue_end(void);
/* Returns true when this process traces the thread. */
bool control_is_ours(pid_t tid);
/* Detaches from a stopped thread. Waits for the end of a thread that was killed. */
void control_detach(pid_t tid);
/* Lets control_settle() detach from a thread that has not stopped. If the thread executes a program
 * before it stops, it gets the number of its process `pid`, and control_settle() uses this
 * number. */
void control_let_go_later(pid_t tid, pid_t pid);
/* Registers a thread that may end before it has executed a program. Its end is then reaped while
 * another thread is seized, and waitpid(2) does not report it any more. control_followed_ended()
 * returns true for it. */
void control_follow(pid_t tid, pid_t pid);
void control_unfollow(pid_t tid);
bool control_followed_ended(pid_t tid);
/* Returns true when the thread is in a restartable sequence (rseq(2)). The kernel aborts the
 * sequence of a thread that is interrupted inside it, but would not after a change of its
 * address. */
bool control_in_sequence(pid_t pid, pid_t tid);
/* Pauses between two polls of a wait that began at `begun` (ns). */
void control_wait_a_bit(uint64_t begun);
/* control_wait() waits for a stop of tid. control_wait_interrupt() delivers pending signals, up to
 * the next stop by PTRACE_INTERRUPT. */
bool control_wait(pid_t tid, int *ret_status, uint64_t deadline);
bool control_wait_interrupt(pid_t tid, int status, uint64_t deadline);

/* patch.c: writes to text, whatever its protection. */
struct err *control_write_text(struct control *c, uint64_t addr, const void *buf, uint32_t n);

/* --- target_syscall.c --- */
/* Finds `n` bytes in the unused end of a page of text, `behind` bytes in front of its end. They
 * hold zeros, or `code` already: *ret_left. Returns 0 when there is no such place. */
uint64_t control_unused_end(struct control *c, const uint8_t *code, uint32_t n, uint32_t behind,
			    bool *ret_left);
/* Returns true when a system call can be made in the thread. */
bool control_may_borrow(struct control *c, const struct control_thread *t);
/* Returns true when there is room for a frame, and `more` bytes below it, under the thread's stack
 * pointer. */
bool control_stack_is_sane(struct control *c, const struct control_thread *t, uint32_t more);
/* Writes the frame from which code that ends as the stub restores the thread. *ret_sp: the stack
 * pointer with which this code begins. */
struct err *control_write_frame(struct control *c, const struct control_thread *t,
				uint64_t *ret_sp);
enum control_outcome { CALL_DONE, CALL_AGAIN, CALL_LATE, CALL_FAILED };
/* Runs the thread, whose registers are set for code that ends as the stub, up to its next system
 * call: to the beginning or the end of it. `first`: no call was made yet. *ret_status is the stop.
 * CALL_AGAIN, CALL_LATE: no call was made. The thread has its own registers again. */
enum control_outcome control_run_call(struct control_thread *t, bool first, uint64_t deadline,
				      int *ret_status, int *ret_sig);
/* Returns true when the thread has executed another program, as this or an earlier stop shows. */
bool control_has_executed(struct control_thread *t, int status);
/* Takes the thread, at the end of a system call, to a stop where signals and restarts are handled,
 * with its own registers. */
enum control_outcome control_end_call(struct control_thread *t, uint64_t deadline);
/* Cancels a system call that a killed tracer left prepared, with the thread at
 * the stub's first instruction. Restores the thread's own registers. */
bool control_cancel_call(struct control *c, struct control_thread *t);
/* target_syscall.c: removes the stub from the text. */
void control_unstub(struct control *c);

#endif
