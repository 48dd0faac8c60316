/* Messages about the run itself: faults, losses, costs. */
#include "render/render.h"

#include "base/diag.h"
#include "program/unwind/unwind.h"

const char *fault_name(uint32_t code)
{
	static const char *const names[] = {
		[WIRE_FAULT_BADADDR] = "invalid address",
		[WIRE_FAULT_BADALIGN] = "invalid alignment",
		[WIRE_FAULT_ILLOP] = "illegal operation",
		[WIRE_FAULT_DIVZERO] = "divide-by-zero",
		[WIRE_FAULT_NOSCRATCH] = "out of scratch space",
		[WIRE_FAULT_KPRIV] = "invalid kernel access",
		[WIRE_FAULT_UPRIV] = "invalid user access",
		[WIRE_FAULT_TUPOFLOW] = "tuple stack overflow",
		[WIRE_FAULT_BADSTACK] = "bad stack",
		[WIRE_FAULT_BADSIZE] = "invalid size",
		[WIRE_FAULT_BADINDEX] = "index out of bounds",
		[WIRE_FAULT_LOOP] = "loop does not end within its limit",
	};

	return code < ARRAY_SIZE(names) && names[code] ? names[code] : "unknown fault";
}

static void fault_value(struct out *o, const struct wire_fault *f)
{
	switch (f->code) {
	case WIRE_FAULT_BADADDR:
		if ((int64_t)f->value == -1)
			break;
		/* fallthrough */
	case WIRE_FAULT_BADALIGN:
	case WIRE_FAULT_BADSTACK:
	case WIRE_FAULT_BADSIZE:
	case WIRE_FAULT_KPRIV:
	case WIRE_FAULT_UPRIV: out_printf(o, " (0x%llx)", (unsigned long long)f->value); break;
	case WIRE_FAULT_LOOP:
	case WIRE_FAULT_BADINDEX: out_printf(o, " (%lld)", (long long)f->value); break;
	}
}

/* The first instruction of a program that serves the probe, made from the D at that position. */
static uint32_t instruction_of(const struct image *img, uint32_t probe, loc_t loc)
{
	for (uint32_t i = 0; i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];
		bool serves = false;

		for (uint32_t k = 0; k < p->nprobes && !serves; k++)
			serves = p->probes[k] == probe;
		for (uint32_t k = 0; k < p->ninsns && serves; k++)
			if (p->locs[k] == loc)
				return k;
	}
	return 0;
}

/* error on enabled probe ID 3 (ID 177: syscall:vmlinux:read:entry): invalid address (0x10) in
 * action #1 at BPF pc 0 [x.d:3:9] Under the name dtrace: error in dt_clause_2 for probe ID 177
 * (syscall:vmlinux:read:entry): invalid address (0x10) at BPF pc 169 */
void fault_message(struct sink *s, struct out *o, const struct image *img,
		   const struct wire_fault *f)
{
	static const struct image_probe unknown = { .prov = "", .mod = "", .func = "", .name = "" };
	const struct image_probe *p = f->head.probe < img->nprobes ? &img->probes[f->head.probe]
								   : &unknown;
	const char *file;
	uint32_t line, col;

	if (s->dtrace) {
		out_printf(o, "%s: error in dt_clause_%u for probe ID %u (%s:%s:%s:%s): %s",
			   s->progname,
			   f->clause < img->nclauses ? img->clauses[f->clause].number : f->clause,
			   p->id, p->prov, p->mod, p->func, p->name, fault_name(f->code));
		fault_value(o, f);
		out_printf(o, " at BPF pc %u\n", instruction_of(img, f->head.probe, f->loc));
		return;
	}
	out_printf(o, "%s: error on enabled probe ID %u (ID %u: %s:%s:%s:%s): %s", s->progname,
		   f->clause + 1, p->id, p->prov, p->mod, p->func, p->name, fault_name(f->code));
	fault_value(o, f);
	out_printf(o, " in action #%u at BPF pc %u", f->clause + 1, f->insn);
	if (img->diags && source_pos(img->diags, f->loc, &file, &line, &col)) {
		const struct source *src = source_of(img->diags, f->loc);

		/* the name of a program given as an argument is its text */
		if (src && src->kind == SOURCE_ARG)
			out_printf(o, " [line %u, column %u]", line, col);
		else
			out_printf(o, " [%s:%u:%u]", file, line, col);
	}
	out_char(o, '\n');
}

