/* Generates one program: prologue, the search for the probe that fired, the clauses of a group of
 * probes, epilogue. Also values that a firing computes once, and faults. */
#include "compile/gen/gen_private.h"

#include "compile/ebpf/ebpf.h"
#include "wire/late.h"
#include "wire/wire_record.h"
#include "wire/routines.h"
#include "wire/syscall.h"
#include "wire/tick.h"
#include "wire/wire_unwind.h"

void gen_lazy_save(const struct gen *g, bool *known)
{
	for (int i = 0; i < LAZY_COUNT; i++)
		known[i] = g->lazy[i].known;
}

void gen_lazy_restore(struct gen *g, const bool *known)
{
	for (int i = 0; i < LAZY_COUNT; i++)
		g->lazy[i].known = known[i];
}

struct ir_val gen_scratch_temp(struct gen *g, uint32_t size)
{
	uint32_t at = g->scratch_next;

	g->scratch_next += (size + 7) & ~7u;
	if (g->scratch_next > g->scratch_size)
		g->scratch_size = g->scratch_next;
	return ir_bin(g->f, ALU_ADD, gen_lazy(g, LAZY_SCRATCH), IR_I(at));
}

void gen_fault(struct gen *g, int code, struct ir_val value, loc_t loc)
{
	ir_set(g->f, g->f_code, IR_I(code));
	ir_set(g->f, g->f_value, value);
	ir_set(g->f, g->f_loc, IR_I(loc));
	g->fault_used = true;
	ir_goto(g->f, g->fault);
}

void gen_fault_if(struct gen *g, struct ir_val a, enum ir_cond c, struct ir_val b, int code,
		  struct ir_val value, loc_t loc)
{
	uint32_t ok = ir_new_label(g->f);

	ir_if(g->f, a, ir_inverse(c), b, ok);
	gen_fault(g, code, value, loc);
	ir_place(g->f, ok);
}

void gen_bail(struct gen *g)
{
	g->bail_used = true;
	ir_goto(g->f, g->bail);
}

uint32_t gen_probe_number(struct gen *g, struct probe *p)
{
	uint64_t *at = hash_put(&g->probe_index, &p, sizeof(p), NULL);

	if (!*at) {
		vec_push(&g->probes,
			 (struct image_probe){ p, p->id, p->prov, p->mod, p->func, p->name });
		*at = g->probes.n;
	}
	return (uint32_t)*at - 1;
}

void gen_begin_function(struct gen *g, struct ir_fn *f, const char *name)
{
	ir_fn_init(f, g->arena, name);
	g->f = f;
	g->ctx = ir_arg(f, 0);
	for (int i = 0; i < LAZY_COUNT; i++) {
		g->lazy[i].v = ir_new_reg(f);
		g->lazy[i].known = g->lazy[i].ever = false;
		ir_set(f, g->lazy[i].v, IR_I(0));
	}
	g->loops = 0;
	g->out = ir_new_label(f);
	g->f_code = ir_new_reg(f);
	g->f_value = ir_new_reg(f);
	g->f_loc = ir_new_reg(f);
	g->spec = ir_new_reg(f);
	ir_set(f, g->spec, IR_I(0));
	g->top = ir_new_reg(f);
	ir_set(f, g->top, IR_I(0));
	for (uint32_t i = 0; i < g->b->vars.n; i++) {
		g->this_regs[i] = IR_V_NONE;
		if (g->b->vars.v[i]->scope == SCOPE_THIS &&
		    type_is_scalar(g->types, g->b->vars.v[i]->type)) {
			g->this_regs[i] = ir_new_reg(f);
			if (!g->b->vars.v[i]->local)
				ir_set(f, g->this_regs[i], IR_I(0));
		}
	}
}

void gen_end_function(struct gen *g)
{
	struct ir_fn *f = g->f;
	uint32_t none = ir_new_label(f);

	ir_place(f, g->out);
	if (g->lazy[LAZY_SCRATCH].ever) {
		ir_if(f, g->lazy[LAZY_SCRATCH].v, IF_EQ, IR_I(0), none);
		ir_store(f, g->lazy[LAZY_SCRATCH].v, SCRATCH_BUSY, 8, IR_I(0));
		ir_place(f, none);
	}
	ir_ret(f, IR_I(0));
}

