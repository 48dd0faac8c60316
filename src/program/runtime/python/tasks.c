/* Finds the tasks of asyncio: by the module asyncio.tasks, whose variables hold them all, and the
 * threads that run their loops. */
#include <errno.h>

#include "program/runtime/circle.h"
#include "program/runtime/python/python_objects.h"

enum {
	TASKS_MAX = 1 << 20,
	FRAMES_MAX = 1 << 20,
	AWAITS_MAX = 1 << 22,
	CALLBACKS_MAX = 1 << 16, /* of a task */
	CELLS_MAX = 256,
	INTERPRETERS_MAX = 256,
	THREADS_MAX = 1 << 16,
	/* Offsets that are the same in all versions. */
	MODULE_DICT = 16,
	WEAK_OBJECT = 16,
	FUTURE_LOOP = 16,
	FUTURE_CALLBACK = 24,
	FUTURE_CALLBACKS = 40,
	METHOD_SELF = 24,
	PARTIAL_ARGUMENTS = 24,
	CELL_CONTENT = 16,
	ITEMS = 16,
	LIST_ITEMS = 24,
	TUPLE_ITEMS = 24,
	INT_3_12 = 16, /* its number of digits */
	INT_DIGIT = 24,
	INT_BITS = 30,
	INT_SIZE_SHIFT = 3, /* 3.12 on */
	STATE_PENDING = 0,
};

#define ASYNC(major, minor, ...) \
	{ \
		.version = (major) << 8 | (minor), __VA_ARGS__ \
	}

static const struct python_async versions[] = {
	ASYNC(3, 8, .thread_dict = 152, .future_state = 72, .task_waiter = 104,
	      .task_coroutine = 112, .task_name = 120, .task_size = 144, .coroutine_frame = 16,
	      .frame_depth = 72, .code_bytes = 48, .function_closure = 48),
	ASYNC(3, 9, .thread_dict = 152, .future_state = 80, .task_waiter = 144,
	      .task_coroutine = 152, .task_name = 160, .task_size = 184, .coroutine_frame = 16,
	      .frame_depth = 72, .code_bytes = 48, .function_closure = 48),
	ASYNC(3, 10, .thread_dict = 152, .future_state = 88, .task_waiter = 152,
	      .task_coroutine = 160, .task_name = 168, .task_size = 192, .coroutine_frame = 16,
	      .frame_values = 64, .frame_depth = 80, .frame_state = 108, .code_bytes = 48,
	      .function_closure = 72),
	ASYNC(3, 11, .thread_dict = 128, .type_keys = 872, .future_state = 88, .task_waiter = 128,
	      .task_coroutine = 136, .task_name = 144, .task_size = 176, .coroutine_frame = 80,
	      .coroutine_state = 75, .frame_values = 72, .frame_depth = 64, .function_closure = 72),
	ASYNC(3, 12, .thread_dict = 112, .type_keys = 880, .future_state = 88, .task_waiter = 128,
	      .task_coroutine = 136, .task_name = 144, .task_size = 176, .coroutine_frame = 72,
	      .coroutine_state = 67, .frame_values = 72, .frame_depth = 64, .function_closure = 72),
	ASYNC(3, 13, .thread_loop = 304, .type_keys = 880, .future_state = 96, .task_waiter = 112,
	      .task_coroutine = 120, .task_name = 128, .task_size = 144, .coroutine_frame = 72,
	      .coroutine_state = 67, .frame_values = 72, .frame_depth = 64, .function_closure = 72),
};

struct finder {
	struct python_objects o;
	struct runtime_tasks *ret;
	struct hash tasks;       /* address of a task -> its number */
	struct hash waits;       /* address of what a task waits for -> its number + 1 */
	VEC(uint64_t) waits_for; /* of each task */
	VEC(uint32_t) waits_too; /* of each task: another one that waits for the same, + 1 */
	struct hash loops;       /* address of a loop -> the thread that runs it */
	struct hash running;     /* address of a task that its loop executes -> 1 */
	bool unlike;             /* structures are not as the layout has them */
};

static bool task_word(struct finder *f, uint64_t addr, uint64_t *ret)
{
	return python_word(&f->o, addr, ret);
}

