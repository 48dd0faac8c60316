/* Measures the cost of a firing in compiled code: thunk and program, without kernel, agent and
 * tracer. Calls a function of a few nanoseconds in a loop, in turns without and with a jump to a
 * stub over its first instructions. Prints the added nanoseconds of CPU time, the lowest and the
 * median of the rounds. */
#include <time.h>

#include "insn.h"
#include "jit_mock.h"

enum { CALLS = 2000000, ROUNDS = 15 };

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

typedef uint64_t work(uint64_t, uint64_t);

/* lea 1(%rdi,%rsi),%rax; imul %rax,%rax; xor %rdi,%rax; ret -- a probe displaces the first five
 * bytes. */
static const uint8_t body[] = { 0x48, 0x8d, 0x44, 0x37, 0x01, 0x48, 0x0f,
				0xaf, 0xc0, 0x48, 0x31, 0xf8, 0xc3 };

static double run(work *f)
{
	double start = cpu_ns();
	uint64_t x = 1;

	for (int i = 0; i < CALLS; i++)
		x = f(x, (uint64_t)i);
	__asm__ volatile("" ::"r"(x));
	return (cpu_ns() - start) / CALLS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void put_jump(uint8_t *at, const uint8_t *to)
{
	int32_t rel = (int32_t)(to - at - 5);

	*at = 0xe9;
	memcpy(at + 1, &rel, 4);
}

static void measure(const char *name, enum wire_stub_kind kind, const struct bpf_insn *p,
		    uint32_t n)
{
	uint8_t *bare = mock.code + MOCK_CODE - 512, *traced = bare + 64, *stub = bare + 128, *c;
	double added[ROUNDS];
	struct err *e = p ? mock_compile(p, n) : NULL;

	if (e) {
		fprintf(stderr, "%s: %s\n", name, e->text);
		exit(1);
	}
	memcpy(bare, body, sizeof(body));
	memcpy(traced, body, sizeof(body));
	*(struct wire_stub *)stub = (struct wire_stub){ (uintptr_t)traced, 3, kind };
	c = stub + sizeof(struct wire_stub);
	put_jump(traced, c);
	if (p)
		c = mock_put_call(c, kind, (uint64_t *)(stub + 80));
	memcpy(c, body, 5);
	put_jump(c + 5, traced + 5);
	for (int i = 0; i < ROUNDS; i++) {
		double before = run((work *)(uintptr_t)bare), with = run((work *)(uintptr_t)traced);

		added[i] = with - (before + run((work *)(uintptr_t)bare)) / 2;
	}
	qsort(added, ROUNDS, sizeof(*added), compare);
	printf("%-44s %6.2f %6.2f %6u\n", name, added[0], added[ROUNDS / 2], p ? mock.out.size : 0);
}

int main(void)
{
	struct wire_agent_head *h;

	mock_init();
	mock_know_thread();
	uint32_t state = mock_add_map(WIRE_MAP_ARRAY, 296, 1),
		 agg = mock_add_map(WIRE_MAP_AGG_ARRAY, 16, 1);
	const struct bpf_insn nothing[] = { ALU64_IMM(MOV, 0, 0), EXIT() };
	const struct bpf_insn count[] = {
		LD64(1, EBPF_PSEUDO_MAP_VALUE, state),
		LDX(W, 1, 1, 0),
		JMP_IMM(JNE, 1, 2, 9),
		MOCK_LOOKUP(agg),
		JMP_IMM(JEQ, 0, 0, 2),
		ALU64_IMM(MOV, 1, 1),
		ATOMIC(DW, 0, 1, 0, BPF_ADD),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	const struct bpf_insn sum[] = {
		LDX(DW, 6, 1, 112),           MOCK_LOOKUP(agg),
		JMP_IMM(JEQ, 0, 0, 3),        ALU64_IMM(MOV, 1, 1),
		ATOMIC(DW, 0, 1, 0, BPF_ADD), ATOMIC(DW, 0, 6, 8, BPF_ADD),
		ALU64_IMM(MOV, 0, 0),         EXIT(),
	};
	const struct bpf_insn call[] = { CALL(BPF_FUNC_get_prandom_u32), ALU64_IMM(MOV, 0, 0),
					 EXIT() };
	const struct bpf_insn regs[] = { CALL(BPF_FUNC_task_pt_regs), ALU64_IMM(MOV, 0, 0),
					 EXIT() };
	/* an unknown address: the code checks it */
	const struct bpf_insn checked[] = {
		LD64(2, EBPF_PSEUDO_MAP_VALUE, agg - 1),
		ALU64_IMM(XOR, 2, 1),
		ALU64_IMM(XOR, 2, 1),
		ST(DW, 2, 64, 1),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};

	h = (void *)mock.code;
	mock.code[h->entry[WIRE_AGENT_prandom]] = 0xc3;
	mock.code[h->entry[WIRE_AGENT_task_pt_regs]] = 0xc3;
	*(uint32_t *)mock_value(state, 0) = 2;
	printf("%-44s %6s %6s %6s\n", "ns added by a firing", "least", "median", "bytes");
#define M(name, kind, p) measure(name, kind, p, ARRAY_SIZE(p))
	measure("the jump alone", WIRE_STUB_ENTRY, NULL, 0);
	M("nothing, entry", WIRE_STUB_ENTRY, nothing);
	M("nothing, mid", WIRE_STUB_MID, nothing);
	M("@ = count(), entry", WIRE_STUB_ENTRY, count);
	M("@ = count(), return", WIRE_STUB_RETURN, count);
	M("@ = count(), mid", WIRE_STUB_MID, count);
	M("@ = sum(arg0), entry", WIRE_STUB_ENTRY, sum);
	M("a call of the agent (which returns at once)", WIRE_STUB_ENTRY, call);
	M("... and all registers", WIRE_STUB_ENTRY, regs);
	M("a store that is checked", WIRE_STUB_ENTRY, checked);
	return 0;
}
