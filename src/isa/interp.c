/* Interprets eBPF instructions. */
#define _GNU_SOURCE
#include "isa/interp.h"

#include <assert.h>

#include "base/mem.h"
#include "base/sorted.h"

/* The contents of registers without a value. No program reads them; a debugger shows them. */
static const uint64_t POISON = 0xbadbadbadbadbad0;

void interp_mem_fini(struct interp_mem *m)
{
	free(m->regions);
	memset(m, 0, sizeof(*m));
}

/* Returns the index of the first region that ends behind addr. */
static uint32_t region_after(const struct interp_mem *m, uint64_t addr)
{
	return partition_point(m->n, i, m->regions[i].start + m->regions[i].len <= addr);
}

void interp_mem_add(struct interp_mem *m, const void *start, uint64_t len, bool writable)
{
	uint64_t addr = (uintptr_t)start;
	uint32_t i;

	if (!len)
		return;
	i = region_after(m, addr);
	assert(i == m->n || m->regions[i].start >= addr + len);
	if (m->n == m->cap)
		vec_grow_((void **)&m->regions, &m->cap, m->n + 1, sizeof(*m->regions));
	memmove(&m->regions[i + 1], &m->regions[i], (m->n - i) * sizeof(*m->regions));
	m->regions[i] = (struct interp_region){ addr, len, writable };
	m->n++;
}

void interp_mem_del(struct interp_mem *m, const void *start)
{
	uint32_t i = region_after(m, (uintptr_t)start);

	if (i == m->n || m->regions[i].start != (uintptr_t)start)
		return;
	m->n--;
	memmove(&m->regions[i], &m->regions[i + 1], (m->n - i) * sizeof(*m->regions));
	m->last = 0;
}

static bool region_holds(const struct interp_region *r, uint64_t addr, uint64_t len)
{
	return addr >= r->start && len <= r->len && addr - r->start <= r->len - len;
}

static bool permitted(struct interp_mem *m, uint64_t addr, uint64_t len, bool write)
{
	if (m->last >= m->n || !region_holds(&m->regions[m->last], addr, len)) {
		m->last = region_after(m, addr);
		if (m->last == m->n || !region_holds(&m->regions[m->last], addr, len))
			return false;
	}
	return !write || m->regions[m->last].writable;
}

/* The stack grows down through one block. The upper end of the block belongs to the running
 * functions. */
static bool on_stack(const struct interp *in, uint64_t addr, uint64_t len)
{
	uint64_t end = (uintptr_t)in->stack + INTERP_FRAMES * EBPF_STACK_SIZE;
	struct interp_region used = { end - in->depth * EBPF_STACK_SIZE,
				      in->depth * EBPF_STACK_SIZE, true };

	return region_holds(&used, addr, len);
}

void interp_fail(struct interp *in, const char *fmt, ...)
{
	cleanup_free char *why = NULL;
	char text[160] = "";
	va_list ap;

	if (in->err)
		return; /* keep the first failure, which is the cause */
	in->failed_at = in->pc;
	va_start(ap, fmt);
	if (vasprintf(&why, fmt, ap) < 0)
		why = xstrdup(fmt);
	va_end(ap);
	if (in->pc < in->ninsns)
		ebpf_text(text, sizeof(text), &in->insns[in->pc],
			  in->pc + 1 < in->ninsns ? &in->insns[in->pc + 1] : NULL);
	in->err = err_new(0, "instruction %u (%s): %s", in->pc, text, why);
}

void *interp_bytes(struct interp *in, uint64_t addr, uint64_t len, bool write)
{
	static uint8_t none[1];

	if (!len)
		return none;
	if (on_stack(in, addr, len) || permitted(in->mem, addr, len, write))
		return (void *)(uintptr_t)addr;
	interp_fail(in, "%s of %llu bytes at 0x%llx, outside the permitted memory",
		    write ? "write" : "read", (unsigned long long)len, (unsigned long long)addr);
	return NULL;
}

void interp_init(struct interp *in, const struct interp_ops *ops, void *arg,
		 const struct bpf_insn *insns, uint32_t n, struct interp_mem *mem)
{
	memset(in, 0, sizeof(*in));
	in->ops = ops;
	in->arg = arg;
	in->insns = insns;
	in->ninsns = n;
	in->mem = mem;
	in->budget = 1000000;
	in->stack = xcalloc(INTERP_FRAMES, EBPF_STACK_SIZE);
}

