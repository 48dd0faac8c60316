/* Finds where Ruby 3.3 begins and ends to mark, in builds without notes of the collector.
 *
 * The collector tells extensions of its steps. At each it looks at one bit of a word of its
 * variables, which has the wanted events:
 *
 *	test byte [collector + word + 2], 0x40
 *	jne ...
 *
 * The word is where all events that the collector has are looked at, each as often as in other
 * builds. */
#include <Zydis/Zydis.h>

#include "program/runtime/ruby/ruby.h"

enum {
	TEXT_MOST = 64 << 20,
	TEST = 0xf6, /* test byte [base + distance], bits: opcode, form, (sib,) distance, bits */
	FORM = 0x40,
	FORM_MASK = 0xf8,
	BASE = 7,
	HAS_SIB = 4,
	NO_INDEX = 0x24,
	JNE_SHORT = 0x75,
	JNE = 0x850f,
	WORDS = 128, /* distances of a byte, not negative */
	EVENTS_FROM = 20,
	AROUND = 8, /* bytes that is_test() may read */
};

/* The events, by their bits from EVENTS_FROM on. */
enum event { NEW_OBJECT, FREE_OBJECT, START, END_MARK, END_SWEEP, ENTER, EXIT, EVENTS };

struct tests {
	uint32_t n[EVENTS];
	uint64_t addr[EVENTS]; /* of the last one: its opcode */
};

/* Takes the instruction's bytes. Returns false when they are no such look at a bit. */
static bool is_test(const uint8_t *p, uint32_t *ret_distance, uint32_t *ret_bit)
{
	const bool sib = (p[1] & BASE) == HAS_SIB;
	const uint8_t *end = p + 2 + sib;
	const uint8_t distance = end[0], bits = end[1];

	if (p[0] != TEST || (p[1] & FORM_MASK) != FORM || distance >= WORDS || !bits ||
	    bits & (bits - 1))
		return false;
	/* rsp is no base for it: r12 has the same form, behind a prefix */
	if (sib && (p[2] != NO_INDEX || p[-1] != 0x41))
		return false;
	if (end[2] != JNE_SHORT && (end[2] | end[3] << 8) != JNE)
		return false;
	*ret_distance = distance;
	*ret_bit = (uint32_t)__builtin_ctz(bits);
	return true;
}

/* p: an instruction's opcode. */
static void count(struct tests all[], const uint8_t *p, uint64_t addr)
{
	uint32_t distance, bit;

	if (!is_test(p, &distance, &bit))
		return;
	for (enum event e = 0; e < EVENTS; e++) {
		const uint32_t byte = (EVENTS_FROM + e) / 8;

		if ((EVENTS_FROM + e) % 8 != bit || distance < byte || (distance - byte) % 4)
			continue;
		all[distance - byte].n[e]++;
		all[distance - byte].addr[e] = addr;
	}
}

static bool has_all(const struct tests *t)
{
	for (enum event e = 0; e < EVENTS; e++)
		if (!t->n[e])
			return false;
	return t->n[START] == 1 && t->n[END_MARK] == 1 && t->n[END_SWEEP] == 1;
}

/* Returns the address of the instruction that has the opcode at an address: it may have a prefix.
 * 0: none has. */
static uint64_t instruction_of(struct ruby *r, const uint8_t *text, uint64_t opcode)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	ZydisDecoder decoder;
	struct ruby_range f;

	if (!ruby_function(r, opcode, &f))
		return 0;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t at = f.start; at <= opcode; at += z.length) {
		uint64_t off = at - r->text.start;

		if (off >= r->text.size ||
		    ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, text + off, r->text.size - off, &z,
						       ops)))
			return 0;
		if (at + z.length > opcode)
			return z.mnemonic == ZYDIS_MNEMONIC_TEST && ops[0].size == 8 &&
					       at + z.raw.modrm.offset - 1 == opcode
				       ? at
				       : 0;
	}
	return 0;
}

static const struct tests *find_word(const struct tests all[])
{
	const struct tests *found = NULL;

	for (uint32_t i = 0; i < WORDS; i++) {
		if (!has_all(&all[i]))
			continue;
		if (found)
			return NULL;
		found = &all[i];
	}
	return found;
}

/* r->text is at text. */
static bool find_events(struct ruby *r, const uint8_t *text, struct ruby_gc_events *ret)
{
	struct tests all[WORDS] = { 0 };
	const struct tests *found;

	for (uint32_t i = 1; i + AROUND <= r->text.size; i++)
		count(all, text + i, r->text.start + i);
	found = find_word(all);
	if (!found)
		return false;
	ret->begin = instruction_of(r, text, found->addr[START]);
	ret->end = instruction_of(r, text, found->addr[END_MARK]);
	return ret->begin && ret->end;
}

const char *ruby_gc_events(struct object *o, struct ruby_gc_events *ret)
{
	struct ruby r = { .object = o };
	uint64_t off, n, addr, version;
	uint8_t *text;
	int32_t number[2];
	bool found;

	if (!object_symbol_value(o, "ruby_api_version", &version) ||
	    object_read(o, version, number, sizeof(number)) != sizeof(number))
		return "descry does not find its version";
	if ((number[0] << 8 | number[1]) != RUBY_3_3)
		return "descry does not know where this version collects garbage";
	if (!object_text_segment(o, 0, &off, &n, &addr) || n > TEXT_MOST)
		return "its code is not as in other builds";
	text = xmalloc(n);
	r.text = (struct ruby_range){ addr, object_read(o, addr, text, (uint32_t)n) };
	found = find_events(&r, text, ret);
	free(text);
	free(r.table);
	return found ? NULL : "its collector is not as in other builds";
}
