/* Machine code written by hand: stubs that run do the same as the code that they displace. */
#include "text_make.h"

#include <sys/mman.h>

/* --- stubs that run --- */

/* The module, its stubs and gates in one mapping that may be written and executed. */
enum { RUN_SIZE = 0x10000, RUN_STUB = 0x8000, RUN_GATE = 0xf000, GATE_SIZE = 16 };
struct fired {
	uint64_t site;
	uint32_t probe, kind;
	uint64_t rdi, flags;
};
static struct fired fired[32];
static uint32_t nfired;
static uint8_t *run;

void text_test_record(const void *stub, const uint64_t *regs);
void text_test_record(const void *stub, const uint64_t *regs)
{
	struct wire_stub s;

	assert_true(nfired < 32);

	/* at any address */
	memcpy(&s, stub, sizeof(s));
	fired[nfired++] = (struct fired){ s.site, s.probe, s.kind, regs[0], regs[9] };
}

/* regs: rdi rsi rdx rcx r8 r9 r10 r11 rax flags. struct wire_stub is 22 (27) bytes before the
 * return address. The direction flag aside, all flags are spoiled where they are free, and the red
 * zone of what is below always. */
void text_test_thunk(void);
void text_test_thunk_mid(void);
#define SAVE \
	"pushfq; push %rax; push %r11; push %r10; push %r9; push %r8; push %rcx; push %rdx; push %rsi; push %rdi\n" \
	"mov 80(%rsp),%rdi\n"
#define RECORD \
	"mov %rsp,%rsi; push %rbp; mov %rsp,%rbp; and $-64,%rsp; call text_test_record; mov %rbp,%rsp; pop %rbp\n" \
	"pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %r8; pop %r9; pop %r10; pop %r11; pop %rax\n"
__asm__(".text; .globl text_test_thunk; text_test_thunk:\n" SAVE "sub $22,%rdi\n" RECORD
	"add $8,%rsp; test %rsp,%rsp; stc; ret\n"
	".globl text_test_thunk_mid; text_test_thunk_mid:\n" SAVE "sub $27,%rdi\n" RECORD
	"popfq; ret\n");

