/* The driver: programs from clauses, prologue and epilogue, maps, read-only data. */
#include "compile/ir/gen.h"

#include <inttypes.h>

#include "compile/ebpf/ebpf.h"
#include "probe/fentry.h"
#include "wire/unwind.h"
#include "wire/late.h"
#include "wire/record.h"
#include "wire/routines.h"
#include "wire/syscall.h"

/* --- maps and read-only data --- */

uint32_t gen_map(struct gen *g, enum map_role role, const char *name, enum bpf_map_type type,
		 uint32_t key, uint32_t value, uint32_t entries, uint32_t flags)
{
	vec_push(&g->maps, (struct image_map){ .name = name,
					       .role = role,
					       .type = type,
					       .key_size = key,
					       .value_size = value,
					       .max_entries = entries,
					       .flags = flags });
	return g->maps.n - 1;
}

static uint32_t power_of_two(uint64_t n)
{
	uint32_t p = 4096;

	while (p < n && p < 1u << 30)
		p *= 2;
	return p;
}

/* With bufpolicy=fill and =ring the consumer keeps bufsize bytes, and this is the way to it
 * only. */
static uint64_t data_size(const struct options *o)
{
	enum { WAY = 4 << 20 };
	int64_t size = opt_num(o, OPT_BUFSIZE);

	return (uint64_t)(opt_num(o, OPT_BUFPOLICY) && size < WAY ? WAY : size);
}

