/* A live process under control: stopped for a moment, read, changed, resumed.
 *
 * In: a pid. Out: its threads stopped, registers, memory, system calls made in its name.
 * Always true: SIGKILL of the controlling process at any instant leaves the target running
 * correctly (system calls run from a stub that restores every register itself; text is written in
 * whole page runs, read and verified first). Nothing stays attached after control_resume(). As
 * ptrace(2) requires, the thread that opened the process must make all calls. */
#ifndef DESCRY_PROGRAM_TARGET_TARGET_H
#define DESCRY_PROGRAM_TARGET_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/err.h"
#include "program/space/space.h"

struct control;

struct control_thread {
	pid_t tid;
	struct user_regs_struct regs; /* as found; written back when changed */
	bool changed;
	bool in_syscall; /* stopped in a system call that the kernel will restart at rip - 2 */
	bool blocked;    /* waits for its vfork child: only rip and rsp are known, all are fixed */
	bool guest;      /* a vfork child, which is a process of its own in the target's memory */
	bool seized, pending; /* private: attached; not stopped yet */
	bool proved;          /* private: found in the memory that is read, after its stop */
	pid_t child;          /* private: of a blocked thread: the guest that it waits for */
	bool may_call;        /* private: no seccomp filter, or suspended until control_resume() */
};

/* Opens a process. The error names the obstacle: no such process, other user, setuid (dumpable),
 * ptrace_scope, already traced, seccomp. */
struct err *control_open(pid_t pid, struct control **ret);
void control_free(struct control *c); /* resumes first */
pid_t control_pid(const struct control *c);
/* Returns its address space. The space has threads while the process is stopped. Free it before
 * c. */
struct err *control_space(struct control *c, struct space **ret);

/* Stops every thread, including new ones, within timeout_ms. Uses SIGALRM and ITIMER_REAL of this
 * process until it returns. Cancels a system call that a tracer killed a moment ago had
 * prepared. */
struct err *control_stop(struct control *c, int timeout_ms);
/* Stops every thread at a moment when one of them can make system calls, not while the only thread
 * waits for its vfork child. */
struct err *control_stop_to_call(struct control *c, int timeout_ms);
/* Writes changed registers and detaches from all threads. They continue as without the stop, and
 * get the signals that arrived. */
struct err *control_resume(struct control *c);
struct control_thread *control_threads(struct control *c, uint32_t *ret_n); /* while stopped */
/* Writes changed registers now. control_patch_text() and control_syscall() do so first. */
struct err *control_put_regs(struct control *c);
/* Detaches from threads that did not stop in time (uninterruptible sleep) once they stop. Returns
 * true when none is left. Call it now and then after control_stop() has failed. One call serves all
 * processes of this thread. */
bool control_settle(void);

/* Makes one system call in the target's main thread (or another stopped one). *ret_value is its
 * result or -errno. The process must be stopped. A system call that the thread was in continues
 * afterwards. A thread under a seccomp filter makes no call, unless the filter can be suspended
 * while the thread is stopped. EPERM: no thread may make one. If the tracer is killed in the middle
 * of such a call, the thread makes the call under its filter. */
struct err *control_syscall(struct control *c, long nr, const uint64_t args[6], int64_t *ret_value);

/* Returns the address of a signal's handler, or SIG_DFL or SIG_IGN as a number. *ret_flags, which
 * may be NULL: SA_RESTART and its like. The process makes three system calls for it, and must be
 * stopped by control_stop_to_call(). */
struct err *control_signal_handler(struct control *c, int signal, uint64_t *ret,
				   uint64_t *ret_flags);

/* A copy of a process: of its memory and its mappings, at the moment of the stop. It is a stopped
 * process, which this process traces. It has no pages of shared mappings, no mappings that are
 * left out by MADV_DONTFORK, and zeros where MADV_WIPEONFORK is set. */
struct control_copy;
/* Returns the reason why a copy would be a risk to a process, or NULL. Call it before the stop.
 * *ret_absent: the memory that the copy will not have, because of MADV_DONTFORK and
 * MADV_WIPEONFORK. */
