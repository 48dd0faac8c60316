/* Machine code written by hand: which bytes may be displaced, and that the stubs do what the code
 * did. Each function here once was, or would have been, a crash. */
#include "unit.h"

#include <sys/mman.h>

#include "base/mem.h"
#include "elf_make.h"
#include "program/text/text.h"

enum { T = ELF_TEXT_ADDR, D = ELF_DATA_ADDR, DATA_MAX = 0x100 };

struct made {
	struct elf_make e;
	struct object *object;
	struct text *text;
};

/* code at T, data at D; functions by symbols. */
static struct made make(const void *code, uint32_t ncode, const void *data, uint32_t ndata,
			const struct elf_symbol *symbols, uint32_t nsymbols)
{
	struct made m = { .e = elf_make(symbols, nsymbols, 0) };
	Elf64_Phdr *p = (Elf64_Phdr *)(void *)(m.e.image + sizeof(Elf64_Ehdr));

	assert_true(ncode <= ELF_TEXT_SIZE && ndata <= DATA_MAX);
	memcpy(m.e.image + ELF_TEXT_OFF, code, ncode);
	if (ndata)
		memcpy(m.e.image + ELF_DATA_OFF, data, ndata);
	p[1].p_filesz = p[1].p_memsz = DATA_MAX;
	return m;
}

static void begin(struct made *m)
{
	assert_null(object_open_memory("made", m->e.image, m->e.size, &m->object));
	assert_null(text_open(m->object, &m->text));
}

static void end(struct made *m)
{
	text_free(m->text);
	object_free(m->object);
	free(m->e.image);
}

#define FUNC(name, off, size) \
	{ \
		name, T + (off), size, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) \
	}
#define SYMBOLS(...) \
	(const struct elf_symbol[]){ __VA_ARGS__ }, \
		sizeof((const struct elf_symbol[]){ __VA_ARGS__ }) / sizeof(struct elf_symbol)
#define CODE(s) s, sizeof(s) - 1

static struct text_site entry(struct made *m, uint32_t off)
{
	struct text_site s;

	assert_null(text_entry(m->text, T + off, &s));
	return s;
}

static struct text_site offset(struct made *m, uint32_t func, uint32_t off)
{
	struct text_site s;

	assert_null(text_offset(m->text, T + func, off, &s));
	return s;
}

/* The exits of a function; the count, or -1 with a reason. */
static struct text_site exits[16];
static const char *exits_reason;
static int returns(struct made *m, uint32_t off)
{
	struct text_site *v;
	uint32_t n;

	exits_reason = NULL;
	assert_null(text_returns(m->text, T + off, &v, &n, &exits_reason));
	assert_true(n <= 16);
	if (n)
		memcpy(exits, v, n * sizeof(*v));
	free(v);
	assert_true((n == 0) == (exits_reason != NULL));
	return n ? (int)n : -1;
}

static void expect_site(struct text_site s, enum text_mode mode, uint32_t addr, uint32_t at,
			uint32_t len, uint32_t moved)
{
	if (s.mode != mode || s.addr != T + addr || s.at != at || s.len != len || s.moved != moved)
		fail_msg("mode %d addr +0x%lx at %u len %u moved %u (%s)", s.mode,
			 (unsigned long)(s.addr - T), s.at, s.len, s.moved,
			 s.reason ? s.reason : "no reason");
	assert_true((s.reason != NULL) == (mode != TEXT_PATCH));
}

