/* The knobs of an administrator: sysctls, queues of disks, interfaces, CPU and memory switches.
 *
 * In: this machine's /proc and /sys. Out: each knob with its present value, its effect, and the D
 * program that measures whether a change helps; and a change of a knob, with the old value kept in
 * a journal.
 * Always true: only listed knobs are written, and only after the old value is in the journal. */
#ifndef DESCRY_CHECK_TUNABLE_H
#define DESCRY_CHECK_TUNABLE_H

#include "base/err.h"
#include "check/table.h"

struct tunable {
	char *name;  /* "vm.dirty_ratio", "block.vda.read_ahead_kb", "net.eth0.tso" */
	char *path;  /* file; NULL: ethtool sets the knob */
	char *value; /* present value; NULL: it cannot be read */
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
/* Returns the knob of this name, or an error that suggests the nearest name. */
struct err *tunables_get(const struct tunables *t, const char *name, struct tunable **ret);
/* Reads the knob's present value, in one line without tabs. The caller frees it. */
struct err *tunable_read(const struct tunable *t, char **ret);
/* Writes the value and reads it back. When the kernel changed the value, restores the old value and
 * returns an error. */
struct err *tunable_write(const struct tunable *t, const char *value);
/* Returns true when the values are equal, ignoring spaces and leading zeros. */
bool tunable_same(const char *a, const char *b);

void tunables_table(const struct tunables *t, struct check_table *ret);

#endif
