/* Finds the place in CPython 3.13's loop where an exception ends a function.
 *
 * The loop makes the frame of the caller the thread's frame, clears the other one, and sets the
 * caller's return_offset to 0, which no other code does behind such a change. Functions that never
 * began end there, too (RecursionError). So the place is the instruction in front of it that stores
 * the height of the frame's stack, after no handler was found. */
#include "program/runtime/python/allocations.h"

enum {
	LOOP_MAX = 1 << 20,
	IN_FRONT =
		8, /* instructions between the store of the height and the load of the caller's frame */
	NEAR = 8,           /* instructions from there to the store in the thread */
	BEHIND = 24,        /* instructions from there to the store of return_offset */
	HEIGHT = 8,         /* in a frame, behind the address of the instruction */
	RETURN_OFFSET = -2, /* in front of the owner */
};

/* A change of the thread's frame that was met last. */
struct change {
	uint64_t height; /* the instruction that stored the height of the stack; 0: none near */
	uint32_t since_height;
	int height_frame; /* register */
	bool loaded, stored, called;
	int caller;
	uint32_t since; /* instructions */
};

/* Returns the base register when the operand reads or writes memory at this offset from it, else
 * -1. */
static int member_of(const ZydisDecodedOperand *op, uint32_t offset, uint16_t size)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->size == size &&
			       op->mem.index == ZYDIS_REGISTER_NONE &&
			       op->mem.segment != ZYDIS_REGISTER_FS &&
			       (op->mem.disp.has_displacement ? op->mem.disp.value : 0) == offset
		       ? python_x86_register(op->mem.base)
		       : -1;
}

static int register_of(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER ? python_x86_register(op->reg.value) : -1;
}

/* Follows one instruction. Returns true at the store of return_offset behind a change. */
static bool follow_change(const struct python_layout *l, struct change *c, uint64_t at,
			  const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops)
{
	const bool moves = z->mnemonic == ZYDIS_MNEMONIC_MOV;
	const int frame = moves ? member_of(&ops[0], l->frame_instruction + HEIGHT, 32) : -1;

	c->since++;
	c->since_height++;
	if (frame >= 0 && register_of(&ops[1]) >= 0) {
		*c = (struct change){ .height = at, .height_frame = frame };
		return false;
	}
	if (!c->height)
		return false;
	if (!c->loaded) {
		c->loaded = moves && register_of(&ops[0]) >= 0 &&
			    member_of(&ops[1], l->frame_previous, 64) == c->height_frame;
		c->caller = register_of(&ops[0]);
		c->since = 0;
		if (c->since_height > IN_FRONT || (z->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
						   z->meta.category != ZYDIS_CATEGORY_COND_BR))
			c->height = 0;
		return false;
	}
	if (!c->stored) {
		c->stored = moves && member_of(&ops[0], l->thread_frame, 64) >= 0 &&
			    register_of(&ops[1]) == c->caller;
		if (c->since > NEAR)
			c->height = 0;
		return false;
	}
	if (z->meta.category == ZYDIS_CATEGORY_CALL)
		c->called = true;
	if (c->since > BEHIND)
		c->height = 0;
	return c->height && c->called && moves &&
	       member_of(&ops[0], (uint32_t)(l->frame_owner + RETURN_OFFSET), 16) == c->caller;
}

bool python_unwound(struct object *o, uint64_t loop, uint64_t size, const struct python_layout *l,
		    struct python_entry *ret)
{
	cleanup_free uint8_t *text = size < LOOP_MAX ? xmalloc(size) : NULL;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct change c = { 0 };
	ZydisDecoder decoder;
	uint32_t found = 0;

	if (!text || object_read(o, loop, text, (uint32_t)size) != size)
		return false;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t at = 0; at < size; at += z.length) {
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, text + at, size - at, &z, ops)))
			return false;
		if (!follow_change(l, &c, loop + at, &z, ops))
			continue;
		*ret = (struct python_entry){ c.height, (uint8_t)c.height_frame };
		c.height = 0;
		found++;
	}
	return found == 1;
}
