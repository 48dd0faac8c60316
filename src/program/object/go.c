/* Reads .gopclntab. See go.h. */
#include "program/object/go.h"

#include <elf.h>

#include "program/object/object_private.h"

/* The layout of the table's head and of a function's record, by the table's magic. */
struct layout {
	uint32_t magic;
	bool is_short;    /* addresses are 32-bit offsets from the text's start; else words */
	bool has_offsets; /* the head has the parts' offsets; else all count from the head */
	uint8_t flags;    /* offset of a record's flags; 0: it has none */
};

static const struct layout layouts[] = {
	{ 0xfffffffb, false, false, 0 }, /* Go 1.2 */
	{ 0xfffffffa, false, true, 41 }, /* 1.16; has flags from 1.17 on, before they are 0 */
	{ 0xfffffff0, true, true, 37 },  /* 1.18 */
	{ 0xfffffff1, true, true, 41 },  /* 1.20 */
};

enum {
	FLAG_TOPFRAME = 1,
	FLAG_SPWRITE = 2,
	FLAG_ASM = 4,
	WORD = 8,
	HEAD = 8,                /* magic, two zeros, smallest instruction, size of a pointer */
	MAX_FUNCTIONS = 1 << 22, /* a program does not have more */
	MAX_DEPTHS = 64 << 20,   /* of all functions, which may share depths in a hostile file */
	MAX_NAME = 4096,
	MAX_HEADS = 16, /* possible heads in a section with other contents */
};

struct reader {
	const struct layout *layout;
	struct bytes b;                    /* the whole section */
	uint64_t text;                     /* address from which offsets count */
	uint64_t names, depths, functions; /* offsets of the parts */
	uint64_t nfunctions;
	uint32_t ndepths; /* read so far */
};

/* Returns a word's value from its relocation, or 0. The system's linker may leave 0 in a
 * position-independent file. */
static uint64_t relocated(const struct object *o, uint64_t addr)
{
	uint64_t table;
	size_t n;
	/* Go's own linker names it ".rela". */
	const char *name = image_find(o, ".rela.dyn") ? ".rela.dyn" : ".rela";
	cleanup_free uint8_t *p = object_section(o, name, &table, &n);
	struct bytes b = bytes_of(p, p ? n : 0, o->path);

	while (bytes_left(&b) >= sizeof(Elf64_Rela)) {
		uint64_t offset = bytes_u64(&b), info = bytes_u64(&b), addend = bytes_u64(&b);

		if (offset == addr && ELF64_R_TYPE(info) == R_X86_64_RELATIVE)
			return addend;
	}
	return 0;
}

/* Returns the text's start. Go 1.26 leaves the word 0. It is then .text's start, unless the
 * system's linker put C before it (Go's own linker makes no .eh_frame). Returns 0 when it is not
 * known. */
static uint64_t text_start(const struct object *o, uint64_t named, uint64_t named_at)
{
	const struct section *text = image_find(o, ".eh_frame") ? NULL : image_find(o, ".text");
	uint64_t addr = named ? named : relocated(o, named_at);

	return addr ? addr : text ? text->addr : 0;
}

static bool read_head(const struct object *o, struct reader *r, uint64_t addr)
{
	struct bytes *b = &r->b;
	uint32_t magic = bytes_u32(b);

	for (size_t i = 0; i < ARRAY_SIZE(layouts) && !r->layout; i++)
		if (layouts[i].magic == magic)
			r->layout = &layouts[i];
	/* x86-64: instructions of any length, pointers of 8 bytes. */
	if (!r->layout || bytes_u16(b) || bytes_u8(b) != 1 || bytes_u8(b) != WORD)
		return false;
	r->nfunctions = bytes_u64(b);
	if (!r->layout->has_offsets) {
		r->functions = HEAD + WORD;
	} else {
		bytes_u64(b); /* files */
		if (r->layout->is_short) {
			uint64_t at = addr + (uint64_t)(b->pos - b->start);

			r->text = text_start(o, bytes_u64(b), at);
			if (!r->text)
				return false;
		}
		r->names = bytes_u64(b);
		bytes_u64(b); /* compilation units */
		bytes_u64(b); /* file names */
		r->depths = bytes_u64(b);
		r->functions = bytes_u64(b);
	}
	return bytes_ok(b) && r->nfunctions <= MAX_FUNCTIONS;
}

