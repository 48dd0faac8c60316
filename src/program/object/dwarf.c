/* See dwarf.h. Which sections libdw reads: its dwarf_begin_elf.c. */
#define _GNU_SOURCE
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mapped.h"
#include "program/object/dwarf.h"
#include "program/object/image.h"

/* Bytes: an entry of .debug_aranges is read 23 too far at most, others less. */
enum { BEHIND = 64 };

#define INFLATED_MAX (2ULL << 30) /* libelf inflates all compressed sections at once */

char *dwarf_debug_path = (char[]){ "/usr/lib/debug" };

const Dwfl_Callbacks dwarf_callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwarf_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &dwarf_debug_path,
};

/* What a section of debugging information will take when libelf has inflated it, 0: it is not
 * compressed. */
static uint64_t inflated_size(Elf_Scn *s, const GElf_Shdr *h, const char *name)
{
	uint64_t size = 0;
	const Elf_Data *d;
	GElf_Chdr c;

	if ((h->sh_flags & SHF_COMPRESSED) && !strncmp(name, ".debug_", 7))
		return gelf_getchdr(s, &c) ? c.ch_size : 0;
	if (strncmp(name, ".zdebug_", 8))
		return 0;
	d = elf_rawdata(s, NULL);
	if (!d || !d->d_buf || d->d_size < 12 || memcmp(d->d_buf, "ZLIB", 4))
		return 0;
	for (int i = 4; i < 12; i++)
		size = size << 8 | ((const uint8_t *)d->d_buf)[i];
	return size;
}

static bool is_bounded(Elf *elf)
{
	uint64_t left = INFLATED_MAX;
	Elf_Scn *s = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		return true;
	while ((s = elf_nextscn(elf, s))) {
		const char *name;
		GElf_Shdr h;
		uint64_t n;

		name = gelf_getshdr(s, &h) ? elf_strptr(elf, strings, h.sh_name) : NULL;
		n = name ? inflated_size(s, &h, name) : 0;
		if (n > left)
			return false;
		left -= n;
	}
	return true;
}

/* A descriptor of that file, when it is the module's debug file, -1 else. */
static int open_debug_file(Dwfl_Module *m, const char *path, const struct stat *main,
			   const uint32_t *crc)
{
	const unsigned char *id = NULL;
	GElf_Addr addr;
	int id_len = dwfl_module_build_id(m, &id, &addr), fd = -1;
	struct object *o;
	struct stat st;
	struct err *e = object_open(path, &o);
	Elf *elf;

	if (e) {
		err_free(e);
		return -1;
	}
	if (!fstat(o->fd, &st) && (st.st_ino != main->st_ino || st.st_dev != main->st_dev) &&
	    image_is_debug_of(o, id, id_len > 0 ? (uint32_t)id_len : 0, crc) &&
	    (elf = elf_begin(o->fd, ELF_C_READ_MMAP, NULL))) {
		if (is_bounded(elf))
			fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		elf_end(elf);
	}
	object_free(o);
	return fd;
}

/* Beside the file, or in .debug there. link NULL: FILE.debug. */
static int find_beside(Dwfl_Module *m, const char *file, const char *link, const uint32_t *crc,
		       char **ret_path)
{
	const char *slash = strrchr(file, '/');
	int dir = slash ? (int)(slash - file) + 1 : 0, fd = -1;
	struct stat main;

	if (stat(file, &main))
		return -1;
	for (int i = 0; i < 2 && fd < 0; i++) {
		char *path = xasprintf("%.*s%s%s%s", dir, file, i ? ".debug/" : "",
				       link ? link : file + dir, link ? "" : ".debug");

		fd = open_debug_file(m, path, &main, crc);
		if (fd >= 0)
			*ret_path = path;
		else
			free(path);
	}
	return fd;
}

/* libdwfl asks for the file a .gnu_debugaltlink names, too: that may lie anywhere, and is then left
 * to dwarf_getalt(). */
