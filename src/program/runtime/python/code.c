/* Reads code objects: a function's name, file and lines. */
#include <string.h>

#include "program/runtime/python/python.h"
#include "wire/language.h"

enum {
	TEXT_MAX = 4096,      /* characters of a name; longer ones are cut */
	LINES_MAX = 1 << 16,  /* bytes of a table of lines; a larger one is not read */
	STATE_KIND = 0x1c,    /* bits of PyASCIIObject.state: bytes of a character, 1, 2 or 4 */
	STATE_COMPACT = 0x20, /* the characters follow the structure */
	STATE_ASCII = 0x40,
};

static bool word(const struct python *p, uint64_t addr, uint64_t *ret)
{
	return space_word(p->runtime.space, addr, ret);
}

/* Takes n bytes from the budget. Returns false when fewer are left. */
static bool afford(struct python *p, size_t n)
{
	return runtime_afford(&p->runtime, &p->budget, n);
}

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 63));
	} else {
		*to++ = (char)(0xf0 | (c >> 18 & 7));
		*to++ = (char)(0x80 | (c >> 12 & 63));
		*to++ = (char)(0x80 | (c >> 6 & 63));
	}
	*to++ = (char)(0x80 | (c & 63));
	return to;
}

/* Reads n characters of `kind` bytes each. Returns them as UTF-8 in the names' arena, or NULL. */
static const char *characters(struct python *p, uint64_t addr, uint32_t n, uint32_t kind)
{
	cleanup_free uint8_t *raw = NULL;
	char *text, *to;

	if (!afford(p, (size_t)n * 4 + 1))
		return NULL;
	raw = xmalloc((size_t)n * kind + 1);
	if (space_read_some(p->runtime.space, addr, raw, n * kind) != n * kind)
		return NULL;
	text = to = arena_alloc(&p->names, (size_t)n * 4 + 1);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = 0;

		memcpy(&c, raw + (size_t)i * kind, kind); /* little-endian */
		if (!c)
			break;
		to = put_utf8(to, c < ' ' || c == 0x7f ? '?' : c);
	}
	*to = 0;
	return text;
}

const char *python_text(struct python *p, uint64_t addr)
{
	const struct python_layout *l = &p->layout;
	bool bytes = !l->text_length;
	uint64_t length, state = 0;
	uint32_t n, kind;

	if (!addr || !word(p, addr + (bytes ? l->bytes_length : l->text_length), &length))
		return NULL;
	n = length < TEXT_MAX ? (uint32_t)length : TEXT_MAX;
	if (bytes)
		return characters(p, addr + l->bytes_data, n, 1);
	if (!word(p, addr + l->text_state, &state) || !(state & STATE_COMPACT))
		return NULL;
	kind = (state & STATE_KIND) >> 2;
	if (kind != 1 && kind != 2 && kind != 4)
		return NULL;
	return characters(p, addr + (state & STATE_ASCII ? l->text_ascii : l->text_other), n, kind);
}

static void read_lines(struct python *p, struct python_code *c, uint64_t bytes)
{
	struct python_line_mark *marks;
	uint64_t n;
	uint8_t *lines;

	if (!bytes || !word(p, bytes + p->layout.bytes_length, &n) || n > LINES_MAX ||
	    !afford(p, n))
		return;
	lines = arena_alloc(&p->names, n + 1);
	c->nlines =
		space_read_some(p->runtime.space, bytes + p->layout.bytes_data, lines, (uint32_t)n);
	c->lines = lines;
	if (!afford(p, (c->nlines / PYTHON_LINE_MARK + 1) * sizeof(*marks)))
		return;
	marks = arena_array(&p->names, struct python_line_mark, c->nlines / PYTHON_LINE_MARK + 1);
	c->nmarks = python_lines_marks(p->layout.lines, lines, c->nlines, c->first_line, marks);
	c->marks = marks;
}

static uint64_t member(const struct python *p, const struct python_code *c, uint32_t offset)
{
	uint64_t v;

	return word(p, c->address + offset, &v) ? v : 0;
}

static struct python_code *read_code(struct python *p, uint64_t address)
{
	const struct python_layout *l = &p->layout;
	struct python_code *c;
	uint64_t type;

	if (!address || !word(p, address + l->object_type, &type) || type != p->code_type ||
	    !afford(p, sizeof(*c)))
		return NULL;
	c = arena_new(&p->names, struct python_code);
	c->address = address;
	c->first_line = (uint32_t)member(p, c, l->code_first_line);
	c->function = python_text(p, member(p, c, l->code_name));
	c->file = python_text(p, member(p, c, l->code_file));
	read_lines(p, c, member(p, c, l->code_lines));
	return c;
}

const struct python_code *python_code(struct python *p, uint64_t address)
{
	const uint64_t *known = hash_get(&p->codes, &address, sizeof(address));
	struct python_code *c;

	if (known)
		return (const struct python_code *)(uintptr_t)*known;
	c = read_code(p, address);
	if (c)
		*hash_put(&p->codes, &address, sizeof(address), NULL) = (uintptr_t)c;
	return c;
}

uint32_t python_line(const struct python *p, const struct python_code *c, uint32_t at)
{
	if (!c->nmarks) /* there is no table */
		return p->layout.lines == PYTHON_LNOTAB || p->layout.lines == PYTHON_LNOTAB_UNSIGNED
			       ? c->first_line
			       : 0;
	return python_lines_find(p->layout.lines, c->lines, c->nlines, c->marks, c->nmarks, at);
}

static bool has_id(const struct python *p, uint64_t address, uint64_t id)
{
	/* Pointers that never change: file, name and lines; from 3.11 on file, name, qualified name
	 * and lines. */
	const struct python_layout *l = &p->layout;
	uint64_t about[WIRE_PYTHON_ABOUT], line;

	if (space_read_some(p->runtime.space, address + l->code_file, about, sizeof(about)) !=
		    sizeof(about) ||
	    !word(p, address + l->code_first_line, &line))
		return false;
	if (l->frames == PYTHON_OBJECTS)
		about[WIRE_PYTHON_ABOUT - 1] = 0;
	return wire_language_python_id((uint32_t)p->runtime.space->pid, address, about, line) == id;
}

const void *python_learn(struct runtime *r, uint64_t address, uint64_t entry, uint64_t id)
{
	struct python *p = (struct python *)r;
	const struct python_code *c = NULL;

	/* Checks again afterwards, because the object may be freed and replaced while it is
	 * read. */
	if (has_id(p, address, id))
		c = read_code(p, address);
	return c && has_id(p, address, id) ? c : NULL;
}

uint32_t python_describe(struct runtime *r, const void *code, uint32_t at, uint32_t i,
			 struct runtime_frame *ret)
{
	const struct python *p = (const struct python *)r;
	const struct python_code *c = code;

	(void)i;
	*ret = (struct runtime_frame){ .code = c->address,
				       .function = c->function,
				       .file = c->file,
				       .line = at == WIRE_LANGUAGE_BEFORE ? c->first_line
									  : python_line(p, c, at) };
	return 1;
}
