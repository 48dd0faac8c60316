/* The functions of optimized code. Each call has a safepoint, which leads to a translation: a text
 * from which V8 makes the interpreter's frames again when it gives the code up. */
#include <string.h>

#include "program/runtime/v8/v8.h"

enum { SAFEPOINTS_MAX = 1 << 20, OPERANDS_MAX = 9, STEPS_MAX = 1 << 16 };

/* A translation in a table of many. It may repeat opcodes of an earlier one, its basis. */
struct translation {
	const struct v8_version *version;
	const uint8_t *bytes;
	uint32_t n, i;
	uint32_t basis;   /* place of the next opcode of the basis */
	uint32_t behind;  /* opcodes since then */
	uint32_t repeats; /* opcodes still to be taken from the basis */
	uint32_t operands[OPERANDS_MAX];
};

static int32_t to_signed(uint32_t n)
{
	return n & 1 ? -(int32_t)(n >> 1) : (int32_t)(n >> 1);
}

static uint32_t operand_count(const struct v8_version *k, uint32_t opcode)
{
	return opcode < strlen(k->operands) ? (uint32_t)(k->operands[opcode] - '0') : 0;
}

static uint32_t optimized_take(struct translation *t, uint32_t *i)
{
	uint32_t opcode = t->version->op.is_signed
				  ? (uint32_t)to_signed(v8_number(t->bytes, t->n, i))
				  : t->bytes[(*i)++];
	uint32_t n = operand_count(t->version, opcode);

	for (uint32_t k = 0; k < n; k++)
		t->operands[k] = v8_number(t->bytes, t->n, i);
	return opcode;
}

static uint32_t take_repeated(struct translation *t)
{
	t->repeats--;
	return t->basis < t->n ? optimized_take(t, &t->basis) : UINT32_MAX;
}

/* Reads an opcode and its operands. Returns false at the end of the table. */
static bool next(struct translation *t, uint32_t *ret)
{
	const struct v8_version *k = t->version;
	uint32_t count = (uint32_t)strlen(k->operands), start = t->i;

	if (t->repeats) {
		*ret = take_repeated(t);
		return *ret < count;
	}
	if (t->i >= t->n)
		return false;
	*ret = optimized_take(t, &t->i);
	if (*ret == k->op.begin[0] || *ret == k->op.begin[1]) {
		bool repeats = !k->op.is_signed && t->operands[0] && t->operands[0] <= start;

		t->basis = repeats ? start - t->operands[0] : t->n;
		t->behind = 1;
	} else if (*ret == k->op.match || *ret >= count) {
		t->repeats = *ret == k->op.match ? t->operands[0] : *ret - count;
		for (uint32_t i = 0; i < t->behind && t->basis < t->n; i++)
			optimized_take(t, &t->basis);
		t->behind = 0;
		if (!t->repeats)
			return false;
		*ret = take_repeated(t);
	} else {
		t->behind++;
	}
	return *ret < count;
}

struct inlined {
	uint32_t literal; /* index of its SharedFunctionInfo */
	int32_t closure;  /* ... of its JSFunction; -1: it is in a register or on the stack */
	int32_t place;
};

/* Reads the JavaScript frames of a translation, outermost first. Returns their count, or 0 when the
 * translation is damaged. */
static uint32_t read_frames(struct translation *t, struct inlined *ret)
{
	const struct v8_version *k = t->version;
	uint32_t opcode, n = 0, want = 0;
	bool begun = false; /* the frame's JSFunction follows */

	for (uint32_t i = 0; i < STEPS_MAX && next(t, &opcode); i++) {
		if (begun && opcode == k->op.literal)
			ret[n - 1].closure = to_signed(t->operands[0]);
		if (begun && n == want)
			return n;
		begun = false;
		if (opcode == k->op.begin[0] || opcode == k->op.begin[1]) {
			if (want)
				return 0;
			want = (uint32_t)to_signed(t->operands[k->op.begin_frames]);
			if (!want || want > V8_INLINED_MAX)
				return 0;
			continue;
		}
		if (!want)
			return 0;
		for (uint32_t f = 0; f < ARRAY_SIZE(k->op.frame); f++)
			if (opcode == k->op.frame[f]) {
				ret[n].place = f < k->op.interpreted ? to_signed(t->operands[0])
								     : V8_NOWHERE;
				ret[n].closure = -1;
				ret[n++].literal = (uint32_t)to_signed(t->operands[1]);
				begun = true;
				break;
			}
	}
	return begun && n == want ? n : 0;
}

/* Reads a number of so many bytes, the lowest first. */
static uint32_t bytes_number(const uint8_t *p, uint32_t width)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < width; i++)
		n |= (uint32_t)p[i] << 8 * i;
	return n;
}

