/* Collects the costs and losses of a run. */
#include "base/clock.h"
#include "consume/consume_private.h"

enum { MAX_PROGS = 256 };

static const char *mode_of(struct consumer *c, uint32_t i)
{
	const struct probe *p = c->image->probes[i].probe;
	const char *mode = c->engine->ops->probe_mode ? c->engine->ops->probe_mode(c->engine, i)
						      : NULL;

	return mode ? mode : p ? attach_kind_name(p->kind) : "";
}

void consumer_report(struct consumer *c, struct run_report *ret)
{
	const struct image *img = c->image;
	struct engine_counters now = { 0 };
	struct run_report r = {
		.engine = c->engine->ops->name,
		.elapsed_ns = now_ns() - c->start,
		.records = c->records,
		.bytes = c->bytes,
		.faults = c->drops.faults,
		.consumer_cpu_ns = cpu_now() - c->start_cpu,
		.exit_status = c->exit_status,
	};

	memcpy(r.drops, c->drops.total, sizeof(r.drops));
	c->engine->ops->counters(c->engine, &now);
	r.table_bytes = now.table_bytes;
	r.map_bytes = c->engine->ops->map_bytes ? c->engine->ops->map_bytes(c->engine) : 0;
	for (uint32_t cpu = 0; now.fixed && cpu < now.ncpus; cpu++)
		for (uint32_t i = 0; i < WIRE_UNWIND_END_COUNT; i++)
			r.ustacks[i] +=
				now.fixed[(size_t)cpu * WIRE_FIXED_COUNTERS + WIRE_USTACKS + i];
	c->report_probes =
		xrealloc(c->report_probes, (img->nprobes + 1) * sizeof(*c->report_probes));
	for (uint32_t i = 0; i < img->nprobes; i++)
		c->report_probes[i] = (struct report_probe){
			.probe = &img->probes[i],
			.mode = mode_of(c, i),
			.fired = now.fired ? now.fired[i] : 0,
			.dropped = now.dropped ? now.dropped[i] : 0,
			.left_out = now.left_out ? now.left_out[i] : 0,
		};
	r.probes = c->report_probes;
	r.nprobes = img->nprobes;

	c->engine_progs = xrealloc(c->engine_progs, MAX_PROGS * sizeof(*c->engine_progs));
	r.nprogs = c->engine->ops->report
			   ? c->engine->ops->report(c->engine, c->engine_progs, MAX_PROGS)
			   : 0;
	c->report_progs = xrealloc(c->report_progs, (r.nprogs + 1) * sizeof(*c->report_progs));
	for (uint32_t i = 0; i < r.nprogs; i++) {
		const struct engine_prog_report *p = &c->engine_progs[i];

		c->report_progs[i] =
			(struct report_prog){ p->name, p->mode, p->runs, p->run_ns, p->ninsns };
		r.probe_cpu_ns += p->run_ns;
		r.measured |= p->runs != 0;
	}
	r.progs = c->report_progs;
	*ret = r;
}
