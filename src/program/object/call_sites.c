/* Changes relocatable objects: finds the calls of DTrace's probe functions by their relocations,
 * and replaces them in place.
 *
 *	e8 rel32     call f             0f 1f 44 00 00      nop                      the probe is at its first byte
 *	e9 rel32     jmp f              90 90 90 90 c3      nops, then ret           a tail call
 *	0f 8c rel32  jcc f              7C 04 90 90 90 c3   the opposite condition jumps over nops and a ret
 *	ff 15 rel32  call *f@GOT        0f 1f 44 00 00 90   from -fno-plt
 *	ff 25 rel32  jmp *f@GOT         90 90 90 90 c3 90
 *
 * A question becomes xor %rax,%rax in the same places (CALLS_DOF). */
#define _GNU_SOURCE
#include "program/object/call_sites.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/outfile.h"
#include "program/object/answer.h"
#include "program/object/object_private.h"

#define ANCHOR "__descry_text_"

enum {
	NAME_MOST = 4096,     /* of a function; a longer name is that of none */
	ANCHOR_MOST = 64,     /* the same of an anchor */
	OVERLAPS = 64,        /* functions that may begin before a place in one of them */
	SCAN_MOST = 64 << 20, /* bytes of code that are decoded, of a whole object */
};
enum asked { BY_VALUE = 1, BY_POINTER = 2 };

/* The form of a call. It is also the addend of its relocation when that is disabled. */
enum form { FORM_NONE, FORM_CALL, FORM_JMP, FORM_JCC, FORM_CALL_GOT, FORM_JMP_GOT, FORM_COUNT };

static const struct shape {
	uint8_t before,
		len; /* bytes of the instruction in front of the relocated ones, and in all */
	uint8_t opcode[2];
	uint8_t probe[6];   /* bytes that replace it */
	uint8_t no[6];      /* the question answered with no */
	uint8_t at, no_end; /* offset of the probe; offset behind the answer's instruction */
	bool tail;
	uint32_t reloc; /* type of the relocation */
} shapes[FORM_COUNT] = {
	[FORM_CALL] = { 1,
			5,
			{ 0xe8 },
			{ 0x0f, 0x1f, 0x44 },
			{ 0x48, 0x33, 0xc0, 0x90, 0x90 },
			0,
			3,
			false,
			R_X86_64_PLT32 },
	[FORM_JMP] = { 1,
		       5,
		       { 0xe9 },
		       { 0x90, 0x90, 0x90, 0x90, 0xc3 },
		       { 0x48, 0x33, 0xc0, 0xc3, 0x90 },
		       0,
		       3,
		       true,
		       R_X86_64_PLT32 },
	/* patch() adds the condition to the first bytes. */
	[FORM_JCC] = { 2,
		       6,
		       { 0x0f, 0x80 },
		       { 0x70, 4, 0x90, 0x90, 0x90, 0xc3 },
		       { 0x70, 4, 0x48, 0x33, 0xc0, 0xc3 },
		       2,
		       5,
		       true,
		       R_X86_64_PLT32 },
	[FORM_CALL_GOT] = { 2,
			    6,
			    { 0xff, 0x15 },
			    { 0x0f, 0x1f, 0x44, 0, 0, 0x90 },
			    { 0x48, 0x33, 0xc0, 0x90, 0x90, 0x90 },
			    0,
			    3,
			    false,
			    R_X86_64_GOTPCRELX },
	[FORM_JMP_GOT] = { 2,
			   6,
			   { 0xff, 0x25 },
			   { 0x90, 0x90, 0x90, 0x90, 0xc3, 0x90 },
			   { 0x48, 0x33, 0xc0, 0xc3, 0x90, 0x90 },
			   0,
			   3,
			   true,
			   R_X86_64_GOTPCRELX },
};

struct found {
	enum form form;
	uint32_t section, symbol; /* index of the text; index of the function called */
	uint64_t start;           /* of the instruction, in its section */
	uint64_t rela;            /* of the relocation, in the file */
	bool asks, live;          /* asks: a question; live: it is still a call */
};

/* A function, in the order of sections and places. */
struct place {
	uint32_t section, symbol;
	uint64_t start;
};

