/* Drives code generation: decides which programs there are, and what they share. */
#include "compile/gen/gen_private.h"

#include <inttypes.h>

#include "probe/fentry.h"
#include "wire/late.h"
#include "wire/wire_record.h"
#include "wire/routines.h"
#include "wire/syscall.h"
#include "wire/wire_unwind.h"

/* Sets the rank of each system call probe and returns the number of ranks. A table has one entry
 * for each system call, but two probes may be on one (syscall::sched_yield:entry,
 * sched:::surrender). The second gets rank 1, which has a program of its own. ranks is by probe
 * number. */
static uint32_t rank_syscalls(struct gen *g, enum attach_kind attach, uint8_t *ranks)
{
	uint8_t count[WIRE_SYSCALL_MAX] = { 0 };
	bool *seen = xcalloc(g->probes.n + 1, sizeof(bool));
	uint32_t nranks = 0;

	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		const struct bound_clause *cl = g->b->clauses.v[i];

		for (uint32_t k = 0; cl->attach == attach && k < cl->nprobes; k++) {
			uint32_t probe = gen_probe_number(g, cl->probes[k]);
			int32_t nr = cl->probes[k]->number;

			if (seen[probe] || nr < 0 || nr >= WIRE_SYSCALL_MAX)
				continue;
			seen[probe] = true;
			ranks[probe] = count[nr]++;
			if (count[nr] > nranks)
				nranks = count[nr];
		}
	}
	free(seen);
	return nranks;
}

typedef VEC(const struct bound_clause *) clause_list;

/* Compiles at most 64 clauses of the list, starting at `from`, for their probes of this rank. */
static void compile_syscall_group(struct gen *g, const clause_list *list, uint32_t from,
				  const uint8_t *ranks, uint8_t rank)
{
	struct gen_group grp = { .clauses = &list->v[from],
				 .nclauses = list->n - from < 64 ? list->n - from : 64 };
	uint64_t every = grp.nclauses == 64 ? ~0ull : (1ull << grp.nclauses) - 1;
	struct hash seen = { 0 };
	VEC(uint64_t) masks = { 0 };
	bool all = true;

	for (uint32_t c = 0; c < grp.nclauses; c++)
		for (uint32_t k = 0; k < grp.clauses[c]->nprobes; k++) {
			uint32_t probe = gen_probe_number(g, grp.clauses[c]->probes[k]);
			uint64_t *at;

			if (ranks[probe] != rank)
				continue;
			at = hash_put(&seen, &probe, sizeof(probe), NULL);
			if (!*at) {
				vec_push(&grp.probes, probe);
				vec_push(&masks, 0);
				*at = grp.probes.n;
			}
			masks.v[*at - 1] |= 1ull << c;
		}
	for (uint32_t i = 0; i < masks.n; i++)
		all &= masks.v[i] == every;
	if (!all)
		grp.masks = masks.v;
	gen_group(g, &grp, grp.clauses[0]->attach);
	vec_fini(&grp.probes);
	vec_fini(&masks);
	hash_fini(&seen);
}

/* Compiles the system call probes of one direction into one program for each 64 clauses. A probe's
 * mask selects its clauses. */
static void compile_syscalls(struct gen *g, enum attach_kind attach)
{
	uint8_t *ranks = xcalloc(g->probes.n + 1, 1);
	uint32_t nranks = rank_syscalls(g, attach, ranks);

	for (uint32_t rank = 0; rank < nranks; rank++) {
		clause_list list = { 0 };

		for (uint32_t i = 0; i < g->b->clauses.n; i++) {
			const struct bound_clause *cl = g->b->clauses.v[i];
			bool here = false;

			for (uint32_t k = 0; cl->attach == attach && k < cl->nprobes; k++)
				here |= ranks[gen_probe_number(g, cl->probes[k])] == rank;
			if (here)
				vec_push(&list, cl);
		}
		for (uint32_t from = 0; from < list.n; from += 64)
			compile_syscall_group(g, &list, from, ranks, (uint8_t)rank);
		vec_fini(&list);
	}
	free(ranks);
}

