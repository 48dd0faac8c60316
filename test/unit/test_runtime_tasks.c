/* Tests tasks of asyncio in a made-up memory of CPython 3.12: what they await, in which order they
 * stand, and structures that are damaged. sh/stack_async tests real interpreters. */
#include "unit.h"

#include <errno.h>

#include "program/runtime/python/python_objects.h"
#include "python_memory.h"

enum {
	/* offsets of 3.12 */
	MODULES = 64,
	THREAD_DICT = 112,
	TASK_LOOP = 16,
	TASK_CALLBACK = 24,
	TASK_CALLBACKS = 40,
	TASK_STATE = 88,
	TASK_WAITER = 128,
	TASK_COROUTINE = 136,
	TASK_NAME = 144,
	TASK_SIZE = 176,
	COROUTINE_STATE = 67,
	COROUTINE_FRAME = 72,
	FRAME_INSTRUCTION = COROUTINE_FRAME + 56,
	FRAME_DEPTH = COROUTINE_FRAME + 64,
	FRAME_VALUES = COROUTINE_FRAME + 72,
	FUNCTION_CLOSURE = 72,
	DICT_OFFSET = 32, /* of the variables of a WeakSet here */
	SUSPENDED = 0xff,
	RESUME_AWAIT = 3 << 8 | 151,
	ROOM = PYTHON_BASE + 0x8000,
};

struct made_tasks {
	struct python_memory m;
	uint64_t free;
	uint64_t dict, str, set, weak, other, task, future, iter, coroutine, function, tuple, cell,
		list;       /* types */
	uint64_t loop, all; /* all: the set */
	struct runtime_tasks found;
};

static void put(struct made_tasks *t, uint64_t at, uint64_t v)
{
	made_memory_put(&t->m.made, at, v, 8);
}

static uint64_t room(struct made_tasks *t, uint32_t n)
{
	uint64_t at = t->free;

	t->free += (n + 15) & ~15u;
	assert_true(t->free <= MADE_BASE + MADE_BYTES);
	return at;
}

static uint64_t object(struct made_tasks *t, uint64_t type, uint32_t n)
{
	uint64_t at = room(t, n);

	put(t, at, 1);
	put(t, at + 8, type);
	return at;
}

static uint64_t type(struct made_tasks *t, const char *name, uint32_t size)
{
	uint64_t at = object(t, 0, PYTHON_TYPE_SIZE), text = room(t, 64);

	made_memory_bytes(&t->m.made, text, name, strlen(name) + 1);
	put(t, at + PYTHON_TYPE_NAME, text);
	put(t, at + PYTHON_TYPE_BASIC, size);
	return at;
}

static uint64_t text(struct made_tasks *t, const char *s)
{
	uint64_t at = object(t, t->str, 128);

	python_put_text(&t->m, at, s);
	return at;
}

/* A dict of one item, or of two. */
static uint64_t dict(struct made_tasks *t, uint64_t k1, uint64_t v1, uint64_t k2, uint64_t v2)
{
	uint64_t at = object(t, t->dict, 48), keys = room(t, 128);

	put(t, at + 32, keys);
	made_memory_put(&t->m.made, keys + 9, 3, 1);
	made_memory_put(&t->m.made, keys + 10, 1, 1);
	put(t, keys + 24, k2 ? 2 : 1);
	put(t, keys + 40, k1);
	put(t, keys + 48, v1);
	put(t, keys + 56, k2);
	put(t, keys + 64, v2);
	return at;
}

static uint64_t sequence(struct made_tasks *t, uint64_t of, uint64_t item)
{
	uint64_t at = object(t, of, 48), items = room(t, 16);

	put(t, at + 16, 1);
	put(t, at + 24, of == t->list ? items : item);
	put(t, items, item);
	return at;
}

