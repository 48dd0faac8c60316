/* Encodes x86-64 instructions. */
#include "isa/x86.h"

#include <assert.h>

#include "base/mem.h"

void x86_fini(struct x86 *b)
{
	free(b->p);
	memset(b, 0, sizeof(*b));
}

void x86_byte(struct x86 *b, unsigned v)
{
	if (b->n == b->cap)
		vec_grow_((void **)&b->p, &b->cap, b->n + 1, 1);
	b->p[b->n++] = (uint8_t)v;
}

void x86_u32(struct x86 *b, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		x86_byte(b, v >> 8 * i & 0xff);
}

void x86_u64(struct x86 *b, uint64_t v)
{
	x86_u32(b, (uint32_t)v);
	x86_u32(b, (uint32_t)(v >> 32));
}

void x86_align(struct x86 *b, unsigned to, uint8_t fill)
{
	while (b->n % to)
		x86_byte(b, fill);
}

/* Emits prefixes and opcode. byte_reg, byte_rm: ModRM.reg or .rm is a byte register, and numbers
 * 4..7 need a REX. */
static void opcode(struct x86 *b, unsigned size, unsigned op, unsigned reg, unsigned index,
		   unsigned rm, bool byte_reg, bool byte_rm)
{
	unsigned rex = (size == 8) << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | rm >> 3;

	if (size == 2)
		x86_byte(b, 0x66);
	if (rex || (byte_reg && reg >= 4) || (byte_rm && rm >= 4))
		x86_byte(b, 0x40 | rex);
	if (op > 0xff)
		x86_byte(b, op >> 8);
	x86_byte(b, (op & 0xff) - (size == 1));
}

static bool from_byte(unsigned op)
{
	return op == X86_OP_MOVZX8 || op == X86_OP_MOVSX8;
}