static void expect_reason(struct text_site s, enum text_mode mode, const char *part)
{
	assert_int_equal(s.mode, mode);
	if (!s.reason || !strstr(s.reason, part))
		fail_msg("\"%s\" is not \"%s\"", s.reason ? s.reason : "", part);
}

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
	expect_reason(entry(&m, 24), TEXT_NONE, "can only run where it is");
	expect_site(entry(&m, 32), TEXT_PATCH, 32, 0, 5, 5);
	/* what is behind a call may be displaced; the ret never with the call before it */
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
	expect_reason(entry(&m, 0), TEXT_NONE, "can only run where it is");
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
	/* test; je 1f; inc %eax; 1: ret and g directly behind it: the ret is a branch target */
	struct made m = make(CODE("\x85\xff\x74\x02\xff\xc0\xf3\xc3\x31\xc0\xc3"), NULL, 0,
			     SYMBOLS(FUNC("f", 0, 8), FUNC("g", 8, 3)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_TRAP, 6, 0, 2, 2);
	assert_non_null(strstr(exits[0].reason, "branch"));
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
	assert_non_null(strstr(exits_reason, "runs on"));
	end(&m);
}

static void test_cold(void **state)
{
	/* f: test; jne f.cold (not an exit); 1: ret.  f.cold: inc; je 1b (back); mov..; ret: an exit of f.
	 * A ret to which the cold part jumps cannot be displaced with what is before it. */
	struct made m = make(CODE("\x85\xff\x0f\x85\x18\0\0\0\x89\xc1\x89\xc1\xc3\xc3\x90\x90"
				  "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
				  "\xff\xc0\x0f\x84\xe4\xff\xff\xff\x89\xc1\x89\xc1\xc3"),
			     NULL, 0,
			     SYMBOLS(FUNC("f", 0, 13), FUNC("g", 13, 1), FUNC("f.cold", 32, 13)));

	begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	assert_true(exits[0].addr + exits[0].at == T + 12);
	expect_site(exits[0], TEXT_TRAP, 12, 0, 1, 1);
	assert_true(exits[1].addr + exits[1].at == T + 44);
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
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_TRAP, 12, 0, 1, 1);
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

/* --- indirect jumps --- */

/* cmp $3,%edi; ja 9f; lea table(%rip),%rdx; mov %edi,%edi; movslq (%rdx,%rdi,4),%rax; add
 * %rdx,%rax; notrack jmp *%rax 24: mov %eax,%ecx; 26: inc %eax; 28: ret; 29: inc %eax; 9: ret */
static const char switch_code[] =
	"\x83\xff\x03\x77\x1a\x48\x8d\x15\xf4\x21\0\0\x89\xff\x48\x63\x04\xba"
	"\x48\x01\xd0\x3e\xff\xe0\x89\xc1\xff\xc0\xc3\xff\xc0\xc3\xc3";

static void test_table(void **state)
{
	/* the first entry leads out of the function: it must not end the table */
	int32_t data[] = { 0x7000000, T + 24 - D, T + 29 - D, T + 26 - D };
	struct made m = make(switch_code, 33, data, sizeof(data),
			     SYMBOLS(FUNC("f", 0, 32), FUNC("g", 32, 1)));
	struct text_stats st;

	begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	/* 26 is a target: inc, ret, and the inc behind it stay apart */
	expect_site(exits[0], TEXT_TRAP, 28, 0, 1, 1);
	expect_site(exits[1], TEXT_TRAP, 31, 0, 1, 1);
	text_stats(m.text, &st);
	assert_int_equal(st.unresolved, 0);
	end(&m);
	/* without the entry 26 the ret can be moved with what is before it */
	data[3] = T + 24 - D;
	m = make(switch_code, 33, data, sizeof(data), SYMBOLS(FUNC("f", 0, 32), FUNC("g", 32, 1)));
	begin(&m);
	assert_int_equal(returns(&m, 0), 2);
	expect_site(exits[0], TEXT_PATCH, 24, 4, 5, 5);
	end(&m);
}