/* Compiles the last program, which is for kprobes, a second time for BPF trampolines. */
static void compile_for_trampolines(struct gen *g, const struct gen_group *grp)
{
	struct gen_group own = { .clauses = grp->clauses, .nclauses = grp->nclauses };
	enum attach_kind attach = g->attach == ATTACH_KPROBE ? ATTACH_FENTRY : ATTACH_FEXIT;
	uint32_t last = g->progs.n - 1;
	struct fentry_target target;

	for (uint32_t i = 0; i < grp->probes.n; i++)
		if (!fentry_refusal(g->types, g->probes.v[grp->probes.v[i]].probe, &target))
			vec_push(&own.probes, grp->probes.v[i]);
	if (own.probes.n) {
		gen_group(g, &own, attach);
		g->progs.v[last].fentry = last + 1;
	}
	vec_fini(&own.probes);
}

/* Does each probe of this kind have its own program? The kernel types a tp_btf program by its
 * tracepoint, the session runs BEGIN and END by name, and a timer that is counted has its own
 * struct of wire/tick.h. */
static bool has_own_program(const struct gen *g, enum attach_kind attach)
{
	return attach == ATTACH_TP_BTF || attach == ATTACH_SELF || gen_counts_timer(g, attach);
}

/* Returns what keeps probes with the same clauses in different programs; 0: nothing. A program that
 * checks the process itself is attached for all processes, so it may have the probes of one only:
 * the probe of each would fire in all of them. Registers are others where a function ends than
 * behind its return. */
static uint64_t program_key(const struct gen *g, enum attach_kind attach, uint32_t probe)
{
	const struct probe *p = g->probes.v[probe].probe;
	uint64_t key = 0;

	if (has_own_program(g, attach))
		return probe + 1;
	if ((attach == ATTACH_UPROBE || attach == ATTACH_URETPROBE) && !g->target->inside) {
		if (g->target->compares || opt_on(g->options, OPT_FOLLOW))
			key = (uint32_t)p->pid;
		key |= (uint64_t)p->by_exits << 32;
	}
	return key;
}

/* Compiles all other probes. Probes with the same list of clauses share a program. */
static void compile_others(struct gen *g)
{
	VEC(clause_list) lists = { 0 }; /* index: probe number */
	struct hash groups = { 0 };
	VEC(struct gen_group) made = { 0 };

	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		const struct bound_clause *cl = g->b->clauses.v[i];

		if (gen_is_syscall(cl->attach))
			continue;
		for (uint32_t k = 0; k < cl->nprobes; k++) {
			uint32_t probe = gen_probe_number(g, cl->probes[k]);

			while (lists.n <= probe)
				(void)vec_add(&lists);
			vec_push(&lists.v[probe], cl);
		}
	}
	for (uint32_t probe = 0; probe < lists.n; probe++) {
		clause_list *l = &lists.v[probe];
		uint64_t *at, key;

		if (!l->n ||
		    (l->v[0]->attach == ATTACH_SELF && !strcmp(g->probes.v[probe].name, "ERROR")))
			continue;
		key = program_key(g, l->v[0]->attach, probe);
		vec_push(l, (const struct bound_clause *)(uintptr_t)key);
		at = hash_put(&groups, l->v, l->n * sizeof(*l->v), NULL);
		l->n--;
		if (!*at) {
			vec_push(&made, (struct gen_group){ .clauses = l->v, .nclauses = l->n });
			*at = made.n;
		}
		vec_push(&made.v[*at - 1].probes, probe);
	}
	for (uint32_t i = 0; i < made.n; i++) {
		gen_group(g, &made.v[i], made.v[i].clauses[0]->attach);
		if ((g->attach == ATTACH_KPROBE || g->attach == ATTACH_KRETPROBE) &&
		    gen_trampolines(g) && !g->failed) {
			compile_for_trampolines(g, &made.v[i]);
		} else if (g->attach == ATTACH_SELF &&
			   !strcmp(g->probes.v[made.v[i].probes.v[0]].name, "BEGIN")) {
			g->img->has_begin = true;
			g->img->begin_prog = g->progs.n - 1;
		} else if (g->attach == ATTACH_SELF) {
			g->img->has_end = true;
			g->img->end_prog = g->progs.n - 1;
		}
		vec_fini(&made.v[i].probes);
	}
	for (uint32_t i = 0; i < lists.n; i++)
		vec_fini(&lists.v[i]);
	vec_fini(&lists);
	vec_fini(&made);
	hash_fini(&groups);
}

