/* Machine code written by hand: the bytes that may be displaced. Each function here once caused a
 * crash, or would have. */
#include "text_make.h"

/* --- where a jump fits --- */

static void test_entry(void **state)
{
	/* push %rbp; mov %rsp,%rbp; sub $16,%rsp; leave; ret */
	struct made m = make(CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\xc9\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 10)));
	uint64_t lo, hi;

	begin(&m);
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 8, 8);
	assert_int_equal(entry(&m, 0).kind, WIRE_STUB_ENTRY);
	assert_memory_equal(entry(&m, 0).bytes, "\x55\x48\x89\xe5\x48\x83\xec\x10", 8);
	assert_true(text_function(m.text, T + 4, &lo, &hi));
	assert_true(lo == T && hi == T + 10);
	assert_false(text_function(m.text, T + 10, &lo, &hi));
	expect_reason(entry(&m, 4), TEXT_NONE, "no function is known");
	end(&m);
}

static void test_entry_endbr_nops(void **state)
{
	/* f: endbr64; mov $1,%eax; ret.  g: nop5; ret.  h: 5 x nop (patchable); ret */
	struct made m = make(CODE("\xf3\x0f\x1e\xfa\xb8\x01\0\0\0\xc3\x90\x90\x90\x90\x90\x90"
				  "\x0f\x1f\x44\0\0\xc3\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
				  "\x90\x90\x90\x90\x90\xc3"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 10), FUNC("g", 16, 6), FUNC("h", 32, 6)));

	begin(&m);
	expect_site(entry(&m, 0), TEXT_PATCH, 4, 0, 5, 5);
	expect_site(entry(&m, 16), TEXT_PATCH, 16, 0, 5, 5);
	expect_site(entry(&m, 32), TEXT_PATCH, 32, 0, 5, 5);
	end(&m);
}

static void test_entry_short(void **state)
{
	/* f: xor %eax,%eax; ret, padding.  g: the same, h directly behind.  h: ret, int3 padding, last in the text */
	struct made m = make(CODE("\x31\xc0\xc3\x0f\x1f\x44\0\0\x31\xc0\xc3\xc3\xcc\xcc\xcc\xcc"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 3), FUNC("g", 8, 3), FUNC("h", 11, 1)));

	begin(&m);
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 5, 3);
	expect_reason(entry(&m, 8), TEXT_TRAP, "fewer than 5 bytes");
	assert_int_equal(entry(&m, 8).moved, 2);
	expect_site(entry(&m, 11), TEXT_PATCH, 11, 0, 5, 1);
	end(&m);
}

static void test_entry_padding_is_code(void **state)
{
	/* f: xor %eax,%eax; ret.  Behind it nops that g jumps to. */
	struct made m = make(CODE("\x31\xc0\xc3\x90\x90\x90\x90\x90\xeb\xf9\x90\x90\x90\x90\x90"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 3), FUNC("g", 8, 2)));

	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	end(&m);
}

static void test_entry_calls(void **state)
{
	/* f: sub $8,%rsp; call g; add $8,%rsp; ret.  g: call *%rax; nop; nop; nop; ret.  h: call *8(%rsp); ...
	 * k: call f: 5 bytes */
	struct made m = make(CODE("\x48\x83\xec\x08\xe8\x07\0\0\0\x48\x83\xc4\x08\xc3\x90\x90"
				  "\xff\xd0\x90\x90\x90\xc3\x90\x90\xff\x54\x24\x08\x90\x90\xc3\x90"
				  "\xe8\xdb\xff\xff\xff\xc3"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 14), FUNC("g", 16, 6), FUNC("h", 24, 7),
				     FUNC("k", 32, 6)));

	begin(&m);
	/* the last instruction displaced: its return address is not displaced */
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 9, 9);
	assert_true(entry(&m, 0).pushes);
	/* the return address would lie in the displaced bytes */
	expect_reason(entry(&m, 16), TEXT_TRAP, "a call would be displaced");
	expect_reason(entry(&m, 24), TEXT_NONE, "cannot run elsewhere");
	expect_site(entry(&m, 32), TEXT_PATCH, 32, 0, 5, 5);
	/* the code behind a call may be displaced; the ret never together with the call before
	 * it */
	expect_site(offset(&m, 0, 9), TEXT_PATCH, 9, 0, 5, 5);
	assert_int_equal(returns(&m, 32), 1);
	expect_site(exits[0], TEXT_PATCH, 37, 0, 5, 1);
	end(&m);
}

static void test_entry_loop_head(void **state)
{
	/* f: xor %eax,%eax; L: inc %eax; dec %edi; jne L; ret.  g: dec %edi; inc %eax; nop; jne g; ret */
	struct made m = make(CODE("\x31\xc0\xff\xc0\xff\xcf\x75\xfa\xc3\x90\x90\x90\x90\x90\x90\x90"
				  "\xff\xcf\xff\xc0\x90\x75\xf9\xc3"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 9), FUNC("g", 16, 8)));

	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	expect_site(entry(&m, 16), TEXT_PATCH, 16, 0, 5, 5);
	end(&m);
}

