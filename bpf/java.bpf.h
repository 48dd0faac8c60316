/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames of Java: from code that HotSpot has made to its caller, as program/runtime/jvm/ does it.
 *
 * The map of segments leads from an address to its piece of code (CodeBlob). Compiled code has a
 * frame of known size, with the caller's rbp below the return address. Frames of the interpreter
 * and of most stubs are linked by rbp. The innermost frame may be half built; the instructions
 * there show it. What they do not show ends the stack: the innermost frame's return address must
 * lie behind a call in the code cache. */
#include "bpf/machine.bpf.h"

/* Results of java_step(). */
enum { JAVA_NOT_CODE, JAVA_CALLER, JAVA_END };

enum { JAVA_RAX = 0, JAVA_RBX = 3, JAVA_R13 = 13, JAVA_FREE = 0xff };

/* Returns the facts about the process's JVM; NULL: it has none. */
INLINE const struct wire_java *java_data(struct unwind_walk *w)
{
	const struct wire_language *l = machine_data(w);

	return l && l->frames == WIRE_LANGUAGE_JAVA ? &l->java : NULL;
}

/* A member of what lies in s->java.bytes: WIRE_JAVA_MEMBER(). */
INLINE u64 java_member(const struct unwind_state *s, u32 member)
{
	const u8 *bytes = (const u8 *)s->java.bytes;
	u32 width = member >> 16;
	u64 v = *(const u64 *)(bytes + (member & 0x1f8)) >> (member & 7) * 8;

	if (!width)
		return 0;
	return width >= 8 ? v : width == 4 ? (u32)v : v & 0xffff;
}

INLINE bool java_is_code(const struct wire_java *j, u64 addr)
{
	bool in = false;

#pragma unroll
	for (int i = 0; i < 4; i++)
		in |= addr - j->heap[i].low < j->heap[i].size;
	return in;
}

INLINE bool java_is_interpreter(const struct wire_java *j, u64 addr)
{
	return addr - j->interpreter < j->interpreter_size;
}

/* Returns true when addr lies behind a call in the code cache: call rel32; call *%reg; call
 * *disp8(%reg), call *disp32(%reg). The interpreter pushes addresses and jumps. */
SUBROUTINE java_is_return(struct unwind_walk *w, u64 addr)
{
	const struct wire_java *j = java_data(w);
	u64 k;

	if (!j || !java_is_code(j, addr - 1))
		return false;
	if (java_is_interpreter(j, addr) || addr == j->stub_return)
		return true;
	if (!machine_user(w, &w->s->word, addr - 8))
		return false;
	k = w->s->word;
	return (k >> 24 & 0xff) == 0xe8 || (k >> 48 & 0xf8ff) == 0xd0ff ||
	       (k >> 40 & 0xf8ff) == 0x50ff || (k >> 16 & 0xf8ff) == 0x90ff;
}

SUBROUTINE java_hop(u32 i, struct unwind_walk *w)
{
	struct java_state *v = &w->s->java;

	v->hop = 0;
	if (MACHINE_READ(w, &v->hop, 1, v->segments + v->segment) || v->hop == JAVA_FREE ||
	    v->hop > v->segment) {
		v->hop = JAVA_FREE;
		return 1;
	}
	v->segment -= v->hop;
	return !v->hop;
}

/* Reads the piece of code at an address to s->java.at and bytes. */
SUBROUTINE java_blob(struct unwind_walk *w, u64 addr)
{
	const struct wire_java *j = java_data(w);
	struct java_state *v = &w->s->java;
	u64 low = 0, code;

	if (!j)
		return false;
	v->segments = 0;
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (addr - j->heap[i].low < j->heap[i].size) {
			low = j->heap[i].low;
			v->segments = j->heap[i].segments;
		}
	v->segment = (addr - low) >> (j->shift & 31);
	v->hop = JAVA_FREE;
	if (!v->segments)
		return false;
	bpf_loop(WIRE_JAVA_HOPS, java_hop, w, 0);
	if (v->hop)
		return false;
	v->at = low + (v->segment << (j->shift & 31)) + j->block;
	if (MACHINE_READ(w, v->bytes, WIRE_JAVA_BLOB, v->at))
		return false;
	code = java_member(w->s, j->blob_code) ?: v->at + java_member(w->s, j->blob_code_offset);
	return addr >= code && addr - v->at < java_member(w->s, j->blob_size);
}

