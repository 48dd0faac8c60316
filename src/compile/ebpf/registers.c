/* Allocates registers and the frame by linear scan (Poletto & Sarkar, 1999). Control flow only goes
 * forward. So a register's life is [first definition, last use] in the order of the text. A
 * register that is defined before a loop and used in it lives to the end of the loop. */
#include "compile/ebpf/ebpf.h"

struct life {
	uint32_t reg, start, end, uses;
	bool crosses; /* a call lies inside the life */
	bool used;    /* is read at all: a result that is never read gets no place */
};

static void use(struct life *lives, struct ir_val v, uint32_t i)
{
	if (v.kind == IR_REG) {
		lives[v.reg].end = i;
		lives[v.reg].uses++;
		lives[v.reg].used = true;
	}
}

static bool is_call(const struct ir_ins *ins)
{
	return ins->op == IR_CALL || ins->op == IR_ROUTINE;
}

/* Extends the life of each register that is defined before a loop and used in it, because the next
 * round needs the value again. Loops come in the order of their ends, so outer loops are extended
 * last. */
static void extend_over_loops(const struct ir_fn *f, struct life *lives)
{
	uint32_t *label = xcalloc(f->nlabels + 1, sizeof(*label));

	for (uint32_t i = 0; i < f->ins.n; i++) {
		const struct ir_ins *ins = &f->ins.v[i];

		if (ins->op == IR_LABEL)
			label[ins->index] = i;
		if (ins->op != IR_LOOP)
			continue;
		for (uint32_t r = 1; r <= f->nregs; r++)
			if (lives[r].reg && lives[r].start < label[ins->index] &&
			    lives[r].end > label[ins->index] && lives[r].end < i)
				lives[r].end = i;
	}
	free(label);
}

static void find_lives(const struct ir_fn *f, struct life *lives)
{
	uint32_t *calls = xcalloc(f->ins.n + 1, sizeof(*calls)); /* calls before i */

	for (uint32_t i = 0; i < f->ins.n; i++) {
		const struct ir_ins *ins = &f->ins.v[i];

		calls[i + 1] = calls[i] + is_call(ins);
		use(lives, ins->a, i);
		use(lives, ins->b, i);
		for (uint32_t k = 0; k < ins->nargs; k++)
			use(lives, ins->args[k], i);
		if (ins->d) {
			struct life *l = &lives[ins->d];

			if (!l->reg) {
				l->reg = ins->d;
				l->start = i;
			}
			l->end = i;
			l->uses++;
			if (ins->op == IR_ARG)
				l->crosses = true; /* the call's other arguments are in r1-r5 */
		}
	}
	extend_over_loops(f, lives);
	/* A call at `start` defines the register and a call at `end` reads it. Neither lies inside
	 * its life. */
	for (uint32_t r = 1; r <= f->nregs; r++)
		if (lives[r].reg && lives[r].end > lives[r].start &&
		    calls[lives[r].end] > calls[lives[r].start + 1])
			lives[r].crosses = true;
	free(calls);
}

static bool is_constant(const struct ir_ins *ins)
{
	return ins->op == IR_STACK || ins->op == IR_MAP || ins->op == IR_MAP_VALUE;
}

/* Finds constants with one definition that only one call's argument uses. */
static void find_late(const struct ir_fn *f, const struct life *lives, uint32_t *ret)
{
	for (uint32_t i = 0; i < f->ins.n; i++) {
		const struct ir_ins *ins = &f->ins.v[i];

		if (ins->d && is_constant(ins) && lives[ins->d].uses == 2)
			ret[ins->d] = i + 1;
	}
	for (uint32_t i = 0; i < f->ins.n; i++) {
		const struct ir_ins *ins = &f->ins.v[i];

		if (ins->a.kind == IR_REG)
			ret[ins->a.reg] = 0;
		if (ins->b.kind == IR_REG)
			ret[ins->b.reg] = 0;
	}
}

static int alloc_by_start(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1) : (x->reg < y->reg ? -1 : 1);
}

/* Returns true when a has more uses per instruction of its life than b. The denser life keeps its
 * register. */
static bool denser(const struct life *a, const struct life *b)
{
	return (uint64_t)a->uses * (b->end - b->start + 1) >
	       (uint64_t)b->uses * (a->end - a->start + 1);
}

static int first_free(struct life *const *held, uint32_t start, bool crosses)
{
	static const int8_t order_short[] = { 1, 2, 3, 4, 6, 7, 8, 9, 0 },
			    order_long[] = { 6, 7, 8, 9, 0 };

	for (const int8_t *r = crosses ? order_long : order_short; *r; r++)
		if (!held[*r] || held[*r]->end <= start)
			return *r;
	return 0;
}

/* Returns the machine register of the sparsest life if it is sparser than l, else 0. */
static int victim(struct life *const *held, const struct life *l)
{
	int best = 0;

	for (int r = l->crosses ? 6 : 1; r <= 9; r++)
		if (r != 5 && held[r] && denser(best ? held[best] : l, held[r]))
			best = r;
	return best;
}

