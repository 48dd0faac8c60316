/* ELF reading: images made here, whole, truncated at every length and with bytes flipped; the
 * system's own files, with the symbols of nm. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "elf_make.h"
#include "program/object/object.h"
#include "unit.h"

#define FUNC(bind) (uint8_t)((bind) << 4 | STT_FUNC)

static const struct elf_symbol symbols[] = {
	{ "beta", ELF_TEXT_ADDR + 0x20, 0x10, FUNC(STB_GLOBAL) },
	{ "alpha", ELF_TEXT_ADDR, 0x20, FUNC(STB_GLOBAL) },
	{ "__alpha", ELF_TEXT_ADDR, 0x20, FUNC(STB_GLOBAL) },
	{ "alpha_local", ELF_TEXT_ADDR, 0x20, FUNC(STB_LOCAL) },
	{ "versioned@@V_1.2", ELF_TEXT_ADDR + 0x40, 0x8, FUNC(STB_GLOBAL) },
	{ "sizeless", ELF_TEXT_ADDR + 0x50, 0, FUNC(STB_GLOBAL) },
	{ "inner", ELF_TEXT_ADDR + 0x88, 0x8, FUNC(STB_LOCAL) },
	{ "outer", ELF_TEXT_ADDR + 0x80, 0x20, FUNC(STB_GLOBAL) },
	{ "resolver", ELF_TEXT_ADDR + 0xc0, 0x8, STB_GLOBAL << 4 | STT_GNU_IFUNC },
	{ "label", ELF_TEXT_ADDR + 0xe0, 0, STB_LOCAL << 4 | STT_NOTYPE },
	{ "data", ELF_DATA_ADDR + 8, 4, STB_GLOBAL << 4 | STT_OBJECT },
	{ "nowhere", 0x999999, 4, FUNC(STB_GLOBAL) },
};

static struct object *open_image(const struct elf_make *e)
{
	struct object *o;
	struct err *err = object_open_memory("made", e->image, e->size, &o);

	if (err)
		fail_msg("%s", err->text);
	return o;
}

static const char *name_at(struct object *o, uint64_t off)
{
	const struct object_symbol *s = object_find_addr(o, ELF_TEXT_ADDR + off);

	return s ? s->name : "-";
}

static void test_made(void **state)
{
	struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), 0);
	struct object *o = open_image(&e);
	const struct object_symbol *s;
	const uint8_t *id;
	uint64_t v;
	uint32_t n;
	uint8_t buf[4];

	assert_true(object_is_x86_64(o));
	assert_false(object_is_executable(o));
	id = object_build_id(o, &n);
	assert_int_equal(n, 4);
	assert_memory_equal(id, "\xde\xad\xbe\xef", 4);

	s = object_symbols(o, &n);
	assert_int_equal(n, ARRAY_SIZE(symbols) - 2);
	for (uint32_t i = 1; i < n; i++)
		assert_true(s[i - 1].addr <= s[i].addr);
	assert_string_equal(name_at(o, 0), "alpha");
	assert_string_equal(name_at(o, 0x1f), "alpha");
	assert_string_equal(name_at(o, 0x20), "beta");
	assert_string_equal(name_at(o, 0x30), "-");
	assert_string_equal(name_at(o, 0x41), "versioned");
	assert_string_equal(name_at(o, 0x7f), "sizeless");
	assert_string_equal(name_at(o, 0x84), "outer");
	assert_string_equal(name_at(o, 0x8c), "inner");
	assert_string_equal(name_at(o, 0x98), "outer");
	assert_string_equal(name_at(o, 0xa0), "-");
	assert_string_equal(name_at(o, 0xe1), "label");
	assert_string_equal(name_at(o, 0x100), "-");
	assert_null(object_find_addr(o, 0));
	assert_null(object_find_addr(o, UINT64_MAX));

	s = object_find_name(o, "sizeless");
	assert_non_null(s);
	assert_int_equal(s->size, 0x30);
	assert_true(object_find_name(o, "resolver")->is_ifunc);
	assert_int_equal(object_find_name(o, "label")->size, 0x20);
	assert_null(object_find_name(o, "data"));
	assert_ptr_equal(*object_find_names(o, "sizeless", &n), s);
	assert_int_equal(n, 1);
	(void)object_find_names(o, "data", &n);
	assert_int_equal(n, 0);
	(void)object_find_names(o, "zzz", &n);
	assert_int_equal(n, 0);
	assert_null(object_find_name(o, "versioned@@V_1.2"));
	assert_true(object_symbol_value(o, "data", &v));
	assert_int_equal(v, ELF_DATA_ADDR + 8);
	assert_false(object_symbol_value(o, "dat", &v));

	assert_true(object_addr_to_offset(o, ELF_TEXT_ADDR + 5, &v));
	assert_int_equal(v, ELF_TEXT_OFF + 5);
	assert_false(object_addr_to_offset(o, ELF_DATA_ADDR + ELF_DATA_SIZE, &v)); /* .bss */
	assert_true(object_offset_to_addr(o, ELF_DATA_OFF, &v));
	assert_int_equal(v, ELF_DATA_ADDR);
	assert_false(object_offset_to_addr(o, 0, &v));
	assert_int_equal(object_read(o, ELF_TEXT_ADDR + ELF_TEXT_SIZE - 2, buf, 4), 2);
	assert_int_equal(buf[0], 0x90);
	assert_int_equal(object_read(o, 0, buf, 4), 0);
	object_free(o);
	free(e.image);
}

