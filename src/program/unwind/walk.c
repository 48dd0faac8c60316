/* Walking a stack by the tables. Its twin in the kernel is bpf/unwind.bpf.h: the same steps in the
 * same order. */
#include "program/unwind/unwind.h"

struct walk {
	uint64_t pc, sp, bp;
	const uint64_t *reg;
	unwind_read_fn *read;
	void *arg;
	bool call;  /* pc is a return address: the call lies before it */
	bool guess; /* pc was found by frame pointer */
	bool top;   /* the innermost frame: all registers are known */
};

static int step_frame_pointer(struct walk *w, uint32_t n)
{
	uint64_t bp = w->bp, ra;

	if (!bp)
		return n > 1 ? WIRE_UNWIND_END_ROOT : WIRE_UNWIND_END_NO_TABLE;
	if (bp < w->sp || (bp & 7))
		return WIRE_UNWIND_END_NO_TABLE;
	if (!w->read(w->arg, bp, &w->bp) || !w->read(w->arg, bp + 8, &ra))
		return WIRE_UNWIND_END_UNREADABLE;
	w->sp = bp + 16;
	w->pc = ra;
	w->guess = true;
	return -1;
}

static int step_signal(struct walk *w)
{
	uint64_t uc = w->sp;

	if (!w->read(w->arg, uc + WIRE_UNWIND_UC_RIP, &w->pc) ||
	    !w->read(w->arg, uc + WIRE_UNWIND_UC_RSP, &w->sp) ||
	    !w->read(w->arg, uc + WIRE_UNWIND_UC_RBP, &w->bp))
		return WIRE_UNWIND_END_UNREADABLE;
	w->call = false;
	return -1;
}

/* To the caller by a rule: -1, or how the walk ends. n: frames so far. */
static int step(struct walk *w, uint32_t rule, uint32_t n)
{
	int64_t off = (int64_t)WIRE_UNWIND_RULE_OFF(rule) * 8;
	int32_t rbp = WIRE_UNWIND_RULE_RBP(rule);
	uint64_t cfa, base, ra;
	bool by_rbx, called = w->call;

	w->guess = false;
	w->call = true;
	switch (WIRE_UNWIND_RULE_KIND(rule)) {
	case WIRE_UNWIND_NONE: return step_frame_pointer(w, n);
	case WIRE_UNWIND_STOP: return WIRE_UNWIND_END_ROOT;
	case WIRE_UNWIND_SIGRETURN: return step_signal(w);
	case WIRE_UNWIND_RSP:
	case WIRE_UNWIND_RA_RDI: cfa = w->sp + off; break;
	case WIRE_UNWIND_RBP:
	case WIRE_UNWIND_STACK: cfa = w->bp + off; break;
	case WIRE_UNWIND_REG:
	case WIRE_UNWIND_INDEX:
		by_rbx = WIRE_UNWIND_RULE_KIND(rule) == WIRE_UNWIND_REG &&
			 WIRE_UNWIND_RULE_REG(rule) == WIRE_UNWIND_REG_RBX;
		base = w->reg[WIRE_UNWIND_RULE_REG(rule)];
		if (!w->top && (!by_rbx || rbp == WIRE_UNWIND_SAME))
			return WIRE_UNWIND_END_NO_TABLE;
		if (!w->top && !w->read(w->arg, w->sp + (uint64_t)(rbp * 8ll), &base))
			return WIRE_UNWIND_END_NO_TABLE;
		if (by_rbx)
			rbp = WIRE_UNWIND_SAME;
		cfa = base + (uint64_t)(WIRE_UNWIND_RULE_WORDS(rule) * 8ll);
		if (WIRE_UNWIND_RULE_KIND(rule) == WIRE_UNWIND_REG)
			break;
		if (!w->read(w->arg, cfa + w->sp + base * 7, &cfa))
			return WIRE_UNWIND_END_UNREADABLE;
		cfa += 8;
		break;
	case WIRE_UNWIND_RSP_DEREF:
	case WIRE_UNWIND_RSP_DEREF8:
	case WIRE_UNWIND_RBP_DEREF:
		base = WIRE_UNWIND_RULE_KIND(rule) == WIRE_UNWIND_RBP_DEREF ? w->bp : w->sp;
		if (!w->read(w->arg, base + off, &cfa))
			return WIRE_UNWIND_END_UNREADABLE;
		if (WIRE_UNWIND_RULE_KIND(rule) == WIRE_UNWIND_RSP_DEREF8)
			cfa += 8;
		break;
	case WIRE_UNWIND_PLT:
		cfa = w->sp + 8 + ((int64_t)(w->pc & 15) >= WIRE_UNWIND_RULE_OFF(rule) ? 8 : 0);
		break;
	default: return WIRE_UNWIND_END_BAD;
	}
	if (WIRE_UNWIND_RULE_KIND(rule) == WIRE_UNWIND_RA_RDI) {
		if (!w->top)
			return WIRE_UNWIND_END_NO_TABLE;
		ra = w->reg[5 /* rdi */];
	} else {
		/* OCaml's caml_c_call pops its return address: it is still where it was. */
		if (cfa < w->sp + called && WIRE_UNWIND_RULE_KIND(rule) != WIRE_UNWIND_STACK)
			return WIRE_UNWIND_END_BAD;
		if (!w->read(w->arg, cfa - 8, &ra))
			return WIRE_UNWIND_END_UNREADABLE;
	}
	base = WIRE_UNWIND_RULE_KIND(rule) == WIRE_UNWIND_RBP_DEREF ? w->bp : cfa;
	if (rbp != WIRE_UNWIND_SAME && !w->read(w->arg, base + (int64_t)rbp * 8, &w->bp))
		return WIRE_UNWIND_END_UNREADABLE;
	w->pc = ra;
	w->sp = cfa;
	return -1;
}

