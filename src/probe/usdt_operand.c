/* Operands of stapsdt notes, x86-64 AT&T syntax:
 *
 *	operand  = [ size "@" ] ( "$" value | register | memory )
 *	size     = [ "-" ] ( "1" | "2" | "4" | "8" ) [ "f" ]        negative: signed; f: floating point
 *	memory   = [ disp ] [ "(" [ base ] [ "," index [ "," scale ] ] ")" ]
 *	disp     = { [ "+" | "-" ] ( number | symbol ) }
 */
#include "probe/usdt.h"

#include <ctype.h>
#include <string.h>

static const struct register_name {
	char name[6];
	int8_t reg, size;
	uint8_t shift;
} registers[] = {
#define WIDE(letters, reg) \
	{ "r" letters "x", reg, 8, 0 }, { "e" letters "x", reg, 4, 0 }, \
		{ letters "x", reg, 2, 0 }, { letters "l", reg, 1, 0 }, \
	{ \
		letters "h", reg, 1, 8 \
	}
#define POINTER(letters, reg) \
	{ "r" letters, reg, 8, 0 }, { "e" letters, reg, 4, 0 }, { letters, reg, 2, 0 }, \
	{ \
		letters "l", reg, 1, 0 \
	}
#define NUMBERED(name, reg) \
	{ name, reg, 8, 0 }, { name "d", reg, 4, 0 }, { name "w", reg, 2, 0 }, \
	{ \
		name "b", reg, 1, 0 \
	}
	WIDE("a", UREG_RAX),       WIDE("b", UREG_RBX),       WIDE("c", UREG_RCX),
	WIDE("d", UREG_RDX),       POINTER("si", UREG_RSI),   POINTER("di", UREG_RDI),
	POINTER("bp", UREG_RBP),   POINTER("sp", UREG_RSP),   NUMBERED("r8", UREG_R8),
	NUMBERED("r9", UREG_R9),   NUMBERED("r10", UREG_R10), NUMBERED("r11", UREG_R11),
	NUMBERED("r12", UREG_R12), NUMBERED("r13", UREG_R13), NUMBERED("r14", UREG_R14),
	NUMBERED("r15", UREG_R15), { "rip", UREG_RIP, 8, 0 }, { "eip", UREG_RIP, 4, 0 },
};

struct cursor {
	const char *p, *end;
	struct object *object;
	uint64_t addr;
	const char *reason;
};

static bool eat(struct cursor *c, char what)
{
	if (c->p == c->end || *c->p != what)
		return false;
	c->p++;
	return true;
}

static bool eat_comma(struct cursor *c)
{
	if (!eat(c, ','))
		return false;
	while (eat(c, ' '))
		;
	return true;
}

static bool give_up(struct cursor *c, const char *reason)
{
	if (!c->reason)
		c->reason = reason;
	return false;
}

static bool parse_register(struct cursor *c, const struct register_name **ret)
{
	size_t n = 0;

	if (!eat(c, '%'))
		return give_up(c, "it is not a register");
	while (c->p + n < c->end && isalnum((unsigned char)c->p[n]))
		n++;
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		if (strlen(registers[i].name) == n && !memcmp(registers[i].name, c->p, n)) {
			*ret = &registers[i];
			c->p += n;
			return true;
		}
	}
	if (n > 2 && (!memcmp(c->p + 1, "mm", 2) || !memcmp(c->p, "st", 2)))
		return give_up(
			c,
			"it is in a floating-point or vector register, which a kernel probe cannot read");
	if (n == 2 && c->p[1] == 's')
		return give_up(c, "it is relative to a segment");
	return give_up(c, "its register is unknown");
}

static bool parse_number(struct cursor *c, uint64_t *ret)
{
	char buf[32];
	size_t n = 0;
	char *end;

	while (c->p + n < c->end && n < sizeof(buf) - 1 && isalnum((unsigned char)c->p[n]))
		n++;
	memcpy(buf, c->p, n);
	buf[n] = 0;
	if (!isdigit((unsigned char)buf[0]))
		return false;
	*ret = strtoull(buf, &end, 0);
	if (*end)
		return false;
	c->p += n;
	return true;
}

static bool is_symbol_char(char ch)
{
	return isalnum((unsigned char)ch) || ch == '_' || ch == '.' || ch == '$' || ch == '@';
}

/* Parses a sum of numbers and symbols. *ret_symbols is the number of symbols; with symbols, *ret is
 * an address. */
static bool parse_sum(struct cursor *c, uint64_t *ret, uint32_t *ret_symbols)
{
	uint64_t sum = 0;
	uint32_t terms = 0, symbols = 0;

	while (c->p < c->end && *c->p != '(') {
		bool minus = false;
		uint64_t v;

		if (eat(c, '-'))
			minus = true;
		else if (!eat(c, '+') && terms)
			return give_up(c, "it cannot be parsed");
		if (!parse_number(c, &v)) {
			char name[256];
			size_t n = 0;

			while (c->p + n < c->end && is_symbol_char(c->p[n]))
				n++;
			if (!n || n >= sizeof(name))
				return give_up(c, "it cannot be parsed");
			memcpy(name, c->p, n);
			name[n] = 0;
			c->p += n;
			if (!c->object || !object_symbol_value(c->object, name, &v))
				return give_up(c, "it names a symbol that the file does not have");
			symbols++;
		}
		sum += minus ? -v : v;
		terms++;
	}
	*ret = sum;
	*ret_symbols = symbols;
	return terms || (c->p < c->end && *c->p == '(') || give_up(c, "it is empty");
}

