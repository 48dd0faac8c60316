/* Puts the tasks of an event loop in order, so that each stands behind those that it waits for. */
#define _GNU_SOURCE /* strverscmp(), qsort_r() */
#include "program/runtime/runtime.h"

#include <errno.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
	const struct runtime_task *x = a, *y = b;
	int c = COMPARE(y->runs, x->runs);

	c = c ?: strverscmp(x->name ?: "", y->name ?: "");
	return c ?: COMPARE(x->object, y->object);
}

static int compare_awaits(const void *a, const void *b)
{
	const struct runtime_await *x = a, *y = b;

	return COMPARE(x->by, y->by) ?: COMPARE(x->task, y->task);
}

/* Sorts awaits and drops the ones that are equal to others. Sets await and nawaits of the tasks. */
static void sort_awaits(struct runtime_tasks *t)
{
	uint32_t n = 0;

	if (t->awaits.n)
		qsort(t->awaits.v, t->awaits.n, sizeof(*t->awaits.v), compare_awaits);
	for (uint32_t i = 0; i < t->awaits.n; i++)
		if (!n || compare_awaits(&t->awaits.v[n - 1], &t->awaits.v[i]))
			t->awaits.v[n++] = t->awaits.v[i];
	t->awaits.n = n;
	for (uint32_t i = 0; i < t->v.n; i++)
		t->v.v[i].await = t->v.v[i].nawaits = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct runtime_task *by = &t->v.v[t->awaits.v[i].by];

		if (!by->nawaits++)
			by->await = i;
	}
}

/* Replaces the numbers of tasks in awaits. */
static void renumber(struct runtime_tasks *t, const uint32_t *number)
{
	for (uint32_t i = 0; i < t->awaits.n; i++) {
		t->awaits.v[i].by = number[t->awaits.v[i].by];
		t->awaits.v[i].task = number[t->awaits.v[i].task];
	}
}

/* Sorts the tasks: the ones that run first, the others by name. The index of a task before is the
 * word `await`. */
static void sort_names(struct runtime_tasks *t)
{
	uint32_t *number = xcalloc(t->v.n + 1ul, sizeof(*number));

	for (uint32_t i = 0; i < t->v.n; i++)
		t->v.v[i].await = i;
	if (t->v.n)
		qsort(t->v.v, t->v.n, sizeof(*t->v.v), compare_names);
	for (uint32_t i = 0; i < t->v.n; i++)
		number[t->v.v[i].await] = i;
	renumber(t, number);
	free(number);
}

/* The tasks that wait for each task: those of task i are list[first[i]] to list[first[i + 1]]. */
struct waiters {
	uint32_t *first, *list;
	uint32_t *left; /* of each task: tasks that it waits for and that have no place yet */
};

static void waiters_init(struct waiters *w, const struct runtime_tasks *t)
{
	w->first = xcalloc(t->v.n + 2ul, sizeof(*w->first));
	w->list = xcalloc(t->awaits.n + 1ul, sizeof(*w->list));
	w->left = xcalloc(t->v.n + 1ul, sizeof(*w->left));
	for (uint32_t i = 0; i < t->awaits.n; i++) {
		w->first[t->awaits.v[i].task + 2]++;
		w->left[t->awaits.v[i].by]++;
	}
	for (uint32_t i = 2; i < t->v.n + 2; i++)
		w->first[i] += w->first[i - 1];
	for (uint32_t i = 0; i < t->awaits.n; i++)
		w->list[w->first[t->awaits.v[i].task + 1]++] = t->awaits.v[i].by;
}

static void waiters_fini(struct waiters *w)
{
	free(w->first);
	free(w->list);
	free(w->left);
}

/* Gives each task its place: a task that waits for one task comes next to it, and one that waits
 * for several comes next to the last of them. Tasks that wait for each other come at the end. */
static void place_tasks(struct runtime_tasks *t)
{
	uint32_t *number = xcalloc(t->v.n + 1ul, sizeof(*number)), n = 0;
	struct runtime_task *sorted = xcalloc(t->v.n + 1ul, sizeof(*sorted));
	VEC(uint32_t) next = { 0 };
	struct waiters w;

	waiters_init(&w, t);
	for (uint32_t circles = 0; circles < 2; circles++)
		for (uint32_t i = 0; i < t->v.n; i++) {
			if (number[i] || (!circles && w.left[i]))
				continue;
			vec_push(&next, i);
			while (next.n) {
				uint32_t k = next.v[--next.n];

				if (number[k])
					continue;
				sorted[n++] = t->v.v[k];
				number[k] = n;
				for (uint32_t j = w.first[k + 1]; j-- > w.first[k];)
					if (!--w.left[w.list[j]])
						vec_push(&next, w.list[j]);
			}
		}
	for (uint32_t i = 0; i < t->v.n; i++)
		number[i]--;
	renumber(t, number);
	memcpy(t->v.v, sorted, n * sizeof(*sorted));
	waiters_fini(&w);
	vec_fini(&next);
	free(sorted);
	free(number);
}

static int compare_threads(const void *a, const void *b, void *arg)
{
	const struct runtime_tasks *t = arg;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return COMPARE(t->v.v[x].thread, t->v.v[y].thread) ?: COMPARE(x, y);
}

static void sort_by_thread(struct runtime_tasks *t)
{
	t->by_thread.n = 0;
	for (uint32_t i = 0; i < t->v.n; i++)
		vec_push(&t->by_thread, i);
	qsort_r(t->by_thread.v, t->by_thread.n, sizeof(*t->by_thread.v), compare_threads, t);
}

const uint32_t *runtime_tasks_take(struct runtime_tasks *t, uint64_t thread, uint32_t *ret_n)
{
	uint32_t low = 0, high = t->by_thread.n, end;

	while (low < high) {
		const uint32_t at = low + (high - low) / 2;

		if (t->v.v[t->by_thread.v[at]].thread < thread)
			low = at + 1;
		else
			high = at;
	}
	for (end = low; thread && end < t->by_thread.n; end++) {
		struct runtime_task *task = &t->v.v[t->by_thread.v[end]];

		if (task->thread != thread || task->taken)
			break;
		task->taken = true;
	}
	*ret_n = end - low;
	return t->by_thread.v + low;
}

struct err *runtime_tasks(struct runtime *r, struct runtime_tasks *ret)
{
	struct err *e;

	if (!r->type->tasks)
		return err_new(ENOTSUP, "%s: descry knows no tasks of this language: %s",
			       r->space->name, r->type->name);
	e = r->type->tasks(r, ret);
	if (e)
		runtime_tasks_fini(ret);
	if (e || !ret->v.n)
		return e;
	sort_names(ret);
	sort_awaits(ret);
	place_tasks(ret);
	sort_awaits(ret);
	sort_by_thread(ret);
	return NULL;
}

void runtime_tasks_fini(struct runtime_tasks *t)
{
	vec_fini(&t->v);
	vec_fini(&t->frames);
	vec_fini(&t->awaits);
	vec_fini(&t->by_thread);
}
