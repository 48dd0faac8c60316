/* Generates built-in variables, probe arguments, and the values of a firing that are computed when
 * first needed. */
#include "compile/gen/gen_private.h"

#include "wire/language.h"
#include "wire/wire_record.h"
#include "wire/routines.h"

enum { TLS_CREATE = 1 /* BPF_LOCAL_STORAGE_GET_F_CREATE */ };

bool gen_by_exits(const struct gen *g)
{
	return g->attach == ATTACH_URETPROBE && !g->target->inside &&
	       g->probes.v[g->prog_probes[0]].probe->by_exits;
}

bool gen_current_thread(const struct gen *g)
{
	return g->thread_arg < 0;
}

/* Returns a pointer that the verifier tracks as a plain number. Copies it through memory, because
 * the verifier does not follow it there. */
static struct ir_val plain(struct gen *g, struct ir_val p)
{
	uint32_t from = ir_new_object(g->f, 8, "ptr"), to = ir_new_object(g->f, 8, "num");

	ir_store_stack(g->f, from, 0, 8, p);
	ir_store_stack(g->f, to, 0, 8, IR_I(0));
	(void)ir_call(g->f, HELPER_READ_KERNEL, 3, ir_stack(g->f, to, 0), IR_I(8),
		      ir_stack(g->f, from, 0));
	return ir_load_stack(g->f, to, 0, 8, false);
}

static struct ir_val task_btf(struct gen *g)
{
	if (gen_current_thread(g))
		return ir_call(g->f, HELPER_CURRENT_TASK_BTF, 0);
	return ir_load(g->f, g->ctx, 8 * g->thread_arg, 8, false);
}

static struct ir_val tls_get(struct gen *g, int flags)
{
	return ir_call(g->f, HELPER_TASK_STORAGE_GET, 4, ir_map(g->f, gen_fixed_map(g, MAP_TLS)),
		       gen_lazy(g, LAZY_TASK_BTF), IR_I(0), IR_I(flags));
}

static struct ir_val make(struct gen *g, enum lazy_id id)
{
	struct ir_fn *f = g->f;
	struct ir_val v;
	uint32_t ok;

	switch (id) {
	case LAZY_TIME: return ir_call(f, HELPER_KTIME, 0);
	case LAZY_CPU_TIME: return ir_call(f, HELPER_THREAD_TIME, 0);
	case LAZY_TASK:
		if (gen_current_thread(g))
			return ir_call(f, HELPER_CURRENT_TASK, 0);
		return plain(g, task_btf(g));
	case LAZY_TASK_BTF: return task_btf(g);
	case LAZY_REGS: return ir_call(f, HELPER_TASK_PT_REGS, 1, gen_lazy(g, LAZY_TASK_BTF));
	case LAZY_PIDTGID: return ir_call(f, HELPER_PID_TGID, 0);
	case LAZY_SCRATCH:
		v = ir_routine(f, "d_scratch_get", 1, ir_map(f, gen_fixed_map(g, MAP_SCRATCH)));
		ok = ir_new_label(f);
		ir_if(f, v, IF_NE, IR_I(0), ok);
		gen_count(g, IR_I(WIRE_DROP_SCRATCH));
		gen_bail(g);
		ir_place(f, ok);
		if (g->strtok_at)
			ir_store(f, v, (int32_t)g->strtok_at, 8, IR_I(0));
		return v;
	case LAZY_SCRATCH_ADDR:
		v = gen_lazy(g, LAZY_SCRATCH);
		ir_store(f, v, SCRATCH_WORD, 8, v);
		return ir_load(f, v, SCRATCH_WORD, 8, false);
	case LAZY_TLS: return tls_get(g, 0);
	default: abort();
	}
}

/* Returns the thread's storage. Creates it if there is none. The result is NULL when memory is
 * short. Uses LAZY_TLS's register. */
static struct ir_val writable_tls(struct gen *g)
{
	struct lazy *l = &g->lazy[LAZY_TLS];
	uint32_t have = 0, start;

