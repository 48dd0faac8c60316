/* The text that an object is: a java.lang.String, by its array, or a string of a dump that has its
 * characters as they are. */
#include "memory/heap/heap.h"

#include "base/utf8.h"

enum {
	TEXT_MAX = 1 << 16, /* characters */
	FIELDS_MAX = 64,    /* numbers of a String that are looked at; it has three */
};

/* Where a String has the number of its encoding, 0: of one byte, 1: of two; -1: it has none. A dump
 * can say that Strings have a million fields. */
static int64_t coder_at(const struct graph *g, uint32_t class)
{
	uint32_t n = graph_fields(g, class, false), at = 0;

	for (uint32_t i = 0; i < n && i < FIELDS_MAX; i++) {
		struct graph_field f = graph_field_at(g, class, false, i);

		if (f.type == 'B' && !strcmp(f.name, "coder"))
			return at;
		at += graph_type_size(f.type);
	}
	return -1;
}

/* A NUL would end the text, and half of a pair is no character. */
static void put_character(struct out *o, uint32_t c)
{
	char bytes[4];
	uint32_t n = c ? utf8_encode(c, bytes) : 0;

	if (!n)
		n = utf8_encode(0xfffd, bytes);
	out_mem(o, bytes, n);
}

static void put_utf16(const uint8_t *p, size_t n, struct out *o)
{
	for (size_t i = 0; i + 2 <= n && i / 2 < TEXT_MAX; i += 2) {
		uint32_t c = (uint32_t)(p[i] | p[i + 1] << 8), low;

		if (c >= 0xd800 && c < 0xdc00 && i + 4 <= n) {
			low = (uint32_t)(p[i + 2] | p[i + 3] << 8);
			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i += 2;
			}
		}
		put_character(o, c);
	}
}

static void put_latin1(const uint8_t *p, size_t n, struct out *o)
{
	for (size_t i = 0; i < n && i < TEXT_MAX; i++)
		put_character(o, p[i]);
}

static bool put_string(const struct graph *g, graph_id id, struct out *o)
{
	struct graph_walk walk = graph_out(g, id);
	struct graph_edge_to e;
	size_t n, own;
	const uint8_t *fields = graph_values_of(g, id, &own), *chars;
	int64_t coder = coder_at(g, graph_class_of(g, id));

	while (graph_walk_next(&walk, &e)) {
		const char *class = graph_class_text(g, graph_class_of(g, e.id));
		bool wide = !strcmp(class, "char[]");

		if (!wide && strcmp(class, "byte[]") != 0)
			continue;
		chars = graph_values_of(g, e.id, &n);
		if (!wide && coder >= 0 && (size_t)coder < own)
			wide = fields[coder] == 1;
		if (wide)
			put_utf16(chars, n, o);
		else
			put_latin1(chars, n, o);
		return true;
	}
	return false;
}

bool heap_text(const struct graph *g, graph_id id, struct out *ret)
{
	const char *class = graph_class_text(g, graph_class_of(g, id));
	size_t n;
	const uint8_t *p;
	bool is_text = true;

	ret->n = 0;
	if (!strcmp(class, "java.lang.String")) {
		is_text = put_string(g, id, ret);
	} else {
		p = graph_fields(g, graph_class_of(g, id), false) ? NULL
								  : graph_values_of(g, id, &n);
		/* an array of numbers is no text */
		is_text = p && !strstr(class, "[]");
		if (is_text)
			out_mem(ret, p, n < TEXT_MAX ? n : TEXT_MAX);
	}
	out_char(ret, '\0');
	return is_text;
}
