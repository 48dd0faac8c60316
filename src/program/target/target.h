/* A live process under control: stopped for a moment, read, changed, let go.
 *
 * In: a pid. Out: its threads stopped, registers, memory, system calls made in its name.
 * Always true: SIGKILL of the controlling process at any instant leaves the target running
 * correctly (system calls run from a stub that restores every register itself; text is written in
 * whole page runs, read and verified first); nothing stays attached after control_resume().
 * ptrace(2) semantics: the thread that opened must make all calls.
 */
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
	bool in_syscall; /* stopped inside a system call that the kernel will restart: it goes on at rip - 2 */
	bool blocked; /* waits for its vfork child: of regs only rip and rsp are known, and cannot be changed */
	bool guest; /* a vfork child: a process of its own that runs in the target's memory */
	bool seized, pending; /* private: attached; not stopped yet */
	bool may_call; /* private: no seccomp filter looks at its system calls, or it is suspended until control_resume() */
};

/* Says clearly what forbids it: no such process, other user, setuid (dumpable), ptrace_scope,
 * already traced, seccomp. */
struct err *control_open(pid_t pid, struct control **ret);
void control_free(struct control *c); /* resumes first */
pid_t control_pid(const struct control *c);
/* Its address space: it has threads while the process is stopped. To be freed first. */
struct err *control_space(struct control *c, struct space **ret);

/* Stops every thread, those that start meanwhile too; at most timeout_ms. Until it returns it uses
 * SIGALRM and ITIMER_REAL of this process. A system call that a tracer killed a moment ago was
 * about to make is not made any more. */
struct err *control_stop(struct control *c, int timeout_ms);
/* The same at a moment when a thread can make system calls: not while the only one waits for its
 * vfork child. */
struct err *control_stop_to_call(struct control *c, int timeout_ms);
/* Writes changed registers and detaches from all: they run on as they would have, signals that
 * arrived included. */
struct err *control_resume(struct control *c);
struct control_thread *control_threads(struct control *c, uint32_t *ret_n); /* while stopped */
/* Writes changed registers now. control_patch_text() and control_syscall() do it first. */
struct err *control_put_regs(struct control *c);
/* Threads that did not stop in time (uninterruptible sleep) are let go when they do: true when none
 * is left. Call it now and then after control_stop() has failed; all processes of this thread at
 * once. */
bool control_settle(void);

/* One system call in the target's main thread (or another stopped one); *ret_value is its result or
 * -errno. While stopped. A system call that the thread was in goes on afterwards as if nothing had
 * been. A thread under a seccomp filter makes none, unless the filter can be suspended as long as
 * the thread is stopped; EPERM: none may. Whoever is killed in the middle of such a call leaves a
 * thread that makes it under its filter. */
struct err *control_syscall(struct control *c, long nr, const uint64_t args[6], int64_t *ret_value);

/* Does a seccomp filter, or the strict mode, look at the thread's system calls? Filters are
 * inherited: as many as our own are our own, which permit it what they permit us. */
bool control_filtered(pid_t pid, pid_t tid);
bool control_any_filtered(pid_t pid); /* of any of its threads */
/* Will control_syscall() find a thread that may make system calls? Else EPERM, with the reason. */
struct err *control_check_calls(pid_t pid);

/* Stops one thread of a process that is not stopped, for a moment, at most timeout_ms: fn may
 * change the registers, and says whether it has. Not called for one that is in a system call or in
 * a restartable sequence (rseq(2)). True: changed. */
bool control_glance(pid_t pid, pid_t tid, int timeout_ms,
		    bool (*fn)(void *arg, struct user_regs_struct *regs), void *arg);

/* Memory, stopped or not. Writes reach read-only pages too. */
struct err *control_read(struct control *c, uint64_t addr, void *buf, uint32_t n);
struct err *control_write(struct control *c, uint64_t addr, const void *buf, uint32_t n);
/* The mappings, read anew; valid until the next call. */
struct err *control_maps(struct control *c, const struct mappings **ret);
/* An entry of /proc/PID/auxv (AT_ENTRY, AT_PHDR, ...), 0 when there is none. */
uint64_t control_auxv(struct control *c, uint64_t type);