/* Reads what identifies a Method. check: also that it leads to a class with its constants. */
SUBROUTINE java_method(struct unwind_walk *w, u64 method, bool check)
{
	const struct wire_java *j = java_data(w);
	struct unwind_state *s = w->s;
	struct java_state *v = &s->java;

	if (!j || !method || method & 7 ||
	    !machine_user(w, &v->constant[0], method + j->method_const) ||
	    MACHINE_READ(w, v->bytes, WIRE_JAVA_CONST, v->constant[0]))
		return false;
	v->constants = java_member(s, WIRE_JAVA_MEMBER(j->const_constants, 8));
	v->constant[1] = java_member(s, WIRE_JAVA_MEMBER(j->const_name & ~7, 8));
	v->bytecodes = v->constant[0] + j->const_size;
	v->nbytecodes = java_member(s, WIRE_JAVA_MEMBER(j->const_code_size, 2));
	if (!machine_user(w, &v->class, v->constants + j->constants_class) ||
	    !machine_user(w, &v->name[0], v->class + j->class_name) ||
	    !machine_user(w, &v->name[1], v->name[0]))
		return false;
	v->name[1] &= ~(0xffffull << (j->symbol_count & 7) * 8);
	if (check &&
	    (!machine_user(w, &s->word, v->class + j->class_constants) || s->word != v->constants))
		return false;
	s->id = wire_language_java_id(s->tgid, method, v->constant, v->constants, v->name);
	return true;
}

/* Goes to the caller. */
INLINE long java_go(struct unwind_walk *w, u64 pc, u64 sp, u64 bp, bool java)
{
	struct unwind_state *s = w->s;

	if (sp <= s->sp || sp & 7 || !pc) {
		s->end = WIRE_UNWIND_END_BAD;
		return JAVA_END;
	}
	s->pc = pc;
	s->sp = sp;
	s->bp = bp;
	s->call = 1;
	s->guess = 0;
	s->end = WIRE_UNWIND_END_DEEP;
	s->java.called = java;
	return JAVA_CALLER;
}

INLINE long java_stop(struct unwind_walk *w)
{
	w->s->end = WIRE_UNWIND_END_BAD;
	return JAVA_END;
}

/* At the entry of a function that is interpreted: the return address is on top of the stack, or in
 * rax while the function makes room for locals, or in the new frame, which is partly built. */
INLINE long java_entry(struct unwind_walk *w)
{
	struct unwind_state *s = w->s;
	struct java_state *v = &s->java;
	u64 bp = s->bp;

	machine_word(w, v->rbx, 0, 0);
	if (!machine_user(w, &s->pair[1], s->sp))
		return java_stop(w);
	if (!java_is_return(w, s->pair[1])) {
		if (bp - s->sp <= 16) {
			if (MACHINE_READ(w, s->pair, 16, bp))
				return java_stop(w);
			bp = s->pair[0];
		} else if (UNWIND_REGISTER(w, JAVA_RAX)) {
			return java_stop(w);
		} else {
			s->pair[1] = s->word;
		}
		if (!java_is_return(w, s->pair[1]))
			return java_stop(w);
	}
	return java_go(w, s->pair[1], v->r13, bp, true);
}

/* Returns true when the next instructions load r13, the place in the bytecodes, from the frame. */
INLINE bool java_loads_bcp(struct unwind_walk *w)
{
	const u64 load = 0xc06d8b4c; /* mov -0x40(%rbp), %r13 */
	u64 *k = w->s->java.around;
	bool found = false;

	if (MACHINE_READ(w, k, 24, w->s->pc))
		return true;
#pragma unroll
	for (int i = 0; i < 8; i++)
		found |= (u32)(k[0] >> i * 8 | (i ? k[1] << (64 - i * 8) : 0)) == load ||
			 (u32)(k[1] >> i * 8 | (i ? k[2] << (64 - i * 8) : 0)) == load;
	return found;
}

/* Steps from a frame of the interpreter. */
SUBROUTINE java_interpreted(struct unwind_walk *w)
{
	struct unwind_state *s = w->s;
	struct java_state *v = &s->java;
	bool innermost = !s->n && !s->call;
	u64 bcp, at = WIRE_LANGUAGE_BEFORE, sp;

	if (innermost) {
		v->rbx = UNWIND_REGISTER(w, JAVA_RBX) ? 0 : s->word;
		v->r13 = UNWIND_REGISTER(w, JAVA_R13) ? 0 : s->word;
		if (v->r13 - s->sp - 1 < WIRE_JAVA_FRAME_MAX && !(v->r13 & 7) &&
		    java_method(w, v->rbx, true))
			return java_entry(w);
	}
	if (s->bp & 7 || s->bp - s->sp > WIRE_JAVA_FRAME_MAX ||
	    MACHINE_READ(w, v->words, sizeof(v->words), s->bp - WIRE_JAVA_FRAME_BELOW) ||
	    !java_method(w, v->words[WIRE_JAVA_METHOD], innermost)) {
		if (innermost && java_method(w, v->rbx, true))
			machine_word(w, v->rbx, 0, WIRE_LANGUAGE_BEFORE);
		return java_stop(w);
	}
	bcp = v->words[WIRE_JAVA_BCP];
	/* A call of C may have saved nothing. */
	if (innermost && !java_loads_bcp(w) && v->r13 - v->bytecodes < v->nbytecodes)
		bcp = v->r13;
	if ((innermost || v->called) && bcp - v->bytecodes < v->nbytecodes)
		at = bcp - v->bytecodes;
	machine_word(w, v->words[WIRE_JAVA_METHOD], 0, at);
	sp = v->words[WIRE_JAVA_SENDER_SP];
	if (sp < s->bp + 16 || sp - s->bp > WIRE_JAVA_FRAME_MAX || sp & 7)
		sp = s->bp + 16;
	/* into a local variable: the check reads to s->word */
	if (!java_is_return(w, v->words[WIRE_JAVA_RETURN]))
		return java_stop(w);
	return java_go(w, v->words[WIRE_JAVA_RETURN], sp, v->words[WIRE_JAVA_RBP], true);
}