static void run_begin(struct made *m)
{
	void (*const thunks[2])(void) = { text_test_thunk, text_test_thunk_mid };

	begin(m);
	run = mmap(NULL, RUN_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	assert_true(run != MAP_FAILED);
	memset(run, 0xcc, RUN_SIZE);
	memcpy(run + T, m->e.image + ELF_TEXT_OFF, ELF_TEXT_SIZE);
	memcpy(run + D, m->e.image + ELF_DATA_OFF, DATA_MAX);
	for (int i = 0; i < 2; i++) { /* jmp *(%rip) */
		memcpy(run + RUN_GATE + i * GATE_SIZE, "\xff\x25\0\0\0\0", 6);
		memcpy(run + RUN_GATE + i * GATE_SIZE + 6, &thunks[i], 8);
	}
	nfired = 0;
}

static void run_end(struct made *m)
{
	munmap(run, RUN_SIZE);
	end(m);
}

static uint32_t stub_at = RUN_STUB, stub_size;
static uint16_t stub_moved[TEXT_SITE_MAX];

static struct text_point point(uint32_t at, enum wire_stub_kind kind, uint32_t probe)
{
	return (struct text_point){ (uint8_t)at, kind, probe,
				    (uint64_t)(uintptr_t)run + RUN_GATE +
					    (kind == WIRE_STUB_MID ? GATE_SIZE : 0) };
}

static void place(const struct text_site *s, const struct text_point *p, uint32_t n)
{
	uint64_t base = (uint64_t)(uintptr_t)run;
	uint8_t bytes[TEXT_SITE_MAX];
	uint32_t code;
	struct err *e = text_stub_points(s, base, base + stub_at, p, n, run + stub_at,
					 TEXT_STUB_MAX, &stub_size, &code, stub_moved);

	if (e)
		fail_msg("%s", e->text);
	text_patch(s, base, base + stub_at + code, bytes);
	memcpy(run + s->addr, bytes, s->len);
	for (uint32_t i = s->len; s->mode == TEXT_PATCH && i-- > TEXT_JUMP;)
		assert_int_equal(run[s->addr + i], 0xcc);
	stub_at += (stub_size + 15) & ~15u;
}

static void place_one(struct text_site s, uint32_t probe)
{
	struct text_point p = point(s.at, s.kind, probe);

	assert_int_equal(s.mode, TEXT_PATCH);
	place(&s, &p, 1);
}

static uint64_t call(uint32_t off, uint64_t a, uint64_t b)
{
	uint64_t (*f)(uint64_t, uint64_t);
	uint8_t *p = run + T + off;

	memcpy(&f, &p, sizeof(f));
	return f(a, b);
}

static void expect_fired(uint32_t i, uint32_t off, uint32_t probe, enum wire_stub_kind kind)
{
	assert_true(i < nfired);
	assert_true(fired[i].site == (uint64_t)(uintptr_t)run + T + off);
	assert_int_equal(fired[i].probe, probe);
	assert_int_equal(fired[i].kind, kind);
}

static void test_run_entry_return(void **state)
{
	/* mov D(%rip),%rax; add %rdi,%rax; push %rbx; pop %rbx; ret; padding */
	uint64_t data = 1000;
	struct made m = make(CODE("\x48\x8b\x05\xf9\x21\0\0\x48\x01\xf8\x53\x5b\xc3\x90\x90"),
			     &data, 8, SYMBOLS(FUNC("f", 0, 13)));

	run_begin(&m);
	place_one(entry(&m, 0), 5);
	assert_int_equal(call(0, 7, 0), 1007);
	assert_int_equal(nfired, 1);
	expect_fired(0, 0, 5, WIRE_STUB_ENTRY);
	assert_int_equal(fired[0].rdi, 7);
	assert_int_equal(returns(&m, 0), 1);
	place_one(exits[0], 6);
	assert_int_equal(call(0, 8, 0), 1008);
	assert_int_equal(nfired, 3);
	expect_fired(2, 12, 6, WIRE_STUB_RETURN);
	run_end(&m);
}

/* The ELF header of a library and of a position-independent program lies at address 0. */
static void test_run_image_base(void **state)
{
	/* f: lea 0,%rax by rip; ret; padding. g: xor %eax,%eax; lea 0,%rax by rip; ret */
	struct made m = make(CODE("\x48\x8d\x05\xf9\xed\xff\xff\xc3\x90\x90\x90\x90\x90\x90\x90\x90"
				  "\x31\xc0\x48\x8d\x05\xe7\xed\xff\xff\xc3\x90\x90\x90\x90"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 8), FUNC("g", 16, 10)));

	run_begin(&m);
	place_one(entry(&m, 0), 5);
	assert_int_equal(call(0, 0, 0), (uintptr_t)run);
	assert_int_equal(returns(&m, 16), 1);
	place_one(exits[0], 6);
	assert_int_equal(call(16, 0, 0), (uintptr_t)run);
	assert_int_equal(nfired, 2);
	run_end(&m);
}

/* Probes of a program that sleeps leave the way into it out. Its neighbours fire, in their
 * order. */
static void test_run_asleep(void **state)
{
	/* mov D(%rip),%rax; add %rdi,%rax; push %rbx; pop %rbx; ret; padding */
	uint64_t data = 1000;
	struct made m = make(CODE("\x48\x8b\x05\xf9\x21\0\0\x48\x01\xf8\x53\x5b\xc3\x90\x90"),
			     &data, 8, SYMBOLS(FUNC("f", 0, 13)));
	struct text_point p[3], e[2];
	struct text_site site;
	uint8_t *awake;

	run_begin(&m);
	awake = run + RUN_GATE + 0x100;
	assert_int_equal(returns(&m, 0), 1);
	for (uint32_t i = 0; i < 3; i++) {
		p[i] = point(exits[0].at, WIRE_STUB_RETURN, i);
		p[i].awake = i == 1 ? 0 : (uint64_t)(uintptr_t)&awake[i];
	}
	place(&exits[0], p, 3);
	/* at the entry, such a block is the first of the stub */
	e[0] = point(0, WIRE_STUB_ENTRY, 3);
	e[0].awake = (uint64_t)(uintptr_t)&awake[0];
	e[1] = point(0, WIRE_STUB_ENTRY, 4);
	site = entry(&m, 0);
	place(&site, e, 2);
	assert_int_equal(stub_moved[0], 0);
	for (uint32_t round = 0; round < 4; round++) {
		uint32_t n = 0;

		awake[0] = round & 1;
		awake[2] = round >> 1;
		nfired = 0;
		assert_int_equal(call(0, 7, 0), 1007);
		if (awake[0])
			expect_fired(n++, 0, 3, WIRE_STUB_ENTRY);
		expect_fired(n++, 0, 4, WIRE_STUB_ENTRY);
		if (awake[0])
			expect_fired(n++, 12, 0, WIRE_STUB_RETURN);
		expect_fired(n++, 12, 1, WIRE_STUB_RETURN);
		if (awake[2])
			expect_fired(n++, 12, 2, WIRE_STUB_RETURN);
		assert_int_equal(nfired, n);
	}
	run_end(&m);
}