	if (g->lazy[LAZY_TLS_RW].known)
		return l->v;
	(void)gen_lazy(g, LAZY_TASK_BTF);
	start = g->f->ins.n;
	if (l->known || l->ever) {
		have = ir_new_label(g->f);
		ir_if(g->f, l->v, IF_NE, IR_I(0), have);
	}
	ir_set(g->f, l->v, tls_get(g, TLS_CREATE));
	if (have)
		ir_place(g->f, have);
	l->known = l->ever = g->lazy[LAZY_TLS_RW].known = true;
	vec_push(&g->lazy_made, (struct lazy_made){ LAZY_TLS, start, g->f->ins.n });
	return l->v;
}

struct ir_val gen_lazy(struct gen *g, enum lazy_id id)
{
	struct lazy *l = &g->lazy[id];
	uint32_t have = 0, start;

	if (id == LAZY_TLS_RW)
		return writable_tls(g);
	if (l->known)
		return l->v;
	/* Compute its own inputs before the jump that skips it. */
	if (id == LAZY_SCRATCH_ADDR)
		(void)gen_lazy(g, LAZY_SCRATCH);
	if (id == LAZY_TLS || id == LAZY_REGS)
		(void)gen_lazy(g, LAZY_TASK_BTF);
	start = g->f->ins.n;
	if (l->ever) {
		have = ir_new_label(g->f);
		ir_if(g->f, l->v, IF_NE, IR_I(0), have);
	}
	ir_set(g->f, l->v, make(g, id));
	if (have)
		ir_place(g->f, have);
	l->known = l->ever = true;
	vec_push(&g->lazy_made, (struct lazy_made){ (int)id, start, g->f->ins.n });
	return l->v;
}

/* Ends the clause when the thread's storage is NULL. Otherwise NULL would be a second state for all
 * code that follows. */
static void require_tls(struct gen *g)
{
	uint32_t have = ir_new_label(g->f);

	ir_if(g->f, writable_tls(g), IF_NE, IR_I(0), have);
	gen_count(g, IR_I(WIRE_DROP_DYN));
	gen_bail(g);
	ir_place(g->f, have);
}

/* Returns at how many places from instruction `from` on the value is computed. */
static uint32_t times_made(const struct gen *g, enum lazy_id id, uint32_t from)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->lazy_made.n; i++)
		n += g->lazy_made.v[i].id == (int)id && g->lazy_made.v[i].start >= from;
	return n;
}

/* needs: a clause generated, its body from instruction `from`; before: the values known there.
 * gives: in a large body, values that several places would compute are computed once, in front. A
 * value that may or may not be computed is two states to the verifier, and n of them are 2^n. It
 * walks all the code that follows in each state. */
void gen_lazy_settle(struct gen *g, uint32_t from, const struct lazy *before)
{
	enum { LARGE = 250 };
	struct ir_fn *f = g->f;
	bool settled[LAZY_COUNT];
	struct lazy after[LAZY_COUNT];
	uint32_t n = f->ins.n, kept = from, made;
	struct ir_ins *ins;

	if (n - from < LARGE)
		return;
	for (int id = 0; id < LAZY_COUNT; id++)
		settled[id] = !before[id].known && times_made(g, (enum lazy_id)id, from) > 1;
	/* Their own inputs move to the front too. */
	if (settled[LAZY_TLS] || settled[LAZY_REGS])
		settled[LAZY_TASK_BTF] = !before[LAZY_TASK_BTF].known;
	if (settled[LAZY_SCRATCH_ADDR])
		settled[LAZY_SCRATCH] = !before[LAZY_SCRATCH].known;
	for (uint32_t i = 0; i < g->lazy_made.n; i++) {
		const struct lazy_made *m = &g->lazy_made.v[i];

		for (uint32_t k = m->start; m->start >= from && settled[m->id] && k < m->end; k++)
			f->ins.v[k].op = IR_OP_COUNT;
	}
	for (uint32_t i = from; i < n; i++)
		if (f->ins.v[i].op != IR_OP_COUNT)
			f->ins.v[kept++] = f->ins.v[i];
	f->ins.n = kept;
	memcpy(after, g->lazy, sizeof(after));
	memcpy(g->lazy, before, sizeof(after));
	for (int id = 0; id < LAZY_COUNT; id++)
		if (settled[id])
			(void)gen_lazy(g, (enum lazy_id)id);
	if (settled[LAZY_TLS])
		require_tls(g);
	memcpy(g->lazy, after, sizeof(after));
	/* Move these instructions before the body. */
	made = f->ins.n - kept;
	ins = xcalloc(made + 1, sizeof(*ins));
	memcpy(ins, f->ins.v + kept, made * sizeof(*ins));
	memmove(f->ins.v + from + made, f->ins.v + from, (kept - from) * sizeof(*ins));
	memcpy(f->ins.v + from, ins, made * sizeof(*ins));
	free(ins);
}