static void test_usdt_notes(void **state)
{
	static const uint64_t shifts[] = { 0, 0x1000, (uint64_t)-0x1000 };

	for (uint32_t i = 0; i < ARRAY_SIZE(shifts); i++) {
		struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), shifts[i]);
		struct object *o = open_image(&e);
		const struct object_usdt *u;
		uint32_t n;

		u = object_usdt_names(o, &n);
		assert_int_equal(n, 2);
		assert_string_equal(u[1].provider, "prov");
		assert_string_equal(u[1].name, "second__part");
		assert_string_equal(u[1].func, "");
		assert_false(object_has_symbols(o));
		u = object_usdts(o, &n);
		assert_int_equal(n, 2);
		assert_string_equal(u[0].provider, "prov");
		assert_string_equal(u[0].name, "first");
		assert_string_equal(u[0].args, "");
		assert_string_equal(u[0].func, "alpha");
		assert_int_equal(u[0].semaphore, 0);
		assert_int_equal(u[0].addr, ELF_TEXT_ADDR + 0x14);
		assert_int_equal(u[0].offset, ELF_TEXT_OFF + 0x14);
		assert_string_equal(u[1].name, "second__part");
		assert_string_equal(u[1].args, "-4@%edi 8@-8(%rbp)");
		assert_string_equal(u[1].func, "beta");
		assert_int_equal(u[1].semaphore, ELF_DATA_OFF + 4);
		object_free(o);
		free(e.image);
	}
}

/* Queries everything. Any result is good. */
static void exercise(const uint8_t *p, size_t n)
{
	struct object *o;
	struct err *e = object_open_memory("hostile", p, n, &o);
	const struct object_symbol *s;
	uint8_t buf[32];
	uint64_t v;
	uint32_t count;

	if (e) {
		assert_non_null(e->text);
		err_free(e);
		return;
	}
	s = object_symbols(o, &count);
	for (uint32_t i = 0; i < count; i++) {
		object_find_addr(o, s[i].addr + s[i].size / 2);
		object_read(o, s[i].addr, buf, sizeof(buf));
		object_addr_to_offset(o, s[i].addr, &v);
		assert_true(strlen(s[i].name) > 0);
	}
	object_find_name(o, "alpha");
	object_symbol_value(o, "data", &v);
	object_usdts(o, &count);
	object_offset_to_addr(o, 0x210, &v);
	object_build_id(o, &count);
	object_is_executable(o);
	object_is_go(o);
	object_free(o);
}

static void test_truncated(void **state)
{
	struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), 0);

	for (size_t n = 0; n <= e.size; n++)
		exercise(e.image, n);
	free(e.image);
}

static void test_flipped(void **state)
{
	static const uint64_t words[] = {
		0, 1, 0xff, 0xffff, 0xffffffff, UINT64_MAX, UINT64_MAX - 16, INT64_MAX, 0x1fff
	};
	struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), 0);
	uint8_t *copy = xmalloc(e.size);
	uint32_t seed = 12345;

	/* Telling words in every place of the headers and tables... */
	for (size_t at = 0; at + 8 <= e.size; at += 2) {
		if (at == 0x200)
			at = ELF_TABLES_OFF;
		for (uint32_t w = 0; w < ARRAY_SIZE(words); w++) {
			memcpy(copy, e.image, e.size);
			memcpy(copy + at, &words[w], (at & 6) ? 2 : 8);
			exercise(copy, e.size);
		}
	}
	/* ... and random bytes in several at once. */
	for (uint32_t i = 0; i < 2000; i++) {
		memcpy(copy, e.image, e.size);
		for (uint32_t k = 0; k < 1 + i % 8; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[seed % e.size] = (uint8_t)(seed >> 24);
		}
		exercise(copy, e.size);
	}
	free(copy);
	free(e.image);
}

