/* Writes the parts of a shortcut that are about functions of Python and methods of Ruby. One finds
 * the entry of an aggregation whose only key is the name: the agent has noted the entry by the
 * interpreter's number for the name (agent/key.c). The other one finds whether a description
 * selects the function, as the program remembers it (bpf/function_id.bpf.h). The loads of the
 * interpreter's memory survive a fault. Where nothing is known, the whole program runs. */
#include "compile/jit/function_key.h"

#include "compile/jit/code_private.h"
#include "wire/language.h"

enum { XOR_LOAD = 0x33 };

#define OWN_OFF(field) ((int32_t)offsetof(struct wire_own, field))
#define TEXT_OFF(field) ((int32_t)offsetof(struct wire_own, texts[0].field))

static void fails_here(struct jit *j, struct shortcut_jumps *jumps)
{
	jumps->fails[jumps->nfails++] = j->b.n;
}

static void fail_if(struct jit *j, enum x86_cc cc, struct shortcut_jumps *jumps)
{
	x86_jcc(&j->b, cc, j->b.n, true);
	fails_here(j, jumps);
}

/* Writes an instruction that loads the word at an address. In front of it stands its WIRE_SURVIVED,
 * which ends as a wide jump does. */
static void load_by(struct jit *j, unsigned op, unsigned size, unsigned reg, unsigned base,
		    int32_t disp, struct shortcut_jumps *jumps)
{
	x86_u32(&j->b, WIRE_SURVIVED);
	x86_u32(&j->b, 0);
	fails_here(j, jumps);
	x86_rm(&j->b, size, op, reg, base, disp);
}

static void load(struct jit *j, unsigned size, unsigned reg, unsigned base, int32_t disp,
		 struct shortcut_jumps *jumps)
{
	load_by(j, X86_OP_LOAD, size, reg, base, disp, jumps);
}

/* T1 = the thread's struct wire_own. Counts the firing's loads. rcx is lost. */
static void check_loads(struct jit *j, struct shortcut_jumps *jumps)
{
	struct x86 *b = &j->b;
	uint32_t above;

	jit_own(j, T1);
	x86_rm(b, 8, 0x3b, X86_RSP, T1, OWN_OFF(alt_hi));
	above = x86_jcc_over(b, X86_AE);
	x86_rm(b, 8, 0x3b, X86_RSP, T1, OWN_OFF(alt_lo));
	fail_if(j, X86_AE, jumps);
	x86_land(b, above);
	x86_rm(b, 4, X86_OP_LOAD, X86_RCX, T1, OWN_OFF(named));
	x86_alu_imm(b, 4, X86_SUB, X86_RCX, 1);
	fail_if(j, X86_B, jumps);
	x86_rm(b, 4, X86_OP_STORE, X86_RCX, T1, OWN_OFF(named));
}

/* rax = the hash of the function's name. */
static void python_number(struct jit *j, const struct named_key *k, struct shortcut_jumps *jumps)
{
	load(j, 8, X86_RAX, (unsigned)k->frame.reg, k->frame.add + (int32_t)(k->path & 0xffff),
	     jumps);
	load(j, 8, X86_RAX, X86_RAX, (int32_t)(k->path >> 16), jumps);
	load(j, 8, X86_RAX, X86_RAX, WIRE_PYTHON_HASH, jumps);
}

/* rcx = the method entry. */
static void ruby_method(struct jit *j, const struct named_key *k, struct shortcut_jumps *jumps)
{
	struct x86 *b = &j->b;

	if (k->method.reg >= 0) {
		x86_rm(b, 8, X86_OP_LEA, X86_RCX, (unsigned)k->method.reg, k->method.add);
	} else {
		load(j, 8, X86_RCX, (unsigned)k->frame.reg, k->frame.add + WIRE_RUBY_FRAME_SCOPE,
		     jumps);
		load(j, 8, X86_RCX, X86_RCX, -16, jumps);
	}
	load(j, 4, X86_RAX, X86_RCX, 0, jumps);
	x86_alu_imm(b, 4, X86_AND, X86_RAX, WIRE_RUBY_KIND_MASK);
	x86_alu_imm(b, 4, X86_CMP, X86_RAX, WIRE_RUBY_METHOD);
	fail_if(j, X86_NE, jumps);
}

/* rax = the ID of the method's name. */
static void ruby_number(struct jit *j, const struct named_key *k, struct shortcut_jumps *jumps)
{
	ruby_method(j, k, jumps);
	load(j, 8, X86_RCX, X86_RCX, WIRE_RUBY_METHOD_ABOUT, jumps);
	load(j, 8, X86_RAX, X86_RCX, WIRE_RUBY_DEFINITION_NAME, jumps);
}

