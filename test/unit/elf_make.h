/* ELF images made by tests: a 64-bit shared object with text, symbols, a build-id and USDT
 * notes. */
#ifndef DESCRY_TEST_ELF_MAKE_H
#define DESCRY_TEST_ELF_MAKE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

struct elf_symbol {
	const char *name;
	uint64_t addr, size;
	uint8_t info;
};

/* Layout of the image: headers at 0, text at file 0x200 / address 0x1200, data at 0x400 / 0x3400,
 * the rest behind. */
enum {
	ELF_TEXT_OFF = 0x200,
	ELF_TEXT_SIZE = 0x100,
	ELF_TEXT_ADDR = 0x1200,
	ELF_DATA_OFF = 0x400,
	ELF_DATA_SIZE = 0x40,
	ELF_DATA_ADDR = 0x3400,
	ELF_TABLES_OFF = 0x500,
	ELF_MAX = 0x2000,
};

struct elf_make {
	uint8_t *image;
	size_t size;
};

static size_t elf_put(uint8_t *image, size_t at, const void *p, size_t n)
{
	memcpy(image + at, p, n);
	return at + n;
}

static size_t elf_align(size_t at)
{
	return (at + 7) & ~(size_t)7;
}

/* One stapsdt note: provider, name, args are taken with their NULs. */
static size_t elf_put_note(uint8_t *image, size_t at, uint64_t pc, uint64_t base,
			   uint64_t semaphore, const char *provider, const char *name,
			   const char *args)
{
	uint32_t words[3] = { 8,
			      (uint32_t)(24 + strlen(provider) + strlen(name) + strlen(args) + 3),
			      3 };

	at = elf_put(image, at, words, sizeof(words));
	at = elf_put(image, at, "stapsdt", 8);
	at = elf_put(image, at, &pc, 8);
	at = elf_put(image, at, &base, 8);
	at = elf_put(image, at, &semaphore, 8);
	at = elf_put(image, at, provider, strlen(provider) + 1);
	at = elf_put(image, at, name, strlen(name) + 1);
	at = elf_put(image, at, args, strlen(args) + 1);
	return (at + 3) & ~(size_t)3;
}

/* base_shift: how far .stapsdt.base has moved since the notes were written (prelink). */
static inline struct elf_make elf_make(const struct elf_symbol *symbols, uint32_t n,
				       uint64_t base_shift)
{
	static const char names[] =
		"\0.text\0.data\0.symtab\0.strtab\0.shstrtab\0.note.stapsdt\0.stapsdt.base\0.note.id";
	static const uint8_t id[] = { 4, 0, 0,   0,   4,   0, 0,    0,    3,    0,
				      0, 0, 'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef };
	struct elf_make e = { .image = xcalloc(1, ELF_MAX) };
	Elf64_Shdr s[9] = { 0 };
	size_t at = ELF_TABLES_OFF, str;

	memset(e.image + ELF_TEXT_OFF, 0x90, ELF_TEXT_SIZE);
	/* .strtab, then .symtab */
	str = at;
	at++;
	Elf64_Sym *syms = xcalloc(n + 1, sizeof(*syms));

	for (uint32_t i = 0; i < n; i++) {
		syms[i + 1] = (Elf64_Sym){
			.st_name = (uint32_t)(at - str),
			.st_info = symbols[i].info,
			.st_shndx = 1,
			.st_value = symbols[i].addr,
			.st_size = symbols[i].size,
		};
		at = elf_put(e.image, at, symbols[i].name, strlen(symbols[i].name) + 1);
	}
	s[4] = (Elf64_Shdr){
		.sh_name = 21, .sh_type = SHT_STRTAB, .sh_offset = str, .sh_size = at - str
	};
	at = elf_align(at);
	s[3] = (Elf64_Shdr){
		.sh_name = 13,
		.sh_type = SHT_SYMTAB,
		.sh_offset = at,
		.sh_size = (n + 1) * sizeof(*syms),
		.sh_link = 4,
		.sh_entsize = sizeof(*syms),
	};
	at = elf_put(e.image, at, syms, (n + 1) * sizeof(*syms));
	free(syms);
	s[1] = (Elf64_Shdr){
		.sh_name = 1,
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = ELF_TEXT_ADDR,
		.sh_offset = ELF_TEXT_OFF,
		.sh_size = ELF_TEXT_SIZE,
	};
	s[2] = (Elf64_Shdr){
		.sh_name = 7,
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_WRITE,
		.sh_addr = ELF_DATA_ADDR,
		.sh_offset = ELF_DATA_OFF,
		.sh_size = ELF_DATA_SIZE,
	};
	s[5] = (Elf64_Shdr){
		.sh_name = 29, .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof(names)
	};
	at = elf_align(elf_put(e.image, at, names, sizeof(names)));
	s[6] = (Elf64_Shdr){ .sh_name = 39, .sh_type = SHT_NOTE, .sh_offset = at };
	at = elf_put_note(e.image, at, ELF_TEXT_ADDR + 0x14 - base_shift, 0x2000, 0, "prov",
			  "first", "");
	at = elf_put_note(e.image, at, ELF_TEXT_ADDR + 0x24 - base_shift, 0x2000,
			  ELF_DATA_ADDR + 4 - base_shift, "prov", "second__part",
			  "-4@%edi 8@-8(%rbp)");
	s[6].sh_size = at - s[6].sh_offset;
	s[7] = (Elf64_Shdr){ .sh_name = 53,
			     .sh_type = SHT_PROGBITS,
			     .sh_addr = 0x2000 + base_shift };
	at = elf_align(at);
	s[8] = (Elf64_Shdr){
		.sh_name = 67, .sh_type = SHT_NOTE, .sh_offset = at, .sh_size = sizeof(id)
	};
	Elf64_Phdr p[3] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = ELF_TEXT_OFF,
		  .p_vaddr = ELF_TEXT_ADDR,
		  .p_filesz = ELF_TEXT_SIZE,
		  .p_memsz = ELF_TEXT_SIZE },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_offset = ELF_DATA_OFF,
		  .p_vaddr = ELF_DATA_ADDR,
		  .p_filesz = ELF_DATA_SIZE,
		  .p_memsz = ELF_DATA_SIZE + 64 },
		{ .p_type = PT_NOTE, .p_offset = at, .p_filesz = sizeof(id) },
	};
	at = elf_align(elf_put(e.image, at, id, sizeof(id)));
	Elf64_Ehdr h = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_phoff = sizeof(h),
		.e_shoff = at,
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 9,
		.e_shstrndx = 5,
	};

	elf_put(e.image, 0, &h, sizeof(h));
	elf_put(e.image, sizeof(h), p, sizeof(p));
	e.size = elf_put(e.image, at, s, sizeof(s));
	return e;
}

#endif
