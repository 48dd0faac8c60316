/* The functions of a frame in V8's code. */
#include <string.h>

#include "program/runtime/v8/v8.h"

enum {
	FRAME_BYTES_MAX = 1 << 26,
	STUB_WORDS = 8,     /* limit of words that a built-in function without a frame pushes */
	PROLOGUE_MAX = 160, /* bytes of the instructions that build a frame */
	EXIT_FUNCTION = 24, /* in the frame of a call of C++: the place of the function */
	RDI = 7,
};

/* The frame that a step of a walk examines. */
struct frame {
	struct v8 *v;
	const struct space_thread *thread;
	struct unwind_cursor *c;
	runtime_frame_vec *ret;
	bool interrupted; /* at any instruction: this is the innermost frame */
	bool made;        /* in code that V8 has made */
	bool has_code;    /* in code of a compiler, with these facts: */
	struct v8_code code;
};

static uint64_t slot(const struct frame *f, int32_t at)
{
	uint64_t word;

	return v8_word(f->v, f->c->bp + (uint64_t)(int64_t)at, &word) ? word : 0;
}

static bool go(struct frame *f, uint64_t pc, uint64_t sp, uint64_t bp)
{
	if (!pc || sp <= f->c->sp)
		return false;
	f->c->pc = pc;
	f->c->sp = sp;
	f->c->bp = bp;
	return true;
}

/* Sets the caller: the return address lies at an address of the stack, and rbp is the caller's. */
static bool go_return(struct frame *f, uint64_t at, uint64_t bp)
{
	uint64_t pc;

	return v8_word(f->v, at, &pc) && go(f, pc, at + 8, bp);
}

/* Goes to the caller by rbp. */
static bool go_frame(struct frame *f)
{
	uint64_t at = f->c->bp, bp;

	if (at & 7 || at + 16 <= f->c->sp || at + 16 - f->c->sp > FRAME_BYTES_MAX ||
	    !v8_word(f->v, at, &bp))
		return false;
	return go_return(f, at + 8, bp);
}

/* Steps from an instruction at which rbp is still, or again, the caller's. A function begins with
 * push %rbp; mov %rsp, %rbp and ends with ret. */
static bool step_without_frame(struct frame *f)
{
	struct unwind_cursor *c = f->c;
	uint8_t k[5] = { 0 };
	uint64_t bp;

	if (space_read_some(f->v->runtime.space, c->pc - 1, k, sizeof(k)) < 4)
		return false;
	if (k[1] == 0xc3 || k[1] == 0xc2 || (k[1] == 0x55 && k[2] == 0x48 && k[3] == 0x89))
		return go_return(f, c->sp, c->bp);
	if (k[0] == 0x55 && k[1] == 0x48 && k[2] == 0x89 && k[3] == 0xe5)
		return v8_word(f->v, c->sp, &bp) && go_return(f, c->sp + 8, bp);
	return false;
}

/* Returns the place in the source that the interpreter executes. A frame that has called another
 * has saved it. While the interpreter executes a bytecode, registers have it; they are used only if
 * the running code belongs to the bytecode there. */
static int32_t interpreted_place(const struct frame *f, uint64_t bytecodes)
{
	const struct user_regs_struct *u = &f->thread->regs;
	const struct v8 *v = f->v;
	uint64_t base = bytecodes - 1, at = u->r9, start, next;
	int32_t place, length;
	uint8_t opcode;

	if (!v8_small(v8_get(v, bytecodes, (uint32_t)v->n.array_length), &length))
		return V8_NOWHERE;
	if (!f->interrupted) {
		if (!v8_small(slot(f, v->n.frame_place), &place))
			return V8_NOWHERE;
		place -= v->n.bytecodes_data - 1;
		return place >= V8_ENTRY && place < length ? place : V8_NOWHERE;
	}
	if (u->r12 != bytecodes || at - (uint64_t)(v->n.bytecodes_data - 1) >= (uint64_t)length ||
	    space_read_some(v->runtime.space, base + 1 + at, &opcode, 1) != 1 ||
	    !v8_word(v, u->r15 + 8ull * opcode, &start) || start > f->c->pc ||
	    f->c->pc - start > FRAME_BYTES_MAX)
		return V8_NOWHERE;
	for (uint32_t i = 0; i < v->version->opcodes; i++)
		if (!v8_word(v, u->r15 + 8ull * i, &next) || (next > start && next <= f->c->pc))
			return V8_NOWHERE;
	return (int32_t)at - (v->n.bytecodes_data - 1);
}

/* V8 can copy the interpreter's code for each function (--interpreted-frames-native-stack). The
 * kind of this code has a smaller number than those of compilers. */
