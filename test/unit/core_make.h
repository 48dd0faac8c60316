/* Core files made by tests: notes, then segments with the bytes that the test gives. */
#ifndef DESCRY_TEST_CORE_MAKE_H
#define DESCRY_TEST_CORE_MAKE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/user.h>

#include "base/mem.h"

enum { CORE_PAGE = 4096, CORE_MAX = 16 };

struct core_segment {
	uint64_t start, memsz;
	uint32_t flags;    /* PF_ */
	const void *bytes; /* filesz of them */
	uint64_t filesz;
};

struct core_mapped {
	uint64_t start, end, offset; /* offset: bytes */
	const char *path;
};

struct core_make {
	VEC(uint8_t) notes;
	struct core_segment segments[CORE_MAX];
	uint32_t nsegments;
};

static inline void core_bytes(struct core_make *c, const void *p, size_t n)
{
	vec_reserve(&c->notes, n + 4);
	memcpy(c->notes.v + c->notes.n, p, n);
	c->notes.n += (uint32_t)n;
	while (c->notes.n % 4)
		c->notes.v[c->notes.n++] = 0;
}

static inline void core_note(struct core_make *c, uint32_t type, const void *p, size_t n)
{
	const uint32_t head[3] = { 5, (uint32_t)n, type };

	core_bytes(c, head, sizeof(head));
	core_bytes(c, "CORE", 5);
	core_bytes(c, p, n);
}

static inline void core_thread(struct core_make *c, int32_t tid, int16_t signal,
			       const struct user_regs_struct *regs)
{
	uint8_t note[336] = { 0 };

	memcpy(note + 12, &signal, sizeof(signal));
	memcpy(note + 32, &tid, sizeof(tid));
	memcpy(note + 112, regs, sizeof(*regs));
	core_note(c, NT_PRSTATUS, note, sizeof(note));
}

static inline void core_process(struct core_make *c, int32_t pid)
{
	uint8_t note[136] = { 0 };

	memcpy(note + 24, &pid, sizeof(pid));
	core_note(c, NT_PRPSINFO, note, sizeof(note));
}

static inline void core_files(struct core_make *c, const struct core_mapped *f, uint32_t n)
{
	uint8_t note[4096];
	uint64_t words[2] = { n, CORE_PAGE };
	size_t at = 16 + n * 24ull;

	memcpy(note, words, 16);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t entry[3] = { f[i].start, f[i].end, f[i].offset / CORE_PAGE };

		memcpy(note + 16 + i * 24, entry, 24);
		memcpy(note + at, f[i].path, strlen(f[i].path) + 1);
		at += strlen(f[i].path) + 1;
	}
	core_note(c, NT_FILE, note, at);
}

static inline void core_segment(struct core_make *c, struct core_segment s)
{
	c->segments[c->nsegments++] = s;
}

/* Returns the whole file, malloc()ed. Frees the notes. */
static inline uint8_t *core_done(struct core_make *c, size_t *ret_n)
{
	const uint64_t headers = sizeof(Elf64_Ehdr) + (c->nsegments + 1) * sizeof(Elf64_Phdr);
	uint64_t at = (headers + c->notes.n + CORE_PAGE - 1) / CORE_PAGE * CORE_PAGE, n = at;
	Elf64_Ehdr h = { .e_type = ET_CORE,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(h),
			 .e_ehsize = sizeof(h),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = (uint16_t)(c->nsegments + 1) };
	Elf64_Phdr ph = { .p_type = PT_NOTE, .p_offset = headers, .p_filesz = c->notes.n };
	uint8_t *v;

	memcpy(h.e_ident, ELFMAG "\2\1\1", 7);
	for (uint32_t i = 0; i < c->nsegments; i++)
		n += c->segments[i].filesz;
	v = xcalloc(1, n);
	memcpy(v, &h, sizeof(h));
	memcpy(v + sizeof(h), &ph, sizeof(ph));
	memcpy(v + headers, c->notes.v, c->notes.n);
	for (uint32_t i = 0; i < c->nsegments; i++) {
		const struct core_segment *s = &c->segments[i];

		ph = (Elf64_Phdr){ .p_type = PT_LOAD,
				   .p_flags = s->flags,
				   .p_offset = at,
				   .p_vaddr = s->start,
				   .p_filesz = s->filesz,
				   .p_memsz = s->memsz,
				   .p_align = CORE_PAGE };
		memcpy(v + sizeof(h) + (i + 1) * sizeof(ph), &ph, sizeof(ph));
		if (s->filesz)
			memcpy(v + at, s->bytes, s->filesz);
		at += s->filesz;
	}
	vec_fini(&c->notes);
	*ret_n = n;
	return v;
}

#endif
