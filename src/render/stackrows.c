#include "render/stackrows.h"

/* A program counter, which occurs in many stacks. */
struct pc_key {
	uint64_t pc;
	uint32_t pid;
	uint8_t user, called, pad[2];
};

static bool is_stack(const struct field *f, bool user)
{
	return user ? stack_is_user(f) : f->kind == FIELD_KSTACKID || f->kind == FIELD_KSTACK;
}

bool stackrows_has_stack(const struct agg *agg)
{
	for (uint32_t i = 0; i < agg->nkeys; i++)
		if (is_stack(&agg->keys[i], false) || is_stack(&agg->keys[i], true))
			return true;
	return false;
}

static bool take_pc(struct stackrows *r, bool user, uint32_t pid, uint64_t pc, bool called)
{
	struct pc_key key = { .pc = pc, .pid = pid, .user = user, .called = called };
	uint64_t *at = hash_put(&r->pcs, &key, sizeof(key), NULL);
	struct stackrows_known *f;
	uint32_t from = r->ids.n;

	if (*at) {
		f = &r->known.v[*at - 1];
		for (uint32_t i = 0; i < f->n; i++)
			vec_push(&r->ids, r->known_ids.v[f->first + i]);
		return f->calls;
	}
	f = vec_add(&r->known);
	*at = r->known.n;
	f->calls = stack_frame(r->sink, user, pid, pc, called, r->name, r->arg);
	f->first = r->known_ids.n;
	f->n = r->ids.n - from;
	for (uint32_t i = from; i < r->ids.n; i++)
		vec_push(&r->known_ids, r->ids.v[i]);
	return f->calls;
}

static void take_stack(struct stackrows *r, const struct field *f, const uint8_t *key)
{
	uint64_t pcs[STACK_MAX];
	uint32_t pid, n = stack_frames(r->sink, f, key, pcs, STACK_MAX, &pid);
	bool user = stack_is_user(f), called = false;

	for (uint32_t i = 0; i < n; i++)
		called = take_pc(r, user, pid, pcs[i], called);
	if (user && n)
		stack_finish(r->sink, f, key, pid, pcs[n - 1], r->name, r->arg);
}

void stackrows_take(struct stackrows *r, const struct agg *agg, const uint8_t *key)
{
	for (int user = 0; user < 2; user++)
		for (uint32_t i = 0; i < agg->nkeys; i++)
			if (is_stack(&agg->keys[i], user))
				take_stack(r, &agg->keys[i], key);
}

void stackrows_forget(struct stackrows *r)
{
	hash_fini(&r->pcs);
	r->known.n = 0;
	r->known_ids.n = 0;
}

void stackrows_fini(struct stackrows *r)
{
	stackrows_forget(r);
	vec_fini(&r->known);
	vec_fini(&r->known_ids);
	vec_fini(&r->ids);
}

uint32_t stackrows_frame(struct stacktree *t, enum frame_kind kind, struct out *text)
{
	for (size_t i = 0; i < text->n; i++)
		if (text->v[i] == ';')
			text->v[i] = ':';
		else if ((uint8_t)text->v[i] < ' ')
			text->v[i] = '?';
	return stacktree_frame(t, kind, text->v, text->n);
}

enum frame_kind stackrows_kind(enum frame_kind kind, bool kernel, bool jit)
{
	bool hidden = (kind == FRAME_KERNEL && !kernel) ||
		      ((kind == FRAME_JIT || frame_is_language(kind)) && !jit);

	return hidden ? FRAME_NATIVE : kind;
}
