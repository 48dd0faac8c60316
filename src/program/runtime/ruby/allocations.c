/* Finds the interpreter's code that makes an object.
 *
 * Ruby passes its note object__create for a part of the objects only. Each object, whatever makes
 * it, gets its flags and its class by two stores, and then the collector counts it. The compiler
 * has copied this to some ten functions. So a place is an instruction that adds 1 to a member of
 * the collector's variables, behind the two stores; the base of these has the object's address. */
#include <string.h>

#include <Zydis/Zydis.h>

#include "program/runtime/ruby/ruby.h"

enum {
	TEXT_MOST = 64 << 20,
	HITS_MAX = 4096,       /* of the pattern; each makes a function be decoded */
	DECODED_MAX = 1 << 24, /* instructions */
	OBJECT_CLASS = 8,
	WORD = 64, /* bits */
	GENERAL_REGISTERS = 16,
	NO_REGISTER = 255,
	ADD_REX_W = 0x48,
	ADD = 0x83,
	ADD_SIZE = 5,
	RSP = 4,
};

struct search {
	struct ruby ruby; /* for ruby_function() */
	uint8_t *text;
	uint64_t addr;
	uint32_t n;
	uint32_t decoded; /* instructions so far */
	struct ruby_allocations *ret;
};

/* The stores of a function that is decoded in one line. */
struct stores {
	uint8_t flags;  /* base of the last store to the beginning of an object */
	uint8_t object; /* base of both stores */
};

static uint8_t allocation_register(ZydisRegister reg)
{
	reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15
		       ? (uint8_t)(reg - ZYDIS_REGISTER_RAX)
		       : NO_REGISTER;
}

static bool stores(ZydisMnemonic mnemonic, uint32_t bits)
{
	return bits == WORD ? mnemonic == ZYDIS_MNEMONIC_MOV
			    : bits == 2 * WORD && (mnemonic == ZYDIS_MNEMONIC_MOVUPS ||
						   mnemonic == ZYDIS_MNEMONIC_MOVAPS ||
						   mnemonic == ZYDIS_MNEMONIC_MOVDQU ||
						   mnemonic == ZYDIS_MNEMONIC_MOVDQA);
}

static void note_store(struct stores *s, const ZydisDecodedOperand *op)
{
	uint8_t base = allocation_register(op->mem.base);
	int64_t at = op->mem.disp.has_displacement ? op->mem.disp.value : 0;

	if (op->mem.index != ZYDIS_REGISTER_NONE || op->mem.segment == ZYDIS_REGISTER_FS ||
	    base == NO_REGISTER || base == RSP)
		return;
	if (!at && op->size == 2 * WORD)
		s->object = base;
	if (!at)
		s->flags = base;
	else if (at == OBJECT_CLASS && base == s->flags)
		s->object = base;
}

static void forget_base(struct stores *s, uint8_t reg)
{
	if (reg == s->flags)
		s->flags = NO_REGISTER;
	if (reg == s->object)
		s->object = NO_REGISTER;
}

static void follow_stores(struct stores *s, const ZydisDecodedInstruction *z,
			  const ZydisDecodedOperand *ops)
{
	for (uint32_t i = 0; i < z->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			forget_base(s, allocation_register(ops[i].reg.value));
	if (ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY && stores(z->mnemonic, ops[0].size))
		note_store(s, &ops[0]);
	/* behind a jump the code comes from elsewhere; a call changes registers */
	if (z->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
	    z->meta.category != ZYDIS_CATEGORY_COND_BR)
		*s = (struct stores){ NO_REGISTER, NO_REGISTER };
}

/* Decodes the function around an address up to it. Returns the register that has the object's
 * address there. Returns NO_REGISTER when no register has it. */
static uint8_t object_at(struct search *x, uint64_t addr)
{
	struct stores s = { NO_REGISTER, NO_REGISTER };
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	ZydisDecoder decoder;
	struct ruby_range f;

	if (!ruby_function(&x->ruby, addr, &f))
		return NO_REGISTER;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t at = f.start; at < addr; at += z.length) {
		uint64_t off = at - x->addr;

		if (off >= x->n || ++x->decoded > DECODED_MAX ||
		    ZYAN_FAILED(
			    ZydisDecoderDecodeFull(&decoder, x->text + off, x->n - off, &z, ops)))
			return NO_REGISTER;
		follow_stores(&s, &z, ops);
		if (at + z.length > addr)
			return NO_REGISTER; /* addr is within an instruction */
	}
	return s.object;
}