static bool is_any(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Sets the flags by name, because a table before 1.17 has none. */
static void name_flags(struct go_function *f)
{
	static const char *const tops[] = { "runtime.goexit", "runtime.mstart", "runtime.rt0_go" };
	static const char *const movers[] = {
		"runtime.systemstack",
		"runtime.mcall",
		"runtime.asmcgocall",
		"runtime.morestack",
		"runtime.gogo",
		"runtime.cgocallback",
		"runtime.nanotime",
		"runtime.nanotime1",
		"runtime.cgocallback_gofunc",
		"runtime.walltime",
		"runtime.walltime1",
		"runtime.callCgoMmap",
		"time.now",
		"runtime.callCgoMunmap",
	};

	f->is_top |= is_any(f->name, tops, ARRAY_SIZE(tops));
	f->moves_stack |= is_any(f->name, movers, ARRAY_SIZE(movers));
}

static void settle_flags(const struct go_table *t, struct go_function *f)
{
	if (!t->has_flags)
		name_flags(f);
	f->is_top |= !strncmp(f->name, "_rt0_", 5); /* the program's entry point */
	/* Its caller is the kernel: the interrupted function comes next. */
	if (!strcmp(f->name, "runtime.sigtramp"))
		f->is_top = false;
}

static const char *read_name(const struct reader *r, uint64_t at)
{
	const char *name = bytes_cstr_at(&r->b, at, MAX_NAME);

	return name && *name ? name : NULL;
}

/* Reads the record of one function, at `at`. */
static bool read_record(const struct reader *r, struct go_table *t, uint64_t at,
			struct go_function *f)
{
	const struct layout *l = r->layout;
	/* The functions' offsets count from their table, or, without has_offsets, from the
	 * section. */
	uint64_t from = l->has_offsets ? r->functions : 0;
	struct bytes b = r->b;
	uint32_t name, depths;

	if (at > SIZE_MAX - from || !bytes_seek(&b, (size_t)(from + at)))
		return false;
	bytes_skip(&b, l->is_short ? 4 : WORD); /* its address, again */
	name = bytes_u32(&b);
	bytes_skip(&b, 8); /* arguments, deferreturn */
	depths = bytes_u32(&b);
	if (!bytes_ok(&b) || name > UINT64_MAX - r->names || depths > UINT64_MAX - r->depths)
		return false;
	f->name = read_name(r, r->names + name);
	if (!f->name)
		return false;
	if (depths && r->depths + depths < (size_t)(b.end - b.start))
		f->depths = (size_t)(r->depths + depths);
	if (l->flags && bytes_seek(&b, (size_t)(from + at + l->flags))) {
		uint8_t flags = bytes_u8(&b);

		f->is_top = bytes_ok(&b) && flags & FLAG_TOPFRAME;
		f->moves_stack = bytes_ok(&b) && flags & FLAG_SPWRITE;
		f->is_assembly = bytes_ok(&b) && flags & FLAG_ASM;
		t->has_flags |= l->is_short || f->is_top || f->moves_stack;
	}
	return true;
}

/* Returns where its depths end, which leaves out the compiler's padding behind it. */
static uint64_t code_end(struct reader *r, const struct go_table *t, const struct go_function *f)
{
	struct go_depth d = { 0 };

	while (r->ndepths < MAX_DEPTHS && go_depth_next(t, f, &d))
		r->ndepths++;
	return d.end > f->start ? d.end : f->end;
}

static uint64_t table_word(const struct reader *r, struct bytes *b)
{
	return r->layout->is_short ? bytes_u32(b) : bytes_u64(b);
}

/* Reads pairs of a function's address and its record's offset, then the end of the last
 * function. */
static void read_functions(const struct object *o, struct reader *r, struct go_table *t)
{
	struct bytes b = r->b;
	uint64_t start, record, last = 0;

	if (r->functions > SIZE_MAX || !bytes_seek(&b, (size_t)r->functions))
		return;
	start = r->text + table_word(r, &b);
	/* Several heads may have the same functions. */
	for (uint64_t i = 0; i < r->nfunctions && t->looked_at < MAX_FUNCTIONS; i++) {
		struct go_function f = { .start = start };

		t->looked_at++;
		record = table_word(r, &b);
		start = r->text + table_word(r, &b);
		if (!bytes_ok(&b))
			return;
		f.end = start;
		if (f.start < last || f.end <= f.start || !object_is_text(o, f.start) ||
		    !object_is_text(o, f.end - 1) || !read_record(r, t, record, &f))
			continue;
		f.end = code_end(r, t, &f);
		last = f.end;
		vec_push(&t->functions, f);
	}
}

/* Reads the table at t->head. */
static bool read_table(const struct object *o, struct go_table *t, uint64_t addr)
{
	struct reader r = { .b = bytes_of(t->head, t->n, object_path(o)) };

	if (read_head(o, &r, addr))
		read_functions(o, &r, t);
	for (uint32_t i = 0; i < t->functions.n; i++)
		settle_flags(t, &t->functions.v[i]);
	return t->functions.n > 0;
}

/* Searches a section for the table, because the system's linker puts it somewhere into
 * .data.rel.ro. */
static bool search_table(const struct object *o, struct go_table *t, size_t size, uint64_t addr)
{
	uint32_t heads = 0;

	for (size_t at = 0; at + HEAD <= size && heads < MAX_HEADS; at += WORD) {
		static const uint8_t rest[] = { 0xff, 0xff, 0xff, 0, 0, 1, WORD }; /* of a head */

		if (memcmp(t->data + at + 1, rest, sizeof(rest)) != 0)
			continue;
		t->head = t->data + at;
		t->n = size - at;
		heads++;
		if (read_table(o, t, addr + at))
			return true;
	}
	return false;
}

bool go_table_read(const struct object *o, struct go_table *ret)
{
	/* Sections of Go's linker; the same, position independent; of the system's linker. */
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab",
					     ".data.rel.ro" };

	if (!object_is_x86_64(o) || !object_is_go(o))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct section *s = image_find(o, names[i]);

		*ret = (struct go_table){ 0 };
		ret->data = s ? image_section(o, s, &ret->n) : NULL;
		ret->head = ret->data;
		if (ret->data &&
		    (i == 2 ? search_table(o, ret, ret->n, s->addr) : read_table(o, ret, s->addr)))
			return true;
		go_table_fini(ret);
	}
	return false;
}

