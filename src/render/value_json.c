/* A typed value as JSON; the form is described in value.h. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "render/json.h"
#include "value.h"

struct writer {
	struct out *o;
	struct type_graph *g;
	const struct value_style *style;
	const uint8_t *bytes;
	size_t n;
	uint32_t work;
	bool cut;
};

/* Bytes that are no UTF-8 stand as the character of that number, as in Latin-1. */
static void string(struct out *o, const char *text, size_t n)
{
	static const char from[] = "\b\f\n\r\t\"\\", to[] = "bfnrt\"\\";
	const uint8_t *s = (const uint8_t *)text;

	out_char(o, '"');
	for (size_t i = 0, len; i < n; i += len ? len : 1) {
		const char *e = s[i] ? strchr(from, s[i]) : NULL;
		uint32_t c = s[i];

		len = utf8_decode(s + i, n - i, &c);
		if (e) {
			out_char(o, '\\');
			out_char(o, to[e - from]);
		} else if (!len || utf8_is_unseen(c)) {
			json_character(o, c);
		} else {
			out_mem(o, s + i, len);
		}
	}
	out_char(o, '"');
}

static void hex_string(struct writer *w, uint64_t high, uint64_t v)
{
	if (high)
		out_printf(w->o, "\"0x%llx%016llx\"", (unsigned long long)high,
			   (unsigned long long)v);
	else
		out_printf(w->o, "\"0x%llx\"", (unsigned long long)v);
}

static void write_integer(struct writer *w, type_id t, uint64_t off, uint64_t bits)
{
	bool is_signed = type_is_signed(w->g, t);
	const char *name = NULL;
	uint64_t v, high;

	if (bits == 128 && value_bits(w->bytes, w->n, off, 64, false, &v) &&
	    value_bits(w->bytes, w->n, off + 64, 64, false, &high)) {
		hex_string(w, high, v);
		return;
	}
	if (!value_bits(w->bytes, w->n, off, bits, is_signed, &v)) {
		out_str(w->o, "null");
		return;
	}
	if (type_kind(w->g, t) == TYPE_ENUM)
		name = value_enumerator(w->g, t, v, &w->work);
	if (name)
		string(w->o, name, strlen(name));
	else if (type_int_flags(w->g, t) & TYPE_BOOL && v <= 1)
		out_str(w->o, v ? "true" : "false");
	else if (is_signed)
		out_signed(w->o, (int64_t)v, 0);
	else
		out_unsigned(w->o, v, 0);
}

static void write_pointer(struct writer *w, uint64_t off)
{
	uint64_t v;

	if (value_bits(w->bytes, w->n, off, 64, false, &v))
		hex_string(w, 0, v);
	else
		out_str(w->o, "null");
}

/* JSON has no infinity and no NaN. */
static void write_float(struct writer *w, type_id t, uint64_t off)
{
	uint64_t size = type_size(w->g, t);
	long double v;

	if (off / 8 > w->n || size > w->n - off / 8 || !value_float(w->bytes + off / 8, size, &v) ||
	    !isfinite(v))
		out_str(w->o, "null");
	else
		out_printf(w->o, "%.*Lg",
			   size == 4   ? FLT_DECIMAL_DIG
			   : size == 8 ? DBL_DECIMAL_DIG
				       : LDBL_DIG,
			   v);
}

static void write_text(struct writer *w, uint64_t off, uint64_t size)
{
	const char *s = (const char *)w->bytes + off / 8;
	uint64_t left = w->n - off / 8, len;

	if (size > left) {
		len = strnlen(s, left);
		w->cut |= len == left;
	} else {
		len = strnlen(s, size);
	}
	string(w->o, s, len);
}

static bool value_json_is_there(struct writer *w, type_id t, uint64_t off, uint64_t bits)
{
	enum type_kind kind = type_kind(w->g, type_strip(w->g, t));
	bool part = kind == TYPE_STRUCT || kind == TYPE_UNION || kind == TYPE_ARRAY ||
		    kind == TYPE_STRING;
	uint64_t need = off + (part && bits ? 8 : bits);

	if (need >= off && need / 8 + !!(need % 8) <= w->n)
		return true;
	w->cut = true;
	return false;
}

