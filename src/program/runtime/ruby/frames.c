/* The frames of a thread that runs Ruby. */
#include <string.h>

#include "program/runtime/circle.h"
#include "program/runtime/ruby/ruby.h"
#include "wire/language.h"

enum { THREADS_MAX = 1 << 16, SCOPES_MAX = 1 << 18, TAGS_MAX = 1 << 16 };
enum {
	CONTEXT_TAG = 24, /* in rb_execution_context_t */
	/* struct rb_vm_tag with the buffer of __builtin_setjmp(), and with that of glibc's */
	TAG_LABEL = 24,
	TAG_PREVIOUS = 56,
	TAG_GLIBC_LABEL = 72,
	TAG_GLIBC_PREVIOUS = 216,
	POINTER_GUARD = 0x30, /* behind fs_base */
	GUARD_ROTATION = 17,
};

struct control_frame {
	uint64_t pc, sp, iseq, self, scope;
};

struct walk {
	struct ruby *r;
	const struct space_thread *thread;
	runtime_frame_vec *ret;
	uint32_t first;     /* frame of this walk */
	uint32_t scopes;    /* looked at */
	uint32_t first_c;   /* indices of the C functions that have no line yet */
	VEC(uint32_t) runs; /* frames that native code has called */
	VEC(uint64_t) tags; /* anchors of these calls, innermost first */
};

/* The method entry of a frame: its scope has it, or one of those around it. scope[0] are flags,
 * scope[-1] the scope around it, scope[-2] the entry. 0: none. */
static uint64_t method_entry(struct walk *w, uint64_t scope)
{
	const struct ruby *r = w->r;
	struct circle circle = { 0 };

	while (scope && !circle_closed(&circle, scope) && w->scopes++ < SCOPES_MAX) {
		uint64_t v[3], entry;
		bool local;

		if (space_read_some(r->runtime.space, scope - 16, v, sizeof(v)) != sizeof(v))
			return 0;
		local = v[2] & WIRE_RUBY_FLAG_LOCAL;
		entry = ruby_method(r, v[0], local);
		if (entry || local)
			return entry;
		scope = v[1] & ~3ull;
	}
	return 0;
}

static const char *function(struct ruby *r, const struct ruby_code *c, uint64_t entry)
{
	uint64_t key[2] = { c ? c->address : 0, entry }, *known;
	const char *name;
	bool new;

	known = hash_put(&r->functions, key, sizeof(key), &new);
	if (!new)
		return (const char *)(uintptr_t)*known;
	name = ruby_function_name(r, c, entry);
	*hash_put(&r->functions, key, sizeof(key), NULL) = (uintptr_t)name;
	return name;
}

static bool add_ruby(struct walk *w, const struct control_frame *f, bool finish)
{
	const struct ruby_code *c = ruby_code(w->r, f->iseq);
	uint32_t line;

	if (!c)
		return false;
	ruby_find_core(w->r, c);
	line = ruby_line(w->r, c, f->pc);
	/* Gives a C function the file and line of its call, as Ruby does. */
	for (; w->first_c < w->ret->n; w->first_c++) {
		w->ret->v[w->first_c].file = c->file;
		w->ret->v[w->first_c].line = line;
	}
	if (finish)
		vec_push(&w->runs, w->ret->n);
	vec_push(w->ret,
		 (struct runtime_frame){ .code = c->address,
					 .function = function(w->r, c, method_entry(w, f->scope)),
					 .file = c->file,
					 .line = line,
					 .entry = finish });
	w->first_c = w->ret->n;
	return true;
}

static void add_c(struct walk *w, const struct control_frame *f)
{
	uint64_t entry = method_entry(w, f->scope);

	if (entry)
		vec_push(w->ret, (struct runtime_frame){ .code = entry,
							 .function = function(w->r, NULL, entry) });
}

/* Walks the frames, which lie one after the other up to the end of the context's stack. The
 * outermost frame and frames of blocks that are C functions belong to no function. */
static void walk_frames(struct walk *w, uint64_t context)
{
	const struct ruby *r = w->r;
	uint64_t stack, size, at;
	struct control_frame f;

	if (!ruby_word(r, context + WIRE_RUBY_CONTEXT_STACK, &stack) ||
	    !ruby_word(r, context + WIRE_RUBY_CONTEXT_STACK_SIZE, &size) ||
	    !ruby_word(r, context + WIRE_RUBY_CONTEXT_FRAME, &at) ||
	    size > WIRE_RUBY_STACK_SIZE_MAX)
		return;
	for (; at >= stack && at - stack + 2 * r->layout.frame_size <= size * 8 &&
	       w->ret->n - w->first < RUNTIME_FRAMES_MAX;
	     at += r->layout.frame_size) {
		uint64_t flags;

		if (space_read_some(r->runtime.space, at, &f, sizeof(f)) != sizeof(f) ||
		    !ruby_word(r, f.scope, &flags))
			return;
		if (f.iseq && f.pc) {
			if (!add_ruby(w, &f, flags & WIRE_RUBY_FLAG_FINISH))
				return;
		} else if (!f.iseq && (flags & WIRE_RUBY_MAGIC_MASK) == WIRE_RUBY_MAGIC_C) {
			add_c(w, &f);
		}
	}
}

static bool is_text(const struct ruby *r, uint64_t addr)
{
	return addr - r->text.start < r->text.size;
}

/* Reads the resume address of a tag, and the tag before it. glibc hides addresses in its buffers by
 * the thread's guard word. */
