/* Prints a typed value as C-like text. */
#include "value.h"

#include <float.h>
#include <string.h>

struct printer {
	struct out *o;
	struct type_graph *g;
	struct arena *a;
	const struct value_style *style;
	const uint8_t *bytes;
	size_t n;
	uint32_t work;
	bool cut; /* "..." was printed */
};

/* --- reading --- */

bool value_bits(const void *bytes, size_t n, uint64_t bit_offset, uint64_t bit_size, bool is_signed,
		uint64_t *ret)
{
	const uint8_t *p = bytes;
	uint64_t first = bit_offset / 8, last = (bit_offset + bit_size + 7) / 8;
	unsigned __int128 v = 0;

	if (!bit_size || bit_size > 64 || bit_offset > UINT64_MAX - 128 || last > n)
		return false;
	for (uint64_t i = last; i-- > first;)
		v = v << 8 | p[i];
	*ret = (uint64_t)(v >> bit_offset % 8);
	if (bit_size < 64) {
		*ret &= (1ull << bit_size) - 1;
		if (is_signed && *ret >> (bit_size - 1))
			*ret |= ~0ull << bit_size;
	}
	return true;
}

/* Missing bytes count as zero. */
static bool value_is_zero(const void *bytes, size_t n, uint64_t bit_offset, uint64_t bit_size)
{
	const uint8_t *p = bytes;
	uint64_t v, first = bit_offset / 8, size = bit_size / 8;

	if (bit_offset % 8 || bit_size % 8)
		return !value_bits(bytes, n, bit_offset, bit_size, false, &v) || !v;
	if (first >= n)
		return true;
	if (size > n - first)
		size = n - first;
	for (uint64_t i = 0; i < size; i++) {
		if (p[first + i])
			return false;
	}
	return true;
}

const char *value_enumerator(struct type_graph *g, type_id t, uint64_t v, uint32_t *work)
{
	uint64_t size = type_size(g, t), mask = size && size < 8 ? (1ull << size * 8) - 1 : ~0ull;
	uint32_t n, i = 0;
	const struct type_enumerator *e = type_enumerators(g, t, &n);

	while (i < n && ((uint64_t)e[i].value & mask) != (v & mask))
		i++;
	*work += i / VALUE_CONSTANTS;
	return i < n ? e[i].name : NULL;
}

bool value_float(const void *p, uint64_t size, long double *ret)
{
	float f;
	double d;

	switch (size) {
	case sizeof(float):
		memcpy(&f, p, sizeof(f));
		*ret = (long double)f;
		return true;
	case sizeof(double):
		memcpy(&d, p, sizeof(d));
		*ret = (long double)d;
		return true;
	case sizeof(long double): memcpy(ret, p, sizeof(*ret)); return true;
	default: return false;
	}
}

/* --- printing --- */

static void line(struct printer *p, uint32_t depth)
{
	out_char(p->o, '\n');
	out_fill(p->o, ' ', p->style->indent + depth);
}

static void cut(struct printer *p, uint32_t depth)
{
	if (p->cut)
		return;
	p->cut = true;
	line(p, depth);
	out_str(p->o, "...");
}

static void print_char(struct printer *p, uint64_t v)
{
	char c = (char)v;

	out_char(p->o, '\'');
	if (c == '\'')
		out_str(p->o, "\\'");
	else if (c == '"')
		out_char(p->o, c);
	else
		out_escaped(p->o, &c, 1);
	out_char(p->o, '\'');
}

static bool is_char(struct type_graph *g, type_id t)
{
	const uint32_t both = TYPE_CHAR | TYPE_SIGNED;

	return (type_int_flags(g, t) & both) == both && type_size(g, t) == 1;
}