const char *control_copy_refused(pid_t pid, space_range_vec *ret_absent);
/* Copies a stopped process, which can then be resumed. The error does not name the process. */
struct err *control_copy(struct control *c, struct control_copy **ret);
/* Returns 0 when control_copy_close() has seen its end. */
pid_t control_copy_pid(const struct control_copy *k);
/* Returns false when someone has ended the copy: the program itself, its user, or the kernel for
 * lack of memory. What was read before may be zeros then. */
bool control_copy_lives(const struct control_copy *k);
/* Closes the descriptors of the copy, which shares those of the process till then. Call it when the
 * process goes on: a server of files may be one of its threads. The copy can be read even when the
 * server does not answer. */
void control_copy_close(struct control_copy *k);
/* Ends the copy, and removes what the process has for it: a thread, and code in an unused place of
 * its text. A running process is stopped for that once more: returns for how many ns. The code
 * stays while another tracer uses it, or when the process cannot be stopped. */
uint64_t control_copy_free(struct control_copy *k);

/* Returns true when a seccomp filter, or the strict mode, checks the thread's system calls. A
 * thread with as many filters as this process counts as unfiltered: it inherited the same filters,
 * which permit the same calls. */
bool control_filtered(pid_t pid, pid_t tid);
bool control_any_filtered(pid_t pid); /* of any of its threads */
/* Finds other processes that run in the process's memory (clone(2) with CLONE_VM), and that
 * stopping the process does not stop. Returns their number, at most max; 0 where kcmp(2) is not
 * available. A child that a thread of the process waits for in vfork(2) does not count. */
uint32_t control_memory_sharers(pid_t pid, pid_t *ret, uint32_t max);
/* Returns true when a thread of a stopped process has Syscall User Dispatch switched on. Returns
 * false where the kernel does not tell (before Linux 6.4). */
bool control_any_dispatches(const struct control *c);
/* Returns EPERM, with the reason, when control_syscall() would find no thread that may make system
 * calls. */
struct err *control_check_calls(pid_t pid);

/* Returns true for registers of 64-bit code: what descry puts into a thread is no other. */
bool control_is_64bit(const struct user_regs_struct *r);
/* Finds the stack that the kernel has made for the process's first thread, or the C library for
 * another one: its `fs_base` lies behind it. Returns false when sp is in none: programs make stacks
 * of a few hundred bytes in memory of their own (Erlang, OCaml, coroutines), below which nobody may
 * write. */
bool control_find_stack(const struct mappings *maps, bool first_thread, uint64_t fs_base,
			uint64_t sp, uint64_t *ret_lo, uint64_t *ret_hi);
/* Stops one thread of a running process for a moment, at most timeout_ms. fn may change the
 * registers, and returns whether it has. Does not call fn for a thread in a system call or in a
 * restartable sequence (rseq(2)). Returns true when registers were changed. */
bool control_glance(pid_t pid, pid_t tid, int timeout_ms,
		    bool (*fn)(void *arg, struct user_regs_struct *regs), void *arg);

/* Memory, stopped or not. Writes also reach read-only pages. */
struct err *control_read(struct control *c, uint64_t addr, void *buf, uint32_t n);
struct err *control_write(struct control *c, uint64_t addr, const void *buf, uint32_t n);
/* Reads the mappings, once in a stop for as long as no system call is made. They are valid until
 * the next call. */
struct err *control_maps(struct control *c, const struct mappings **ret);
/* Returns an entry of /proc/PID/auxv (AT_ENTRY, AT_PHDR, ...), 0 when there is none. */
uint64_t control_auxv(struct control *c, uint64_t type);

enum { CONTROL_PATCH_MAX = 64 };
struct control_patch {
	uint64_t addr;
	uint8_t len;
	uint8_t expect[CONTROL_PATCH_MAX], put[CONTROL_PATCH_MAX];
	bool skipped; /* out: bytes are not `expect`, or just one is before a page boundary */
};
/* Patches text: reads runs of pages once, verifies each patch against the bytes there, and writes
 * whole runs. The patches are sorted by addr and do not overlap. *ret_skipped: number of patches
 * with .skipped set. A patch whose bytes are `put` already is not skipped. A patch across two pages
 * is written by way of a jump to itself, so that no thread ever runs half of it. */
struct err *control_patch_text(struct control *c, struct control_patch *p, uint32_t n,
			       uint32_t *ret_skipped);

