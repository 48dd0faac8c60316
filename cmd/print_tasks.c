/* Prints the tasks of event loops, below the thread that runs their loop. */
#include "print_tasks.h"

#include "render/render.h"

enum { NAMED_MAX = 8 /* tasks that another one waits for, by their names */ };

static const char *name_of(const struct runtime_task *t)
{
	return t->name ?: "?";
}

void print_task_state(const struct runtime_tasks *all, const struct runtime_task *t, struct out *o)
{
	const struct runtime_await *a = all->awaits.v + t->await;

	if (t->runs) {
		out_str(o, ", runs");
		return;
	}
	if (!t->waits) {
		out_str(o, ", ready to run");
		return;
	}
	out_str(o, ", waits for ");
	if (!t->nawaits)
		out_str(o, t->waits);
	for (uint32_t i = 0; i < t->nawaits && i < NAMED_MAX; i++) {
		if (i)
			out_str(o, i + 1 == t->nawaits ? " and " : ", ");
		out_str(o, name_of(&all->v.v[a[i].task]));
	}
	if (t->nawaits > NAMED_MAX)
		out_printf(o, " and %u others", t->nawaits - NAMED_MAX);
}

static void print_one(const struct runtime_tasks *all, const struct runtime_task *t,
		      struct print_tasks *how)
{
	const struct runtime_stack stack = { .frames = all->frames.v + t->frame,
					     .nframes = t->nframes,
					     .language = how->language };
	runtime_merged_vec merged = { 0 };

	out_printf(how->out, "    task %s", name_of(t));
	print_task_state(all, t, how->out);
	out_char(how->out, '\n');
	for (uint32_t i = 0; i < t->nframes; i++)
		vec_push(&merged, (struct runtime_merged){ true, i });
	if (merged.n)
		stack_print_walk(how->sink, how->out, how->pid, &stack, &merged, 0, false);
	vec_fini(&merged);
}

void print_tasks(struct runtime_tasks *all, uint64_t thread, struct print_tasks *how)
{
	uint32_t n;
	const uint32_t *its = runtime_tasks_take(all, thread, &n);

	for (uint32_t i = 0; i < n; i++)
		print_one(all, &all->v.v[its[i]], how);
}

void print_tasks_left(const struct runtime_tasks *all, struct print_tasks *how)
{
	bool any = false;

	for (uint32_t i = 0; i < all->v.n; i++) {
		if (all->v.v[i].taken)
			continue;
		if (!any)
			out_str(how->out, "  tasks of loops that no thread runs\n");
		any = true;
		print_one(all, &all->v.v[i], how);
	}
}