static void test_entry_far_branch(void **state)
{
	/* f: 2 x (mov %eax,%ecx); ... ret.  Nothing decodes the bytes at 64 (no symbol): jmp f+2 */
	char code[0x60];
	struct made m;

	memset(code, 0x90, sizeof(code));
	memcpy(code, "\x89\xc1\x89\xc1\x89\xc1\xc3", 7);
	memcpy(code + 64, "\xe9\xbd\xff\xff\xff", 5);
	m = make(code, sizeof(code), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));
	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	end(&m);
	/* the same by a conditional one, by lea, by a short branch outside of any function */
	memcpy(code + 64, "\x0f\x84\xbc\xff\xff\xff", 6);
	m = make(code, sizeof(code), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));
	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	end(&m);
	memcpy(code + 64, "\x48\x8d\x05\xbb\xff\xff\xff", 7);
	m = make(code, sizeof(code), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));
	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	end(&m);
	memset(code + 64, 0x90, 7);
	memcpy(code + 64, "\xe3\xc0", 2); /* jrcxz f+2 */
	m = make(code, sizeof(code), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));
	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	end(&m);
	memset(code + 64, 0x90, 7);
	m = make(code, sizeof(code), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));
	begin(&m);
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 6, 6);
	end(&m);
}

static const char plain[] = "\x89\xc1\x89\xc1\x89\xc1\xc3";

static void test_entry_data_word(void **state)
{
	/* an unaligned (by 4) word that is the address of f+2; f+0 does no harm */
	struct {
		uint32_t pad;
		uint64_t word;
	} __attribute__((packed)) data = { 0, T + 2 };
	struct made m = make(CODE(plain), &data, sizeof(data), SYMBOLS(FUNC("f", 0, 7)));

	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	end(&m);
	data.word = T;
	m = make(CODE(plain), &data, sizeof(data), SYMBOLS(FUNC("f", 0, 7)));
	begin(&m);
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 6, 6);
	end(&m);
}

static void test_entry_data_in_text(void **state)
{
	/* the table lies in the executable segment, behind the code */
	char code[24];
	uint64_t word = T + 4;
	struct made m;

	memset(code, 0x90, sizeof(code));
	memcpy(code, plain, 7);
	memcpy(code + 12, &word, 8);
	m = make(code, sizeof(code), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));
	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	end(&m);
}

static void test_entry_relocation(void **state)
{
	/* the word is 0 in the file: R_X86_64_RELATIVE puts f+2 there */
	uint64_t data[] = { DT_RELA, D + 48, DT_RELASZ,         24,   DT_NULL,
			    0,       D + 80, R_X86_64_RELATIVE, T + 2 };
	struct made m = make(CODE(plain), data, sizeof(data), SYMBOLS(FUNC("f", 0, 7)));
	Elf64_Phdr *p = (Elf64_Phdr *)(void *)(m.e.image + sizeof(Elf64_Ehdr));

	/* T + 2 is in the data, at an address aligned by 8: hide it from the scan of words */
	memmove(m.e.image + ELF_DATA_OFF + 50, m.e.image + ELF_DATA_OFF + 48, 24);
	data[1] = D + 50;
	memcpy(m.e.image + ELF_DATA_OFF, data, 32);
	p[2] = (Elf64_Phdr){
		.p_type = PT_DYNAMIC, .p_offset = ELF_DATA_OFF, .p_vaddr = D, .p_filesz = 48
	};
	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	text_free(m.text);
	object_free(m.object);
	p[2].p_type = PT_NULL;
	begin(&m);
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 6, 6);
	end(&m);
}

static void test_entry_fixed_immediate(void **state)
{
	/* not PIE: mov $f+2,%eax elsewhere takes the address */
	char code[0x50];
	uint32_t word = T + 2;
	struct made m;

	memset(code, 0x90, sizeof(code));
	memcpy(code, plain, 7);
	code[0x41] = (char)0xb8;
	memcpy(code + 0x42, &word, 4);
	for (int fixed = 0; fixed < 2; fixed++) {
		m = make(code, sizeof(code), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));
		((Elf64_Ehdr *)(void *)m.e.image)->e_type = fixed ? ET_EXEC : ET_DYN;
		begin(&m);
		assert_int_equal(entry(&m, 0).mode, fixed ? TEXT_TRAP : TEXT_PATCH);
		end(&m);
	}
}

