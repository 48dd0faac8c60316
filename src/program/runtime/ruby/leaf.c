/* Finds the function by which Ruby 3.3 calls a leaf: a method of its own that is one C function and
 * looks at nothing of the program's. From the second call at a place on, it has no frame, unless a
 * TracePoint is enabled. The function takes the C function from the cache of the place, takes the
 * receiver off the stack, and jumps:
 *
 *	mov rax, [rdx + 8]	rdx: the call; the cache of its place
 *	mov rcx, [rax + 32]	the C function's description
 *	...
 *	sub [rsi + 8], rax	the frame's stack pointer
 *	mov rsi, [rdx + 24]	the receiver
 *	jmp [rcx]
 */
#include <Zydis/Zydis.h>

#include "program/runtime/ruby/ruby.h"

enum {
	LEAF_SIZE_MAX = 64,
	CACHE_DESCRIPTION = 32,
	STACK_POINTER_AT = 8,
	PATCH_SIZE = 5, /* the last place needs so many bytes */
};

struct leaf {
	ZydisDecoder decoder;
	ZydisDecodedInstruction z;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisRegister cache, function; /* that have them */
	bool popped;
};

static bool is_member(const ZydisDecodedOperand *op, ZydisRegister base, int64_t at)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == base &&
	       op->mem.index == ZYDIS_REGISTER_NONE &&
	       (op->mem.disp.has_displacement ? op->mem.disp.value : 0) == at;
}

static bool leaf_writes(const struct leaf *x, ZydisRegister reg)
{
	for (uint32_t i = 0; i < x->z.operand_count; i++)
		if (x->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    x->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     x->ops[i].reg.value) == reg)
			return true;
	return false;
}

static void leaf_follow(struct leaf *x)
{
	const bool loads = x->z.mnemonic == ZYDIS_MNEMONIC_MOV &&
			   x->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && x->ops[0].size == 64;
	const bool description = loads && x->cache != ZYDIS_REGISTER_NONE &&
				 is_member(&x->ops[1], x->cache, CACHE_DESCRIPTION);

	x->popped |= x->z.mnemonic == ZYDIS_MNEMONIC_SUB &&
		     is_member(&x->ops[0], ZYDIS_REGISTER_RSI, STACK_POINTER_AT);
	if (x->function != ZYDIS_REGISTER_NONE && leaf_writes(x, x->function))
		x->function = ZYDIS_REGISTER_NONE;
	if (description)
		x->function = x->ops[0].reg.value;
	if (x->cache != ZYDIS_REGISTER_NONE && leaf_writes(x, x->cache))
		x->cache = ZYDIS_REGISTER_NONE;
	if (loads && is_member(&x->ops[1], ZYDIS_REGISTER_RDX, RUBY_CALL_CACHE))
		x->cache = x->ops[0].reg.value;
}

/* Returns true when the code is that of the function. *ret_end: the last instruction at which rdx
 * still has the call, PATCH_SIZE bytes or more before the end. */
static bool is_leaf(struct leaf *x, const uint8_t *code, uint32_t n, uint32_t *ret_begin,
		    uint32_t *ret_end)
{
	uint32_t last = 0;

	x->cache = x->function = ZYDIS_REGISTER_NONE;
	x->popped = false;
	*ret_begin = 0;
	for (uint32_t at = 0; at < n; at += x->z.length) {
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&x->decoder, code + at, n - at, &x->z,
						       x->ops)) ||
		    leaf_writes(x, ZYDIS_REGISTER_RDX))
			return false;
		if (!at && x->z.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
			*ret_begin = x->z.length;
		if (x->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE) {
			*ret_end = last;
			return x->z.mnemonic == ZYDIS_MNEMONIC_JMP && x->popped &&
			       x->function != ZYDIS_REGISTER_NONE &&
			       is_member(&x->ops[0], x->function, 0) &&
			       at + x->z.length - last >= PATCH_SIZE;
		}
		leaf_follow(x);
		last = at;
	}
	return false;
}

bool ruby_leaf(struct ruby *r, const uint8_t *text, uint32_t n, uint64_t *ret_begin,
	       uint64_t *ret_end)
{
	struct ruby_range f;
	struct leaf x;
	uint64_t at = r->text.start;
	uint32_t found = 0;

	ZydisDecoderInit(&x.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while (ruby_next_function(r, &at, &f)) {
		uint64_t off = f.start - r->text.start;
		uint32_t begin, end;

		if (f.size > LEAF_SIZE_MAX || off + f.size > n ||
		    !is_leaf(&x, text + off, (uint32_t)f.size, &begin, &end))
			continue;
		*ret_begin = f.start + begin;
		*ret_end = f.start + end;
		found++;
	}
	return found == 1;
}