uint32_t gen_kernel_offset(struct gen *g, const char *type, const char *member, uint32_t *ret_size,
			   loc_t loc)
{
	struct type_member m;
	type_id t;

	*ret_size = 8;
	if (!type_lookup(g->types, NULL, TYPE_STRUCT, type, &t) ||
	    !type_find_member(g->types, t, member, &m)) {
		const char *why = type_kernel_err(g->types);

		diag_error(g->diags, loc ? loc : g->f->loc, 0, "D_TYPE_MEMBER",
			   "the kernel's types (BTF) have no %s.%s%s%s", type, member,
			   why ? ": " : "", why ? why : "");
		g->failed = true;
		return 0;
	}
	*ret_size = (uint32_t)type_size(g->types, m.type);
	return (uint32_t)(m.bit_offset / 8);
}

struct ir_val gen_kernel_read(struct gen *g, struct ir_val addr, int64_t off, uint32_t size,
			      bool sign, loc_t loc)
{
	uint32_t obj = ir_new_object(g->f, 8, "read");
	struct ir_val at = ir_bin(g->f, ALU_ADD, addr, IR_I(off)), r;

	r = ir_call(g->f, HELPER_READ_KERNEL, 3, ir_stack(g->f, obj, 0), IR_I(size), at);
	if (g->cl)
		gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, at, loc);
	else
		ir_if(g->f, r, IF_NE, IR_I(0), g->out);
	return ir_load_stack(g->f, obj, 0, size, sign);
}

struct ir_val gen_thread(struct gen *g)
{
	return gen_lazy(g, LAZY_TASK);
}

static struct ir_val task_member(struct gen *g, const char *member, loc_t loc)
{
	uint32_t size, off = gen_kernel_offset(g, "task_struct", member, &size, loc);

	return gen_kernel_read(g, gen_thread(g), off, size > 8 ? 8 : size, true, loc);
}

struct ir_val gen_tid(struct gen *g)
{
	if (gen_current_thread(g))
		return ir_ext(g->f, gen_lazy(g, LAZY_PIDTGID), 4, false);
	return task_member(g, "pid", 0);
}

struct ir_val gen_tgid(struct gen *g)
{
	if (gen_current_thread(g))
		return ir_bin(g->f, ALU_SHR, gen_lazy(g, LAZY_PIDTGID), IR_I(32));
	return task_member(g, "tgid", 0);
}

static bool has_user_regs(const struct gen *g)
{
	return g->attach == ATTACH_UPROBE || g->attach == ATTACH_URETPROBE;
}

static bool has_kernel_regs(const struct gen *g)
{
	return g->attach == ATTACH_KPROBE || g->attach == ATTACH_KRETPROBE;
}

static bool has_regs(const struct gen *g)
{
	return has_user_regs(g) || has_kernel_regs(g) || g->attach == ATTACH_PROFILE ||
	       g->attach == ATTACH_TICK;
}

enum { UREG_VECTORS = 26 }; /* R_XMM0 of dlib/regs.d */

struct ir_val gen_user_read(struct gen *g, struct ir_val addr, uint32_t size, bool sign, loc_t loc)
{
	uint32_t obj = ir_new_object(g->f, 8, "user");
	struct ir_val r =
		ir_call(g->f, HELPER_READ_USER, 3, ir_stack(g->f, obj, 0), IR_I(size), addr);

	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, addr, loc);
	return ir_load_stack(g->f, obj, 0, size, sign);
}

/* Returns a register behind the return, of a thread that is about to return. */
static struct ir_val returned_reg(struct gen *g, int64_t reg, loc_t loc)
{
	struct ir_val sp = ir_load(g->f, g->ctx, 8 * UREG_RSP, 8, false);

