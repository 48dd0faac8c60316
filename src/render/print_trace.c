/* trace(), tracemem() and aggregation keys: writes data by its type and size, without a format. */
#include "render/render.h"

#include <ctype.h>

void bytes_dump(struct out *o, const uint8_t *p, uint32_t n)
{
	if (!n)
		return;
	out_str(o,
		"\n             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n");
	for (uint32_t row = 0; row < n; row += 16) {
		uint32_t end = row + 16 < n ? row + 16 : n;

		out_str(o, "     ");
		out_hex(o, row, false, 5);
		out_char(o, ':');
		for (uint32_t i = row; i < end; i++) {
			out_char(o, ' ');
			out_char(o, "0123456789abcdef"[p[i] >> 4]);
			out_char(o, "0123456789abcdef"[p[i] & 15]);
		}
		out_fill(o, ' ', (row + 16 - end) * 3 + 2);
		for (uint32_t i = row; i < end; i++)
			out_char(o, p[i] < ' ' || p[i] > '~' ? '.' : (char)p[i]);
		out_char(o, '\n');
	}
}

/* Returns true for bytes that look like text: printable ones, then only NULs. */
static bool looks_like_text(const uint8_t *p, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && (isprint(p[i]) || isspace(p[i]) || p[i] == '\b' || p[i] == '\a'))
		i++;
	if (!i)
		return false;
	while (i < n && !p[i])
		i++;
	return i == n;
}

/* -x rawbytes: a string is written with all its bytes. */
static void string_dump(struct sink *s, struct out *o, const char *text, uint32_t n)
{
	uint32_t size = (uint32_t)opt_num(s->options, OPT_STRSIZE) + 1;
	cleanup_free uint8_t *bytes = xcalloc(size > n ? size : n, 1);

	memcpy(bytes, text, n);
	bytes_dump(o, bytes, size > n ? size : n);
}

void trace_print(struct sink *s, struct out *o, const struct field *f, uint32_t traits,
		 const uint8_t *data)
{
	bool quiet = sink_quiet(s), raw = s->options && opt_on(s->options, OPT_RAWBYTES);
	bool is_signed = traits & TRAIT_SIGNED;
	char buf[ADDRESS_TEXT];
	const char *text;
	const uint8_t *mem;
	uint32_t n;
	int width;

	switch (f->kind) {
	case FIELD_INT:
		if (raw)
			return bytes_dump(o, data + f->offset, f->size);
		width = f->size == 8   ? (is_signed ? 19 : 20)
			: f->size == 4 ? 10
			: f->size == 2 ? 5
				       : 3;
		if (!quiet)
			out_char(o, ' ');
		if (is_signed)
			return out_signed(o, field_int(f, data, true), quiet ? 0 : width);
		return out_unsigned(o, field_uint(f, data), quiet ? 0 : width);
	case FIELD_STRING:
	case FIELD_BYTES:
		if (f->kind == FIELD_BYTES && (raw || s->dtrace || !(traits & TRAIT_TEXT)))
			return bytes_dump(o, data + f->offset, f->size);
		/* fallthrough */
	case FIELD_STRID:
		field_text(s->image, f, data, &text, &n);
		if (raw)
			return string_dump(s, o, text, n);
		if (quiet)
			return out_mem(o, text, n);
		out_str(o, "  ");
		return out_padded(o, text, n, -33);
	case FIELD_KSTACK:
	case FIELD_USTACK:
	case FIELD_KSTACKID:
	case FIELD_USTACKID: return stack_print(s, o, f, data, -1, 0);
	case FIELD_SYM:
	case FIELD_MOD:
	case FIELD_USYM:
	case FIELD_UMOD:
	case FIELD_UADDR:
		field_address_text(s, f, data, buf, sizeof(buf));
		out_str(o, "  ");
		return out_padded(o, buf, strlen(buf), -50);
	case FIELD_MEM: mem = field_mem(f, data, &n); return bytes_dump(o, mem, n);
	}
}

void key_print(struct sink *s, struct out *o, const struct field *f, const uint8_t *key)
{
	uint32_t traits = field_traits(s->types, f), n;
	const char *text;
	bool is_signed;
	int width;

	switch (f->kind) {
	case FIELD_INT:
		width = f->size == 8 ? 16 : f->size == 4 ? 8 : f->size == 2 ? 5 : 3;
		out_char(o, ' ');
		/* DTrace takes keys of 8 and 4 bytes as signed, shorter ones as unsigned, whatever
		 * their type. */
		is_signed = s->dtrace ? f->size >= 4 : (traits & TRAIT_SIGNED) || !s->types;
		if (is_signed)
			return out_signed(o, field_int(f, key, true), width);
		return out_unsigned(o, field_uint(f, key), width);
	case FIELD_BYTES:
		if (!(traits & TRAIT_TEXT) && !looks_like_text(key + f->offset, f->size))
			return bytes_dump(o, key + f->offset, f->size);
		/* fallthrough */
	case FIELD_STRING:
	case FIELD_STRID:
		field_text(s->image, f, key, &text, &n);
		out_str(o, "  ");
		return out_padded(o, text, n, -50);
	default: return trace_print(s, o, f, traits, key);
	}
}