static void test_not_elf(void **state)
{
	static const char *const paths[] = { "/etc/passwd", "/nonexistent/file", "/dev/null", "/",
					     "/proc/self/maps" };

	for (uint32_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct object *o = NULL;
		struct err *e = object_open(paths[i], &o);

		assert_non_null(e);
		assert_null(o);
		assert_non_null(strstr(e->text, paths[i]));
		err_free(e);
	}
}

/* Every defined function nm shows must be found at its address, by name and by address. */
static void compare_with_nm(const char *path, const char *options)
{
	cleanup_free char *command =
		xasprintf("nm %s --defined-only %s 2>/dev/null", options, path);
	FILE *f = popen(command, "r");
	struct object *o;
	struct err *e = object_open(path, &o);
	uint32_t compared = 0, n;
	char line[4096];

	assert_non_null(f);
	if (e) {
		print_message("[  note  ] %s\n", e->text);
		err_free(e);
		pclose(f);
		return;
	}
	const struct object_symbol *s = object_symbols(o, &n);

	while (fgets(line, sizeof(line), f)) {
		unsigned long long addr;
		char type, name[4000];
		uint32_t lo = 0, hi = n;
		bool found = false;

		if (sscanf(line, "%llx %c %3999s", &addr, &type, name) != 3 ||
		    !strchr("tTwWiI", type))
			continue;
		name[strcspn(name, "@")] = 0;
		if (!object_find_name(o, name))
			continue; /* a label, or weak data */
		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;

			if (s[mid].addr < addr)
				lo = mid + 1;
			else
				hi = mid;
		}
		for (; lo < n && s[lo].addr == addr && !found; lo++)
			found = !strcmp(s[lo].name, name);
		if (!found)
			fail_msg("%s: no %s at %llx", path, name, addr);
		assert_non_null(object_find_addr(o, addr));
		assert_int_equal(object_find_addr(o, addr)->addr, addr);
		compared++;
	}
	pclose(f);
	if (n && compared < 10)
		fail_msg("%s: only %u of %u symbols compared", path, compared, n);
	object_free(o);
}

static void test_against_nm(void **state)
{
	char self[4096] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	compare_with_nm("/usr/lib/x86_64-linux-gnu/libc.so.6", "-D");
	compare_with_nm("/bin/bash", "-D");
	compare_with_nm("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "-D");
	compare_with_nm(self, "");
}

static void test_real_files(void **state)
{
	struct object *o;
	struct err *e = object_open("/proc/self/exe", &o);

	assert_null(e);
	assert_true(object_is_executable(o));
	assert_non_null(object_interp(o));
	assert_null(object_soname(o));
	assert_non_null(object_find_name(o, "main"));
	object_free(o);
	e = object_open("/usr/lib/x86_64-linux-gnu/libc.so.6", &o);
	if (e) {
		err_free(e);
		skip();
	}
	assert_false(object_is_executable(o));
	assert_string_equal(object_soname(o), "libc.so.6");
	assert_string_equal(object_find_name(o, "malloc")->name, "malloc");
	assert_true(object_find_name(o, "strlen")->is_ifunc);
	object_free(o);
}

/* A file of 100 TB has room for a section larger than any memory. */
static void test_sparse(void **state)
{
	struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), 0);
	const uint64_t size = 1ULL << 40;
	Elf64_Ehdr *h = (Elf64_Ehdr *)e.image;
	Elf64_Shdr *sections = (Elf64_Shdr *)(e.image + h->e_shoff);
	Elf64_Phdr *segments = (Elf64_Phdr *)(e.image + h->e_phoff);
	char path[64];
	int fd = memfd_create("sparse", 0);
	struct object *o;
	struct err *err;
	uint64_t addr;
	uint32_t count;
	size_t n;

	sections[3].sh_size = sections[4].sh_size = size;
	sections[6].sh_size = size;
	segments[2].p_filesz = size;
	assert_int_equal(write(fd, e.image, e.size), e.size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ftruncate(fd, 2 * (off_t)size))
		skip();
	err = object_open(path, &o);
	assert_null(err);
	object_symbols(o, &count);
	assert_int_equal(count, 0);
	object_usdts(o, &count);
	assert_int_equal(count, 0);
	assert_null(object_build_id(o, &count));
	assert_null(object_section(o, ".symtab", &addr, &n));
	assert_null(object_eh_frame(o, &addr, &n));
	object_free(o);
	close(fd);
	free(e.image);
}

