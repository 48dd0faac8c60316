/* Opens debugging information safely. See dwarf.h. libdw's dwarf_begin_elf.c lists the sections
 * that libdw reads. */
#define _GNU_SOURCE
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/mapped.h"
#include "base/regular.h"
#include "program/object/dwarf.h"
#include "program/object/object_private.h"

/* Bytes. libdw reads an entry of .debug_aranges at most 23 too far, and others less. */
enum { BEHIND = 64 };

/* libelf inflates all compressed sections of a file at once, and put_end() copies them. All files
 * that are open share a budget, so that many files cost no more than one. */
#define HELD_MAX (4ULL << 30) /* bytes; room() takes no more than a quarter of the memory */
#define COPY_MAX (2ULL << 30) /* of one section; a sparse file may hold terabytes */
enum {
	RATIO_MAX = 100,        /* of an honest section; zlib can reach 1032 */
	RATIO_SMALL = 16 << 20, /* sections up to this size may have any ratio */
};
static _Atomic uint64_t held, held_max = HELD_MAX;

static uint64_t room(void)
{
	uint64_t most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
	uint64_t now = held, max = held_max;

	if (most > max)
		most = max;
	return now < most ? most - now : 0;
}

void dwarf_limit(uint64_t bytes)
{
	held_max = bytes ? bytes : HELD_MAX;
}

static void hold(struct dwarf_copies *c, uint64_t n)
{
	c->bytes += n;
	held += n;
}

static char *debug_path = (char[]){ "/usr/lib/debug" };

static int find_debuginfo(Dwfl_Module *m, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **ret_path);

const Dwfl_Callbacks dwarf_callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debug_path,
};

/* Returns the size of a section of debugging information after libelf has inflated it, 0 when it is
 * not compressed. */
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

/* Returns false when the file's sections, inflated and copied, would not fit into the budget, or
 * are forged to be much larger than the file. */
static bool is_bounded(Elf *elf)
{
	uint64_t left = room() / 2;
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
		if (n > left || (n > RATIO_SMALL && n / RATIO_MAX > h.sh_size))
			return false;
		left -= n;
	}
	return true;
}

/* Opens the file if it is the module's debug file. Returns a descriptor, or -1. */
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

	if (err_drop(e))
		return -1;
	if (!fstat(o->fd, &st) && (st.st_ino != main->st_ino || st.st_dev != main->st_dev) &&
	    image_trusts_neighbour(main, o) &&
	    image_is_debug_of(o, id, id_len > 0 ? (uint32_t)id_len : 0, crc) &&
	    (elf = elf_begin(o->fd, ELF_C_READ_MMAP, NULL))) {
		if (is_bounded(elf))
			fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		elf_end(elf);
	}
	object_free(o);
	return fd;
}

/* Opens a debug file beside the file, or in .debug there. link NULL: FILE.debug. */
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

static bool is_same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* Finds a module's debug file for libdwfl. libdwfl also calls this for the file that a
 * .gnu_debugaltlink names. It may lie anywhere, so it is left to dwarf_getalt(). */
static int find_debuginfo(Dwfl_Module *m, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **ret_path)
{
	const char *slash = link ? strrchr(link, '/') : NULL;
	int fd = -1;

	if (file && !slash) {
		cleanup_free char *real = realpath(file, NULL);
		const uint32_t *sum = link && crc ? &crc : NULL;

		if (!image_path_is_foreign(file))
			fd = find_beside(m, file, link, sum, ret_path);
		/* The path of a process's file may lead to another file in this root. */
		if (fd < 0 && real && strcmp(real, file) && is_same_file(real, file))
			fd = find_beside(m, real, link, sum, ret_path);
	}
	return fd >= 0 ? fd
		       : dwfl_standard_find_debuginfo(m, userdata, name, base, file,
						      slash ? slash + 1 : link, crc, ret_path);
}

static bool trusts_all;
static char *untrusted;

void dwarf_trust_all(bool all)
{
	trusts_all = all;
}

const char *dwarf_untrusted(void)
{
	return untrusted;
}