/* Compiles the session's own programs: thread times for vtimestamp, strings that are read when a
 * system call returns. */
static void compile_helpers(struct gen *g)
{
	struct image_prog *p;
	struct ir_fn f;

	if (g->uses_vtime) {
		g->attach = ATTACH_TP_BTF;
		gen_begin_function(g, &f, "vtimestamp");
		(void)ir_routine(&f, "d_sched_switch", 3, ir_map(&f, gen_fixed_map(g, MAP_TLS)),
				 ir_load(&f, g->ctx, 8, 8, false),
				 ir_load(&f, g->ctx, 16, 8, false));
		gen_end_function(g);
		p = gen_finish_program(g, &f, "vtimestamp", 0);
		p->attach = ATTACH_TP_BTF;
		p->tracepoint = "sched_switch";
		ir_fn_fini(&f);
	}
	if (g->uses_errno) {
		g->attach = ATTACH_RAW_TP;
		gen_begin_function(g, &f, "errno");
		(void)ir_routine(&f, "d_sys_error", 3, ir_map(&f, gen_fixed_map(g, MAP_TLS)),
				 ir_load(&f, g->ctx, 0, 8, false),
				 ir_load(&f, g->ctx, 8, 8, false));
		gen_end_function(g);
		p = gen_finish_program(g, &f, "errno", 0);
		p->attach = ATTACH_RAW_TP;
		p->tracepoint = "sys_exit";
		ir_fn_fini(&f);
	}
	if (g->uses_switch_stacks) {
		g->attach = ATTACH_TP_BTF;
		g->thread_arg = 1;
		gen_begin_function(g, &f, "switch_stacks");
		gen_save_stacks(g);
		gen_end_function(g);
		p = gen_finish_program(g, &f, "switch_stacks", 0);
		p->attach = ATTACH_TP_BTF;
		p->tracepoint = "sched_switch";
		ir_fn_fini(&f);
	}
	if (g->uses_late) {
		g->attach = ATTACH_RAW_TP;
		gen_begin_function(g, &f, "late_strings");
		(void)ir_routine(&f, "d_late_sys_exit", 5, ir_map(&f, gen_fixed_map(g, MAP_LATE)),
				 ir_map(&f, gen_fixed_map(g, MAP_CONTROL)),
				 ir_map(&f, gen_fixed_map(g, MAP_COUNTERS)),
				 ir_map_value(&f, gen_fixed_map(g, MAP_STATE), 0),
				 ir_load(&f, g->ctx, 0, 8, false));
		gen_end_function(g);
		p = gen_finish_program(g, &f, "late_strings", 0);
		p->attach = ATTACH_RAW_TP;
		p->tracepoint = "sys_exit";
		ir_fn_fini(&f);
	}
}

