/* Reads ELF headers: the kind of file, its segments, sections and build-id; address <-> offset. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "base/regular.h"
#include "program/object/object_private.h"

enum {
	MAX_HEADERS = 65536, /* sections: a program does not have more */
	MAX_SEGMENTS =
		65536, /* bytes of program headers, the kernel's limit; each symbol walks them */
	MAX_NOTES = 1 << 20,      /* bytes of PT_NOTE searched for the build-id */
	CONTENTS_MAX = 512 << 20, /* of a section; a sparse file may hold terabytes */
	/* Of sections that a program needs to run, and of .debug_frame, which are read for each
	 * file of a process. Chromium's .eh_frame has 17 MB. */
	LOADED_MAX = 256 << 20,
	HOLLOW_MIN = 32 << 20, /* smaller contents may be a hole */
	NAME_CHARS = 64,       /* longer names of sections are not looked for */
};

bool image_read(const struct object *o, uint64_t off, uint64_t n, void *buf)
{
	uint8_t *p = buf;

	if (off > o->size || n > o->size - off)
		return false;
	if (o->fd < 0) {
		if (n)
			memcpy(buf, o->mem + off, n);
		return true;
	}
	while (n) {
		ssize_t got = pread(o->fd, p, n, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		off += (uint64_t)got;
		n -= (uint64_t)got;
	}
	return true;
}

const struct section *image_find(const struct object *o, const char *name)
{
	for (uint32_t i = 0; i < o->sections.n; i++)
		if (!strcmp(o->sections.v[i].name, name))
			return &o->sections.v[i];
	return NULL;
}

/* Returns true for contents of which the file holds less than an eighth: memory for the rest would
 * cost its owner nothing. A filesystem that compresses rarely does better. Some of FUSE give no
 * number of blocks. */
static bool is_hollow(const struct object *o, uint64_t n)
{
	struct stat st;

	return o->fd >= 0 && n > HOLLOW_MIN && !fstat(o->fd, &st) && st.st_blocks &&
	       (uint64_t)st.st_blocks * 512 < n / 8;
}

uint8_t *image_section(const struct object *o, const struct section *s, size_t *ret_n)
{
	uint8_t *buf;

	if (s->type == SHT_NOBITS || s->size > CONTENTS_MAX || s->offset > o->size ||
	    s->size > o->size - s->offset || is_hollow(o, s->size))
		return NULL;
	buf = xmalloc(s->size + 1);
	if (!image_read(o, s->offset, s->size, buf)) {
		free(buf);
		return NULL;
	}
	buf[s->size] = 0;
	*ret_n = s->size;
	return buf;
}

bool object_segment(const struct object *o, uint32_t i, struct object_segment *ret)
{
	if (i >= o->segments.n)
		return false;
	const struct segment *g = &o->segments.v[i];

	*ret = (struct object_segment){ g->type, g->flags, g->addr, g->filesz, g->memsz };
	return true;
}

bool object_is_text(const struct object *o, uint64_t addr)
{
	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];

		if (g->type == PT_LOAD && (g->flags & PF_X) && addr >= g->addr &&
		    addr - g->addr < g->memsz)
			return true;
	}
	return false;
}

/* Reads an address-sized word of the file's class. */
static uint64_t word(const struct object *o, struct bytes *b)
{
	return o->is64 ? bytes_u64(b) : bytes_u32(b);
}

static void read_section_header(struct object *o, struct bytes *b, uint32_t *ret_name)
{
	struct section *s = vec_add(&o->sections);

	*ret_name = bytes_u32(b);
	s->type = bytes_u32(b);
	s->flags = word(o, b);
	s->addr = word(o, b);
	s->offset = word(o, b);
	s->size = word(o, b);
	s->link = bytes_u32(b);
	s->name = "";
	bytes_skip(b, o->is64 ? 4 + 8 + 8 : 4 + 4 + 4); /* info, addralign, entsize */
}

static void read_segment(struct object *o, struct bytes *b)
{
	struct segment *g = vec_add(&o->segments);

	g->type = bytes_u32(b);
	if (o->is64)
		g->flags = bytes_u32(b);
	g->offset = word(o, b);
	g->addr = word(o, b);
	word(o, b); /* paddr */
	g->filesz = word(o, b);
	g->memsz = word(o, b);
	if (!o->is64)
		g->flags = bytes_u32(b);
	word(o, b); /* align */
}