static uint32_t count_maps(const struct gen *g, const struct image_prog *p)
{
	bool *seen = xcalloc(g->maps.n + 1, sizeof(bool));
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nrelocs; i++) {
		const struct reloc *r = &p->relocs[i];

		if ((r->kind != RELOC_MAP && r->kind != RELOC_MAP_VALUE) || seen[r->target])
			continue;
		seen[r->target] = true;
		n++;
	}
	free(seen);
	return n;
}

/* Lowers f into a new program. Returns it. */
struct image_prog *gen_finish_program(struct gen *g, struct ir_fn *f, const char *name, loc_t loc)
{
	struct image_prog *p = vec_add(&g->progs);
	struct ebpf_code code;
	const char *why;

	if (!ir_verify(f, &why)) {
		ir_print(stderr, f);
		fprintf(stderr, "descry: internal error: %s in %s\n", why, f->name);
		abort();
	}
	ir_remove_dead(f);
	if (g->ir_out)
		ir_print(g->ir_out, f);
	ebpf_code_init(&code);
	if (!ebpf_emit(&code, f, &why)) {
		diag_error(g->diags, loc, 0, "D_TOO_LARGE", "%s", why);
		g->failed = true;
	}
	p->name = name;
	p->ninsns = code.insns.n;
	p->insns = arena_array(g->arena, struct bpf_insn, code.insns.n);
	memcpy(p->insns, code.insns.v, code.insns.n * sizeof(*p->insns));
	p->locs = arena_array(g->arena, loc_t, code.locs.n);
	memcpy(p->locs, code.locs.v, code.locs.n * sizeof(*p->locs));
	p->nrelocs = code.relocs.n;
	p->relocs = arena_array(g->arena, struct reloc, code.relocs.n + 1);
	if (code.relocs.n)
		memcpy(p->relocs, code.relocs.v, code.relocs.n * sizeof(*p->relocs));
	ebpf_code_fini(&code);
	if (g->target->maps_max && count_maps(g, p) > g->target->maps_max) {
		diag_error(
			g->diags, loc, 0, "D_TOO_LARGE",
			"the clauses of %s use %u aggregations, arrays and tables together; the kernel allows %u",
			name, count_maps(g, p), g->target->maps_max);
		g->failed = true;
	}
	return p;
}

/* Emits the test that tracing is on, and that this is the traced CPU (-x cpu). */
static void check_active(struct gen *g)
{
	int64_t cpu = opt_num(g->options, OPT_CPU);
	struct ir_val state = ir_map_value(g->f, gen_fixed_map(g, MAP_STATE), 0);

	ir_if(g->f, ir_load(g->f, state, offsetof(struct wire_state, active), 4, false), IF_NE,
	      IR_I(WIRE_ON), g->out);
	if (cpu >= 0)
		ir_if(g->f, ir_call(g->f, HELPER_CPU, 0), IF_NE, IR_I(cpu), g->out);
}

/* Emits the test of -x follow. The kernel enables the probe for every process that maps the file,
 * but only the targets and their descendants pass. */
static void check_family(struct gen *g, const struct gen_group *grp)
{
	uint32_t pass = ir_new_label(g->f);

	for (uint32_t i = 0; i < grp->probes.n; i++) {
		pid_t pid = g->probes.v[grp->probes.v[i]].probe->pid;
		bool before = false;

		for (uint32_t k = 0; k < i && !before; k++)
			before = g->probes.v[grp->probes.v[k]].probe->pid == pid;
		if (!before && pid > 0)
			ir_if(g->f, gen_progenyof(g, IR_I(pid)), IF_NE, IR_I(0), pass);
	}
	ir_goto(g->f, g->out);
	ir_place(g->f, pass);
}

/* Emits the test that the process is a named target. In-process children are traced for other
 * probes, but these probes fire only in the named processes, as in the kernel. The kernel leaves
 * the test to the program when it cannot tell a target by its first thread, which has ended. */
