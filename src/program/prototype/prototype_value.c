/* Values as text, by the types of prototypes. */
#include "program/prototype/prototype.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

enum {
	MAX_TEXT = 1 << 16, /* bytes of one value's text */
	MAX_DEPTH = 32,     /* of structures in structures, through names of types too */
	DEFAULT_ELEMENTS = 16,
};

struct printer {
	struct out *o;
	size_t limit; /* of o->n */
	const struct prototype_values *values;
	const struct prototype_memory *memory; /* of the pointer at the top; then NULL */
	uint32_t depth;
	uint64_t within[MAX_DEPTH]; /* addresses of the structures around */
	uint32_t nwithin;
};

/* The elements of the structure around an array. */
struct around {
	const struct prototype_type *type;
	const uint8_t *bytes;
	uint32_t n;
};

static void print_bytes(struct printer *p, const struct prototype_type *t, const uint8_t *bytes,
			uint32_t n, const struct around *around);

bool prototype_is_text(const struct prototype_type *t)
{
	if (t->kind == PROTOTYPE_ARRAY)
		return t->lens == LENS_STRING && t->target->size == 1;
	if (t->kind != PROTOTYPE_POINTER || t->target->kind != PROTOTYPE_ARRAY ||
	    t->target->target->size != 1)
		return false;
	return t->lens == LENS_STRING || t->lens == LENS_FORMAT || t->target->lens == LENS_STRING;
}

bool prototype_is_wide(const struct prototype_type *t)
{
	const struct prototype_type *to = t->kind == PROTOTYPE_POINTER ? t->target : t;

	return (t->lens == LENS_STRING || t->lens == LENS_FORMAT) && to->kind == PROTOTYPE_ARRAY &&
	       to->target->kind == PROTOTYPE_INT &&
	       (to->target->size == 4 || to->target->size == 2);
}

static uint64_t integer_at(const uint8_t *bytes, uint32_t size)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < size && i < 8; i++)
		v |= (uint64_t)bytes[i] << 8 * i;
	return v;
}

static int64_t extended(uint64_t v, const struct prototype_type *t)
{
	uint32_t shift = t->size && t->size < 8 ? 64 - 8 * t->size : 0;

	return t->is_signed ? (int64_t)(v << shift) >> shift : (int64_t)(v << shift >> shift);
}

/* Returns an array's bound as a number of elements; UINT64_MAX: only a zero ends it. */
static uint64_t bound(const struct prototype_length *l, const struct prototype_values *values,
		      const struct around *around)
{
	uint64_t at = 0;

	switch (l->count) {
	case COUNT_NUMBER: return l->value;
	case COUNT_ARG: return values && l->value <= values->nargs ? values->args[l->value - 1] : 0;
	case COUNT_RESULT:
		return values && values->returned && (int64_t)values->result > 0 ? values->result
										 : 0;
	case COUNT_ZERO: return UINT64_MAX;
	case COUNT_ELEMENT: break;
	}
	for (uint32_t i = 0; around && i < around->type->nfields; i++) {
		const struct prototype_type *f = around->type->fields[i];

		at = round_up(at, f->align);
		if (i + 1 == l->value && f->kind == PROTOTYPE_INT && at + f->size <= around->n)
			return (uint64_t)extended(integer_at(around->bytes + at, f->size), f);
		at += f->size;
	}
	return 0;
}

uint64_t prototype_pointed(const struct prototype_type *t, const struct prototype_values *values)
{
	const struct prototype_type *to = t->target;
	uint64_t n;

	if (t->kind != PROTOTYPE_POINTER)
		return 0;
	if (to->kind != PROTOTYPE_ARRAY)
		return to->size;
	n = bound(&to->length, values, NULL);
	return n > UINT32_MAX || !to->target->size ? 0 : n * to->target->size;
}

static bool bit(const uint8_t *bytes, uint32_t i)
{
	return bytes[i / 8] >> i % 8 & 1;
}

/* Prints the numbers of the bits that are set, or behind '~' of those that are not, if they are
 * fewer. */
