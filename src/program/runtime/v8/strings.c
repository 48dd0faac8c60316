/* V8's strings. */

#include "program/runtime/v8/v8.h"

enum { TEXT_MAX = 4096, /* characters of a name; longer ones are cut */ HOPS_MAX = 8 };

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

const char *v8_text(struct v8 *v, uint64_t object)
{
	uint8_t bytes[TEXT_MAX * 2];
	struct v8_string s;
	uint32_t n, size, len = 0;
	char *text;

	if (!v8_string_open(v, object, &s) || !s.length)
		return NULL;
	n = s.length < TEXT_MAX ? s.length : TEXT_MAX;
	size = s.wide ? n * 2 : n;
	if (!v8_afford(v, n * 3 + 1) ||
	    space_read_some(v->runtime.space, s.address, bytes, size) != size)
		return NULL;
	text = arena_alloc(&v->names, n * 3 + 1);
	for (uint32_t i = 0; i < n;)
		len += utf8(s.wide ? utf16(bytes, n, &i) : bytes[i++], text + len);
	return text;
}
