/* Formats applied to the fields of a record or the keys and values of an aggregation. */
#include "render/render.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <time.h>

struct cursor {
	struct sink *sink;
	struct out *out;
	const struct format_args *args;
	uint32_t arg, agg;
};

/* A conversion with known width and precision. */
struct spec {
	const struct conv *conv;
	uint32_t flags;
	int width; /* negative: to the left */
	int prec;  /* -1 none */
};

static const struct field *next_field(struct cursor *c, uint32_t *ret_traits)
{
	const struct format_args *a = c->args;
	uint32_t i;

	if (c->arg >= a->n)
		return NULL;
	i = a->index ? a->index[c->arg] : c->arg;
	c->arg++;
	*ret_traits = a->traits ? a->traits[i] : field_traits(c->sink->types, &a->fields[i]);
	return &a->fields[i];
}

static int next_int(struct cursor *c)
{
	uint32_t traits;
	const struct field *f = next_field(c, &traits);

	return f && f->kind == FIELD_INT ? (int)field_int(f, c->args->data, true) : 0;
}

/* "%" flags width precision, then tail: a format for the C library. */
static void c_format(const struct spec *sp, const char *tail, char buf[static 64])
{
	static const struct {
		uint32_t flag;
		char c;
	} flags[] = {
		{ CONV_LEFT, '-' }, { CONV_PLUS, '+' },  { CONV_ALT, '#' },
		{ CONV_ZERO, '0' }, { CONV_SPACE, ' ' }, { CONV_GROUP, '\'' },
	};
	int n = 0;

	buf[n++] = '%';
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (sp->flags & flags[i].flag)
			buf[n++] = flags[i].c;
	if (sp->width)
		n += snprintf(buf + n, 64 - (size_t)n, "%d", abs(sp->width));
	if (sp->prec >= 0)
		n += snprintf(buf + n, 64 - (size_t)n, ".%d", sp->prec);
	snprintf(buf + n, 64 - (size_t)n, "%s", tail);
}

