/* Prints eBPF instructions and checks their structure. */
#include "isa/bpf_insn.h"

#include "base/mem.h"

/* The text of each ALU and jump operation, by the upper four bits of its code. */
static const char *const alu_op[16] = {
	"+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", NULL, "%=", "^=", "=", "s>>=",
};
static const char *const jmp_op[16] = {
	NULL, "==", ">", ">=", "&", "!=", "s>", "s>=", NULL, NULL, "<", "<=", "s<", "s<=",
};
static const char *const mem_size[4] = { "u32", "u16", "u8", "u64" };
static const char *const mem_ssize[4] = { "s32", "s16", "s8", NULL };

#define FN(name) #name
static const char *const helpers[] = { __BPF_FUNC_MAPPER(FN) };
#undef FN

const char *ebpf_helper_name(uint32_t id)
{
	return id && id < ARRAY_SIZE(helpers) ? helpers[id] : NULL;
}

bool ebpf_is_jump(const struct bpf_insn *ins)
{
	uint8_t class = BPF_CLASS(ins->code), op = BPF_OP(ins->code);

	if (class == BPF_JMP32)
		return op != BPF_CALL && op != BPF_EXIT;
	return class == BPF_JMP && op != BPF_CALL && op != BPF_EXIT;
}

int32_t ebpf_jump_offset(const struct bpf_insn *ins)
{
	/* JMP32 | JA is the long jump of ISA version 4. */
	return ins->code == (BPF_JMP32 | BPF_JA) ? ins->imm : ins->off;
}

static uint64_t imm64(const struct bpf_insn *ins, const struct bpf_insn *next)
{
	return (uint32_t)ins->imm | (next ? (uint64_t)(uint32_t)next->imm << 32 : 0);
}

static void text_alu(char *buf, size_t size, const struct bpf_insn *ins)
{
	bool wide = BPF_CLASS(ins->code) == BPF_ALU64;
	char r = wide ? 'r' : 'w', src[24];
	uint8_t op = BPF_OP(ins->code);
	const char *text = alu_op[op >> 4], *swap;

	swap = wide ? "bswap" : BPF_SRC(ins->code) == BPF_TO_BE ? "be" : "le";
	if (BPF_SRC(ins->code) == BPF_X)
		snprintf(src, sizeof(src), "%c%u", r, ins->src_reg);
	else
		snprintf(src, sizeof(src), "%d", ins->imm);
	if (op == BPF_NEG)
		snprintf(buf, size, "%c%u = -%c%u", r, ins->dst_reg, r, ins->dst_reg);
	else if (op == BPF_END)
		snprintf(buf, size, "r%u = %s%d r%u", ins->dst_reg, swap, ins->imm, ins->dst_reg);
	else if (op == BPF_MOV && ins->off)
		snprintf(buf, size, "%c%u = (s%d)%s", r, ins->dst_reg, ins->off, src);
	else if ((op == BPF_DIV || op == BPF_MOD) && ins->off)
		snprintf(buf, size, "%c%u s%s %s", r, ins->dst_reg, text, src);
	else if (text)
		snprintf(buf, size, "%c%u %s %s", r, ins->dst_reg, text, src);
	else
		snprintf(buf, size, "(%02x)", ins->code);
}

