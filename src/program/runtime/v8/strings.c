/* V8's strings. */
#include <string.h>

#include "program/runtime/v8/v8.h"

enum {
	TEXT_MAX = 4096, /* characters of a name; longer ones are cut */
	HOPS_MAX = 8,
	TREE_DEPTH_MAX = 32,
	TREE_NODES_MAX = 256,
	NODE_WORK = 32,      /* of the budget `work`: a look at a string that is part of a name */
	TEXT_WORK = 1 << 17, /* more than any text takes */
};

static void text_work_take(struct v8 *v, uint64_t n)
{
	v->work -= n < v->work ? n : v->work;
}

/* Goes from a string without characters of its own to the one that has them. */
static bool next(struct v8 *v, int32_t form, uint64_t *string, uint32_t *offset)
{
	const struct v8_numbers *n = &v->n;
	uint64_t from = *string;
	int32_t more;

	if (form == n->string_thin) {
		*string = v8_get(v, from, (uint32_t)n->string_actual);
		return true;
	}
	if (form == n->string_sliced) {
		*string = v8_get(v, from, (uint32_t)n->string_parent);
		if (!v8_small(v8_get(v, from, (uint32_t)n->string_offset), &more) || more < 0)
			return false;
		*offset += (uint32_t)more;
		return true;
	}
	if (form == n->string_cons) { /* flat, if its second half is empty */
		uint64_t second = v8_get(v, from, (uint32_t)n->string_second);

		*string = v8_get(v, from, (uint32_t)n->string_first);
		return v8_is_pointer(second) && !v8_u32(v, second - 1 + (uint32_t)n->string_length);
	}
	return false;
}

bool v8_string_open(struct v8 *v, uint64_t object, struct v8_string *ret)
{
	const struct v8_numbers *n = &v->n;
	uint32_t offset = 0, length = 0;

	for (uint32_t i = 0; i < HOPS_MAX; i++) {
		int32_t type = v8_type(v, &object), form = type & n->string_form_mask;
		uint32_t own, data = 0;
		uint64_t at = object - 1;

		text_work_take(v, NODE_WORK);
		if (type < 0 || type >= n->type_no_string)
			return false;
		own = v8_u32(v, object - 1 + (uint32_t)n->string_length);
		if (!i)
			length = own;
		ret->wide = (type & n->string_width_mask) != n->string_is_one_byte;
		if (form == n->string_sequential) {
			data = (uint32_t)(ret->wide ? n->string_two_bytes : n->string_one_byte);
		} else if (form == n->string_external) {
			/* a resource leads to its characters */
			at = v8_get(v, object, (uint32_t)n->string_resource + 8);
			if (!at)
				return false;
		} else if (next(v, form, &object, &offset)) {
			continue;
		} else {
			return false;
		}
		ret->address = at + data + (uint64_t)offset * (ret->wide ? 2 : 1);
		ret->length = length;
		return offset <= own && length <= own - offset;
	}
	return false;
}

static uint32_t utf8(uint32_t c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)(c < ' ' || c == 0x7f ? '?' : c);
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Takes a character of UTF-16. Half of a pair alone is no character. */
static uint32_t utf16(const uint8_t *p, uint32_t n, uint32_t *i)
{
	uint32_t c = (uint32_t)(p[*i * 2] | p[*i * 2 + 1] << 8), low;

	(*i)++;
	if (c < 0xd800 || c >= 0xe000)
		return c;
	if (c >= 0xdc00 || *i == n)
		return '?';
	low = (uint32_t)(p[*i * 2] | p[*i * 2 + 1] << 8);
	if (low < 0xdc00 || low >= 0xe000)
		return '?';
	(*i)++;
	return 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
}

/* A text that is made of the parts of a string. */
struct text {
	char *bytes; /* room for 3 * TEXT_MAX + 1 */
	uint32_t len, chars;
};

/* Adds the characters of a string in one piece. Returns false when it cannot be read. */
static bool add_piece(struct v8 *v, uint64_t object, struct text *t)
{
	uint8_t bytes[TEXT_MAX * 2];
	struct v8_string s;
	uint32_t n, size;

	if (!v8_string_open(v, object, &s))
		return false;
	n = s.length < TEXT_MAX - t->chars ? s.length : TEXT_MAX - t->chars;
	size = s.wide ? n * 2 : n;
	text_work_take(v, size);
	if (space_read_some(v->runtime.space, s.address, bytes, size) != size)
		return false;
	t->chars += n;
	for (uint32_t i = 0; i < n;)
		t->len += utf8(s.wide ? utf16(bytes, n, &i) : bytes[i++], t->bytes + t->len);
	return true;
}

/* Adds the characters of a string that may be a tree of two halves each (ConsString), the first
 * half first. A name that V8 has inferred is one. */
static bool add_string(struct v8 *v, uint64_t object, struct text *t)
{
	uint64_t later[TREE_DEPTH_MAX] = { object };
	uint32_t n = 1;

	for (uint32_t i = 0; n && i < TREE_NODES_MAX && t->chars < TEXT_MAX; i++) {
		uint64_t at = later[--n], second;
		int32_t type = v8_type(v, &at);

		text_work_take(v, NODE_WORK);
		if (type < 0 || type >= v->n.type_no_string)
			return false;
		second = v8_get(v, at, (uint32_t)v->n.string_second);
		if ((type & v->n.string_form_mask) != v->n.string_cons ||
		    (v8_is_pointer(second) &&
		     !v8_u32(v, second - 1 + (uint32_t)v->n.string_length))) {
			if (!add_piece(v, at, t))
				return false;
		} else if (n + 2 > TREE_DEPTH_MAX) {
			return false;
		} else {
			later[n++] = second;
			later[n++] = v8_get(v, at, (uint32_t)v->n.string_first);
		}
	}
	return !n || t->chars == TEXT_MAX;
}

bool v8_can_name(struct v8 *v)
{
	return v->work >= TEXT_WORK && v8_has(v, TEXT_MAX);
}

const char *v8_text(struct v8 *v, uint64_t object)
{
	char bytes[TEXT_MAX * 3 + 1];
	struct text t = { .bytes = bytes };
	char *text;

	if (!v8_can_name(v))
		return NULL;
	if (!add_string(v, object, &t) || !t.len || !v8_afford(v, t.len + 1))
		return NULL;
	text = arena_alloc(&v->names, t.len + 1);
	memcpy(text, bytes, t.len);
	text[t.len] = 0;
	return text;
}
