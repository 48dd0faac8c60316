/* Reports losses to the sink when the engine's counters or the consumer's own have grown. */
#include "consume/consume_private.h"

static const struct {
	enum wire_counter counter;
	enum drop_kind kind;
	bool by_cpu;
} table[] = {
	{ WIRE_DROP_DATA, DROP_DATA, true },        { WIRE_DROP_CONTROL, DROP_CONTROL, true },
	{ WIRE_DROP_AGG, DROP_AGG, true },          { WIRE_DROP_DYN, DROP_DYN, false },
	{ WIRE_DROP_SPEC, DROP_SPEC, false },       { WIRE_FAIL_SPEC, DROP_SPEC_NOBUF, false },
	{ WIRE_DROP_SCRATCH, DROP_SCRATCH, false }, { WIRE_DROP_STACK, DROP_STACK, false },
	{ WIRE_DROP_ERROR, DROP_ERROR, false },     { WIRE_DROP_LATE, DROP_LATE, false },
};

void drops_fini(struct drops *d)
{
	free(d->last);
	*d = (struct drops){ 0 };
}

static struct err *tell(struct consumer *c, enum drop_kind kind, int cpu, uint64_t n)
{
	if (!n)
		return NULL;
	c->drops.total[kind] += n;
	return sink_do(c->sink, drop, kind, cpu, n);
}

static struct err *poll_kind(struct consumer *c, const struct engine_counters *now, uint32_t i)
{
	uint64_t sum = 0;
	struct err *e = NULL;

	for (uint32_t cpu = 0; cpu < now->ncpus && !e; cpu++) {
		size_t at = (size_t)cpu * WIRE_FIXED_COUNTERS + table[i].counter;
		uint64_t last = c->drops.last[at], grown = now->fixed[at];

		/* only a traced process can have set a counter back */
		grown = grown > last ? grown - last : 0;
		/* bufpolicy=fill: a ring had no room for a record, so the kept buffer counts as
		 * full. */
		if (table[i].kind == DROP_DATA && grown &&
		    opt_num(c->options, OPT_BUFPOLICY) == POLICY_FILL)
			c->full = true;
		else if (table[i].by_cpu)
			e = tell(c, table[i].kind, (int)cpu, grown);
		else
			sum += grown;
	}
	return e ? e : tell(c, table[i].kind, -1, sum);
}

static struct err *tell_grown(struct consumer *c, enum drop_kind kind, uint64_t now, uint64_t *last)
{
	uint64_t grown = now > *last ? now - *last : 0;

	*last += grown;
	return tell(c, kind, -1, grown);
}

static struct err *poll_names(struct consumer *c)
{
	struct symbols_losses now;
	struct err *e;

	symbols_losses(c->sink->symbols, &now);
	e = tell_grown(c, DROP_NAMES, now.limited, &c->drops.unnamed);
	return e ? e : tell_grown(c, DROP_CHANGED, now.changed, &c->drops.changed);
}

struct err *drops_poll(struct consumer *c)
{
	struct drops *d = &c->drops;
	struct engine_counters now = { 0 };
	struct err *e = NULL;

	c->engine->ops->counters(c->engine, &now);
	if (!d->last) {
		d->ncpus = now.ncpus;
		d->last = xcalloc((size_t)now.ncpus * WIRE_FIXED_COUNTERS + 1, sizeof(*d->last));
	}
	if (now.ncpus > d->ncpus)
		now.ncpus = d->ncpus;
	for (uint32_t i = 0; i < ARRAY_SIZE(table) && !e; i++)
		e = poll_kind(c, &now, i);
	d->faults = 0;
	for (uint32_t cpu = 0; cpu < now.ncpus; cpu++)
		d->faults += now.fixed[(size_t)cpu * WIRE_FIXED_COUNTERS + WIRE_FAULTS];
	if (now.ncpus)
		memcpy(d->last, now.fixed,
		       (size_t)now.ncpus * WIRE_FIXED_COUNTERS * sizeof(*d->last));
	e = e ?: tell(c, DROP_SPEC, -1, c->spec_drops - c->spec_drops_said);
	c->spec_drops_said = c->spec_drops;
	e = e ?: tell(c, DROP_LATE, -1, c->late_drops - c->late_drops_said);
	c->late_drops_said = c->late_drops;
	e = e ?: tell(c, DROP_DATA, -1, c->bad_records - c->bad_records_said);
	c->bad_records_said = c->bad_records;
	e = e ?: tell_grown(c, DROP_MISSED, now.missed, &d->missed);
	e = e ?: tell_grown(c, DROP_TICKS, now.lost_ticks, &d->lost_ticks);
	e = e ?: tell_grown(c, DROP_EVENTS, now.lost_events, &d->lost_events);
	if (!e && c->sink->symbols)
		e = poll_names(c);
	return e;
}
