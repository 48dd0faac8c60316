/* Finds where Ruby 3.3 raises an exception, in builds without notes.
 *
 * Before Ruby tells TracePoints of the exception, it looks whether any wants to know. At this place
 * one register has the execution context, which has the exception:
 *
 *	mov thread, [context + 48]
 *	mov ractor, [thread + 24]
 *	test byte [ractor + 24], 0x80
 */
#include <string.h>

#include <Zydis/Zydis.h>

#include "program/runtime/ruby/ruby.h"

enum {
	TEXT_MOST = 64 << 20,
	HITS_MAX = 256, /* of the bytes; each makes a function be decoded */
	GENERAL_REGISTERS = 16,
	NO_REGISTER = RUBY_NO_REGISTER,
	THREAD_RACTOR = 24,
	RACTOR_EVENTS = 24,
	EVENT_RAISE = 0x80,
	TEST = 0xf6, /* test byte [base + distance], bits: opcode, form, distance, bits */
	FORM = 0x40,
	FORM_MASK = 0xf8,
	TEST_SIZE = 4,
};

/* The context from which each register's thread, or ractor, was loaded. */
struct loads {
	uint8_t thread[GENERAL_REGISTERS], ractor[GENERAL_REGISTERS];
};

struct raise_search {
	struct ruby *r; /* its text is what is searched */
	const uint8_t *text;
	ZydisDecoder decoder;
	ZydisDecodedInstruction z;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static uint8_t number_of(ZydisRegister reg)
{
	reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15
		       ? (uint8_t)(reg - ZYDIS_REGISTER_RAX)
		       : NO_REGISTER;
}

/* Returns the base of an operand that is the member at an offset. */
static uint8_t base_of(const ZydisDecodedOperand *op, int64_t at)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index == ZYDIS_REGISTER_NONE &&
			       op->mem.segment != ZYDIS_REGISTER_FS &&
			       (op->mem.disp.has_displacement ? op->mem.disp.value : 0) == at
		       ? number_of(op->mem.base)
		       : NO_REGISTER;
}

static void forget_loads(struct loads *l, uint8_t reg)
{
	if (reg == NO_REGISTER)
		return;
	l->thread[reg] = l->ractor[reg] = NO_REGISTER;
	for (uint32_t i = 0; i < GENERAL_REGISTERS; i++) {
		if (l->thread[i] == reg)
			l->thread[i] = NO_REGISTER;
		if (l->ractor[i] == reg)
			l->ractor[i] = NO_REGISTER;
	}
}

static void follow_loads(const struct raise_search *x, struct loads *l)
{
	const ZydisDecodedOperand *ops = x->ops;
	uint8_t to = NO_REGISTER, thread = NO_REGISTER, ractor = NO_REGISTER;

	if (x->z.mnemonic == ZYDIS_MNEMONIC_MOV && ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    ops[0].size == 64) {
		const uint8_t from = base_of(&ops[1], THREAD_RACTOR);

		to = number_of(ops[0].reg.value);
		thread = base_of(&ops[1], x->r->layout.context_thread);
		ractor = from == NO_REGISTER ? NO_REGISTER : l->thread[from];
	}
	for (uint32_t i = 0; i < x->z.operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			forget_loads(l, number_of(ops[i].reg.value));
	if (to != NO_REGISTER && thread != to)
		l->thread[to] = thread;
	if (to != NO_REGISTER && ractor != to)
		l->ractor[to] = ractor;
	if (x->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
	    x->z.meta.category != ZYDIS_CATEGORY_COND_BR)
		memset(l, NO_REGISTER, sizeof(*l));
}

/* Returns the register that has the context where the instruction at an address looks at the
 * ractor's events. NO_REGISTER: it does not. */
static uint8_t context_at(struct raise_search *x, uint64_t addr)
{
	struct ruby_range f;
	struct loads l;

	memset(&l, NO_REGISTER, sizeof(l));
	if (!ruby_function(x->r, addr, &f))
		return NO_REGISTER;
	for (uint64_t at = f.start; at <= addr; at += x->z.length) {
		const uint64_t off = at - x->r->text.start;
		uint8_t base;

		if (off >= x->r->text.size ||
		    ZYAN_FAILED(ZydisDecoderDecodeFull(&x->decoder, x->text + off,
						       x->r->text.size - off, &x->z, x->ops)))
			return NO_REGISTER;
		if (at < addr) {
			follow_loads(x, &l);
			continue;
		}
		base = x->z.mnemonic == ZYDIS_MNEMONIC_TEST ? base_of(&x->ops[0], RACTOR_EVENTS)
							    : NO_REGISTER;
		return base == NO_REGISTER ? base : l.ractor[base];
	}
	return NO_REGISTER;
}

static bool find_raise(struct ruby *r, const uint8_t *text, struct ruby_place *ret)
{
	struct raise_search x = { .r = r, .text = text };
	uint32_t hits = 0, found = 0;

	ZydisDecoderInit(&x.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t i = 0; i + TEST_SIZE <= r->text.size && hits < HITS_MAX; i++) {
		const uint8_t *p = text + i;
		uint8_t context;

		if (p[0] != TEST || (p[1] & FORM_MASK) != FORM || p[2] != RACTOR_EVENTS ||
		    p[3] != EVENT_RAISE)
			continue;
		hits++;
		context = context_at(&x, r->text.start + i);
		if (context == NO_REGISTER)
			continue;
		*ret = (struct ruby_place){ r->text.start + i, context, NO_REGISTER, 0, false };
		found++;
	}
	return hits < HITS_MAX && found == 1;
}

const char *ruby_raise_event(struct object *o, struct ruby_place *ret, uint64_t *ret_unknown)
{
	struct ruby r = { .object = o };
	const struct ruby_layout *layout;
	uint64_t off, n, addr, version;
	uint8_t *text;
	int32_t number[2];
	bool found;

	if (!object_symbol_value(o, "ruby_api_version", &version) ||
	    object_read(o, version, number, sizeof(number)) != sizeof(number))
		return "descry does not find its version";
	layout = ruby_layout((uint32_t)number[0], (uint32_t)number[1]);
	if (!layout || layout->version != RUBY_3_3)
		return "descry does not know where this version raises exceptions";
	if (!object_text_segment(o, 0, &off, &n, &addr) || n > TEXT_MOST)
		return "its code is not as in other builds";
	r.layout = *layout;
	text = xmalloc(n);
	r.text = (struct ruby_range){ addr, object_read(o, addr, text, (uint32_t)n) };
	found = find_raise(&r, text, ret);
	free(text);
	free(r.table);
	if (!found)
		return "its code that raises exceptions is not as in other builds";
	return ruby_unknown(o, ret_unknown) ? NULL : "descry does not find its names";
}