static const struct drop_text {
	const char *name, *tag, *text, *tail;
	bool by_cpu;
	const char *remedy; /* as in doc/drops.md; NULL: there is none */
} drops[DROP_KIND_COUNT] = {
	[DROP_DATA] = { "data", "DTRACEDROP_PRINCIPAL", "drop", "", true,
			"raise -x bufsize, or print less" },
	[DROP_CONTROL] = { "control", "DTRACEDROP_CONTROL", "control drop", "", true,
			   "fault, printa() and clear() less often" },
	[DROP_AGG] = { "aggregation", "DTRACEDROP_AGGREGATION", "aggregation drop", "", true,
		       "raise -x aggsize, or use fewer keys" },
	[DROP_DYN] = { "dynamic", "DTRACEDROP_DYNAMIC", "dynamic variable drop", "", false,
		       "raise -x dynvarsize, or assign 0 to elements that are done with" },
	[DROP_SPEC] = { "speculation", "DTRACEDROP_SPEC", "speculative drop", "", false,
			"raise -x specsize, or discard() earlier" },
	[DROP_SPEC_NOBUF] = { "speculation-buffer", "DTRACEDROP_SPECUNAVAIL", "failed speculation",
			      " (no speculative buffer available)", false,
			      "raise -x nspec, or commit() or discard() each" },
	[DROP_SCRATCH] = { "scratch", "DTRACEDROP_SCRATCH", "firing",
			   " skipped (no scratch space free)", false, NULL },
	[DROP_STACK] = { "stack", "DTRACEDROP_STACK", "stack drop", "", false,
			 "use fewer frames in the key, as in ustack(5)" },
	[DROP_ERROR] = { "error", "DTRACEDROP_DBLERROR", "error", " in ERROR probe enabling", false,
			 "mend the ERROR clause" },
	[DROP_LATE] = { "late-string", "DTRACEDROP_LATE", "late string drop", "", false, NULL },
	[DROP_MISSED] = { "missed", "DTRACEDROP_MISSED", "firing",
			  " missed (in the middle of another on the same CPU)", false,
			  "narrow the probe descriptions, or add a predicate" },
	[DROP_TICKS] = { "tick", "DTRACEDROP_TICK", "tick drop", " (more than a second late)",
			 false, "lower the rate, or do less in the clauses" },
	[DROP_EVENTS] = { "process-event", "DTRACEDROP_EVENTS", "process event drop", "", false,
			  "raise -x bufsize, or write fewer, shorter clauses" },
	[DROP_NAMES] = { "name", "DTRACEDROP_NAMES", "name drop",
			 " (no room to keep the symbols of all files and processes)", false, NULL },
	[DROP_CHANGED] = { "changed-file", "DTRACEDROP_CHANGED", "name drop",
			   " (a file was changed while its symbols were read)", false, NULL },
};

const char *drop_name(enum drop_kind kind)
{
	return kind < DROP_KIND_COUNT ? drops[kind].name : "unknown";
}

const char *drop_remedy(enum drop_kind kind)
{
	return kind < DROP_KIND_COUNT ? drops[kind].remedy : NULL;
}

void drop_text(struct out *o, enum drop_kind kind, uint64_t count)
{
	const struct drop_text *d = &drops[kind < DROP_KIND_COUNT ? kind : DROP_DATA];

	out_printf(o, "%s%s%s", d->text, count > 1 ? "s" : "", d->tail);
}

void drop_message(struct sink *s, struct out *o, enum drop_kind kind, int cpu, uint64_t count)
{
	const struct drop_text *d = &drops[kind < DROP_KIND_COUNT ? kind : DROP_DATA];

	out_printf(o, "%s: ", s->progname);
	if (s->options && opt_on(s->options, OPT_DROPTAGS))
		out_printf(o, "[%s] ", d->tag);
	out_printf(o, "%llu ", (unsigned long long)count);
	drop_text(o, kind, count);
	if (d->by_cpu && cpu >= 0)
		out_printf(o, " on CPU %d", cpu);
	out_char(o, '\n');
}

