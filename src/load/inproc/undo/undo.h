/* The undo log: what was patched in a process, and how to take it out again, by whoever is left to
 * do it: the tracer, its watchdog, `descry heal`.
 *
 * In: a process with descry's mappings (found in its /proc/PID/maps); the log is in its facts. Out:
 * text, signal actions and program counters as they were, mappings gone.
 * Always true: the log and everything else in the target's memory is hostile input; a site is
 * restored only when it holds what the log says was put there; being killed at any instant leaves a
 * process that runs correctly and a log that says what is still to do. Order when patching: log,
 * program counters, text; when restoring: text, program counters, mappings, of which the one with
 * the log is the last.
 */
#ifndef DESCRY_LOAD_INPROC_UNDO_H
#define DESCRY_LOAD_INPROC_UNDO_H

#include "base/mem.h"
#include "program/target/target.h"
#include "wire/inproc.h"

/* Fills a record in the area; `len` is stored last. moved: NULL for a trap (stub 0). */
void undo_record(struct wire_undo *u, pid_t pid, uint64_t site, uint8_t len, const uint8_t *before,
		 const uint8_t *after, uint64_t stub, uint32_t stub_len, const uint16_t *moved);

/* The records of one process, sorted by site; a copy. */
struct undo_log {
	uint64_t base;         /* wire_area.base */
	bool own;              /* by undo_log_own(): nobody else writes records */
	uint64_t private_size; /* 0: there is no area, only mappings of an attach that was cut short */
	uint64_t inode,
		code_inode; /* of the facts' file and of the code's, 0 none: an attach maps code, facts, shared memory */
	uint32_t tracer_pid, watchdog_pid;
	VEC(struct wire_undo) sites;
	struct undo_stub {
		uint64_t stub;
		uint32_t site;         /* index in sites */
	} * by_stub;                   /* in the order of stubs */
	struct control_patch *patches; /* by undo_prepare(): what undo_patch() writes */
};
void undo_log_fini(struct undo_log *log);
/* Is it that of the area with these files? At its base there may be another tracer's, whose patches
 * are not to be touched. An attach cut short may have mapped the code only. */
bool undo_is(const struct undo_log *log, uint64_t inode, uint64_t code_inode);
/* What can be done for undo_patch() while the process runs on. */
void undo_prepare(struct undo_log *log);

/* Where a program counter goes when its site is patched (in) or restored (out); unchanged when it
 * is in none. in_syscall as in struct control_thread: the instruction to be run again is at pc -
 * 2. */
uint64_t undo_pc_in(const struct undo_log *log, uint64_t pc, bool in_syscall);
uint64_t undo_pc_out(const struct undo_log *log, uint64_t pc, bool in_syscall);

/* The name of the islands' memory files: tracers of one process have different bases. */
enum { UNDO_NAME = 40 };
void undo_island_name(uint64_t base, char ret[UNDO_NAME]);

/* Areas in a process: the bases at which it has mappings of ours (a process may be traced by
 * several). *ret_n of at most WIRE_BASES. */
struct err *undo_areas(struct control *c, uint64_t ret_bases[WIRE_BASES], uint32_t *ret_n);
/* Is it a tracer, or a watchdog? These alone have the files mapped for writing that others only
 * read; a tracer from its first mapping on, before its area says who it is. */
struct err *undo_is_tracer(struct control *c, bool *ret);
/* The log of the area at `base`, read out of the process, stopped or not. When none of its records
 * is of this process (a forked child has its parent's text), all are taken. */
struct err *undo_log_read(struct control *c, uint64_t base, struct undo_log *ret);

/* The same, where this process has the area mapped, whose facts nobody else writes: nothing is
 * taken from the process's memory but which process's records are its own. There are none for a
 * process that does not say it. */
struct err *undo_log_own(struct control *c, const struct wire_area *own, struct undo_log *ret);

/* Puts the patches of a log into a stopped process: moves program counters into the stubs, then
 * writes the text. The records must be in the area already. *ret_skipped: sites that held something
 * else than `before`. */
struct err *undo_patch(struct control *c, struct undo_log *log, uint32_t *ret_skipped);

struct undo_report {
	uint32_t restored; /* sites */
	uint32_t clean;    /* sites that held the original already */
	uint32_t foreign;  /* sites that hold neither: left alone */
	uint32_t gone;     /* sites whose text is no longer mapped */
	uint32_t moved;    /* program counters taken out of stubs */
	uint32_t signals;  /* signal actions given back */
	uint32_t unmapped; /* mappings */
	uint32_t closed;   /* descriptors */
	pid_t busy;        /* != 0: this thread is still in our code, so the mappings stay */
	bool filtered; /* a seccomp filter lets no system call be made there: signal actions and mappings stay */
};
/* Takes everything of the log out of a process that is not stopped (undo stops it, several times
 * when threads are in probe code, for at most timeout_ms in all). In *log, sites that hold somebody
 * else's bytes lose their stub: a thread that is in it leaves it by itself. A log of
 * undo_log_read() is read again in each stop, because its tracer may live and patch more. */
struct err *undo_restore(struct control *c, struct undo_log *log, int timeout_ms,
			 struct undo_report *ret);

/* An attach opens files and sockets in the process, for a moment. The page that this is at the
 * beginning of is mapped at WIRE_MAIL as long as the sockets are open. */
#define UNDO_MAIL_MAGIC 0x6c69616d20797263ull
struct undo_mail {
	uint64_t magic;
	int pair[2];        /* -1: not yet open */
	uint64_t socket[2]; /* their inodes; 0: not yet known, and not yet closed */
};
/* The inode of a process's descriptor when it is a socket, otherwise 0. */
uint64_t undo_socket(pid_t pid, int fd);
/* Closes and unmaps what an attach that was cut short left of these: our files (those whose code
 * has this inode; 0: any), and the sockets of the page of the area at `base` (0: of any). Before
 * undo_restore(). */
struct err *undo_strays(struct control *c, uint64_t code_inode, uint64_t base, int timeout_ms,
			struct undo_report *ret);
/* The inode of what this process itself has mapped at addr: tells an area from a later one at the
 * same base. */
uint64_t undo_inode_here(uint64_t addr);
/* Does the process still have the facts of the area at `base` mapped (inode 0: never mind), or its
 * code (likewise)? False too when it has ended. */
bool undo_left(pid_t pid, uint64_t base, uint64_t inode, uint64_t code_inode);
/* Makes sure that nothing of a dead tracer is still to come: a thread let go in front of a system
 * call of its does not make it. Before looking for areas. */
struct err *undo_quiet(struct control *c, int timeout_ms);
/* Has the process the facts or the code of these inodes mapped for writing? The files are sealed.
 * So only a tracer, its watchdog, and other processes that a tracer has forked have them so. False
 * when the mappings cannot be read. */
bool undo_writes(pid_t pid, uint64_t inode, uint64_t code_inode);
/* undo_restore() for every area of a process; *ret adds up. */
struct err *undo_all(struct control *c, int timeout_ms, struct undo_report *ret);

#endif
