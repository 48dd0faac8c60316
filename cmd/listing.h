/* A list of probes in the making; for list.c (-l, as dtrace(1) prints it) and catalog.c (descry
 * list) only. */
#ifndef DESCRY_CMD_LISTING_H
#define DESCRY_CMD_LISTING_H

#include "base/hash.h"
#include "cmdline.h"
#include "compile/bind/bind.h"

struct object;
struct text;

struct listing {
	struct cmdline *c;
	struct bind_cx *cx;
	void (*show)(struct listing *l, struct probe *p);
	uint32_t n;
	struct hash shown; /* descry list: probes that were shown */
	char *path;        /* the file whose code was looked at last */
	struct object *object;
	struct text *text;
};

/* Shows the probes of every description of the command line; the exit status. */
int listing_programs(struct listing *l);
/* Shows the probes of one description, and *ret_n is how many; the exit status. */
int listing_match(struct listing *l, const struct probe_desc *pd, uint32_t *ret_n);
/* How a probe of a named process is placed by the in-process engine: "patched jump" or "refused:
 * why"; malloc()ed, NULL when that engine has nothing to do with it. */
char *listing_inside(struct listing *l, const struct probe *p);
/* By which mechanism the kernel reports it; malloc()ed. May be followed by *ret_note, a remark;
 * malloc()ed, NULL none. */
char *listing_mechanism(struct listing *l, const struct probe *p, char **ret_note);
void listing_fini(struct listing *l);

/* catalog.c */
int catalog(struct cmdline *c, struct bind_cx *cx);

#endif