/* Reads a table of n headers of size bytes each, malloc()ed. Returns NULL when the file does not
 * hold it. */
static uint8_t *read_table(const struct object *o, uint64_t off, uint64_t n, uint64_t size)
{
	uint8_t *buf;

	if (n > MAX_HEADERS || off > o->size || n * size > o->size - off)
		return NULL;
	buf = xmalloc(n * size + 1);
	if (image_read(o, off, n * size, buf))
		return buf;
	free(buf);
	return NULL;
}

static struct err *truncated(const struct object *o, const char *what)
{
	return err_new(ENOEXEC, "%s: %s lie outside the file", o->path, what);
}

/* Gives the sections their names, at offsets in a table. Reads the names alone: a sparse file may
 * have a table of any size. */
static void name_sections(struct object *o, const struct section *table, uint32_t *offset)
{
	if (table->type == SHT_NOBITS || table->offset > o->size ||
	    table->size > o->size - table->offset)
		return;
	vec_push(&o->section_names, '\0');
	for (uint32_t i = 0; i < o->sections.n; i++) {
		uint64_t left = offset[i] < table->size ? table->size - offset[i] : 0;
		char text[NAME_CHARS];
		size_t n = left < sizeof(text) ? left : sizeof(text), len;

		if (!image_read(o, table->offset + offset[i], n, text))
			n = 0;
		len = strnlen(text, n);
		offset[i] = 0;
		if (!len || (len == n && left >= sizeof(text)))
			continue;
		offset[i] = o->section_names.n;
		vec_reserve(&o->section_names, len + 1);
		memcpy(o->section_names.v + offset[i], text, len);
		o->section_names.v[offset[i] + len] = '\0';
		o->section_names.n += len + 1;
	}
	for (uint32_t i = 0; i < o->sections.n; i++)
		o->sections.v[i].name = o->section_names.v + offset[i];
}

static struct err *read_sections(struct object *o, uint64_t off, uint32_t n, uint32_t entsize,
				 uint32_t names)
{
	cleanup_free uint8_t *table = NULL;
	cleanup_free uint32_t *name = NULL;
	uint32_t want = o->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);

	if (!off)
		return NULL;
	if (entsize != want)
		return err_new(ENOEXEC, "%s: section headers of %u bytes", o->path, entsize);
	/* With more than 65,279 sections, section 0 has the counts. */
	if (!n || names == SHN_XINDEX) {
		cleanup_free uint8_t *zero = read_table(o, off, 1, want);
		struct bytes b;

		if (!zero)
			return truncated(o, "section headers");
		b = bytes_of(zero, want, o->path);
		bytes_skip(&b, o->is64 ? 32 : 20);
		if (!n) {
			uint64_t count = word(o, &b);

			n = count > MAX_HEADERS ? MAX_HEADERS + 1 : (uint32_t)count;
		} else {
			word(o, &b);
		}
		if (names == SHN_XINDEX)
			names = bytes_u32(&b);
	}
	table = read_table(o, off, n, want);
	if (!table)
		return truncated(o, "section headers");
	struct bytes b = bytes_of(table, (size_t)n * want, o->path);

	name = xcalloc(n + 1, sizeof(*name));
	for (uint32_t i = 0; i < n; i++)
		read_section_header(o, &b, &name[i]);
	if (names < n)
		name_sections(o, &o->sections.v[names], name);
	return NULL;
}

static struct err *read_segments(struct object *o, uint64_t off, uint32_t n, uint32_t entsize)
{
	cleanup_free uint8_t *table = NULL;
	uint32_t want = o->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);

	if (!off || !n)
		return NULL;
	if (entsize != want)
		return err_new(ENOEXEC, "%s: program headers of %u bytes", o->path, entsize);
	if (n * want > MAX_SEGMENTS)
		return err_new(ENOEXEC, "%s: %u program headers", o->path, n);
	table = read_table(o, off, n, want);
	if (!table)
		return truncated(o, "program headers");
	struct bytes b = bytes_of(table, (size_t)n * want, o->path);

	for (uint32_t i = 0; i < n; i++)
		read_segment(o, &b);
	return NULL;
}