struct calls {
	char *path;
	struct stat st; /* of the file that was read */
	uint8_t *file;  /* changed in place; tables that grow are separate until calls_write() */
	size_t size;
	Elf64_Ehdr eh;
	uint64_t hash; /* of the unchanged file */
	uint32_t nsections, symtab, strtab;
	VEC(Elf64_Shdr) sections;
	VEC(Elf64_Sym) symbols;
	VEC(char) strings;
	VEC(struct place) functions;
	VEC(uint32_t) anchors; /* by section: the symbol; 0: none */
	VEC(uint8_t) asked;    /* by symbol: bits of enum asked */
	uint64_t scan_room;    /* bytes of code that may still be decoded */
	VEC(struct found) found;
	VEC(struct call_site) sites;
	VEC(char *) texts;
	bool changed, tables_changed;
};

static struct err *bad(const struct calls *c, const char *what)
{
	return err_new(EINVAL, "%s: %s", c->path, what);
}

static bool within(const struct calls *c, uint64_t offset, uint64_t n)
{
	return offset <= c->size && n <= c->size - offset;
}

/* Returns the bytes of section i in the file. */
static uint8_t *contents(struct calls *c, uint32_t i)
{
	return c->file + c->sections.v[i].sh_offset;
}

static struct err *read_sections(struct calls *c)
{
	if (c->size < sizeof(c->eh) || memcmp(c->file, ELFMAG, SELFMAG))
		return bad(c, "is not an ELF file: -G takes the object files (.o) of a program");
	memcpy(&c->eh, c->file, sizeof(c->eh));
	if (c->eh.e_ident[EI_CLASS] != ELFCLASS64 || c->eh.e_ident[EI_DATA] != ELFDATA2LSB ||
	    c->eh.e_machine != EM_X86_64)
		return bad(c, "is not an object for x86-64");
	if (c->eh.e_type != ET_REL)
		return bad(c, "is linked already: -G takes the object files (.o) it was made of");
	if (c->eh.e_shentsize != sizeof(Elf64_Shdr) ||
	    !within(c, c->eh.e_shoff, (uint64_t)c->eh.e_shnum * sizeof(Elf64_Shdr)))
		return bad(c, "its section headers are damaged");
	if (!c->eh.e_shnum && c->eh.e_shoff)
		return bad(c, "has too many sections: compile without -ffunction-sections");
	if (c->eh.e_shstrndx >= c->eh.e_shnum)
		return bad(c, "its section headers are damaged");
	for (uint32_t i = 0; i < c->eh.e_shnum; i++) {
		Elf64_Shdr s;

		memcpy(&s, c->file + c->eh.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_NOBITS && !within(c, s.sh_offset, s.sh_size))
			return bad(c, "is cut short");
		vec_push(&c->sections, s);
	}
	for (uint32_t i = 0; i < c->sections.n; i++)
		if (c->sections.v[i].sh_name > c->sections.v[c->eh.e_shstrndx].sh_size ||
		    c->sections.v[c->eh.e_shstrndx].sh_type == SHT_NOBITS)
			return bad(c, "its section names are damaged");
	return NULL;
}

static struct err *read_symbols(struct calls *c)
{
	const Elf64_Shdr *s;

	for (uint32_t i = 1; i < c->sections.n; i++)
		if (c->sections.v[i].sh_type == SHT_SYMTAB)
			c->symtab = i;
	if (!c->symtab)
		return NULL;
	s = &c->sections.v[c->symtab];
	c->strtab = s->sh_link;
	if (s->sh_entsize != sizeof(Elf64_Sym) || !c->strtab || c->strtab >= c->sections.n ||
	    c->sections.v[c->strtab].sh_type != SHT_STRTAB ||
	    s->sh_size / sizeof(Elf64_Sym) > UINT32_MAX / 2 ||
	    c->sections.v[c->strtab].sh_size > UINT32_MAX / 2)
		return bad(c, "its symbol table is damaged");
	vec_reserve(&c->symbols, s->sh_size / sizeof(Elf64_Sym));
	c->symbols.n = (uint32_t)(s->sh_size / sizeof(Elf64_Sym));
	if (c->symbols.n)
		memcpy(c->symbols.v, contents(c, c->symtab), c->symbols.n * sizeof(Elf64_Sym));
	vec_reserve(&c->strings, c->sections.v[c->strtab].sh_size + 1);
	c->strings.n = (uint32_t)c->sections.v[c->strtab].sh_size;
	memcpy(c->strings.v, contents(c, c->strtab), c->strings.n);
	if (!c->strings.n || c->strings.v[c->strings.n - 1])
		vec_push(&c->strings, '\0');
	return NULL;
}

