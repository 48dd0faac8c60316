/* ELF files of any size made by tests: a library for x86-64 with sections, of which each loaded one
 * is a segment, and functions. */
#ifndef DESCRY_TEST_ELF_FILE_H
#define DESCRY_TEST_ELF_FILE_H

#include <elf.h>

#include "base/mem.h"
#include "program/object/object.h"
#include "unit.h"

struct elf_piece {
	const char *name;
	uint64_t flags, addr; /* flags: SHF_ALLOC, with SHF_EXECINSTR of code */
	const void *p;
	uint64_t n;
};

struct elf_function {
	const char *name;
	uint64_t addr, size;
};

struct elf_bytes {
	VEC(uint8_t) v;
};

static inline uint64_t elf_file_put(struct elf_bytes *b, const void *p, uint64_t n)
{
	const uint64_t at = (b->v.n + 7) & ~7ull;

	vec_reserve(&b->v, (uint32_t)(at - b->v.n + n));
	memset(b->v.v + b->v.n, 0, at - b->v.n);
	if (n)
		memcpy(b->v.v + at, p, n);
	b->v.n = (uint32_t)(at + n);
	return at;
}

/* Functions of the same name in a row share it in the file. */
static inline struct object *elf_file(const struct elf_piece *pieces, uint32_t npieces,
				      const struct elf_function *functions, uint32_t nfunctions)
{
	const uint32_t nsections = npieces + 4, symtab = npieces + 1;
	Elf64_Phdr *segments = xcalloc(npieces + 1, sizeof(*segments));
	Elf64_Shdr *sections = xcalloc(nsections, sizeof(*sections));
	Elf64_Sym *symbols = xcalloc(nfunctions + 1, sizeof(*symbols));
	struct elf_bytes b = { 0 }, names = { 0 }, texts = { 0 };
	const char *const own[] = { ".symtab", ".strtab", ".shstrtab" };
	struct object *o;
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(h),
			 .e_ehsize = sizeof(h),
			 .e_phentsize = sizeof(*segments),
			 .e_shentsize = sizeof(*sections),
			 .e_shnum = (uint16_t)nsections, /* at most 65,279 */
			 .e_shstrndx = (uint16_t)(nsections - 1) };

	elf_file_put(&b, &h, sizeof(h));
	elf_file_put(&b, segments, npieces * sizeof(*segments)); /* filled in below */
	vec_push(&names.v, 0);
	for (uint32_t i = 1; i < nsections; i++) {
		const char *name = i <= npieces ? pieces[i - 1].name : own[i - npieces - 1];

		sections[i].sh_name = names.v.n;
		for (const char *s = name; *s || s == name; s++)
			vec_push(&names.v, (uint8_t)*s);
		vec_push(&names.v, 0);
	}
	for (uint32_t i = 0; i < npieces; i++) {
		const struct elf_piece *p = &pieces[i];
		const uint64_t at = elf_file_put(&b, p->p, p->n);

		sections[i + 1].sh_type = SHT_PROGBITS;
		sections[i + 1].sh_flags = p->flags;
		sections[i + 1].sh_addr = p->addr;
		sections[i + 1].sh_offset = at;
		sections[i + 1].sh_size = p->n;
		if (!(p->flags & SHF_ALLOC))
			continue;
		segments[h.e_phnum++] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = PF_R | (p->flags & SHF_EXECINSTR ? PF_X : 0u),
			.p_offset = at,
			.p_vaddr = p->addr,
			.p_filesz = p->n,
			.p_memsz = p->n,
		};
	}
	vec_push(&texts.v, 0);
	for (uint32_t i = 0; i < nfunctions; i++) {
		const struct elf_function *f = &functions[i];

		if (i && functions[i - 1].name == f->name) { /* one text for all in a row */
			symbols[i + 1].st_name = symbols[i].st_name;
		} else {
			symbols[i + 1].st_name = texts.v.n;
			for (const char *s = f->name; *s; s++)
				vec_push(&texts.v, (uint8_t)*s);
			vec_push(&texts.v, 0);
		}
		symbols[i + 1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
		symbols[i + 1].st_shndx = 1;
		symbols[i + 1].st_value = f->addr;
		symbols[i + 1].st_size = f->size;
	}
	sections[symtab].sh_type = SHT_SYMTAB;
	sections[symtab].sh_link = symtab + 1;
	sections[symtab].sh_entsize = sizeof(*symbols);
	sections[symtab].sh_size = (nfunctions + 1) * sizeof(*symbols);
	sections[symtab].sh_offset = elf_file_put(&b, symbols, sections[symtab].sh_size);
	sections[symtab + 1].sh_type = sections[symtab + 2].sh_type = SHT_STRTAB;
	sections[symtab + 1].sh_size = texts.v.n;
	sections[symtab + 1].sh_offset = elf_file_put(&b, texts.v.v, texts.v.n);
	sections[symtab + 2].sh_size = names.v.n;
	sections[symtab + 2].sh_offset = elf_file_put(&b, names.v.v, names.v.n);
	h.e_shoff = elf_file_put(&b, sections, nsections * sizeof(*sections));
	memcpy(b.v.v, &h, sizeof(h));
	memcpy(b.v.v + sizeof(h), segments, h.e_phnum * sizeof(*segments));
	assert_null(object_open_memory("made", b.v.v, b.v.n, &o));
	vec_fini(&b.v);
	vec_fini(&names.v);
	vec_fini(&texts.v);
	free(segments);
	free(sections);
	free(symbols);
	return o;
}

#endif