static size_t resident(void)
{
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
	fclose(f);
	return pages * 4096;
}

/* Names of sections in a table that is large, and a hole but for its beginning. */
static void test_sparse_names(void **state)
{
	enum { SIZE = 200 << 20 };
	struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), 0);
	Elf64_Ehdr *h = (Elf64_Ehdr *)e.image;
	Elf64_Shdr *sections = (Elf64_Shdr *)(e.image + h->e_shoff);
	char path[64];
	int fd = memfd_create("sparse", 0);
	struct object *o;
	uint64_t addr;
	size_t n, before = resident();

	(void)state;
	sections[h->e_shstrndx].sh_size = SIZE;
	assert_int_equal(write(fd, e.image, e.size), e.size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(ftruncate(fd, 2 * (off_t)SIZE), 0);
	assert_null(object_open(path, &o));
	assert_true(resident() < before + SIZE / 2);
	assert_true(object_memory(o) < 1 << 20);
	free(object_section(o, ".text", &addr, &n));
	assert_int_equal(addr, ELF_TEXT_ADDR);
	object_free(o);
	close(fd);
	free(e.image);
}

/* Sections of debugging information are packed, and no others. */
static void test_packed(void **state)
{
	static const uint8_t packed[] = { 0x78, 1,   1,   4, 0,    0xfb, 0xff, 'a',
					  'b',  'c', 'd', 3, 0xd8, 1,    0x8b };
	static const char *const names[] = { ".text", ".eh_frame", ".debug_frame" };
	const Elf64_Chdr head = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = 4 };

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), 0);
		Elf64_Ehdr *h = (Elf64_Ehdr *)e.image;
		Elf64_Shdr *s = (Elf64_Shdr *)(e.image + h->e_shoff);
		struct object *o;
		uint64_t addr;
		uint8_t *p;
		size_t n;

		memcpy(e.image + ELF_TEXT_OFF, &head, sizeof(head));
		memcpy(e.image + ELF_TEXT_OFF + sizeof(head), packed, sizeof(packed));
		s[1].sh_flags |= SHF_COMPRESSED;
		s[1].sh_size = sizeof(head) + sizeof(packed);
		strcpy((char *)e.image + ELF_DATA_OFF, names[i]);
		s[h->e_shstrndx].sh_offset = 0;
		s[h->e_shstrndx].sh_size = e.size;
		s[1].sh_name = ELF_DATA_OFF;
		o = open_image(&e);
		p = object_section(o, names[i], &addr, &n);
		assert_true((i == 2) == (p != NULL));
		if (p)
			assert_memory_equal(p, "abcd", n);
		free(p);
		object_free(o);
		free(e.image);
	}
}

/* More program headers than the kernel runs: each address would be looked for in all. */
static void test_many_segments(void **state)
{
	static const uint32_t counts[] = { 1170, 1171, 65534 };
	struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), 0);
	Elf64_Ehdr *h = (Elf64_Ehdr *)e.image;

	e.image = xrealloc(e.image, e.size + 65534 * sizeof(Elf64_Phdr));
	h = (Elf64_Ehdr *)e.image;
	h->e_phoff = e.size;
	memset(e.image + e.size, 0, 65534 * sizeof(Elf64_Phdr));
	for (uint32_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct object *o = NULL;
		struct err *err;

		h->e_phnum = (uint16_t)counts[i];
		err = object_open_memory("many", e.image, e.size + counts[i] * sizeof(Elf64_Phdr),
					 &o);
		assert_int_equal(!err, i == 0);
		if (err)
			assert_non_null(strstr(err->text, "program headers"));
		err_free(err);
		object_free(o);
	}
	free(e.image);
}

enum { TEXT = 1 << 24 };

/* Makes a file of one segment of text with these symbols. str has their names. Sections follow the
 * tables. */
static struct object *open_symbols(const Elf64_Sym *syms, uint32_t n, const char *str, size_t nstr)
{
	size_t at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), bytes = n * sizeof(*syms);
	Elf64_Shdr s[3] = {
		[1] = { .sh_type = SHT_SYMTAB, .sh_offset = at, .sh_size = bytes, .sh_link = 2 },
		[2] = { .sh_type = SHT_STRTAB, .sh_offset = at + bytes, .sh_size = nstr },
	};
	Elf64_Ehdr h = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(h),
		.e_shoff = at + bytes + nstr,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
	};
	Elf64_Phdr p = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = TEXT };
	cleanup_free uint8_t *image = xmalloc(h.e_shoff + sizeof(s));
	struct object *o;
	struct err *e;

	elf_put(image, 0, &h, sizeof(h));
	elf_put(image, sizeof(h), &p, sizeof(p));
	elf_put(image, at, syms, bytes);
	elf_put(image, at + bytes, str, nstr);
	elf_put(image, h.e_shoff, s, sizeof(s));
	e = object_open_memory("symbols", image, h.e_shoff + sizeof(s), &o);
	assert_null(e);
	return o;
}