/* Returns the name, or "" when it has none or is damaged. */
static const char *symbol_name(const struct calls *c, uint32_t i)
{
	if (i >= c->symbols.n || c->symbols.v[i].st_name >= c->strings.n)
		return "";
	return c->strings.v + c->symbols.v[i].st_name;
}

/* The same, but "" for a name that is too long: any number of symbols may share it. */
static const char *short_name(const struct calls *c, uint32_t i, size_t most)
{
	const char *name = symbol_name(c, i);

	return strnlen(name, most) < most ? name : "";
}

/* Returns true when assembler text can contain the name without quotes. */
static bool is_plain(const char *name)
{
	return !name[strspn(name,
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$")];
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return COMPARE(x->section, y->section) ?: COMPARE(x->start, y->start) ?: COMPARE(x->symbol, y->symbol);
}

/* Keeps the functions in order, and the anchors of an earlier run. */
static void index_symbols(struct calls *c)
{
	vec_reserve(&c->anchors, c->sections.n);
	c->anchors.n = c->sections.n;
	memset(c->anchors.v, 0, c->anchors.n * sizeof(*c->anchors.v));
	for (uint32_t i = 1; i < c->symbols.n; i++) {
		const Elf64_Sym *s = &c->symbols.v[i];
		const char *name;

		if (s->st_shndx >= c->sections.n)
			continue;
		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC)
			vec_push(&c->functions, (struct place){ s->st_shndx, i, s->st_value });
		if (c->anchors.v[s->st_shndx])
			continue;
		name = short_name(c, i, ANCHOR_MOST);
		if (!strncmp(name, ANCHOR, strlen(ANCHOR)) && is_plain(name))
			c->anchors.v[s->st_shndx] = i;
	}
	if (c->functions.n)
		qsort(c->functions.v, c->functions.n, sizeof(*c->functions.v), by_place);
}

static void rename_symbol(struct calls *c, uint32_t i, const char *name)
{
	size_t len = strlen(name) + 1;

	c->symbols.v[i].st_name = c->strings.n;
	vec_reserve(&c->strings, len);
	memcpy(c->strings.v + c->strings.n, name, len);
	c->strings.n += (uint32_t)len;
	c->tables_changed = c->changed = true;
}

/* Returns "PROVIDER___PROBE" of a symbol that is a probe's function, else NULL. */
static const char *probe_of(const char *symbol, bool *ret_asks)
{
	static const struct {
		const char *prefix;
		bool asks;
	} known[] = { { CALLS_ASKS, true },
		      { CALLS_ASKS_BY_POINTER, true },
		      { CALLS_PROBE_DONE, false },
		      { CALLS_PROBE, false } };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i].prefix);
		const char *sep = strncmp(symbol, known[i].prefix, n) ? NULL
								      : strstr(symbol + n, "___");

		if (sep && sep > symbol + n && sep[3] && is_plain(symbol)) {
			*ret_asks = known[i].asks;
			return symbol + n;
		}
	}
	return NULL;
}

static enum form form_at(const uint8_t *text, uint64_t at)
{
	static const enum form order[] = { FORM_CALL_GOT, FORM_JMP_GOT, FORM_JCC, FORM_CALL,
					   FORM_JMP };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const struct shape *s = &shapes[order[i]];
		const uint8_t *code = text + at - s->before;

		if (at < s->before || code[0] != s->opcode[0])
			continue;
		if (s->before == 1 || code[1] == s->opcode[1] ||
		    (order[i] == FORM_JCC && (code[1] & 0xf0) == 0x80))
			return order[i];
	}
	return FORM_NONE;
}

static bool is_got(uint32_t type)
{
	return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX;
}