/* Returns the bytes from rsp to the caller's, when the instructions show that a frame of `frame`
 * bytes is not whole. *ret_saved: the caller's rbp is on top of the stack. */
INLINE u64 java_partial(const u64 around[3], u64 frame, bool incomplete, bool *ret_saved)
{
	u64 k = around[1], next = around[2], before = around[0];
	u32 op = k & 0xff, op3 = k & 0xffffff, after = k >> 8 & 0xff;
	bool pushed = before >> 56 == 0x55;
	bool moved = before >> 40 == 0xec8b48 || before >> 40 == 0xe58948;

	*ret_saved = false;
	if (op == 0xc3 || op == 0xc2) /* ret */
		return 8;
	if (op3 == 0xa73b49 || op3 == 0x673b49) /* cmp disp(%r15), %rsp */
		return 8;
	if ((k & 0xffff) == 0x870f && (k >> 48 & 0xff) == 0xc3) /* ja; ret */
		return 8;
	/* test %eax, (%r10); ret, and the load of r10 before it */
	if ((u32)k == 0xc3028541 || (op3 == 0x578b4d && k >> 32 == 0xc3028541) ||
	    (op3 == 0x978b4d && k >> 56 == 0x41 && (next & 0xffffff) == 0xc30285))
		return 8;
	/* pop %rbp, and what may follow it at the end of a function */
	if (op == 0x5d && (after == 0xc3 || after == 0xc2 || after == 0xe9 || after == 0xff ||
			   (k >> 8 & 0xffff) == 0x3b49 || (k >> 8 & 0xffffff) == 0x028541 ||
			   (k >> 8 & 0xffff) == 0x8b4d)) {
		*ret_saved = true;
		return 16;
	}
	/* mov %eax, -disp(%rsp): is there room for the frame? push %rbp */
	if (op3 == 0x248489 && (s32)(k >> 24) < 0)
		return 8;
	if (op == 0x55 && ((k >> 8 & 0xfffdff) == 0xec8148 || (k >> 8 & 0xffffff) == 0xec8b48 ||
			   (k >> 8 & 0xffffff) == 0xe58948))
		return 8;
	/* sub $i, %rsp; mov %rsp, %rbp */
	if ((k & 0xfffdff) == 0xec8148 && (pushed || moved || incomplete)) {
		*ret_saved = pushed || moved;
		return pushed || moved ? 16 : 8;
	}
	if ((op3 == 0xec8b48 || op3 == 0xe58948) && pushed) {
		*ret_saved = true;
		return 16;
	}
	if (!incomplete)
		return 0;
	/* mov %rbp, disp(%rsp): the caller's is still in rbp */
	if ((u32)k == 0x246c8948 || (u32)k == 0x24ac8948)
		return frame;
	/* Behind sub $i, %rsp; cmpl $i, disp(%r15); je; call (the collector's barrier): whole. */
	if ((before >> 32 & 0xffffff) == 0xec8348 || (before >> 8 & 0xffffff) == 0xec8148 ||
	    op3 == 0x7f8141 || op3 == 0xbf8141 || (k & 0xffffffffffff) == 0x05840f ||
	    (op == 0xe8 && before >> 16 == 0x05840f))
		return 0;
	return 8; /* the class of the receiver is checked */
}

/* Steps from compiled code that is not at a call. The piece of code is in s->java.bytes. */
INLINE long java_interrupted(struct unwind_walk *w, u64 frame, bool incomplete)
{
	struct unwind_state *s = w->s;
	bool saved = false;
	u64 bytes, bp;

	if (MACHINE_READ(w, s->java.around, 24, s->pc - 8))
		return java_stop(w);
	bytes = java_partial(s->java.around, frame, incomplete, &saved);
	if (!bytes) {
		bytes = frame;
		saved = true;
	}
	if (MACHINE_READ(w, s->pair, 16, s->sp + bytes - 16))
		return java_stop(w);
	bp = saved ? s->pair[0] : s->bp;
	return java_is_return(w, s->pair[1]) ? java_go(w, s->pair[1], s->sp + bytes, bp, true)
					     : java_stop(w);
}