/* The words of the frame below r10. A word is free again after instruction `end`. */
struct slots {
	VEC(uint32_t) end;
};

static int16_t take_slot(struct slots *s, uint32_t start, uint32_t end, uint32_t words)
{
	for (uint32_t i = 0; i + words <= s->end.n; i++) {
		uint32_t k = 0;

		while (k < words && s->end.v[i + k] < start)
			k++;
		if (k < words)
			continue;
		for (k = 0; k < words; k++)
			s->end.v[i + k] = end;
		return (int16_t)(-8 * (int)(i + words));
	}
	/* Add words at the deep end. Use the free words at the end of the list too. */
	uint32_t n = s->end.n;

	while (n > 0 && s->end.v[n - 1] < start && s->end.n - n + 1 < words)
		n--;
	for (uint32_t k = 0; k < words; k++) {
		if (n + k < s->end.n)
			s->end.v[n + k] = end;
		else
			vec_push(&s->end, end);
	}
	return (int16_t)(-8 * (int)(n + words));
}

struct object_life {
	uint32_t start, end, index;
};

static int object_by_start(const void *a, const void *b)
{
	const struct object_life *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Gives each stack object a place. An object lives from its first mention to its last, or to the
 * last use of its address. */
static void place_objects(const struct ir_fn *f, const struct life *lives, struct slots *slots,
			  int16_t *ret)
{
	struct object_life *o = xcalloc(f->objects.n + 1, sizeof(*o));
	uint32_t *label = xcalloc(f->nlabels + 1, sizeof(*label));
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->objects.n; i++)
		o[i] = (struct object_life){ UINT32_MAX, 0, i };
	for (uint32_t i = 0; i < f->ins.n; i++) {
		const struct ir_ins *ins = &f->ins.v[i];
		struct object_life *l = &o[ins->index];

		if (ins->op != IR_STACK && ins->op != IR_LOAD_STACK && ins->op != IR_STORE_STACK)
			continue;
		if (l->start == UINT32_MAX)
			l->start = i;
		if (l->end < i)
			l->end = i;
		if (ins->op == IR_STACK && l->end < lives[ins->d].end)
			l->end = lives[ins->d].end;
	}
	for (uint32_t i = 0; i < f->ins.n; i++) {
		if (f->ins.v[i].op == IR_LABEL)
			label[f->ins.v[i].index] = i;
		if (f->ins.v[i].op != IR_LOOP)
			continue;
		for (uint32_t k = 0; k < f->objects.n; k++)
			if (o[k].start < label[f->ins.v[i].index] &&
			    o[k].end > label[f->ins.v[i].index] && o[k].end < i)
				o[k].end = i;
	}
	free(label);
	for (uint32_t i = 0; i < f->objects.n; i++)
		if (o[i].start != UINT32_MAX)
			o[n++] = o[i];
	qsort(o, n, sizeof(*o), object_by_start);
	for (uint32_t i = 0; i < n; i++)
		ret[o[i].index] =
			take_slot(slots, o[i].start, o[i].end, f->objects.v[o[i].index].size / 8);
	free(o);
}

void ebpf_allocate(const struct ir_fn *f, struct ebpf_frame *ret)
{
	struct life *lives = xcalloc(f->nregs + 1, sizeof(*lives)), *order, *held[10] = { NULL };
	struct slots slots = { 0 };
	uint32_t n = 0;

	ret->regs = xcalloc(f->nregs + 1, sizeof(*ret->regs));
	ret->objects = xcalloc(f->objects.n + 1, sizeof(*ret->objects));
	ret->late = xcalloc(f->nregs + 1, sizeof(*ret->late));
	find_lives(f, lives);
	find_late(f, lives, ret->late);
	order = xcalloc(f->nregs + 1, sizeof(*order));
	for (uint32_t r = 1; r <= f->nregs; r++)
		if (lives[r].used && !ret->late[r])
			order[n++] = lives[r];
	qsort(order, n, sizeof(*order), alloc_by_start);
	for (uint32_t i = 0; i < n; i++) {
		struct life *l = &order[i];
		int r = first_free(held, l->start, l->crosses);

		if (!r && (r = victim(held, l)))
			ret->regs[held[r]->reg].reg = 0;
		if (r) {
			held[r] = l;
			ret->regs[l->reg].reg = (int8_t)r;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		if (!ret->regs[order[i].reg].reg)
			ret->regs[order[i].reg].slot =
				take_slot(&slots, order[i].start, order[i].end, 1);
	place_objects(f, lives, &slots, ret->objects);
	ret->size = slots.end.n * 8;
	vec_fini(&slots.end);
	free(order);
	free(lives);
}

void ebpf_frame_fini(struct ebpf_frame *fr)
{
	free(fr->regs);
	free(fr->objects);
	free(fr->late);
}