static void text_atomic(char *buf, size_t size, const struct bpf_insn *ins)
{
	const char *type = mem_size[BPF_SIZE(ins->code) >> 3];
	const char *op = alu_op[(ins->imm & 0xf0) >> 4];
	const char *name = "?";

	switch (ins->imm) {
	case BPF_XCHG:
		snprintf(buf, size, "r%u = atomic_xchg((%s *)(r%u %+d), r%u)", ins->src_reg, type,
			 ins->dst_reg, ins->off, ins->src_reg);
		return;
	case BPF_CMPXCHG:
		snprintf(buf, size, "r0 = atomic_cmpxchg((%s *)(r%u %+d), r0, r%u)", type,
			 ins->dst_reg, ins->off, ins->src_reg);
		return;
	case BPF_ADD | BPF_FETCH: name = "add"; break;
	case BPF_OR | BPF_FETCH: name = "or"; break;
	case BPF_AND | BPF_FETCH: name = "and"; break;
	case BPF_XOR | BPF_FETCH: name = "xor"; break;
	default:
		snprintf(buf, size, "lock *(%s *)(r%u %+d) %s r%u", type, ins->dst_reg, ins->off,
			 op ? op : "?=", ins->src_reg);
		return;
	}
	snprintf(buf, size, "r%u = atomic_fetch_%s((%s *)(r%u %+d), r%u)", ins->src_reg, name, type,
		 ins->dst_reg, ins->off, ins->src_reg);
}

static void text_mem(char *buf, size_t size, const struct bpf_insn *ins)
{
	uint8_t mode = BPF_MODE(ins->code), sz = BPF_SIZE(ins->code) >> 3;
	const char *type = mode == EBPF_MEMSX ? mem_ssize[sz] : mem_size[sz];

	if (BPF_CLASS(ins->code) == BPF_STX && mode == BPF_ATOMIC)
		text_atomic(buf, size, ins);
	else if (!type || (mode != BPF_MEM && mode != EBPF_MEMSX))
		snprintf(buf, size, "(%02x)", ins->code);
	else if (BPF_CLASS(ins->code) == BPF_LDX)
		snprintf(buf, size, "r%u = *(%s *)(r%u %+d)", ins->dst_reg, type, ins->src_reg,
			 ins->off);
	else if (BPF_CLASS(ins->code) == BPF_STX)
		snprintf(buf, size, "*(%s *)(r%u %+d) = r%u", type, ins->dst_reg, ins->off,
			 ins->src_reg);
	else
		snprintf(buf, size, "*(%s *)(r%u %+d) = %d", type, ins->dst_reg, ins->off,
			 ins->imm);
}

/* operand: the caller's name of the operand, or NULL. */
static void text_ld_imm64(char *buf, size_t size, const struct bpf_insn *ins,
			  const struct bpf_insn *next, const char *operand)
{
	uint64_t v = imm64(ins, next);

	if (operand)
		snprintf(buf, size, "r%u = %s", ins->dst_reg, operand);
	else if (ins->src_reg == BPF_PSEUDO_MAP_FD)
		snprintf(buf, size, "r%u = map fd %d", ins->dst_reg, ins->imm);
	else if (ins->src_reg == EBPF_PSEUDO_MAP_VALUE)
		snprintf(buf, size, "r%u = value of map fd %d %+d", ins->dst_reg, ins->imm,
			 next ? next->imm : 0);
	else if (ins->src_reg == EBPF_PSEUDO_FUNC)
		snprintf(buf, size, "r%u = func %+d", ins->dst_reg, ins->imm);
	else if (ins->src_reg)
		snprintf(buf, size, "r%u = pseudo %u 0x%llx", ins->dst_reg, ins->src_reg,
			 (unsigned long long)v);
	else
		snprintf(buf, size, "r%u = 0x%llx ll", ins->dst_reg, (unsigned long long)v);
}

static void text_call(char *buf, size_t size, const struct bpf_insn *ins, const char *operand)
{
	const char *name = operand ? operand : ins->src_reg ? NULL : ebpf_helper_name(ins->imm);

	if (name)
		snprintf(buf, size, "call %s", name);
	else if (ins->src_reg == BPF_PSEUDO_CALL)
		snprintf(buf, size, "call %+d", ins->imm);
	else if (ins->src_reg == EBPF_PSEUDO_KFUNC)
		snprintf(buf, size, "call kfunc %d", ins->imm);
	else
		snprintf(buf, size, "call %d", ins->imm);
}