static void write_at(struct writer *w, type_id t, uint64_t off, uint64_t bits, uint32_t depth);

/* The members of anonymous members stand among those around them. */
static void write_members(struct writer *w, type_id t, uint64_t off, uint32_t depth, bool *first)
{
	uint32_t n;
	const struct type_member *m = type_members(w->g, t, &n);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = off + m[i].bit_offset;
		uint64_t bits = m[i].bit_size ? m[i].bit_size : type_size(w->g, m[i].type) * 8;

		if (++w->work > VALUE_WORK || depth > VALUE_DEPTH) {
			w->cut = true;
			return;
		}
		if (!bits || !value_json_is_there(w, m[i].type, at, bits))
			continue;
		if (!*m[i].name && type_is_sou(w->g, m[i].type)) {
			write_members(w, m[i].type, at, depth + 1, first);
			continue;
		}
		if (!*first)
			out_char(w->o, ',');
		*first = false;
		w->work += (uint32_t)(strlen(m[i].name) / VALUE_NAME_BYTES);
		string(w->o, m[i].name, strlen(m[i].name));
		out_char(w->o, ':');
		write_at(w, m[i].type, at, bits, depth + 1);
	}
}

static void write_elements(struct writer *w, type_id t, uint64_t off, uint32_t depth)
{
	type_id elem = type_ref(w->g, t);
	uint64_t n = type_nelems(w->g, t), bits = type_size(w->g, elem) * 8;

	out_char(w->o, '[');
	for (uint64_t i = 0; bits && i < n; i++) {
		if (++w->work > VALUE_WORK) {
			w->cut = true;
			break;
		}
		if (!value_json_is_there(w, elem, off + i * bits, bits))
			break;
		if (i)
			out_char(w->o, ',');
		write_at(w, elem, off + i * bits, bits, depth + 1);
	}
	out_char(w->o, ']');
}

static void write_at(struct writer *w, type_id t, uint64_t off, uint64_t bits, uint32_t depth)
{
	bool first = true;

	t = type_strip(w->g, t);
	if (depth > VALUE_DEPTH) {
		w->cut = true;
		out_str(w->o, "null");
		return;
	}
	switch (type_kind(w->g, t)) {
	case TYPE_INT:
	case TYPE_ENUM: write_integer(w, t, off, bits); break;
	case TYPE_POINTER: write_pointer(w, off); break;
	case TYPE_FLOAT: write_float(w, t, off); break;
	case TYPE_STRING: write_text(w, off, bits / 8); break;
	case TYPE_ARRAY:
		if (type_is_char_array(w->g, t))
			write_text(w, off, bits / 8);
		else
			write_elements(w, t, off, depth);
		break;
	case TYPE_STRUCT:
	case TYPE_UNION:
		out_char(w->o, '{');
		write_members(w, t, off, depth, &first);
		out_char(w->o, '}');
		break;
	default: out_str(w->o, "null"); break;
	}
}

void value_json(struct out *o, struct type_graph *g, type_id t, const void *bytes, size_t n,
		const struct value_style *style)
{
	static const struct value_style plain;
	struct writer w = {
		.o = o, .g = g, .style = style ? style : &plain, .bytes = bytes, .n = n
	};
	uint64_t bits = type_size(g, t) * 8;
	const char *name;
	struct arena a;

	arena_init(&a);
	name = type_name(g, &a, t, NULL);
	out_str(o, "{\"type\":");
	string(o, name, strlen(name));
	if (w.style->has_addr)
		out_printf(o, ",\"addr\":\"0x%llx\"", (unsigned long long)w.style->addr);
	out_str(o, ",\"value\":");
	if (value_json_is_there(&w, t, 0, bits))
		write_at(&w, t, 0, bits, 0);
	else
		out_str(o, "null");
	if (w.cut)
		out_str(o, ",\"truncated\":true");
	out_char(o, '}');
	arena_fini(&a);
}