static void test_run_return_moves_pops(void **state)
{
	/* push %rbx; mov %rdi,%rbx; lea 1(%rbx),%rax; pop %rbx; ret, g behind it */
	struct made m = make(CODE("\x53\x48\x89\xfb\x48\x8d\x43\x01\x5b\xc3\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 10), FUNC("g", 10, 1)));

	run_begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_PATCH, 4, 5, 6, 6);
	place_one(exits[0], 1);
	/* the lea and the pop stand before the probe, the ret behind it */
	assert_int_equal(stub_moved[0], 0);
	assert_int_equal(stub_moved[4], 4);
	assert_int_equal(stub_moved[5], 5);
	assert_int_equal(stub_moved[1], 0xffff);
	assert_int_equal(call(0, 41, 0), 42);
	assert_int_equal(nfired, 1);
	expect_fired(0, 9, 1, WIRE_STUB_RETURN);
	run_end(&m);
}

static void test_run_branches(void **state)
{
	/* f: cmp %rsi,%rdi; je 1f; xor %eax,%eax; ret; 1: mov $1,%eax; ret: a moved je */
	struct made m = make(
		CODE("\x48\x39\xf7\x74\x03\x31\xc0\xc3\xb8\x01\0\0\0\xc3\x90\x90"
		     /* 16: mov %rdi,%rcx; jrcxz 1f; mov $2,%eax; ret; 1: mov $3,%eax; ret */
		     "\x48\x89\xf9\xe3\x06\xb8\x02\0\0\0\xc3\xb8\x03\0\0\0\xc3\x90\x90\x90"
		     "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		     /* 48: mov %rdi,%rcx; xor %eax,%eax; 53: inc %rax; jmp 1f; nop; 1: loop 53b;
		      * ret */
		     "\x48\x89\xf9\x31\xc0\x48\xff\xc0\xeb\x01\x90\xe2\xf8\xc3"),
		NULL, 0, SYMBOLS(FUNC("f", 0, 14), FUNC("g", 16, 17), FUNC("h", 48, 14)));

	run_begin(&m);
	place_one(entry(&m, 0), 1);
	assert_int_equal(call(0, 5, 5), 1);
	assert_int_equal(call(0, 5, 6), 0);
	place_one(entry(&m, 16), 2);
	assert_int_equal(call(16, 0, 0), 3);
	assert_int_equal(call(16, 9, 0), 2);
	assert_int_equal(nfired, 4);
	/* 53: inc; jmp: the loop leads to the patch's first byte, and fires again */
	place_one(offset(&m, 48, 5), 3);
	assert_int_equal(call(48, 4, 0), 4);
	assert_int_equal(nfired, 8);
	/* the loop instruction itself moved, with the ret and padding behind it */
	run_end(&m);
	m = make(CODE("\x48\x89\xf9\x31\xc0\x48\xff\xc0\x90\xe2\xfa\xc3"), NULL, 0,
		 SYMBOLS(FUNC("f", 0, 12)));
	run_begin(&m);
	place_one(offset(&m, 0, 9), 4);
	assert_int_equal(call(0, 6, 0), 6);
	assert_int_equal(nfired, 6);
	run_end(&m);
}

static void test_run_mid(void **state)
{
	/* mov %rdi,-8(%rsp); cmp %rsi,%rdi; [probe] nop5; sete %al; movzbl %al,%eax; add
	 * -8(%rsp),%rax; ret: flags and the red zone are in use at the probe */
	struct made m =
		make(CODE("\x48\x89\x7c\x24\xf8\x48\x39\xf7\x0f\x1f\x44\0\0\x0f\x94\xc0\x0f\xb6\xc0"
			  "\x48\x03\x44\x24\xf8\xc3"),
		     NULL, 0, SYMBOLS(FUNC("f", 0, 25)));
	struct text_site s;
	struct text_point p[3];

	run_begin(&m);
	s = offset(&m, 0, 8);
	expect_site(s, TEXT_PATCH, 8, 0, 5, 5);
	for (int i = 0; i < 3; i++)
		p[i] = point(0, WIRE_STUB_MID, 10u + (uint32_t)i);
	place(&s, p, 3);
	assert_int_equal(call(0, 100, 100), 101);
	assert_int_equal(call(0, 100, 7), 100);
	assert_int_equal(nfired, 6);
	/* in the order given */
	for (uint32_t i = 0; i < 6; i++)
		expect_fired(i, 8, 10 + i % 3, WIRE_STUB_MID);
	run_end(&m);
}

static void test_run_join(void **state)
{
	/* lea (%rdi,%rsi),%rax; ret; padding: entry, offset and return, three kinds in one stub */
	struct made m = make(CODE("\x48\x8d\x04\x37\xc3\x90\x90\x90\x90"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 5)));
	struct text_site a, j;
	struct text_point p[4];

	run_begin(&m);
	a = entry(&m, 0);
	assert_int_equal(returns(&m, 0), 1);
	assert_true(text_join(&a, &exits[0], &j));
	p[0] = point(0, WIRE_STUB_ENTRY, 1);
	p[1] = point(0, WIRE_STUB_MID, 2);
	p[2] = point(4, WIRE_STUB_RETURN, 3);
	p[3] = point(4, WIRE_STUB_RETURN, 4);
	place(&j, p, 4);
	assert_int_equal(call(0, 30, 12), 42);
	assert_int_equal(nfired, 4);
	expect_fired(0, 0, 1, WIRE_STUB_ENTRY);
	expect_fired(1, 0, 2, WIRE_STUB_MID);
	expect_fired(2, 4, 3, WIRE_STUB_RETURN);
	expect_fired(3, 4, 4, WIRE_STUB_RETURN);
	/* a thread that stood at the ret still meets its probes */
	assert_true(stub_moved[4] > stub_moved[0] && stub_moved[4] < stub_size);
	run_end(&m);
}