static void text_jmp(char *buf, size_t size, const struct bpf_insn *ins, const char *target)
{
	char r = BPF_CLASS(ins->code) == BPF_JMP ? 'r' : 'w', src[24];
	const char *op = jmp_op[BPF_OP(ins->code) >> 4];

	if (BPF_OP(ins->code) == BPF_JA) {
		snprintf(buf, size, "goto %s", target);
		return;
	}
	if (BPF_SRC(ins->code) == BPF_X)
		snprintf(src, sizeof(src), "%c%u", r, ins->src_reg);
	else
		snprintf(src, sizeof(src), "%d", ins->imm);
	if (op)
		snprintf(buf, size, "if %c%u %s %s goto %s", r, ins->dst_reg, op, src, target);
	else
		snprintf(buf, size, "(%02x)", ins->code);
}

/* target: a jump's target as text. operand: see struct ebpf_names. */
static void text_any(char *buf, size_t size, const struct bpf_insn *ins,
		     const struct bpf_insn *next, const char *target, const char *operand)
{
	switch (BPF_CLASS(ins->code)) {
	case BPF_ALU:
	case BPF_ALU64: text_alu(buf, size, ins); break;
	case BPF_LDX:
	case BPF_ST:
	case BPF_STX: text_mem(buf, size, ins); break;
	case BPF_LD:
		if (ebpf_is_ld_imm64(ins))
			text_ld_imm64(buf, size, ins, next, operand);
		else
			snprintf(buf, size, "(%02x)", ins->code);
		break;
	default:
		if (ins->code == (BPF_JMP | BPF_CALL))
			text_call(buf, size, ins, operand);
		else if (ins->code == (BPF_JMP | BPF_EXIT))
			snprintf(buf, size, "exit");
		else
			text_jmp(buf, size, ins, target);
	}
}

void ebpf_text(char *buf, size_t size, const struct bpf_insn *ins, const struct bpf_insn *next)
{
	char target[16];

	snprintf(target, sizeof(target), "%+d", ebpf_jump_offset(ins));
	text_any(buf, size, ins, next, target, NULL);
}

/* Returns the index of the instruction that i refers to by a relative number. Returns n when i
 * refers to none or the number is out of range. */
static uint32_t reference(const struct bpf_insn *insns, uint32_t n, uint32_t i)
{
	const struct bpf_insn *ins = &insns[i];
	int64_t to;

	if (ebpf_is_jump(ins))
		to = (int64_t)i + 1 + ebpf_jump_offset(ins);
	else if ((ins->code == (BPF_JMP | BPF_CALL) && ins->src_reg == BPF_PSEUDO_CALL) ||
		 (ebpf_is_ld_imm64(ins) && ins->src_reg == EBPF_PSEUDO_FUNC))
		to = (int64_t)i + 1 + ins->imm;
	else
		return n;
	return to >= 0 && to < n ? (uint32_t)to : n;
}