	if (reg == UREG_RSP)
		return ir_bin(g->f, ALU_ADD, sp, IR_I(8));
	return reg == UREG_RIP ? gen_user_read(g, sp, 8, false, loc)
			       : ir_load(g->f, g->ctx, (int32_t)(8 * reg), 8, false);
}

struct ir_val gen_uregs(struct gen *g, struct ir_val index, loc_t loc)
{
	static const char *const vectors[] = { "d_vector0", "d_vector1", "d_vector2", "d_vector3",
					       "d_vector4", "d_vector5", "d_vector6", "d_vector7" };
	struct ir_val regs;

	if (index.kind == IR_IMM && index.imm >= UREG_VECTORS &&
	    index.imm < UREG_VECTORS + WIRE_VECTORS)
		return has_user_regs(g) ? ir_routine(g->f, vectors[index.imm - UREG_VECTORS], 0)
					: IR_I((int64_t)WIRE_VECTOR_UNKNOWN);
	if (gen_by_exits(g) && index.kind == IR_IMM && index.imm >= 0 && index.imm < UREG_COUNT)
		return returned_reg(g, index.imm, loc);
	if (has_user_regs(g) && index.kind == IR_IMM && index.imm >= 0 && index.imm < UREG_COUNT)
		return ir_load(g->f, g->ctx, (int32_t)(8 * index.imm), 8, false);
	gen_fault_if(g, index, IF_UGE, IR_I(UREG_COUNT), WIRE_FAULT_BADINDEX, index, loc);
	regs = plain(g, ir_call(g->f, HELPER_TASK_PT_REGS, 1,
				ir_call(g->f, HELPER_CURRENT_TASK_BTF, 0)));
	return gen_kernel_read(g,
			       ir_bin(g->f, ALU_ADD, regs, ir_bin(g->f, ALU_SHL, index, IR_I(3))),
			       0, 8, false, loc);
}

struct ir_val gen_reg_value(struct gen *g, int64_t reg)
{
	if (gen_on_trampoline(g))
		return gen_trampoline_reg(g, (enum user_reg)reg);
	return ir_load(g->f, g->ctx, (int32_t)(8 * reg), 8, false);
}

struct ir_val gen_sampled_mode(struct gen *g)
{
	return ir_bin(g->f, ALU_AND, ir_load(g->f, g->ctx, 8 * UREG_CS, 8, false), IR_I(3));
}

/* Returns profile's arg0 (kernel) or arg1 (user): the interrupted pc if it was in that mode, else
 * 0. */
static struct ir_val profile_pc(struct gen *g, bool user)
{
	struct ir_val pc = ir_new_reg(g->f), mode = gen_sampled_mode(g);
	uint32_t done = ir_new_label(g->f);

	ir_set(g->f, pc, IR_I(0));
	ir_if(g->f, mode, user ? IF_EQ : IF_NE, IR_I(0), done);
	ir_set(g->f, pc, ir_load(g->f, g->ctx, 8 * UREG_RIP, 8, false));
	ir_place(g->f, done);
	return pc;
}

struct ir_val gen_syscall_reg(struct gen *g, enum user_reg reg, loc_t loc)
{
	/* A plain load, as through a BTF pointer; bpf_probe_read_kernel() costs 11 ns. */
	if (g->target->inside)
		return ir_load(g->f, g->ctx, 8 * (int32_t)reg, 8, false);
	if (g->target->task_btf && gen_current_thread(g))
		return ir_load(g->f, gen_lazy(g, LAZY_REGS), 8 * (int32_t)reg, 8, false);
	return gen_kernel_read(g, ir_load(g->f, g->ctx, 0, 8, false), 8 * reg, 8, false, loc);
}

struct ir_val gen_syscall_word(struct gen *g)
{
	if (g->target->inside)
		return gen_syscall_reg(
			g, g->attach == ATTACH_SYSCALL_ENTRY ? UREG_ORIG_RAX : UREG_RAX, 0);
	return ir_load(g->f, g->ctx, 8, 8, false);
}

/* Returns the id of the probe with this number. */
static struct ir_val probe_id(struct gen *g, struct ir_val probe)
{
	struct ir_fn *f = g->f;
	struct ir_val base, v;
	uint32_t done;

