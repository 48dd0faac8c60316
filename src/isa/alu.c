/* Computes what an arithmetic instruction leaves in its register. */
#include "isa/bpf_insn.h"

uint64_t ebpf_sign_extend(uint64_t v, uint32_t bits)
{
	return (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits));
}

static uint64_t byte_swap(uint64_t v, int bits)
{
	switch (bits) {
	case 16: return __builtin_bswap16((uint16_t)v);
	case 32: return __builtin_bswap32((uint32_t)v);
	default: return __builtin_bswap64(v);
	}
}

/* Divides like the kernel, for any operands: x / 0 is 0, x % 0 is x, the lowest number / -1 is
 * itself. */
static uint64_t divide(uint64_t a, uint64_t b, bool mod, bool is_signed, bool wide)
{
	int64_t x, y;

	if (!b)
		return mod ? a : 0;
	if (!is_signed)
		return mod ? a % b : a / b;
	x = wide ? (int64_t)a : (int32_t)a;
	y = wide ? (int64_t)b : (int32_t)b;
	if (y == -1)
		return mod ? 0 : -(uint64_t)x;
	return (uint64_t)(mod ? x % y : x / y);
}

bool ebpf_alu(const struct bpf_insn *ins, uint64_t a, uint64_t b, uint64_t *ret)
{
	bool wide = BPF_CLASS(ins->code) == BPF_ALU64, reg = BPF_SRC(ins->code) == BPF_X;
	uint32_t count;

	if (BPF_OP(ins->code) == BPF_END) {
		if (wide || reg) /* bswap, or to big-endian on a little-endian host */
			a = byte_swap(a, ins->imm);
		else if (ins->imm < 64)
			a &= ((uint64_t)1 << ins->imm) - 1;
		*ret = a;
		return true;
	}
	if (!wide) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	count = b & (wide ? 63 : 31);
	switch (BPF_OP(ins->code)) {
	case BPF_ADD: a += b; break;
	case BPF_SUB: a -= b; break;
	case BPF_MUL: a *= b; break;
	case BPF_OR: a |= b; break;
	case BPF_AND: a &= b; break;
	case BPF_XOR: a ^= b; break;
	case BPF_NEG: a = -a; break;
	case BPF_LSH: a <<= count; break;
	case BPF_RSH: a >>= count; break;
	case BPF_ARSH:
		a = wide ? (uint64_t)((int64_t)a >> count) : (uint64_t)((int32_t)a >> count);
		break;
	case BPF_DIV:
	case BPF_MOD: a = divide(a, b, BPF_OP(ins->code) == BPF_MOD, ins->off == 1, wide); break;
	case BPF_MOV: a = reg && ins->off ? ebpf_sign_extend(b, (uint32_t)ins->off) : b; break;
	default: return false;
	}
	*ret = wide ? a : (uint32_t)a;
	return true;
}