enum { CONTROL_PATCH_MAX = 64 };
struct control_patch {
	uint64_t addr;
	uint8_t len;
	uint8_t expect[CONTROL_PATCH_MAX], put[CONTROL_PATCH_MAX];
	bool skipped; /* out: the bytes were not `expect`, or one byte stands alone in front of a page boundary */
};
/* Text: reads runs of pages once, verifies each patch against what is there, writes whole runs.
 * Sorted by addr, not overlapping. *ret_skipped: patches left alone, said in .skipped. Bytes that
 * are `put` already are no skip. A patch across two pages goes by way of a jump to itself, so that
 * no thread ever runs half of it. */
struct err *control_patch_text(struct control *c, struct control_patch *p, uint32_t n,
			       uint32_t *ret_skipped);

/* Calls fn for every program counter saved in a signal frame on the threads' stacks (the kernel's
 * rt_sigframe: return address of the restorer, ucontext): fn may change *pc. in_syscall as in
 * struct control_thread: never, the kernel has set the program counter back already. EBUSY: the
 * stacks hold more frames than nested handlers leave, as a process may forge them, or looking at
 * them took too long; fn was called for some. */
struct err *control_signal_frames(struct control *c, void (*fn)(void *arg, uint64_t *pc),
				  void *arg);

struct control_range {
	uint64_t lo, hi;
};
/* Looks for a thread that may come back into one of the ranges: its program counter or stack
 * pointer, one saved in a signal frame, or, with `words`, any word of the live part of a stack lies
 * there (return addresses, and what is left of dead ones). *ret_tid 0: none. EBUSY as above. */
struct err *control_refers(struct control *c, const struct control_range *r, uint32_t n, bool words,
			   pid_t *ret_tid);

/* Starts argv stopped under control: at its program's entry point, where all its libraries are
 * mapped (at_entry), or right after exec, before the dynamic linker. It is a child of this process,
 * to be waited for, and is killed when this process ends before control_resume(). */
struct err *control_start(char *const argv[], bool at_entry, struct control **ret);
/* Where ptrace(2) is forbidden the command is held all the same, by what its dynamic linker loads
 * (served.c): before its own constructors run, which is then "right after exec" and "at its entry
 * point" both. It can be read, written, patched and asked for system calls until control_resume(),
 * and never be stopped again. True: it is such; a file that is sent through *ret_socket
 * (SCM_RIGHTS) is received there from descriptor *ret_theirs. */
bool control_is_served(const struct control *c, int *ret_socket, int *ret_theirs);
/* Has it ended? *ret_status as waitpid(2) would give it, which may not: it ends while it is stopped
 * here, too. */
bool control_ended(pid_t pid, int *ret_status);
/* A thread of process `pid` that is about to call execve(2), to be stopped in the program that it
 * executes. Meanwhile it runs; look often: signals wait for that. */
struct err *control_exec_watch(pid_t tid, pid_t pid);
/* Is it in execve(2), or does it want a processor? Else it waits for something else. */
bool control_exec_comes(pid_t tid);
enum control_exec { CONTROL_EXEC_NOT_YET, CONTROL_EXEC_DONE, CONTROL_EXEC_GONE };
/* pid: its process's, which it becomes by executing. */
enum control_exec control_exec_look(pid_t tid, pid_t pid);
/* DONE: the new program goes on, timeout_ms at most from one system call to the next and six times
 * that in all, until its libraries are mapped and it has a thread pointer, and is held there; an
 * error lets it go. */
struct err *control_exec_hold(pid_t pid, int timeout_ms, struct control **ret);
/* A thread that another one's execve(2) has ended. */
void control_exec_forget(pid_t tid);
/* Not to be followed any more. One that is in the middle of execve(2) then is let go of by
 * control_settle(). */
void control_exec_leave(pid_t tid, pid_t pid);
/* Lets a program held by control_start(), which has one thread, run until it comes to addr, and
 * holds it there. */
struct err *control_run_to(struct control *c, uint64_t addr);

#endif