static struct err *not_understood(const struct calls *c, uint32_t symbol)
{
	return err_new(EINVAL,
		       "%s: %s is used other than by a plain call: its address must not be taken, "
		       "and -mcmodel=large and clang's -fno-plt may have made it otherwise",
		       c->path, symbol_name(c, symbol));
}

static struct err *add_relocation(struct calls *c, uint32_t section, uint64_t at)
{
	const Elf64_Shdr *s = &c->sections.v[section];
	struct found f = { .section = section, .rela = at };
	bool got;
	Elf64_Rela r;
	uint32_t type;

	memcpy(&r, c->file + at, sizeof(r));
	type = (uint32_t)ELF64_R_TYPE(r.r_info);
	f.symbol = (uint32_t)ELF64_R_SYM(r.r_info);
	if (!probe_of(short_name(c, f.symbol, NAME_MOST), &f.asks) ||
	    c->symbols.v[f.symbol].st_shndx != SHN_UNDEF)
		return NULL;
	if (!(s->sh_flags & SHF_ALLOC))
		return NULL; /* debugging information */
	if (!(s->sh_flags & SHF_EXECINSTR) || s->sh_type == SHT_NOBITS || s->sh_size < 4 ||
	    r.r_offset > s->sh_size - 4)
		return not_understood(c, f.symbol);
	f.live = type != R_X86_64_NONE;
	got = is_got(type);
	if (f.live &&
	    (r.r_addend != -4 || !(got || type == R_X86_64_PLT32 || type == R_X86_64_PC32)))
		return not_understood(c, f.symbol);
	if (!f.live && (r.r_addend <= FORM_NONE || r.r_addend >= FORM_COUNT))
		return NULL;
	f.form = f.live ? form_at(contents(c, section), r.r_offset) : (enum form)r.r_addend;
	if (f.form == FORM_NONE || r.r_offset < shapes[f.form].before ||
	    (f.live && is_got(shapes[f.form].reloc) != got))
		return not_understood(c, f.symbol);
	if (c->found.n == CALLS_SITES_MOST)
		return bad(c, "has too many calls of probes");
	f.start = r.r_offset - shapes[f.form].before;
	vec_push(&c->found, f);
	return NULL;
}

static struct err *read_relocations(struct calls *c)
{
	for (uint32_t i = 1; i < c->sections.n; i++) {
		const Elf64_Shdr *s = &c->sections.v[i];

		if (s->sh_type != SHT_RELA || s->sh_link != c->symtab || !s->sh_info ||
		    s->sh_info >= c->sections.n)
			continue;
		for (uint64_t at = 0; s->sh_size - at >= sizeof(Elf64_Rela);
		     at += sizeof(Elf64_Rela)) {
			struct err *e = add_relocation(c, s->sh_info, s->sh_offset + at);

			if (e)
				return e;
		}
	}
	return NULL;
}

/* Writes the new instruction and its relocation. call: makes it a call again. */
static void patch(struct calls *c, const struct found *f, const uint8_t *code, bool call)
{
	const struct shape *s = &shapes[f->form];
	uint8_t *at = contents(c, f->section) + f->start, old[6], new[6];
	Elf64_Rela r, was;

	memcpy(old, at, s->len);
	memcpy(new, call ? s->opcode : code, call ? s->before : s->len);
	if (call)
		memset(new + s->before, 0, 4);
	if (f->form == FORM_JCC && f->live)
		new[0] |= (old[1] & 0xf) ^ 1;
	else if (f->form == FORM_JCC && call)
		new[1] |= (old[0] & 0xf) ^ 1;
	else if (f->form == FORM_JCC)
		new[0] = old[0];
	memcpy(&was, c->file + f->rela, sizeof(was));
	r = was;
	if (call != f->live) {
		r.r_info = ELF64_R_INFO((uint64_t)f->symbol, call ? s->reloc : R_X86_64_NONE);
		r.r_addend = call ? -4 : (Elf64_Sxword)f->form;
	}
	if (!memcmp(old, new, s->len) && !memcmp(&was, &r, sizeof(r)))
		return;
	memcpy(at, new, s->len);
	memcpy(c->file + f->rela, &r, sizeof(r));
	c->changed = true;
}

/* Returns true for a section of which other objects have copies. The linker keeps the first copy,
 * so all objects with the same code must use the same name for it. */