/* A table of safepoints: its length, the widths of its columns, then entries. An entry has the
 * return address, the index of the deoptimization plus one, the address of the code for it plus
 * one, and columns that are not used here. */
struct safepoints {
	uint64_t entries;
	uint32_t n, width, address, index; /* bytes of an entry, and of these columns */
};

static bool open_safepoints(struct v8 *v, const struct v8_code *c, struct safepoints *ret)
{
	uint64_t table = c->end + v->version->safepoints;
	uint32_t form = v8_u32(v, table + 4), registers = form >> 1 & 7;
	bool maglev = c->kind == (uint32_t)v->n.code_baseline + 1;

	*ret = (struct safepoints){
		.entries = table + (maglev ? v->version->maglev : 8),
		.n = v8_u32(v, table),
		.address = form >> 4 & 7,
		.index = form >> 7 & 7,
	};
	ret->width = ret->address * 2 + ret->index + registers + maglev;
	if (!(form & 1) || ret->n > SAFEPOINTS_MAX || !ret->address || ret->address > 4 ||
	    !ret->index || ret->index > 4 || registers > 4 || v->work < ret->n * ret->width)
		return false;
	v->work -= ret->n * ret->width;
	return true;
}

/* Finds the index of the deoptimization of a return address. */
static bool find_safepoint(struct v8 *v, const struct v8_code *c, uint64_t pc, uint32_t *ret)
{
	uint32_t offset = (uint32_t)(pc - c->start), index;
	struct safepoints s;
	uint8_t entry[32];

	if (!open_safepoints(v, c, &s))
		return false;
	for (uint32_t i = 0; i < s.n; i++) {
		uint64_t at = s.entries + (uint64_t)i * s.width;

		if (space_read_some(v->runtime.space, at, entry, s.width) != s.width)
			return false;
		index = bytes_number(entry + s.address, s.index);
		if (bytes_number(entry, s.address) == offset ||
		    bytes_number(entry + s.address + s.index, s.address) == offset + 1) {
			*ret = index - 1;
			return index;
		}
	}
	return false;
}

bool v8_optimized_has(struct v8 *v, const struct v8_code *c, uint64_t pc)
{
	uint32_t deopt;

	return find_safepoint(v, c, pc, &deopt);
}

/* Returns an element of an array, without the mark of a weak pointer. */
static uint64_t element(const struct v8 *v, uint64_t array, uint32_t index)
{
	int32_t n;

	if (!v8_small(v8_get(v, array, (uint32_t)v->n.array_length), &n) || n < 0 ||
	    index >= (uint32_t)n)
		return 0;
	return v8_get(v, array, (uint32_t)v->n.array_data + index * 8) & ~2ull;
}

/* Returns the function of a frame. An object of it that the code was made for has its name. */
static const struct v8_function *function_at(struct v8 *v, uint64_t literals,
					     const struct inlined *i)
{
	const struct v8_function *plain = v8_function(v, element(v, literals, i->literal)), *f;

	if (!plain || i->closure < 0)
		return plain;
	f = v8_function_of(v, element(v, literals, (uint32_t)i->closure));
	return f && v8_plain(f) == plain ? f : plain;
}

uint32_t v8_optimized(struct v8 *v, const struct v8_code *c, const struct v8_function *f,
		      uint64_t pc, struct v8_at ret[V8_INLINED_MAX])
{
	const struct v8_version *k = v->version;
	uint64_t data = v8_get(v, c->object, k->code_data), literals;
	struct inlined inlined[V8_INLINED_MAX];
	struct translation t = { .version = k };
	uint32_t deopt, n;
	int32_t start;

	if (!find_safepoint(v, c, pc, &deopt) || v8_type(v, &data) == V8_NO_TYPE ||
	    !v8_small(element(v, data, k->deopt_first + 3 * deopt + 1), &start))
		return 0;
	t.bytes = v8_bytes(v, element(v, data, 0), (uint32_t)v->n.array_data, &t.n);
	if (!t.bytes || start < 0 || (uint32_t)start >= t.n)
		return 0;
	t.i = (uint32_t)start;
	n = read_frames(&t, inlined);
	literals = element(v, data, k->deopt_literals);
	for (uint32_t i = 0; i < n; i++) { /* outermost first */
		struct v8_at *at = &ret[n - 1 - i];

		at->function = function_at(v, literals, &inlined[i]);
		at->place = inlined[i].place;
		if (!at->function)
			return 0;
	}
	if (!n || v8_plain(ret[n - 1].function) != v8_plain(f))
		return 0;
	ret[n - 1].function = f;
	return n;
}
