/* Fires a stub with all registers set, and compares them afterwards. */
#ifndef DESCRY_TEST_JIT_FIRE_H
#define DESCRY_TEST_JIT_FIRE_H

#include "jit_test.h"

struct cpu {
	uint64_t r[16]; /* by x86 number; rsp is not loaded */
	uint64_t flags;
};
static struct cpu cpu_in __attribute__((used)), cpu_out __attribute__((used));
static void *cpu_stub __attribute__((used));
static uint64_t fire_rbx __attribute__((unused)); /* 0: as the other registers */

/* Loads every register and the flags, calls the stub, stores them. The red zone below is filled and
 * compared. */
extern void cpu_run(void);
__asm__(".text\n"
	"cpu_run:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	sub $8, %rsp\n"
	"	mov %rsp, cpu_in+32(%rip)\n"
	"	subq $8, cpu_in+32(%rip)\n" /* as the stub sees it */
	"	pushq cpu_in+128(%rip)\n"
	"	popfq\n"
	"	mov cpu_in+0(%rip), %rax\n"
	"	mov cpu_in+8(%rip), %rcx\n"
	"	mov cpu_in+16(%rip), %rdx\n"
	"	mov cpu_in+24(%rip), %rbx\n"
	"	mov cpu_in+40(%rip), %rbp\n"
	"	mov cpu_in+48(%rip), %rsi\n"
	"	mov cpu_in+56(%rip), %rdi\n"
	"	mov cpu_in+64(%rip), %r8\n"
	"	mov cpu_in+72(%rip), %r9\n"
	"	mov cpu_in+80(%rip), %r10\n"
	"	mov cpu_in+88(%rip), %r11\n"
	"	mov cpu_in+96(%rip), %r12\n"
	"	mov cpu_in+104(%rip), %r13\n"
	"	mov cpu_in+112(%rip), %r14\n"
	"	mov cpu_in+120(%rip), %r15\n"
	"	movq $0x1234, -16(%rsp)\n"
	"	movq $0x5678, -128(%rsp)\n"
	"	call *cpu_stub(%rip)\n"
	"cpu_after:\n"
	"	mov %rax, cpu_out+0(%rip)\n"
	"	mov %rcx, cpu_out+8(%rip)\n"
	"	mov %rdx, cpu_out+16(%rip)\n"
	"	mov %rbx, cpu_out+24(%rip)\n"
	"	mov %rsp, cpu_out+32(%rip)\n"
	"	mov %rbp, cpu_out+40(%rip)\n"
	"	mov %rsi, cpu_out+48(%rip)\n"
	"	mov %rdi, cpu_out+56(%rip)\n"
	"	mov %r8, cpu_out+64(%rip)\n"
	"	mov %r9, cpu_out+72(%rip)\n"
	"	mov %r10, cpu_out+80(%rip)\n"
	"	mov %r11, cpu_out+88(%rip)\n"
	"	mov %r12, cpu_out+96(%rip)\n"
	"	mov %r13, cpu_out+104(%rip)\n"
	"	mov %r14, cpu_out+112(%rip)\n"
	"	mov %r15, cpu_out+120(%rip)\n"
	"	mov -16(%rsp), %rcx\n"
	"	mov %rcx, cpu_red(%rip)\n"
	"	mov -128(%rsp), %rcx\n"
	"	mov %rcx, cpu_red+8(%rip)\n"
	"	pushfq\n"
	"	popq cpu_out+128(%rip)\n"
	"	cld\n"
	"	add $8, %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");
extern const char cpu_after[];
static uint64_t cpu_red[2] __attribute__((used));
enum { FLAGS = 0x8d5, FLAGS_ON = 0x202 }; /* OF SF ZF AF PF CF */

/* Fires a probe; everything must be as it was. */
static void fire_with(enum wire_stub_kind kind, uint64_t flags, uint64_t rax)
{
	cpu_stub = mock_stub(kind, 0x123456789, 31);
	for (int i = 0; i < 16; i++)
		cpu_in.r[i] = 0x1111111111111111ull * (uint64_t)i + 0xabc;
	cpu_in.r[0] = rax;
	if (fire_rbx)
		cpu_in.r[3] = fire_rbx;
	cpu_in.flags = flags | FLAGS_ON;
	memset(&cpu_out, 0, sizeof(cpu_out));
	cpu_run();
	for (int i = 0; i < 16; i++) {
		uint64_t was = cpu_in.r[i] + (i == 4 ? 8 : 0);

		if (cpu_out.r[i] != was)
			fail_msg("kind %d: register %d was 0x%llx, is 0x%llx", kind, i,
				 (unsigned long long)was, (unsigned long long)cpu_out.r[i]);
	}
	if (kind >= WIRE_STUB_MID) {
		assert_int_equal(cpu_out.flags & FLAGS, flags & FLAGS);
		assert_int_equal(cpu_red[1], 0x5678);
	}
	assert_true(mock.entry->rsp == WIRE_IDLE);
}

static void fire(enum wire_stub_kind kind, uint64_t flags)
{
	fire_with(kind, flags, 0xabc);
}

#endif