/* A coroutine that awaits this object. */
static uint64_t coroutine(struct made_tasks *t, uint64_t awaited)
{
	uint64_t at = object(t, t->coroutine, 256);

	made_memory_put(&t->m.made, at + COROUTINE_STATE, SUSPENDED, 1);
	put(t, at + COROUTINE_FRAME, PYTHON_CODE);
	put(t, at + FRAME_INSTRUCTION, PYTHON_CODE + t->m.python.layout.code_instructions);
	made_memory_put(&t->m.made, at + FRAME_DEPTH, 1, 4);
	put(t, at + FRAME_VALUES, awaited);
	return at;
}

/* FutureIter. */
static uint64_t iter(struct made_tasks *t, uint64_t future)
{
	uint64_t at = object(t, t->iter, 32);

	put(t, at + 16, future);
	return at;
}

static uint64_t task(struct made_tasks *t, const char *name, uint64_t waiter, uint64_t coroutine)
{
	uint64_t at = object(t, t->task, TASK_SIZE), weak = object(t, t->weak, 32), i = 0, v;

	put(t, at + TASK_LOOP, t->loop);
	put(t, at + TASK_WAITER, waiter);
	put(t, at + TASK_COROUTINE, coroutine);
	put(t, at + TASK_NAME, text(t, name));
	put(t, weak + 16, at);
	while (space_word(&t->m.made.space, t->all + i, &v) && v)
		i += 16;
	put(t, t->all + i, weak);
	return at;
}

static void make(struct made_tasks *t)
{
	struct python_layout l = *python_layout(3, 12);
	uint64_t set, module, variables;

	memset(t, 0, sizeof(*t));
	l.interpreter_modules = MODULES;
	l.interpreter_threads = 72;
	python_memory_init(&t->m, &l);
	t->m.made.n = MADE_BYTES;
	t->m.python.runtime.type = &runtime_python;
	t->free = ROOM;
	t->str = type(t, "str", 64);
	t->dict = type(t, "dict", 48);
	t->set = type(t, "set", 200);
	t->weak = type(t, "weakref.ReferenceType", 56);
	t->other = type(t, "object", 16);
	t->future = type(t, "_asyncio.Future", 128);
	t->task = type(t, "_asyncio.Task", TASK_SIZE);
	t->iter = type(t, "_asyncio.FutureIter", 24);
	t->coroutine = type(t, "coroutine", 72);
	t->function = type(t, "function", 120);
	t->tuple = type(t, "tuple", 24);
	t->cell = type(t, "cell", 24);
	t->list = type(t, "list", 40);
	put(t, t->other + PYTHON_TYPE_DICT_OFFSET, DICT_OFFSET);
	python_put_code(&t->m);
	made_memory_put(&t->m.made, PYTHON_CODE + l.code_instructions + 2, RESUME_AWAIT, 2);
	t->loop = object(t, t->other, 64);
	set = object(t, t->set, 64);
	t->all = room(t, 8 * 16);
	put(t, set + 32, 7);
	put(t, set + 40, t->all);
	variables = object(t, t->other, 64);
	put(t, variables + DICT_OFFSET, dict(t, text(t, "data"), set, 0, 0));
	module = object(t, t->other, 32);
	put(t, module + 16, dict(t, text(t, "x"), module, text(t, "_scheduled_tasks"), variables));
	put(t, PYTHON_HEAD, PYTHON_INTERPRETER);
	put(t, PYTHON_INTERPRETER + MODULES,
	    dict(t, text(t, "sys"), module, text(t, "asyncio.tasks"), module));
	put(t, PYTHON_INTERPRETER + l.interpreter_threads, PYTHON_THREAD);
	put(t, PYTHON_THREAD + l.thread_interpreter, PYTHON_INTERPRETER);
	put(t, PYTHON_THREAD + l.thread_id, PYTHON_FS_BASE);
	put(t, PYTHON_THREAD + THREAD_DICT,
	    dict(t, text(t, "__asyncio_running_event_loop__"), t->loop, 0, 0));
}

