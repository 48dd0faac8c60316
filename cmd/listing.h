/* A list of probes, used by list.c (-l, as dtrace(1) prints it) and catalog.c (descry list). */
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
	struct hash shown; /* descry list: probes already shown */
	struct engine_scene scene;
};

/* Shows the probes of every description of the command line. Returns the exit status. */
int listing_programs(struct listing *l);
/* Shows the probes of one description; *ret_n is their number. Returns the exit status. */
int listing_match(struct listing *l, const struct probe_desc *pd, uint32_t *ret_n);

/* runtimes.c: shows what interpreters the traced processes run. */
void runtimes_list(const struct listing *l);

/* catalog.c */
int catalog(struct cmdline *c, struct bind_cx *cx);

#endif
