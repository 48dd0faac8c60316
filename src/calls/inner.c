/* Finds the pointers that lie in memory behind parameters and results, and whose own memory is
 * shown, too: texts in structures, structures behind pointers in structures, arrays of texts. */
#include "calls/calls.h"

struct walk {
	struct calls *c;
	struct calls_function *fn;
	struct calls_inner at; /* the way to the memory that is looked at */
};

static void inner_look(struct walk *w, const struct prototype_type *t, uint32_t offset,
		       const struct prototype_type *around, uint32_t around_at);

static void add_pointer(struct walk *w, const struct prototype_type *t, uint32_t offset,
			const struct prototype_type *around, uint32_t around_at)
{
	const struct calls_inner before = w->at;

	if ((!calls_reads_text(t) && !calls_reads_memory(t)) || w->at.depth == CALLS_INNER_DEPTH ||
	    w->at.depth + 1 >= w->c->o->elements_max || w->fn->inner.n == CALLS_INNER_MAX)
		return;
	w->at.type = t;
	w->at.around = around;
	w->at.around_at = around_at;
	w->at.offsets[w->at.depth++] = offset;
	vec_push(&w->fn->inner, w->at);
	if (calls_reads_memory(t))
		inner_look(w, t->target, 0, NULL, 0);
	w->at = before;
}

/* Looks at a value at that offset of the memory. */
static void inner_look(struct walk *w, const struct prototype_type *t, uint32_t offset,
		       const struct prototype_type *around, uint32_t around_at)
{
	uint32_t n, at = 0;

	if (offset >= CALLS_MEMORY_MAX || t->lens == LENS_HIDE || t->lens == LENS_DOTS ||
	    t->lens == LENS_BITVEC)
		return;
	switch (t->kind) {
	case PROTOTYPE_POINTER: add_pointer(w, t, offset, around, around_at); break;
	case PROTOTYPE_STRUCT:
		for (uint32_t i = 0; i < t->nfields; i++) {
			at = (uint32_t)round_up(at, t->fields[i]->align);
			inner_look(w, t->fields[i], offset + at, t, offset);
			at += t->fields[i]->size;
		}
		break;
	case PROTOTYPE_ARRAY:
		n = w->c->o->elements_max;
		if (t->length.count == COUNT_NUMBER && t->length.value < n)
			n = (uint32_t)t->length.value;
		for (uint32_t i = 0; i < n && t->target->size && !prototype_is_text(t); i++)
			inner_look(w, t->target, offset + i * t->target->size, NULL, 0);
		break;
	default: break;
	}
}

void calls_find_inner(struct calls *c, struct calls_function *fn)
{
	const struct prototype *f = fn->prototype;
	struct walk w = { .c = c, .fn = fn };

	for (uint32_t i = 0; i <= f->nparams; i++) {
		const struct prototype_type *t = i < f->nparams ? f->params[i].type : f->result;

		if (i < f->nparams && calls_register(f, i) < 0)
			continue;
		w.at = (struct calls_inner){ .param = i,
					     .at_return = i == f->nparams || f->params[i].out };
		if (calls_reads_memory(t))
			inner_look(&w, t->target, 0, NULL, 0);
	}
}
