/* Separate debug files: any bytes as a .gnu_debuglink, and a file that it leads to.
 *
 * Layout: flags, number of bytes of the section (0 to 255), these, the debug file. Flag 1: makes
 * the section's checksum right; 2: also its name; 4: gives both files a build-id, the same one
 * unless 8.
 *
 * Both lie in memory, at descriptors whose numbers are their names in /proc/self/fd. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "program/symbol/symbol_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAIN_FD = 900, DEBUG_FD = 901, LINK_MAX = 256 };
enum { FLAG_CRC = 1, FLAG_NAME = 2, FLAG_ID = 4, FLAG_OTHER_ID = 8 };

struct file {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	uint8_t note[20];
	char names[40];
	uint8_t link[LINK_MAX];
	Elf64_Shdr sections[3];
};

static void put(int fd, const void *p, size_t n)
{
	int made = memfd_create("fuzz", MFD_CLOEXEC);

	if (made < 0 || write(made, p, n) != (ssize_t)n || dup3(made, fd, O_CLOEXEC) < 0)
		abort();
	close(made);
}

static void make(struct file *f, uint8_t flags, const uint8_t *link, size_t n)
{
	static const char names[] = "\0.shstrtab\0.gnu_debuglink";
	uint32_t note[5] = { 4, 4, NT_GNU_BUILD_ID, 0, 0x01020304u };

	memset(f, 0, sizeof(*f));
	memcpy(note + 3, "GNU", 4);
	memcpy(f->note, note, sizeof(note));
	memcpy(f->names, names, sizeof(names));
	memcpy(f->link, link, n);
	f->segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_flags = PF_R | PF_X,
				       .p_filesz = sizeof(*f),
				       .p_memsz = 0x10000 };
	f->segments[1] = (Elf64_Phdr){ .p_type = PT_NOTE,
				       .p_offset = offsetof(struct file, note),
				       .p_filesz = sizeof(f->note) };
	f->sections[1] = (Elf64_Shdr){ .sh_name = 1,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct file, names),
				       .sh_size = sizeof(f->names) };
	f->sections[2] = (Elf64_Shdr){ .sh_name = 11,
				       .sh_type = SHT_PROGBITS,
				       .sh_offset = offsetof(struct file, link),
				       .sh_size = n };
	f->head = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_phoff = offsetof(struct file, segments),
		.e_shoff = offsetof(struct file, sections),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = flags & FLAG_ID ? 2 : 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 1,
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t link[LINK_MAX] = { 0 };
	char path[40];
	struct file f;
	struct object *o;
	struct err *e;
	size_t n;

	if (size < 2 || size - 2 < data[1])
		return 0;
	n = data[1];
	memcpy(link, data + 2, n);
	const uint8_t *debug = data + 2 + n;
	size_t left = size - 2 - n;

	if (data[0] & FLAG_NAME && n >= 8) {
		snprintf((char *)link, 4, "%d", DEBUG_FD);
		n = 8;
	}
	if (data[0] & FLAG_CRC) {
		size_t at = (strnlen((char *)link, n) + 4) & ~(size_t)3;
		uint32_t crc = (uint32_t)crc32(0, debug, (uInt)left);

		if (at + 4 <= n)
			memcpy(link + at, &crc, 4);
	}
	make(&f, data[0], link, n);
	f.note[19] ^= data[0] & FLAG_OTHER_ID;
	put(MAIN_FD, &f, sizeof(f));
	put(DEBUG_FD, debug, left);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", MAIN_FD);
	e = object_open(path, &o);
	if (!e) {
		struct symbols *s = symbols_new();
		const struct source_place *places;
		uint32_t count;

		object_symbols(o, &count);
		for (uint64_t addr = 0; addr < 0x2000; addr += 0x101) {
			const struct object_symbol *found = object_find_addr(o, addr);

			if (found && (addr < found->addr || addr - found->addr >= found->size))
				abort();
			object_source(s, o, addr, &places);
		}
		symbols_free(s);
		object_free(o);
	}
	err_free(e);
	close(MAIN_FD);
	close(DEBUG_FD);
	return 0;
}