static void check_named(struct gen *g, const struct gen_group *grp)
{
	struct ir_val pid = ir_bin(g->f, ALU_SHR, gen_lazy(g, LAZY_PIDTGID), IR_I(32));
	uint32_t pass = ir_new_label(g->f);

	for (uint32_t i = 0; i < grp->probes.n; i++) {
		pid_t named = g->probes.v[grp->probes.v[i]].probe->pid;
		bool before = false;

		for (uint32_t k = 0; k < i && !before; k++)
			before = g->probes.v[grp->probes.v[k]].probe->pid == named;
		if (!before && named)
			ir_if(g->f, pid, IF_EQ, IR_I(named), pass);
		else if (!before) /* of all processes */
			ir_goto(g->f, pass);
	}
	ir_goto(g->f, g->out);
	ir_place(g->f, pass);
}

bool gen_is_syscall(enum attach_kind k)
{
	return k == ATTACH_SYSCALL_ENTRY || k == ATTACH_SYSCALL_RETURN;
}

/* Emits the test that the caller is 64-bit. 32-bit callers use other system call numbers, so the
 * probes do not match. */
static void skip_compat(struct gen *g)
{
	enum { TS_COMPAT = 2 }; /* arch/x86/include/asm/thread_info.h */
	struct type_member m;
	type_id t;
	struct ir_val status;

	if (!g->target->task_btf || !type_lookup(g->types, NULL, TYPE_STRUCT, "thread_info", &t) ||
	    !type_find_member(g->types, t, "status", &m) || m.bit_offset > 8 * 64)
		return;
	/* thread_info is the first member of task_struct (CONFIG_THREAD_INFO_IN_TASK). */
	status = ir_load(g->f, gen_lazy(g, LAZY_TASK_BTF), (int32_t)(m.bit_offset / 8), 4, false);
	ir_if(g->f, status, IF_SET, IR_I(TS_COMPAT), g->out);
}

bool gen_counts_timer(const struct gen *g, enum attach_kind attach)
{
	return g->target->counts_timers &&
	       (attach == ATTACH_TICK || (attach == ATTACH_PROFILE && g->report));
}

/* Emits the test that a tick is due, and takes it. Ticks that are too late are given up. Tracing
 * need not be on: a tick that is due meanwhile does not fire later. */
static void take_tick(struct gen *g, uint32_t tick, uint64_t period)
{
	struct ir_fn *f = g->f;
	const int32_t next_at = offsetof(struct wire_tick, next),
		      lost_at = offsetof(struct wire_tick, lost);
	uint32_t in_time = ir_new_label(f);
	struct ir_val at =
		ir_map_value(f, gen_fixed_map(g, MAP_TICKS), tick * sizeof(struct wire_tick));
	struct ir_val now = gen_lazy(g, LAZY_TIME),
		      next = ir_mov(f, ir_load(f, at, next_at, 8, false));
	struct ir_val late, lost;

	ir_if(f, now, IF_ULT, next, g->out);
	late = ir_bin(f, ALU_SUB, now, next);
	ir_if(f, late, IF_ULT, IR_I(WIRE_TICK_LATE + period), in_time);
	lost = ir_bin(f, ALU_DIV, late, IR_I(period));
	ir_store(f, at, lost_at, 8, ir_bin(f, ALU_ADD, ir_load(f, at, lost_at, 8, false), lost));
	ir_set(f, next, ir_bin(f, ALU_ADD, next, ir_bin(f, ALU_MUL, lost, IR_I(period))));
	ir_place(f, in_time);
	ir_store(f, at, next_at, 8, ir_bin(f, ALU_ADD, next, IR_I(period)));
}

/* Counts a firing of a profile probe, and notes its time. */
static void count_sample(struct gen *g, uint32_t samples)
{
	struct ir_fn *f = g->f;
	uint32_t key = ir_new_object(f, 8, "samples"), none = ir_new_label(f),
		 seen = ir_new_label(f);
	struct ir_val now = gen_lazy(g, LAZY_TIME), at;

	ir_store_stack(f, key, 0, 4, IR_I(samples));
	at = ir_call(f, HELPER_MAP_LOOKUP, 2, ir_map(f, gen_fixed_map(g, MAP_SAMPLES)),
		     ir_stack(f, key, 0));
	ir_if(f, at, IF_EQ, IR_I(0), none);
	ir_if(f, ir_load(f, at, offsetof(struct wire_samples, n), 8, false), IF_NE, IR_I(0), seen);
	ir_store(f, at, offsetof(struct wire_samples, first), 8, now);
	ir_place(f, seen);
	ir_store(f, at, offsetof(struct wire_samples, last), 8, now);
	ir_add_mem(f, at, offsetof(struct wire_samples, n), 8, IR_I(1), true);
	ir_place(f, none);
}

