/* D's options: -x, #pragma D option, DESCRY_OPT_NAME / DTRACE_OPT_NAME, setopt().
 *
 * One table (options.def: X(id, "name", kind, default, when, "what it does")) is the source for the
 * parser of values, --help and the manual. */
#ifndef DESCRY_DATA_OPTIONS_H
#define DESCRY_DATA_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum option_id {
#define X(id, name, kind, def, when, doc) OPT_##id,
#include "data/options.def"
#undef X
	OPT_COUNT
};

enum option_kind {
	OPTION_BOOL, /* set unset on off 1 0 yes no */
	OPTION_INT,
	OPTION_SIZE, /* k m g t */
	OPTION_RATE, /* nanoseconds: 10hz 100ms 1s, a plain number is hz */
	OPTION_TEXT, /* any */
	OPTION_ENUM, /* default text lists the words: "auto|kernel|interp"; value is the word's index */
	OPTION_IGNORED, /* accepted for old scripts, has no effect */
};
enum option_when { WHEN_COMPILE = 1, WHEN_RUN = 2, WHEN_DYNAMIC = 4 };

struct option_value {
	bool set;
	int64_t num;      /* all kinds but TEXT */
	const char *text; /* TEXT: as given, owned by options */
};

struct options {
	struct option_value v[OPT_COUNT];
	const char *locked[OPT_COUNT]; /* the reason why the value is locked; NULL: not locked */
};

void options_init(struct options *o); /* to the defaults */
void options_fini(struct options *o);
/* Sets every option to its value in `from`. */
void options_copy(struct options *o, const struct options *from);
/* Sets an option. value NULL: "-x name" without a value. Returns false, with a message in
 * *ret_error (static or valid until the next call), for an unknown name, a bad value, or an option
 * that may not be set at this time (`when`). The message for an unknown name suggests the nearest
 * name. */
bool options_set(struct options *o, const char *name, const char *value, enum option_when when,
		 const char **ret_error);
/* Sets an option from "name=value" or "name". */
bool options_set_text(struct options *o, const char *text, enum option_when when,
		      const char **ret_error);
/* Sets an option to a number in the unit of its kind (nanoseconds, bytes, 0 or 1). */
void options_put(struct options *o, enum option_id id, int64_t num);
/* Keeps the option's present value. Setting another value then fails with `why`, which is
 * borrowed. */
void options_lock(struct options *o, enum option_id id, const char *why);
const char *option_name(enum option_id id);

static inline bool opt_on(const struct options *o, enum option_id id)
{
	return o->v[id].num != 0;
}
static inline int64_t opt_num(const struct options *o, enum option_id id)
{
	return o->v[id].num;
}

#endif