void ebpf_print(FILE *out, const struct bpf_insn *insns, uint32_t n, const struct ebpf_names *names)
{
	cleanup_free uint32_t *label = xcalloc(n + 1, sizeof(*label));
	uint32_t nlabels = 0;

	/* Mark targets first and number them afterwards, so that labels rise with the addresses. */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t to = reference(insns, n, i);
		bool named = to < n && !ebpf_is_jump(&insns[i]) && names && names->operand &&
			     names->operand(names->arg, i);

		if (to < n && !named)
			label[to] = 1;
		if (ebpf_is_ld_imm64(&insns[i]))
			i++;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (label[i])
			label[i] = ++nlabels;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct bpf_insn *ins = &insns[i], *next = i + 1 < n ? ins + 1 : NULL;
		const char *operand = NULL;
		uint32_t to = reference(insns, n, i);
		char text[160], ref[24] = "", mark[16] = "";

		if (ebpf_is_ld_imm64(ins) || ins->code == (BPF_JMP | BPF_CALL))
			operand = names && names->operand ? names->operand(names->arg, i) : NULL;
		if (to < n && label[to])
			snprintf(ref, sizeof(ref), "L%u", label[to]);
		else if (ebpf_is_jump(ins))
			snprintf(ref, sizeof(ref), "%+d (outside)", ebpf_jump_offset(ins));
		if (!operand && *ref)
			operand = ref;
		text_any(text, sizeof(text), ins, next, ref, operand);
		if (label[i])
			snprintf(mark, sizeof(mark), "L%u:", label[i]);
		if (names && names->index)
			fprintf(out, "%5u ", i);
		if (names && names->bytes)
			fprintf(out, "%04u %05u: %02x %x%x %04x %08x    ", i % 10000,
				i * 8 % 100000, ins->code, ins->dst_reg, ins->src_reg,
				(uint16_t)ins->off, (uint32_t)ins->imm);
		fprintf(out, "%-5s %s", mark, text);
		if (names && names->remark)
			names->remark(names->arg, i, out);
		putc('\n', out);
		if (ebpf_is_ld_imm64(ins))
			i++;
	}
}

static const char *check_alu(const struct bpf_insn *ins)
{
	bool wide = BPF_CLASS(ins->code) == BPF_ALU64, reg = BPF_SRC(ins->code) == BPF_X;
	uint8_t op = BPF_OP(ins->code);
	int bits = wide ? 64 : 32;

	if (ins->dst_reg >= BPF_REG_10)
		return "writes the frame pointer";
	if (op == BPF_END) {
		if (ins->src_reg || ins->off || (wide && reg))
			return "reserved field is not zero";
		return ins->imm == 16 || ins->imm == 32 || ins->imm == 64 ? NULL : "bad width";
	}
	if (op > BPF_END)
		return "unknown opcode";
	if (op == BPF_NEG)
		return reg || ins->src_reg || ins->off || ins->imm ? "reserved field is not zero"
								   : NULL;
	if (reg ? ins->imm : ins->src_reg)
		return "reserved field is not zero";
	if (op == BPF_MOV && reg && ins->off)
		return ins->off == 8 || ins->off == 16 || (wide && ins->off == 32) ? NULL
										   : "bad width";
	if (ins->off && !((op == BPF_DIV || op == BPF_MOD) && ins->off == 1))
		return "reserved field is not zero";
	if ((op == BPF_DIV || op == BPF_MOD) && !reg && !ins->imm)
		return "division by zero";
	if ((op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH) && !reg &&
	    (ins->imm < 0 || ins->imm >= bits))
		return "shift by too many bits";
	return NULL;
}

static const char *check_mem(const struct bpf_insn *ins)
{
	uint8_t class = BPF_CLASS(ins->code), mode = BPF_MODE(ins->code), sz = BPF_SIZE(ins->code);

	if (class == BPF_LDX) {
		if (ins->dst_reg >= BPF_REG_10)
			return "writes the frame pointer";
		if (mode != BPF_MEM && !(mode == EBPF_MEMSX && sz != BPF_DW))
			return "unknown opcode";
		return ins->imm ? "reserved field is not zero" : NULL;
	}
	if (class == BPF_ST) {
		if (mode != BPF_MEM)
			return "unknown opcode";
		return ins->src_reg ? "reserved field is not zero" : NULL;
	}
	if (mode == BPF_MEM)
		return ins->imm ? "reserved field is not zero" : NULL;
	if (mode != BPF_ATOMIC || (sz != BPF_W && sz != BPF_DW))
		return "unknown opcode";
	switch (ins->imm) {
	case BPF_ADD:
	case BPF_OR:
	case BPF_AND:
	case BPF_XOR: return NULL;
	case BPF_ADD | BPF_FETCH:
	case BPF_OR | BPF_FETCH:
	case BPF_AND | BPF_FETCH:
	case BPF_XOR | BPF_FETCH:
	case BPF_XCHG: return ins->src_reg == BPF_REG_10 ? "writes the frame pointer" : NULL;
	case BPF_CMPXCHG: return NULL;
	}
	return "unknown atomic operation";
}