static bool is_copy(struct calls *c, uint32_t section)
{
	return c->sections.v[section].sh_flags & SHF_GROUP;
}

static const char *section_name(struct calls *c, uint32_t section, size_t *ret_n)
{
	const Elf64_Shdr *s = &c->sections.v[section], *names = &c->sections.v[c->eh.e_shstrndx];
	const char *name = (const char *)contents(c, c->eh.e_shstrndx) + s->sh_name;

	*ret_n = strnlen(name, names->sh_size - s->sh_name);
	return name;
}

static void name_anchor(struct calls *c, uint32_t section, char *name, size_t size)
{
	const char *own;
	size_t n;

	if (is_copy(c, section)) {
		own = section_name(c, section, &n);
		snprintf(name, size, ANCHOR "%016llx_%016llx",
			 (unsigned long long)hash_fixed(contents(c, section),
							c->sections.v[section].sh_size),
			 (unsigned long long)hash_fixed(own, n));
	} else {
		snprintf(name, size, ANCHOR "%016llx_%u", (unsigned long long)c->hash, section);
	}
}

/* Returns the symbol by which other files refer to a section. Adds it when there is none. */
static uint32_t anchor_of(struct calls *c, uint32_t section)
{
	uint32_t binding = is_copy(c, section) ? STB_WEAK : STB_GLOBAL;
	Elf64_Sym sym = { .st_info = ELF64_ST_INFO(binding, STT_NOTYPE),
			  .st_other = STV_HIDDEN,
			  .st_shndx = (uint16_t)section };
	char name[ANCHOR_MOST];

	if (c->anchors.v[section])
		return c->anchors.v[section];
	vec_push(&c->symbols, sym);
	name_anchor(c, section, name, sizeof(name));
	rename_symbol(c, c->symbols.n - 1, name);
	c->anchors.v[section] = c->symbols.n - 1;
	return c->symbols.n - 1;
}

/* Names the sections of groups by what they hold, while the code is unchanged. Together they have
 * no more bytes than the file, with names that may end alike. */
static struct err *anchor_copies(struct calls *c)
{
	uint64_t room = c->size * 4;

	for (uint32_t i = 0; i < c->found.n; i++) {
		const uint32_t section = c->found.v[i].section;
		size_t n;

		if (!is_copy(c, section) || c->anchors.v[section])
			continue;
		(void)section_name(c, section, &n);
		n += c->sections.v[section].sh_size;
		if (n > room)
			return bad(c, "its sections lie over each other");
		room -= n;
		(void)anchor_of(c, section);
	}
	return NULL;
}

/* Returns the function around a place in a section, or NULL. */
static const Elf64_Sym *function_at(const struct calls *c, uint32_t section, uint64_t at)
{
	const Elf64_Sym *best = NULL;
	uint32_t low = 0, high = c->functions.n;

	/* the first function behind the place */
	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;
		const struct place *p = &c->functions.v[mid];

		if (p->section < section || (p->section == section && p->start <= at))
			low = mid + 1;
		else
			high = mid;
	}
	for (int k = 0; low-- > 0 && k < OVERLAPS && c->functions.v[low].section == section; k++) {
		const Elf64_Sym *s = &c->symbols.v[c->functions.v[low].symbol];

		if (at - s->st_value < s->st_size &&
		    (!best || ELF64_ST_BIND(s->st_info) > ELF64_ST_BIND(best->st_info) ||
		     (ELF64_ST_BIND(s->st_info) == ELF64_ST_BIND(best->st_info) && s < best)))
			best = s;
	}
	return best;
}

static char *calls_keep(struct calls *c, char *text)
{
	vec_push(&c->texts, text);
	return text;
}

struct text {
	const uint8_t *p;
	uint64_t n;
};

static uint32_t read_text(const void *arg, uint64_t at, uint8_t *buf, uint32_t n)
{
	const struct text *t = arg;

	if (at >= t->n)
		return 0;
	if (n > t->n - at)
		n = (uint32_t)(t->n - at);
	memcpy(buf, t->p + at, n);
	return n;
}

/* Finds how the answers to each question are read. An object asks all questions of a probe in the
 * same way: through the first argument, a pointer, or by the call's value. A single question that
 * uses the value decides for the value. */
