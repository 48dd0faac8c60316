/* The steps of a walk up a user stack by unwind tables (wire/wire_unwind.h): one source for the
 * host (src/program/unwind/walk.c), the kernel (bpf/unwind.bpf.h) and the agent (agent/routine.c).
 *
 * The file that includes this one defines before it:
 *
 *	u32, u64, s64, bool, INLINE, CALLBACK
 *	struct unwind_walk	s: a struct with the members below; dst->pc: the frames
 *	  pc, sp, bp		registers of the frame that the walk is at
 *	  start, size		the mapping found last
 *	  n, end		frames so far; how the walk ended (enum wire_unwind_end)
 *	  call			1: pc is a return address, the call lies before it
 *	  guess			1: pc was found by frame pointer
 *	  fresh			1: the file at the address has no tables yet
 *	  word, pair[2]		buffers
 *	UNWIND_FRAMES(w)	room for frames
 *	UNWIND_USER(w, dst, size, addr)	reads 8 or 16 bytes of the process; 0 on success
 *	UNWIND_REGISTER(w, reg)	a register of the innermost frame, by DWARF's number, to s->word;
 *				0 on success
 *	UNWIND_KNOWN(w, at)	the rule of an address that was met before, or 0
 *	UNWIND_CODE(w)		if defined: steps from a frame of code that a language's machine has
 *				made to its caller. Returns 0 when the code is not of that kind, 1,
 *				or 2: the walk ends. s->frame: what stands for the frame
 *	UNWIND_LINKED(w, i)	if defined: steps from code without unwind tables, in the place of
 *				unwind_frame_pointer(w, i). s->frame is the address, or what it
 *				sets it to
 *	UNWIND_IS_LINKED(w, at)	with UNWIND_LINKED(): true when an address, in the mapping found last,
 *				is known to have no rule
 *	unwind_mapping(w, at)	finds the mapping of an address: start, size; false: there is none
 *	unwind_find_rule(w, at)	the rule of an address of the mapping found last
 */
#ifndef DESCRY_WIRE_STEP_H
#define DESCRY_WIRE_STEP_H

#include "wire/wire_unwind.h"

enum { UNWIND_RDI = 5 };

INLINE bool unwind_user(struct unwind_walk *w, u64 *dst, u64 addr)
{
	return !UNWIND_USER(w, dst, 8, addr);
}

/* Steps to the caller. Returns 1 when the walk ends here, with its reason in w->s->end. */
INLINE long unwind_frame_pointer(struct unwind_walk *w, u32 i)
{
	u64 bp = w->s->bp;

	if (!bp || bp < w->s->sp || (bp & 7)) {
		w->s->end = !bp && i ? WIRE_UNWIND_END_ROOT : WIRE_UNWIND_END_NO_TABLE;
		return 1;
	}
	if (UNWIND_USER(w, w->s->pair, 16, bp)) {
		w->s->end = WIRE_UNWIND_END_UNREADABLE;
		return 1;
	}
	w->s->bp = w->s->pair[0];
	w->s->pc = w->s->pair[1];
	w->s->sp = bp + 16;
	w->s->guess = 1;
	w->s->call = 1;
	return 0;
}

INLINE long unwind_signal(struct unwind_walk *w)
{
	u64 uc = w->s->sp;

	/* rsp and rip are neighbours, so one read gets both */
	if (UNWIND_USER(w, w->s->pair, 16, uc + WIRE_UNWIND_UC_RSP) ||
	    !unwind_user(w, &w->s->word, uc + WIRE_UNWIND_UC_RBP)) {
		w->s->end = WIRE_UNWIND_END_UNREADABLE;
		return 1;
	}
	w->s->bp = w->s->word;
	w->s->sp = w->s->pair[0];
	w->s->pc = w->s->pair[1];
	w->s->call = 0;
	return 0;
}