/* The user who called sudo(8) is the one who traces. */
static bool is_own_user(uid_t uid)
{
	const char *sudo = geteuid() ? NULL : getenv("SUDO_UID");

	return !uid || uid == geteuid() || (sudo && *sudo && uid == strtoul(sudo, NULL, 10));
}

/* Root of a container has the same number as root here, if it has no user namespace. */
static bool is_of_container(const char *path)
{
	cleanup_free char *space = NULL;
	struct stat own, its;

	if (!image_path_is_foreign(path))
		return false;
	space = xasprintf("/proc/%d/ns/mnt", atoi(path + strlen("/proc/")));
	return stat("/proc/self/ns/mnt", &own) || stat(space, &its) || own.st_ino != its.st_ino;
}

/* The owner's number means nothing on a filesystem whose server is a user's program. */
static bool is_served(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) || fs.f_type == FUSE_SUPER_MAGIC;
}

static bool is_trusted(int fd, const char *name, const char *path)
{
	struct stat st;

	if (trusts_all || (!fstat(fd, &st) && is_own_user(st.st_uid) && !(st.st_mode & S_IWOTH) &&
			   !is_served(fd) && !is_of_container(path)))
		return true;
	if (!untrusted)
		untrusted = xstrdup(*name ? name : path);
	return false;
}

Dwfl_Module *dwarf_report(Dwfl *d, const char *name, const char *path)
{
	/* Somebody else may have chosen the path, and the open of a device may have an effect. */
	int fd = regular_open(path);
	char magic[SELFMAG];
	Dwfl_Module *m;

	if (fd < 0)
		return NULL;
	/* libdwfl unpacks what is no ELF file: a few bytes can be gigabytes, or an archive. */
	if (pread(fd, magic, SELFMAG, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG) ||
	    !is_trusted(fd, name, path)) {
		close(fd);
		return NULL;
	}
	mapped_guard();
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
	for (uint32_t i = 0; i < c->alts.n; i++) {
		const struct dwarf_alt *a = &c->alts.v[i];

		if (!a->dwarf)
			continue;
		dwarf_end(a->dwarf);
		elf_end(a->elf);
		close(a->fd);
	}
	vec_fini(&c->alts);
	held -= c->bytes;
	c->bytes = 0;
}

static const char *const names[] = {
	"info",     "types", "abbrev",      "addr",   "aranges",  "line",
	"line_str", "str",   "str_offsets", "ranges", "rnglists",
};