static void print_time(struct out *o, uint64_t ns)
{
	if (ns >= 1000000000)
		out_printf(o, "%.3f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		out_printf(o, "%.3f ms", (double)ns / 1e6);
	else
		out_printf(o, "%.1f us", (double)ns / 1e3);
}

/* "user stacks: 900 walked, 12 not complete: 10 no unwind table for an address, 2 ..." */
static void stacks_print(struct out *o, const struct run_report *r)
{
	uint64_t all = 0, whole = r->ustacks[WIRE_UNWIND_END_ROOT] +
				  r->ustacks[WIRE_UNWIND_END_DEEP] +
				  r->ustacks[WIRE_UNWIND_END_NO_USER];
	const char *sep = ": ";

	for (uint32_t i = 0; i < WIRE_UNWIND_END_COUNT; i++)
		all += r->ustacks[i];
	if (!all)
		return;
	out_printf(o, "user stacks: %llu walked, %llu not complete", (unsigned long long)all,
		   (unsigned long long)(all - whole));
	for (uint32_t i = 0; i < WIRE_UNWIND_END_COUNT; i++) {
		if (!r->ustacks[i] || i == WIRE_UNWIND_END_ROOT || i == WIRE_UNWIND_END_DEEP ||
		    i == WIRE_UNWIND_END_NO_USER)
			continue;
		out_printf(o, "%s%llu %s", sep, (unsigned long long)r->ustacks[i],
			   unwind_end_text((enum wire_unwind_end)i));
		sep = ", ";
	}
	out_char(o, '\n');
}

void report_print(struct out *o, const struct run_report *r)
{
	uint64_t fired = 0, other = 0;

	for (uint32_t i = 0; i < r->nprobes; i++)
		fired += r->probes[i].fired;
	out_str(o, "\nrun: ");
	print_time(o, r->elapsed_ns);
	if (r->engine)
		out_printf(o, ", engine %s", r->engine);
	out_printf(o, ", %u probe%s, %llu firing%s, %llu record%s (%llu bytes), %llu fault%s\n",
		   r->nprobes, r->nprobes == 1 ? "" : "s", (unsigned long long)fired,
		   fired == 1 ? "" : "s", (unsigned long long)r->records,
		   r->records == 1 ? "" : "s", (unsigned long long)r->bytes,
		   (unsigned long long)r->faults, r->faults == 1 ? "" : "s");
	out_str(o, "lost:");
	for (uint32_t i = 0; i < DROP_KIND_COUNT; i++) {
		if (r->drops[i]) {
			out_printf(o, "%s %llu %s", other ? "," : "",
				   (unsigned long long)r->drops[i], drops[i].name);
			other++;
		}
	}
	out_str(o, other ? "\n" : " nothing\n");
	stacks_print(o, r);
	out_str(o, "cost: probes ");
	if (r->measured)
		print_time(o, r->probe_cpu_ns);
	else
		out_str(o, "not measured");
	out_str(o, ", consumer ");
	print_time(o, r->consumer_cpu_ns);
	out_str(o, " of CPU time\n");
	for (uint32_t i = 0; i < r->nprogs; i++) {
		const struct report_prog *p = &r->progs[i];

		out_printf(o, "  program %-24s %-16s %6u instructions", p->name,
			   p->mode ? p->mode : "", p->ninsns);
		if (p->runs)
			out_printf(o, " %12llu runs %8.1f ns each", (unsigned long long)p->runs,
				   (double)p->run_ns / (double)p->runs);
		out_char(o, '\n');
	}
	for (uint32_t i = 0; i < r->nprobes; i++) {
		const struct report_probe *p = &r->probes[i];

		if (!p->fired && !p->dropped && r->nprobes > 16)
			continue;
		out_printf(o, "  probe %s:%s:%s:%s %s fired %llu", p->probe->prov, p->probe->mod,
			   p->probe->func, p->probe->name, p->mode ? p->mode : "",
			   (unsigned long long)p->fired);
		if (p->dropped)
			out_printf(o, " dropped %llu", (unsigned long long)p->dropped);
		if (p->left_out)
			out_printf(o, " left out %llu", (unsigned long long)p->left_out);
		out_char(o, '\n');
	}
}