static bool read_tag(const struct walk *w, uint64_t tag, uint64_t *ret_label,
		     uint64_t *ret_previous)
{
	const struct ruby *r = w->r;
	uint64_t label, guard;

	if (!ruby_word(r, tag + TAG_LABEL, &label))
		return false;
	*ret_label = label;
	if (is_text(r, label))
		return ruby_word(r, tag + TAG_PREVIOUS, ret_previous);
	if (!ruby_word(r, tag + TAG_GLIBC_LABEL, &label) ||
	    !ruby_word(r, w->thread->regs.fs_base + POINTER_GUARD, &guard))
		return false;
	label = (label >> GUARD_ROTATION | label << (64 - GUARD_ROTATION)) ^ guard;
	*ret_label = label;
	return is_text(r, label) && ruby_word(r, tag + TAG_GLIBC_PREVIOUS, ret_previous);
}

/* Collects the tags of the loop. Each is a variable of the function that pushed it. */
static void walk_tags(struct walk *w, uint64_t context)
{
	uint64_t tag, previous, label;

	if (!ruby_word(w->r, context + CONTEXT_TAG, &tag))
		return;
	for (uint32_t i = 0; tag && i < TAGS_MAX; i++) {
		if (!read_tag(w, tag, &label, &previous))
			return;
		if (ruby_is_exec(w->r, label))
			vec_push(&w->tags, tag);
		if (previous <= tag)
			return;
		tag = previous;
	}
}

/* Sets the place of each run in the native stack. Matches runs and tags from the outermost on. A
 * frame may be prepared that the loop does not run yet, and a tag may have lost its frame. */
static void place_runs(struct walk *w)
{
	uint32_t runs = w->runs.n, tags = w->tags.n;

	if (!tags || runs > tags + 1)
		return;
	for (uint32_t i = 0; i < runs && i < tags; i++)
		w->ret->v[w->runs.v[runs - 1 - i]].anchor = w->tags.v[tags - 1 - i];
	if (runs > tags)
		w->ret->v[w->runs.v[0]].anchor = w->thread->regs.rsp;
}

static void walk_context(struct ruby *r, uint64_t context, const struct space_thread *t,
			 runtime_frame_vec *ret)
{
	struct walk w = { .r = r, .thread = t, .ret = ret, .first = ret->n, .first_c = ret->n };

	walk_frames(&w, context);
	walk_tags(&w, context);
	place_runs(&w);
	vec_fini(&w.runs);
	vec_fini(&w.tags);
}

/* Returns the next node of a list whose head is a node too, 0: there is none. */
static uint64_t next_node(const struct ruby *r, uint64_t head, uint64_t node)
{
	uint64_t next;

	return ruby_word(r, node, &next) && next != head ? next : 0;
}

static uint64_t thread_context(const struct ruby *r, uint64_t vm, uint64_t thread)
{
	uint64_t context, back;

	if (!ruby_word(r, thread + r->layout.thread_vm, &back) || back != vm ||
	    !ruby_word(r, thread + r->layout.thread_context, &context) || !context ||
	    !ruby_word(r, context + r->layout.context_thread, &back) || back != thread)
		return 0;
	return context;
}

static bool thread_id(const struct ruby *r, uint64_t thread, uint64_t *ret)
{
	if (r->layout.thread_native &&
	    (!ruby_word(r, thread + r->layout.thread_native, &thread) || !thread))
		return false;
	return ruby_word(r, thread + r->layout.thread_id, ret);
}

/* Searches for a thread by its pthread_t, which on Linux is the address of its thread-local
 * variables. */
struct search {
	const struct ruby *r;
	uint64_t vm, id;
	uint32_t steps; /* limit of threads examined */
};

static uint64_t find_in(struct search *s, uint64_t list)
{
	uint64_t thread = list, own;
	struct circle circle = { 0 };

	while (s->steps++ < THREADS_MAX && (thread = next_node(s->r, list, thread)) &&
	       !circle_closed(&circle, thread))
		if (thread_id(s->r, thread, &own) && own == s->id)
			return thread_context(s->r, s->vm, thread);
	return 0;
}

static uint64_t find_context(struct search *s)
{
	const struct ruby_layout *l = &s->r->layout;
	uint64_t list = s->vm + l->vm_ractors, node = list, context = 0;
	struct circle circle = { 0 };

	if (!l->vm_ractors)
		return find_in(s, s->vm + l->vm_threads);
	while (!context && s->steps++ < THREADS_MAX && (node = next_node(s->r, list, node)) &&
	       !circle_closed(&circle, node))
		context = find_in(s, node - l->ractor_node + l->ractor_threads);
	return context;
}

bool ruby_is_vm(const struct ruby *r, uint64_t vm)
{
	const struct ruby_layout *l = &r->layout;
	uint64_t list = vm + l->vm_threads, node, thread;

	if (l->vm_ractors) {
		node = next_node(r, vm + l->vm_ractors, vm + l->vm_ractors);
		if (!node)
			return false;
		list = node - l->ractor_node + l->ractor_threads;
	}
	thread = next_node(r, list, list);
	return thread && thread_context(r, vm, thread);
}

void ruby_frames(struct runtime *runtime, const struct space_thread *t, runtime_frame_vec *ret)
{
	struct ruby *r = (struct ruby *)runtime;
	struct search s = { .r = r, .id = t->regs.fs_base };
	uint64_t context;

	if (!ruby_word(r, r->vm, &s.vm) || !s.vm)
		return;
	context = find_context(&s);
	if (context)
		walk_context(r, context, t, ret);
}
