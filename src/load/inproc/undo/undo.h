/* The undo log: the list of patches in a process, by which the tracer, its watchdog or `descry
 * heal` removes them.
 *
 * In: a process with descry's mappings (found in its /proc/PID/maps). The log is in its facts. Out:
 * text, signal actions and program counters as before, mappings gone. Always true: the log and
 * everything else in the target's memory is hostile input. A site is restored only when it holds
 * the bytes that the log has for its patch. A restorer that is killed at any instant leaves a
 * process that runs correctly, and a log of the remaining work. Order when patching: log, program
 * counters, text. Order when restoring: text, program counters, mappings; the mapping with the log
 * is the last.
 */
#ifndef DESCRY_LOAD_INPROC_UNDO_H
#define DESCRY_LOAD_INPROC_UNDO_H

#include "base/mem.h"
#include "program/target/target.h"
#include "wire/inproc.h"

/* Fills a record in the area; `len` is stored last. moved: WIRE_SITE_MAX words, of which it takes
 * len and one more, for probes behind the last instruction; NULL for a trap (stub 0). */
void undo_record(struct wire_undo *u, pid_t pid, uint64_t site, uint8_t len, const uint8_t *before,
		 const uint8_t *after, uint64_t stub, uint32_t stub_len, const uint16_t *moved);

/* The records of one process, sorted by site; a copy. */
struct undo_log {
	uint64_t base; /* wire_area.base */
	bool own;      /* made by undo_log_own(): only this process writes its records */
	/* 0: there is no area, only mappings of an attach that was cut short */
	uint64_t private_size;
	uint64_t inode,
		/* of the facts' file and of the code's, 0 none; an attach maps code, facts, shared
		 * memory in this order */
		code_inode;
	uint32_t tracer_pid, watchdog_pid;
	VEC(struct wire_undo) sites;
	struct undo_stub {
		uint64_t stub;
		uint32_t site; /* index in sites */
	} * by_stub;           /* in the order of stubs */
	/* stubs to which code leads that this log does not restore */
	VEC(uint64_t) still;
	struct control_patch *patches; /* made by undo_prepare(); undo_patch() writes them */
};
void undo_log_fini(struct undo_log *log);
/* Returns true when the log belongs to the area with these files. Another tracer may have its area
 * at the same base, and its patches must stay. An attach that was cut short may have mapped the
 * code only. */
bool undo_is(const struct undo_log *log, uint64_t inode, uint64_t code_inode);
/* Prepares undo_patch() while the process still runs. */
void undo_prepare(struct undo_log *log);

/* Return the program counter's new place when its site is patched (in) or restored (out). A program
 * counter in no site is unchanged. in_syscall as in struct control_thread: the instruction that
 * will run again is at pc - 2. */
uint64_t undo_pc_in(const struct undo_log *log, uint64_t pc, bool in_syscall);
uint64_t undo_pc_out(const struct undo_log *log, uint64_t pc, bool in_syscall);

/* Returns the name of the islands' memory files. Tracers of one process have different bases. */
enum { UNDO_NAME = 40 };
void undo_island_name(uint64_t base, char ret[UNDO_NAME]);

/* Finds the areas in a process: the bases at which it has mappings of descry. Several tracers may
 * have some. *ret_n is at most WIRE_BASES. */
struct err *undo_areas(struct control *c, uint64_t ret_bases[WIRE_BASES], uint32_t *ret_n);
/* Sets *ret when the process is a tracer or a watchdog. Only these have files mapped for writing
 * that all others only read. A tracer has them from its first mapping on, before its area contains
 * its number. */
struct err *undo_is_tracer(struct control *c, bool *ret);
/* Reads the log of the area at `base` from the process, stopped or not. When no record belongs to
 * this process (a forked child has its parent's text), takes all records. */
struct err *undo_log_read(struct control *c, uint64_t base, struct undo_log *ret);

/* Reads the records of the area at `base` in pieces, of all its processes, as they are: unsorted,
 * and not checked. *left: the number of records that may still be read, which the call lowers. fn
 * returns false to end it. *ret_tracer: the tracer's pid, as the process says. */
