/* Decodes the encoder's output with an independent decoder. */
#include "unit.h"

#include <inttypes.h>
#include <Zydis/Zydis.h>

#include "base/mem.h"
#include "isa/x86.h"

static const char *const names[4][16] = {
	{ "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b",
	  "r13b", "r14b", "r15b" },
	{ "ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w",
	  "r13w", "r14w", "r15w" },
	{ "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d",
	  "r12d", "r13d", "r14d", "r15d" },
	{ "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
	  "r13", "r14", "r15" },
};
static const unsigned sizes[] = { 1, 2, 4, 8 };
static struct x86 b;

static const char *reg(unsigned size, unsigned r)
{
	return names[__builtin_ctz(size)][r];
}

/* Returns the one instruction in b. Empties b. */
static void expect(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void expect(const char *fmt, ...)
{
	ZydisDisassembledInstruction d;
	char want[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	if (!ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, 0, b.p, b.n, &d)))
		fail_msg("no instruction where \"%s\" should be", want);
	if (d.info.length != b.n)
		fail_msg("\"%s\": %u bytes of %u", d.text, d.info.length, b.n);
	if (strcmp(d.text, want))
		fail_msg("\"%s\" should be \"%s\"", d.text, want);
	b.n = 0;
}

static const char *displacement(int32_t disp)
{
	static char text[16];

	if (!disp)
		return "";
	snprintf(text, sizeof(text), "%c0x%02X", disp < 0 ? '-' : '+', (unsigned)abs(disp));
	return text;
}

static void test_registers(void **state)
{
	for (unsigned d = 0; d < 16; d++) {
		for (unsigned s = 0; s < 16; s++) {
			for (int i = 0; i < 4; i++) {
				unsigned z = sizes[i];

				x86_rr(&b, z, X86_OP_STORE, s, d);
				expect("mov %s, %s", reg(z, d), reg(z, s));
				x86_rr(&b, z, x86_alu_op(X86_SUB), s, d);
				expect("sub %s, %s", reg(z, d), reg(z, s));
			}
			x86_rr(&b, 8, X86_OP_IMUL, d, s);
			expect("imul %s, %s", reg(8, d), reg(8, s));
			x86_rr(&b, 4, X86_OP_MOVZX8, d, s);
			expect("movzx %s, %s", reg(4, d), reg(1, s));
			x86_rr(&b, 8, X86_OP_MOVSX8, d, s);
			expect("movsx %s, %s", reg(8, d), reg(1, s));
			x86_rr(&b, 4, X86_OP_MOVZX16, d, s);
			expect("movzx %s, %s", reg(4, d), reg(2, s));
			x86_rr(&b, 8, X86_OP_MOVSX16, d, s);
			expect("movsx %s, %s", reg(8, d), reg(2, s));
			x86_rr(&b, 8, X86_OP_MOVSXD, d, s);
			expect("movsxd %s, %s", reg(8, d), reg(4, s));
			x86_imul_imm(&b, 8, d, s, 1000);
			expect("imul %s, %s, 0x3E8", reg(8, d), reg(8, s));
		}
		x86_push(&b, d);
		expect("push %s", reg(8, d));
		x86_pop(&b, d);
		expect("pop %s", reg(8, d));
		x86_bswap(&b, 8, d);
		expect("bswap %s", reg(8, d));
		x86_bswap(&b, 4, d);
		expect("bswap %s", reg(4, d));
		x86_shift_cl(&b, 4, X86_SAR, d);
		expect("sar %s, cl", reg(4, d));
		x86_shift_imm(&b, 2, X86_ROL, d, 8);
		expect("rol %s, 0x08", reg(2, d));
		x86_rr(&b, 8, X86_OP_GROUP3, X86_IDIV, d);
		expect("idiv %s", reg(8, d));
	}
	x86_mov_rr(&b, X86_RBX, X86_RBX);
	assert_int_equal(b.n, 0);
}