static void find_build_id(struct object *o, const uint8_t *note, size_t n)
{
	struct bytes b = bytes_of(note, n, o->path);

	while (bytes_left(&b) >= 12) {
		uint32_t namesz = bytes_u32(&b), descsz = bytes_u32(&b), type = bytes_u32(&b);
		const char *name = bytes_take(&b, namesz);

		bytes_skip(&b, -namesz & 3);
		const uint8_t *desc = bytes_take(&b, descsz);

		if (!name || !desc)
			return;
		if (type == NT_GNU_BUILD_ID && namesz == 4 && !memcmp(name, "GNU", 4) && descsz &&
		    descsz <= sizeof(o->build_id)) {
			memcpy(o->build_id, desc, descsz);
			o->build_id_len = descsz;
			return;
		}
		if (bytes_left(&b) < (-descsz & 3))
			return;
		bytes_skip(&b, -descsz & 3);
	}
}

static uint8_t *read_segment_contents(const struct object *o, const struct segment *g, uint64_t max)
{
	uint8_t *buf;

	if (g->filesz > max || g->offset > o->size || g->filesz > o->size - g->offset)
		return NULL;
	buf = xmalloc(g->filesz + 1);
	if (!image_read(o, g->offset, g->filesz, buf)) {
		free(buf);
		return NULL;
	}
	buf[g->filesz] = 0;
	return buf;
}

/* Reads DT_SONAME and DF_1_PIE. */
static void read_dynamic(struct object *o, const struct segment *g)
{
	cleanup_free uint8_t *dyn = read_segment_contents(o, g, 1 << 16);
	uint64_t soname = 0, strtab = 0, strsz = 0, off;
	bool has_soname = false;

	if (!dyn)
		return;
	struct bytes b = bytes_of(dyn, g->filesz, o->path);

	while (bytes_left(&b) >= (o->is64 ? 16 : 8)) {
		uint64_t tag = word(o, &b), val = word(o, &b);

		if (tag == DT_NULL)
			break;
		if (tag == DT_SONAME) {
			soname = val;
			has_soname = true;
		} else if (tag == DT_STRTAB) {
			strtab = val;
		} else if (tag == DT_STRSZ) {
			strsz = val;
		} else if (tag == DT_FLAGS_1 && (val & 0x08000000 /* DF_1_PIE */)) {
			o->is_pie = true;
		}
	}
	if (has_soname && soname < strsz && object_addr_to_offset(o, strtab, &off)) {
		char name[256];
		uint64_t n = strsz - soname < sizeof(name) - 1 ? strsz - soname : sizeof(name) - 1;

		if (soname <= UINT64_MAX - off && image_read(o, off + soname, n, name)) {
			name[n] = 0;
			if (name[0])
				o->soname = xstrdup(name);
		}
	}
}

/* Reads every header. Missing contents (build-id, soname) are no error. */
static struct err *read_headers(struct object *o)
{
	uint8_t eh[sizeof(Elf64_Ehdr)] = { 0 };
	uint64_t n = o->size < sizeof(eh) ? o->size : sizeof(eh), notes = MAX_NOTES;
	const struct segment *dynamic = NULL;
	struct err *e;

	if (n < EI_NIDENT || !image_read(o, 0, n, eh) || memcmp(eh, ELFMAG, SELFMAG))
		return err_new(ENOEXEC, "%s: not an ELF file", o->path);
	if (eh[EI_DATA] != ELFDATA2LSB ||
	    (eh[EI_CLASS] != ELFCLASS64 && eh[EI_CLASS] != ELFCLASS32))
		return err_new(ENOEXEC, "%s: not a little-endian ELF file", o->path);
	o->is64 = eh[EI_CLASS] == ELFCLASS64;
	if (n < (o->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
		return truncated(o, "the headers");

	struct bytes b = bytes_of(eh, n, o->path);

	bytes_skip(&b, EI_NIDENT);
	o->type = bytes_u16(&b);
	o->machine = bytes_u16(&b);
	bytes_u32(&b); /* version */
	word(o, &b);   /* entry */
	uint64_t phoff = word(o, &b), shoff = word(o, &b);

	bytes_skip(&b, 4 + 2); /* flags, ehsize */
	uint32_t phentsize = bytes_u16(&b), phnum = bytes_u16(&b);
	uint32_t shentsize = bytes_u16(&b), shnum = bytes_u16(&b), shstrndx = bytes_u16(&b);

	e = read_segments(o, phoff, phnum, phentsize);
	e = e ?: read_sections(o, shoff, shnum, shentsize, shstrndx);
	if (e)
		return e;
	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];

		if (g->type == PT_NOTE && !o->build_id_len) {
			cleanup_free uint8_t *note = read_segment_contents(o, g, notes);

			if (!note)
				continue;
			notes -= g->filesz;
			find_build_id(o, note, g->filesz);
		} else if (g->type == PT_INTERP && !o->interp) {
			o->interp = (char *)read_segment_contents(o, g, 4096);
		} else if (g->type == PT_DYNAMIC) {
			dynamic = g; /* the last counts, as for the dynamic linker */
		}
	}
	if (dynamic)
		read_dynamic(o, dynamic);
	o->is_go = image_find(o, ".go.buildinfo") || image_find(o, ".gopclntab") ||
		   image_find(o, ".data.rel.ro.gopclntab");
	return NULL;
}