void jit_named(struct jit *j, const struct named_key *k, struct shortcut_jumps *jumps)
{
	const uint32_t map = k->map->index;
	struct x86 *b = &j->b;

	x86_push(b, X86_RCX);
	check_loads(j, jumps);
	if (k->ruby)
		ruby_number(j, k, jumps);
	else
		python_number(j, k, jumps);
	x86_byte(b, 0x48); /* bts rax, 63: WIRE_NAMED */
	x86_byte(b, 0x0f);
	x86_byte(b, 0xba);
	x86_byte(b, 0xe8);
	x86_byte(b, 63);
	/* wire_text_place() */
	x86_imul_imm(b, 4, X86_RCX, X86_RAX, WIRE_TEXT_MIX);
	x86_alu_imm(b, 4, X86_ADD, X86_RCX, (int32_t)(map * (uint32_t)WIRE_TEXT_MIX));
	x86_shift_imm(b, 4, X86_SHR, X86_RCX, WIRE_TEXT_SHIFT);
	x86_imul_imm(b, 4, X86_RCX, X86_RCX, sizeof(struct wire_own_text));
	x86_rr(b, 8, x86_alu_op(X86_ADD), X86_RCX, T1);
	x86_rm(b, 8, 0x3b, X86_RAX, T1, TEXT_OFF(addr));
	fail_if(j, X86_NE, jumps);
	x86_alu_mem_imm(b, 4, X86_CMP, T1, TEXT_OFF(map), (int32_t)map);
	fail_if(j, X86_NE, jumps);
	x86_rm(b, 4, X86_OP_LOAD, X86_RAX, THREAD, OFF_GEN);
	x86_rm(b, 4, 0x3b, X86_RAX, T1, TEXT_OFF(turn));
	fail_if(j, X86_NE, jumps);
	x86_rm(b, 8, X86_OP_LOAD, X86_RAX, T1, TEXT_OFF(value));
	x86_rr(b, 8, x86_alu_op(X86_ADD), THREAD, X86_RAX);
	x86_pop(b, X86_RCX);
}

/* rax = wire_function_id() of the address in rcx and the words at `at` behind it. T1 is lost. */
static void function_id(struct jit *j, int32_t at, uint32_t salt, struct shortcut_jumps *jumps)
{
	struct x86 *b = &j->b;

	x86_mov_rr(b, X86_RAX, X86_RCX);
	x86_alu_imm(b, 8, X86_XOR, X86_RAX, (int32_t)salt);
	x86_mov_imm(b, T1, WIRE_FUNCTION_MIX);
	x86_rr(b, 8, X86_OP_IMUL, X86_RAX, T1);
	for (int32_t i = 0; i < WIRE_LANGUAGE_ABOUT; i++) {
		load_by(j, XOR_LOAD, 8, X86_RAX, X86_RCX, at + 8 * i, jumps);
		x86_rr(b, 8, X86_OP_IMUL, X86_RAX, T1);
	}
	x86_mov_rr(b, T1, X86_RAX);
	x86_shift_imm(b, 8, X86_SHR, T1, 32);
	x86_rr(b, 8, x86_alu_op(X86_XOR), T1, X86_RAX);
	x86_alu_imm(b, 8, X86_OR, X86_RAX, 2);
	x86_alu_imm(b, 8, X86_AND, X86_RAX, ~1);
}

void jit_answer(struct jit *j, const struct named_key *k, struct shortcut_jumps *jumps)
{
	struct x86 *b = &j->b;

	x86_push(b, X86_RCX);
	check_loads(j, jumps);
	if (k->ruby)
		ruby_method(j, k, jumps);
	else
		load(j, 8, X86_RCX, (unsigned)k->frame.reg,
		     k->frame.add + (int32_t)(k->path & 0xffff), jumps);
	function_id(j, k->ruby ? WIRE_RUBY_METHOD_ABOUT : (int32_t)(k->path >> 16), k->salt, jumps);
	x86_mov_rr(b, X86_RCX, X86_RAX);
	x86_shift_imm(b, 8, X86_SHR, X86_RCX, WIRE_FUNCTION_SHIFT);
	x86_shift_imm(b, 4, X86_SHL, X86_RCX, 3);
	code_load_address(j, T1, k->map->base);
	x86_rx(b, 8, XOR_LOAD, X86_RAX, T1, X86_RCX, 0);
	x86_alu_imm(b, 8, X86_CMP, X86_RAX, 1);
	fail_if(j, X86_A, jumps);
	x86_pop(b, X86_RCX);
}