	if (probe.kind == IR_IMM)
		return IR_I(g->probes.v[probe.imm].id);
	v = ir_new_reg(f);
	done = ir_new_label(f);
	ir_set(f, v, IR_I(0));
	ir_if(f, probe, IF_UGE, IR_I(g->probes.n), done);
	base = ir_map_value(f, gen_fixed_map(g, MAP_RODATA), g->probe_ids);
	ir_set(f, v,
	       ir_load(f, ir_bin(f, ALU_ADD, base, ir_bin(f, ALU_SHL, probe, IR_I(2))), 0, 4,
		       false));
	ir_place(f, done);
	return v;
}

static struct ir_val gen_arg(struct gen *g, const struct probe_arg *a, loc_t loc)
{
	static const uint8_t syscall_regs[] = { UREG_RDI, UREG_RSI, UREG_RDX,
						UREG_R10, UREG_R8,  UREG_R9 };

	switch (a->source) {
	case ARG_NONE: return IR_I(0);
	case ARG_CONST: return IR_I(a->value);
	case ARG_CTX:
		if (a->value == 8 &&
		    (g->attach == ATTACH_SYSCALL_ENTRY || g->attach == ATTACH_SYSCALL_RETURN))
			return gen_syscall_word(g);
		return ir_load(g->f, g->ctx, (int32_t)a->value, 8, false);
	case ARG_SYSCALL:
		if (a->value < 0 || a->value > 5)
			return IR_I(0);
		return gen_syscall_reg(g, syscall_regs[a->value], loc);
	case ARG_REG: return gen_reg_value(g, a->value);
	case ARG_RETURN: return ir_load(g->f, g->ctx, 8 * UREG_RAX, 8, false);
	case ARG_IP_OFFSET:
		return ir_bin(g->f, ALU_SUB, ir_load(g->f, g->ctx, 8 * UREG_RIP, 8, false),
			      IR_I(a->value));
	case ARG_KERNEL_PC: return profile_pc(g, false);
	case ARG_USER_PC: return profile_pc(g, true);
	case ARG_USDT: return gen_usdt_operand(g, &a->usdt, loc);
	case ARG_FIELD:
		return ir_load(g->f, g->ctx, (int32_t)a->value, (uint32_t)abs(a->size),
			       a->size < 0);
	case ARG_FIELD_ADDR: return ir_bin(g->f, ALU_ADD, g->ctx, IR_I(a->value));
	case ARG_FIELD_LOC:
		return ir_bin(g->f, ALU_ADD,
			      ir_bin(g->f, ALU_ADD, g->ctx, IR_I(a->size ? a->value + a->size : 0)),
			      ir_bin(g->f, ALU_AND,
				     ir_load(g->f, g->ctx, (int32_t)a->value, 4, false),
				     IR_I(0xffff)));
	case ARG_FAULT:
		if (!g->in_error)
			return IR_I(0);
		switch (a->value) {
		case 1: return probe_id(g, g->err_probe);
		case 2: return g->err_clause;
		case 3: return g->err_loc;
		case 4: return g->err_code;
		case 5: return g->err_value;
		default: return IR_I(0);
		}
	case ARG_EXPR: break;
	}
	return IR_I(0);
}

/* Reads the current stack into scratch memory. Returns its number of frames, or, with which >= 0,
 * this frame's pc. */
static struct ir_val stack_frames(struct gen *g, bool user, int which)
{
	struct ir_fn *f = g->f;
	struct ir_val buf, n, v = ir_new_reg(f);
	uint32_t done = ir_new_label(f), most = (uint32_t)opt_num(g->options, OPT_MAXFRAMES);

	most = which < 0 && most ? most : WIRE_STACK_FRAMES;
	ir_set(f, v, IR_I(0));
	if (user) {
		n = gen_user_stack(g, which < 0 ? most : (uint32_t)which + 1, &buf);
	} else {
		buf = gen_scratch_temp(g, most * 8);
		n = gen_get_stack(g, buf, most * 8, false);
	}
	if (which < 0) {
		ir_if(f, n, IF_SLE, IR_I(0), done);
		ir_set(f, v, ir_bin(f, ALU_SHR, n, IR_I(3)));
	} else {
		ir_if(f, n, IF_SLT, IR_I(8 * (which + 1)), done);
		ir_set(f, v, ir_load(f, buf, 8 * which, 8, false));
	}
	ir_place(f, done);
	return v;
}