static bool parse_memory(struct cursor *c, struct usdt_operand *op)
{
	const struct register_name *base = NULL, *index = NULL;
	uint64_t disp, scale = 1;
	uint32_t symbols;

	if (!parse_sum(c, &disp, &symbols))
		return false;
	if (eat(c, '(')) {
		if (c->p < c->end && *c->p == '%' && !parse_register(c, &base))
			return false;
		if (eat_comma(c)) {
			if (c->p < c->end && *c->p == '%' && !parse_register(c, &index))
				return false;
			if (eat_comma(c) && !parse_number(c, &scale))
				return give_up(c, "it cannot be parsed");
		}
		if (!eat(c, ')'))
			return give_up(c, "it cannot be parsed");
	}
	if ((base && base->size < 8) || (index && (index->size < 8 || index->reg == UREG_RIP)) ||
	    (scale != 1 && scale != 2 && scale != 4 && scale != 8))
		return give_up(c, "its address form is unknown");
	if (base && base->reg == UREG_RIP) {
		if (!symbols)
			return give_up(
				c,
				"it is relative to an instruction pointer that the note does not have");
		disp -= c->addr; /* the instruction pointer is at the probe when it fires */
	} else if (symbols && (!base || base->reg != UREG_RIP)) {
		if (!c->object || !object_is_fixed(c->object))
			return give_up(
				c,
				"it has an absolute address in code that can be loaded anywhere");
	}
	op->mode = USDT_MEM;
	op->disp = (int64_t)disp;
	op->base = base ? base->reg : -1;
	op->index = index ? index->reg : -1;
	op->scale = (uint8_t)scale;
	return true;
}

/* Truncates v to the given size. */
static int64_t fit(int64_t v, int size)
{
	switch (size) {
	case 1: return (uint8_t)v;
	case -1: return (int8_t)v;
	case 2: return (uint16_t)v;
	case -2: return (int16_t)v;
	case 4: return (uint32_t)v;
	case -4: return (int32_t)v;
	default: return v;
	}
}

static bool parse_size(struct cursor *c, int *ret)
{
	const char *at = memchr(c->p, '@', (size_t)(c->end - c->p));
	bool minus, is_float;
	uint64_t v = 0;
	const char *p = c->p;

	*ret = 0;
	if (!at || at == p || !(isdigit((unsigned char)*p) || *p == '-'))
		return true;
	minus = *p == '-';
	for (p += minus; p < at && isdigit((unsigned char)*p) && v < 1000; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	is_float = p < at && *p == 'f';
	if (p + is_float != at)
		return true; /* the '@' is part of a symbol */
	if (is_float)
		return give_up(c, "it is a floating-point value");
	if (v != 1 && v != 2 && v != 4 && v != 8)
		return give_up(c, "its size is none of 1, 2, 4, 8");
	*ret = minus ? -(int)v : (int)v;
	c->p = at + 1;
	return true;
}

bool usdt_parse_operand(const char *text, size_t n, struct object *o, uint64_t addr,
			struct usdt_operand *ret, const char **ret_reason)
{
	struct cursor c = { .p = text, .end = text + n, .object = o, .addr = addr };
	struct usdt_operand op = { .base = -1, .index = -1, .scale = 1 };
	const struct register_name *reg = NULL;
	int size = 0;
	bool ok = parse_size(&c, &size);

	op.size = (int8_t)(size ? size : -8);
	if (!ok) {
		;
	} else if (eat(&c, '$')) {
		uint32_t symbols;
		uint64_t v;

		ok = parse_sum(&c, &v, &symbols);
		if (ok && symbols && (!o || !object_is_fixed(o)))
			ok = give_up(&c, "it is an address in code that can be loaded anywhere");
		op.mode = USDT_CONST;
		op.disp = ok ? fit((int64_t)v, op.size) : 0;
	} else if (c.p < c.end && *c.p == '%') {
		ok = parse_register(&c, &reg);
		if (ok && c.p < c.end && *c.p == ':')
			ok = give_up(&c, "it is relative to a segment");
		op.mode = USDT_REG;
		op.base = reg ? reg->reg : -1;
		op.reg_shift = reg ? reg->shift : 0;
		if (!size && reg)
			op.size = (int8_t)-reg->size;
	} else {
		ok = c.p < c.end ? parse_memory(&c, &op) : give_up(&c, "it is empty");
	}
	if (ok && c.p != c.end)
		ok = give_up(&c, "it cannot be parsed");
	if (!ok) {
		*ret_reason = c.reason;
		return false;
	}
	*ret = op;
	return true;
}

bool usdt_next_operand(const char **text, const char **ret_start, size_t *ret_n)
{
	const char *p = *text + strspn(*text, " \t"), *start = p;
	int depth = 0;

	for (; *p && (depth || (*p != ' ' && *p != '\t')); p++) {
		if (*p == '(')
			depth++;
		else if (*p == ')' && depth)
			depth--;
	}
	*text = p;
	*ret_start = start;
	*ret_n = (size_t)(p - start);
	return p > start;
}

int8_t usdt_x86_reg(uint8_t number)
{
	static const uint8_t regs[] = { UREG_RAX, UREG_RCX, UREG_RDX, UREG_RBX, UREG_RSP, UREG_RBP,
					UREG_RSI, UREG_RDI, UREG_R8,  UREG_R9,  UREG_R10, UREG_R11,
					UREG_R12, UREG_R13, UREG_R14, UREG_R15 };

	return (int8_t)regs[number % ARRAY_SIZE(regs)];
}
