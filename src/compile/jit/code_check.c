/* Writes the checks that compiled code makes at run time: bounds, budget, helper arguments. Also
 * writes the code behind the functions: cold paths, shared pieces and constants. */
#include "compile/jit/code_private.h"

/* Emits a jump to a new cold path, taken on condition cc. Returns the path, by default a violation
 * at `insn`. */
struct jit_cold *code_cold(struct jit *j, enum x86_cc cc, uint32_t insn)
{
	struct jit_cold *c;

	x86_jcc(&j->b, cc, j->b.n, true);
	if (j->ncold == j->capcold)
		vec_grow_((void **)&j->cold, &j->capcold, j->ncold + 1, sizeof(*j->cold));
	c = &j->cold[j->ncold++];
	*c = (struct jit_cold){ .jump = j->b.n, .insn = insn, .fail = true };
	return c;
}

/* Offsets into the constants behind the code. */
enum {
	CONST_AREA,
	CONST_SIZE,
	CONST_SHARED,
	CONST_THREADS,
	CONST_STACKS,
	CONST_LIMIT /* of loads: the size less 1, 2, 4, 8 */,
	CONST_STORE_LIMIT = CONST_LIMIT + 4,
	CONSTS = CONST_STORE_LIMIT + 4
};

static int64_t const_at(const struct jit *j, int i)
{
	return (int64_t)j->consts + i * 8;
}

int64_t jit_threads(const struct jit *j)
{
	return const_at(j, CONST_THREADS);
}

/* T0 = base + off. Ends the firing unless the program may access `size` bytes there. T1 is lost. */
void code_check_access(struct jit *j, uint32_t insn, unsigned base, int32_t off, uint32_t size,
		       bool load)
{
	struct x86 *b = &j->b;
	struct jit_cold *c;

	wrote(j, T0);
	wrote(j, T1);
	x86_rm(b, 8, X86_OP_LEA, T0, base, off);
	x86_mov_rr(b, T1, T0);
	x86_rip(b, 8, 0x2b, T1, const_at(j, load ? CONST_AREA : CONST_SHARED));
	x86_rip(b, 8, 0x3b, T1,
		const_at(j, (load ? CONST_LIMIT : CONST_STORE_LIMIT) + __builtin_ctz(size)));
	c = code_cold(j, X86_A, insn);
	c->fail = false;
	c->size = (uint8_t)size;
	c->load = load;
	c->back = b->n;
}

void code_spend(struct jit *j, uint32_t i)
{
	x86_alu_mem_imm(&j->b, 8, X86_SUB, THREAD, OFF_BUDGET, 1);
	code_cold(j, X86_B, i);
}

/* Ends the firing unless rdi is one of the maps that the helper may use. For a map that is not
 * known at compile time. */
static void check_map(struct jit *j, uint32_t i, const struct jit_helper *h)
{
	struct x86 *b = &j->b;
	uint32_t found[64], n = 0, last = UINT32_MAX;

	for (uint32_t m = 0; m < j->env->nmaps; m++)
		if (jit_map_usable(j->env, m, h->id))
			last = m;
	if (last == UINT32_MAX) /* no map: never equal */
		x86_mov_imm(b, T1, 0);
	for (uint32_t m = 0; m <= last && last != UINT32_MAX; m++) {
		if (!jit_map_usable(j->env, m, h->id))
			continue;
		x86_mov_imm(b, T1, j->env->map_addrs[m]);
		if (m == last || n == ARRAY_SIZE(found))
			break;
		x86_rr(b, 8, x86_alu_op(X86_CMP), T1, X86_RDI);
		found[n++] = x86_jcc_over(b, X86_E);
	}
	x86_rr(b, 8, x86_alu_op(X86_CMP), T1, X86_RDI);
	code_cold(j, X86_NE, i);
	while (n)
		x86_land(b, found[--n]);
}