static void finish_image(struct gen *g)
{
	struct image *img = g->img;

	gen_finish_maps(g);
#define KEEP(vec, field, T) \
	(img->field = arena_array(g->arena, T, (vec).n + 1), \
	 (vec).n ? memcpy(img->field, (vec).v, (vec).n * sizeof(T)) : 0, img->n##field = (vec).n)
	KEEP(g->maps, maps, struct image_map);
	KEEP(g->progs, progs, struct image_prog);
	KEEP(g->probes, probes, struct image_probe);
	KEEP(g->segments, segments, struct segment);
#undef KEEP
	img->naggs = g->b->aggs.n;
	img->aggs = arena_array(g->arena, struct agg, img->naggs + 1);
	for (uint32_t i = 0; i < img->naggs; i++)
		img->aggs[i] = *g->b->aggs.v[i];
	img->nstrings = g->texts.n;
	img->strings = arena_array(g->arena, const char *, img->nstrings + 1);
	for (uint32_t i = 0; i < img->nstrings; i++)
		img->strings[i] = arena_strdup(g->arena, intern_text(&g->texts, i));
	img->destructive = g->b->destructive;
	img->uses_error = g->nerrors > 0;
}

static void list_clauses(struct gen *g)
{
	struct image *img = g->img;

	img->nclauses = g->b->nclauses;
	img->clauses = arena_array(g->arena, struct image_clause, img->nclauses + 1);
	g->errors = arena_array(g->arena, const struct bound_clause *, g->b->clauses.n + 1);
	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		const struct bound_clause *cl = g->b->clauses.v[i];

		if (cl->index < img->nclauses)
			img->clauses[cl->index] = (struct image_clause){ .loc = cl->loc,
									 .end = cl->end,
									 .index = cl->index,
									 .number = cl->number };
		if (cl->attach == ATTACH_SELF && cl->nprobes &&
		    !strcmp(cl->probes[0]->name, "ERROR"))
			g->errors[g->nerrors++] = cl;
		/* Number all probes before any code is made, because FIELD_STRID depends on how
		 * many there are. */
		for (uint32_t k = 0; k < cl->nprobes; k++)
			(void)gen_probe_number(g, cl->probes[k]);
	}
}

/* Sets the size of strings: up to strsize characters and a NUL. */
static void choose_strsize(struct gen *g)
{
	int64_t chars = opt_num(g->options, OPT_STRSIZE);

	if (chars < 1)
		chars = 1;
	if (chars > WIRE_STRING_MAX - 1)
		chars = WIRE_STRING_MAX - 1;
	g->strmax = (uint32_t)chars + 1;
	g->strsize = (g->strmax + 7) & ~7u;
	if (g->strsize < 16)
		g->strsize = 16;
}

struct image *compile_image(const struct bound *b, struct type_graph *types, struct diags *diags,
			    struct options *options, struct compile_target *target, FILE *ir_out)
{
	struct image *img = xcalloc(1, sizeof(*img));
	struct gen g = { .arena = &img->arena,
			 .b = b,
			 .img = img,
			 .types = types,
			 .options = options,
			 .diags = diags,
			 .target = target,
			 .ir_out = ir_out };

	arena_init(&img->arena);
	img->types = types;
	img->diags = diags;
	img->options = options;
	img->family = target->family;
	img->compares = target->compares;
	for (uint32_t i = 0; i < ARRAY_SIZE(g.map_of); i++)
		g.map_of[i] = -1;
	intern_init(&g.texts);
	g.report = opt_on(options, OPT_REPORT);
	choose_strsize(&g);
	g.this_regs = arena_array(g.arena, struct ir_val, b->vars.n + 1);
	list_clauses(&g);
	(void)gen_fixed_map(&g, MAP_STATE);
	(void)gen_fixed_map(&g, MAP_DATA);
	(void)gen_fixed_map(&g, MAP_CONTROL);
	(void)gen_fixed_map(&g, MAP_COUNTERS);
	gen_collect(&g);
	gen_guards_look(&g);
	gen_list_clauses(&g);
	if (diags->errors == 0) {
		compile_others(&g);
		compile_syscalls(&g, ATTACH_SYSCALL_ENTRY);
		compile_syscalls(&g, ATTACH_SYSCALL_RETURN);
		compile_helpers(&g);
	}
	finish_image(&g);
	gen_slots_fini(&g);
	vec_fini(&g.maps);
	vec_fini(&g.lazy_made);
	vec_fini(&g.progs);
	vec_fini(&g.probes);
	vec_fini(&g.segments);
	vec_fini(&g.rodata);
	hash_fini(&g.probe_index);
	hash_fini(&g.rodata_texts);
	intern_fini(&g.texts);
	if (g.failed || diags->errors) {
		image_free(img);
		return NULL;
	}
	return img;
}
