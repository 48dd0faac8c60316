/* Fields as JSON values. */
#include "render/json.h"

#include <math.h>

#include "base/utf8.h"

void json_character(struct out *o, uint32_t c)
{
	if (c >= 0x10000) {
		out_printf(o, "\\u%04x", 0xd800 + ((c - 0x10000) >> 10));
		c = 0xdc00 + (c & 0x3ff);
	}
	out_printf(o, "\\u%04x", c);
}

static void unseen(struct out *o, uint32_t c)
{
	switch (c) {
	case '\n': out_str(o, "\\n"); return;
	case '\t': out_str(o, "\\t"); return;
	case '\r': out_str(o, "\\r"); return;
	case '\b': out_str(o, "\\b"); return;
	case '\f': out_str(o, "\\f"); return;
	default: json_character(o, c);
	}
}

void json_string(struct out *o, const char *text, size_t n)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t from = 0;

	out_char(o, '"');
	for (size_t i = 0; i < n;) {
		uint32_t len, c = s[i];

		if (s[i] >= ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\') {
			i++;
			continue;
		}
		len = utf8_decode(s + i, n - i, &c);
		if (len > 1 && !utf8_is_unseen(c)) {
			i += len;
			continue;
		}
		out_mem(o, s + from, i - from);
		if (s[i] == '"' || s[i] == '\\') {
			out_char(o, '\\');
			out_char(o, (char)s[i]);
		} else if (len) {
			unseen(o, c);
		} else {
			out_printf(o, "\\\\x%02x", s[i]);
		}
		i += len ? len : 1;
		from = i;
	}
	if (from < n) /* for empty text, text may be NULL */
		out_mem(o, s + from, n - from);
	out_char(o, '"');
}

static void hex_bytes(struct out *o, const uint8_t *p, uint32_t n)
{
	out_char(o, '"');
	for (uint32_t i = 0; i < n; i++) {
		out_char(o, "0123456789abcdef"[p[i] >> 4]);
		out_char(o, "0123456789abcdef"[p[i] & 15]);
	}
	out_char(o, '"');
}

static void hex_number(struct out *o, uint64_t v)
{
	out_str(o, "\"0x");
	out_hex(o, v, false, 0);
	out_char(o, '"');
}

static void name(struct out *o, const char *key, const char *text)
{
	out_printf(o, ",\"%s\":", key);
	if (text)
		json_string(o, text, strlen(text));
	else
		out_str(o, "null");
}

struct frames_writer {
	struct out *out;
	bool more;
};

/* Writes a stack. A frame is {"address", "module", "function", "offset"}; a stack that is not
 * complete ends with {"end": REASON}. */
static void frame(void *arg, const struct frame *f)
{
	struct frames_writer *w = arg;
	struct out *o = w->out;

	if (w->more)
		out_char(o, ',');
	w->more = true;
	if (f->kind == FRAME_END) {
		out_str(o, "{\"end\":");
		json_string(o, f->end, strlen(f->end));
		out_char(o, '}');
		return;
	}
	out_str(o, "{\"address\":");
	hex_number(o, f->address);
	name(o, "module", f->place.module);
	name(o, "function", f->place.function);
	if (f->place.module || f->place.function) {
		out_str(o, ",\"offset\":");
		out_unsigned(o, f->place.offset, 0);
	}
	if (f->kind == FRAME_INLINED)
		out_str(o, ",\"inlined\":true");
	if (frame_is_language(f->kind))
		name(o, "language", frame_kind_name(f->kind));
	if (f->file) {
		name(o, "file", f->file);
		out_str(o, ",\"line\":");
		out_unsigned(o, f->line, 0);
	}
	out_char(o, '}');
}

static void frames(struct sink *s, struct out *o, const struct field *f, const uint8_t *data)
{
	struct frames_writer w = { .out = o };

	out_char(o, '[');
	stack_each(s, f, data, frame, &w);
	out_char(o, ']');
}

static void json_value_number(struct out *o, const struct field *f, uint32_t traits,
			      const uint8_t *data)
{
	uint64_t v = field_uint(f, data);

	if (traits & TRAIT_FLOAT) {
		double d = 0;
		float fl;

		if (f->size == 4) {
			memcpy(&fl, &v, sizeof(fl));
			d = (double)fl;
		} else {
			memcpy(&d, &v, sizeof(d));
		}
		if (isfinite(d))
			out_printf(o, "%.17g", d);
		else
			out_str(o, "null");
	} else if (traits & TRAIT_BOOL) {
		out_str(o, v ? "true" : "false");
	} else if (traits & TRAIT_POINTER) {
		hex_number(o, v);
	} else if (traits & TRAIT_SIGNED) {
		out_signed(o, field_int(f, data, true), 0);
	} else {
		out_unsigned(o, v, 0);
	}
}

void json_field(struct sink *s, struct out *o, const struct field *f, uint32_t traits,
		const uint8_t *data)
{
	char buf[ADDRESS_TEXT];
	const uint8_t *mem;
	const char *text;
	uint32_t n;

	switch (f->kind) {
	case FIELD_INT: return json_value_number(o, f, traits, data);
	case FIELD_BYTES:
		if (!(traits & TRAIT_TEXT))
			return json_bytes(s, o, f, data);
		/* fallthrough */
	case FIELD_STRING:
	case FIELD_STRID: field_text(s->image, f, data, &text, &n); return json_string(o, text, n);
	case FIELD_KSTACK:
	case FIELD_USTACK:
	case FIELD_KSTACKID:
	case FIELD_USTACKID: return frames(s, o, f, data);
	case FIELD_SYM:
	case FIELD_MOD:
	case FIELD_USYM:
	case FIELD_UMOD:
	case FIELD_UADDR:
		field_address_text(s, f, data, buf, sizeof(buf));
		return json_string(o, buf, strlen(buf));
	case FIELD_MEM: mem = field_mem(f, data, &n); return hex_bytes(o, mem, n);
	}
}