static void print_bits(struct printer *p, const uint8_t *bytes, uint32_t n)
{
	const uint32_t nbits = 8 * n;
	const char *between = "";
	uint32_t set = 0;
	bool want;

	for (uint32_t i = 0; i < nbits; i++)
		set += bit(bytes, i);
	want = set <= nbits / 2;
	out_str(p->o, want ? "<" : "~<");
	for (uint32_t i = 0; i < nbits && p->o->n <= p->limit; i++) {
		uint32_t last = i;

		if (bit(bytes, i) != want)
			continue;
		while (last + 1 < nbits && bit(bytes, last + 1) == want)
			last++;
		out_printf(p->o, last > i ? "%s%u-%u" : "%s%u", between, i, last);
		between = ",";
		i = last;
	}
	out_char(p->o, '>');
}

/* Prints a character of a wide text: as UTF-8, if it is one that can be seen. */
static void print_wide_char(struct out *o, uint32_t c)
{
	char bytes[4];
	uint32_t n = utf8_encode(c, bytes);

	if (c < 0x80)
		out_escaped(o, bytes, 1);
	else if (!n || utf8_is_unseen(c))
		out_printf(o, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
	else
		out_mem(o, bytes, n);
}

/* "O_WRONLY|O_CREAT|0x800000": bits without a name stand behind. */
static void print_flags(struct out *o, const struct prototype_type *t, uint64_t v)
{
	const char *between = "";
	uint64_t left = v;

	for (uint32_t i = 0; i < t->nnames; i++) {
		uint64_t mask = (uint64_t)t->names[i].mask;

		if ((v & mask) != (uint64_t)t->names[i].value || (!mask && v))
			continue;
		out_printf(o, "%s%s", between, t->names[i].name);
		between = "|";
		left &= ~mask;
	}
	if (left)
		out_printf(o, "%s0x%llx", between, (unsigned long long)left);
	else if (!*between)
		out_char(o, '0');
}

static void print_integer(struct printer *p, const struct prototype_type *t, uint64_t raw)
{
	int64_t v = extended(raw, t);
	uint64_t u = t->size < 8 ? raw & ((UINT64_C(1) << 8 * t->size) - 1) : raw;
	char c = (char)u;

	switch (t->lens) {
	case LENS_HEX:
		if (u)
			out_str(p->o, "0x");
		out_hex(p->o, u, false, 0);
		return;
	case LENS_OCT: out_printf(p->o, "%#llo", (unsigned long long)u); return;
	case LENS_BOOL: out_str(p->o, u ? "true" : "false"); return;
	case LENS_STRING:
		out_char(p->o, '\'');
		print_wide_char(p->o, (uint32_t)u);
		out_char(p->o, '\'');
		return;
	case LENS_CHAR:
		out_char(p->o, '\'');
		out_escaped(p->o, &c, 1);
		out_char(p->o, '\'');
		return;
	case LENS_FLAGS: print_flags(p->o, t, u); return;
	case LENS_ENUM:
		for (uint32_t i = 0; i < t->nnames; i++)
			if (extended((uint64_t)t->names[i].value, t) == v) {
				out_str(p->o, t->names[i].name);
				return;
			}
		break;
	default: break;
	}
	if (t->is_signed)
		out_signed(p->o, v, 0);
	else
		out_unsigned(p->o, u, 0);
}

static void print_float(struct printer *p, const struct prototype_type *t, const uint8_t *bytes)
{
	static const double SHORT_FROM = 1e-4, SHORT_TO = 1e14;
	float f;
	double d;

	if (t->size == 4) {
		memcpy(&f, bytes, 4);
		d = (double)f;
	} else if (t->size == 8) {
		memcpy(&d, bytes, 8);
	} else if (t->size == 16) {
		long double x;

		memcpy(&x, bytes, 16);
		d = (double)x;
	} else { /* by debugging information: other sizes, whose forms are not known here */
		out_str(p->o, "...");
		return;
	}
	if (t->lens == LENS_HEX) {
		out_printf(p->o, "%a", d);
		return;
	}
	/* As ltrace has it, but for what it would print as zero, or with more than 20 digits. */
	out_printf(p->o, d == 0 || (fabs(d) >= SHORT_FROM && fabs(d) < SHORT_TO) ? "%f" : "%g", d);
}

/* Prints n bytes. `cut`: there are more, which were not read. */
static void print_text(struct printer *p, const struct prototype_length *l, const uint8_t *bytes,
		       uint32_t n, bool cut, const struct around *around)
{
	uint64_t max = bound(l, p->values, around);
	const uint8_t *zero;

	if (max < n || (max == n && cut)) {
		n = max < n ? (uint32_t)max : n;
		cut = false;
	}
	zero = l->zero && n ? memchr(bytes, 0, n) : NULL;
	if (zero) {
		n = (uint32_t)(zero - bytes);
		cut = false;
	}
	out_char(p->o, '"');
	out_escaped(p->o, (const char *)bytes, n);
	out_str(p->o, cut ? "\"..." : "\"");
}

/* Prints n bytes of wide text. Memory is read up to a page's end at least, so there may be more
 * of it when no zero ends it. */
static void print_wide(struct printer *p, const struct prototype_type *array, const uint8_t *bytes,
		       uint32_t n, bool cut, const struct around *around)
{
	const uint32_t size = array->target->size;
	const uint32_t most = p->values && p->values->max_text ? p->values->max_text : UINT32_MAX;
	uint64_t max = bound(&array->length, p->values, around);
	uint32_t i = 0;
	bool ended = false;

	out_char(p->o, '"');
	for (; i < max && (i + 1) * size <= n && !ended; i++) {
		uint64_t c = integer_at(bytes + i * size, size);

		ended = !c && array->length.zero;
		if (i == most)
			break;
		if (!ended)
			print_wide_char(p->o, (uint32_t)c);
	}
	cut = !ended && i < max && (i == most || cut || array->length.count == COUNT_ZERO);
	out_str(p->o, cut ? "\"..." : "\"");
}

static bool all_zero(const uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static void print_array(struct printer *p, const struct prototype_type *t, const uint8_t *bytes,
			uint32_t n, const struct around *around)
{
	uint32_t max = p->values && p->values->max_elements ? p->values->max_elements
							    : DEFAULT_ELEMENTS;
	uint64_t count = bound(&t->length, p->values, around);
	uint32_t size = t->target->size;

	out_str(p->o, "[ ");
	for (uint64_t i = 0; i < count; i++) {
		if (!size || (i + 1) * size > n || i == max || p->o->n > p->limit) {
			out_str(p->o, i ? "..." : "");
			break;
		}
		if (t->length.zero && all_zero(bytes + i * size, size))
			break;
		if (i)
			out_str(p->o, ", ");
		print_bytes(p, t->target, bytes + i * size, size, NULL);
	}
	out_str(p->o, " ]");
}

static void print_struct(struct printer *p, const struct prototype_type *t, const uint8_t *bytes,
			 uint32_t n)
{
	const struct around around = { t, bytes, n };
	const char *between = "";
	uint64_t at = 0;

	out_str(p->o, "{ ");
	for (uint32_t i = 0; i < t->nfields; i++) {
		const struct prototype_type *f = t->fields[i];

		at = round_up(at, f->align);
		if (f->lens == LENS_HIDE) {
			at += f->size;
			continue;
		}
		out_str(p->o, between);
		between = ", ";
		if (at + f->size > n || p->o->n > p->limit) {
			out_str(p->o, "...");
			break;
		}
		if (t->field_names && t->field_names[i])
			out_printf(p->o, "%s=", t->field_names[i]);
		print_bytes(p, f, bytes + at, f->size, &around);
		at += f->size;
	}
	out_str(p->o, " }");
}

/* Returns the memory behind a pointer that lies in memory; NULL: it was not read. */
static const struct prototype_memory *inner_of(const struct printer *p,
					       const struct prototype_type *t, uint64_t v)
{
	for (uint32_t i = 0; p->values && i < p->values->ninner; i++)
		if (p->values->inner[i].type == t && p->values->inner[i].address == v)
			return &p->values->inner[i];
	return NULL;
}

/* Prints "recurse" for a pointer to the structure that it lies in, with a '^' for each structure
 * further out. Returns false for any other pointer. */
static bool print_recursion(struct printer *p, uint64_t v)
{
	for (uint32_t i = p->nwithin; i-- > 0;) {
		if (p->within[i] != v)
			continue;
		out_str(p->o, "recurse");
		out_fill(p->o, '^', p->nwithin - 1 - i);
		return true;
	}
	return false;
}

static void print_pointed(struct printer *p, const struct prototype_type *t, uint64_t v,
			  const struct prototype_memory *m, const struct around *around)
{
	const struct prototype_type *to = t->target;

	if (prototype_is_text(t)) {
		print_text(p, &to->length, m->bytes, m->n, m->cut, around);
	} else if (prototype_is_wide(t)) {
		print_wide(p, to, m->bytes, m->n, m->cut, around);
	} else if (t->lens == LENS_BITVEC) {
		print_bits(p, m->bytes, m->n);
	} else if (p->nwithin < MAX_DEPTH) {
		p->within[p->nwithin++] = v;
		print_bytes(p, to, m->bytes, m->n, around);
		p->nwithin--;
	}
}

static void print_pointer(struct printer *p, const struct prototype_type *t, uint64_t v,
			  const struct around *around)
{
	const struct prototype_memory *m = p->memory ?: inner_of(p, t, v);
	const struct prototype_type *to = t->target;

	p->memory = NULL;
	if (!v) {
		out_str(p->o, "nil");
	} else if (to->kind == PROTOTYPE_STRUCT && print_recursion(p, v)) {
		return;
	} else if (!m || !m->bytes || to->kind == PROTOTYPE_VOID || t->lens == LENS_HEX) {
		if (p->values && p->nwithin && p->nwithin == p->values->max_elements) {
			out_str(p->o, "...");
			return;
		}
		out_str(p->o, "0x");
		out_hex(p->o, v, false, 0);
	} else {
		print_pointed(p, t, v, m, around);
	}
}

static void print_bytes(struct printer *p, const struct prototype_type *t, const uint8_t *bytes,
			uint32_t n, const struct around *around)
{
	if (t->lens == LENS_HIDE || t->lens == LENS_DOTS || p->depth == MAX_DEPTH ||
	    p->o->n > p->limit) {
		out_str(p->o, "...");
		return;
	}
	if (t->lens == LENS_BITVEC && t->kind != PROTOTYPE_POINTER) {
		print_bits(p, bytes, t->size && t->size < n ? t->size : n);
		return;
	}
	p->depth++;
	switch (t->kind) {
	case PROTOTYPE_VOID: out_str(p->o, "<void>"); break;
	case PROTOTYPE_INT:
		if (t->size <= n)
			print_integer(p, t, integer_at(bytes, t->size));
		break;
	case PROTOTYPE_FLOAT:
		if (t->size <= n)
			print_float(p, t, bytes);
		break;
	case PROTOTYPE_POINTER:
		if (n >= 8)
			print_pointer(p, t, integer_at(bytes, 8), around);
		break;
	case PROTOTYPE_STRUCT: print_struct(p, t, bytes, n); break;
	case PROTOTYPE_ARRAY:
		if (prototype_is_text(t))
			print_text(p, &t->length, bytes, n, false, around);
		else if (prototype_is_wide(t))
			print_wide(p, t, bytes, n, false, around);
		else
			print_array(p, t, bytes, n, around);
		break;
	}
	p->depth--;
}

void prototype_value(struct out *o, const struct prototype_type *t, uint64_t value,
		     const struct prototype_memory *memory, const struct prototype_values *values)
{
	struct printer p = { .o = o, .limit = o->n + MAX_TEXT, .values = values, .memory = memory };
	uint8_t bytes[8];

	memcpy(bytes, &value, sizeof(bytes));
	print_bytes(&p, t, bytes, sizeof(bytes), NULL);
}

void prototype_bytes(struct out *o, const struct prototype_type *t, const void *bytes, uint32_t n,
		     const struct prototype_values *values)
{
	struct printer p = { .o = o, .limit = o->n + MAX_TEXT, .values = values };

	print_bytes(&p, t, bytes, n, NULL);
}