/* Sizes that depend on the whole program are filled in by finish_maps(). */
uint32_t gen_fixed_map(struct gen *g, enum map_role role)
{
	int *at = &g->map_of[role];

	if (*at >= 0)
		return (uint32_t)*at;
	switch (role) {
	case MAP_STATE:
		*at = (int)gen_map(g, role, "state", BPF_MAP_TYPE_ARRAY, 4,
				   sizeof(struct wire_state), 1, BPF_F_MMAPABLE);
		break;
	case MAP_DATA:
		*at = (int)gen_map(g, role, "data", BPF_MAP_TYPE_RINGBUF, 0, 0,
				   power_of_two(data_size(g->options)), 0);
		break;
	case MAP_CONTROL:
		*at = (int)gen_map(g, role, "control", BPF_MAP_TYPE_RINGBUF, 0, 0, 1u << 19, 0);
		break;
	case MAP_GLOBALS:
		*at = (int)gen_map(g, role, "globals", BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
		break;
	case MAP_RODATA:
		*at = (int)gen_map(g, role, "rodata", BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
		break;
	case MAP_SCRATCH:
		*at = (int)gen_map(g, role, "scratch", BPF_MAP_TYPE_ARRAY, 4, 8, SCRATCH_SLOTS, 0);
		break;
	case MAP_TLS:
		*at = (int)gen_map(g, role, "self", BPF_MAP_TYPE_TASK_STORAGE, 4, 16, 0,
				   BPF_F_NO_PREALLOC);
		break;
	case MAP_COUNTERS:
		*at = (int)gen_map(g, role, "counters", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 0, 0);
		break;
	case MAP_STACKS:
		/* In a thread switch interrupts are off, and making an element then fails now and
		 * then: such programs have theirs from the start. */
		*at = (int)gen_map(g, role, "stacks", BPF_MAP_TYPE_HASH, 8,
				   sizeof(struct wire_stack),
				   g->uses_switch_stacks ? 1u << 14 : 1u << 16,
				   g->uses_switch_stacks ? 0 : BPF_F_NO_PREALLOC);
		break;
	case MAP_LATE:
		*at = (int)gen_map(g, role, "late", BPF_MAP_TYPE_HASH, 4,
				   sizeof(struct wire_late_wait), 4096, BPF_F_NO_PREALLOC);
		break;
	case MAP_UNWIND:
		*at = (int)gen_map(g, role, "unwind", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4,
				   WIRE_UNWIND_CHUNKS, 0);
		break;
	case MAP_UNWIND_PROCESSES:
		*at = (int)gen_map(g, role, "unwind_procs", BPF_MAP_TYPE_HASH, 4,
				   sizeof(struct wire_unwind_process), WIRE_UNWIND_PROCESSES, 0);
		break;
	case MAP_UNWIND_WANTED:
		*at = (int)gen_map(g, role, "unwind_wanted", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
		break;
	default: abort();
	}
	return (uint32_t)*at;
}

uint32_t gen_rodata(struct gen *g, const void *p, uint32_t n, uint32_t align)
{
	uint32_t at;

	while (g->rodata.n % align)
		vec_push(&g->rodata, 0);
	at = g->rodata.n;
	for (uint32_t i = 0; i < n; i++)
		vec_push(&g->rodata, p ? ((const uint8_t *)p)[i] : 0);
	return at;
}

static void finish_maps(struct gen *g)
{
	for (uint32_t i = 0; i < g->maps.n; i++) {
		struct image_map *m = &g->maps.v[i];

		switch (m->role) {
		case MAP_GLOBALS: m->value_size = g->globals_size; break;
		case MAP_RODATA: {
			uint8_t *init = arena_alloc(g->arena, g->rodata.n + 8);

			memcpy(init, g->rodata.v, g->rodata.n);
			m->value_size = (g->rodata.n + 7) & ~7u;
			m->init = init;
			m->ninit = 1;
			break;
		}
		case MAP_SCRATCH: m->value_size = (g->scratch_size + 7) & ~7u; break;
		case MAP_TLS: m->value_size = g->tls_size; break;
		case MAP_COUNTERS:
			m->max_entries = WIRE_FIXED_COUNTERS + WIRE_PROBE_SLOTS * g->probes.n;
			break;
		default: break;
		}
	}
}

/* --- what a firing makes once --- */

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

/* --- programs --- */

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

struct group {
	const struct bound_clause **clauses;
	uint32_t nclauses;
	uint64_t *masks; /* per probe; NULL: every clause applies to every probe */
	VEC(uint32_t) probes;
};

static void begin_fn(struct gen *g, struct ir_fn *f, const char *name)
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

static void end_fn(struct gen *g)
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

/* Lowers f into a new program. */
static struct image_prog *finish_prog(struct gen *g, struct ir_fn *f, const char *name, loc_t loc)
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
	p->cookie_insn = code.cookie_insn;
	p->ninsns = code.insns.n;
	p->insns = arena_array(g->arena, struct bpf_insn, code.insns.n);
	memcpy(p->insns, code.insns.v, code.insns.n * sizeof(*p->insns));
	p->locs = arena_array(g->arena, loc_t, code.locs.n);
	memcpy(p->locs, code.locs.v, code.locs.n * sizeof(*p->locs));
	p->nrelocs = code.relocs.n;
	p->relocs = arena_array(g->arena, struct reloc, code.relocs.n + 1);
	if (code.relocs.n)
		memcpy(p->relocs, code.relocs.v, code.relocs.n * sizeof(*p->relocs));
	p->nfuncs = code.funcs.n;
	p->funcs = arena_array(g->arena, uint32_t, code.funcs.n);
	memcpy(p->funcs, code.funcs.v, code.funcs.n * sizeof(*p->funcs));
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

/* Tracing is on, and on this CPU (-x cpu). */
static void check_active(struct gen *g)
{
	int64_t cpu = opt_num(g->options, OPT_CPU);
	struct ir_val state = ir_map_value(g->f, gen_fixed_map(g, MAP_STATE), 0);

	ir_if(g->f, ir_load(g->f, state, offsetof(struct wire_state, active), 4, false), IF_NE,
	      IR_I(WIRE_ON), g->out);
	if (cpu >= 0)
		ir_if(g->f, ir_call(g->f, HELPER_CPU, 0), IF_NE, IR_I(cpu), g->out);
}

/* -x follow: the kernel enables the probe for every process that maps the file; only the targets
 * and what they have started shall pass. */
static void check_family(struct gen *g, const struct group *grp)
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

/* Children are traced for the sake of other probes: these are for the named processes, as the
 * kernel's are. */
static void check_named(struct gen *g, const struct group *grp)
{
	struct ir_val pid = ir_bin(g->f, ALU_SHR, gen_lazy(g, LAZY_PIDTGID), IR_I(32));
	uint32_t pass = ir_new_label(g->f);

	for (uint32_t i = 0; i < grp->probes.n; i++) {
		pid_t named = g->probes.v[grp->probes.v[i]].probe->pid;
		bool before = false;

		for (uint32_t k = 0; k < i && !before; k++)
			before = g->probes.v[grp->probes.v[k]].probe->pid == named;
		if (!before)
			ir_if(g->f, pid, IF_EQ, IR_I(named), pass);
	}
	ir_goto(g->f, g->out);
	ir_place(g->f, pass);
}

static bool is_syscall(enum attach_kind k)
{
	return k == ATTACH_SYSCALL_ENTRY || k == ATTACH_SYSCALL_RETURN;
}

/* 32-bit callers number their system calls differently: not these probes. */
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

/* Finds which probe fired; for system calls also its mask of clauses. */
static struct ir_val find_probe(struct gen *g, const struct group *grp, uint32_t syscalls,
				bool *ret_cookie)
{
	struct ir_fn *f = g->f;
	struct ir_val nr, entry, probe, mask = IR_V_NONE;
	uint32_t key;

	*ret_cookie = false;
	if (!is_syscall(g->attach)) {
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

static uint32_t syscall_map(struct gen *g, const struct group *grp, bool entry)
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

static void compile_group(struct gen *g, const struct group *grp, enum attach_kind attach)
{
	const struct bound_clause *first = grp->clauses[0];
	struct image_prog *p;
	struct ir_val mask;
	struct ir_fn f;
	uint32_t syscalls = 0;
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
	if (is_syscall(g->attach))
		syscalls = syscall_map(g, grp, g->attach == ATTACH_SYSCALL_ENTRY);
	begin_fn(g, &f, name);
	f.loc = first->loc;
	if (g->attach != ATTACH_SELF)
		check_active(g);
	if (opt_on(g->options, OPT_FOLLOW) && !g->target->inside &&
	    (g->attach == ATTACH_UPROBE || g->attach == ATTACH_URETPROBE))
		check_family(g, grp);
	if (g->target->family && !opt_on(g->options, OPT_FOLLOW) &&
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
		gen_clause(g, grp->clauses[i]);
		/* After exit() only END runs, all of it. */
		if (g->exits && i + 1 < grp->nclauses && strcmp(name, "END"))
			ir_if(&f,
			      ir_load(&f, ir_map_value(&f, gen_fixed_map(g, MAP_STATE), 0),
				      offsetof(struct wire_state, exiting), 4, false),
			      IF_NE, IR_I(0), g->out);
		ir_place(&f, skip);
		if (grp->masks)
			gen_lazy_restore(g, known);
	}
	end_fn(g);
	p = finish_prog(g, &f, name, first->loc);
	p->attach = g->attach;
	p->uses_cookie = cookie;
	p->sleepable = g->sleepable;
	p->nprobes = grp->probes.n;
	p->probes = arena_array(g->arena, uint32_t, grp->probes.n);
	memcpy(p->probes, grp->probes.v, grp->probes.n * sizeof(uint32_t));
	ir_fn_fini(&f);
}

/* Two probes may sit on one system call (syscall::sched_yield:entry, sched:::surrender), and a
 * table has one entry for it: the second gets rank 1 and a program of its own. Ranks by probe
 * number; the number of ranks. */
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

/* Clauses [from, to) of the list, at most 64, for their probes of this rank. */
static void compile_syscall_group(struct gen *g, const clause_list *list, uint32_t from,
				  const uint8_t *ranks, uint8_t rank)
{
	struct group grp = { .clauses = &list->v[from],
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
	compile_group(g, &grp, grp.clauses[0]->attach);
	vec_fini(&grp.probes);
	vec_fini(&masks);
	hash_fini(&seen);
}

/* System calls: one program for all probes of one direction, 64 clauses at a time; a probe's mask
 * says which apply. */
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

/* The same as the last program, which is for kprobes, for BPF trampolines. */
static void compile_for_trampolines(struct gen *g, const struct group *grp)
{
	struct group own = { .clauses = grp->clauses, .nclauses = grp->nclauses };
	enum attach_kind attach = g->attach == ATTACH_KPROBE ? ATTACH_FENTRY : ATTACH_FEXIT;
	uint32_t last = g->progs.n - 1;
	struct fentry_target target;

	for (uint32_t i = 0; i < grp->probes.n; i++)
		if (!fentry_refusal(g->types, g->probes.v[grp->probes.v[i]].probe, &target))
			vec_push(&own.probes, grp->probes.v[i]);
	if (own.probes.n) {
		compile_group(g, &own, attach);
		g->progs.v[last].fentry = last + 1;
	}
	vec_fini(&own.probes);
}

/* Everything else: probes with the same list of clauses share a program. */
static void compile_others(struct gen *g)
{
	VEC(clause_list) lists = { 0 }; /* by probe number */
	struct hash groups = { 0 };
	VEC(struct group) made = { 0 };

	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		const struct bound_clause *cl = g->b->clauses.v[i];

		if (is_syscall(cl->attach))
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
		uint64_t *at;

		if (!l->n ||
		    (l->v[0]->attach == ATTACH_SELF && !strcmp(g->probes.v[probe].name, "ERROR")))
			continue;
		/* tp_btf programs are typed by their tracepoint, BEGIN and END run by name: one
		 * each. */
		if (l->v[0]->attach == ATTACH_TP_BTF || l->v[0]->attach == ATTACH_SELF)
			vec_push(l, (const struct bound_clause *)(uintptr_t)(probe + 1));
		at = hash_put(&groups, l->v, l->n * sizeof(*l->v), NULL);
		if (l->v[0]->attach == ATTACH_TP_BTF || l->v[0]->attach == ATTACH_SELF)
			l->n--;
		if (!*at) {
			vec_push(&made, (struct group){ .clauses = l->v, .nclauses = l->n });
			*at = made.n;
		}
		vec_push(&made.v[*at - 1].probes, probe);
	}
	for (uint32_t i = 0; i < made.n; i++) {
		compile_group(g, &made.v[i], made.v[i].clauses[0]->attach);
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

/* The run's own programs: thread times for vtimestamp, strings at the return of system calls. */
static void compile_helpers(struct gen *g)
{
	struct image_prog *p;
	struct ir_fn f;

	if (g->uses_vtime) {
		g->attach = ATTACH_TP_BTF;
		begin_fn(g, &f, "vtimestamp");
		(void)ir_routine(&f, "d_sched_switch", 3, ir_map(&f, gen_fixed_map(g, MAP_TLS)),
				 ir_load(&f, g->ctx, 8, 8, false),
				 ir_load(&f, g->ctx, 16, 8, false));
		end_fn(g);
		p = finish_prog(g, &f, "vtimestamp", 0);
		p->attach = ATTACH_TP_BTF;
		p->tracepoint = "sched_switch";
		ir_fn_fini(&f);
	}
	if (g->uses_errno) {
		g->attach = ATTACH_RAW_TP;
		begin_fn(g, &f, "errno");
		(void)ir_routine(&f, "d_sys_error", 3, ir_map(&f, gen_fixed_map(g, MAP_TLS)),
				 ir_load(&f, g->ctx, 0, 8, false),
				 ir_load(&f, g->ctx, 8, 8, false));
		end_fn(g);
		p = finish_prog(g, &f, "errno", 0);
		p->attach = ATTACH_RAW_TP;
		p->tracepoint = "sys_exit";
		ir_fn_fini(&f);
	}
	if (g->uses_switch_stacks) {
		g->attach = ATTACH_TP_BTF;
		g->thread_arg = 1;
		begin_fn(g, &f, "switch_stacks");
		gen_save_stacks(g);
		end_fn(g);
		p = finish_prog(g, &f, "switch_stacks", 0);
		p->attach = ATTACH_TP_BTF;
		p->tracepoint = "sched_switch";
		ir_fn_fini(&f);
	}
	if (g->uses_late) {
		g->attach = ATTACH_RAW_TP;
		begin_fn(g, &f, "late_strings");
		(void)ir_routine(&f, "d_late_sys_exit", 5, ir_map(&f, gen_fixed_map(g, MAP_LATE)),
				 ir_map(&f, gen_fixed_map(g, MAP_CONTROL)),
				 ir_map(&f, gen_fixed_map(g, MAP_COUNTERS)),
				 ir_map_value(&f, gen_fixed_map(g, MAP_STATE), 0),
				 ir_load(&f, g->ctx, 0, 8, false));
		end_fn(g);
		p = finish_prog(g, &f, "late_strings", 0);
		p->attach = ATTACH_RAW_TP;
		p->tracepoint = "sys_exit";
		ir_fn_fini(&f);
	}
}

static void finish_image(struct gen *g)
{
	struct image *img = g->img;

	finish_maps(g);
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
		/* All probes get their numbers before code is made: FIELD_STRID depends on how many
		 * there are. */
		for (uint32_t k = 0; k < cl->nprobes; k++)
			(void)gen_probe_number(g, cl->probes[k]);
	}
}

/* A string has up to strsize characters and a NUL behind them. */
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