static bool find_code(struct frame *f, uint64_t pc)
{
	f->has_code = v8_code_find(f->v, pc, &f->code) &&
		      f->code.kind >= (uint32_t)f->v->n.code_baseline;
	return f->has_code;
}

/* Handles a built-in function without a frame, which code with a frame has called. Finds the return
 * address, by which the code's tables give the place. */
static bool find_caller_code(struct frame *f, uint64_t *ret_pc)
{
	uint64_t word;
	bool made;

	for (uint32_t i = 0; i < STUB_WORDS; i++)
		if (v8_word(f->v, f->c->sp + i * 8ull, &word) && v8_is_code(f->v, word, &made) &&
		    made && find_code(f, word - 1)) {
			*ret_pc = word;
			return true;
		}
	return false;
}

/* Adds the function of a frame, and the functions inlined in it. */
static void add_function(struct frame *f, const struct v8_function *fn)
{
	struct v8 *v = f->v;
	uint64_t bytecodes = slot(f, v->n.frame_bytecodes), pc = f->c->pc;
	bool called = !f->interrupted;
	struct v8_at inlined[V8_INLINED_MAX];
	int32_t place = V8_NOWHERE;
	uint32_t n;

	if (!fn->script) {
		v8_add(v, fn, V8_NOWHERE, f->ret);
		return;
	}
	if (f->interrupted && !f->made)
		called = find_caller_code(f, &pc);
	if (f->has_code && f->code.kind != (uint32_t)v->n.code_baseline) {
		n = called ? v8_optimized(v, &f->code, fn, pc, inlined) : 0;
		for (uint32_t i = 0; i < n; i++)
			vec_push(f->ret, v8_frame(v, &inlined[i]));
		if (n)
			return;
	} else if (v8_type(v, &bytecodes) == v->n.type_bytecodes &&
		   bytecodes == v8_plain(fn)->bytecodes) {
		place = f->has_code ? v8_baseline_place(v, &f->code, bytecodes, pc, called)
				    : interpreted_place(f, bytecodes);
	}
	v8_add(v, fn, place, f->ret);
}

/* Before compiled code has saved its function in its frame, rdi has the function. Returns true in
 * this case; rbp is then the caller's or was just set. */
static bool begins(struct frame *f)
{
	uint8_t k[PROLOGUE_MAX];
	uint64_t at = f->c->pc - f->code.start;
	uint32_t n, i;

	if (at >= PROLOGUE_MAX - 16)
		return false;
	n = space_read_some(f->v->runtime.space, f->code.start, k, sizeof(k));
	for (i = 0; i + 4 <= n && memcmp(k + i, "\x55\x48\x89\xe5", 4) != 0; i++)
		;
	/* push %rsi; push %rdi */
	return i + 6 <= n && at < i + 6;
}

static bool step_beginning(struct frame *f)
{
	const struct v8_function *fn = v8_function_of(f->v, f->thread->regs.rdi);
	uint8_t k[4];

	if (fn)
		v8_add(f->v, fn, V8_NOWHERE, f->ret);
	if (step_without_frame(f))
		return true;
	/* in front of push %rbp are its checks; behind mov the frame is built */
	if (space_read_some(f->v->runtime.space, f->c->pc - 4, k, 4) == 4 &&
	    (!memcmp(k, "\x55\x48\x89\xe5", 4) || !memcmp(k, "\x48\x89\xe5\x56", 4)))
		return go_frame(f);
	return go_return(f, f->c->sp, f->c->bp);
}

static void step_frame(struct frame *f)
{
	struct v8 *v = f->v;
	uint64_t context = slot(f, v->n.frame_context);
	const struct v8_function *fn = NULL;

	if (context & 1)
		fn = v8_function_of(v, slot(f, v->n.frame_function));
	else if (context == (uint64_t)v->n.frame_builtin_exit << 1)
		fn = v8_function_of(v, slot(f, EXIT_FUNCTION));
	if (fn)
		add_function(f, fn);
	go_frame(f);
}

bool v8_step(struct runtime *r, const struct space_thread *t, struct unwind_cursor *c,
	     runtime_frame_vec *ret)
{
	struct v8 *v = (struct v8 *)r;
	struct frame f = { .v = v, .thread = t, .c = c, .ret = ret, .interrupted = !c->called };
	const uint64_t sp = c->sp;
	uint32_t before = ret->n;

	if (!v8_is_code(v, c->pc - c->called, &f.made))
		return false;
	if (f.made)
		find_code(&f, c->pc - c->called);
	if (f.interrupted && f.has_code && begins(&f))
		step_beginning(&f);
	else if (!f.interrupted || !step_without_frame(&f))
		step_frame(&f);
	if (ret->n > before) {
		vec_last(ret)->entry = true;
		vec_last(ret)->anchor = sp;
	}
	return true;
}
