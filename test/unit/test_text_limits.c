/* Machine code written by hand: places that only code far away, or a table beside the code,
 * forbids, files that would take too long, and files that are refused as a whole. */
#include "text_make.h"

#include "program/text/text_private.h"

#include <fcntl.h>

/* cmp $3,%edi; ja 9f; lea table(%rip),%rdx; mov %edi,%edi; movslq (%rdx,%rdi,4),%rax; add
 * %rdx,%rax; notrack jmp *%rax; 24: jmp f.cold; nop; nop; 9: ret */
static const char switch_code[] =
	"\x83\xff\x03\x77\x1a\x48\x8d\x15\xf4\x21\0\0\x89\xff\x48\x63\x04\xba"
	"\x48\x01\xd0\x3e\xff\xe0\xe9\x93\0\0\0\x90\x90\xc3";
/* At COLD: add $1,%edi; mov table(%rip),%eax; ret */
static const char cold_code[] = "\x83\xc7\x01\x8b\x05\x47\x21\0\0\xc3";

enum { COLD = 0xb0 };

static struct made make_cold(const int32_t *table, bool jumps)
{
	char code[0x100];

	memset(code, 0x90, sizeof(code));
	memcpy(code, switch_code, sizeof(switch_code) - 1);
	if (!jumps)
		memset(code + 24, 0x90, 5);
	memcpy(code + COLD, cold_code, sizeof(cold_code) - 1);
	return make(code, sizeof(code), table, 16,
		    SYMBOLS(FUNC("f", 0, 32), FUNC("f.cold", COLD, 10)));
}

static void test_cold_part(void **state)
{
	const int32_t into[] = { T + 24 - D, T + COLD - D, T + COLD + 3 - D, T + 24 - D };
	const int32_t start[] = { T + 24 - D, T + COLD - D, T + 24 - D, T + 24 - D };
	struct made m = make_cold(into, true);

	/* The part is asked for first. Its function has the table that leads into it. */
	begin(&m);
	expect_reason(entry(&m, COLD), TEXT_TRAP, "a branch leads into");
	end(&m);
	m = make_cold(start, true);
	begin(&m);
	expect_site(entry(&m, COLD), TEXT_PATCH, COLD, 0, 9, 9);
	end(&m);
	/* Only the table leads to the part: it is a part all the same, with its own return. */
	m = make_cold(into, false);
	begin(&m);
	expect_reason(entry(&m, COLD), TEXT_TRAP, "a branch leads into");
	expect_site(offset(&m, COLD, 9), TEXT_PATCH, COLD + 9, 0, 5, 1);
	assert_int_equal(returns(&m, 0), 2);
	assert_true(exits[1].addr + exits[1].at == T + COLD + 9 ||
		    exits[1].split.ret == T + COLD + 9);
	end(&m);
}

/* In assembly a table may lead into another function. */
static void test_foreign_label(void **state)
{
	const int32_t into[] = { T + 24 - D, T + COLD + 3 - D, T + 24 - D, T + 24 - D };
	char code[0x100];
	struct made m;

	memset(code, 0x90, sizeof(code));
	memcpy(code, switch_code, sizeof(switch_code) - 1);
	memset(code + 24, 0x90, 5);
	memcpy(code + COLD, cold_code, sizeof(cold_code) - 1);
	/* 0xa0: call b */
	memcpy(code + 0xa0, "\xe8\x0b\0\0\0\xc3", 6);
	m = make(code, sizeof(code), into, sizeof(into),
		 SYMBOLS(FUNC("a", 0, 32), FUNC("b", COLD, 10), FUNC("c", 0xa0, 6)));
	begin(&m);
	expect_reason(entry(&m, COLD), TEXT_TRAP, "a branch leads into");
	assert_int_equal(returns(&m, 0), -1);
	assert_non_null(strstr(exits_reason, "middle of other code"));
	end(&m);
}

/* Assembly that takes an address before its own table takes one in the table before. */
static void test_biased_table(void **state)
{
	/* f's table, whose last entry is the one in the middle of the part, and behind it
	 * another */
	const int32_t words[] = { T + 24 - D, T + 24 - D, T + 24 - D, T + 26 - D, 0x7000000 };
	char code[0x100];
	struct made m;
	int n;

	memset(code, 0x90, sizeof(code));
	memcpy(code, switch_code, sizeof(switch_code) - 1);
	/* 24: mov %eax,%ecx; 26: inc %eax; 28: ret */
	memcpy(code + 24, "\x89\xc1\xff\xc0\xc3", 5);
	/* 0x40: lea D+8(%rip),%rdx; ret */
	memcpy(code + 0x40, "\x48\x8d\x15\xc1\x21\0\0\xc3", 8);
	m = make(code, sizeof(code), words, sizeof(words),
		 SYMBOLS(FUNC("f", 0, 32), FUNC("g", 0x40, 8)));
	begin(&m);
	n = returns(&m, 0);
	assert_true(n >= 2);
	for (int i = 0; i < n; i++)
		assert_false(exits[i].addr < T + 26 && exits[i].addr + exits[i].len > T + 26);
	end(&m);
}