/* Checks arguments that are not proven. T0, T1, T2 are lost. */
void code_check_args(struct jit *j, uint32_t i, const struct jit_helper *h)
{
	const struct jit_fact *f = &j->facts.insn[i];
	struct x86 *b = &j->b;

	wrote(j, T0);
	for (uint32_t a = 0; h->args[a]; a++) {
		unsigned reg = jit_reg[a + 1];
		uint32_t null = 0;

		if (!(f->check & 1 << (a + 1)))
			continue;
		if (h->args[a] == 'm' && h->id != BPF_FUNC_map_lookup_elem) {
			check_map(j, i, h);
			continue;
		}
		x86_mov_rr(b, T0, reg);
		switch (h->args[a]) {
		case 'm': x86_mov_imm(b, T1, sizeof(struct wire_map)); break;
		case 'k': x86_mov_imm(b, T1, jit_key_size(j->env, f->map, h->id)); break;
		case 'V':
			x86_rr(b, 8, X86_OP_TEST, T0, T0);
			null = x86_jcc_over(b, X86_E);
			/* fall through */
		case 'v': x86_mov_imm(b, T1, jit_value_size(j->env, f->map, h->id)); break;
		case 'l': x86_mov_rr(b, T1, jit_reg[a + 2]); break;
		case 'q': x86_rr(b, 4, X86_OP_STORE, jit_reg[a], T1); break;
		case 'g': x86_mov_imm(b, T1, 8); break;
		case 'S': x86_mov_imm(b, T1, sizeof(struct wire_stack)); break;
		case 'W': x86_mov_imm(b, T1, sizeof(struct wire_walk)); break;
		case 'O': x86_mov_imm(b, T1, sizeof(struct wire_unwind_offsets)); break;
		default: /* helpers use 32 bits of it */
			x86_rr(b, 4, X86_OP_STORE, jit_reg[a + 2], jit_reg[a + 2]);
			x86_mov_rr(b, T1, jit_reg[a + 2]);
		}
		x86_call(b, j->range);
		code_cold(j, X86_B, i);
		if (null)
			x86_land(b, null);
	}
}

/* rax = quantize_bucket() of a negative number. */
static void negative_bucket(struct jit *j, uint32_t i)
{
	struct x86 *b = &j->b;
	uint32_t more;

	x86_mov_rr(b, X86_RAX, jit_reg[j->facts.insn[i].arg]);
	x86_rr(b, 8, X86_OP_GROUP3, X86_NEG, X86_RAX);
	x86_rr(b, 8, X86_OP_BSR, X86_RAX, X86_RAX);
	x86_alu_imm(b, 4, X86_SUB, X86_RAX, 62);
	x86_rr(b, 4, X86_OP_GROUP3, X86_NEG, X86_RAX);
	more = x86_jcc_over(b, X86_NS);
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX); /* -1 comes from -2^63 */
	x86_land(b, more);
}

/* Calls the agent for a record's room, because the ring is full or the record does not fit in one
 * piece. */
static void ask_for_room(struct jit *j, uint32_t i)
{
	static const uint8_t args[] = { X86_RDI, X86_RSI, X86_RDX };
	struct x86 *b = &j->b;

	for (uint32_t k = 0; k < ARRAY_SIZE(args); k++)
		x86_push(b, args[k]);
	code_load_address(j, X86_RDI, j->env->map_addrs[j->facts.insn[i].map]);
	x86_mov_imm(b, X86_RSI, j->facts.insn[i].record);
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RDX, X86_RDX);
	x86_call(b, j->reserve);
	for (uint32_t k = ARRAY_SIZE(args); k--;)
		x86_pop(b, args[k]);
}

void jit_own(struct jit *j, unsigned reg)
{
	struct x86 *b = &j->b;

	x86_mov_rr(b, reg, THREAD);
	if (j->env->stack_shift)
		x86_shift_imm(b, 8, X86_SHR, reg, j->env->stack_shift);
	x86_rip(b, 8, 0x03, reg, const_at(j, CONST_STACKS));
}

/* to = T0 minus a word of the struct wire_own. */
static void from_own(struct jit *j, unsigned to, int32_t off)
{
	struct x86 *b = &j->b;

	jit_own(j, to);
	x86_rm(b, 8, X86_OP_LOAD, to, to, off);
	x86_rr(b, 8, X86_OP_GROUP3, X86_NEG, to);
	x86_rr(b, 8, x86_alu_op(X86_ADD), T0, to);
}

/* in: T0 address, T1 bytes. Sets carry when the range is not the program's. T2 is lost. */
static void range_piece(struct jit *j)
{
	struct x86 *b = &j->b;
	uint32_t none, out, over, good, bad1, bad2;

	j->range = b->n;
	x86_rr(b, 8, X86_OP_TEST, T1, T1);
	none = x86_jcc_over(b, X86_E); /* carry is clear */
	x86_mov_rr(b, T2, T0);
	x86_rip(b, 8, 0x2b, T2, const_at(j, CONST_AREA));
	x86_rip(b, 8, 0x3b, T2, const_at(j, CONST_SIZE));
	out = x86_jcc_over(b, X86_A);
	x86_rr(b, 8, x86_alu_op(X86_ADD), T1, T2);
	over = x86_jcc_over(b, X86_B);
	x86_rip(b, 8, 0x3b, T2, const_at(j, CONST_SIZE));
	good = x86_jcc_over(b, X86_BE);
	x86_land(b, out);
	x86_land(b, over);
	from_own(j, T2, OFF_FRAME);
	x86_alu_imm(b, 8, X86_CMP, T2, (int32_t)j->data);
	bad1 = x86_jcc_over(b, X86_A);
	x86_rr(b, 8, x86_alu_op(X86_ADD), T1, T2);
	bad2 = x86_jcc_over(b, X86_B);
	x86_alu_imm(b, 8, X86_CMP, T2, (int32_t)j->data);
	x86_land(b, good);
	uint32_t fine = x86_jcc_over(b, X86_BE);
	x86_land(b, bad1);
	x86_land(b, bad2);
	x86_byte(b, 0xf9); /* stc */
	x86_ret(b);
	x86_land(b, fine);
	x86_land(b, none);
	x86_byte(b, 0xf8); /* clc */
	x86_ret(b);
}