typedef bool undo_records_fn(void *arg, const struct wire_undo *records, uint32_t n);
struct err *undo_log_scan(struct control *c, uint64_t base, uint32_t *left, uint32_t *ret_tracer,
			  undo_records_fn *fn, void *arg);

/* Does the same as undo_log_read() when this process itself has the area mapped, whose facts no
 * other process writes. From the process's memory it reads only the owner number of its records. It
 * finds no records for a process that has no such number. */
struct err *undo_log_own(struct control *c, const struct wire_area *own, struct undo_log *ret);

/* Writes the patches of a log into a stopped process: moves program counters into the stubs, then
 * writes the text. The records must be in the area already. *ret_skipped counts sites that did not
 * hold `before`. */
struct err *undo_patch(struct control *c, struct undo_log *log, uint32_t *ret_skipped);

struct undo_report {
	uint32_t restored; /* sites */
	uint32_t clean;    /* sites that held the original already */
	uint32_t foreign;  /* sites that hold neither the original nor the patch; left alone */
	uint32_t gone;     /* sites whose text is no longer mapped */
	uint32_t moved;    /* program counters moved out of stubs */
	uint32_t signals;  /* restored signal actions */
	uint32_t unmapped; /* mappings */
	uint32_t kept;     /* islands that stay, because code of the process's own leads there */
	uint32_t closed;   /* descriptors */
	pid_t busy;        /* != 0: this thread is still in descry's code, so the mappings stay */
	/* a seccomp filter permits no system calls there, so signal actions and mappings stay */
	bool filtered;
};
/* Removes everything in the log from a process that is not stopped. It stops the process, several
 * times when threads are in probe code, for at most timeout_ms in all. In *log, sites that hold
 * foreign bytes lose their stub; a thread in such a stub leaves it by itself. A log of
 * undo_log_read() is read again in each stop, because its tracer may live and patch more. */
struct err *undo_restore(struct control *c, struct undo_log *log, int timeout_ms,
			 struct undo_report *ret);

/* The beginning of the page that is mapped at WIRE_MAIL while an attach has sockets open in the
 * process. */
#define UNDO_MAIL_MAGIC 0x6c69616d20797263ull
struct undo_mail {
	uint64_t magic;
	int pair[2];        /* -1: not yet open */
	uint64_t socket[2]; /* their inodes; 0: not known yet, or not closed yet */
};
/* Returns the inode of a process's descriptor when it is a socket, otherwise 0. */
uint64_t undo_socket(pid_t pid, int fd);
/* Closes and unmaps the remains of an attach that was cut short: descry's files (those whose code
 * has this inode; 0: any), and the sockets of the page of the area at `base` (0: of any). Call it
 * before undo_restore(). */
struct err *undo_strays(struct control *c, uint64_t code_inode, uint64_t base, int timeout_ms,
			struct undo_report *ret);
/* Returns the inode of this process's own mapping at addr. It distinguishes an area from a later
 * one at the same base. */
uint64_t undo_inode_here(uint64_t addr);
/* Returns true when the process still has the facts of the area at `base` mapped, or its code
 * (inode 0: does not matter). Returns false also when the process has ended. */
bool undo_left(pid_t pid, uint64_t base, uint64_t inode, uint64_t code_inode);
/* Returns true when undo_left() does with this facts' inode, and undo_writes() does not. Reads the
 * list of mappings once. */
bool undo_is_child(pid_t pid, uint64_t base, uint64_t inode, uint64_t code_inode);
/* Makes sure that a dead tracer has no more effect: a thread that was let go in front of one of the
 * tracer's system calls does not make it. Call it before looking for areas. */
struct err *undo_quiet(struct control *c, int timeout_ms);
/* Returns true when the process has the facts or the code of these inodes mapped for writing. The
 * files are sealed, so only a tracer, its watchdog, and other children of a tracer have such
 * mappings. Returns false when the mappings cannot be read. */
bool undo_writes(pid_t pid, uint64_t inode, uint64_t code_inode);
/* Calls undo_restore() for every area of a process, and adds up the results in *ret. */
struct err *undo_all(struct control *c, int timeout_ms, struct undo_report *ret);

#endif