/* The name of a task that was given none is its number. */
static const char *name_of(struct finder *f, uint64_t task)
{
	struct python *p = f->o.p;
	uint32_t digits[2];
	uint64_t name, head, n;

	if (!task_word(f, task + f->o.l->task_name, &name))
		return NULL;
	if (python_is(&f->o, name) != PYTHON_IS_INT)
		return python_is(&f->o, name) == PYTHON_IS_STR ? python_text(p, name) : NULL;
	if (!task_word(f, name + INT_3_12, &head) ||
	    !python_bytes(&f->o, name + INT_DIGIT, digits, 8) ||
	    !runtime_afford(&p->runtime, &p->budget, 32))
		return NULL;
	n = digits[0] + ((head >> INT_SIZE_SHIFT) > 1 ? (uint64_t)digits[1] << INT_BITS : 0);
	return arena_printf(&p->names, "Task-%llu", (unsigned long long)n);
}

static bool is_pending(struct finder *f, uint64_t task)
{
	uint32_t state;

	return python_bytes(&f->o, task + f->o.l->future_state, &state, 4) &&
	       state == STATE_PENDING;
}

/* Checks the layout: an object of the type has the size that the members need. A class that is
 * derived from it may have more. */
static bool is_like(struct finder *f, uint64_t task)
{
	uint64_t type, size;

	return task_word(f, task + f->o.p->layout.object_type, &type) &&
	       task_word(f, type + PYTHON_TYPE_BASIC, &size) && size >= f->o.l->task_size;
}

/* Adds a task that has not ended. */
static void see_task(void *arg, uint64_t object)
{
	struct finder *f = arg;
	bool new;

	if (python_is(&f->o, object) == PYTHON_IS_WEAK &&
	    !task_word(f, object + WEAK_OBJECT, &object))
		return;
	if (python_is(&f->o, object) != PYTHON_IS_TASK || f->ret->v.n >= TASKS_MAX)
		return;
	if (!is_like(f, object))
		f->unlike = true;
	if (f->unlike || !is_pending(f, object))
		return;
	hash_put(&f->tasks, &object, sizeof(object), &new);
	if (new)
		vec_push(&f->ret->v, (struct runtime_task){ .object = object });
}

/* Adds the current task of each loop. */
static void see_current(struct finder *f, uint64_t dict)
{
	struct python_items items;
	uint64_t loop, task;

	if (!python_dict(&f->o, dict, &items))
		return;
	for (uint32_t i = 0; i < items.n && python_item(&f->o, &items, i, &loop, &task); i++)
		if (task && f->running.n < TASKS_MAX)
			*hash_put(&f->running, &task, sizeof(task), NULL) = 1;
}

/* Adds the tasks of the module: all that a loop runs are in a WeakSet, and those that run before
 * they were scheduled (3.12) in a set. */
static void see_module(struct finder *f, uint64_t module)
{
	struct python_items names, variables;
	uint64_t dict, all, set;

	if (!task_word(f, module + MODULE_DICT, &dict) || !python_dict(&f->o, dict, &names))
		return;
	if (python_value(&f->o, &names, "_current_tasks", &dict))
		see_current(f, dict);
	if ((python_value(&f->o, &names, "_scheduled_tasks", &all) ||
	     python_value(&f->o, &names, "_all_tasks", &all)) &&
	    python_variables(&f->o, all, &variables) &&
	    python_value(&f->o, &variables, "data", &set))
		python_each_in_set(&f->o, set, see_task, f);
	if (python_value(&f->o, &names, "_eager_tasks", &set))
		python_each_in_set(&f->o, set, see_task, f);
}

/* Finds the loop that a thread runs: up to 3.12 the thread's dict has it. Returns false when it
 * runs none. */
static bool loop_of(struct finder *f, uint64_t thread, uint64_t *ret)
{
	struct python_items items;
	uint64_t dict;

	if (f->o.l->thread_loop)
		return task_word(f, thread + f->o.l->thread_loop, ret) && *ret;
	return task_word(f, thread + f->o.l->thread_dict, &dict) &&
	       python_dict(&f->o, dict, &items) &&
	       python_value(&f->o, &items, "__asyncio_running_event_loop__", ret) &&
	       (python_is(&f->o, *ret) != PYTHON_IS_LINK ||
		task_word(f, *ret + PYTHON_HEAD_WORD, ret));
}

static void see_threads(struct finder *f, uint64_t interpreter)
{
	const struct python_layout *l = &f->o.p->layout;
	uint64_t thread, loop, id;
	struct circle circle = { 0 };

	if (!task_word(f, interpreter + l->interpreter_threads, &thread))
		return;
	for (uint32_t i = 0; thread && !circle_closed(&circle, thread) && i < THREADS_MAX; i++) {
		if (loop_of(f, thread, &loop) && task_word(f, thread + l->thread_id, &id))
			*hash_put(&f->loops, &loop, sizeof(loop), NULL) = id;
		if (!task_word(f, thread + l->thread_next, &thread))
			return;
	}
}