int dwarf_find_debuginfo(Dwfl_Module *m, void **userdata, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **ret_path)
{
	const char *slash = link ? strrchr(link, '/') : NULL;
	int fd = -1;

	if (file && !slash) {
		cleanup_free char *real = realpath(file, NULL);
		const uint32_t *sum = link && crc ? &crc : NULL;

		fd = find_beside(m, file, link, sum, ret_path);
		if (fd < 0 && real && strcmp(real, file))
			fd = find_beside(m, real, link, sum, ret_path);
	}
	return fd >= 0 ? fd
		       : dwfl_standard_find_debuginfo(m, userdata, name, base, file,
						      slash ? slash + 1 : link, crc, ret_path);
}

Dwfl_Module *dwarf_report(Dwfl *d, const char *name, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	Dwfl_Module *m = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	mapped_guard();
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		m = dwfl_report_offline(d, name, path, fd);
	if (!m)
		close(fd);
	return m;
}

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

/* Where it lies in the mapped file, what is behind it can be read, and mostly a NUL is near:
 * headers, or other sections. */
static bool is_followed(const Elf_Data *d, const char *file, size_t n)
{
	const char *begin = d->d_buf;

	if (!file || begin < file || begin > file + n || d->d_size > (size_t)(file + n - begin))
		return false;
	n -= (size_t)(begin - file) + d->d_size;
	return n >= BEHIND && memchr(begin + d->d_size, '\0', n);
}

static bool is_copy(const struct dwarf_copies *c, const void *p)
{
	for (uint32_t i = 0; i < c->v.n; i++)
		if (c->v.v[i] == p)
			return true;
	return false;
}

/* False: it is larger than anybody copies (a sparse file). */
static bool put_end(Elf_Data *d, struct dwarf_copies *c)
{
	char *copy;

	if (d->d_size > INFLATED_MAX)
		return false;
	copy = xmalloc(d->d_size + BEHIND);
	memcpy(copy, d->d_buf, d->d_size);
	memset(copy + d->d_size, 0, BEHIND);
	/* libelf frees what it has allocated by another pointer. */
	d->d_buf = copy;
	vec_push(&c->v, copy);
	return true;
}

/* False: no section of a program's debugging information; those of objects (LTO, .dwo) are not
 * looked at here. */
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
		if (!is_followed(d, file, n) && !is_copy(c, d->d_buf) && !put_end(d, c))
			return false;
	}
	return any;
}

/* The folder of a file as libdw finds it: by way of a descriptor, for the path may lead through
 * another's root. */
static char *folder_of(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	char link[32], *real, *slash;

	if (fd < 0)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	real = realpath(link, NULL);
	close(fd);
	slash = real ? strrchr(real, '/') : NULL;
	if (slash)
		slash[1] = '\0';
	return real;
}

/* Would dwarf_getalt() wait for ever, opening what .gnu_debugaltlink names? (Who puts a FIFO there
 * between this and that still has it wait.) */
static bool is_alt_safe(Dwfl_Module *m, Dwarf *d)
{
	const char *name = NULL, *main = NULL, *debug = NULL;
	cleanup_free char *folder = NULL, *path = NULL;
	const void *id;
	struct stat st;

	if (dwelf_dwarf_gnu_debugaltlink(d, &name, &id) <= 0 || !name)
		return true;
	if (name[0] != '/') {
		dwfl_module_info(m, NULL, NULL, NULL, NULL, NULL, &main, &debug);
		folder = debug || main ? folder_of(debug ? debug : main) : NULL;
		if (!folder)
			return false;
	}
	path = xasprintf("%s%s", folder ? folder : "", name);
	return stat(path, &st) || S_ISREG(st.st_mode);
}

Dwarf *dwarf_of_module(Dwfl_Module *m, Dwarf_Addr *bias, struct dwarf_copies *c)
{
	Elf *elf = dwfl_module_getelf(m, bias);
	Dwarf *d, *alt;

	if (elf && !is_bounded(elf))
		return NULL;
	d = dwfl_module_getdwarf(m, bias);
	if (!d || !is_alt_safe(m, d) || !put_ends(dwarf_getelf(d), c))
		return NULL;
	alt = dwarf_getalt(d);
	return alt && !put_ends(dwarf_getelf(alt), c) ? NULL : d;
}
