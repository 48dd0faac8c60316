/* The knobs of an administrator: sysctls, queues of disks, interfaces, CPU and memory switches.
 *
 * In: this machine's /proc and /sys. Out: each knob there is, with its present value, what it does
 * and the D program that measures whether a change helps; and a change of one, with the old value
 * kept in a journal.
 * Always true: nothing is written that was not listed, and nothing before the old value is in the
 * journal.
 */
#ifndef DESCRY_CHECK_TUNABLE_H
#define DESCRY_CHECK_TUNABLE_H

#include "base/err.h"
#include "check/table.h"

struct tunable {
	char *name;  /* "vm.dirty_ratio", "block.vda.read_ahead_kb", "net.eth0.tso" */
	char *path;  /* file; NULL: an interface's, by ethtool */
	char *value; /* now; NULL: cannot be read */
	const char *what, *program;
	char *interface;  /* ethtool: the interface, else NULL */
	uint32_t command; /* ethtool: enum ethtool_knob */
	bool fixed;       /* cannot be set from here */
};

struct tunables {
	VEC(struct tunable) v;
};

void tunables_find(struct tunables *t);
void tunables_fini(struct tunables *t);
/* The knob of that name; an error that names the nearest when there is none. */
struct err *tunables_get(const struct tunables *t, const char *name, struct tunable **ret);
/* Its value as it is now, in one line without tabs, malloc()ed. */
struct err *tunable_read(const struct tunable *t, char **ret);
/* Writes the value and reads it back: an error, and the old value again, when the kernel made
 * something else of it. */
struct err *tunable_write(const struct tunable *t, const char *value);
/* Are these two the same value? Spaces, and zeros in front of a number, make no difference. */
bool tunable_same(const char *a, const char *b);

void tunables_table(const struct tunables *t, struct check_table *ret);

#endif