static const char *check_jmp(const struct bpf_insn *ins)
{
	uint8_t op = BPF_OP(ins->code);
	bool reg = BPF_SRC(ins->code) == BPF_X;

	if (op == BPF_JA)
		return reg ? "unknown opcode" : NULL;
	if (op == BPF_CALL) {
		if (ins->code != (BPF_JMP | BPF_CALL) || ins->src_reg > EBPF_PSEUDO_KFUNC)
			return "unknown opcode";
		return ins->dst_reg ? "reserved field is not zero" : NULL;
	}
	if (op == BPF_EXIT) {
		if (ins->code != (BPF_JMP | BPF_EXIT))
			return "unknown opcode";
		return ins->dst_reg || ins->src_reg || ins->off || ins->imm
			       ? "reserved field is not zero"
			       : NULL;
	}
	if (!jmp_op[op >> 4])
		return "unknown opcode";
	return (reg ? ins->imm : ins->src_reg) ? "reserved field is not zero" : NULL;
}

static const char *check_one(const struct bpf_insn *ins, const struct bpf_insn *next)
{
	if (ins->dst_reg > BPF_REG_10 || ins->src_reg > BPF_REG_10)
		return "no such register";
	switch (BPF_CLASS(ins->code)) {
	case BPF_ALU:
	case BPF_ALU64: return check_alu(ins);
	case BPF_LDX:
	case BPF_ST:
	case BPF_STX: return check_mem(ins);
	case BPF_LD: break;
	default: return check_jmp(ins);
	}
	if (!ebpf_is_ld_imm64(ins))
		return "unknown opcode";
	if (!next || next->code || next->dst_reg || next->src_reg || next->off)
		return "64-bit constant without its second half";
	if (ins->dst_reg >= BPF_REG_10)
		return "writes the frame pointer";
	return ins->src_reg > 6 || ins->off ? "reserved field is not zero" : NULL;
}

struct err *ebpf_check(const struct bpf_insn *insns, uint32_t n, unsigned flags)
{
	cleanup_free bool *second = xcalloc(n + 1, sizeof(*second));
	const char *why;

	if (!n)
		return err_new(0, "no instructions");
	for (uint32_t i = 0; i < n; i++) {
		why = check_one(&insns[i], i + 1 < n ? &insns[i + 1] : NULL);
		if (why)
			return err_new(0, "instruction %u (%02x): %s", i, insns[i].code, why);
		if (ebpf_is_ld_imm64(&insns[i]))
			second[++i] = true;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct bpf_insn *ins = &insns[i];
		bool jump = ebpf_is_jump(ins), call, func;
		uint32_t to;

		if (second[i])
			continue;
		call = ins->code == (BPF_JMP | BPF_CALL) && ins->src_reg == BPF_PSEUDO_CALL;
		func = ebpf_is_ld_imm64(ins) && ins->src_reg == EBPF_PSEUDO_FUNC;
		if (!jump && (!(call || func) || (flags & EBPF_UNLINKED)))
			continue;
		to = reference(insns, n, i);
		if (to == n)
			return err_new(0, "instruction %u: %s outside the program", i,
				       jump ? "jumps" : "calls");
		if (second[to])
			return err_new(0, "instruction %u: %s into a 64-bit constant", i,
				       jump ? "jumps" : "calls");
	}
	if (second[n - 1] ||
	    (insns[n - 1].code != (BPF_JMP | BPF_EXIT) && insns[n - 1].code != (BPF_JMP | BPF_JA) &&
	     insns[n - 1].code != (BPF_JMP32 | BPF_JA)))
		return err_new(0, "instruction %u: runs off the end", n - 1);
	return NULL;
}