void interp_fini(struct interp *in)
{
	free(in->stack);
	err_free(in->err);
	memset(in, 0, sizeof(*in));
}

static uint32_t size_of(uint8_t code)
{
	switch (BPF_SIZE(code)) {
	case BPF_B: return 1;
	case BPF_H: return 2;
	case BPF_W: return 4;
	default: return 8;
	}
}

static uint64_t interp_load(const void *p, uint32_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size); /* little-endian host */
	return v;
}

static bool alu(struct interp *in, const struct bpf_insn *ins, uint64_t *r)
{
	uint64_t b = BPF_SRC(ins->code) == BPF_X ? r[ins->src_reg] : (uint64_t)(int64_t)ins->imm;

	if (ebpf_alu(ins, r[ins->dst_reg], b, &r[ins->dst_reg]))
		return true;
	interp_fail(in, "unknown opcode");
	return false;
}

static bool load_store(struct interp *in, const struct bpf_insn *ins, uint64_t *r)
{
	uint8_t class = BPF_CLASS(ins->code);
	uint32_t size = size_of(ins->code);
	uint64_t addr =
		r[class == BPF_LDX ? ins->src_reg : ins->dst_reg] + (uint64_t)(int64_t)ins->off;
	uint64_t v;
	void *p;

	if (class == BPF_LDX) {
		if (on_stack(in, addr, size) || permitted(in->mem, addr, size, false)) {
			v = interp_load((void *)(uintptr_t)addr, size);
		} else if (!in->ops->load || !in->ops->load(in, addr, size, &v)) {
			interp_bytes(in, addr, size, false);
			return false;
		}
		if (BPF_MODE(ins->code) == EBPF_MEMSX)
			v = ebpf_sign_extend(v, size * 8);
		r[ins->dst_reg] = v;
		return true;
	}
	p = interp_bytes(in, addr, size, true);
	if (!p)
		return false;
	v = class == BPF_ST ? (uint64_t)(int64_t)ins->imm : r[ins->src_reg];
	memcpy(p, &v, size);
	return true;
}

/* Runs an atomic operation. It need not be atomic, because programs run one after the other. */
static bool atomic(struct interp *in, const struct bpf_insn *ins, uint64_t *r)
{
	uint32_t size = size_of(ins->code);
	uint64_t addr = r[ins->dst_reg] + (uint64_t)(int64_t)ins->off;
	uint64_t src = r[ins->src_reg], old, v;
	void *p = interp_bytes(in, addr, size, true);

	if (!p)
		return false;
	if (addr % size) {
		interp_fail(in, "misaligned atomic access at 0x%llx", (unsigned long long)addr);
		return false;
	}
	old = interp_load(p, size);
	if (size == 4)
		src = (uint32_t)src;
	switch (ins->imm & ~BPF_FETCH) {
	case BPF_ADD: v = old + src; break;
	case BPF_OR: v = old | src; break;
	case BPF_AND: v = old & src; break;
	case BPF_XOR: v = old ^ src; break;
	case BPF_XCHG & ~BPF_FETCH: v = src; break;
	case BPF_CMPXCHG & ~BPF_FETCH:
		v = (size == 4 ? (uint32_t)r[0] : r[0]) == old ? src : old;
		r[0] = old;
		memcpy(p, &v, size);
		return true;
	default: interp_fail(in, "unknown atomic operation"); return false;
	}
	memcpy(p, &v, size);
	if (ins->imm & BPF_FETCH)
		r[ins->src_reg] = old;
	return true;
}