/* Frames of tracing code on top of the function that holds the tracepoint: bpf program,
 * bpf_trace_runN, iterator. */
enum { TRACE_FRAMES = 3 };

/* Returns true when the clause's probes are entries of functions. Then the return address is on top
 * of the stack, but not at an instruction or a marker inside. */
static bool at_entry(const struct gen *g)
{
	for (uint32_t i = 0; i < g->cl->nprobes; i++)
		if (strcmp(g->cl->probes[i]->name, "entry"))
			return false;
	return g->attach == ATTACH_UPROBE;
}

static struct ir_val user_caller(struct gen *g, loc_t loc)
{
	if (at_entry(g) || gen_by_exits(g))
		return gen_user_read(g, ir_load(g->f, g->ctx, 8 * UREG_RSP, 8, false), 8, false,
				     loc);
	if (g->attach == ATTACH_URETPROBE)
		return ir_load(g->f, g->ctx, 8 * UREG_RIP, 8, false);
	return stack_frames(g, true, 1);
}

/* Returns errno as a positive number: of the system call that returns, or, in user code, of the
 * thread's last call. Returns 0 when the call succeeded, and in other probes. */
static struct ir_val error_number(struct gen *g)
{
	struct ir_val ret, v;
	uint32_t done;

	if (g->attach == ATTACH_UPROBE || g->attach == ATTACH_URETPROBE) {
		ret = gen_lazy(g, LAZY_TLS_RW);
		g->uses_errno = true;
		v = ir_new_reg(g->f);
		done = ir_new_label(g->f);
		ir_set(g->f, v, IR_I(0));
		ir_if(g->f, ret, IF_EQ, IR_I(0), done);
		ir_set(g->f, v, ir_load(g->f, ret, offsetof(struct wire_tls, error), 8, false));
		ir_place(g->f, done);
		return v;
	}
	if (g->attach != ATTACH_SYSCALL_RETURN)
		return IR_I(0);
	ret = gen_syscall_word(g);
	v = ir_new_reg(g->f);
	done = ir_new_label(g->f);
	ir_set(g->f, v, IR_I(0));
	ir_if(g->f, ret, IF_SGE, IR_I(0), done);
	ir_if(g->f, ret, IF_SLT, IR_I(-4095), done);
	ir_set(g->f, v, ir_neg(g->f, ret));
	ir_place(g->f, done);
	return v;
}

/* Returns the thread's time on CPU. `on_cpu` is the sum from sched_switch. The storage's first word
 * is the time since which the thread runs, or 0 at the first query or off CPU. The first query
 * takes the kernel's own sum. The result is never 0, because scripts use it as a condition. */
static struct ir_val vtimestamp(struct gen *g)
{
	struct ir_fn *f = g->f;
	struct ir_val tls, now, v, since;
	uint32_t done, running, started, size, off;
	bool known[LAZY_COUNT];

	if (g->target->inside)
		return gen_lazy(g, LAZY_CPU_TIME);
	tls = gen_lazy(g, LAZY_TLS_RW);
	now = gen_lazy(g, LAZY_TIME);
	v = ir_new_reg(f);
	done = ir_new_label(f);
	running = ir_new_label(f);
	gen_lazy_save(g, known);
	ir_set(f, v, IR_I(0));
	ir_if(f, tls, IF_EQ, IR_I(0), done);
	since = ir_load(f, tls, 0, 8, false);
	ir_if(f, since, IF_NE, IR_I(0), running);
	ir_set(f, v, ir_load(f, tls, offsetof(struct wire_tls, on_cpu), 8, false));
	started = ir_new_label(f);
	ir_if(f, v, IF_NE, IR_I(0), started);
	off = gen_kernel_offset(g, "task_struct", "se", &size, 0) +
	      gen_kernel_offset(g, "sched_entity", "sum_exec_runtime", &size, 0);
	ir_set(f, v,
	       ir_bin(f, ALU_OR, gen_kernel_read(g, gen_thread(g), off, 8, false, f->loc),
		      IR_I(1)));
	ir_store(f, tls, offsetof(struct wire_tls, on_cpu), 8, v);
	ir_place(f, started);
	if (gen_current_thread(g) && g->attach != ATTACH_TP_BTF)
		ir_store(f, tls, 0, 8, now);
	ir_goto(f, done);
	ir_place(f, running);
	ir_set(f, v,
	       ir_bin(f, ALU_ADD, ir_load(f, tls, offsetof(struct wire_tls, on_cpu), 8, false),
		      ir_bin(f, ALU_SUB, now, since)));
	gen_lazy_restore(g, known);
	ir_place(f, done);
	return v;
}