static bool plain(const struct spec *sp)
{
	return sp->prec < 0 &&
	       !(sp->flags & (CONV_PLUS | CONV_ALT | CONV_ZERO | CONV_SPACE | CONV_GROUP));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void print_integer(struct out *o, const struct spec *sp, uint64_t v, bool is_signed)
{
	char letter = is_signed ? 'd' : sp->conv->spec, fmt[64], tail[4] = { 'l', 'l', letter, 0 };

	if (letter == 'i')
		tail[2] = letter = 'd';
	if (!is_signed && letter == 'd')
		tail[2] = letter = 'u';
	if (letter == 'p')
		tail[2] = letter = 'x';
	if (plain(sp)) {
		if (letter == 'd')
			return out_signed(o, (int64_t)v, sp->width);
		if (letter == 'u')
			return out_unsigned(o, v, sp->width);
		if (letter == 'x' || letter == 'X')
			return out_hex(o, v, letter == 'X', sp->width);
	}
	c_format(sp, tail, fmt);
	out_printf(o, fmt, (unsigned long long)v);
}

static void print_float(struct out *o, const struct spec *sp, long double v)
{
	char fmt[64], tail[3] = { 'L', sp->conv->spec, 0 };

	c_format(sp, tail, fmt);
	out_printf(o, fmt, v);
}
#pragma GCC diagnostic pop

static void print_text(struct out *o, const struct spec *sp, const char *s, size_t n)
{
	if (sp->prec >= 0 && n > (size_t)sp->prec)
		n = (size_t)sp->prec;
	out_padded(o, s, n, sp->width);
}

static uint32_t utf8(uint32_t c, char buf[static 4])
{
	if (c < 0x80) {
		buf[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		buf[0] = (char)(0xc0 | c >> 6);
		buf[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x10000) {
		buf[0] = (char)(0xe0 | c >> 12);
		buf[1] = (char)(0x80 | (c >> 6 & 0x3f));
		buf[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	buf[0] = (char)(0xf0 | c >> 18);
	buf[1] = (char)(0x80 | (c >> 12 & 0x3f));
	buf[2] = (char)(0x80 | (c >> 6 & 0x3f));
	buf[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* wchar_t[]: 32-bit characters up to the first 0. */
static void print_wide(struct out *o, const struct spec *sp, const struct field *f,
		       const uint8_t *data)
{
	struct out text;

	out_init(&text, NULL);
	for (uint32_t i = 0; i + 4 <= f->size; i += 4) {
		uint32_t c = read_u32(data + f->offset + i);
		char buf[4];

		if (!c)
			break;
		out_mem(&text, buf, utf8(c, buf));
	}
	print_text(o, sp, text.v, text.n);
	out_fini(&text);
}

static void print_string(struct cursor *c, const struct spec *sp, const struct field *f)
{
	const char *s;
	uint32_t n;
	struct out text;

	if (sp->conv->kind == CONV_STRING && sp->conv->size >= 4 && f->kind == FIELD_BYTES)
		return print_wide(c->out, sp, f, c->args->data);
	if (!field_text(c->sink->image, f, c->args->data, &s, &n))
		return print_integer(c->out, sp, field_uint(f, c->args->data), false);
	if (sp->conv->kind == CONV_STRING)
		return print_text(c->out, sp, s, n);
	out_init(&text, NULL);
	out_escaped(&text, s, n);
	print_text(c->out, sp, text.v, text.n);
	out_fini(&text);
}

/* Local time, broken down once a second. */
static const struct tm *local_time(uint64_t ns)
{
	static time_t last = -1;
	static struct tm tm;
	time_t t = (time_t)(ns / 1000000000);

	if (t != last) {
		localtime_r(&t, &tm);
		last = t;
	}
	return &tm;
}

static void print_time(struct out *o, const struct spec *sp, uint64_t ns)
{
	char buf[128];
	size_t n = strftime(buf, sizeof(buf),
			    sp->conv->kind == CONV_DATE ? "%Y %b %e %T" : "%a, %d %b %G %T %Z",
			    local_time(ns));

	print_text(o, sp, buf, n);
}

static void print_char(struct out *o, const struct spec *sp, uint64_t v)
{
	char buf[16];
	size_t n = 1;

	if (sp->conv->kind == CONV_ESC_CHAR) {
		struct out text;

		buf[0] = (char)v;
		out_init(&text, NULL);
		out_escaped(&text, buf, 1);
		print_text(o, sp, text.v, text.n);
		out_fini(&text);
		return;
	}
	buf[0] = (char)v;
	if (sp->conv->size == 4)
		n = utf8((uint32_t)v, buf);
	out_padded(o, buf, n, sp->width);
}

static void print_address(struct cursor *c, const struct spec *sp, const struct field *f)
{
	char buf[ADDRESS_TEXT];

	if (!field_address_text(c->sink, f, c->args->data, buf, sizeof(buf)))
		address_text(c->sink,
			     sp->conv->kind == CONV_UADDR ? (uint32_t)c->sink->target_pid : 0,
			     field_uint(f, c->args->data), ADDRESS_OFFSET, buf, sizeof(buf));
	print_text(c->out, sp, buf, strlen(buf));
}

static void print_port(struct cursor *c, const struct spec *sp, uint16_t port)
{
	char buf[1024], number[8];
	struct servent known, *found = NULL;
	const char *text = number;

	snprintf(number, sizeof(number), "%u", port);
	if (!getservbyport_r(htons(port), NULL, &known, buf, sizeof(buf), &found) && found)
		text = found->s_name;
	print_text(c->out, sp, text, strlen(text));
}

static void print_inet(struct cursor *c, const struct spec *sp, const struct field *f)
{
	char buf[INET6_ADDRSTRLEN] = "";

	if (f->kind == FIELD_STRING || f->kind == FIELD_STRID)
		return print_string(c, sp, f);
	if (f->size == 4 || f->size == 16)
		inet_ntop(f->size == 4 ? AF_INET : AF_INET6, c->args->data + f->offset, buf,
			  sizeof(buf));
	print_text(c->out, sp, buf, strlen(buf));
}

static long double float_value(const struct field *f, const uint8_t *data, uint32_t traits)
{
	const uint8_t *p = data + f->offset;
	long double ld = 0;
	double d;
	float fl;

	if (!(traits & TRAIT_FLOAT) && f->kind == FIELD_INT)
		return traits & TRAIT_SIGNED ? (long double)field_int(f, data, true)
					     : (long double)field_uint(f, data);
	switch (f->size) {
	case sizeof(float): memcpy(&fl, p, sizeof(fl)); return (long double)fl;
	case sizeof(double): memcpy(&d, p, sizeof(d)); return (long double)d;
	case 16: memcpy(&ld, p, 10); return ld;
	default: return 0;
	}
}

/* Reads numbers of 1 to 8 bytes. An explicit h or hh narrows the number; l and ll never widen an
 * unsigned value's sign. */
static void print_number(struct cursor *c, const struct spec *sp, const struct field *f,
			 uint32_t traits)
{
	const uint8_t *data = c->args->data;
	bool is_signed = sp->conv->kind == CONV_SIGNED &&
			 ((traits & TRAIT_SIGNED) || sp->conv->size);
	uint64_t v, addr;
	uint32_t pid;

	if (field_address(f, data, &addr, &pid))
		return print_integer(c->out, sp, addr, false);
	v = is_signed ? (uint64_t)field_int(f, data, traits & TRAIT_SIGNED) : field_uint(f, data);
	if (sp->conv->size && sp->conv->size < f->size && sp->conv->size < 8) {
		uint32_t shift = 64 - sp->conv->size * 8u;

		v = is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
	}
	print_integer(c->out, sp, v, is_signed);
}

static void print_field(struct cursor *c, const struct spec *sp)
{
	uint32_t traits;
	const struct field *f = next_field(c, &traits);
	const uint8_t *data = c->args->data;
	uint64_t addr;
	uint32_t pid;

	if (!f) /* printa() with fewer keys than conversions */
		return;
	switch (sp->conv->kind) {
	case CONV_SIGNED:
	case CONV_UNSIGNED:
	case CONV_POINTER:
		if (f->kind == FIELD_STRING || f->kind == FIELD_STRID)
			return print_string(c, sp, f);
		return print_number(c, sp, f, traits);
	case CONV_CHAR:
	case CONV_ESC_CHAR: return print_char(c->out, sp, field_uint(f, data));
	case CONV_STRING:
	case CONV_ESC_STRING:
		if (field_address(f, data, &addr, &pid))
			return print_address(c, sp, f);
		return print_string(c, sp, f);
	case CONV_KADDR:
	case CONV_UADDR: return print_address(c, sp, f);
	case CONV_STACK:
		return stack_print(c->sink, c->out, f, data, sp->width < 0 ? -sp->width : 0,
				   sp->width < 0 ? 0 : sp->width);
	case CONV_TIME:
	case CONV_DATE: return print_time(c->out, sp, field_uint(f, data));
	case CONV_FLOAT: return print_float(c->out, sp, float_value(f, data, traits));
	case CONV_PORT: return print_port(c, sp, (uint16_t)field_uint(f, data));
	case CONV_INET: return print_inet(c, sp, f);
	case CONV_LITERAL: return;
	}
}

/* %@: writes the value of the next aggregation; the last one again when there are no more. */
static void print_agg(struct cursor *c, const struct spec *sp)
{
	const struct format_args *a = c->args;
	const struct agg_view *v;
	int64_t n;

	if (!a->naggs)
		return;
	v = a->aggs[c->agg];
	if (c->agg + 1 < a->naggs)
		c->agg++;
	if (agg_is_distribution(v->agg))
		return hist_print(c->sink, c->out, v, v->rows[a->row].words);
	n = agg_row_value(v, &v->rows[a->row]);
	switch (sp->conv->kind) {
	case CONV_SIGNED: return print_integer(c->out, sp, (uint64_t)n, v->agg->func != AGG_COUNT);
	case CONV_UNSIGNED:
	case CONV_POINTER: return print_integer(c->out, sp, (uint64_t)n, false);
	case CONV_CHAR:
	case CONV_ESC_CHAR: return print_char(c->out, sp, (uint64_t)n);
	case CONV_TIME:
	case CONV_DATE: return print_time(c->out, sp, (uint64_t)n);
	case CONV_FLOAT: return print_float(c->out, sp, (long double)n);
	case CONV_KADDR:
	case CONV_UADDR: {
		char buf[ADDRESS_TEXT];

		address_text(c->sink,
			     sp->conv->kind == CONV_UADDR ? (uint32_t)c->sink->target_pid : 0,
			     (uint64_t)n, ADDRESS_OFFSET, buf, sizeof(buf));
		return print_text(c->out, sp, buf, strlen(buf));
	}
	default: return out_signed(c->out, n, sp->width);
	}
}

/* Returns a width or precision, from the format or from the traced program's data. */
static int at_most(int v, bool data)
{
	int most = data ? 1 << 20 : 1 << 26;

	return v > most ? most : v;
}

void format_print(struct sink *s, struct out *o, const struct format_args *a)
{
	struct cursor c = { .sink = s, .out = o, .args = a };

	for (uint32_t i = 0; i < a->format->n; i++) {
		const struct conv *conv = &a->format->convs[i];
		/* a precision of 0 means none, as in DTrace */
		struct spec sp = { .conv = conv,
				   .flags = conv->flags,
				   .width = conv->width,
				   .prec = conv->prec > 0 ? conv->prec : -1 };

		if (conv->kind == CONV_LITERAL) {
			out_literal(o, conv->text, conv->len);
			continue;
		}
		if (conv->flags & CONV_DYN_WIDTH) {
			sp.width = next_int(&c);
			if (sp.width < 0) {
				sp.width = sp.width == INT32_MIN ? INT32_MAX : -sp.width;
				sp.flags |= CONV_LEFT;
			}
		}
		if (conv->flags & CONV_DYN_PREC) {
			sp.prec = next_int(&c);
			if (sp.prec <= 0)
				sp.prec = -1;
		}
		sp.width = at_most(sp.width, conv->flags & CONV_DYN_WIDTH);
		sp.prec = at_most(sp.prec, conv->flags & CONV_DYN_PREC);
		if (sp.flags & CONV_LEFT) {
			sp.flags &= ~(uint32_t)CONV_ZERO;
			sp.width = -sp.width;
		}
		if (conv->flags & CONV_AGG)
			print_agg(&c, &sp);
		else
			print_field(&c, &sp);
	}
}

void action_format(struct sink *s, struct out *o, const struct record_view *r,
		   const struct action *a)
{
	struct format_args args = {
		.format = a->format,
		.fields = r->segment->fields,
		.index = a->fields,
		.n = a->nfields,
		.traits = r->traits,
		.data = r->data,
	};

	format_print(s, o, &args);
}

char *action_text(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct out text;

	out_init(&text, NULL);
	action_format(s, &text, r, a);
	return out_take(&text);
}