/* Takes the bytes of "add qword [register + counter], 1" at p. Returns false when they are not. */
static bool is_count(const uint8_t *p, uint8_t *ret_base, uint8_t *ret_counter, uint32_t *ret_n)
{
	const bool sib = (p[2] & 7) == RSP;

	if ((p[0] & ~1) != ADD_REX_W || p[1] != ADD || (p[2] & ~7) != 0x40 ||
	    (sib && p[3] != 0x24) || p[3 + sib] & 7 || p[4 + sib] != 1)
		return false;
	*ret_base = (uint8_t)((p[2] & 7) | (p[0] & 1) << 3);
	*ret_counter = p[3 + sib];
	*ret_n = ADD_SIZE + sib;
	return *ret_base != RSP;
}

static bool find_counts(struct search *x)
{
	uint32_t hits = 0;

	for (uint32_t i = 0; i + ADD_SIZE + 1 <= x->n; i++) {
		uint8_t base, counter, object;
		uint32_t size;

		if (!is_count(x->text + i, &base, &counter, &size))
			continue;
		if (hits++ == HITS_MAX)
			return false;
		object = object_at(x, x->addr + i);
		if (object == NO_REGISTER || object == base)
			continue;
		if (x->ret->n == RUBY_ALLOCATIONS_MAX)
			return false;
		x->ret->v[x->ret->n++] = (struct ruby_allocation){ x->addr + i, object, counter };
	}
	return true;
}

/* Keeps the places that count in the member in which the function for extensions counts. */
static bool keep_collectors(struct search *x)
{
	const struct object_symbol *s = object_find_name(x->ruby.object, "rb_newobj_of");
	struct ruby_allocations *a = x->ret;
	uint32_t n = 0;
	bool known = false;

	for (uint32_t i = 0; s && i < a->n && !known; i++) {
		struct ruby_range f;

		if (ruby_function(&x->ruby, a->v[i].addr, &f) && f.start == s->addr) {
			a->counter = a->v[i].counter;
			known = true;
		}
	}
	for (uint32_t i = 0; i < a->n; i++)
		if (a->v[i].counter == a->counter)
			a->v[n++] = a->v[i];
	a->n = n;
	return known;
}

static const char *find_allocations(struct search *x)
{
	struct object *o = x->ruby.object;
	uint64_t off, n, version;
	int32_t v[2];

	if (!object_symbol_value(o, "ruby_api_version", &version) ||
	    object_read(o, version, v, sizeof(v)) != sizeof(v))
		return "descry does not find its version";
	x->ruby.layout.version = (uint16_t)(v[0] << 8 | v[1]);
	if (x->ruby.layout.version != RUBY_2_7 && x->ruby.layout.version != RUBY_3_1 &&
	    x->ruby.layout.version != RUBY_3_3)
		return "descry does not know where this version makes objects";
	if (!object_text_segment(o, 0, &off, &n, &x->addr) || n > TEXT_MOST)
		return "its code is not as in other builds";
	x->ruby.text = (struct ruby_range){ x->addr, n };
	x->text = xmalloc(n);
	x->n = (uint32_t)object_read(o, x->addr, x->text, (uint32_t)n);
	if (x->ruby.layout.version >= RUBY_3_3
		    ? !ruby_pool_allocations(&x->ruby, x->text, x->n, x->ret)
		    : !find_counts(x) || x->decoded > DECODED_MAX || !keep_collectors(x))
		return "the code that makes an object is not as in other builds";
	return NULL;
}

const char *ruby_allocations(struct object *o, struct ruby_allocations *ret)
{
	struct search *x = xcalloc(1, sizeof(*x));
	const char *reason;

	memset(ret, 0, sizeof(*ret));
	x->ruby.object = o;
	x->ret = ret;
	reason = find_allocations(x);
	free(x->ruby.table);
	free(x->text);
	free(x);
	return reason;
}