static void find(struct made_tasks *t)
{
	struct err *e;

	space_limit(&t->m.made.space, 100000, UINT64_MAX);
	e = runtime_tasks(&t->m.python.runtime, &t->found);
	assert_null(e);
	assert_false(space_is_spent(&t->m.made.space));
}

static void fini(struct made_tasks *t)
{
	runtime_tasks_fini(&t->found);
	python_memory_fini(&t->m);
}

/* Names of the tasks in their order. */
static const char *order(const struct made_tasks *t)
{
	static char all[256];

	all[0] = 0;
	for (uint32_t i = 0; i < t->found.v.n; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "",
			 t->found.v.v[i].name);
	return all;
}

static void test_awaits(void **state)
{
	struct made_tasks t;
	uint64_t future, b;

	make(&t);
	future = object(&t, t.future, 128);
	b = task(&t, "b", future, coroutine(&t, coroutine(&t, iter(&t, future))));
	task(&t, "a", b, coroutine(&t, iter(&t, b)));
	task(&t, "c", 0, coroutine(&t, 0));
	find(&t);
	assert_string_equal(order(&t), "b a c");
	assert_int_equal(t.found.v.v[0].nframes, 2);
	assert_int_equal(t.found.v.v[1].nframes, 1);
	assert_string_equal(t.found.frames.v[0].function, "handler");
	assert_int_equal(t.found.v.v[0].thread, PYTHON_FS_BASE);
	assert_string_equal(t.found.v.v[0].waits, "_asyncio.Future");
	assert_string_equal(t.found.v.v[1].waits, "_asyncio.Task");
	assert_null(t.found.v.v[2].waits);
	assert_int_equal(t.found.v.v[0].nawaits, 0);
	assert_int_equal(t.found.v.v[1].nawaits, 1);
	assert_int_equal(t.found.awaits.v[t.found.v.v[1].await].task, 0);
	fini(&t);
}

/* As gather() does: what is called at the end of two tasks has the future that a third one waits
 * for. */
static void test_callbacks(void **state)
{
	struct made_tasks t;
	uint64_t future, cell, function, one, two;

	make(&t);
	future = object(&t, t.future, 128);
	cell = object(&t, t.cell, 32);
	put(&t, cell + 16, future);
	function = object(&t, t.function, 128);
	put(&t, function + FUNCTION_CLOSURE, sequence(&t, t.tuple, cell));
	task(&t, "all", future, coroutine(&t, iter(&t, future)));
	one = task(&t, "one", 0, coroutine(&t, 0));
	two = task(&t, "two", 0, coroutine(&t, 0));
	put(&t, one + TASK_CALLBACK, function);
	put(&t, two + TASK_CALLBACKS, sequence(&t, t.list, sequence(&t, t.tuple, function)));
	find(&t);
	assert_string_equal(order(&t), "one two all");
	assert_int_equal(t.found.v.v[2].nawaits, 2);
	assert_int_equal(t.found.awaits.v[0].task + t.found.awaits.v[1].task, 1);
	fini(&t);
}

/* Coroutines that await each other, and tasks that do. */
static void test_circles(void **state)
{
	struct made_tasks t;
	uint64_t a, b, one, two;

	make(&t);
	one = coroutine(&t, 0);
	two = coroutine(&t, one);
	put(&t, one + FRAME_VALUES, two);
	a = task(&t, "a", 0, one);
	b = task(&t, "b", a, coroutine(&t, 0));
	put(&t, a + TASK_WAITER, b);
	task(&t, "c", b, coroutine(&t, 0));
	find(&t);
	assert_int_equal(t.found.v.n, 3);
	assert_in_range(t.found.frames.n, 3, 16);
	assert_int_equal(t.found.awaits.n, 3);
	fini(&t);
}

/* A set without end, a list of callbacks without end, a task that has ended, one without
 * coroutine. */