void go_table_fini(struct go_table *t)
{
	free(t->data);
	vec_fini(&t->functions);
}

/* Reads 32 bits, which is the format's limit. More than five bytes are an error. */
static uint32_t read_varint(struct bytes *b)
{
	uint32_t v = 0;

	for (int shift = 0; shift < 35; shift += 7) {
		uint8_t byte = bytes_u8(b);

		v |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	b->bad_at = (size_t)(b->pos - b->start);
	return 0;
}

/* Reads pairs of numbers of 7 bits a byte: the change of the depth, with the sign in the lowest
 * bit, and the bytes of text for which the depth is valid. The depth begins at -1. A change of 0
 * ends the pairs. */
bool go_depth_next(const struct go_table *t, const struct go_function *f, struct go_depth *d)
{
	struct bytes b = bytes_of(t->head, t->n, "");
	bool is_first = !d->end;
	uint32_t change, length;

	if (is_first)
		*d = (struct go_depth){ .end = f->start, .bytes = -1, .pos = f->depths };
	if (!d->pos || d->end >= f->end || !bytes_seek(&b, d->pos))
		return false;
	change = read_varint(&b);
	length = read_varint(&b);
	if (!bytes_ok(&b) || (!change && !is_first) || !length)
		return false;
	d->addr = d->end;
	d->end = length < f->end - d->addr ? d->addr + length : f->end;
	d->bytes += (int64_t)(change >> 1) ^ -(int64_t)(change & 1);
	d->pos = (size_t)(b.pos - b.start);
	return true;
}