static void see_interpreter(struct finder *f, uint64_t interpreter)
{
	struct python_items modules;
	uint64_t dict, module;

	if (!task_word(f, interpreter + f->o.p->layout.interpreter_modules, &dict) || !dict)
		return; /* Python begins or ends */
	if (!python_dict(&f->o, dict, &modules))
		f->unlike = true;
	else if (python_value(&f->o, &modules, "asyncio.tasks", &module))
		see_module(f, module);
	if (f->ret->v.n)
		see_threads(f, interpreter);
}

/* Adds the frames of a task that a thread executes: those of the thread, as far as the coroutine
 * that is the task's. */
static void add_running(struct finder *f, struct runtime_task *t, uint64_t frame)
{
	runtime_frame_vec v = { 0 };
	uint32_t n = 0;

	python_frames_of(f->o.p, t->thread, &v);
	while (n < v.n && v.v[n].frame != frame)
		n++;
	for (uint32_t i = 0; n < v.n && i <= n; i++)
		vec_push(&f->ret->frames, v.v[i]);
	vec_fini(&v);
}

static const char *type_name(struct finder *f, uint64_t object)
{
	struct python *p = f->o.p;
	char name[PYTHON_NAME_MAX];

	if (!python_type_name(&f->o, object, name) ||
	    !runtime_afford(&p->runtime, &p->budget, sizeof(name)))
		return "?";
	for (char *s = name; *s; s++)
		if (*s < ' ' || *s == 0x7f)
			*s = '?';
	return arena_strdup(&p->names, name);
}

/* Reads what a task executes and waits for. */
static void read_task(struct finder *f, struct runtime_task *t)
{
	uint64_t loop, coroutine, end, frame, waiter = 0, *thread, none = 0;

	t->name = name_of(f, t->object);
	if (task_word(f, t->object + FUTURE_LOOP, &loop)) {
		thread = hash_get(&f->loops, &loop, sizeof(loop));
		t->thread = thread ? *thread : 0;
	}
	t->frame = f->ret->frames.n;
	t->runs = t->thread && hash_get(&f->running, &t->object, sizeof(t->object));
	if (f->ret->frames.n < FRAMES_MAX &&
	    task_word(f, t->object + f->o.l->task_coroutine, &coroutine)) {
		python_coroutine(&f->o, coroutine, &f->ret->frames, &end, &frame);
		if (frame && t->thread)
			add_running(f, t, frame);
	}
	t->nframes = f->ret->frames.n - t->frame;
	task_word(f, t->object + f->o.l->task_waiter, &waiter);
	vec_push(&f->waits_for, waiter);
	if (waiter && !t->runs)
		t->waits = type_name(f, waiter);
	vec_push(&f->waits_too, (uint32_t)none);
	if (waiter) {
		uint64_t *first = hash_put(&f->waits, &waiter, sizeof(waiter), NULL);

		*vec_last(&f->waits_too) = (uint32_t)*first;
		*first = f->waits_for.n;
	}
}

static void add_await(struct finder *f, uint32_t by, uint32_t task)
{
	if (f->ret->awaits.n < AWAITS_MAX)
		vec_push(&f->ret->awaits, (struct runtime_await){ by, task });
}

/* The tasks that wait for this future wait for the task, whose end it hears of. */
static void add_awaits(struct finder *f, uint32_t task, uint64_t future)
{
	const uint64_t *first = future ? hash_get(&f->waits, &future, sizeof(future)) : NULL;

	for (uint64_t by = first ? *first : 0; by && f->ret->awaits.n < AWAITS_MAX;
	     by = f->waits_too.v[by - 1])
		add_await(f, (uint32_t)by - 1, task);
}

/* n: how many items a tuple or list has; *ret_items: the address of the first. */
static uint64_t sequence(struct finder *f, uint64_t object, uint64_t *ret_items)
{
	enum python_is is = python_is(&f->o, object);
	uint64_t n = 0;

	if ((is != PYTHON_IS_TUPLE && is != PYTHON_IS_LIST) || !task_word(f, object + ITEMS, &n))
		return 0;
	*ret_items = object + TUPLE_ITEMS;
	if (is == PYTHON_IS_LIST && !task_word(f, object + LIST_ITEMS, ret_items))
		return 0;
	return n;
}

/* Follows what is called when a task ends, to a future that it has and that another task waits
 * for: gather(), wait(), shield() and wait_for() keep it in a variable of an inner function or in
 * an argument, a TaskGroup in its variable. */