void x86_rr(struct x86 *b, unsigned size, unsigned op, unsigned reg, unsigned rm)
{
	opcode(b, size, op, reg, 0, rm, size == 1, size == 1 || from_byte(op));
	x86_byte(b, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* Emits a ModRM byte whose rm is `rm`, an optional SIB byte, and disp. */
static void address(struct x86 *b, unsigned reg, unsigned rm, int sib, unsigned base, int32_t disp)
{
	/* rbp and r13 have no form without displacement. */
	unsigned mod = !disp && (base & 7) != 5 ? 0 : disp >= -128 && disp <= 127 ? 1 : 2;

	x86_byte(b, mod << 6 | (reg & 7) << 3 | rm);
	if (sib >= 0)
		x86_byte(b, (unsigned)sib);
	if (mod == 1)
		x86_byte(b, (uint8_t)disp);
	else if (mod == 2)
		x86_u32(b, (uint32_t)disp);
}

void x86_rm(struct x86 *b, unsigned size, unsigned op, unsigned reg, unsigned base, int32_t disp)
{
	opcode(b, size, op, reg, 0, base, size == 1, false);
	address(b, reg, base & 7, (base & 7) == 4 ? 0x24 : -1, base, disp);
}

void x86_rx(struct x86 *b, unsigned size, unsigned op, unsigned reg, unsigned base, unsigned index,
	    int32_t disp)
{
	assert(index != X86_RSP);
	opcode(b, size, op, reg, index, base, size == 1, false);
	address(b, reg, 4, (int)((index & 7) << 3 | (base & 7)), base, disp);
}

/* behind: bytes of the immediate that follows. */
static void rip(struct x86 *b, unsigned size, unsigned op, unsigned reg, int64_t target,
		unsigned behind)
{
	opcode(b, size, op, reg, 0, 0, size == 1, false);
	x86_byte(b, (reg & 7) << 3 | 5);
	x86_u32(b, (uint32_t)(target - (int64_t)b->n - 4 - behind));
}

void x86_rip(struct x86 *b, unsigned size, unsigned op, unsigned reg, int64_t target)
{
	rip(b, size, op, reg, target, 0);
}

void x86_fs(struct x86 *b, unsigned size, unsigned op, unsigned reg, int32_t disp)
{
	x86_byte(b, 0x64);
	opcode(b, size, op, reg, 0, 0, size == 1, false);
	x86_byte(b, (reg & 7) << 3 | 4);
	x86_byte(b, 0x25);
	x86_u32(b, (uint32_t)disp);
}

void x86_mov_rr(struct x86 *b, unsigned dst, unsigned src)
{
	if (dst != src)
		x86_rr(b, 8, X86_OP_STORE, src, dst);
}

void x86_mov_imm(struct x86 *b, unsigned dst, uint64_t v)
{
	if (v <= UINT32_MAX) {
		if (dst >= 8)
			x86_byte(b, 0x41);
		x86_byte(b, 0xb8 | (dst & 7));
		x86_u32(b, (uint32_t)v);
	} else if ((int64_t)v == (int32_t)v) {
		x86_byte(b, 0x48 | dst >> 3);
		x86_byte(b, 0xc7);
		x86_byte(b, 0xc0 | (dst & 7));
		x86_u32(b, (uint32_t)v);
	} else {
		x86_byte(b, 0x48 | dst >> 3);
		x86_byte(b, 0xb8 | (dst & 7));
		x86_u64(b, v);
	}
}

static bool is_small(int32_t imm)
{
	return imm >= -128 && imm <= 127;
}

/* Emits the immediate of a group 1 opcode: 0x83, or 0x81. */
static void alu_immediate(struct x86 *b, int32_t imm)
{
	if (is_small(imm))
		x86_byte(b, (uint8_t)imm);
	else
		x86_u32(b, (uint32_t)imm);
}

void x86_alu_imm(struct x86 *b, unsigned size, enum x86_alu op, unsigned reg, int32_t imm)
{
	assert(size >= 4);
	x86_rr(b, size, is_small(imm) ? 0x83 : 0x81, op, reg);
	alu_immediate(b, imm);
}

void x86_alu_mem_imm(struct x86 *b, unsigned size, enum x86_alu op, unsigned base, int32_t disp,
		     int32_t imm)
{
	assert(size >= 4);
	x86_rm(b, size, is_small(imm) ? 0x83 : 0x81, op, base, disp);
	alu_immediate(b, imm);
}

void x86_rip_alu_imm(struct x86 *b, unsigned size, enum x86_alu op, int64_t target, int32_t imm)
{
	assert(size >= 4);
	rip(b, size, is_small(imm) ? 0x83 : 0x81, op, target, is_small(imm) ? 1 : 4);
	alu_immediate(b, imm);
}

static unsigned imm_size(unsigned size)
{
	return size == 8 ? 4 : size;
}

static void immediate(struct x86 *b, unsigned size, int32_t imm)
{
	for (unsigned i = 0; i < imm_size(size); i++)
		x86_byte(b, (uint32_t)imm >> 8 * i & 0xff);
}

void x86_store_imm(struct x86 *b, unsigned size, unsigned base, int32_t disp, int32_t imm)
{
	x86_rm(b, size, 0xc7, 0, base, disp);
	immediate(b, size, imm);
}

void x86_rip_store_imm(struct x86 *b, unsigned size, int64_t target, int32_t imm)
{
	rip(b, size, 0xc7, 0, target, imm_size(size));
	immediate(b, size, imm);
}

void x86_shift_imm(struct x86 *b, unsigned size, enum x86_shift op, unsigned reg, unsigned count)
{
	x86_rr(b, size, 0xc1, op, reg);
	x86_byte(b, count);
}

void x86_shift_cl(struct x86 *b, unsigned size, enum x86_shift op, unsigned reg)
{
	x86_rr(b, size, 0xd3, op, reg);
}

void x86_imul_imm(struct x86 *b, unsigned size, unsigned dst, unsigned src, int32_t imm)
{
	bool small = imm >= -128 && imm <= 127;

	x86_rr(b, size, small ? 0x6b : 0x69, dst, src);
	if (small)
		x86_byte(b, (uint8_t)imm);
	else
		x86_u32(b, (uint32_t)imm);
}

void x86_bswap(struct x86 *b, unsigned size, unsigned reg)
{
	unsigned rex = (size == 8) << 3 | reg >> 3;

	if (rex)
		x86_byte(b, 0x40 | rex);
	x86_byte(b, 0x0f);
	x86_byte(b, 0xc8 | (reg & 7));
}

void x86_push(struct x86 *b, unsigned reg)
{
	if (reg >= 8)
		x86_byte(b, 0x41);
	x86_byte(b, 0x50 | (reg & 7));
}

void x86_pop(struct x86 *b, unsigned reg)
{
	if (reg >= 8)
		x86_byte(b, 0x41);
	x86_byte(b, 0x58 | (reg & 7));
}

void x86_ret(struct x86 *b)
{
	x86_byte(b, 0xc3);
}

static bool in_short_reach(const struct x86 *b, int64_t target)
{
	int64_t rel = target - (int64_t)b->n - 2;

	return rel >= -128 && rel <= 127;
}

void x86_jmp(struct x86 *b, int64_t target, bool wide)
{
	if (!wide && in_short_reach(b, target)) {
		x86_byte(b, 0xeb);
		x86_byte(b, (uint8_t)(target - (int64_t)b->n - 1));
		return;
	}
	x86_byte(b, 0xe9);
	x86_u32(b, (uint32_t)(target - (int64_t)b->n - 4));
}

void x86_jcc(struct x86 *b, enum x86_cc cc, int64_t target, bool wide)
{
	if (!wide && in_short_reach(b, target)) {
		x86_byte(b, 0x70 | cc);
		x86_byte(b, (uint8_t)(target - (int64_t)b->n - 1));
		return;
	}
	x86_byte(b, 0x0f);
	x86_byte(b, 0x80 | cc);
	x86_u32(b, (uint32_t)(target - (int64_t)b->n - 4));
}

void x86_call(struct x86 *b, int64_t target)
{
	x86_byte(b, 0xe8);
	x86_u32(b, (uint32_t)(target - (int64_t)b->n - 4));
}

uint32_t x86_jmp_over(struct x86 *b)
{
	x86_byte(b, 0xeb);
	x86_byte(b, 0);
	return b->n;
}

uint32_t x86_jcc_over(struct x86 *b, enum x86_cc cc)
{
	x86_byte(b, 0x70 | cc);
	x86_byte(b, 0);
	return b->n;
}

void x86_land(struct x86 *b, uint32_t jump)
{
	assert(b->n - jump <= 127);
	b->p[jump - 1] = (uint8_t)(b->n - jump);
}