static struct ir_val credential(struct gen *g, bool group, loc_t loc)
{
	struct ir_val ids, cred;
	uint32_t size, off;

	if (gen_current_thread(g)) {
		ids = ir_call(g->f, HELPER_UID_GID, 0);
		return group ? ir_bin(g->f, ALU_SHR, ids, IR_I(32)) : ir_ext(g->f, ids, 4, false);
	}
	cred = task_member(g, "cred", loc);
	off = gen_kernel_offset(g, "cred", group ? "gid" : "uid", &size, loc);
	return gen_kernel_read(g, cred, off, 4, false, loc);
}

struct ir_val gen_builtin(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	enum builtin_id id = n->id->builtin;
	struct ir_val v;
	uint32_t off, size;

	if (id <= BUILTIN_ARG9 || id == BUILTIN_ARGS) {
		const struct probe_arg *a = n->aux;

		v = a ? gen_arg(g, a, n->loc) : IR_I(0);
		if (id == BUILTIN_ARGS && type_is_integer(g->types, n->type))
			v = ir_ext(f, v, (uint32_t)type_size(g->types, n->type),
				   type_is_signed(g->types, n->type));
		return v;
	}
	switch (id) {
	case BUILTIN_TIMESTAMP: return gen_lazy(g, LAZY_TIME);
	case BUILTIN_WALLTIMESTAMP:
		v = ir_load(f, ir_map_value(f, gen_fixed_map(g, MAP_STATE), 0),
			    offsetof(struct wire_state, boot_offset), 8, false);
		/* walltimestamp advances within a firing. */
		return ir_bin(f, ALU_ADD, ir_call(f, HELPER_KTIME, 0), v);
	case BUILTIN_VTIMESTAMP: return vtimestamp(g);
	case BUILTIN_CALLER:
		/* A return probe fires at the instruction to which the function returns. */
		if (g->attach == ATTACH_KRETPROBE || g->attach == ATTACH_FEXIT)
			return stack_frames(g, false, 0);
		return stack_frames(g, false,
				    has_regs(g) || gen_on_trampoline(g) ||
						    g->attach == ATTACH_TRACEPOINT
					    ? 1
					    : TRACE_FRAMES + 1);
	case BUILTIN_UCALLER: return user_caller(g, n->loc);
	case BUILTIN_STACKDEPTH: return stack_frames(g, false, -1);
	case BUILTIN_USTACKDEPTH: return stack_frames(g, true, -1);
	case BUILTIN_CURTHREAD: return gen_thread(g);
	case BUILTIN_CPU: return ir_call(f, HELPER_CPU, 0);
	case BUILTIN_EPID: return IR_I(g->cl->index + 1);
	case BUILTIN_ID: return probe_id(g, g->probe);
	case BUILTIN_ERRNO: return error_number(g);
	case BUILTIN_PID: return gen_tgid(g);
	case BUILTIN_TID: return gen_tid(g);
	case BUILTIN_PPID:
		v = task_member(g, "real_parent", n->loc);
		off = gen_kernel_offset(g, "task_struct", "tgid", &size, n->loc);
		return gen_kernel_read(g, v, off, size, true, n->loc);
	case BUILTIN_UID: return credential(g, false, n->loc);
	case BUILTIN_GID: return credential(g, true, n->loc);
	case BUILTIN_IPL:
		/* Timers interrupt. Before 6.18 a program cannot query whether a tracepoint fired
		 * in an interrupt. */
		return IR_I(g->attach == ATTACH_PROFILE || g->attach == ATTACH_TICK ? 2 : 0);
	default: return IR_I(0);
	}
}