/* Calls fn for every program counter saved in a signal frame on the threads' stacks (the kernel's
 * rt_sigframe: return address of the restorer, ucontext). fn may change *pc. in_syscall (struct
 * control_thread) does not apply to these, because the kernel has set the program counter back
 * already. EBUSY: the stacks hold more frames than nested handlers leave, which a process can
 * forge, or the scan took too long; fn was called for some frames. */
struct err *control_signal_frames(struct control *c, void (*fn)(void *arg, uint64_t *pc),
				  void *arg);

struct control_range {
	uint64_t lo, hi;
};
/* Searches for a thread that may return into one of the ranges: its program counter or stack
 * pointer, one saved in a signal frame, or, with `words`, any word of the live part of a stack is
 * in a range (return addresses, and remains of dead ones). *ret_tid 0: none. EBUSY as above. */
struct err *control_refers(struct control *c, const struct control_range *r, uint32_t n, bool words,
			   pid_t *ret_tid);

/* The output and the user of a process that is started. Zeroes, or NULL in its place: those of this
 * process. */
struct control_as {
	int output; /* descriptor of its standard output; 0: this process's own */
	const struct child_user *user; /* whose it is; NULL: this user's */
};
/* Starts argv stopped under control: at its program's entry point, where all its libraries are
 * mapped (at_entry), or right after exec, before the dynamic linker. The program is a child of this
 * process, which must wait for it. It is killed when this process ends before control_resume().
 */
struct err *control_start(char *const argv[], bool at_entry, const struct control_as *as,
			  struct control **ret);
/* Checks that the dynamic linker loads a library (LD_PRELOAD) into the command that execvp(3) would
 * find with this PATH (NULL: with that of this process). ENOTSUP: it does not: "FILE `what`
 * reason". ret_path: the program's file, malloc()ed, that of the interpreter of a script; NULL: not
 * wanted. */
struct err *control_check_preload(const char *name, const char *path, const char *what,
				  char **ret_path);
/* Returns true for a command that was started where ptrace(2) is forbidden, and is held by the
 * library that its dynamic linker loads (served.c). It is held before its own constructors run,
 * both for "right after exec" and for "at its entry point". It can be read, written, patched and
 * make system calls until control_resume(), and cannot be stopped again. A file sent through
 * *ret_socket (SCM_RIGHTS) arrives there at descriptor *ret_theirs. */
bool control_is_served(const struct control *c, int *ret_socket, int *ret_theirs);
/* Returns true when the process has ended. *ret_status is the status of waitpid(2). A process that
 * ends while it is stopped is reaped by this module, so waitpid(2) itself may not report it. */
bool control_ended(pid_t pid, int *ret_status);
/* Watches a thread of process `pid` that is about to call execve(2), to stop it in the program that
 * it executes. The thread runs meanwhile. Poll it often, because its signals wait for this. */
struct err *control_exec_watch(pid_t tid, pid_t pid);
/* Returns true when the thread is in execve(2) or wants a processor, and false when it waits for
 * anything else. */
bool control_exec_comes(pid_t tid);
enum control_exec { CONTROL_EXEC_NOT_YET, CONTROL_EXEC_DONE, CONTROL_EXEC_GONE };
/* Polls a watched thread. pid: its process, whose number it gets by executing. */
enum control_exec control_exec_look(pid_t tid, pid_t pid);
/* Continues a new program after DONE until its libraries are mapped and it has a thread pointer,
 * and holds it there. relocated: until its dynamic linker has relocated the libraries, too, if this
 * can be seen; the linker unmaps its list of libraries then. The program may take timeout_ms from
 * one system call to the next and six times that in all. The time in which no processor was free
 * for it does not count. On error the program is released. */
struct err *control_exec_hold(pid_t pid, int timeout_ms, bool relocated, struct control **ret);
/* Forgets a thread that another thread's execve(2) has ended. */
void control_exec_forget(pid_t tid);
/* Stops watching a thread. If it is in the middle of execve(2), control_settle() detaches from it
 * later. */
void control_exec_leave(pid_t tid, pid_t pid);
/* Runs a program held by control_start(), which has one thread, until it comes to addr, and holds
 * it there. */
struct err *control_run_to(struct control *c, uint64_t addr);

#endif
