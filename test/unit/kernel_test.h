/* Shared by the tests of load/: instructions as macros, images built by hand, and exit code 77
 * where bpf(2) is not permitted. */
#ifndef DESCRY_TEST_KERNEL_TEST_H
#define DESCRY_TEST_KERNEL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "load/kernel/kernel_private.h"
#include "wire/routines.h"

#define I(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MOV(d, s) I(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOVI(d, i) I(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADDI(d, i) I(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define LDX(d, s, o) I(BPF_LDX | BPF_MEM | BPF_DW, d, s, o, 0)
#define LDXW(d, s, o) I(BPF_LDX | BPF_MEM | BPF_W, d, s, o, 0)
#define STX(d, s, o) I(BPF_STX | BPF_MEM | BPF_DW, d, s, o, 0)
#define STXW(d, s, o) I(BPF_STX | BPF_MEM | BPF_W, d, s, o, 0)
#define STI(d, o, i) I(BPF_ST | BPF_MEM | BPF_DW, d, 0, o, i)
#define STIW(d, o, i) I(BPF_ST | BPF_MEM | BPF_W, d, 0, o, i)
#define JEQI(d, i, o) I(BPF_JMP | BPF_JEQ | BPF_K, d, 0, o, i)
#define JNEI(d, i, o) I(BPF_JMP | BPF_JNE | BPF_K, d, 0, o, i)
#define JGEI(d, i, o) I(BPF_JMP | BPF_JGE | BPF_K, d, 0, o, i)
#define CALL(n) I(BPF_JMP | BPF_CALL, 0, 0, 0, n)
#define ROUTINE_CALL I(BPF_JMP | BPF_CALL, 0, 0, 0, -1)
#define LD64(d, v) \
	I(BPF_LD | BPF_IMM | BPF_DW, d, 0, 0, (int32_t)(uint32_t)(v)), \
		I(0, 0, 0, 0, (int32_t)(uint32_t)((uint64_t)(v) >> 32))
#define EXIT I(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 };

enum { SKIP = 77 };

/* Ends the test program with 77 and the reason when programs cannot be loaded here. */
static inline void need_kernel(void)
{
	struct err *e = feature_check_privilege();

	if (e) {
		fprintf(stderr, "SKIP: %s\n", e->text);
		err_free(e);
		exit(SKIP);
	}
}

#define assert_ok(expr) \
	do { \
		struct err *e_ = (expr); \
		if (e_) \
			fail_msg("%s: %s", #expr, e_->text); \
	} while (0)

#endif
