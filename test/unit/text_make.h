/* Machine code written by hand as a module, and the places in it where bytes may be displaced. */
#ifndef DESCRY_TEST_TEXT_MAKE_H
#define DESCRY_TEST_TEXT_MAKE_H

#include "unit.h"

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
static inline struct made make(const void *code, uint32_t ncode, const void *data, uint32_t ndata,
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

static inline void begin(struct made *m)
{
	assert_null(object_open_memory("made", m->e.image, m->e.size, &m->object));
	assert_null(text_open(m->object, &m->text));
}

static inline void end(struct made *m)
{
	text_free(m->text);
	object_free(m->object);
	free(m->e.image);
}

#define FUNC(name, off, size) \
	{ \
		name, T + (off), size, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) \
	}
#define LOCAL(name, off, size) \
	{ \
		name, T + (off), size, ELF64_ST_INFO(STB_LOCAL, STT_FUNC) \
	}
#define SYMBOLS(...) \
	(const struct elf_symbol[]){ __VA_ARGS__ }, \
		sizeof((const struct elf_symbol[]){ __VA_ARGS__ }) / sizeof(struct elf_symbol)
#define CODE(s) s, sizeof(s) - 1

static inline struct text_site entry(struct made *m, uint32_t off)
{
	struct text_site s;

	assert_null(text_entry(m->text, T + off, &s));
	return s;
}

static inline struct text_site offset(struct made *m, uint32_t func, uint32_t off)
{
	struct text_site s;

	assert_null(text_offset(m->text, T + func, off, &s));
	return s;
}

/* The exits of a function; the count, or -1 with a reason. */
static struct text_site exits[16];
static const char *exits_reason;
static inline int returns(struct made *m, uint32_t off)
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

static inline void expect_site(struct text_site s, enum text_mode mode, uint32_t addr, uint32_t at,
			       uint32_t len, uint32_t moved)
{
	if (s.mode != mode || s.addr != T + addr || s.at != at || s.len != len || s.moved != moved)
		fail_msg("mode %d addr +0x%lx at %u len %u moved %u (%s)", s.mode,
			 (unsigned long)(s.addr - T), s.at, s.len, s.moved,
			 s.reason ? s.reason : "no reason");
	assert_true((s.reason != NULL) == (mode != TEXT_PATCH));
}

static inline void expect_reason(struct text_site s, enum text_mode mode, const char *part)
{
	assert_int_equal(s.mode, mode);
	if (!s.reason || !strstr(s.reason, part))
		fail_msg("\"%s\" is not \"%s\"", s.reason ? s.reason : "", part);
}

#endif
