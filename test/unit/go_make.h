/* Go's table of functions (.gopclntab), and an ELF file around any bytes that are taken for one. */
#ifndef DESCRY_TEST_GO_MAKE_H
#define DESCRY_TEST_GO_MAKE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

/* Text of the file: all of it is loaded, none of it is in the file. */
enum { GO_TEXT = 0x401000, GO_TEXT_SIZE = 0x20000, GO_TABLE = 0x600000 };

enum { GO_1_2 = 0xfffffffb, GO_1_16 = 0xfffffffa, GO_1_18 = 0xfffffff0, GO_1_20 = 0xfffffff1 };

struct go_make_function {
	const char *name;
	uint32_t size;
	uint8_t flags;
	const char *depths; /* "\2\4\20\10": pairs of change and length */
};

struct go_making {
	uint8_t *p;
	size_t n;
};

static inline void go_put(struct go_making *m, const void *p, size_t n)
{
	memcpy(m->p + m->n, p, n);
	m->n += n;
}

static inline void go_put_number(struct go_making *m, uint64_t v, size_t n)
{
	go_put(m, &v, n);
}

/* Makes a table of functions that follow each other in the text. `text`: the text's start in the
 * head. malloc()ed, at most 16 KB. */
static inline struct go_making go_make_table(uint32_t magic, uint64_t text,
					     const struct go_make_function *f, uint32_t n)
{
	bool is_short = magic == GO_1_18 || magic == GO_1_20, has_head = magic != (uint32_t)GO_1_2;
	size_t word = is_short ? 4 : 8, flags = magic == GO_1_18 ? 37 : 41;
	struct go_making m = { xcalloc(1, 16384), 0 };
	uint32_t *names = xcalloc(n, sizeof(*names)), *depths = xcalloc(n, sizeof(*depths));
	size_t first, from, record, base;
	uint64_t pc = is_short ? 0 : text;

	go_put_number(&m, magic, 4);
	go_put_number(&m, 0x08010000, 4);
	go_put_number(&m, n, 8);
	/* the head, or the functions, are filled in last */
	first = m.n;
	m.n += has_head ? 7 * 8 : (n * 2 + 1) * word;
	base = has_head ? m.n : 0;
	m.n++; /* so that none is at 0 */
	for (uint32_t i = 0; i < n; i++) {
		names[i] = (uint32_t)(m.n - base);
		go_put(&m, f[i].name, strlen(f[i].name) + 1);
		depths[i] = (uint32_t)(m.n - base);
		go_put(&m, f[i].depths, strlen(f[i].depths) + 1);
	}
	if (has_head) {
		struct go_making head = { m.p + first, 0 };

		m.n = (m.n + 7) & ~(size_t)7;
		go_put_number(&head, 0, 8); /* files */
		if (is_short)
			go_put_number(&head, text, 8);
		go_put_number(&head, base, 8); /* names */
		go_put_number(&head, 0, 8);
		go_put_number(&head, 0, 8);
		go_put_number(&head, base, 8); /* depths */
		go_put_number(&head, m.n, 8);
		first = from = m.n;
		m.n += (n * 2 + 1) * word;
	} else {
		from = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct go_making pair = { m.p + first, 0 };

		record = m.n;
		go_put_number(&pair, pc, word);
		go_put_number(&pair, record - from, word);
		first += 2 * word;
		go_put_number(&m, pc, word);
		go_put_number(&m, names[i], 4);
		go_put_number(&m, 0, 8);
		go_put_number(&m, depths[i], 4);
		m.n = record + 48;
		if (has_head)
			m.p[record + flags] = f[i].flags;
		pc += f[i].size;
	}
	memcpy(m.p + first, &pc, word);
	free(names);
	free(depths);
	return m;
}

/* The linker of the file: Go's, at fixed addresses or position independent; the system's, which
 * puts the table among other data. */
enum go_make_kind { GO_FIXED, GO_PIE, GO_SYSTEM };
enum { GO_BEFORE = 64 /* bytes before the table */ };

/* Makes an ELF file with this table. relocated: the relocation for the word of the text's start in
 * the head; 0: there is none. malloc()ed. */
static inline struct go_making go_make_elf(const uint8_t *table, size_t n, enum go_make_kind kind,
					   uint64_t relocated)
{
	static const char *const table_names[] = { ".gopclntab", ".data.rel.ro.gopclntab",
						   ".data.rel.ro" };
	static const char *const others[] = { ".text", ".shstrtab", ".rela.dyn", ".go.buildinfo" };
	size_t before = kind == GO_SYSTEM ? GO_BEFORE : 0;
	Elf64_Rela rela = { .r_offset = GO_TABLE + before + 24,
			    .r_info = R_X86_64_RELATIVE,
			    .r_addend = (int64_t)relocated };
	char names[128] = "";
	uint32_t nnames = 1;
	struct go_making m = { xcalloc(1, n + 4096), 0 };
	Elf64_Ehdr h = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = kind == GO_FIXED ? ET_EXEC : ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_phoff = sizeof(h),
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 6,
		.e_shstrndx = 3,
	};
	Elf64_Phdr p = { .p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_vaddr = GO_TEXT,
			 .p_memsz = GO_TEXT_SIZE };
	Elf64_Shdr s[6] = {
		{ 0 },
		{ .sh_type = SHT_NOBITS,
		  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		  .sh_addr = GO_TEXT,
		  .sh_size = GO_TEXT_SIZE },
		{ .sh_type = SHT_PROGBITS,
		  .sh_flags = SHF_ALLOC,
		  .sh_addr = GO_TABLE,
		  .sh_size = before + n },
		{ .sh_type = SHT_STRTAB },
		{ .sh_type = SHT_RELA,
		  .sh_flags = SHF_ALLOC,
		  .sh_size = relocated ? sizeof(rela) : 0 },
		{ .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC },
	};

	for (int i = 0; i < 5; i++) {
		const char *name = i == 1 ? table_names[kind] : others[i ? i - 1 : 0];

		s[i + 1].sh_name = nnames;
		strcpy(names + nnames, name);
		nnames += (uint32_t)strlen(name) + 1;
	}
	s[3].sh_size = nnames;
	m.n = sizeof(h) + sizeof(p);
	s[2].sh_offset = m.n;
	m.n += before;
	go_put(&m, table, n);
	s[3].sh_offset = m.n;
	go_put(&m, names, nnames);
	s[4].sh_offset = m.n;
	go_put(&m, &rela, sizeof(rela));
	h.e_shoff = m.n;
	go_put(&m, s, sizeof(s));
	memcpy(m.p, &h, sizeof(h));
	memcpy(m.p + sizeof(h), &p, sizeof(p));
	return m;
}

#endif