/* A displacement from the instruction pointer is no address, though it looks like one. */
static void test_entry_fixed_displacement(void **state)
{
	static const struct {
		const char *code; /* in front of the word */
		uint32_t n;
		bool relative;
	} forms[] = {
		{ "\x48\x8b\x3d", 3, true },      /* mov f+2(%rip),%rdi */
		{ "\x0f\xb7\x0d", 3, true },      /* movzwl f+2(%rip),%ecx */
		{ "\x48\x8b\x05", 3, false },     /* mov f+2(%rip),%rax: could be add $f+2,%eax */
		{ "\x8b\x04\x05", 3, false },     /* mov f+2(,%rax,1),%eax */
		{ "\x8b\x04\x0d", 3, false },     /* mov f+2(,%rcx,1),%eax */
		{ "\xc7\x44\x24\x15", 4, false }, /* movl $f+2,0x15(%rsp) */
		{ "\xc7\x40\x15", 3, false },     /* movl $f+2,0x15(%rax) */
	};
	uint32_t word = T + 2;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		char code[0x50];
		struct made m;

		memset(code, 0x90, sizeof(code));
		memcpy(code, plain, 7);
		memcpy(code + 0x40, forms[i].code, forms[i].n);
		memcpy(code + 0x40 + forms[i].n, &word, 4);
		m = make(code, sizeof(code), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));
		((Elf64_Ehdr *)(void *)m.e.image)->e_type = ET_EXEC;
		begin(&m);
		assert_int_equal(entry(&m, 0).mode, forms[i].relative ? TEXT_PATCH : TEXT_TRAP);
		end(&m);
	}
}

static void test_entry_stuck(void **state)
{
	/* f: ud2.  g: nop; int3; ret...  h: syscall; ret; sigreturn: mov $15,%rax; syscall */
	struct made m = make(CODE("\x0f\x0b\x90\x90\x90\x90\x90\x90\x90\xcc\xc3\x90\x90\x90\x90\x90"
				  "\x0f\x05\xc3\x90\x90\x90\x90\x90\x48\xc7\xc0\x0f\0\0\0\x0f\x05"
				  "\x90\x90\x90\x90\x90\x90\0\x48\xc7\xc0\x0f\0\0\0\x0f\x05"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 2), FUNC("g", 8, 3), FUNC("h", 16, 3),
				     FUNC("restore", 24, 9), FUNC("early", 39, 10),
				     FUNC("early_label", 40, 9)));
	struct text_syscall *v;
	uint32_t n;

	begin(&m);
	expect_reason(entry(&m, 0), TEXT_NONE, "cannot run elsewhere");
	assert_int_equal(entry(&m, 8).mode, TEXT_TRAP);
	expect_reason(entry(&m, 16), TEXT_TRAP, "a system call would be displaced");
	expect_reason(entry(&m, 24), TEXT_NONE, "signal frames");
	/* begins a byte early: that byte decodes with the first of the mov */
	expect_reason(entry(&m, 40), TEXT_NONE, "signal frames");
	expect_reason(offset(&m, 40, 7), TEXT_NONE, "signal frames");
	assert_int_equal(returns(&m, 40), -1);
	assert_null(text_syscalls(m.text, 0, &v, &n));
	assert_int_equal(n, 3);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(v[i].site.mode, i ? TEXT_NONE : TEXT_PATCH);
	free(v);
	end(&m);
}

static void test_entry_not_called(void **state)
{
	/* A cold part is jumped into: flags and red zone live. */
	struct made m = make(CODE("\x89\xc1\x89\xc1\x89\xc1\xc3\x90\x89\xc1\x89\xc1\x89\xc1\xc3"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 7), FUNC("f.cold", 8, 7)));

	begin(&m);
	assert_int_equal(entry(&m, 0).kind, WIRE_STUB_ENTRY);
	assert_int_equal(entry(&m, 8).kind, WIRE_STUB_MID);
	end(&m);
}

static void test_go(void **state)
{
	struct made m = make(CODE(plain), NULL, 0, SYMBOLS(FUNC("f", 0, 7)));

	/* the section name .stapsdt.base is as long as .go.buildinfo */
	for (size_t i = 0; i + 13 < m.e.size; i++)
		if (!memcmp(m.e.image + i, ".stapsdt.base", 13))
			memcpy(m.e.image + i, ".go.buildinfo", 13);
	begin(&m);
	expect_reason(entry(&m, 0), TEXT_NONE, "Go");
	assert_int_equal(returns(&m, 0), -1);
	assert_non_null(strstr(exits_reason, "Go"));
	end(&m);
}

/* --- offsets --- */