static void follow_callback(struct finder *f, uint32_t task, uint64_t callback)
{
	enum python_is is = python_is(&f->o, callback);
	uint64_t held = 0, items = 0, value, n;
	struct python_items variables;

	if (is == PYTHON_IS_METHOD) {
		if (task_word(f, callback + METHOD_SELF, &held) &&
		    python_is(&f->o, held) == PYTHON_IS_GROUP &&
		    python_variables(&f->o, held, &variables) &&
		    python_value(&f->o, &variables, "_on_completed_fut", &value))
			add_awaits(f, task, value);
		return;
	}
	if (!task_word(f,
		       callback + (is == PYTHON_IS_FUNCTION ? f->o.l->function_closure
							    : (uint32_t)PARTIAL_ARGUMENTS),
		       &held))
		return;
	if (is != PYTHON_IS_FUNCTION && is != PYTHON_IS_PARTIAL)
		return;
	n = sequence(f, held, &items);
	for (uint64_t i = 0; i < n && i < CELLS_MAX; i++) {
		if (!task_word(f, items + i * 8, &value))
			return;
		if (is == PYTHON_IS_FUNCTION && !task_word(f, value + CELL_CONTENT, &value))
			return;
		add_awaits(f, task, value);
	}
}

/* Each of the others is a tuple of the callback and a context. */
static void follow_callbacks(struct finder *f, uint32_t task)
{
	const uint64_t object = f->ret->v.v[task].object;
	uint64_t callback, list, items = 0, tuple, n;

	if (task_word(f, object + FUTURE_CALLBACK, &callback))
		follow_callback(f, task, callback);
	if (!task_word(f, object + FUTURE_CALLBACKS, &list))
		return;
	n = sequence(f, list, &items);
	for (uint64_t i = 0; i < n && i < CALLBACKS_MAX; i++)
		if (!task_word(f, items + i * 8, &tuple) ||
		    !task_word(f, tuple + TUPLE_ITEMS, &callback))
			return;
		else
			follow_callback(f, task, callback);
}

static void find_awaits(struct finder *f)
{
	for (uint32_t i = 0; i < f->ret->v.n; i++) {
		const uint64_t *task =
			hash_get(&f->tasks, &f->waits_for.v[i], sizeof(f->waits_for.v[i]));

		if (task)
			add_await(f, i, (uint32_t)*task);
		follow_callbacks(f, i);
	}
}

static int compare_objects(const void *a, const void *b)
{
	const struct runtime_task *x = a, *y = b;

	return COMPARE(x->object, y->object);
}

/* Numbers the tasks by their addresses: a set has them in any order, and the reader keeps only some
 * parts of the memory. */
static void sort_tasks(struct finder *f)
{
	if (f->ret->v.n)
		qsort(f->ret->v.v, f->ret->v.n, sizeof(*f->ret->v.v), compare_objects);
	for (uint32_t i = 0; i < f->ret->v.n; i++)
		*hash_put(&f->tasks, &f->ret->v.v[i].object, sizeof(uint64_t), NULL) = i;
}

static void find_all_tasks(struct finder *f)
{
	struct python *p = f->o.p;
	struct circle circle = { 0 };
	uint64_t interpreter;

	if (!task_word(f, p->interpreters, &interpreter))
		return;
	for (uint32_t i = 0;
	     interpreter && !circle_closed(&circle, interpreter) && i < INTERPRETERS_MAX; i++) {
		see_interpreter(f, interpreter);
		if (!task_word(f, interpreter + p->layout.interpreter_next, &interpreter))
			break;
	}
	sort_tasks(f);
	for (uint32_t i = 0; i < f->ret->v.n; i++)
		read_task(f, &f->ret->v.v[i]);
	find_awaits(f);
}

struct err *python_tasks(struct runtime *r, struct runtime_tasks *ret)
{
	struct python *p = (struct python *)r;
	struct finder f = { .o = { .p = p }, .ret = ret };

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].version == p->layout.version)
			f.o.l = &versions[i];
	if (!f.o.l)
		return err_new(ENOTSUP,
			       "%s: the tasks of asyncio in Python %s are not known to "
			       "descry: it knows those of 3.8 to 3.13",
			       r->space->name, r->version);
	find_all_tasks(&f);
	python_reader_fini(&f.o);
	hash_fini(&f.tasks);
	hash_fini(&f.waits);
	hash_fini(&f.loops);
	hash_fini(&f.running);
	vec_fini(&f.waits_for);
	vec_fini(&f.waits_too);
	if (!f.unlike)
		return NULL;
	return err_new(ENOTSUP, "%s: the tasks of asyncio in Python %s are not as they should be",
		       r->space->name, r->version);
}