static void test_run_tail_jcc(void **state)
{
	/* f: test %rdi,%rdi; je g (6 bytes); mov $1,%eax; ret.  g: mov $2,%eax; ret */
	struct made m = make(CODE("\x48\x85\xff\x0f\x84\x07\0\0\0\xb8\x01\0\0\0\xc3\x90"
				  "\xb8\x02\0\0\0\xc3\x90\x90\x90\x90"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 15), FUNC("g", 16, 6)));

	run_begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	expect_site(exits[0], TEXT_PATCH, 3, 0, 6, 6);
	place_one(exits[0], 8);
	assert_int_equal(call(0, 1, 0), 1);
	assert_int_equal(nfired, 0);
	assert_int_equal(call(0, 0, 0), 2);
	assert_int_equal(nfired, 1);
	expect_fired(0, 3, 8, WIRE_STUB_TAIL);
	run_end(&m);
}

/* Places the two sites that stand for one return: of a branch and of the way behind it. */
static void place_split(struct made *m, uint32_t f, uint32_t branch, uint32_t fall)
{
	struct text_site both;
	struct text_point p[2];

	assert_int_equal(returns(m, f), 2);
	assert_true(text_join(&exits[0], &exits[1], &both));
	for (uint32_t i = 0; i < 2; i++) {
		p[i] = point((uint32_t)(exits[i].addr + exits[i].at - both.addr), exits[i].kind, 8);
		p[i].split = &exits[i].split;
		p[i].shown = (uint64_t)(uintptr_t)run + exits[i].split.ret;
	}
	assert_int_equal(p[0].at + (both.addr - T - f), branch);
	assert_int_equal(p[1].at + (both.addr - T - f), fall);
	place(&both, p, 2);
}