/* Behind f's table lies g's, whose first word, read as f's, leads into a cold part. */
static void test_word_behind(void **state)
{
	const int32_t words[] = { T + 24 - D, T + 24 - D, T + 24 - D, T + 24 - D, T + COLD - D };
	/* test %edi,%edi; je 0 (8: its displacement); ret */
	static const char part[] = "\x85\xff\x0f\x84\0\0\0\0\xc3";
	const int32_t g_middle = 0x47 - (COLD + 8), f_middle = 26 - (COLD + 8);

	for (int kind = 0; kind < 3; kind++) {
		char code[0x100];
		struct made m;

		memset(code, 0x90, sizeof(code));
		memcpy(code, switch_code, sizeof(switch_code) - 1);
		memset(code + 24, 0x90, 5);
		/* 0x40: lea D+16(%rip),%rdx; 0x47: mov %eax,%ecx; ret */
		memcpy(code + 0x40, "\x48\x8d\x15\xc9\x21\0\0\x89\xc1\xc3", 10);
		memcpy(code + COLD, part, sizeof(part) - 1);
		memcpy(code + COLD + 4, kind ? &f_middle : &g_middle, 4);
		if (kind == 2)
			memset(code + COLD + 2, 0x90, 6);
		m = make(code, sizeof(code), words, sizeof(words),
			 SYMBOLS(FUNC("f", 0, 32), FUNC("g", 0x40, 10), FUNC("x.cold", COLD, 9)));
		begin(&m);
		/* g's, f's, and one that may be anybody's */
		assert_int_equal(returns(&m, 0), kind == 0 ? 1 : kind == 1 ? 2 : -1);
		end(&m);
	}
}

/* An address in the table is taken, far in front of the entries that lead into the part. */
static void test_long_table(void **state)
{
	enum { ENTRIES = 80, FILE_OFF = 0x1400 };
	int32_t words[ENTRIES];
	char code[0x100];
	Elf64_Phdr *p;
	struct made m;

	for (int i = 0; i < ENTRIES; i++)
		words[i] = i < 70 ? T + 24 - D : T + COLD + 3 - D;
	memset(code, 0x90, sizeof(code));
	memcpy(code, switch_code, sizeof(switch_code) - 1);
	memset(code + 24, 0x90, 5);
	memcpy(code + COLD, cold_code, sizeof(cold_code) - 1);
	/* 0x40: lea D+4(%rip),%rdx; ret */
	memcpy(code + 0x40, "\x48\x8d\x15\xbd\x21\0\0\xc3", 8);
	m = make(code, sizeof(code), NULL, 0,
		 SYMBOLS(FUNC("f", 0, 32), FUNC("g", 0x40, 8), FUNC("f.cold", COLD, 10)));
	m.e.image = xrealloc(m.e.image, FILE_OFF + sizeof(words));
	assert_true(m.e.size < FILE_OFF);
	memset(m.e.image + m.e.size, 0, FILE_OFF - m.e.size);
	memcpy(m.e.image + FILE_OFF, words, sizeof(words));
	m.e.size = FILE_OFF + sizeof(words);
	p = (void *)(m.e.image + sizeof(Elf64_Ehdr));
	p[1].p_offset = FILE_OFF;
	p[1].p_filesz = p[1].p_memsz = sizeof(words);
	begin(&m);
	expect_reason(entry(&m, COLD), TEXT_TRAP, "a branch leads into");
	end(&m);
}

