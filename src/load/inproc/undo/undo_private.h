/* Shared by the files behind undo.h:
 *
 *	undo_log.c     reads and sorts records, areas, logs
 *	undo_text.c    restores program counters and text
 *	undo_leave.c   moves threads that wait for the detach
 *	undo_keep.c    keeps islands that the process's own code leads to
 *	undo_strays.c  closes descriptors and unmaps pages of an attach that was cut short
 *	undo.c         restores signal actions, removes mappings; calls all of it in order
 */
#ifndef DESCRY_LOAD_INPROC_UNDO_PRIVATE_H
#define DESCRY_LOAD_INPROC_UNDO_PRIVATE_H

#include "load/inproc/undo/undo.h"

enum {
	UNDO_PAGE = 4096,
	/* Bytes of islands of a process that are copied to stay in it. A process may map one file
	 * any number of times, so that its islands seem to be terabytes. */
	UNDO_KEPT_MAX = 1 << 28,
};

/* Returns the base of the area that would contain the address, 0: none. */
uint64_t undo_base_of(uint64_t addr);
/* Finds the bases with mappings of descry, each once, in any list. Returns their number. */
uint32_t undo_bases(const struct mappings *maps, uint64_t ret_bases[WIRE_BASES]);
/* Returns the end of the facts, or 0 when there are none. Sets the inodes of the facts' file and
 * the code's, or leaves them untouched when there are none. */
uint64_t undo_find_inodes(const struct mappings *maps, uint64_t base, uint64_t *ret_facts,
			  uint64_t *ret_code);

/* Returns true when the address is in one of the ranges, which are in the order of addresses. A
 * process may have made any number. */
bool undo_in_ranges(const struct control_range *r, uint32_t n, uint64_t addr);

/* Moves program counters out of stubs in a stopped process. Adds to *moved. */
struct err *undo_move_out(struct control *c, const struct undo_log *log, uint32_t *moved);
/* Returns the record whose stub has the address, or NULL. */
const struct wire_undo *undo_record_at(const struct undo_log *log, uint64_t pc);
/* undo_leave.c: moves threads that wait for this detach in the agent to the system call that they
 * are about to make. */
struct err *undo_move_leaving(struct control *c, const struct undo_log *log, uint32_t *moved);
/* Sorts the stubs, for look-ups by program counter. Call it when all sites are there. */
void undo_sort_stubs(struct undo_log *log);
/* Restores the text. In *log, sites that hold foreign bytes lose their stub. */
struct err *undo_restore_text(struct control *c, struct undo_log *log, struct undo_report *r);

/* Text that is read in a run of pages: there may be 10,000 sites, and they are in order. */
struct undo_window {
	uint64_t lo;
	uint32_t n;
	uint64_t one_by_one; /* up to here pages are read one by one, because some are unmapped */
	uint64_t looks;      /* at records, to find the ends of windows */
	uint8_t bytes[16 * UNDO_PAGE];
};
/* Places the window at the pages of record i, and of those behind it that fit. */
void undo_window_place(struct undo_window *w, const struct undo_log *log, uint32_t i);
/* A part of the window is unmapped. */
void undo_window_failed(struct undo_window *w);

/* undo_keep.c */
typedef VEC(struct control_range) undo_ranges;
/* Adds the islands that must stay, by log->still, to which it adds the stubs that code of the
 * process's own leads to. Call it when the text is restored. */
struct err *undo_find_kept(struct control *c, struct undo_log *log, undo_ranges *ret);
/* Replaces an island by a copy in private memory that runs no probes and needs nothing else of
 * descry's. Takes its size from *left, and fails when that is too little. */
struct err *undo_keep(struct control *c, struct control_range r, uint64_t *left);
/* Returns true when one of the numbers, which are sorted, is in [lo, hi). */
bool undo_any_in(const uint64_t *v, uint32_t n, uint64_t lo, uint64_t hi);
/* Returns true when an island at this address stays. kept is in the order of addresses. */
bool undo_is_kept(const undo_ranges *kept, uint64_t lo);
/* Returns the address of the log's first stub from an address on. */
uint64_t undo_first_stub(const struct undo_log *log, uint64_t from);

#endif