/* Ends the firing. in: edi = the instruction. */
static void stop_piece(struct jit *j)
{
	struct x86 *b = &j->b;

	j->stop = b->n;
	jit_own(j, T0);
	x86_rm(b, 8, X86_OP_LOAD, X86_RSP, T0, offsetof(struct wire_own, frame));
	x86_alu_imm(b, 8, X86_SUB, X86_RSP, 16);
	x86_mov_rr(b, X86_R9, THREAD);
	x86_call(b, jit_agent(j, WIRE_AGENT_violation));
	jit_own(j, T0);
	x86_rm(b, 8, X86_OP_LOAD, X86_RSP, T0, offsetof(struct wire_own, frame));
	x86_alu_imm(b, 8, X86_SUB, X86_RSP, 8); /* the first function's return address */
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
	x86_ret(b);
	j->clobbered |= HELPER_CLOBBERS;
	j->rax_used = true;
}

static void cold_path(struct jit *j, const struct jit_cold *c)
{
	struct x86 *b = &j->b;
	uint32_t rel = b->n - c->jump;

	for (int i = 0; i < 4; i++)
		b->p[c->jump - 4 + (uint32_t)i] = (uint8_t)(rel >> 8 * i);
	if (c->bucket || c->reserve) {
		if (c->bucket)
			negative_bucket(j, c->insn);
		else
			ask_for_room(j, c->insn);
		x86_jmp(b, c->back, true);
		return;
	}
	if (!c->fail && j->data >= c->size) {
		from_own(j, T1, OFF_FRAME);
		x86_alu_imm(b, 8, X86_CMP, T1, (int32_t)(j->data - c->size));
		x86_jcc(b, X86_BE, c->back, true);
	}
	if (!c->fail && c->load && j->facts.ctx_used) {
		from_own(j, T1, OFF_REGS);
		x86_alu_imm(b, 8, X86_CMP, T1, JIT_CTX - c->size);
		x86_jcc(b, X86_BE, c->back, true);
	}
	if (!c->fail && c->load && j->env->event >= c->size) {
		jit_own(j, T1);
		x86_rm(b, 8, X86_OP_LEA, T1, T1, -WIRE_EVENT_BELOW);
		x86_rr(b, 8, X86_OP_GROUP3, X86_NEG, T1);
		x86_rr(b, 8, x86_alu_op(X86_ADD), T0, T1);
		x86_alu_imm(b, 8, X86_CMP, T1, (int32_t)(j->env->event - c->size));
		x86_jcc(b, X86_BE, c->back, true);
	}
	x86_mov_imm(b, X86_RDI, c->insn);
	x86_jmp(b, j->stop, true);
}

void jit_cold_paths(struct jit *j, uint32_t first)
{
	for (uint32_t i = first; i < j->ncold; i++)
		cold_path(j, &j->cold[i]);
	j->ncold = first;
}

void jit_pieces(struct jit *j)
{
	uint64_t consts[CONSTS] = { j->env->area, j->env->area_size, j->env->shared,
				    j->env->private + offsetof(struct wire_private, threads),
				    j->env->stacks };
	uint64_t shared_size = j->env->area + j->env->area_size - j->env->shared;
	bool stops = j->facts.checks;

	for (uint32_t i = 0; i < j->ncold; i++)
		stops |= !j->cold[i].bucket && !j->cold[i].reserve;
	if (stops) {
		x86_align(&j->b, 16, 0xcc);
		stop_piece(j);
		range_piece(j);
	}
	jit_cold_paths(j, 0);
	x86_align(&j->b, 8, 0xcc);
	for (int i = 0; i < 4; i++) {
		consts[CONST_LIMIT + i] = j->env->area_size - (1u << i);
		consts[CONST_STORE_LIMIT + i] = shared_size - (1u << i);
	}
	j->consts = j->b.n;
	for (int i = 0; i < CONSTS; i++)
		x86_u64(&j->b, consts[i]);
}
