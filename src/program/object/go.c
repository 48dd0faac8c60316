#include "program/object/go.h"

#include <elf.h>

#include "program/object/image.h"

/* How the numbers at the head of the table and of a function's record lie, by the table's magic. */
struct layout {
	uint32_t magic;
	bool is_short;    /* addresses are 32-bit offsets from the text's start, else words */
	bool has_offsets; /* the head says where the parts are; else all offsets count from the head */
	uint8_t flags;    /* of a record's byte of flags; 0: it has none */
};

static const struct layout layouts[] = {
	{ 0xfffffffb, false, false, 0 }, /* Go 1.2 */
	{ 0xfffffffa, false, true, 41 }, /* 1.16; its flags are from 1.17 on, before they are 0 */
	{ 0xfffffff0, true, true, 37 },  /* 1.18 */
	{ 0xfffffff1, true, true, 41 },  /* 1.20 */
};

enum {
	FLAG_TOPFRAME = 1,
	FLAG_SPWRITE = 2,
	WORD = 8,
	HEAD = 8,                /* magic, two zeros, smallest instruction, size of a pointer */
	MAX_FUNCTIONS = 1 << 24, /* more is not a program */
	MAX_NAME = 16384,
};

struct reader {
	const struct layout *layout;
	struct bytes b;                    /* the whole section */
	uint64_t text;                     /* where offsets count from */
	uint64_t names, depths, functions; /* offsets of the parts */
	uint64_t nfunctions;
};

/* In a PIE the word is 0 in the file, and what it will be stands in the relocation for its address. */
static uint64_t relocated(const struct object *o, uint64_t addr)
{
	uint64_t table;
	size_t n;
	/* Go's own linker calls it ".rela" */
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

static uint64_t text_start(const struct object *o, uint64_t named, uint64_t named_at)
{
	const struct section *text = image_find(o, ".text");
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
	/* x86-64: instructions of any length, pointers of 8 bytes */
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

/* Before 1.17 a table does not say it. */
static void name_flags(struct go_function *f)
{
	static const char *const tops[] = { "runtime.goexit", "runtime.mstart", "runtime.rt0_go" };
	static const char *const movers[] = { "runtime.systemstack", "runtime.mcall",
					      "runtime.asmcgocall" };

	f->is_top |= is_any(f->name, tops, ARRAY_SIZE(tops));
	f->moves_stack |= is_any(f->name, movers, ARRAY_SIZE(movers));
	/* Its caller is the kernel: what has been interrupted comes next. */
	if (!strcmp(f->name, "runtime.sigtramp"))
		f->is_top = false;
}

static const char *read_name(const struct reader *r, uint64_t at)
{
	size_t n = (size_t)(r->b.end - r->b.start);
	const uint8_t *p = r->b.start + at;

	if (at >= n || !memchr(p, 0, n - at < MAX_NAME ? n - at : MAX_NAME) || !*p)
		return NULL;
	return (const char *)p;
}

/* The record of one function, at `at`. */
static bool read_record(const struct reader *r, uint64_t at, struct go_function *f)
{
	const struct layout *l = r->layout;
	/* the functions' offsets count from their table; without a head, from the section */
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
	}
	name_flags(f);
	return true;
}

static uint64_t table_word(const struct reader *r, struct bytes *b)
{
	return r->layout->is_short ? bytes_u32(b) : bytes_u64(b);
}

/* Pairs of a function's address and its record's offset; behind them where the last one ends. */
static void read_functions(const struct object *o, struct reader *r, struct go_table *t)
{
	struct bytes b = r->b;
	uint64_t start, record, last = 0;

	if (r->functions > SIZE_MAX || !bytes_seek(&b, (size_t)r->functions))
		return;
	start = r->text + table_word(r, &b);
	for (uint64_t i = 0; i < r->nfunctions; i++) {
		struct go_function f = { .start = start };

		record = table_word(r, &b);
		start = r->text + table_word(r, &b);
		if (!bytes_ok(&b))
			return;
		f.end = start;
		if (f.start < last || f.end <= f.start || !object_is_text(o, f.start) ||
		    !object_is_text(o, f.end - 1) || !read_record(r, record, &f))
			continue;
		last = f.end;
		vec_push(&t->functions, f);
	}
}

bool go_table_read(const struct object *o, struct go_table *ret)
{
	struct reader r = { 0 };
	uint64_t addr;

	*ret = (struct go_table){ 0 };
	if (!object_is_x86_64(o))
		return false;
	ret->data = object_section(o, ".gopclntab", &addr, &ret->n);
	if (!ret->data) /* position independent */
		ret->data = object_section(o, ".data.rel.ro.gopclntab", &addr, &ret->n);
	if (!ret->data)
		return false;
	r.b = bytes_of(ret->data, ret->n, object_path(o));
	if (read_head(o, &r, addr))
		read_functions(o, &r, ret);
	if (ret->functions.n)
		return true;
	go_table_fini(ret);
	return false;
}

void go_table_fini(struct go_table *t)
{
	free(t->data);
	vec_fini(&t->functions);
}

/* Pairs of numbers of 7 bits a byte: the change of the depth, its sign last, and how many bytes of text it holds for. The depth
 * begins at -1; a change of 0 ends them. */
bool go_depth_next(const struct go_table *t, const struct go_function *f, struct go_depth *d)
{
	struct bytes b = bytes_of(t->data, t->n, "");
	bool is_first = !d->end;
	uint64_t change, length;

	if (is_first)
		*d = (struct go_depth){ .end = f->start, .bytes = -1, .pos = f->depths };
	if (!d->pos || d->end >= f->end || !bytes_seek(&b, d->pos))
		return false;
	change = bytes_uleb(&b);
	length = bytes_uleb(&b);
	if (!bytes_ok(&b) || (!change && !is_first) || change > UINT32_MAX || !length)
		return false;
	d->addr = d->end;
	d->end = length < f->end - d->addr ? d->addr + length : f->end;
	d->bytes += (int64_t)(change >> 1) ^ -(int64_t)(change & 1);
	d->pos = (size_t)(b.pos - b.start);
	return true;
}
