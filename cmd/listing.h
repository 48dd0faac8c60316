/* A list of probes in the making; for list.c (-l, as dtrace(1) prints it) and catalog.c (descry
 * list) only. */
#ifndef DESCRY_CMD_LISTING_H
#define DESCRY_CMD_LISTING_H

#include "base/hash.h"
#include "cmdline.h"
#include "compile/bind/bind.h"
#include "load/engine.h"

struct listing {
	struct cmdline *c;
	struct bind_cx *cx;
	void (*show)(struct listing *l, struct probe *p);
	uint32_t n;
	struct hash shown; /* descry list: probes that were shown */
	struct engine_scene scene;
};

/* Shows the probes of every description of the command line; the exit status. */
int listing_programs(struct listing *l);
/* Shows the probes of one description, and *ret_n is how many; the exit status. */
int listing_match(struct listing *l, const struct probe_desc *pd, uint32_t *ret_n);

/* catalog.c */
int catalog(struct cmdline *c, struct bind_cx *cx);

#endif