INLINE long unwind_step(struct unwind_walk *w, u32 rule, u32 i)
{
	u32 kind = WIRE_UNWIND_RULE_KIND(rule);
	s64 off = (s64)WIRE_UNWIND_RULE_OFF(rule) * 8, rbp = (s64)WIRE_UNWIND_RULE_RBP(rule) * 8;
	u64 cfa, from;
	bool by_rbp = kind == WIRE_UNWIND_RBP_DEREF, other_stack = kind == WIRE_UNWIND_STACK;

	w->s->end = WIRE_UNWIND_END_BAD;
	if (kind == WIRE_UNWIND_REG || kind == WIRE_UNWIND_INDEX || kind == WIRE_UNWIND_RA_RDI) {
		bool index = kind == WIRE_UNWIND_INDEX;
		u32 reg = kind == WIRE_UNWIND_RA_RDI ? UNWIND_RDI : WIRE_UNWIND_RULE_REG(rule);

		w->s->end = WIRE_UNWIND_END_NO_TABLE;
		if (i) {
			/* The called function has saved rbx; its rule has the place. */
			if (kind != WIRE_UNWIND_REG || reg != WIRE_UNWIND_REG_RBX ||
			    rbp == (s64)WIRE_UNWIND_SAME * 8 ||
			    !unwind_user(w, &w->s->word, w->s->sp + rbp))
				return 1;
		} else if (UNWIND_REGISTER(w, reg)) {
			return 1;
		}
		if (kind == WIRE_UNWIND_REG && reg == WIRE_UNWIND_REG_RBX)
			rbp = (s64)WIRE_UNWIND_SAME * 8;
		cfa = w->s->word + (s64)WIRE_UNWIND_RULE_WORDS(rule) * 8;
		if (kind == WIRE_UNWIND_RA_RDI)
			cfa = w->s->sp + off;
		if (index) {
			w->s->end = WIRE_UNWIND_END_UNREADABLE;
			if (!unwind_user(w, w->s->pair, cfa + w->s->sp + w->s->word * 7))
				return 1;
			cfa = w->s->pair[0] + 8;
		}
		w->s->end = WIRE_UNWIND_END_BAD;
	} else if (kind == WIRE_UNWIND_PLT) {
		cfa = w->s->sp + 8 + ((s64)(w->s->pc & 15) * 8 >= off ? 8 : 0);
	} else {
		cfa = (kind == WIRE_UNWIND_RBP || other_stack || by_rbp ? w->s->bp : w->s->sp) +
		      off;
		if (kind == WIRE_UNWIND_RSP_DEREF || kind == WIRE_UNWIND_RSP_DEREF8 || by_rbp) {
			w->s->end = WIRE_UNWIND_END_UNREADABLE;
			if (!unwind_user(w, w->s->pair, cfa))
				return 1;
			cfa = w->s->pair[0];
			w->s->end = WIRE_UNWIND_END_BAD;
			if (kind == WIRE_UNWIND_RSP_DEREF8)
				cfa += 8;
		}
	}
	if (kind == WIRE_UNWIND_RA_RDI) {
		w->s->pc = w->s->word;
		w->s->call = 1;
	} else {
		/* OCaml's caml_c_call pops its return address, which is still in its place. */
		if (cfa < w->s->sp + w->s->call && !other_stack)
			return 1;
		w->s->call = 1;
		w->s->end = WIRE_UNWIND_END_UNREADABLE;
		/* The saved rbp mostly lies below the return address, so one read gets both. */
		if (rbp == -16 && !by_rbp) {
			if (UNWIND_USER(w, w->s->pair, 16, cfa - 16))
				return 1;
			w->s->bp = w->s->pair[0];
			w->s->pc = w->s->pair[1];
			w->s->sp = cfa;
			return 0;
		}
		if (!unwind_user(w, w->s->pair, cfa - 8))
			return 1;
		w->s->pc = w->s->pair[0];
	}
	if (rbp != (s64)WIRE_UNWIND_SAME * 8) {
		w->s->end = WIRE_UNWIND_END_UNREADABLE;
		from = (by_rbp ? w->s->bp : cfa) + rbp;
		if (!unwind_user(w, w->s->pair, from))
			return 1;
		w->s->bp = w->s->pair[0];
	}
	w->s->sp = cfa;
	return 0;
}

CALLBACK unwind_frame(u32 i, struct unwind_walk *w)
{
	u64 at = w->s->pc - w->s->call;
	bool linked = false;
	u32 rule;
	long stop;

	if (i >= UNWIND_FRAMES(w))
		return 1;
#ifdef UNWIND_CODE
	stop = UNWIND_CODE(w);
	if (stop) {
		w->dst->pc[i] = w->s->frame;
		w->s->n = i + 1;
		return stop - 1;
	}
#endif
#ifdef UNWIND_LINKED
	linked = UNWIND_IS_LINKED(w, at);
#endif
	rule = linked ? 0 : at || w->s->call ? UNWIND_KNOWN(w, at) : WIRE_UNWIND_CALLED;
	stop = !rule && at - w->s->start >= w->s->size && !unwind_mapping(w, at);
	if (stop) {
		w->s->end = WIRE_UNWIND_END_NO_TABLE;
		/* A frame pointer that leads out of the program's text was not a frame pointer. */
		if (w->s->guess)
			return 1;
	}
	w->dst->pc[i] = w->s->pc;
	w->s->n = i + 1;
	if (stop)
		return 1;
	if (w->s->fresh) {
		w->s->end = WIRE_UNWIND_END_NOT_LOADED;
		return 1;
	}
	if (!rule && !linked)
		rule = unwind_find_rule(w, at);
	w->s->guess = 0;
	switch (WIRE_UNWIND_RULE_KIND(rule)) {
	case WIRE_UNWIND_STOP: w->s->end = WIRE_UNWIND_END_ROOT; return 1;
	case WIRE_UNWIND_NONE:
#ifdef UNWIND_LINKED
		w->s->frame = w->s->pc;
		stop = UNWIND_LINKED(w, i);
		w->dst->pc[i] = w->s->frame;
#else
		stop = unwind_frame_pointer(w, i);
#endif
		break;
	case WIRE_UNWIND_SIGRETURN: stop = unwind_signal(w); break;
	default: stop = unwind_step(w, rule, i);
	}
	if (stop)
		return 1;
	/* Programs that build a stack themselves, for fibers, let it return to 0. */
	stop = !w->s->pc && w->s->call && !w->s->guess;
	w->s->end = stop ? WIRE_UNWIND_END_ROOT : WIRE_UNWIND_END_DEEP;
	return stop;
}

#endif