static void test_memory(void **state)
{
	static const int32_t disps[] = { 0, 16, 127, -128, 128, -129, 100000 };

	for (unsigned base = 0; base < 16; base++) {
		for (unsigned k = 0; k < ARRAY_SIZE(disps); k++) {
			for (unsigned r = 0; r < 16; r++) {
				for (int i = 0; i < 4; i++) {
					x86_rm(&b, sizes[i], X86_OP_STORE, r, base, disps[k]);
					expect("mov [%s%s], %s", reg(8, base),
					       displacement(disps[k]), reg(sizes[i], r));
				}
				x86_rm(&b, 8, X86_OP_LEA, r, base, disps[k]);
				expect("lea %s, [%s%s]", reg(8, r), reg(8, base),
				       displacement(disps[k]));
				if (r == X86_RSP)
					continue;
				x86_rx(&b, 8, X86_OP_LOAD, r, base, r, disps[k]);
				expect("mov %s, [%s+%s*1%s]", reg(8, r), reg(8, base), reg(8, r),
				       displacement(disps[k]));
			}
			x86_store_imm(&b, 1, base, disps[k], 0x12);
			expect("mov byte ptr [%s%s], 0x12", reg(8, base), displacement(disps[k]));
			x86_store_imm(&b, 2, base, disps[k], 0x1234);
			expect("mov word ptr [%s%s], 0x1234", reg(8, base), displacement(disps[k]));
			x86_store_imm(&b, 8, base, disps[k], -1);
			expect("mov qword ptr [%s%s], 0xFFFFFFFFFFFFFFFF", reg(8, base),
			       displacement(disps[k]));
			x86_alu_mem_imm(&b, 8, X86_ADD, base, disps[k], 1);
			expect("add qword ptr [%s%s], 0x01", reg(8, base), displacement(disps[k]));
			x86_alu_mem_imm(&b, 4, X86_CMP, base, disps[k], 1000);
			expect("cmp dword ptr [%s%s], 0x3E8", reg(8, base), displacement(disps[k]));
		}
	}
	x86_rip(&b, 8, X86_OP_LEA, X86_R9, 0x1000);
	expect("lea r9, [0x0000000000001000]");
	/* the distance counts from behind the immediate */
	x86_rip_alu_imm(&b, 8, X86_ADD, 0x1000, 1);
	expect("add qword ptr [0x0000000000001000], 0x01");
	x86_rip_alu_imm(&b, 4, X86_CMP, 0x1000, 0x12345);
	expect("cmp dword ptr [0x0000000000001000], 0x12345");
	x86_rip_store_imm(&b, 1, 0x1000, 7);
	expect("mov byte ptr [0x0000000000001000], 0x07");
	x86_rip_store_imm(&b, 2, 0x1000, 0x1234);
	expect("mov word ptr [0x0000000000001000], 0x1234");
	x86_rip_store_imm(&b, 8, 0x1000, 0x1234567);
	expect("mov qword ptr [0x0000000000001000], 0x1234567");
	x86_rm(&b, 4, X86_OP_PREFETCH, X86_PREFETCHW, X86_RAX, 1024);
	expect("prefetchw [rax+0x400]");
	x86_fs(&b, 8, X86_OP_LOAD, X86_R12, 0x10);
	expect("mov r12, fs:[0x0000000000000010]");
	x86_fs(&b, 4, X86_OP_LOAD, X86_RAX, -64);
	expect("mov eax, fs:[0xFFFFFFFFFFFFFFC0]");
}

static void test_constants(void **state)
{
	for (unsigned r = 0; r < 16; r++) {
		x86_mov_imm(&b, r, 5);
		expect("mov %s, 0x05", reg(4, r));
		x86_mov_imm(&b, r, 0xffffffff);
		expect("mov %s, 0xFFFFFFFF", reg(4, r));
		x86_mov_imm(&b, r, (uint64_t)-2);
		expect("mov %s, 0xFFFFFFFFFFFFFFFE", reg(8, r));
		x86_mov_imm(&b, r, 0x123456789abcdef0);
		expect("mov %s, 0x123456789ABCDEF0", reg(8, r));
		x86_alu_imm(&b, 8, X86_XOR, r, -128);
		expect("xor %s, 0xFFFFFFFFFFFFFF80", reg(8, r));
		x86_alu_imm(&b, 4, X86_AND, r, 128);
		expect("and %s, 0x80", reg(4, r));
	}
}

static void test_jumps(void **state)
{
	uint32_t over;

	x86_jmp(&b, 129, false);
	assert_int_equal(b.n, 2);
	expect("jmp 0x0000000000000081");
	x86_jmp(&b, 130, false);
	assert_int_equal(b.n, 5);
	expect("jmp 0x0000000000000082");
	x86_jmp(&b, -126, false);
	assert_int_equal(b.n, 2);
	expect("jmp 0xFFFFFFFFFFFFFF82");
	x86_jmp(&b, 10, true);
	assert_int_equal(b.n, 5);
	expect("jmp 0x000000000000000A");
	x86_jcc(&b, X86_LE, 0x100, false);
	expect("jle 0x0000000000000100");
	x86_jcc(&b, X86_A, 0x10, false);
	expect("jnbe 0x0000000000000010");
	x86_call(&b, -5000);
	expect("call 0xFFFFFFFFFFFFEC78");
	over = x86_jcc_over(&b, X86_E);
	x86_u64(&b, 0);
	x86_land(&b, over);
	assert_int_equal(b.p[1], 8);
	b.n = 0;
	x86_byte(&b, 1);
	x86_align(&b, 16, 0xcc);
	assert_int_equal(b.n, 16);
	assert_int_equal(b.p[15], 0xcc);
	x86_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_jumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