static bool compare(const struct bpf_insn *ins, const uint64_t *r, bool *ret_known)
{
	bool wide = BPF_CLASS(ins->code) == BPF_JMP;
	uint64_t a = r[ins->dst_reg];
	uint64_t b = BPF_SRC(ins->code) == BPF_X ? r[ins->src_reg] : (uint64_t)(int64_t)ins->imm;
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	if (!wide) {
		a = (uint32_t)a;
		b = (uint32_t)b;
		sa = (int32_t)a;
		sb = (int32_t)b;
	}
	*ret_known = true;
	switch (BPF_OP(ins->code)) {
	case BPF_JA: return true;
	case BPF_JEQ: return a == b;
	case BPF_JNE: return a != b;
	case BPF_JGT: return a > b;
	case BPF_JGE: return a >= b;
	case BPF_JLT: return a < b;
	case BPF_JLE: return a <= b;
	case BPF_JSET: return (a & b) != 0;
	case BPF_JSGT: return sa > sb;
	case BPF_JSGE: return sa >= sb;
	case BPF_JSLT: return sa < sb;
	case BPF_JSLE: return sa <= sb;
	}
	*ret_known = false;
	return false;
}

static bool load_imm64(struct interp *in, const struct bpf_insn *ins, uint64_t *r)
{
	uint64_t v;

	if (!ebpf_is_ld_imm64(ins) || in->pc + 1 >= in->ninsns) {
		interp_fail(in, "unknown opcode");
		return false;
	}
	if (ins->src_reg == EBPF_PSEUDO_FUNC) {
		v = (uintptr_t)in->insns + ((int64_t)in->pc + 1 + ins->imm) * (int64_t)sizeof(*ins);
	} else if (ins->src_reg) {
		if (!in->ops->resolve || !in->ops->resolve(in, ins, &v)) {
			interp_fail(in, "unresolved constant");
			return false;
		}
	} else {
		v = (uint32_t)ins->imm | (uint64_t)(uint32_t)ins[1].imm << 32;
	}
	r[ins->dst_reg] = v;
	return !in->err;
}

/* Sets of registers as bits. */
enum { ARGS = 0x3e, R0 = 1, R10 = 1 << 10 };

static bool function(struct interp *in, uint32_t start, const uint64_t args[5], uint32_t set,
		     uint64_t *ret_r0, uint32_t *ret_set);

/* Returns the registers that an instruction reads. Excludes a helper's arguments, which only the
 * caller knows. */
