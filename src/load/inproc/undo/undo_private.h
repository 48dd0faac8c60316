/* What the files behind undo.h share:
 *
 *	undo_log.c     records, areas, logs read and sorted
 *	undo_text.c    program counters, text
 *	undo_strays.c  descriptors and pages of an attach cut short
 *	undo.c         signal actions, mappings; all of it in its order
 */
#ifndef DESCRY_LOAD_INPROC_UNDO_PRIVATE_H
#define DESCRY_LOAD_INPROC_UNDO_PRIVATE_H

#include "load/inproc/undo/undo.h"

enum { UNDO_PAGE = 4096 };

/* Of the area that an address would be in; 0: of none. */
uint64_t undo_base_of(uint64_t addr);
/* The end of the facts, 0 when there are none; the inodes of their file and the code's, untouched
 * likewise. */
uint64_t undo_find_inodes(const struct mappings *maps, uint64_t base, uint64_t *ret_facts,
			  uint64_t *ret_code);

/* Ranges in the order of their addresses: a process may have made any number. */
bool undo_in_ranges(const struct control_range *r, uint32_t n, uint64_t addr);

/* While it is stopped. *moved and *r add up. */
struct err *undo_move_out(struct control *c, const struct undo_log *log, uint32_t *moved);
/* For program counters: when all sites are there. */
void undo_sort_stubs(struct undo_log *log);
/* In *log, sites that hold somebody else's bytes lose their stub. */
struct err *undo_restore_text(struct control *c, struct undo_log *log, struct undo_report *r);
/* Does code that is not as it was still jump into one of the ranges? Then that stays, and the
 * process runs on. */
bool undo_jumped_to(struct control *c, const struct undo_log *log,
		    const struct control_range *ranges, uint32_t n);

#endif