static void test_restartable(void **state)
{
	/* f: mov %rdi,%rax; 3: mov %rsi,(%rdx); 6: mov $1,%ecx; 11: mov $2,%ecx; 16: ret. The first
	 * two are a sequence. Behind f four bytes that belong to its end, and g: the same code */
	static const char code[] = "\x48\x89\xf8\x48\x89\x32\xb9\x01\0\0\0\xb9\x02\0\0\0\xc3\x90";
	const uint64_t record[] = { 0, T, 6, T + 0x40 };
	struct made m = make(CODE(code), record, sizeof(record), SYMBOLS(FUNC("f", 0, 17)));
	Elf64_Ehdr *h = (void *)m.e.image;
	Elf64_Shdr *s = (void *)(m.e.image + h->e_shoff);
	char *names = (char *)m.e.image + s[h->e_shstrndx].sh_offset;

	begin(&m);
	expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 6, 6);
	end(&m);
	m = make(CODE(code), record, sizeof(record), SYMBOLS(FUNC("f", 0, 17)));
	h = (void *)m.e.image;
	s = (void *)(m.e.image + h->e_shoff);
	names = (char *)m.e.image + s[h->e_shstrndx].sh_offset;
	strcpy(names + s[7].sh_name, "__rseq_cs");
	s[2].sh_name = s[7].sh_name;
	begin(&m);
	expect_reason(entry(&m, 0), TEXT_NONE, "a restartable sequence");
	expect_reason(offset(&m, 0, 3), TEXT_NONE, "a restartable sequence");
	expect_site(offset(&m, 0, 6), TEXT_PATCH, 6, 0, 5, 5);
	end(&m);
}

/* Writes a file with functions that all reach from their start to the end of its text. code: its
 * text; NULL: a hole */
static struct object *make_overlapping(uint64_t size, uint32_t nsymbols, const void *code)
{
	struct elf_make e = elf_make(NULL, 0, 0);
	Elf64_Ehdr *h = (void *)e.image;
	Elf64_Phdr *p = (void *)(e.image + sizeof(*h));
	Elf64_Shdr *s = (void *)(e.image + h->e_shoff);
	cleanup_free Elf64_Sym *symbols = xcalloc(nsymbols, sizeof(*symbols));
	char path[] = "/tmp/descry-overlapping-XXXXXX";
	struct object *o;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (uint32_t i = 0; i < nsymbols; i++)
		symbols[i] = (Elf64_Sym){ .st_name = 1 + i % 5, /* of those of sections */
					  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					  .st_shndx = 1,
					  .st_value = 0x100000 + i * 2ull,
					  .st_size = size - i * 2ull };
	p[0].p_offset = p[0].p_vaddr = s[1].sh_offset = s[1].sh_addr = 0x100000;
	p[0].p_filesz = p[0].p_memsz = s[1].sh_size = size;
	p[1].p_type = PT_NULL;
	s[3].sh_offset = 0x100000 + size;
	s[3].sh_link = h->e_shstrndx;
	s[3].sh_size = nsymbols * sizeof(*symbols);
	assert_int_equal(pwrite(fd, e.image, e.size, 0), e.size);
	assert_int_equal(pwrite(fd, symbols, s[3].sh_size, (off_t)s[3].sh_offset), s[3].sh_size);
	if (code)
		assert_int_equal(pwrite(fd, code, size, 0x100000), size);
	assert_null(object_open(path, &o));
	unlink(path);
	close(fd);
	free(e.image);
	return o;
}

static void test_overlapping(void **state)
{
	struct object *o = make_overlapping(15 << 20, 1000, NULL);
	uint32_t none = 0;
	struct text *t;
	struct err *e;

	assert_null(text_open(o, &t));
	for (uint32_t i = 0; i < 1000; i++) {
		struct text_site s;

		assert_null(text_entry(t, 0x100000 + i * 2ull, &s));
		none += s.mode == TEXT_NONE && strstr(s.reason, "takes too long");
	}
	/* 79 MB may be decoded, which is five of them. */
	assert_in_range(none, 990, 999);
	text_free(t);
	object_free(o);
	o = make_overlapping(600 << 20, 1, NULL);
	e = text_open(o, &t);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "in a hole of the file"));
	err_free(e);
	object_free(o);
}

/* A function of many indirect jumps takes time for each, not for each pair of them: with that
 * 16 MB would be half an hour. */
static void test_many_jumps(void **state)
{
	static const uint8_t jump[8] = { 0x75, 6, 0xff, 0x25 }; /* jne .+8; jmp *0(%rip) */
	const uint32_t n = 400000, front = 2;                   /* symbol 0 of a table is none */
	uint8_t *code = xmalloc(front + n * sizeof(jump));
	struct object *o;
	struct text *t;
	struct text_site *sites;
	const char *reason;
	uint32_t nsites;

	(void)state;
	memset(code, 0x90, front);
	for (uint32_t i = 0; i < n; i++)
		memcpy(code + front + i * sizeof(jump), jump, sizeof(jump));
	code[front + n * sizeof(jump) - 1] = 0xc3;
	o = make_overlapping(front + n * sizeof(jump), 2, code);
	free(code);
	assert_null(text_open(o, &t));
	assert_null(text_returns(t, 0x100000 + front, &sites, &nsites, &reason));
	assert_non_null(strstr(reason, "takes too long"));
	free(sites);
	text_free(t);
	object_free(o);
}

