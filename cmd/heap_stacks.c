/* descry heap --stacks: the functions of the language that each thread executes, beside its
 * objects. */
#include "heap_options.h"

#include <errno.h>

#include "base/clock.h"
#include "memory/heap/heap.h"
#include "base/hash.h"
#include "print_tasks.h"
#include "program/runtime/runtime.h"
#include "program/space/space.h"
#include "program/unwind/unwind.h"

/* The process may be hostile, and its lists endless. */
enum {
	STACKS_READS = 100 << 20,
	STACKS_FRAMES = 1 << 20,
	NATIVE_MAX = 1 << 16, /* native frames of a thread */
};
static const uint64_t STACKS_NS = 5000000000;

struct thread_stack {
	pid_t tid;
	uint64_t fs_base;
	uint32_t at, n; /* in frames */
};

struct thread_stacks {
	VEC(struct thread_stack) threads;
	runtime_frame_vec frames;
	struct runtime_tasks tasks;
	struct hash tids; /* fs_base -> tid */
};

/* Adds the frames of a language whose functions have native frames: the runtime steps through those
 * while the native stack is walked. */
static void walk_native(struct runtime *r, struct space *space, struct unwind_process *native,
			const struct space_thread *t, runtime_frame_vec *ret)
{
	static uint64_t pcs[NATIVE_MAX], sps[NATIVE_MAX];
	struct runtime_walk code = { .runtime = r, .thread = t, .ret = ret };
	enum wire_unwind_end end;

	native->code = runtime_code(&code);
	unwind_thread(native, space, t, pcs, sps, NATIVE_MAX, &end);
}

static struct err *walk_threads(struct space *space, struct runtime *r,
				struct unwind_images *images, bool async, struct thread_stacks *ret)
{
	const struct space_thread *t = NULL;
	struct unwind_process *native = NULL;
	uint32_t n = 0;
	struct err *e = space_threads(space, &t, &n);

	if (!r->type->frames)
		e = e ?: unwind_process_read(images, space, 0, &native);
	space_limit(space, STACKS_READS, now_ns() + STACKS_NS);
	for (uint32_t i = 0; !e && i < n && ret->frames.n < STACKS_FRAMES; i++) {
		struct thread_stack s = { .tid = t[i].tid,
					  .fs_base = t[i].regs.fs_base,
					  .at = ret->frames.n };

		if (native)
			walk_native(r, space, native, &t[i], &ret->frames);
		else
			runtime_frames(r, &t[i], &ret->frames);
		s.n = ret->frames.n - s.at;
		vec_push(&ret->threads, s);
	}
	if (!e && async)
		e = runtime_tasks(r, &ret->tasks);
	if (!e && space_is_spent(space))
		e = err_new(EFBIG,
			    "%s: reading its stacks takes too long, its lists may be endless",
			    space->name);
	space_limit(space, UINT64_MAX, UINT64_MAX);
	unwind_process_free(native);
	return e;
}

static void put_frame(const struct runtime_frame *f, bool json, bool first, struct out *o)
{
	if (!json) {
		out_printf(o, "    %s", f->file ?: "?");
		if (f->line)
			out_printf(o, ":%u", f->line);
		out_printf(o, ": %s\n", f->function ?: "?");
		return;
	}
	out_printf(o, "%s{\"line\":%u", first ? "" : ",", f->line);
	heap_json_text(o, "file", f->file ?: "");
	heap_json_text(o, "function", f->function ?: "");
	out_char(o, '}');
}

static pid_t task_thread(const struct thread_stacks *s, const struct runtime_task *t)
{
	const uint64_t *tid = hash_get(&s->tids, &t->thread, sizeof(t->thread));

	return tid ? (pid_t)*tid : 0;
}

static void put_task_head(const struct thread_stacks *s, const struct runtime_task *t, bool json,
			  struct out *o)
{
	const struct runtime_await *a = s->tasks.awaits.v + t->await;

	if (!json) {
		out_printf(o, "  task %s", t->name ?: "?");
		print_task_state(&s->tasks, t, o);
		out_char(o, '\n');
		return;
	}
	out_printf(o, "{\"type\":\"task\",\"thread\":%d,\"runs\":%s", (int)task_thread(s, t),
		   t->runs ? "true" : "false");
	heap_json_text(o, "name", t->name ?: "");
	heap_json_text(o, "waits", t->waits ?: "");
	out_str(o, ",\"tasks\":[");
	for (uint32_t i = 0; i < t->nawaits; i++)
		out_printf(o, "%s%u", i ? "," : "", a[i].task);
	out_str(o, "],\"frames\":[");
}

/* In JSON, "tasks" has the numbers of the tasks that it waits for: the first one printed is 0. */
static void put_tasks(struct thread_stacks *s, bool json, struct out *o)
{
	for (uint32_t i = s->threads.n; i--;) /* the first of those with the same number counts */
		*hash_put(&s->tids, &s->threads.v[i].fs_base, sizeof(uint64_t), NULL) =
			(uint64_t)s->threads.v[i].tid;
	for (uint32_t i = 0; i < s->tasks.v.n; i++) {
		const struct runtime_task *t = &s->tasks.v.v[i];

		put_task_head(s, t, json, o);
		for (uint32_t k = 0; k < t->nframes; k++)
			put_frame(&s->tasks.frames.v[t->frame + k], json, !k, o);
		if (json)
			out_str(o, "]}\n");
	}
}

static void put_threads(const struct thread_stacks *s, const struct space *space, bool json,
			struct out *o)
{
	if (!json)
		out_printf(o, "%s: %u thread%s\n", space->name, s->threads.n,
			   s->threads.n == 1 ? "" : "s");
	for (uint32_t i = 0; i < s->threads.n; i++) {
		const struct thread_stack *t = &s->threads.v[i];

		out_printf(o,
			   json ? "{\"type\":\"stack\",\"thread\":%d,\"frames\":["
				: "  thread %d\n",
			   (int)t->tid);
		for (uint32_t k = 0; k < t->n; k++)
			put_frame(&s->frames.v[t->at + k], json, !k, o);
		if (json)
			out_str(o, "]}\n");
	}
}

struct err *heap_show_stacks(struct space *space, struct memory_stop *p, bool json, bool async,
			     struct out *o)
{
	struct thread_stacks s = { 0 };
	struct unwind_images *images = unwind_images_new();
	struct unwind_process *tables = NULL;
	struct runtime *r = NULL;
	struct err *e = runtime_find(space, &r), *again = NULL;

	if (!e && !r)
		e = err_new(ENOENT, "%s: it runs none of Java, Node.js, Python and Ruby",
			    space->name);
	if (!e && !r->type->frames) /* so that the process is stopped for the walks only */
		e = unwind_process_read(images, space, 0, &tables);
	unwind_process_free(tables);
	if (!e && p->control)
		e = heap_process_stop(p->control);
	if (!e) {
		e = walk_threads(space, r, images, async, &s);
		again = p->control ? control_resume(p->control) : NULL;
	}
	if (!e && !again) {
		put_threads(&s, space, json, o);
		put_tasks(&s, json, o);
	}
	runtime_free(r);
	unwind_images_free(images);
	vec_fini(&s.threads);
	vec_fini(&s.frames);
	runtime_tasks_fini(&s.tasks);
	hash_fini(&s.tids);
	if (e)
		err_free(again);
	return e ?: again;
}