static void print_integer(struct printer *p, type_id t, uint64_t off, uint64_t bits)
{
	bool is_signed = type_is_signed(p->g, t);
	const char *name;
	uint64_t v, high;

	if (bits == 128 && value_bits(p->bytes, p->n, off, 64, false, &v) &&
	    value_bits(p->bytes, p->n, off + 64, 64, false, &high)) {
		out_str(p->o, "0x");
		if (high) {
			out_hex(p->o, high, false, 0);
			out_printf(p->o, "%016llx", (unsigned long long)v);
		} else {
			out_hex(p->o, v, false, 0);
		}
		return;
	}
	if (!value_bits(p->bytes, p->n, off, bits, is_signed, &v)) {
		out_char(p->o, '?');
		return;
	}
	if (type_kind(p->g, type_strip(p->g, t)) == TYPE_ENUM) {
		name = value_enumerator(p->g, t, v, &p->work);
		if (name) {
			out_str(p->o, name);
			return;
		}
	} else if (is_char(p->g, t) && bits == 8) {
		print_char(p, v);
		return;
	}
	if (is_signed)
		out_signed(p->o, (int64_t)v, 0);
	else
		out_unsigned(p->o, v, 0);
}

static void print_pointer(struct printer *p, type_id t, uint64_t off)
{
	type_id to = type_strip(p->g, type_ref(p->g, type_strip(p->g, t)));
	char name[512];
	uint64_t v;

	if (!value_bits(p->bytes, p->n, off, 64, false, &v)) {
		out_char(p->o, '?');
		return;
	}
	if (v && type_kind(p->g, to) == TYPE_FUNC && p->style->symbol &&
	    p->style->symbol(p->style->symbol_arg, v, name, sizeof(name))) {
		out_str(p->o, name);
		return;
	}
	out_str(p->o, "0x");
	out_hex(p->o, v, false, 0);
}

static void print_float(struct printer *p, type_id t, uint64_t off)
{
	uint64_t size = type_size(p->g, t);
	long double v;

	if (off / 8 > p->n || size > p->n - off / 8 || !value_float(p->bytes + off / 8, size, &v))
		out_char(p->o, '?');
	else
		out_printf(p->o, "%.*Lg", size == 4 ? FLT_DIG : size == 8 ? DBL_DIG : LDBL_DIG, v);
}

/* Text up to its NUL, or the end of the array or of the bytes. */
static void print_text(struct printer *p, uint64_t off, uint64_t size)
{
	const char *s = (const char *)p->bytes + off / 8;
	uint64_t left = p->n - off / 8;

	if (size > left)
		size = left;
	out_char(p->o, '"');
	out_escaped(p->o, s, strnlen(s, size));
	out_char(p->o, '"');
}

static void print_at(struct printer *p, type_id t, uint64_t off, uint64_t bits, uint32_t depth);

/* How much of the value must be there for it to be shown at all: the whole of a scalar, the first
 * byte of the rest. */
static bool value_is_there(struct printer *p, type_id t, uint64_t off, uint64_t bits)
{
	uint64_t need;

	switch (type_kind(p->g, type_strip(p->g, t))) {
	case TYPE_STRUCT:
	case TYPE_UNION:
	case TYPE_ARRAY:
	case TYPE_STRING: need = bits ? off + 8 : off; break;
	default: need = off + bits; break;
	}
	return need >= off && need / 8 + !!(need % 8) <= p->n;
}

/* Whether a member or element is left out. */
static bool left_out(struct printer *p, type_id t, uint64_t off, uint64_t bits)
{
	if (p->style->zeros || !value_is_zero(p->bytes, p->n, off, bits))
		return false;
	return type_kind(p->g, type_strip(p->g, t)) != TYPE_ENUM;
}