SUBROUTINE java_pushed(u32 i, struct unwind_walk *w)
{
	struct java_state *v = &w->s->java;

	v->hop = 0;
	if (!machine_user(w, &w->s->pair[1], v->segments))
		return 1;
	if (java_is_return(w, w->s->pair[1])) {
		v->hop = 1;
		return 1;
	}
	v->segments += 8;
	return 0;
}

/* Returns true when rbp links the frame of a stub; s->pair has what it links. */
INLINE bool java_is_linked(struct unwind_walk *w)
{
	struct unwind_state *s = w->s;

	return s->bp >= s->sp && s->bp - s->sp <= WIRE_JAVA_STUB_MAX && !(s->bp & 7) &&
	       !MACHINE_READ(w, s->pair, 16, s->bp);
}

/* Steps from a stub that is not at a call. It has no frame, or one that rbp links. Others have
 * pushed registers, and the first return address on the stack is theirs. */
INLINE long java_stub(struct unwind_walk *w)
{
	struct unwind_state *s = w->s;
	struct java_state *v = &s->java;

	v->segments = s->sp;
	v->hop = machine_user(w, &s->pair[1], s->sp) && java_is_return(w, s->pair[1]);
	if (!v->hop && java_is_linked(w) && java_is_return(w, s->pair[1]))
		return java_go(w, s->pair[1], s->bp + 16, s->pair[0], false);
	if (!v->hop)
		bpf_loop(WIRE_JAVA_PUSHED, java_pushed, w, 0);
	return v->hop ? java_go(w, s->pair[1], v->segments + 8, s->bp, false) : java_stop(w);
}

/* Steps from a frame of compiled code or of a stub. */
SUBROUTINE java_compiled(struct unwind_walk *w, u64 at)
{
	const struct wire_java *j = java_data(w);
	struct unwind_state *s = w->s;
	struct java_state *v = &s->java;
	u64 frame, pc = s->pc, code, about[WIRE_LANGUAGE_ABOUT], complete;
	bool incomplete;

	if (!j || !java_blob(w, at))
		return JAVA_NOT_CODE;
	frame = java_member(s, j->blob_frame_words) * 8;
	if (frame >= WIRE_JAVA_FRAME_MAX)
		frame = 0;
	code = java_member(s, j->blob_code) ?: v->at + java_member(s, j->blob_code_offset);
	complete = java_member(s, j->blob_complete);
	incomplete = complete < 0x7fff && pc - code < complete;
	about[0] = java_member(s, j->blob_name);
	about[1] = about[2] = 0;
	if (frame) {
		about[1] = java_member(s, j->method);
		about[2] = java_member(s, j->compilation);
		/* The JVM has replaced the address to deoptimize the frame. */
		if (s->call &&
		    (pc == java_member(s, j->deopt[0]) || pc == java_member(s, j->deopt[1]) ||
		     pc - v->at == java_member(s, j->deopt_offset[0]) ||
		     pc - v->at == java_member(s, j->deopt_offset[1])) &&
		    machine_user(w, &s->word, s->sp + java_member(s, j->original_pc)) &&
		    s->word - v->at < java_member(s, j->blob_size))
			pc = s->word;
	}
	v->place = frame || s->call ? WIRE_JAVA_PLACE(pc, s->call) : WIRE_JAVA_NOWHERE;
	s->id = wire_language_blob_id(s->tgid, v->at, about, v->place);
	machine_word(w, v->at, v->place, 0);
	if (!s->call)
		return frame ? java_interrupted(w, frame, incomplete) : java_stub(w);
	if (frame) {
		if (MACHINE_READ(w, s->pair, 16, s->sp + frame - 16) ||
		    !java_is_code(j, s->pair[1]))
			return java_stop(w);
		return java_go(w, s->pair[1], s->sp + frame, s->pair[0], true);
	}
	return java_is_linked(w) ? java_go(w, s->pair[1], s->bp + 16, s->pair[0], false)
				 : java_stop(w);
}

/* Steps from a frame in the code cache. */
SUBROUTINE java_step(struct unwind_walk *w)
{
	const struct wire_java *j = java_data(w);
	struct unwind_state *s = w->s;
	u64 at = s->pc - s->call;
	long r = JAVA_NOT_CODE;

	s->frame = s->pc;
	if (j && java_is_interpreter(j, at))
		r = java_interpreted(w);
	else if (j && java_is_code(j, at))
		r = java_compiled(w, at);
	if (r == JAVA_NOT_CODE)
		s->java.called = 0;
	return r;
}