/* Names that are one another's ends: without an end at all, and as long as is kept. */
static void test_long_names(void **state)
{
	enum { N = 1000000, STR = 10 << 20, LONG = 64 << 10 };
	static const uint32_t steps[] = { STR, LONG, 100 };
	cleanup_free Elf64_Sym *syms = xcalloc(N, sizeof(*syms));
	cleanup_free char *str = xmalloc(STR);

	for (uint32_t k = 0; k < ARRAY_SIZE(steps); k++) {
		struct object *o;
		uint32_t n;

		memset(str, 'a', STR);
		for (uint32_t i = steps[k]; i < STR; i += steps[k])
			str[i] = 0;
		for (uint32_t i = 0; i < N; i++)
			syms[i] = (Elf64_Sym){ .st_name = i,
					       .st_info = FUNC(STB_GLOBAL),
					       .st_shndx = 1,
					       .st_value = 0x1000 + i % 2,
					       .st_size = 1 };
		o = open_symbols(syms, N, str, STR);
		object_symbols(o, &n);
		if (steps[k] == STR)
			assert_int_equal(n, 0);
		else
			assert_true(n > 0 && n <= N);
		if (steps[k] == 100)
			assert_non_null(object_find_name(o, "aaaa"));
		object_free(o);
	}
}

/* One function over all the text, and millions in it: an address that is in none of those is not
 * looked for for ever. */
static void test_nested(void **state)
{
	enum { N = 2000000 };
	cleanup_free Elf64_Sym *syms = xcalloc(N, sizeof(*syms));
	static const char str[] = "\0outer\0inner";
	const struct object_symbol *s;
	struct object *o;

	for (uint32_t i = 1; i < N; i++)
		syms[i] = (Elf64_Sym){ .st_name = i == 1 ? 1 : 7,
				       .st_info = FUNC(STB_GLOBAL),
				       .st_shndx = 1,
				       .st_value = i == 1 ? 0x1000 : 0x2000 + i * 4,
				       .st_size = i == 1 ? TEXT - 0x1000 : 1 };
	o = open_symbols(syms, N, str, sizeof(str));
	assert_string_equal(object_find_addr(o, 0x2000)->name, "outer");
	assert_string_equal(object_find_addr(o, 0x2000 + 400 + 2)->name, "outer");
	assert_string_equal(object_find_addr(o, 0x2000 + (N - 1) * 4)->name, "inner");
	for (uint32_t i = 0; i < 2000; i++) {
		s = object_find_addr(o, 0x2000 + (N - 1) * 4 + 2);
		assert_true(!s || !strcmp(s->name, "outer"));
	}
	object_free(o);
}

static void test_close_file(void **state)
{
	struct object *o;
	struct err *e = object_open("/proc/self/exe", &o);
	uint64_t addr;
	uint32_t count;
	uint8_t code[4];
	size_t n;

	assert_null(e);
	assert_true(object_text_segment(o, 0, &(uint64_t){ 0 }, &(uint64_t){ 0 }, &addr));
	assert_int_equal(object_read(o, addr, code, sizeof(code)), sizeof(code));
	object_close_file(o);
	object_close_file(o);
	assert_int_equal(object_read(o, addr, code, sizeof(code)), 0);
	assert_true(object_is_text(o, addr));
	assert_true(object_is_executable(o));
	assert_null(object_section(o, ".text", &addr, &n));
	assert_null(object_eh_frame(o, &addr, &n));
	object_symbols(o, &count);
	assert_int_equal(count, 0);
	object_usdts(o, &count);
	assert_int_equal(count, 0);
	assert_null(object_find_name(o, "main"));
	object_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made),          cmocka_unit_test(test_usdt_notes),
		cmocka_unit_test(test_truncated),     cmocka_unit_test(test_flipped),
		cmocka_unit_test(test_not_elf),       cmocka_unit_test(test_against_nm),
		cmocka_unit_test(test_real_files),    cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_many_segments), cmocka_unit_test(test_close_file),
		cmocka_unit_test(test_long_names),    cmocka_unit_test(test_nested),
		cmocka_unit_test(test_sparse_names),  cmocka_unit_test(test_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
