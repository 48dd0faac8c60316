/* The functions of a frame in code that the JVM has made. */
#include "program/runtime/jvm/jvm.h"

enum { THREADS_MAX = 1 << 16 };

struct jvm_threads jvm_threads_begin(const struct jvm *j)
{
	const struct jvm_layout *l = &j->layout;
	struct jvm_threads t = { .jvm = j };
	uint64_t list;

	if (!l->variable.threads) {
		if (jvm_word(j, l->variable.threads_linked, &t.at))
			t.left = THREADS_MAX;
	} else if (jvm_word(j, l->variable.threads, &list) && list) {
		t.left = jvm_get(j, list, l->threads_length);
		t.at = jvm_get(j, list, l->threads_first);
		if (t.left > THREADS_MAX)
			t.left = THREADS_MAX;
	}
	return t;
}

uint64_t jvm_threads_next(struct jvm_threads *t)
{
	const struct jvm_layout *l = &t->jvm->layout;
	uint64_t thread = 0;

	if (!t->left)
		return 0;
	t->left--;
	if (!l->variable.threads) {
		thread = t->at;
		t->at = thread ? jvm_get(t->jvm, thread, l->thread_next) : 0;
	} else if (jvm_word(t->jvm, t->at, &thread)) {
		t->at += 8;
	}
	return thread;
}

/* Reads the list of threads once, from a stopped process. */
static void read_threads(struct jvm *j)
{
	const struct jvm_layout *l = &j->layout;
	struct jvm_threads t = jvm_threads_begin(j);
	uint64_t thread;

	j->threads_read = true;
	while ((thread = jvm_threads_next(&t))) {
		uint32_t id = (uint32_t)jvm_get(j, jvm_get(j, thread, l->thread_os), l->os_id);

		if (id)
			*hash_put(&j->threads, &id, sizeof(id), NULL) = thread;
	}
}

uint64_t jvm_thread(struct jvm *j, uint32_t tid)
{
	const uint64_t *found;

	if (!j->threads_read)
		read_threads(j);
	found = hash_get(&j->threads, &tid, sizeof(tid));
	return found ? *found : 0;
}

void jvm_add(struct jvm *j, const struct jvm_method *m, int64_t bci, bool sure,
	     runtime_frame_vec *ret)
{
	vec_push(ret, (struct runtime_frame){ .code = m->address,
					      .function = m->function,
					      .file = m->file,
					      .line = sure ? jvm_line(j, m, bci) : 0 });
}

static void add_compiled(struct jvm *j, const struct jvm_blob *b, const struct unwind_cursor *c,
			 runtime_frame_vec *ret)
{
	struct jvm_scope scopes[JVM_SCOPES_MAX];
	uint64_t pc = jvm_original_pc(j, b, c->pc, c->sp);
	uint32_t n = jvm_scopes(j, b, pc, c->called, scopes);

	for (uint32_t i = 0; i < n; i++) {
		const struct jvm_method *m = jvm_method(j, scopes[i].method);

		if (m)
			jvm_add(j, m, scopes[i].bci, scopes[i].sure, ret);
	}
}

/* Gives code that is no Java function the JVM's name for it. */
static void add_stub(const struct jvm *j, const struct jvm_blob *b, uint64_t pc,
		     runtime_frame_vec *ret)
{
	uint64_t returns =
		jvm_get(j, j->layout.variable.call_stub_return, (struct jvm_member){ 0, 8 });

	vec_push(ret, (struct runtime_frame){
			      .code = b->address,
			      .function = pc == returns ? "call_stub" : b->name,
			      .file = "[jvm]",
		      });
}

bool jvm_step(struct runtime *r, const struct space_thread *t, struct unwind_cursor *c,
	      runtime_frame_vec *ret)
{
	struct jvm *j = (struct jvm *)r;
	uint32_t before = ret->n;
	const struct unwind_cursor at = *c;
	struct jvm_blob b;

	if (!jvm_blob_find(j, c->pc - c->called, &b))
		return false;
	if (b.kind == JVM_INTERPRETER) {
		jvm_interpreted(j, &b, t, c, ret);
	} else {
		if (b.kind == JVM_COMPILED)
			add_compiled(j, &b, c, ret);
		jvm_caller(j, &b, c);
	}
	if (ret->n == before)
		add_stub(j, &b, at.pc, ret);
	vec_last(ret)->entry = true;
	vec_last(ret)->anchor = at.sp;
	return true;
}