/* Emits code that finds the probe that fired. Returns its mask of clauses for system calls. */
static struct ir_val find_probe(struct gen *g, const struct gen_group *grp, uint32_t syscalls,
				bool *ret_cookie)
{
	struct ir_fn *f = g->f;
	struct ir_val nr, entry, probe, mask = IR_V_NONE;
	uint32_t key;

	*ret_cookie = false;
	if (!gen_is_syscall(g->attach)) {
		if (grp->probes.n == 1) {
			g->probe = IR_I(grp->probes.v[0]);
		} else {
			*ret_cookie = true;
			g->probe = ir_call(f, HELPER_ATTACH_COOKIE, 1, g->ctx);
		}
		return mask;
	}
	skip_compat(g);
	if (g->attach == ATTACH_SYSCALL_ENTRY) {
		nr = gen_syscall_word(g);
	} else {
		nr = gen_syscall_reg(g, UREG_ORIG_RAX, 0);
	}
	ir_if(f, nr, IF_UGE, IR_I(WIRE_SYSCALL_MAX), g->out);
	if (g->attach == ATTACH_SYSCALL_RETURN)
		nr = ir_bin(f, ALU_ADD, nr, IR_I(WIRE_SYSCALL_MAX));
	key = ir_new_object(f, 8, "nr");
	ir_store_stack(f, key, 0, 4, nr);
	entry = ir_call(f, HELPER_MAP_LOOKUP, 2, ir_map(f, syscalls), ir_stack(f, key, 0));
	ir_if(f, entry, IF_EQ, IR_I(0), g->out);
	probe = ir_load(f, entry, offsetof(struct wire_syscall, probe), 4, false);
	ir_if(f, probe, IF_EQ, IR_I(0), g->out);
	if (grp->masks)
		mask = ir_load(f, entry, offsetof(struct wire_syscall, mask), 8, false);
	g->probe = ir_bin(f, ALU_SUB, probe, IR_I(1));
	if (grp->probes.n == 1)
		g->probe = IR_I(grp->probes.v[0]);
	return mask;
}

static uint32_t syscall_map(struct gen *g, const struct gen_group *grp, bool entry)
{
	struct wire_syscall *init =
		arena_array(g->arena, struct wire_syscall, 2 * WIRE_SYSCALL_MAX);
	uint32_t map = gen_map(g, MAP_SYSCALLS, "syscalls", BPF_MAP_TYPE_ARRAY, 4, sizeof(*init),
			       2 * WIRE_SYSCALL_MAX, 0);

	for (uint32_t i = 0; i < grp->probes.n; i++) {
		int32_t nr = g->probes.v[grp->probes.v[i]].probe->number;

		if (nr < 0 || nr >= WIRE_SYSCALL_MAX)
			continue;
		init[nr + (entry ? 0 : WIRE_SYSCALL_MAX)] =
			(struct wire_syscall){ .probe = grp->probes.v[i] + 1,
					       .mask = grp->masks ? grp->masks[i] : ~0ull };
	}
	g->maps.v[map].init = init;
	g->maps.v[map].ninit = 2 * WIRE_SYSCALL_MAX;
	return map;
}