/* Returns the index in names of a section that libdw would read, or -1. */
static int kind_of(Elf_Scn *s, size_t strings, Elf *elf)
{
	GElf_Shdr h;
	const char *name;

	/* libdw has inflated the sections it could, and ignores the others. */
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

/* Returns true when the bytes behind a section in the mapped file can be read, and a NUL is near:
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

/* Copies a section and puts bytes behind it. Returns false when it is too large to copy (a sparse
 * file). */
static bool put_end(Elf_Data *d, struct dwarf_copies *c)
{
	char *copy;

	if (d->d_size > COPY_MAX || d->d_size > room())
		return false;
	hold(c, d->d_size);
	copy = xmalloc(d->d_size + BEHIND);
	memcpy(copy, d->d_buf, d->d_size);
	memset(copy + d->d_size, 0, BEHIND);
	/* libelf frees its own memory by another pointer. */
	d->d_buf = copy;
	vec_push(&c->v, copy);
	return true;
}

/* Puts bytes behind all sections. Returns false when there is no section of a program's debugging
 * information. Ignores sections of objects (LTO, .dwo). */
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

/* Counts the sections that libelf has inflated: those outside the mapped file. */
static void hold_inflated(Elf *elf, struct dwarf_copies *c)
{
	Elf_Scn *s = NULL;
	size_t strings, n = 0;
	const char *file = elf_rawfile(elf, &n);

	if (elf_getshdrstrndx(elf, &strings))
		return;
	while ((s = elf_nextscn(elf, s))) {
		GElf_Shdr h;
		const char *name = gelf_getshdr(s, &h) && h.sh_type != SHT_NOBITS
					   ? elf_strptr(elf, strings, h.sh_name)
					   : NULL;
		const Elf_Data *d;

		if (!name || (strncmp(name, ".debug_", 7) && strncmp(name, ".zdebug_", 8)))
			continue;
		d = elf_getdata(s, NULL);
		if (d && d->d_buf &&
		    (!file || (const char *)d->d_buf - file >= (ptrdiff_t)n ||
		     (const char *)d->d_buf < file))
			hold(c, d->d_size);
	}
}

/* Returns the folder of a file as libdw finds it, by a descriptor, because the path may lead
 * through another root. */
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

/* Opens the file at path if it is the ELF file with this build id, and fits into the budget. */
static bool open_alt(const char *path, const uint8_t *id, size_t n_id, struct dwarf_alt *ret)
{
	struct dwarf_alt a = { .fd = regular_open(path) };
	const void *id_now;

	if (a.fd < 0)
		return false;
	a.elf = elf_begin(a.fd, ELF_C_READ_MMAP, NULL);
	if (a.elf && dwelf_elf_gnu_build_id(a.elf, &id_now) == (ssize_t)n_id &&
	    !memcmp(id_now, id, n_id) && is_bounded(a.elf))
		a.dwarf = dwarf_begin_elf(a.elf, DWARF_C_READ, NULL);
	if (a.dwarf) {
		*ret = a;
		return true;
	}
	elf_end(a.elf);
	close(a.fd);
	return false;
}

/* Returns the path of a file with this build id in the folder of debug files. */
static char *path_of_id(const uint8_t *id, size_t n)
{
	char text[2 * 64 + 1] = "";

	if (n < 2 || n > 64)
		return NULL;
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return xasprintf("%s/.build-id/%.2s/%s.debug", debug_path, text, text + 2);
}

/* Opens the file that .gnu_debugaltlink names (made by dwz), and sets it as d's alternative.
 * dwarf_getalt() would open the path itself: it would wait for ever for a FIFO, and could put a
 * device into another state. A test of the path before would be too early. */
static void find_alt(Dwfl_Module *m, Dwarf *d, struct dwarf_alt *ret)
{
	const char *name = NULL, *main = NULL, *debug = NULL;
	cleanup_free char *folder = NULL, *path = NULL, *by_id = NULL;
	const void *id;
	ssize_t n = dwelf_dwarf_gnu_debugaltlink(d, &name, &id);

	if (n <= 0 || !name)
		return;
	by_id = path_of_id(id, (size_t)n);
	if (by_id && open_alt(by_id, id, (size_t)n, ret))
		return;
	if (name[0] != '/') {
		dwfl_module_info(m, NULL, NULL, NULL, NULL, NULL, &main, &debug);
		folder = debug || main ? folder_of(debug ? debug : main) : NULL;
		if (!folder)
			return;
	}
	path = xasprintf("%s%s", folder ? folder : "", name);
	(void)open_alt(path, id, (size_t)n, ret);
}

static bool alt_is_known(const struct dwarf_copies *c, const Dwarf *d)
{
	for (uint32_t i = 0; i < c->alts.n; i++)
		if (c->alts.v[i].of == d)
			return true;
	return false;
}

Dwarf *dwarf_of_module(Dwfl_Module *m, Dwarf_Addr *bias, struct dwarf_copies *c)
{
	Elf *elf = dwfl_module_getelf(m, bias);
	struct dwarf_alt alt = { 0 };
	Dwarf *d;

	if (elf && !is_bounded(elf))
		return NULL;
	d = dwfl_module_getdwarf(m, bias);
	if (!d)
		return NULL;
	if (!alt_is_known(c, d)) {
		hold_inflated(dwarf_getelf(d), c);
		find_alt(m, d, &alt);
		if (alt.dwarf)
			hold_inflated(alt.elf, c);
		alt.of = d;
		vec_push(&c->alts, alt);
		/* -1 is libdw's own mark of an alternative that it did not find: it searches no
		 * more. */
		dwarf_setalt(d, alt.dwarf ?: (Dwarf *)-1);
	}
	if (!put_ends(dwarf_getelf(d), c))
		return NULL;
	alt.dwarf = dwarf_getalt(d);
	return alt.dwarf && !put_ends(dwarf_getelf(alt.dwarf), c) ? NULL : d;
}
