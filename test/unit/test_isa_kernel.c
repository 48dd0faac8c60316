/* The interpreter against the kernel: random programs must give the same r0. Skipped (77) where
 * bpf(2) is refused. */
#include "unit.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "insn.h"
#include "isa/interp.h"

static uint32_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed % n;
}

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* -errno, or an fd. v4 instructions need a kernel that knows them (6.6). */
static int load(const struct bpf_insn *p, uint32_t n)
{
	union bpf_attr attr = { 0 };
	int fd;

	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)p;
	attr.insn_cnt = n;
	attr.license = (uintptr_t) "GPL";
	fd = bpf(BPF_PROG_LOAD, &attr);
	return fd < 0 ? -errno : fd;
}

static int32_t random_imm(void)
{
	static const int32_t edge[] = { 0, 1, -1, 2, 31, 32, 63, INT32_MAX, INT32_MIN, 255, 0x8000 };

	return rnd(2) ? edge[rnd(ARRAY_SIZE(edge))] : (int32_t)(rnd(65536) << 16 | rnd(65536));
}

/* A random instruction over r0-r9 and the stack slots -8 .. -64, that the verifier accepts. */
static uint32_t random_insn(struct bpf_insn *p, bool v4)
{
	static const uint8_t ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR,
				       BPF_AND, BPF_LSH, BPF_RSH, BPF_NEG, BPF_MOD,
				       BPF_XOR, BPF_MOV, BPF_ARSH };
	static const uint8_t jumps[] = { BPF_JEQ,  BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT,
					 BPF_JSGE, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE };
	static const int32_t atomics[] = { BPF_ADD,
					   BPF_OR,
					   BPF_AND,
					   BPF_XOR,
					   BPF_ADD | BPF_FETCH,
					   BPF_OR | BPF_FETCH,
					   BPF_AND | BPF_FETCH,
					   BPF_XOR | BPF_FETCH,
					   BPF_XCHG,
					   BPF_CMPXCHG };
	uint8_t d = (uint8_t)rnd(10), s = (uint8_t)rnd(10), op, sz, width;
	int16_t slot = (int16_t)(-8 * (int)(1 + rnd(8)));
	int32_t imm = random_imm();

	switch (rnd(v4 ? 12 : 9)) {
	case 0:
	case 1:
	case 2:
		op = ops[rnd(ARRAY_SIZE(ops))];
		width = rnd(2) ? BPF_ALU64 : BPF_ALU;
		if (op == BPF_NEG)
			*p = INSN(width | op, d, 0, 0, 0);
		else if (rnd(2))
			*p = INSN(width | op | BPF_X, d, s, 0, 0);
		else if (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH)
			*p = INSN(width | op, d, 0, 0, (int32_t)rnd(width == BPF_ALU ? 32 : 64));
		else
			*p = INSN(width | op, d, 0, 0,
				  (op == BPF_DIV || op == BPF_MOD) && !imm ? 3 : imm);
		return 1;
	case 3:
		*p = INSN(BPF_ALU | BPF_END | (rnd(2) ? BPF_TO_BE : BPF_TO_LE), d, 0, 0,
			  16 << rnd(3));
		return 1;
	case 4: /* over the next one */
	case 5:
		op = jumps[rnd(ARRAY_SIZE(jumps))] | (rnd(2) ? BPF_JMP : BPF_JMP32);
		p[0] = rnd(2) ? INSN(op | BPF_X, d, s, 1, 0) : INSN(op, d, 0, 1, imm);
		p[1] = ALU64_IMM(ADD, d, imm);
		return 2;
	case 6: *p = STX(DW, 10, s, slot); return 1;
	case 7:
		sz = (uint8_t[]){ BPF_B, BPF_H, BPF_W, BPF_DW }[rnd(4)];
		*p = INSN(BPF_LDX | BPF_MEM | sz, d, 10, slot, 0);
		return 1;
	case 8:
		*p = INSN(BPF_STX | BPF_ATOMIC | (rnd(2) ? BPF_W : BPF_DW), 10, s, slot,
			  atomics[rnd(ARRAY_SIZE(atomics))]);
		return 1;
	case 9:
		*p = INSN((rnd(2) ? BPF_ALU64 : BPF_ALU) | (rnd(2) ? BPF_DIV : BPF_MOD) | BPF_X, d,
			  s, 1, 0);
		return 1;
	case 10: *p = INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, (int16_t)(8 << rnd(3)), 0); return 1;
	default:
		sz = (uint8_t[]){ BPF_B, BPF_H, BPF_W }[rnd(3)];
		*p = INSN(BPF_LDX | EBPF_MEMSX | sz, d, 10, slot, 0);
		return 1;
	}
}