void gen_group(struct gen *g, const struct gen_group *grp, enum attach_kind attach)
{
	const struct bound_clause *first = grp->clauses[0];
	struct image_prog *p;
	struct ir_val mask;
	struct ir_fn f;
	uint32_t syscalls = 0;
	uint32_t tick = 0, samples = 0, keep_until = 0;
	const char *name;
	bool cookie;

	g->attach = attach;
	g->thread_arg = first->thread_arg;
	g->sleepable = false;
	for (uint32_t i = 0;
	     i < grp->nclauses && (g->attach == ATTACH_UPROBE || g->attach == ATTACH_URETPROBE);
	     i++)
		g->sleepable |= gen_copies_in(grp->clauses[i]);
	g->sleepable = g->sleepable && (!g->target->sleeps || g->target->sleeps());
	g->prog_probes = grp->probes.v;
	g->prog_nprobes = grp->probes.n;
	name = g->attach == ATTACH_SELF
		       ? g->probes.v[grp->probes.v[0]].name
		       : arena_printf(g->arena, "%s_%u", attach_kind_name(g->attach), g->progs.n);
	if (gen_is_syscall(g->attach))
		syscalls = syscall_map(g, grp, g->attach == ATTACH_SYSCALL_ENTRY);
	gen_begin_function(g, &f, name);
	f.loc = first->loc;
	if (g->attach == ATTACH_TICK && gen_counts_timer(g, g->attach)) {
		take_tick(g, g->nticks, g->probes.v[grp->probes.v[0]].probe->period_ns);
		tick = ++g->nticks;
	}
	if (g->attach != ATTACH_SELF)
		check_active(g);
	if (g->attach == ATTACH_PROFILE && gen_counts_timer(g, g->attach)) {
		count_sample(g, g->nsamples);
		samples = ++g->nsamples;
	}
	if (opt_on(g->options, OPT_FOLLOW) && !g->target->inside &&
	    (g->attach == ATTACH_UPROBE || g->attach == ATTACH_URETPROBE))
		check_family(g, grp);
	if ((g->target->family || g->target->compares) && !opt_on(g->options, OPT_FOLLOW) &&
	    (g->attach == ATTACH_UPROBE || g->attach == ATTACH_URETPROBE))
		check_named(g, grp);
	mask = find_probe(g, grp, syscalls, &cookie);
	if (g->report)
		gen_count(g, ir_bin(g->f, ALU_ADD,
				    ir_bin(g->f, ALU_MUL, g->probe, IR_I(WIRE_PROBE_SLOTS)),
				    IR_I(WIRE_FIXED_COUNTERS + WIRE_PROBE_FIRED)));
	for (uint32_t i = 0; i < grp->nclauses; i++)
		if (gen_keeps_scratch(g, grp->clauses[i])) {
			g->bail = g->out;
			(void)gen_lazy(g, LAZY_SCRATCH);
			break;
		}
	for (uint32_t i = 0; i < grp->nclauses; i++)
		if (gen_uses_earlier_memory(g, grp->clauses[i]))
			keep_until = i + 1;
	for (uint32_t i = 0; i < grp->nclauses; i++) {
		uint32_t skip = ir_new_label(&f);
		bool known[LAZY_COUNT];

		f.loc = grp->clauses[i]->loc;
		gen_lazy_save(g, known);
		if (grp->masks) {
			struct ir_val bit =
				ir_bin(&f, ALU_AND, ir_bin(&f, ALU_SHR, mask, IR_I(i)), IR_I(1));

			ir_if(&f, bit, IF_EQ, IR_I(0), skip);
		}
		g->exits = false;
		g->keeps_memory = i < keep_until;
		gen_clause(g, grp->clauses[i]);
		/* After exit() no other clause runs, except the clauses of END. */
		if (g->exits && i + 1 < grp->nclauses && strcmp(name, "END"))
			ir_if(&f,
			      ir_load(&f, ir_map_value(&f, gen_fixed_map(g, MAP_STATE), 0),
				      offsetof(struct wire_state, exiting), 4, false),
			      IF_NE, IR_I(0), g->out);
		ir_place(&f, skip);
		if (grp->masks)
			gen_lazy_restore(g, known);
	}
	gen_end_function(g);
	p = gen_finish_program(g, &f, name, first->loc);
	p->attach = g->attach;
	p->uses_cookie = cookie;
	p->tick = tick;
	p->samples = samples;
	p->sleepable = g->sleepable;
	p->nprobes = grp->probes.n;
	p->probes = arena_array(g->arena, uint32_t, grp->probes.n);
	memcpy(p->probes, grp->probes.v, grp->probes.n * sizeof(uint32_t));
	gen_guard(g, grp, p);
	ir_fn_fini(&f);
}
