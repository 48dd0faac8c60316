/* See dwarf.h. Which sections libdw reads: its dwarf_begin_elf.c. */
#include <gelf.h>
#include <string.h>

#include "program/object/dwarf.h"

/* Bytes: an entry of .debug_aranges is read 23 too far at most, others less. */
enum { BEHIND = 64 };

void dwarf_copies_free(struct dwarf_copies *c)
{
	for (uint32_t i = 0; i < c->v.n; i++)
		free(c->v.v[i]);
	vec_fini(&c->v);
}

static const char *const names[] = {
	"info",     "types", "abbrev",      "addr",   "aranges",  "line",
	"line_str", "str",   "str_offsets", "ranges", "rnglists",
};

/* Index in names of a section that libdw would read, -1: it would not. */
static int kind_of(Elf_Scn *s, size_t strings, Elf *elf)
{
	GElf_Shdr h;
	const char *name;

	/* libdw has inflated what it could, and leaves the others. */
	if (!gelf_getshdr(s, &h) || h.sh_type == SHT_NOBITS ||
	    (h.sh_flags & (SHF_GROUP | SHF_COMPRESSED)))
		return -1;
	name = elf_strptr(elf, strings, h.sh_name);
	if (!name)
		return -1;
	if (!strncmp(name, ".debug_", 7))
		name += 7;
	else if (!strncmp(name, ".zdebug_", 8))
		name += 8;
	else
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return (int)i;
	return -1;
}

/* Where it lies in the mapped file, what is behind it can be read, and mostly a NUL is near: headers, or other sections. */
static bool is_followed(const Elf_Data *d, const char *file, size_t n)
{
	const char *begin = d->d_buf;

	if (!file || begin < file || begin > file + n || d->d_size > (size_t)(file + n - begin))
		return false;
	n -= (size_t)(begin - file) + d->d_size;
	return n >= BEHIND && memchr(begin + d->d_size, '\0', n);
}

static void put_end(Elf_Data *d, struct dwarf_copies *c)
{
	char *copy = xmalloc(d->d_size + BEHIND);

	memcpy(copy, d->d_buf, d->d_size);
	memset(copy + d->d_size, 0, BEHIND);
	/* libelf frees what it has allocated by another pointer. */
	d->d_buf = copy;
	vec_push(&c->v, copy);
}

/* False: no section of a program's debugging information; those of objects (LTO, .dwo) are not looked at here. */
static bool put_ends(Elf *elf, struct dwarf_copies *c)
{
	bool seen[ARRAY_SIZE(names)] = { false }, any = false;
	Elf_Scn *s = NULL;
	size_t strings, n;
	const char *file = elf_rawfile(elf, &n);

	if (elf_getshdrstrndx(elf, &strings))
		return false;
	while ((s = elf_nextscn(elf, s))) {
		int k = kind_of(s, strings, elf);
		Elf_Data *d;

		if (k < 0 || seen[k])
			continue;
		d = elf_getdata(s, NULL);
		if (!d || !d->d_buf || !d->d_size)
			continue;
		seen[k] = any = true;
		if (!is_followed(d, file, n))
			put_end(d, c);
	}
	return any;
}

Dwarf *dwarf_of_module(Dwfl_Module *m, Dwarf_Addr *bias, struct dwarf_copies *c)
{
	Dwarf *d = dwfl_module_getdwarf(m, bias), *alt;

	if (!d || !put_ends(dwarf_getelf(d), c))
		return NULL;
	alt = dwarf_getalt(d);
	return alt && !put_ends(dwarf_getelf(alt), c) ? NULL : d;
}