static void find_answers(struct calls *c)
{
	vec_reserve(&c->asked, c->symbols.n + 1);
	c->asked.n = c->symbols.n;
	memset(c->asked.v, 0, c->asked.n);
	for (uint32_t i = 0; i < c->found.n; i++) {
		const struct found *f = &c->found.v[i];
		struct text text = { contents(c, f->section), c->sections.v[f->section].sh_size };
		struct code code = { read_text, &text };
		uint8_t *asked = &c->asked.v[f->symbol];
		const Elf64_Sym *func;

		if (!f->asks || *asked & BY_VALUE)
			continue;
		if (shapes[f->form].tail || code_reads_rax(&code, f->start + shapes[f->form].len)) {
			*asked |= BY_VALUE;
			continue;
		}
		func = *asked & BY_POINTER ? NULL : function_at(c, f->section, f->start);
		if (!func || f->start - func->st_value > c->scan_room)
			continue;
		c->scan_room -= f->start - func->st_value;
		if (code_sets_rdi(&code, func->st_value, f->start))
			*asked |= BY_POINTER;
	}
}

static bool asked_by_pointer(const struct calls *c, uint32_t symbol)
{
	return !strncmp(symbol_name(c, symbol), CALLS_ASKS_BY_POINTER,
			strlen(CALLS_ASKS_BY_POINTER)) ||
	       c->asked.v[symbol] == BY_POINTER;
}

static void add_site(struct calls *c, const struct found *f, enum calls_form form)
{
	const struct shape *s = &shapes[f->form];
	struct call_site site = { .asks = f->asks, .tail = s->tail, .func = "" };
	const Elf64_Sym *func = function_at(c, f->section, f->start);
	const char *symbol = symbol_name(c, f->symbol), *provider = probe_of(symbol, &site.asks);
	size_t n = (size_t)(strstr(provider, "___") - provider);
	int64_t base;

	site.provider = calls_keep(c, xstrndup(provider, n));
	site.name = calls_keep(c, xstrdup(provider + n + 3));
	site.probe_hash = hash_bytes(provider, strlen(provider));
	site.by_pointer = f->asks && asked_by_pointer(c, f->symbol);
	if (func && is_plain(short_name(c, (uint32_t)(func - c->symbols.v), NAME_MOST)))
		site.func = calls_keep(
			c, xstrdup(short_name(c, (uint32_t)(func - c->symbols.v), NAME_MOST)));
	site.func_hash = hash_bytes(site.func, strlen(site.func));
	site.place = (int64_t)(f->start + (f->asks ? s->no_end : s->at));
	site.func_place = func ? (int64_t)func->st_value : site.place;
	if (!f->asks || form == CALLS_DOF) {
		uint32_t anchor = anchor_of(c, f->section);

		base = (int64_t)c->symbols.v[anchor].st_value;
		site.anchor = calls_keep(c, xstrdup(symbol_name(c, anchor)));
		site.place -= base;
		site.func_place -= base;
	}
	vec_push(&c->sites, site);
	patch(c, f, f->asks ? s->no : s->probe, f->asks && form == CALLS_NOTES);
}

/* Renames the functions. Objects then refer to symbols that -G defines. If -G was forgotten, the
 * linker reports them. */
static void rename_functions(struct calls *c)
{
	for (uint32_t i = 0; i < c->found.n; i++) {
		const char *symbol = symbol_name(c, c->found.v[i].symbol), *new = NULL;
		cleanup_free char *name = NULL;
		bool asks;

		if (!c->found.v[i].asks &&
		    strncmp(symbol, CALLS_PROBE_DONE, strlen(CALLS_PROBE_DONE)))
			new = CALLS_PROBE_DONE;
		else if (c->found.v[i].asks && c->sites.v[i].by_pointer &&
			 !strncmp(symbol, CALLS_ASKS, strlen(CALLS_ASKS)))
			new = CALLS_ASKS_BY_POINTER;
		if (!new)
			continue;
		name = xasprintf("%s%s", new, probe_of(symbol, &asks));
		rename_symbol(c, c->found.v[i].symbol, name);
	}
}