uint32_t unwind_walk(const struct unwind_process *p, const struct unwind_regs *regs,
		     unwind_read_fn *read, void *arg, uint64_t *pcs, uint32_t max,
		     enum wire_unwind_end *ret_end)
{
	struct walk w = { .pc = regs->pc,
			  .sp = regs->sp,
			  .bp = regs->bp,
			  .reg = regs->reg,
			  .read = read,
			  .arg = arg,
			  .top = true };
	uint32_t n = 0;
	int end = WIRE_UNWIND_END_DEEP;

	while (n < max) {
		uint64_t at = w.pc - w.call;
		uint32_t rule = at || w.call ? 0 : WIRE_UNWIND_CALLED;
		const struct unwind_range *m = rule ? NULL : unwind_process_find(p, at);

		if (!rule && !m) {
			end = WIRE_UNWIND_END_NO_TABLE;
			/* A frame pointer that led out of the program's text was none. */
			if (!w.guess)
				pcs[n++] = w.pc;
			break;
		}
		pcs[n++] = w.pc;
		if (m && m->image)
			rule = unwind_image_rule(m->image, at - m->bias);
		end = step(&w, rule, n);
		if (end >= 0)
			break;
		/* Who begins a stack by hand lets it return to 0: fibers. */
		if (!w.pc && w.call && !w.guess) {
			end = WIRE_UNWIND_END_ROOT;
			break;
		}
		end = WIRE_UNWIND_END_DEEP;
		w.top = false;
	}
	*ret_end = (enum wire_unwind_end)end;
	return n;
}

static bool read_space(void *arg, uint64_t addr, uint64_t *ret)
{
	return space_word(arg, addr, ret);
}

uint32_t unwind_thread(const struct unwind_process *p, struct space *space,
		       const struct space_thread *t, uint64_t *pcs, uint32_t max,
		       enum wire_unwind_end *ret_end)
{
	const struct user_regs_struct *u = &t->regs;
	const struct unwind_regs regs = {
		.pc = u->rip,
		.sp = u->rsp,
		.bp = u->rbp,
		.reg = { u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi, u->rbp, u->rsp, u->r8,
			 u->r9, u->r10, u->r11, u->r12, u->r13, u->r14, u->r15 },
	};

	return unwind_walk(p, &regs, read_space, space, pcs, max, ret_end);
}

const char *unwind_end_text(enum wire_unwind_end end)
{
	static const char *const text[] = {
#define X(name, what) what,
		WIRE_UNWIND_ENDS(X)
#undef X
	};

	return (uint32_t)end < ARRAY_SIZE(text) ? text[end] : "?";
}

const char *unwind_end_name(enum wire_unwind_end end)
{
	static const char *const names[] = {
		[WIRE_UNWIND_END_ROOT] = "root",
		[WIRE_UNWIND_END_DEEP] = "deep",
		[WIRE_UNWIND_END_NO_TABLE] = "no-table",
		[WIRE_UNWIND_END_UNREADABLE] = "unreadable",
		[WIRE_UNWIND_END_BAD] = "bad",
		[WIRE_UNWIND_END_NO_USER] = "no-user",
		[WIRE_UNWIND_END_NOT_LOADED] = "not-loaded",
	};

	return (uint32_t)end < ARRAY_SIZE(names) ? names[end] : "?";
}
