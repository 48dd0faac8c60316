/* Frames of the interpreter (frame_x86.hpp):
 *
 *	rbp + 8    return address
 *	rbp        rbp of the caller
 *	rbp - 8    stack pointer of the caller, before its arguments were moved
 *	rbp - 24   Method
 *	rbp - 64   address of the bytecode (bcp), while it calls another function
 *
 * In between r13 has bcp. At a function's entry, before it has a frame, rbx has the Method, and r13
 * the stack pointer of the caller. */
#include <string.h>

#include "program/runtime/jvm/jvm.h"

enum { SENDER_SP = 8, METHOD = 24, BCP = 64, FRAME_MAX = 1 << 20, AHEAD = 48, PARTIAL = 16 };

/* Returns true when the following instructions load r13 from the frame before they store it
 * there. */
static bool loads_bcp(const struct jvm *j, uint64_t pc)
{
	static const uint8_t load[] = { 0x4c, 0x8b, 0x6d, 0xc0 },
			     store[] = { 0x4c, 0x89, 0x6d, 0xc0 };
	uint8_t code[AHEAD];
	uint32_t n = space_read_some(j->runtime.space, pc, code, sizeof(code));

	for (uint32_t i = 0; i + 4 <= n; i++) {
		if (!memcmp(code + i, store, 4))
			return false;
		if (!memcmp(code + i, load, 4))
			return true;
	}
	return false;
}

/* Returns true when the thread has left Java by a call for which the interpreter saves nothing. */
static bool is_leaf_call(struct jvm *j, const struct space_thread *t, const struct unwind_cursor *c)
{
	uint64_t thread, sp;

	if (!c->first)
		return false;
	thread = jvm_thread(j, (uint32_t)t->tid);
	return !thread ||
	       !jvm_word(j, thread + j->layout.thread_anchor.at + j->layout.anchor_sp.at, &sp) ||
	       !sp;
}

/* Returns the bytecode of a frame, -1: not known. */
static int64_t bytecode(struct jvm *j, const struct jvm_method *m, const struct space_thread *t,
			const struct unwind_cursor *c)
{
	uint64_t saved, r13 = t->regs.r13;
	bool in_frame;

	if (!m->code)
		return -1;
	if (c->called)
		in_frame = !is_leaf_call(j, t, c);
	else if (c->index)
		return -1; /* a signal has interrupted it, so r13 is not known */
	else
		in_frame = loads_bcp(j, c->pc) || r13 - m->code >= m->code_size;
	if (!in_frame)
		return r13 - m->code < m->code_size ? (int64_t)(r13 - m->code) : -1;
	if (!jvm_word(j, c->bp - BCP, &saved) || saved - m->code >= m->code_size)
		return -1;
	return (int64_t)(saved - m->code);
}

static bool go(const struct jvm *j, struct unwind_cursor *c)
{
	uint64_t bp, pc, sp;

	if (c->bp & 7 || c->bp - c->sp > FRAME_MAX || !jvm_word(j, c->bp, &bp) ||
	    !jvm_word(j, c->bp + 8, &pc) || !jvm_word(j, c->bp - SENDER_SP, &sp))
		return false;
	if (sp < c->bp + 16 || sp - c->bp > FRAME_MAX || sp & 7)
		sp = c->bp + 16;
	c->pc = pc;
	c->sp = sp;
	c->bp = bp;
	return true;
}

/* Handles the entry of a function. The return address is on top of the stack, or in rax while the
 * function makes room for locals, or in the new frame, which is partly built. */
static bool go_from_entry(struct jvm *j, const struct space_thread *t, struct unwind_cursor *c)
{
	uint64_t pc, sp = t->regs.r13, bp = c->bp;
	struct jvm_blob b;

	if (!jvm_word(j, c->sp, &pc))
		return false;
	if (!jvm_blob_find(j, pc - 1, &b)) {
		pc = t->regs.rax;
		if (c->bp - c->sp <= PARTIAL &&
		    (!jvm_word(j, c->bp + 8, &pc) || !jvm_word(j, c->bp, &bp) ||
		     (c->bp > c->sp && !jvm_word(j, c->bp - SENDER_SP, &sp))))
			return false;
		if (!jvm_blob_find(j, pc - 1, &b))
			return false;
	}
	if (sp <= c->sp || sp - c->sp > FRAME_MAX || sp & 7)
		return false;
	c->pc = pc;
	c->sp = sp;
	c->bp = bp;
	return true;
}

bool jvm_interpreted(struct jvm *j, const struct jvm_blob *b, const struct space_thread *t,
		     struct unwind_cursor *c, runtime_frame_vec *ret)
{
	const struct jvm_method *m = NULL;
	uint64_t method;
	int64_t bci;

	(void)b;
	if (c->bp - METHOD >= c->sp && c->bp - c->sp <= FRAME_MAX &&
	    jvm_word(j, c->bp - METHOD, &method))
		m = jvm_method(j, method);
	if (m) {
		bci = bytecode(j, m, t, c);
		jvm_add(j, m, bci, bci >= 0, ret);
		return go(j, c);
	}
	m = c->index || c->called ? NULL : jvm_method(j, t->regs.rbx);
	if (!m)
		return false;
	jvm_add(j, m, 0, true, ret);
	return go_from_entry(j, t, c);
}