static void test_run_split_return(void **state)
{
	/* f: xor %eax,%eax; test %rdi,%rdi; je 1f; lea 5(%rdi),%eax; 1: ret.  g directly behind.
	 * h: xor %eax,%eax; push %rbx; mov %rdi,%rbx; test %rdi,%rdi; je 1f; lea 5(%rbx),%eax;
	 *    add $1,%eax; 1: pop %rbx; ret.  k directly behind */
	struct made m = make(CODE("\x31\xc0\x48\x85\xff\x74\x03\x8d\x47\x05\xc3\x31\xc0\xc3\x90\x90"
				  "\x31\xc0\x53\x48\x89\xfb\x48\x85\xff\x74\x06\x8d\x43\x05"
				  "\x83\xc0\x01\x5b\xc3\x31\xc0\xc3"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 11), FUNC("g", 11, 3), FUNC("h", 16, 19),
				     FUNC("k", 35, 3)));

	run_begin(&m);
	place_split(&m, 0, 5, 10);
	place_split(&m, 16, 9, 17);
	assert_int_equal(exits[0].split.len, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(call(i * 16, 0, 0), 0);
		assert_int_equal(nfired, 2 * i + 1);
		assert_int_equal(call(i * 16, 7, 0), 12 + i);
		assert_int_equal(nfired, 2 * i + 2);
		expect_fired(2 * i, i ? 34 : 10, 8, WIRE_STUB_RETURN);
		expect_fired(2 * i + 1, i ? 34 : 10, 8, WIRE_STUB_RETURN);
	}
	run_end(&m);
}

static void test_run_call(void **state)
{
	/* f: sub $8,%rsp; call g; add $8,%rsp; ret.  g: mov 0(%rsp),%rax; ret: it sees the address behind the call */
	struct made m = make(CODE("\x48\x83\xec\x08\xe8\x07\0\0\0\x48\x83\xc4\x08\xc3\x90\x90"
				  "\x48\x8b\x04\x24\xc3"
				  "\x90\x90\x90"
				  /* 24: sub $8,%rsp; call *D(%rip); add $8,%rsp; ret */
				  "\x48\x83\xec\x08\xff\x15\xde\x21\0\0\x48\x83\xc4\x08\xc3"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 14), FUNC("g", 16, 5), FUNC("h", 24, 15)));
	uint64_t g;

	run_begin(&m);
	place_one(entry(&m, 0), 1);
	assert_true(call(0, 0, 0) == (uint64_t)(uintptr_t)run + T + 9);
	g = (uint64_t)(uintptr_t)run + T + 16;
	memcpy(run + D, &g, 8);
	place_one(entry(&m, 24), 2);
	assert_true(call(24, 0, 0) == (uint64_t)(uintptr_t)run + T + 34);
	assert_int_equal(nfired, 2);
	run_end(&m);
}