static uint32_t reads(const struct bpf_insn *ins)
{
	uint32_t d = 1u << ins->dst_reg, s = 1u << ins->src_reg;
	uint32_t x = BPF_SRC(ins->code) == BPF_X ? s : 0;

	switch (BPF_CLASS(ins->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		if (BPF_OP(ins->code) == BPF_MOV)
			return x;
		return BPF_OP(ins->code) == BPF_END ? d : d | x;
	case BPF_LDX: return s;
	case BPF_ST: return d;
	case BPF_STX:
		if (BPF_MODE(ins->code) == BPF_ATOMIC && ins->imm == BPF_CMPXCHG)
			return d | s | R0;
		return d | s;
	case BPF_LD: return 0;
	}
	switch (BPF_OP(ins->code)) {
	case BPF_JA:
	case BPF_CALL:
	case BPF_EXIT: return 0;
	}
	return d | x;
}

/* Returns the registers that an instruction writes. Excludes a call's effects, for which see
 * call(). */
static uint32_t writes(const struct bpf_insn *ins)
{
	switch (BPF_CLASS(ins->code)) {
	case BPF_ALU:
	case BPF_ALU64:
	case BPF_LD:
	case BPF_LDX: return 1u << ins->dst_reg;
	case BPF_STX:
		if (BPF_MODE(ins->code) != BPF_ATOMIC || !(ins->imm & BPF_FETCH))
			return 0;
		return ins->imm == BPF_CMPXCHG ? R0 : 1u << ins->src_reg;
	}
	return 0;
}

static bool call(struct interp *in, const struct bpf_insn *ins, uint64_t *r, uint32_t *set)
{
	uint32_t pc = in->pc, result = R0;
	uint64_t r0;

	switch (ins->src_reg) {
	case 0:
		r0 = in->ops->helper ? in->ops->helper(in, (uint32_t)ins->imm, r + 1) : 0;
		if (!in->ops->helper)
			interp_fail(in, "no helpers here");
		if (in->err)
			return false;
		break;
	case BPF_PSEUDO_CALL:
		if (!function(in, (uint32_t)((int64_t)pc + 1 + ins->imm), r + 1, *set & ARGS, &r0,
			      &result))
			return false;
		break;
	default: interp_fail(in, "kernel functions cannot be called"); return false;
	}
	in->pc = pc;
	r[0] = r0;
	*set = (*set & ~(uint32_t)(ARGS | R0)) | result;
	for (int i = 1; i <= 5; i++)
		r[i] = POISON;
	return true;
}

/* Runs one function from its first instruction to its exit. in->pc is always the running
 * instruction, for messages. set: the registers that have a value, at first the arguments. *ret_set
 * has R0 when r0 has a value at the end. */
static bool function(struct interp *in, uint32_t start, const uint64_t args[5], uint32_t set,
		     uint64_t *ret_r0, uint32_t *ret_set)
{
	uint64_t r[16]; /* 11 registers exist, but register fields have 4 bits */
	const struct bpf_insn *ins;
	bool ok = true, known;

	if (in->depth == INTERP_FRAMES) {
		interp_fail(in, "more than %d nested calls", INTERP_FRAMES);
		return false;
	}
	in->depth++;
	for (int i = 0; i < 16; i++)
		r[i] = POISON;
	memcpy(r + 1, args, 5 * sizeof(*r));
	set |= R10;
	r[10] = (uintptr_t)in->stack + (INTERP_FRAMES - in->depth + 1) * EBPF_STACK_SIZE;
	memset((void *)(uintptr_t)(r[10] - EBPF_STACK_SIZE), 0, EBPF_STACK_SIZE);

	for (in->pc = start; ok; in->pc++) {
		if (in->pc >= in->ninsns) {
			in->pc = start;
			interp_fail(in, "ran off the end of the program");
			break;
		}
		if (!in->budget) {
			interp_fail(in, "instruction budget used up");
			break;
		}
		in->budget--;
		in->executed++;
		ins = &in->insns[in->pc];
		if (reads(ins) & ~set) {
			interp_fail(in, "r%d has no value", __builtin_ctz(reads(ins) & ~set));
			break;
		}
		set |= writes(ins);
		switch (BPF_CLASS(ins->code)) {
		case BPF_ALU:
		case BPF_ALU64: ok = alu(in, ins, r); break;
		case BPF_LDX:
		case BPF_ST: ok = load_store(in, ins, r); break;
		case BPF_STX:
			ok = BPF_MODE(ins->code) == BPF_ATOMIC ? atomic(in, ins, r)
							       : load_store(in, ins, r);
			break;
		case BPF_LD:
			ok = load_imm64(in, ins, r);
			in->pc += ok;
			break;
		default:
			if (ins->code == (BPF_JMP | BPF_EXIT)) {
				in->depth--;
				*ret_r0 = r[0];
				*ret_set = set & R0;
				return true;
			}
			if (ins->code == (BPF_JMP | BPF_CALL)) {
				ok = call(in, ins, r, &set);
				break;
			}
			if (compare(ins, r, &known))
				in->pc += (uint32_t)ebpf_jump_offset(ins);
			if (!known) {
				interp_fail(in, "unknown opcode");
				ok = false;
			}
		}
	}
	in->depth--;
	return false;
}

bool interp_call(struct interp *in, uint64_t func, const uint64_t args[5], uint64_t *ret_r0)
{
	uint64_t off = func - (uintptr_t)in->insns;
	uint32_t pc = in->pc, set;
	bool ok;

	if (off % sizeof(*in->insns) || off / sizeof(*in->insns) >= in->ninsns) {
		interp_fail(in, "0x%llx is not a function", (unsigned long long)func);
		return false;
	}
	ok = function(in, (uint32_t)(off / sizeof(*in->insns)), args, ARGS, ret_r0, &set);
	if (ok && !set) {
		interp_fail(in, "the callback returns without a value in r0");
		ok = false;
	}
	if (ok)
		in->pc = pc;
	return ok;
}

struct err *interp_run(struct interp *in, uint32_t start, uint64_t ctx, uint64_t *ret_r0)
{
	uint64_t args[5] = { ctx, POISON, POISON, POISON, POISON }, r0 = 0;
	uint32_t set = 0;
	struct err *e;

	if (function(in, start, args, 1 << 1, &r0, &set)) {
		if (set) {
			*ret_r0 = r0;
			return NULL;
		}
		interp_fail(in, "r0 has no value");
	}
	e = in->err;
	in->err = NULL;
	in->depth = 0;
	return e;
}