static uint32_t random_program(struct bpf_insn *p, bool v4)
{
	uint32_t n = 0;

	for (uint8_t r = 0; r < 10; r++) {
		uint64_t v = (uint64_t)(uint32_t)random_imm() << 32 | (uint32_t)random_imm();
		struct bpf_insn two[] = { LD64(r, 0, v) };

		memcpy(p + n, two, sizeof(two));
		n += 2;
	}
	for (int16_t i = 1; i <= 8; i++)
		p[n++] = STX(DW, 10, (uint8_t)i, (int16_t)(-8 * i));
	for (int i = 0; i < 60; i++)
		n += random_insn(p + n, v4);
	/* everything into r0's lower half: test_run gives 32 bits */
	for (uint8_t r = 1; r < 10; r++) {
		p[n++] = ALU64_IMM(MUL, 0, 31);
		p[n++] = ALU64_REG(ADD, 0, r);
	}
	for (int16_t i = 1; i <= 8; i++) {
		p[n++] = LDX(DW, 1, 10, (int16_t)(-8 * i));
		p[n++] = ALU64_IMM(MUL, 0, 31);
		p[n++] = ALU64_REG(ADD, 0, 1);
	}
	p[n++] = ALU64_REG(MOV, 1, 0);
	p[n++] = ALU64_IMM(RSH, 1, 32);
	p[n++] = ALU64_REG(XOR, 0, 1);
	p[n++] = ALU32_IMM(AND, 0, -1);
	p[n++] = EXIT();
	return n;
}

static void test_same_as_kernel(void **state)
{
	const struct bpf_insn probe[] = { ALU64_IMM(MOV, 1, 1), ALU64_IMM(MOV, 0, 0),
					  INSN(BPF_ALU64 | BPF_MOV | BPF_X, 0, 1, 8, 0), EXIT() };
	struct interp_mem mem = { 0 };
	struct interp_ops ops = { 0 };
	int fd = load(probe, ARRAY_SIZE(probe));
	bool v4 = fd >= 0;

	if (v4)
		close(fd);
	for (int round = 0; round < 400; round++) {
		struct bpf_insn p[256];
		uint32_t n = random_program(p, v4);
		union bpf_attr attr = { 0 };
		uint8_t packet[64] = { 0 };
		struct interp in;
		struct err *e;
		uint64_t r0 = 0;

		e = ebpf_check(p, n, 0);
		if (e)
			fail_msg("round %d: %s", round, e->text);
		fd = load(p, n);
		if (fd < 0)
			fail_msg("round %d: the kernel refuses it: %s", round, strerror(-fd));
		attr.test.prog_fd = (uint32_t)fd;
		attr.test.data_in = (uintptr_t)packet;
		attr.test.data_size_in = sizeof(packet);
		assert_int_equal(bpf(BPF_PROG_TEST_RUN, &attr), 0);
		close(fd);

		interp_init(&in, &ops, NULL, p, n, &mem);
		assert_null(interp_run(&in, 0, 0, &r0));
		interp_fini(&in);
		if (attr.test.retval != (uint32_t)r0) {
			ebpf_print(stderr, p, n, &(struct ebpf_names){ .index = true });
			fail_msg("round %d: kernel 0x%x, interpreter 0x%x", round, attr.test.retval,
				 (uint32_t)r0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_kernel),
	};
	const struct bpf_insn p[] = { ALU64_IMM(MOV, 0, 0), EXIT() };
	int fd = load(p, ARRAY_SIZE(p));

	if (fd == -EPERM || fd == -ENOSYS) {
		printf("bpf(2): %s\n", strerror(-fd));
		return 77;
	}
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
