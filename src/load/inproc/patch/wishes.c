/* Finds the switches by which a program checks that its probes are wanted. */
#include "load/inproc/patch/plan_private.h"

/* A switch, or a list of questions. */
struct wish_key {
	uint64_t place; /* link-time address; of a list its address here */
	uint32_t module, is_list;
};

static bool wish_is_new(struct wishes *w, uint32_t module, uint64_t place, bool is_list)
{
	const struct wish_key key = { place, module, is_list };
	bool is_new;

	w->looked++;
	hash_put(&w->seen, &key, sizeof(key), &is_new);
	return is_new;
}

static void wish_add(struct wishes *w, struct inproc_process *p, const struct inproc_semaphore *s)
{
	if (wish_is_new(w, s->module, s->addr, false))
		vec_push(&p->semaphores, *s);
}

void wishes_add(struct wishes *w, struct inproc_process *p, uint32_t module, const struct probe *pr)
{
	struct inproc_semaphore s = { .module = module };

	if (pr->semaphore &&
	    object_offset_to_addr(p->modules.v[module].object, pr->semaphore, &s.addr))
		wish_add(w, p, &s);
	if (pr->flag)
		wish_add(w, p,
			 &(struct inproc_semaphore){
				 .module = module, .addr = pr->flag, .is_bool = true });
	/* All probes of a name have the same list, of any length. */
	if (!pr->nasks || !wish_is_new(w, module, (uintptr_t)pr->asks, true))
		return;
	for (uint32_t i = 0; i < pr->nasks; i++) {
		s.question = pr->asks[i];
		s.addr = pr->asks[i]->addr;
		wish_add(w, p, &s);
	}
}

void wishes_fini(struct wishes *w)
{
	hash_fini(&w->seen);
}