static void test_offset(void **state)
{
	/* mov $1,%eax; inc %eax; lock incl (%rdi); rep movsb; jmp .+0(5); ret */
	struct made m = make(CODE("\xb8\x01\0\0\0\xff\xc0\xf0\xff\x07\xf3\xa4\xe9\0\0\0\0\xc3"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 18)));

	begin(&m);
	expect_site(offset(&m, 0, 0), TEXT_PATCH, 0, 0, 5, 5);
	expect_site(offset(&m, 0, 5), TEXT_PATCH, 5, 0, 5, 5);
	/* lock incl is 3 bytes, rep movsb 2: prefixes are a part of them */
	expect_site(offset(&m, 0, 7), TEXT_PATCH, 7, 0, 5, 5);
	expect_reason(offset(&m, 0, 6), TEXT_NONE, "inside an instruction");
	expect_reason(offset(&m, 0, 8), TEXT_NONE, "inside an instruction");
	expect_reason(offset(&m, 0, 18), TEXT_NONE, "behind the function's end");
	assert_int_equal(offset(&m, 0, 5).kind, WIRE_STUB_MID);
	/* with the jump behind it */
	expect_site(offset(&m, 0, 10), TEXT_PATCH, 10, 0, 7, 7);
	end(&m);
}

static void test_offset_backwards(void **state)
{
	/* mov %eax,%ecx; mov %ecx,%edx; inc %eax; L: inc %ecx; jne L; ret: only the bytes before it
	 * are free */
	struct made m = make(CODE("\x89\xc1\x89\xca\xff\xc0\xff\xc1\x75\xfc\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 11)));

	begin(&m);
	expect_site(offset(&m, 0, 4), TEXT_PATCH, 0, 4, 6, 6);
	expect_site(offset(&m, 0, 6), TEXT_PATCH, 6, 0, 5, 5);
	end(&m);
}

/* --- returns --- */

static void test_returns(void **state)
{
	/* test %edi,%edi; je 1f; pop %rbx; pop %r12; pop %r13; ret; 1: xor %eax,%eax; pop %rbx; ret
	 * $8; 2 bytes of padding */
	struct made m = make(CODE("\x85\xff\x74\x06\x5b\x41\x5c\x41\x5d\xc3\x31\xc0\x5b\xc2\x08\0"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 16)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	/* pops before the ret: they run before the probe */
	expect_site(exits[0], TEXT_PATCH, 5, 4, 5, 5);
	assert_int_equal(exits[0].kind, WIRE_STUB_RETURN);
	/* ret $8 is 3 bytes, nops follow */
	expect_site(exits[1], TEXT_PATCH, 13, 0, 5, 3);
	end(&m);
}

static void test_returns_je_target(void **state)
{
	/* test; je 1f; inc %eax; 1: ret and g directly behind it: the ret is a branch target,
	 * so its probe is at the branch and behind the instruction before it.
	 * h: je 1f; 1: ret: one instruction, nothing before it has room */
	struct made m =
		make(CODE("\x85\xff\x74\x02\xff\xc0\xf3\xc3\x31\xc0\xc3\x90"
			  "\x74\x00\xc3\x31\xc0\xc3"),
		     NULL, 0,
		     SYMBOLS(FUNC("f", 0, 8), FUNC("g", 8, 3), FUNC("h", 12, 3), FUNC("k", 15, 3)));
	struct text_site *v;
	uint32_t n;

	begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	for (int i = 0; i < 2; i++) {
		expect_site(exits[i], TEXT_PATCH, 0, i ? 6 : 2, 6, 6);
		assert_int_equal(exits[i].kind, WIRE_STUB_RETURN);
		assert_true(exits[i].split.start == T + 6 && text_site_point(&exits[i]) == T + 6);
		assert_int_equal(exits[i].split.len, 2);
		assert_memory_equal(exits[i].split.bytes, "\xf3\xc3", 2);
	}
	assert_true(text_offset_split(m.text, T, 6, &v, &n));
	assert_int_equal(n, 2);
	assert_int_equal(v[0].kind, WIRE_STUB_ENTRY);
	free(v);
	assert_false(text_offset_split(m.text, T, 4, &v, &n));
	assert_int_equal(n, 0);
	assert_int_equal(returns(&m, 12), 1);
	expect_site(exits[0], TEXT_TRAP, 14, 0, 1, 1);
	assert_non_null(strstr(exits[0].reason, "branch"));
	end(&m);
}

static void test_returns_taken_address(void **state)
{
	/* as f above, with a pointer to the ret in the data, through which code may jump
	 * there */
	const uint64_t word = T + 6;
	struct made m = make(CODE("\x85\xff\x74\x02\xff\xc0\xf3\xc3\x31\xc0\xc3"), &word,
			     sizeof(word), SYMBOLS(FUNC("f", 0, 8), FUNC("g", 8, 3)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_TRAP, 6, 0, 2, 2);
	end(&m);
}

static void test_returns_after_call(void **state)
{
	/* call g; ret; g directly behind: the call is never displaced with the ret */
	struct made m = make(CODE("\xe8\x01\0\0\0\xc3\x31\xc0\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 6), FUNC("g", 6, 3)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_TRAP, 5, 0, 1, 1);
	end(&m);
}

static void test_tails(void **state)
{
	/* f: test; je g; jne h (short); bnd jmp *(%rip); h: jmp f; g: ret */
	struct made m =
		make(CODE("\x85\xff\x0f\x84\x18\0\0\0\x75\x0f\xf2\xff\x25\0\x20\0\0\x90\x90\x90"
			  "\x90\x90\x90\x90\x90\xe9\xe2\xff\xff\xff\x90\x90\xc3"),
		     NULL, 0, SYMBOLS(FUNC("f", 0, 17), FUNC("h", 25, 5), FUNC("g", 32, 1)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 3);
	expect_site(exits[0], TEXT_PATCH, 2, 0, 6, 6);
	expect_site(exits[1], TEXT_PATCH, 8, 0, 9, 9);
	expect_site(exits[2], TEXT_PATCH, 10, 0, 7, 7);
	for (int i = 0; i < 3; i++)
		assert_int_equal(exits[i].kind, WIRE_STUB_TAIL);
	assert_int_equal(returns(&m, 25), 1);
	expect_site(exits[0], TEXT_PATCH, 25, 0, 5, 5);
	end(&m);
}

/* The function g, whose only way in is a jump of f: its return is f's. */
static void test_sole(void **state)
{
	/* f: test; je g; mov $1,%eax; ret.  g: mov $2,%eax; ret.  h: a way into g, or none */
	static const struct {
		const char *h;
		bool local, sole;
	} cases[] = {
		{ "\xb8\x03\0\0\0\xc3", true, true },        /* mov $3,%eax; ret */
		{ "\xb8\x03\0\0\0\xc3", false, false },      /* other objects may call it */
		{ "\xe8\xeb\xff\xff\xff\xc3", true, false }, /* call g; ret */
		{ "\xe9\xeb\xff\xff\xff\xc3", true, false }, /* jmp g */
		{ "\xf2\xe9\xea\xff\xff\xff", true, false }, /* bnd jmp g */
		{ "\xeb\xee\x90\x90\x90\xc3", true, false }, /* jmp g, short */
		{ "\x0f\x84\xed\xff\xff\xff", true, false }, /* je g+3 */
		{ "\x8d\x05\xea\xff\xff\xff", true, false }, /* lea g(%rip),%eax */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char code[48];
		struct made m;

		memset(code, 0x90, sizeof(code));
		memcpy(code, "\x85\xff\x0f\x84\x08\0\0\0\xb8\x01\0\0\0\xc3", 14);
		memcpy(code + 16, "\xb8\x02\0\0\0\xc3", 6);
		memcpy(code + 32, cases[i].h, 6);
		m = cases[i].local
			    ? make(code, sizeof(code), NULL, 0,
				   SYMBOLS(FUNC("f", 0, 14), LOCAL("g", 16, 6), FUNC("h", 32, 6)))
			    : make(code, sizeof(code), NULL, 0,
				   SYMBOLS(FUNC("f", 0, 14), FUNC("g", 16, 6), FUNC("h", 32, 6)));
		begin(&m);
		assert_int_equal(returns(&m, 0), 2);
		if (cases[i].sole) {
			assert_int_equal(exits[0].kind, WIRE_STUB_RETURN);
			assert_int_equal(text_site_point(&exits[0]), T + 13);
			assert_int_equal(exits[1].kind, WIRE_STUB_RETURN);
			assert_int_equal(text_site_point(&exits[1]), T + 21);
		} else {
			assert_int_equal(exits[0].kind, WIRE_STUB_TAIL);
			assert_int_equal(text_site_point(&exits[0]), T + 2);
			assert_int_equal(text_site_point(&exits[1]), T + 13);
		}
		end(&m);
	}
}

static void test_tail_pointer(void **state)
{
	/* f: mov 8(%rdi),%rax; notrack jmp *%rax.  g: jmp *%rsi (an argument); nops */
	struct made m = make(CODE("\x48\x8b\x47\x08\x3e\xff\xe0\x90\xff\xe6"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 7), FUNC("g", 8, 2)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_PATCH, 0, 4, 7, 7);
	assert_int_equal(exits[0].kind, WIRE_STUB_TAIL);
	assert_int_equal(returns(&m, 8), 1);
	expect_site(exits[0], TEXT_PATCH, 8, 0, 5, 2);
	end(&m);
}

static void test_leaf(void **state)
{
	/* f: test; je 1f; inc %eax; 1: ret.  g: call f; ret.  h: jmp f.  k: jmp *%rsi.  m: je f; ret */
	struct made m = make(CODE("\x85\xff\x74\x02\xff\xc0\xf3\xc3\xe8\xf3\xff\xff\xff\xc3\x90\x90"
				  "\xe9\xeb\xff\xff\xff\x90\x90\x90\xff\xe6\x90\x90\x90\x90\x90\x90"
				  "\x74\xde\xc3"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 8), FUNC("g", 8, 6), FUNC("h", 16, 5),
				     FUNC("k", 24, 2), FUNC("m", 32, 3)));

	begin(&m);
	assert_true(text_is_leaf(m.text, T));
	for (uint32_t at = 8; at <= 32; at += 8)
		assert_false(text_is_leaf(m.text, T + at));
	end(&m);
}

static void test_shared_tail(void **state)
{
	/* f jumps into the middle of g, which has no symbol there */
	struct made m = make(CODE("\xe9\x05\0\0\0\x90\x90\x90\x31\xc0\x31\xc9\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 5), FUNC("g", 8, 5)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	assert_int_equal(exits[0].mode, TEXT_TRAP);
	assert_non_null(strstr(exits[0].reason, "middle"));
	end(&m);
}

static void test_never(void **state)
{
	/* f: call g; ud2.  h: falls through into k */
	struct made m = make(CODE("\xe8\x0b\0\0\0\x0f\x0b\x90\x31\xc0\x31\xc9\x90\x90\x90\x90\xf4"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 7), FUNC("h", 8, 4), FUNC("k", 12, 5)));

	begin(&m);
	assert_int_equal(returns(&m, 0), -1);
	assert_non_null(strstr(exits_reason, "never returns"));
	assert_int_equal(returns(&m, 8), -1);
	assert_non_null(strstr(exits_reason, "continues into"));
	end(&m);
}

/* A function of 17 MB is not decoded. Its bytes may be short branches into a function near it. */
static void test_too_large(void **state)
{
	enum { LARGE = 17 << 20, AT = 0x20 };
	struct made m = make(CODE("\x55\x48\x89\xe5\x5d\xc3"), NULL, 0,
			     SYMBOLS(FUNC("small", 0, 6), FUNC("large", AT, LARGE)));
	Elf64_Phdr *p = (Elf64_Phdr *)(void *)(m.e.image + sizeof(Elf64_Ehdr));
	const size_t before = m.e.size;

	p[0].p_offset = before;
	p[0].p_filesz = p[0].p_memsz = AT + LARGE;
	p[1].p_type = PT_NULL; /* it would lie within */
	m.e.size += AT + LARGE;
	m.e.image = xrealloc(m.e.image, m.e.size);
	memset(m.e.image + before, 0x90, AT + LARGE);
	memcpy(m.e.image + before, "\x55\x48\x89\xe5\x5d\xc3", 6);
	memcpy(m.e.image + before + AT, "\xeb\xdf", 2); /* jmp small + 1 */
	begin(&m);
	expect_reason(entry(&m, AT), TEXT_NONE, "larger than 16 MB");
	expect_reason(offset(&m, AT, 5), TEXT_NONE, "larger than 16 MB");
	assert_int_equal(returns(&m, AT), -1);
	assert_non_null(strstr(exits_reason, "larger than 16 MB"));
	assert_int_equal(entry(&m, 0).mode, TEXT_TRAP);
	end(&m);
}

static void test_cold(void **state)
{
	/* f: test; jne f.cold (not an exit); 1: ret.  f.cold: inc; je 1b (back); mov..; ret: an
	 * exit of f.
	 * The ret to which the cold part jumps cannot be displaced with what is before it. Its
	 * probe is behind that, and at the jump. */
	struct made m = make(CODE("\x85\xff\x0f\x85\x18\0\0\0\x89\xc1\x89\xc1\xc3\xc3\x90\x90"
				  "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
				  "\xff\xc0\x0f\x84\xe4\xff\xff\xff\x89\xc1\x89\xc1\xc3"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 13), FUNC("g", 13, 1), FUNC("f.cold", 32, 13)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 3);
	expect_site(exits[0], TEXT_PATCH, 2, 10, 10, 10);
	expect_site(exits[1], TEXT_PATCH, 34, 0, 6, 6);
	assert_true(text_site_point(&exits[0]) == T + 12 && text_site_point(&exits[1]) == T + 12);
	assert_true(exits[2].addr + exits[2].at == T + 44 && !exits[2].split.ret);
	end(&m);
}

static void test_cold_jumps_back(void **state)
{
	/* to the last mov before the ret */
	struct made m = make(CODE("\x85\xff\x0f\x85\x18\0\0\0\x89\xc1\x89\xc1\xc3\xc3\x90\x90"
				  "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
				  "\xff\xc0\xe9\xe3\xff\xff\xff"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 13), FUNC("g", 13, 1), FUNC("f.cold", 32, 7)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	expect_site(exits[0], TEXT_PATCH, 2, 8, 8, 8);
	expect_site(exits[1], TEXT_PATCH, 34, 0, 5, 5);
	assert_true(exits[0].split.start == T + 10 && exits[0].split.ret == T + 12);
	assert_memory_equal(exits[1].split.bytes, "\x89\xc1\xc3", 3);
	end(&m);
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static void test_landing_pad(void **state)
{
	/* call g; mov %eax,%ecx; 7: inc %eax; 9: inc %ecx; ret; g: ret. The exception table leads
	 * from the call to 9 */
	static const uint8_t cie[] = { 1, 'z',  'L',  'R',  0, 1, 0x78, 16,
				       2, 0x1b, 0x1b, 0x0c, 7, 8, 0x90, 1 };
	static const uint8_t lsda[] = { 0xff, 0xff, 1, 4, 0, 5, 9, 0 };
	enum { FDE = 24, LSDA = 64 };

	for (int has_pad = 0; has_pad < 2; has_pad++) {
		uint8_t data[LSDA + sizeof(lsda)] = { 0 };
		struct made m;
		Elf64_Shdr *sh;

		put32(data, 4 + sizeof(cie));
		memcpy(data + 8, cie, sizeof(cie));
		put32(data + FDE, 20);
		put32(data + FDE + 4, FDE + 4);
		put32(data + FDE + 8, T - (D + FDE + 8));
		put32(data + FDE + 12, 12);
		data[FDE + 16] = 4;
		put32(data + FDE + 17, has_pad ? LSDA - (FDE + 17) : 0);
		memcpy(data + LSDA, lsda, sizeof(lsda));
		m = make(CODE("\xe8\x07\0\0\0\x89\xc1\xff\xc0\xff\xc1\xc3\xc3"), data, sizeof(data),
			 SYMBOLS(FUNC("f", 0, 12), FUNC("g", 12, 1)));
		for (size_t i = 0; i + 13 < m.e.size; i++)
			if (!memcmp(m.e.image + i, ".stapsdt.base", 13))
				memcpy(m.e.image + i, ".eh_frame", 10);
		sh = (Elf64_Shdr *)(void *)(m.e.image + m.e.size) - 9;
		sh[7].sh_addr = D;
		sh[7].sh_offset = ELF_DATA_OFF;
		sh[7].sh_size = LSDA;
		begin(&m);
		assert_int_equal(returns(&m, 0), 1);
		if (has_pad)
			expect_site(exits[0], TEXT_TRAP, 11, 0, 1, 1);
		else
			expect_site(exits[0], TEXT_PATCH, 7, 4, 5, 5);
		end(&m);
	}
}

static void test_lock_skip(void **state)
{
	/* test %eax,%eax; je behind the lock; lock cmpxchg %ecx,(%rdi); ret, g behind: the C
	 * library's, when alone */
	struct made m = make(CODE("\x85\xc0\x74\x01\xf0\x0f\xb1\x0f\xc3\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 9), FUNC("g", 9, 1)));
	struct text_stats st;

	begin(&m);
	expect_reason(entry(&m, 0), TEXT_TRAP, "a branch leads into");
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_TRAP, 8, 0, 1, 1);
	text_stats(m.text, &st);
	assert_int_equal(st.irregular, 0);
	end(&m);
}

/* --- system calls --- */

static void test_syscalls(void **state)
{
	/* f: mov $39,%eax; syscall; cmp $-4096,%rax; ret.  g: xor %eax,%eax; mov %rdi,%rsi; syscall; ret + h.
	 * h: mov %edi,%eax; syscall; ret */
	struct made m = make(
		CODE("\xb8\x27\0\0\0\x0f\x05\x48\x3d\0\xf0\xff\xff\xc3\x31\xc0\x48\x89\xfe\x0f\x05\xc3"
		     "\x89\xf8\x0f\x05\xc3"),
		NULL, 0, SYMBOLS(FUNC("f", 0, 14), FUNC("g", 14, 8), FUNC("h", 22, 5)));
	struct text_syscall *v;
	uint32_t n;

	begin(&m);
	assert_null(text_syscalls(m.text, 0, &v, &n));
	assert_int_equal(n, 3);
	assert_int_equal(v[0].number, 39);
	assert_true(v[0].addr == T + 5);
	expect_site(v[0].site, TEXT_PATCH, 5, 0, 8, 8);
	assert_int_equal(v[1].number, 0);
	/* 3 bytes with the ret: the mov before it comes along */
	expect_site(v[1].site, TEXT_PATCH, 16, 3, 5, 5);
	assert_int_equal(v[2].number, -1);
	/* with the instruction left in place: the mov of the number, the comparison; of g both
	 * movs, no room behind; of h too little before */
	expect_site(v[0].before, TEXT_PATCH, 0, 5, 5, 5);
	expect_site(v[0].behind, TEXT_PATCH, 7, 0, 6, 6);
	expect_site(v[1].before, TEXT_PATCH, 14, 5, 5, 5);
	assert_int_equal(v[1].behind.mode, TEXT_NONE);
	assert_int_equal(v[2].before.mode, TEXT_NONE);
	assert_non_null(v[2].before.reason);
	free(v);
	assert_null(text_syscalls(m.text, T + 14, &v, &n));
	assert_int_equal(n, 1);
	free(v);
	end(&m);
}

/* A branch leads to the call, past the instructions before it, and another leads behind it: neither
 * place can be used. */
static void test_syscall_branched(void **state)
{
	/* f: jmp 1f; mov $39,%eax; 1: syscall; 2: cmp $-4096,%rax; ja 2b; ret; padding */
	struct made m =
		make(CODE("\xeb\x05\xb8\x27\0\0\0\x0f\x05\x48\x3d\0\xf0\xff\xff\x77\xf8\xc3"), NULL,
		     0, SYMBOLS(FUNC("f", 0, 18)));
	struct text_syscall *v;
	uint32_t n;

	begin(&m);
	assert_null(text_syscalls(m.text, 0, &v, &n));
	assert_int_equal(n, 1);
	assert_int_equal(v[0].before.mode, TEXT_NONE);
	assert_int_equal(v[0].behind.mode, TEXT_NONE);
	free(v);
	end(&m);
}

/* A number composed of parts, as in musl's __clone(): al replaces the lowest byte of eax. */
static void test_syscall_al(void **state)
{
	/* xor %eax,%eax; mov $56,%al; mov %rdi,%r11; syscall; mov $257,%eax; mov $2,%al; syscall;
	 * mov $3,%al; syscall; ret */
	struct made m = make(CODE("\x31\xc0\xb0\x38\x49\x89\xfb\x0f\x05\xb8\x01\x01\0\0\xb0\x02"
				  "\x0f\x05\xb0\x03\x0f\x05\xc3"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 23)));
	struct text_syscall *v;
	uint32_t n;

	begin(&m);
	assert_null(text_syscalls(m.text, 0, &v, &n));
	assert_int_equal(n, 3);
	assert_int_equal(v[0].number, 56);
	assert_int_equal(v[1].number, 0x102);
	assert_int_equal(v[2].number, -1);
	free(v);
	end(&m);
}

/* --- joining --- */

static void test_join(void **state)
{
	/* f: xor %eax,%eax; inc %eax; ret; padding: entry and return in the same bytes */
	struct made m = make(CODE("\x31\xc0\xff\xc0\xc3\x90\x90\x90\x89\xc1\xb8\x01\0\0\0\xc3"),
			     NULL, 0, SYMBOLS(FUNC("f", 0, 5), FUNC("g", 8, 8)));
	struct text_site a, b, j;

	begin(&m);
	a = entry(&m, 0);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(a, TEXT_PATCH, 0, 0, 5, 5);
	/* the padding's last byte belongs to no one: ret + 3 nops are 4 */
	expect_site(exits[0], TEXT_PATCH, 2, 2, 5, 3);
	assert_true(text_join(&a, &exits[0], &j));
	expect_site(j, TEXT_PATCH, 0, 0, 7, 5);
	assert_true(text_join(&exits[0], &a, &j));
	expect_site(j, TEXT_PATCH, 0, 4, 7, 5);
	a = entry(&m, 8);
	assert_false(text_join(&a, &exits[0], &j));
	/* overlapping offsets */
	b = offset(&m, 8, 2);
	assert_true(text_join(&a, &b, &j));
	expect_site(j, TEXT_PATCH, 8, 0, 7, 7);
	assert_true(text_join(&b, &a, &j));
	expect_site(j, TEXT_PATCH, 8, 2, 7, 7);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry),
		cmocka_unit_test(test_entry_endbr_nops),
		cmocka_unit_test(test_entry_short),
		cmocka_unit_test(test_entry_padding_is_code),
		cmocka_unit_test(test_entry_calls),
		cmocka_unit_test(test_entry_loop_head),
		cmocka_unit_test(test_entry_far_branch),
		cmocka_unit_test(test_entry_data_word),
		cmocka_unit_test(test_entry_data_in_text),
		cmocka_unit_test(test_entry_relocation),
		cmocka_unit_test(test_entry_fixed_immediate),
		cmocka_unit_test(test_entry_fixed_displacement),
		cmocka_unit_test(test_entry_stuck),
		cmocka_unit_test(test_entry_not_called),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_offset_backwards),
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_returns_je_target),
		cmocka_unit_test(test_returns_taken_address),
		cmocka_unit_test(test_returns_after_call),
		cmocka_unit_test(test_tails),
		cmocka_unit_test(test_sole),
		cmocka_unit_test(test_tail_pointer),
		cmocka_unit_test(test_shared_tail),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_cold),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_cold_jumps_back),
		cmocka_unit_test(test_landing_pad),
		cmocka_unit_test(test_lock_skip),
		cmocka_unit_test(test_leaf),
		cmocka_unit_test(test_syscalls),
		cmocka_unit_test(test_syscall_branched),
		cmocka_unit_test(test_syscall_al),
		cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