/* Its owner and mode are those of the bytes that are read: the name may lead elsewhere soon. */
static struct err *read_object(struct calls *c)
{
	cleanup_close int fd = open(c->path, O_RDONLY | O_CLOEXEC);
	char *text;
	struct err *e;

	if (fd < 0 || fstat(fd, &c->st))
		return err_errno(errno, "%s: open", c->path);
	if (!S_ISREG(c->st.st_mode))
		return err_new(EINVAL, "%s: no regular file", c->path);
	e = io_read_fd(fd, c->path, (size_t)c->st.st_size, &text, &c->size);
	if (e)
		return e;
	c->file = (uint8_t *)text;
	if (c->size < (size_t)c->st.st_size)
		return err_new(EINVAL, "%s: the file was changed while it was read", c->path);
	return NULL;
}

struct err *calls_open(const char *path, enum calls_form form, struct calls **ret)
{
	struct calls *c = xcalloc(1, sizeof(*c));
	struct err *e;

	c->path = xstrdup(path);
	c->scan_room = SCAN_MOST;
	e = read_object(c);
	e = e ?: read_sections(c);
	e = e ?: read_symbols(c);
	if (!e && c->symtab)
		e = read_relocations(c);
	if (!e) {
		index_symbols(c);
		c->hash = hash_fixed(c->file, c->size);
		e = anchor_copies(c);
	}
	if (e) {
		calls_free(c);
		return e;
	}
	find_answers(c);
	for (uint32_t i = 0; i < c->found.n; i++)
		add_site(c, &c->found.v[i], form);
	rename_functions(c);
	*ret = c;
	return NULL;
}

void calls_free(struct calls *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->texts.n; i++)
		free(c->texts.v[i]);
	vec_fini(&c->texts);
	vec_fini(&c->sections);
	vec_fini(&c->symbols);
	vec_fini(&c->strings);
	vec_fini(&c->functions);
	vec_fini(&c->anchors);
	vec_fini(&c->asked);
	vec_fini(&c->found);
	vec_fini(&c->sites);
	free(c->file);
	free(c->path);
	free(c);
}

const struct call_site *calls_sites(const struct calls *c, uint32_t *ret_n)
{
	*ret_n = c->sites.n;
	return c->sites.v;
}

/* Appends a table to the file and points its section to it. */
static void append_table(struct calls *c, uint32_t section, const void *p, size_t n)
{
	Elf64_Shdr *s = &c->sections.v[section];
	size_t at = (c->size + 7) & ~(size_t)7;

	c->file = xrealloc(c->file, at + n);
	memset(c->file + c->size, 0, at - c->size);
	memcpy(c->file + at, p, n);
	c->size = at + n;
	s->sh_offset = at;
	s->sh_size = n;
	memcpy(c->file + c->eh.e_shoff + section * sizeof(*s), s, sizeof(*s));
}

/* Replaces the file. Its folder, which may be another user's, must still be the one with the file
 * that was read. */
static struct err *write_file(const struct calls *c)
{
	const char *name = outfile_name(c->path);
	cleanup_close int dir = outfile_folder(c->path);
	struct outfile f;
	struct stat st;
	bool good;

	if (dir < 0 || fstatat(dir, name, &st, 0))
		return err_errno(errno, "cannot write %s", c->path);
	if (st.st_dev != c->st.st_dev || st.st_ino != c->st.st_ino)
		return err_new(EBUSY, "%s: another file has this name now", c->path);
	if (!outfile_begin(&f, dir, name, OUTFILE_PRIVATE))
		return err_errno(errno, "cannot write beside %s", c->path);
	/* A file of another user stays that user's. */
	good = io_write(f.fd, c->file, c->size) && outfile_like(&f, &c->st);
	if (!outfile_end(&f, name, good))
		return err_errno(errno, "cannot write %s", c->path);
	return NULL;
}

struct err *calls_write(struct calls *c)
{
	if (!c->changed)
		return NULL;
	if (c->tables_changed) {
		append_table(c, c->symtab, c->symbols.v, c->symbols.n * sizeof(Elf64_Sym));
		append_table(c, c->strtab, c->strings.v, c->strings.n);
		c->tables_changed = false;
	}
	c->changed = false;
	return write_file(c);
}