static struct object *object_new(const char *path, int fd)
{
	struct object *o = xcalloc(1, sizeof(*o));

	o->path = xstrdup(path);
	o->fd = fd;
	return o;
}

struct err *object_open(const char *path, struct object **ret)
{
	int fd = regular_open(path);
	struct object *o;
	struct stat st;
	struct err *e;

	if (fd < 0)
		return errno == ENOEXEC ? err_new(ENOEXEC, "%s: not a regular file", path)
					: err_errno(errno, "%s", path);
	if (fstat(fd, &st) < 0) {
		e = err_errno(errno, "%s", path);
		close(fd);
		return e;
	}
	o = object_new(path, fd);
	(void)file_state_read(fd, &o->state);
	o->size = (uint64_t)st.st_size;
	e = read_headers(o);
	if (e) {
		object_free(o);
		return e;
	}
	*ret = o;
	return NULL;
}

struct err *object_open_memory(const char *name, const void *p, size_t n, struct object **ret)
{
	struct object *o = object_new(name, -1);
	struct err *e;

	o->mem = xmalloc(n + 1);
	if (n)
		memcpy(o->mem, p, n);
	o->size = n;
	e = read_headers(o);
	if (e) {
		object_free(o);
		return e;
	}
	*ret = o;
	return NULL;
}

void **object_text(struct object *o)
{
	return &o->text;
}

void object_free(struct object *o)
{
	if (!o)
		return;
	image_symbols_fini(o);
	image_usdts_fini(o);
	if (o->fd >= 0)
		close(o->fd);
	free(o->mem);
	free(o->path);
	free(o->changed);
	vec_fini(&o->section_names);
	free(o->interp);
	free(o->soname);
	vec_fini(&o->sections);
	vec_fini(&o->segments);
	free(o);
}

bool object_stat(const struct object *o, struct stat *ret)
{
	return o->fd >= 0 && !fstat(o->fd, ret);
}

void object_close_file(struct object *o)
{
	if (o->fd < 0)
		return;
	close(o->fd);
	o->fd = -1;
	o->size = 0; /* no byte lies within the file */
}

bool object_reopen(struct object *o)
{
	struct file_state now;
	int fd;

	if (object_is_open(o))
		return true;
	fd = regular_open(o->path);
	if (fd < 0)
		return false;
	if (!file_state_read(fd, &now) || !file_state_same(&now, &o->state)) {
		close(fd);
		return false;
	}
	o->fd = fd;
	o->size = o->state.size;
	return true;
}

bool object_is_open(const struct object *o)
{
	return o->fd >= 0 || o->mem;
}

bool object_was_written(const struct object *o)
{
	struct file_state now;

	return o->fd >= 0 && !(file_state_read(o->fd, &now) && file_state_same(&now, &o->state));
}

bool object_is_at_path(const struct object *o)
{
	cleanup_close int fd = o->mem ? -1 : open(o->path, O_PATH | O_CLOEXEC);
	struct file_state now;

	return fd >= 0 && file_state_read(fd, &now) && file_state_same(&now, &o->state);
}

