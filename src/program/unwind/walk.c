/* Walks a stack by the tables of a process, by the steps of wire/step.h. */
#include "program/unwind/unwind.h"

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

struct unwind_state {
	u64 pc, sp, bp;
	u64 start, size;
	u64 n, end;
	bool call, guess, fresh;
	u64 word, pair[2];
	const struct unwind_range *range; /* the mapping found last */
};

struct frames {
	uint64_t *pc;
};

struct unwind_walk {
	struct unwind_state *s;
	const struct frames *dst;
	uint32_t max;
	const struct unwind_process *process;
	const uint64_t *reg;
	unwind_read_fn *read;
	void *arg;
};

#define INLINE static inline
#define CALLBACK static long
#define UNWIND_FRAMES(w) (w)->max
#define UNWIND_USER(w, dst, size, addr) read_words(w, dst, (size) / 8, addr)
#define UNWIND_REGISTER(w, number) ((w)->s->word = (w)->reg[number], 0)
#define UNWIND_KNOWN(w, at) 0u

static int read_words(const struct unwind_walk *w, uint64_t *dst, uint32_t n, uint64_t addr)
{
	for (uint32_t i = 0; i < n; i++)
		if (!w->read(w->arg, addr + i * 8, &dst[i]))
			return -1;
	return 0;
}

static bool unwind_mapping(struct unwind_walk *w, u64 at)
{
	const struct unwind_range *r = unwind_process_find(w->process, at);

	w->s->range = r;
	w->s->start = r ? r->start : 0;
	w->s->size = r ? r->end - r->start : 0;
	return r;
}

static u32 unwind_find_rule(const struct unwind_walk *w, u64 at)
{
	const struct unwind_range *r = w->s->range;

	return r && r->image ? unwind_image_rule(r->image, at - r->bias) : 0;
}

#include "wire/step.h"

/* Steps through code for which no file has tables. Returns false when the frame is not of such
 * code, or the walk ends there. */
static bool step_code(struct unwind_walk *w, uint32_t i, bool *first, bool *stop)
{
	const struct unwind_code *code = &w->process->code;
	struct unwind_state *s = w->s;
	struct unwind_cursor c = {
		.pc = s->pc, .sp = s->sp, .bp = s->bp, .called = s->call, .first = *first, .index = i
	};

	if (!code->step || !unwind_mapping(w, s->pc - s->call) ||
	    unwind_find_rule(w, s->pc - s->call))
		return false;
	if (!code->step(code->arg, &c))
		return false;
	*first = false;
	w->dst->pc[i] = s->pc;
	s->n = i + 1;
	*stop = c.sp <= s->sp;
	if (*stop) {
		s->end = WIRE_UNWIND_END_NO_TABLE;
		return false;
	}
	s->pc = c.pc;
	s->sp = c.sp;
	s->bp = c.bp;
	s->call = true;
	s->guess = false;
	return true;
}

uint32_t unwind_walk(const struct unwind_process *p, const struct unwind_regs *regs,
		     unwind_read_fn *read, void *arg, uint64_t *pcs, uint64_t *sps, uint32_t max,
		     enum wire_unwind_end *ret_end)
{
	const struct frames frames = { pcs };
	struct unwind_state s = {
		.pc = regs->pc, .sp = regs->sp, .bp = regs->bp, .end = WIRE_UNWIND_END_DEEP
	};
	struct unwind_walk w = { .s = &s,
				 .dst = &frames,
				 .max = max,
				 .process = p,
				 .reg = regs->reg,
				 .read = read,
				 .arg = arg };
	bool first = true, stop = false;

	for (uint32_t i = 0; i < max; i++) {
		if (sps)
			sps[i] = s.sp;
		if (step_code(&w, i, &first, &stop))
			continue;
		if (stop)
			break;
		if (unwind_frame(i, &w))
			break;
	}
	*ret_end = (enum wire_unwind_end)s.end;
	return (uint32_t)s.n;
}

static bool read_space(void *arg, uint64_t addr, uint64_t *ret)
{
	return space_word(arg, addr, ret);
}

uint32_t unwind_thread(const struct unwind_process *p, struct space *space,
		       const struct space_thread *t, uint64_t *pcs, uint64_t *sps, uint32_t max,
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

	return unwind_walk(p, &regs, read_space, space, pcs, sps, max, ret_end);
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