static void test_unresolved(void **state)
{
	/* lea (%rdi,%rsi),%rax; jmp *%rax; mov %eax,%ecx; mov $1,%eax; ret; padding */
	struct made m =
		make(CODE("\x48\x8d\x04\x37\x85\xff\x74\x02\xff\xe0\x89\xc1\xb8\x01\0\0\0\xc3"),
		     NULL, 0, SYMBOLS(FUNC("f", 0, 18)));
	struct text_stats st;

	begin(&m);
	/* the entry, and what is one instruction */
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 6, 6);
	expect_site(offset(&m, 0, 12), TEXT_PATCH, 12, 0, 5, 5);
	expect_reason(offset(&m, 0, 10), TEXT_TRAP, "indirect jump");
	assert_int_equal(returns(&m, 0), -1);
	assert_non_null(strstr(exits_reason, "indirect jump"));
	text_stats(m.text, &st);
	assert_int_equal(st.unresolved, 1);
	end(&m);
}

static void test_absolute_table(void **state)
{
	/* not PIE: jmp *table(,%rdi,8); 7: inc %eax; mov %eax,%ecx; 11: inc; ret; the entries are
	 * words of the data */
	uint64_t data[] = { T + 7, T + 11 };
	struct made m = make(CODE("\xff\x24\xfd\0\x34\0\0\xff\xc0\x89\xc1\xff\xc0\xc3\xc3"), data,
			     sizeof(data), SYMBOLS(FUNC("f", 0, 14), FUNC("g", 14, 1)));

	((Elf64_Ehdr *)(void *)m.e.image)->e_type = ET_EXEC;
	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_TRAP, 13, 0, 1, 1);
	end(&m);
	/* the same with functions in the table: tail calls */
	data[0] = data[1] = T + 14;
	m = make(CODE("\xff\x24\xfd\0\x34\0\0\xff\xc0\x89\xc1\xff\xc0\xc3\xc3"), data, sizeof(data),
		 SYMBOLS(FUNC("f", 0, 7), FUNC("g", 14, 1)));
	((Elf64_Ehdr *)(void *)m.e.image)->e_type = ET_EXEC;
	begin(&m);
	assert_int_equal(returns(&m, 0), 1);
	expect_site(exits[0], TEXT_PATCH, 0, 0, 7, 7);
	assert_int_equal(exits[0].kind, WIRE_STUB_TAIL);
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

/* A branch that leads to the call past what lies before it, and one that leads behind it: neither
 * place will do. */
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

/* A number put together from halves, as in musl's __clone(): al replaces the lowest byte of what
 * was there. */
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
	/* who is inside the call goes on with the probe behind it; restarting it means 2 bytes
	 * back */
	assert_memory_equal(run + stub_at - ((stub_size + 15) & ~15u) + stub_moved[2] - 2,
			    "\x0f\x05", 2);
	assert_int_equal(call(0, 0, 0), getpid());
	assert_int_equal(nfired, 2);
	expect_fired(0, 5, 1, WIRE_STUB_MID);
	expect_fired(1, 7, 2, WIRE_STUB_MID);
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
		cmocka_unit_test(test_entry_stuck),
		cmocka_unit_test(test_entry_not_called),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_offset_backwards),
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_returns_je_target),
		cmocka_unit_test(test_returns_after_call),
		cmocka_unit_test(test_tails),
		cmocka_unit_test(test_tail_pointer),
		cmocka_unit_test(test_shared_tail),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_cold),
		cmocka_unit_test(test_cold_jumps_back),
		cmocka_unit_test(test_landing_pad),
		cmocka_unit_test(test_lock_skip),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_unresolved),
		cmocka_unit_test(test_absolute_table),
		cmocka_unit_test(test_syscalls),
		cmocka_unit_test(test_syscall_branched),
		cmocka_unit_test(test_syscall_al),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_run_entry_return),
		cmocka_unit_test(test_run_return_moves_pops),
		cmocka_unit_test(test_run_branches),
		cmocka_unit_test(test_run_mid),
		cmocka_unit_test(test_run_join),
		cmocka_unit_test(test_run_tail_jcc),
		cmocka_unit_test(test_run_call),
		cmocka_unit_test(test_run_syscall),
		cmocka_unit_test(test_stub_errors),
		cmocka_unit_test(test_trap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