/* A function of many returns without room, to each of which a branch leads: each finds its branch
 * at once. By looking at all of them, 2 MB would take a quarter of an hour. */
static void test_many_returns(void **state)
{
	static const uint8_t unit[5] = { 0x74, 2, 0x74, 0, 0xc3 }; /* jz to the ret; jz; ret */
	const uint32_t n = 400000;
	uint8_t *code = xmalloc(n * sizeof(unit));
	struct object *o;
	struct text *t;
	struct text_site *sites;
	const char *reason;
	uint32_t nsites;

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		memcpy(code + i * sizeof(unit), unit, sizeof(unit));
	o = make_overlapping(n * sizeof(unit), 2, code); /* symbol 0 is none */
	free(code);
	assert_null(text_open(o, &t));
	assert_null(text_returns(t, 0x100002, &sites, &nsites, &reason));
	assert_int_equal(nsites, n);
	free(sites);
	text_free(t);
	object_free(o);
}

/* The function around an address is found at once, however many symbols lie in it. */
static void test_many_symbols(void **state)
{
	const uint32_t n = 400000;
	uint8_t *code = xmalloc(2ull * n);
	struct object *o;
	struct text *t;

	(void)state;
	memset(code, 0x90, 2ull * n);
	o = make_overlapping(2ull * n, n, code);
	free(code);
	assert_null(text_open(o, &t));
	for (uint32_t i = 1; i < n; i++) /* symbol 0 of a table is none */
		assert_int_equal(text_range_cover(t, 0x100000 + 2ull * i)->start, 0x100002);
	assert_null(text_range_cover(t, 0x100000));
	assert_null(text_range_cover(t, 0x100000 + 2ull * n));
	text_free(t);
	object_free(o);
}

/* Decoded functions are kept as far as they have 4 million instructions together. */
static void test_kept_functions(void **state)
{
	const uint32_t size = 3 << 20, n = 6;
	uint8_t *code = xmalloc(size);
	uint64_t kept = 0;
	struct object *o;
	struct text *t;

	(void)state;
	memset(code, 0x90, size);
	o = make_overlapping(size, n, code);
	free(code);
	assert_null(text_open(o, &t));
	for (uint32_t i = 1; i < n; i++) {
		struct text_site s;

		assert_null(text_entry(t, 0x100000 + i * 2ull, &s));
		assert_string_not_equal(s.reason ?: "",
					"to decode the functions of this file takes too long");
	}
	for (uint32_t i = 0; i < CODE_CACHE; i++)
		kept += t->cache[i] ? t->cache[i]->insns.n : 0;
	assert_in_range(kept, size - 2 * n, CODE_INSNS);
	text_free(t);
	object_free(o);
}

/* Only the runtime of OCaml 5 defines this name. */
static void test_ocaml(void **state)
{
	static const char *const names[] = { "caml_c_call", "caml_c_call_stack_args" };

	for (uint32_t i = 0; i < 2; i++) {
		struct made m = make(CODE("\x55\x48\x89\xe5\xc9\xc3\x90\x90"
					  "\xf4\x90\x90\x90\x90\x90\x90\xc3"),
				     NULL, 0, SYMBOLS(FUNC("f", 0, 6), FUNC(names[i], 8, 8)));

		begin(&m);
		if (i)
			expect_reason(entry(&m, 0), TEXT_NONE, "OCaml 5");
		else
			expect_site(entry(&m, 0), TEXT_PATCH, 0, 0, 5, 5);
		assert_true(!text_refused(m.text) == !i);
		end(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cold_part),    cmocka_unit_test(test_foreign_label),
		cmocka_unit_test(test_word_behind),  cmocka_unit_test(test_long_table),
		cmocka_unit_test(test_biased_table), cmocka_unit_test(test_restartable),
		cmocka_unit_test(test_overlapping),  cmocka_unit_test(test_ocaml),
		cmocka_unit_test(test_many_jumps),   cmocka_unit_test(test_many_returns),
		cmocka_unit_test(test_many_symbols), cmocka_unit_test(test_kept_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