static void test_damaged(void **state)
{
	struct made_tasks t;
	uint64_t one, two, list;

	make(&t);
	one = task(&t, "one", 0, coroutine(&t, 0));
	two = task(&t, "two", 0, 12345);
	list = sequence(&t, t.list, 0);
	put(&t, list + 16, UINT64_MAX / 8);
	put(&t, one + TASK_CALLBACKS, list);
	made_memory_put(&t.m.made, task(&t, "ended", 0, coroutine(&t, 0)) + TASK_STATE, 2, 4);
	put(&t, two + TASK_NAME, 0x7fffffff0000);
	find(&t);
	assert_int_equal(t.found.v.n, 2);
	assert_null(t.found.v.v[0].name);
	assert_int_equal(t.found.v.v[0].nframes, 0);
	assert_string_equal(t.found.v.v[1].name, "one");
	fini(&t);

	make(&t);
	task(&t, "one", 0, coroutine(&t, 0));
	put(&t, t.all - 64 + 32, UINT32_MAX); /* the set's mask */
	space_limit(&t.m.made.space, 1000, UINT64_MAX);
	assert_null(runtime_tasks(&t.m.python.runtime, &t.found));
	fini(&t);
}

/* What was read before is work, too: a process may have lists of lists of the same few objects. */
static void test_looks(void **state)
{
	struct made_tasks t;
	struct python_objects o = { 0 };
	uint64_t v;
	uint32_t n = 0;

	make(&t);
	o.p = &t.m.python;
	space_limit(&t.m.made.space, 3, UINT64_MAX);
	while (n <= 3 * PYTHON_LOOKS && python_word(&o, t.loop, &v))
		n++;
	assert_in_range(n, PYTHON_LOOKS, 3 * PYTHON_LOOKS);
	assert_true(space_is_spent(&t.m.made.space));
	assert_false(python_word(&o, t.loop, &v));
	python_reader_fini(&o);
	fini(&t);
}

/* The tasks of a thread are taken once, though several threads may have its number. */
static void test_threads(void **state)
{
	struct made_tasks t;
	const uint32_t *its;
	uint64_t other;
	uint32_t n;

	make(&t);
	task(&t, "a", 0, coroutine(&t, 0));
	other = task(&t, "b", 0, coroutine(&t, 0));
	put(&t, other + TASK_LOOP, 0);
	task(&t, "c", 0, coroutine(&t, 0));
	find(&t);
	assert_string_equal(order(&t), "a b c");
	runtime_tasks_take(&t.found, 0, &n);
	assert_int_equal(n, 0);
	runtime_tasks_take(&t.found, PYTHON_FS_BASE + 1, &n);
	assert_int_equal(n, 0);
	its = runtime_tasks_take(&t.found, PYTHON_FS_BASE, &n);
	assert_int_equal(n, 2);
	assert_int_equal(its[0], 0);
	assert_int_equal(its[1], 2);
	runtime_tasks_take(&t.found, PYTHON_FS_BASE, &n);
	assert_int_equal(n, 0);
	assert_false(t.found.v.v[1].taken);
	fini(&t);
}

/* A type of another size, another version, another language. */
static void test_refused(void **state)
{
	static const struct runtime_type other = { .name = "other" };
	struct made_tasks t;
	struct err *e;

	make(&t);
	task(&t, "one", 0, coroutine(&t, 0));
	put(&t, t.task + PYTHON_TYPE_BASIC, TASK_SIZE - 8);
	e = runtime_tasks(&t.m.python.runtime, &t.found);
	assert_non_null(e);
	assert_int_equal(e->code, ENOTSUP);
	err_free(e);
	t.m.python.layout.version = 0x0307;
	e = runtime_tasks(&t.m.python.runtime, &t.found);
	assert_int_equal(e->code, ENOTSUP);
	err_free(e);
	t.m.python.runtime.type = &other;
	e = runtime_tasks(&t.m.python.runtime, &t.found);
	assert_int_equal(e->code, ENOTSUP);
	err_free(e);
	fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_awaits),  cmocka_unit_test(test_callbacks),
		cmocka_unit_test(test_circles), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_looks),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