bool object_file_path(const struct object *o, char ret[OBJECT_FILE_PATH])
{
	if (o->fd < 0 || object_was_written(o))
		return false;
	snprintf(ret, OBJECT_FILE_PATH, "/proc/self/fd/%d", o->fd);
	return true;
}

bool object_has_symbols(const struct object *o)
{
	return o->symbols_read;
}

const char *object_changed(const struct object *o)
{
	return o->changed;
}

size_t object_memory(const struct object *o)
{
	return sizeof(*o) + o->sections.cap * sizeof(*o->sections.v) + o->section_names.cap +
	       o->segments.cap * sizeof(*o->segments.v) + o->string_bytes +
	       o->nsymbols * (sizeof(*o->symbols) + sizeof(*o->max_end)) +
	       (o->by_name ? o->nsymbols * sizeof(*o->by_name) : 0) +
	       o->values.cap * sizeof(*o->values.v) + (o->mem ? o->size : 0);
}

const char *object_path(const struct object *o)
{
	return o->path;
}

bool object_is_executable(const struct object *o)
{
	return o->type == ET_EXEC ||
	       (o->type == ET_DYN && (o->is_pie || (o->interp && !o->soname)));
}

bool object_is_fixed(const struct object *o)
{
	return o->type == ET_EXEC;
}

bool object_is_x86_64(const struct object *o)
{
	return o->machine == EM_X86_64 && o->is64;
}

bool object_is_go(const struct object *o)
{
	return o->is_go;
}

const char *object_interp(const struct object *o)
{
	return o->interp;
}

const char *object_soname(const struct object *o)
{
	return o->soname;
}

bool object_addr_to_offset(const struct object *o, uint64_t addr, uint64_t *ret_off)
{
	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];

		if (g->type == PT_LOAD && addr >= g->addr && addr - g->addr < g->filesz &&
		    addr - g->addr <= UINT64_MAX - g->offset) {
			*ret_off = addr - g->addr + g->offset;
			return true;
		}
	}
	return false;
}

/* Returns the i-th executable segment. Segments may share a file page, and a byte then has two
 * addresses: this is the executable one. */
bool object_text_segment(const struct object *o, uint32_t i, uint64_t *ret_off, uint64_t *ret_n,
			 uint64_t *ret_addr)
{
	for (uint32_t k = 0; k < o->segments.n; k++) {
		const struct segment *g = &o->segments.v[k];

		if (g->type != PT_LOAD || !(g->flags & PF_X) || !g->filesz || i--)
			continue;
		*ret_off = g->offset;
		*ret_n = g->filesz;
		*ret_addr = g->addr;
		return true;
	}
	return false;
}

bool object_offset_to_addr(const struct object *o, uint64_t off, uint64_t *ret_addr)
{
	const struct segment *found = NULL;

	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];

		if (g->type == PT_LOAD && off >= g->offset && off - g->offset < g->filesz &&
		    (!found || (g->flags & PF_X)))
			found = g;
	}
	if (found)
		*ret_addr = off - found->offset + found->addr;
	return found;
}

bool object_text_mapping_addr(const struct object *o, uint64_t off, uint64_t *ret_addr)
{
	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];
		uint64_t page = g->offset & ~(uint64_t)4095;

		if (g->type != PT_LOAD || !(g->flags & PF_X) || off < page ||
		    off - page >= g->offset - page + g->filesz)
			continue;
		*ret_addr = g->addr - g->offset + off;
		return true;
	}
	return object_offset_to_addr(o, off, ret_addr);
}

bool object_shares_page(const struct object *o, uint64_t off)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];
		uint64_t page = g->offset & ~(uint64_t)4095;

		n += g->type == PT_LOAD && g->flags & PF_W && off >= page &&
		     off - page < ((g->offset - page + g->filesz + 4095) & ~(uint64_t)4095);
	}
	return n > 1;
}

uint32_t object_read(const struct object *o, uint64_t addr, void *buf, uint32_t n)
{
	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];
		uint64_t skip = addr - g->addr, off;

		if (g->type != PT_LOAD || addr < g->addr || skip >= g->filesz ||
		    skip > UINT64_MAX - g->offset)
			continue;
		if (n > g->filesz - skip)
			n = (uint32_t)(g->filesz - skip);
		off = g->offset + skip;
		if (off >= o->size)
			return 0;
		if (n > o->size - off)
			n = (uint32_t)(o->size - off);
		return image_read(o, off, n, buf) ? n : 0;
	}
	return 0;
}