static void test_run_syscall(void **state)
{
	/* mov $39,%eax; syscall; cmp $-4096,%rax; ret: probes before and after getpid() */
	struct made m = make(CODE("\xb8\x27\0\0\0\x0f\x05\x48\x3d\0\xf0\xff\xff\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 14)));
	struct text_syscall *v;
	struct text_point p[2];
	uint32_t n;

	run_begin(&m);
	assert_null(text_syscalls(m.text, 0, &v, &n));
	assert_int_equal(n, 1);
	p[0] = point(0, WIRE_STUB_MID, 1);
	p[1] = point(2, WIRE_STUB_MID, 2);
	place(&v[0].site, p, 2);
	/* a thread inside the call continues at the probe behind it; restarting the call means 2
	 * bytes back */
	assert_memory_equal(run + stub_at - ((stub_size + 15) & ~15u) + stub_moved[2] - 2,
			    "\x0f\x05", 2);
	assert_int_equal(call(0, 0, 0), getpid());
	assert_int_equal(nfired, 2);
	expect_fired(0, 5, 1, WIRE_STUB_MID);
	expect_fired(1, 7, 2, WIRE_STUB_MID);
	free(v);
	run_end(&m);
}

static void test_run_syscall_last(void **state)
{
	/* mov %r11,8(%rsp); syscall; ret, as in __syscall_cancel_arch(): a probe before the call */
	struct made m = make(CODE("\x4c\x89\x5c\x24\x08\x0f\x05\xc3\x90\x90\x90\x90\x90\x90"), NULL,
			     0, SYMBOLS(FUNC("f", 0, 8)));
	struct text_syscall *v;
	struct text_site *s;
	struct text_point p;
	uint32_t n, behind;

	run_begin(&m);
	assert_null(text_syscalls(m.text, 0, &v, &n));
	assert_int_equal(n, 1);
	s = &v[0].site;
	assert_int_equal(s->mode, TEXT_PATCH);
	p = point(s->at, WIRE_STUB_MID, 1);
	place(s, &p, 1);
	/* the entry behind the call is where its copy ends, though no probe stands there */
	behind = stub_moved[v[0].addr + 2 - s->addr];
	assert_true(behind < stub_size);
	assert_memory_equal(run + stub_at - ((stub_size + 15) & ~15u) + behind - 2, "\x0f\x05", 2);
	free(v);
	run_end(&m);
}

static void test_stub_errors(void **state)
{
	struct made m =
		make(CODE("\x48\x8b\x05\xf9\x21\0\0\xc3"), NULL, 0, SYMBOLS(FUNC("f", 0, 8)));
	uint64_t gate = 0x10000;
	uint32_t probe = 1, n, code;
	uint16_t moved[TEXT_SITE_MAX];
	uint8_t out[TEXT_STUB_MAX];
	struct text_point p = { .at = 3, .kind = WIRE_STUB_MID, .gate = gate };
	struct text_site s;
	struct err *e;

	begin(&m);
	s = entry(&m, 0);
	assert_null(text_stub(&s, 0, 0x8000, &probe, &gate, 1, out, sizeof(out), &n, &code, moved));
	/* too little room at every size */
	for (uint32_t max = 0; max < n; max++) {
		e = text_stub(&s, 0, 0x8000, &probe, &gate, 1, out, max, &n, &code, moved);
		assert_non_null(e);
		err_free(e);
	}
	/* too far from the gate, from the site */
	e = text_stub(&s, 0, 0x100008000, &probe, &gate, 1, out, sizeof(out), &n, &code, moved);
	assert_non_null(strstr(e->text, "2 GB"));
	err_free(e);
	/* a probe inside an instruction */
	e = text_stub_points(&s, 0, 0x8000, &p, 1, out, sizeof(out), &n, &code, moved);
	assert_non_null(strstr(e->text, "inside an instruction"));
	err_free(e);
	s.mode = TEXT_NONE;
	e = text_stub(&s, 0, 0x8000, &probe, &gate, 1, out, sizeof(out), &n, &code, moved);
	assert_non_null(e);
	err_free(e);
	end(&m);
}

static void test_trap(void **state)
{
	/* int3 in the place of one byte; the rest stays */
	struct made m = make(CODE("\x31\xc0\xff\xc0\xff\xcf\x75\xfa\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 9)));
	struct text_site s;
	uint8_t out[TEXT_SITE_MAX];

	begin(&m);
	s = entry(&m, 0);
	assert_int_equal(s.mode, TEXT_TRAP);
	text_patch(&s, 0, 0, out);
	assert_memory_equal(out, "\xcc\xc0", 2);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_entry_return),
		cmocka_unit_test(test_run_image_base),
		cmocka_unit_test(test_run_asleep),
		cmocka_unit_test(test_run_return_moves_pops),
		cmocka_unit_test(test_run_branches),
		cmocka_unit_test(test_run_mid),
		cmocka_unit_test(test_run_join),
		cmocka_unit_test(test_run_tail_jcc),
		cmocka_unit_test(test_run_split_return),
		cmocka_unit_test(test_run_call),
		cmocka_unit_test(test_run_syscall),
		cmocka_unit_test(test_run_syscall_last),
		cmocka_unit_test(test_stub_errors),
		cmocka_unit_test(test_trap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