static void print_members(struct printer *p, type_id t, uint64_t off, uint32_t depth)
{
	uint32_t n;
	const struct type_member *m = type_members(p->g, t, &n);

	out_char(p->o, '{');
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = off + m[i].bit_offset;
		uint64_t bits = m[i].bit_size ? m[i].bit_size : type_size(p->g, m[i].type) * 8;

		if (++p->work > VALUE_WORK) {
			cut(p, depth + 1);
			break;
		}
		/* A flexible array has no size. Its bytes, if any, cannot be divided into
		 * elements. */
		if (!bits)
			continue;
		if (!value_is_there(p, m[i].type, at, bits)) {
			cut(p, depth + 1);
			continue;
		}
		if (left_out(p, m[i].type, at, bits))
			continue;
		line(p, depth + 1);
		p->work += (uint32_t)(strlen(m[i].name) / VALUE_NAME_BYTES);
		if (*m[i].name)
			out_printf(p->o, ".%s = ", m[i].name);
		print_at(p, m[i].type, at, bits, depth + 1);
		out_char(p->o, ',');
	}
	line(p, depth);
	out_char(p->o, '}');
}

static void print_elements(struct printer *p, type_id t, uint64_t off, uint32_t depth)
{
	type_id elem = type_ref(p->g, type_strip(p->g, t));
	uint64_t n = type_nelems(p->g, t), bits = type_size(p->g, elem) * 8;
	/* dtrace shows text up to its NUL, a character at a time */
	bool skipped = false, text = p->style->dtrace && type_is_char_array(p->g, t);

	out_str(p->o, " [");
	for (uint64_t i = 0; bits && i < n; i++) {
		uint64_t at = off + i * bits;

		if (++p->work > VALUE_WORK || !value_is_there(p, elem, at, bits)) {
			cut(p, depth + 1);
			break;
		}
		if (left_out(p, elem, at, bits)) {
			if (text)
				break;
			skipped = true;
			continue;
		}
		line(p, depth + 1);
		if (skipped && !p->style->dtrace)
			out_printf(p->o, "[%llu] = ", (unsigned long long)i);
		skipped = false;
		print_at(p, elem, at, bits, depth + 1);
		out_char(p->o, ',');
	}
	line(p, depth);
	out_char(p->o, ']');
}

/* Writes "(type)value" of the value at bit `off` of the bytes. The caller has checked
 * is_there(). */
static void print_at(struct printer *p, type_id t, uint64_t off, uint64_t bits, uint32_t depth)
{
	type_id s = type_strip(p->g, t);
	const char *name = type_name(p->g, p->a, t, NULL);

	p->work += (uint32_t)(strlen(name) / VALUE_NAME_BYTES);
	out_printf(p->o, "(%s)", name);
	if (depth > VALUE_DEPTH) {
		out_str(p->o, "...");
		return;
	}
	switch (type_kind(p->g, s)) {
	case TYPE_INT:
	case TYPE_ENUM: print_integer(p, s, off, bits); break;
	case TYPE_POINTER: print_pointer(p, s, off); break;
	case TYPE_FLOAT: print_float(p, s, off); break;
	case TYPE_STRING: print_text(p, off, bits / 8); break;
	case TYPE_ARRAY:
		if (type_is_char_array(p->g, s) && !p->style->dtrace)
			print_text(p, off, bits / 8);
		else
			print_elements(p, s, off, depth);
		break;
	case TYPE_STRUCT:
	case TYPE_UNION:
		out_char(p->o, ' ');
		print_members(p, s, off, depth);
		break;
	default: out_str(p->o, "?"); break;
	}
}

void value_print(struct out *o, struct type_graph *g, type_id t, const void *bytes, size_t n,
		 const struct value_style *style)
{
	static const struct value_style plain;
	struct arena a;
	struct printer p = {
		.o = o, .g = g, .a = &a, .style = style ? style : &plain, .bytes = bytes, .n = n
	};
	uint64_t bits = type_size(g, t) * 8;

	arena_init(&a);
	if (p.style->has_addr) {
		out_printf(o, "0x%llx = *", (unsigned long long)p.style->addr);
		line(&p, 0);
	}
	if (value_is_there(&p, t, 0, bits) && (bits || type_is_sou(g, t)))
		print_at(&p, t, 0, bits, 0);
	else
		out_printf(o, "(%s)...", type_name(g, &a, t, NULL));
	out_char(o, '\n');
	arena_fini(&a);
}