/* Unpacks a compressed section. Returns NULL when it does not match its header. */
static uint8_t *unpack(const uint8_t *packed, size_t n, size_t most, size_t *ret_n)
{
	Elf64_Chdr h;
	uint8_t *out;
	uLongf got;
	bool good = false;

	if (n < sizeof(h))
		return NULL;
	memcpy(&h, packed, sizeof(h));
	/* No byte packs to less than a thousandth. So a forged size costs no memory. */
	if (h.ch_size > most || h.ch_size / 1100 > n)
		return NULL;
	out = xmalloc(h.ch_size + 1);
	got = h.ch_size;
	packed += sizeof(h);
	n -= sizeof(h);
	if (h.ch_type == ELFCOMPRESS_ZLIB)
		good = uncompress(out, &got, packed, n) == Z_OK && got == h.ch_size;
	else if (h.ch_type == 2 /* ELFCOMPRESS_ZSTD */)
		good = ZSTD_decompress(out, h.ch_size, packed, n) == h.ch_size;
	if (!good) {
		free(out);
		return NULL;
	}
	out[h.ch_size] = 0;
	*ret_n = h.ch_size;
	return out;
}

uint8_t *object_section(const struct object *o, const char *name, uint64_t *ret_addr, size_t *ret_n)
{
	const struct section *s = image_find(o, name);
	const bool is_debug = !strncmp(name, ".debug_", 7);
	const size_t most = is_debug && strcmp(name, ".debug_frame") ? CONTENTS_MAX : LOADED_MAX;
	uint8_t *packed, *p;
	size_t n;

	if (!s)
		return NULL;
	*ret_addr = s->addr;
	/* Linkers pack nothing else; an .eh_frame or .rela.dyn that is packed is an attack. */
	if ((s->flags & SHF_COMPRESSED && !is_debug) || s->size > most)
		return NULL;
	packed = image_section(o, s, &n);
	if (!packed || !(s->flags & SHF_COMPRESSED)) {
		*ret_n = n;
		return packed;
	}
	p = o->is64 ? unpack(packed, n, most, ret_n) : NULL;
	free(packed);
	return p;
}

/* Finds .eh_frame by PT_GNU_EH_FRAME: version 1, encodings of pointer, count and table, the pointer
 * to .eh_frame. */
static bool eh_frame_address(const struct object *o, uint64_t *ret)
{
	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];
		uint8_t head[12];

		if (g->type != PT_GNU_EH_FRAME ||
		    object_read(o, g->addr, head, sizeof(head)) < sizeof(head))
			continue;
		struct bytes b = bytes_of(head, sizeof(head), o->path);

		if (bytes_u8(&b) != 1)
			return false;
		uint8_t enc = bytes_u8(&b);

		bytes_skip(&b, 2);
		if (enc == 0x1b) /* pcrel, sdata4: of every linker */
			*ret = g->addr + 4 + (uint64_t)(int64_t)(int32_t)bytes_u32(&b);
		else if ((enc & 0x7f) == 0 || (enc & 0x7f) == 4)
			*ret = bytes_u64(&b);
		else
			return false;
		return true;
	}
	return false;
}

uint8_t *object_eh_frame(const struct object *o, uint64_t *ret_addr, size_t *ret_n)
{
	uint8_t *p = object_section(o, ".eh_frame", ret_addr, ret_n);
	uint64_t addr;

	if (p || !eh_frame_address(o, &addr))
		return p;
	for (uint32_t i = 0; i < o->segments.n; i++) {
		const struct segment *g = &o->segments.v[i];
		struct segment rest = *g;

		if (g->type != PT_LOAD || addr < g->addr || addr - g->addr >= g->filesz)
			continue;
		rest.offset += addr - g->addr;
		rest.filesz -= addr - g->addr;
		p = read_segment_contents(o, &rest, LOADED_MAX);
		*ret_addr = addr;
		*ret_n = rest.filesz;
		return p;
	}
	return NULL;
}

const uint8_t *object_build_id(const struct object *o, uint32_t *ret_n)
{
	*ret_n = o->build_id_len;
	return o->build_id_len ? o->build_id : NULL;
}
