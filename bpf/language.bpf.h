/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames of interpreted languages (wire/language.h), of the current thread: Python's and Ruby's.
 * agent/alloc_language.c walks by the same steps. */
#include "wire/language.h"

enum {
	RUBY_BODY_WORDS =
		(WIRE_RUBY_BODY_ABOUT - WIRE_RUBY_BODY_INSTRUCTIONS) / 8 + WIRE_LANGUAGE_ABOUT,
#ifdef DESCRY_AGENT
	RUBY_CONTROL_WORDS = 3, /* without self and scope */
#else
	RUBY_CONTROL_WORDS = 5,
#endif
};

/* The state that changes from frame to frame. It lies where d_ustack's state was. In the agent it
 * is on the stack: a process with fewer rights may have `dst` mapped too, and would choose the
 * addresses that are read. */
struct language_state {
	u64 thread, frame, pthread, n;
	u64 word, about[WIRE_PYTHON_ABOUT];
	u8 byte[8];
	/* Ruby's: the list of the threads, and where the frames end */
	u64 ractors, ractor, threads, end;
	u64 scope; /* in which the frame's method entry is looked for; 0: in the next frame's */
	u64 flags; /* of the frame */
	u64 control[RUBY_CONTROL_WORDS]; /* pc, stack pointer, iseq, self, scope of the frame */
	u64 env[3];                      /* of a scope: method entry, scope around it, flags */
	u64 method[5];                   /* of the entry: flags, class, definition, name, owner */
	u64 max;                         /* frames that are wanted */
	u64 alone;                       /* those of functions with a place */
	u64 lines;                       /* without Ruby's method entries */
	u32 tgid, ask;                   /* a struct wire_unwind_ask, with what follows */
	u64 code, entry, id;
#ifndef DESCRY_AGENT
	union {
		u64 body[RUBY_BODY_WORDS]; /* of the iseq's body, from the instructions on */
		u64 near[WIRE_PYTHON_NEAR / 8 + 1]; /* of Python's frame, or of its code */
	};
#endif
};
_Static_assert(sizeof(struct language_state) <= WIRE_UNWIND_STATE * 8, "room behind a stack");

struct language_walk {
	void *chunks;
	struct wire_stack *dst;
	const struct wire_language *l;
#ifdef DESCRY_AGENT
	struct language_state s[1];
#else
	struct language_state *s;
#endif
	u32 *codes;
	void *wanted;
};

/* The agent has its own definitions of these (agent/routine.c, agent/alloc_language.c):
 *
 *	LANGUAGE_READ(w, dst, size, addr)	reads the process's memory; 0 on success
 *	LANGUAGE_TGID(w)	the current process
 *	LANGUAGE_OF(w, processes)	the address of its struct wire_language, 0: none
 *	LANGUAGE_POINTER(w, o)	the current thread's pointer (fs base) to s->pthread; 0 on success
 *	LANGUAGE_CODES(w)	words for hashes of the code objects that were asked for,
 *				1 << LANGUAGE_CODES_SHIFT of them
 *
 * alloc_language.c also has its own reads of what is special to it, which keeps what it reads:
 *
 *	LANGUAGE_FIXED(w, dst, size, addr)	of code, which does not change while it exists
 *	LANGUAGE_CONTROL(w, dst, addr)	of language_state.control, of which only the first and
 *				the third word are needed
 *
 * and routine.c one of several words that lie near each other:
 *
 *	LANGUAGE_NEAR(w, dst, addr, at)	the four words that are at[i] bytes, less than
 *				WIRE_PYTHON_NEAR, behind addr
 *
 * In the kernel a read costs the same for one word as for eleven. So it reads words that lie near
 * each other at once. In the agent, a word more costs as much as a word.
 */
#ifndef DESCRY_AGENT
#define LANGUAGE_READ(w, dst, size, addr) bpf_probe_read_user(dst, size, (const void *)(addr))
#define LANGUAGE_TGID(w) (bpf_get_current_pid_tgid() >> 32)
#define LANGUAGE_OF(w, processes) language_of((w)->s, processes)
#define LANGUAGE_POINTER(w, o) language_pointer((w)->s, o)
#define LANGUAGE_CODES(w) unwind_chunk((w)->chunks, WIRE_UNWIND_CODES << 16)
enum { LANGUAGE_CODES_SHIFT = 16 };

INLINE u32 language_of(struct language_state *s, void *processes)
{
	const struct wire_unwind_process *p = bpf_map_lookup_elem(processes, &s->tgid);

	return p ? p->language : 0;
}

INLINE long language_pointer(struct language_state *s, const struct wire_unwind_offsets *o)
{
	if (o->thread_fsbase == WIRE_NO_OFFSET)
		return 1;
	return bpf_probe_read_kernel(
		&s->pthread, 8, KERNEL(bpf_get_current_task() + o->task_thread + o->thread_fsbase));
}
#endif

#ifndef LANGUAGE_FIXED
#define LANGUAGE_FIXED(w, dst, size, addr) LANGUAGE_READ(w, dst, size, addr)
#define LANGUAGE_CONTROL(w, dst, addr) LANGUAGE_READ(w, dst, 24, addr)
#endif

INLINE bool language_read(struct language_walk *w, u64 *dst, u64 addr)
{
	return !LANGUAGE_READ(w, dst, 8, addr);
}

#ifdef DESCRY_AGENT
/* Reads of a frame: the one before, its code and instruction, and whether it is entered from C. */
INLINE bool python_read_frame(struct language_walk *w, u64 frame)
{
	struct language_state *s = w->s;
	const struct wire_python *l = &w->l->python;
	u32 mark = w->l->frames == WIRE_LANGUAGE_SHIMS ? l->frame_owner : l->frame_is_entry;

#ifdef LANGUAGE_NEAR
	const u32 low = l->frame_low, at[] = { l->frame_previous - low, l->frame_code - low,
					       l->frame_instruction - low, (mark & ~7u) - low };

	if (LANGUAGE_NEAR(w, s->about, frame + low, at))
		return false;
	s->frame = s->about[0];
	s->code = s->about[1];
	s->word = s->about[2];
	s->byte[0] = (u8)(s->about[3] >> mark % 8 * 8);
	return true;
#else
	return language_read(w, &s->frame, frame + l->frame_previous) &&
	       (w->l->frames == WIRE_LANGUAGE_OBJECTS ||
		!LANGUAGE_READ(w, s->byte, 1, frame + mark)) &&
	       language_read(w, &s->code, frame + l->frame_code) &&
	       language_read(w, &s->word, frame + l->frame_instruction);
#endif
}
/* Reads of s->code its names to s->about, and its line to s->id. */
INLINE bool python_read_code(struct language_walk *w)
{
	struct language_state *s = w->s;
	const struct wire_python *l = &w->l->python;

	return !LANGUAGE_READ(w, s->about, sizeof(s->about), s->code + l->code_about) &&
	       language_read(w, &s->id, s->code + l->code_line);
}
INLINE bool ruby_read_control(struct language_walk *w, u64 frame)
{
	return !LANGUAGE_CONTROL(w, w->s->control, frame);
}
INLINE bool ruby_read_scope(struct language_walk *w, u64 *dst, u64 frame)
{
	return !LANGUAGE_READ(w, dst, 8, frame + WIRE_RUBY_FRAME_SCOPE);
}
INLINE bool ruby_read_method(struct language_walk *w, u64 at)
{
	u64 *m = w->s->method;

	return !LANGUAGE_READ(w, m, 8, at) && (m[0] & WIRE_RUBY_KIND_MASK) == WIRE_RUBY_METHOD &&
	       !LANGUAGE_READ(w, m + 2, 24, at + WIRE_RUBY_METHOD_ABOUT);
}
/* Reads what is needed of the body of an iseq at s->word, and its instructions' address to
 * there. */
INLINE bool ruby_read_body(struct language_walk *w)
{
	struct language_state *s = w->s;

	return !LANGUAGE_FIXED(w, s->about, WIRE_LANGUAGE_ABOUT * 8,
			       s->word + WIRE_RUBY_BODY_ABOUT) &&
	       !LANGUAGE_FIXED(w, &s->word, 8, s->word + WIRE_RUBY_BODY_INSTRUCTIONS);
}
#else
/* Returns where the word is that is `at` bytes behind the beginning of s->near. */
INLINE const u64 *python_near(const struct language_state *s, u32 at)
{
	OPAQUE(at);
	return (const u64 *)((const u8 *)s->near + (at & (WIRE_PYTHON_NEAR - 1)));
}
INLINE bool python_read_frame(struct language_walk *w, u64 frame)
{
	struct language_state *s = w->s;
	const struct wire_python *l = &w->l->python;
	u32 size = l->frame_size & (WIRE_PYTHON_NEAR - 1), low = l->frame_low;

	if (LANGUAGE_READ(w, s->near, size, frame + low))
		return false;
	s->frame = *python_near(s, l->frame_previous - low);
	s->code = *python_near(s, l->frame_code - low);
	s->word = *python_near(s, l->frame_instruction - low);
	s->byte[0] = (u8)*python_near(
		s,
		(w->l->frames == WIRE_LANGUAGE_SHIMS ? l->frame_owner : l->frame_is_entry) - low);
	return true;
}
INLINE bool python_read_code(struct language_walk *w)
{
	struct language_state *s = w->s;
	const struct wire_python *l = &w->l->python;
	u32 size = l->code_size & (WIRE_PYTHON_NEAR - 1), low = l->code_low;

	if (LANGUAGE_READ(w, s->near, size, s->code + low))
		return false;
	for (u32 i = 0; i < WIRE_PYTHON_ABOUT; i++)
		s->about[i] = *python_near(s, l->code_about - low + i * 8);
	s->id = *python_near(s, l->code_line - low);
	return true;
}
INLINE bool ruby_read_control(struct language_walk *w, u64 frame)
{
	return !LANGUAGE_READ(w, w->s->control, sizeof(w->s->control), frame);
}
INLINE bool ruby_read_scope(struct language_walk *w, u64 *dst, u64 frame)
{
	*dst = w->s->control[WIRE_RUBY_FRAME_SCOPE / 8];
	return true;
}
INLINE bool ruby_read_method(struct language_walk *w, u64 at)
{
	u64 *m = w->s->method;

	return !LANGUAGE_READ(w, m, sizeof(w->s->method), at) &&
	       (m[0] & WIRE_RUBY_KIND_MASK) == WIRE_RUBY_METHOD;
}
INLINE bool ruby_read_body(struct language_walk *w)
{
	struct language_state *s = w->s;

	if (LANGUAGE_READ(w, s->body, sizeof(s->body), s->word + WIRE_RUBY_BODY_INSTRUCTIONS))
		return false;
	s->word = s->body[0];
	for (u32 i = 0; i < WIRE_LANGUAGE_ABOUT; i++)
		s->about[i] = s->body[RUBY_BODY_WORDS - WIRE_LANGUAGE_ABOUT + i];
	return true;
}
#endif

/* Finds the innermost frame of the thread's state. Returns false when it has none. */
INLINE bool python_innermost(struct language_walk *w)
{
	struct language_state *s = w->s;

	if (!s->thread || !language_read(w, &s->frame, s->thread + w->l->python.thread_frame))
		return false;
	if (!w->l->python.by_cframe || !s->frame)
		return s->frame;
	return language_read(w, &s->frame, s->frame + w->l->python.cframe_frame) && s->frame;
}

/* Makes a step along the list of threads. Returns 1 at the current one, or at the end. */
CALLBACK python_thread(u32 i, struct language_walk *w)
{
	struct language_state *s = w->s;

	if (!s->thread || !language_read(w, &s->word, s->thread + w->l->python.thread_id)) {
		s->thread = 0;
		return 1;
	}
	/* The state of a thread that has not begun has its maker's id, and no frame. */
	if (s->word == s->pthread && python_innermost(w))
		return 1;
	if (!language_read(w, &s->thread, s->thread + w->l->python.thread_next))
		s->thread = 0;
	return 0;
}

/* Requests the name of a code object that is met for the first time. */
INLINE void language_ask(struct language_walk *w)
{
	struct language_state *s = w->s;
	u32 at = (u32)s->id & ((1u << LANGUAGE_CODES_SHIFT) - 1);
	u32 word = (u32)(s->id >> LANGUAGE_CODES_SHIFT) | 1u << 31;

	if (w->codes[at] == word)
		return;
	s->ask = WIRE_UNWIND_ASK_CODE;
	if (!bpf_ringbuf_output(w->wanted, &s->tgid, sizeof(struct wire_unwind_ask),
				BPF_RB_FORCE_WAKEUP))
		w->codes[at] = word;
}

/* Returns the address of word n of the stack, n < WIRE_STACK_FRAMES. Uses a mask, because older
 * verifiers forget the bounds of a number that was on the stack since the comparison. */
INLINE u64 *language_word(struct language_walk *w, u64 n)
{
	OPAQUE(n);
	return &w->dst->pc[n & WIRE_STACK_FRAMES];
}
_Static_assert(WIRE_STACK_FRAMES == 127, "a mask");

/* Marks the outermost frame so far as called from native code. */
INLINE void language_entry(struct language_walk *w, u64 n)
{
	if (n && n <= WIRE_STACK_FRAMES)
		*language_word(w, n - 1) |= WIRE_LANGUAGE_ENTRY;
}

CALLBACK python_frame(u32 i, struct language_walk *w)
{
	struct language_state *s = w->s;
	const struct wire_python *l = &w->l->python;
	u64 n = s->n, frame = s->frame, at;
	u32 kind = w->l->frames;
	bool entry = kind == WIRE_LANGUAGE_OBJECTS;

	if (!frame || n >= s->max)
		return 1;
	if (!python_read_frame(w, frame))
		return 1;
	if (kind == WIRE_LANGUAGE_SHIMS && s->byte[0] == l->shim) {
		language_entry(w, n);
		return 0;
	}
	if (kind != WIRE_LANGUAGE_OBJECTS)
		entry = kind == WIRE_LANGUAGE_CFRAMES && s->byte[0];
	if (!python_read_code(w))
		return 1;
	if (kind == WIRE_LANGUAGE_OBJECTS)
		s->about[3] = 0;
	s->entry = 0;
	s->id = wire_language_python_id(s->tgid, s->code, s->about, s->id);
	at = kind == WIRE_LANGUAGE_OBJECTS ? (u64)((s64)(s32)s->word * (s32)l->scale)
					   : s->word - s->code - l->code_instructions;
	language_ask(w);
	*language_word(w, n) = wire_language_word(s->id, at) | (entry ? WIRE_LANGUAGE_ENTRY : 0);
	s->n = n + 1;
	return 0;
}

/* Finds the current thread's state: from s->word, the first interpreter, to s->thread. */
INLINE bool python_find(struct language_walk *w)
{
	struct language_state *s = w->s;

	if (!language_read(w, &s->thread, s->word + w->l->python.interpreter_threads))
		return false;
	bpf_loop(WIRE_LANGUAGE_THREADS, python_thread, w, 0);
	/* of many threads, the last one that was looked at may be another's */
	return s->word == s->pthread;
}

INLINE void python_walk(struct language_walk *w)
{
	if (python_find(w) && python_innermost(w))
		bpf_loop(2 * WIRE_STACK_FRAMES, python_frame, w, 0);
}

/* Goes to the first thread of the Ractor at s->ractor. */
INLINE bool ruby_ractor(struct language_walk *w)
{
	struct language_state *s = w->s;

	s->threads = s->ractor + (u64)(s64)w->l->ruby.ractor_threads;
	return s->ractor != s->ractors && language_read(w, &s->thread, s->threads);
}

/* Makes a step along the lists of threads, one for each Ractor. Returns 1 at the current thread, or
 * at the end. */
CALLBACK ruby_thread(u32 i, struct language_walk *w)
{
	const struct wire_ruby *l = &w->l->ruby;
	struct language_state *s = w->s;

	if (s->thread == s->threads) {
		if (l->vm_ractors && language_read(w, &s->ractor, s->ractor) && ruby_ractor(w))
			return 0;
		s->thread = 0;
		return 1;
	}
	s->word = s->thread;
	if (l->thread_native && !language_read(w, &s->word, s->thread + l->thread_native))
		s->word = 0;
	if (s->word && language_read(w, &s->word, s->word + l->thread_id) && s->word == s->pthread)
		return 1;
	if (language_read(w, &s->thread, s->thread))
		return 0;
	s->thread = 0;
	return 1;
}

/* Takes the method entry at an address that a scope has. Returns false when there is none. */
INLINE bool ruby_entry(struct language_walk *w, u64 at)
{
	struct language_state *s = w->s;

	s->method[0] = 0;
	if (at <= 16 || at & 7 || !ruby_read_method(w, at))
		return false;
	s->entry = at;
	return true;
}

/* Adds the frame, after its method entry is known. Returns 1 when the frame is not valid. */
INLINE long ruby_add(struct language_walk *w, bool finish)
{
	struct language_state *s = w->s;
	u64 n = s->n, at = WIRE_LANGUAGE_BEFORE;

	if (n >= s->max)
		return 1;
	s->code = s->control[2];
	if (s->code) {
		if (LANGUAGE_FIXED(w, &s->word, 8, s->code + WIRE_RUBY_ISEQ_BODY) ||
		    !ruby_read_body(w))
			return 1;
		at = (s->control[0] - s->word) >> 3;
	} else {
		if (!s->entry)
			return 0;
		s->about[0] = s->about[1] = s->about[2] = 0;
	}
	s->id = wire_language_method_id(s->tgid, s->code, s->about, s->entry, s->method + 2);
	language_ask(w);
	*language_word(w, n) = wire_language_word(s->id, at) | (finish ? WIRE_LANGUAGE_ENTRY : 0);
	s->n = n + 1;
	return 0;
}

/* Looks at a frame, or at one of the scopes around it that may have its method entry. */
CALLBACK ruby_frame(u32 i, struct language_walk *w)
{
	struct language_state *s = w->s;
	u64 scope = s->scope, frame = s->frame;
	bool local, found;

	if (!scope) {
		if (frame + 2 * w->l->ruby.frame_size > s->end || !ruby_read_control(w, frame))
			return 1;
		s->frame = frame + w->l->ruby.frame_size;
		s->entry = s->flags = 0;
		if (s->alone && !s->control[2]) /* of a function without a place */
			return 0;
		if (s->lines && s->control[0])
			goto add;
		if (!ruby_read_scope(w, &scope, frame) ||
		    LANGUAGE_READ(w, s->env, sizeof(s->env), scope - 16))
			return 1;
		s->flags = s->env[2];
		if (s->control[2] ? !s->control[0]
				  : (s->flags & WIRE_RUBY_MAGIC_MASK) != WIRE_RUBY_MAGIC_C)
			return 0; /* of no function */
	} else if (LANGUAGE_READ(w, s->env, sizeof(s->env), scope - 16)) {
		return 1;
	}
	local = s->env[2] & WIRE_RUBY_FLAG_LOCAL;
	found = ruby_entry(w, s->env[0]);
	if (!found && local && (s->method[0] & WIRE_RUBY_KIND_MASK) == WIRE_RUBY_SVAR &&
	    language_read(w, &s->word, s->env[0] + WIRE_RUBY_SVAR_METHOD))
		found = ruby_entry(w, s->word);
	s->scope = s->env[1] & ~3ull;
	if (!found && !local && s->scope)
		return 0;
	s->scope = 0;
add:
	return ruby_add(w, s->flags & WIRE_RUBY_FLAG_FINISH);
}

/* Finds the current thread's execution context: from the VM's address in s->word, to s->word. */
INLINE bool ruby_find(struct language_walk *w)
{
	const struct wire_ruby *l = &w->l->ruby;
	struct language_state *s = w->s;

	s->ractors = s->word + l->vm_ractors;
	s->threads = s->word + l->vm_threads;
	if (l->vm_ractors ? !language_read(w, &s->ractor, s->ractors) || !ruby_ractor(w)
			  : !language_read(w, &s->thread, s->threads))
		return false;
	bpf_loop(WIRE_LANGUAGE_THREADS, ruby_thread, w, 0);
	return s->thread && s->word == s->pthread && /* as in python_find() */
	       language_read(w, &s->word, s->thread + l->thread_context) && s->word;
}

/* Finds the innermost frame of the execution context at s->word. */
INLINE bool ruby_innermost(struct language_walk *w)
{
	struct language_state *s = w->s;

	if (LANGUAGE_READ(w, s->env, sizeof(s->env), s->word + WIRE_RUBY_CONTEXT_STACK) ||
	    s->env[1] > WIRE_RUBY_STACK_SIZE_MAX || s->env[2] < s->env[0])
		return false;
	s->frame = s->env[2]; /* WIRE_RUBY_CONTEXT_FRAME */
	s->end = s->env[0] + s->env[1] * 8;
	s->scope = 0;
	return true;
}

INLINE void ruby_walk(struct language_walk *w)
{
	if (ruby_find(w) && ruby_innermost(w))
		bpf_loop(WIRE_LANGUAGE_STEPS * WIRE_STACK_FRAMES, ruby_frame, w, 0);
}

/* Walks the frames of the current thread. */
INLINE void language_walk(struct language_walk *w, void *processes,
			  const struct wire_unwind_offsets *o)
{
	struct language_state *s = w->s;
	const u32 *words;
	u32 at;

	s->tgid = LANGUAGE_TGID(w);
	at = LANGUAGE_OF(w, processes);
	if (!at)
		return;
	words = unwind_chunk(w->chunks, at);
	w->codes = LANGUAGE_CODES(w);
	if (!words || !w->codes)
		return;
	w->l = (const void *)(words + (at & (0x10000 - WIRE_LANGUAGE_WORDS)));
	if (w->l->frames >= WIRE_LANGUAGE_JAVA || LANGUAGE_POINTER(w, o) ||
	    !language_read(w, &s->word, w->l->root) || !s->word)
		return;
	if (w->l->frames == WIRE_LANGUAGE_RUBY)
		ruby_walk(w);
	else
		python_walk(w);
}

/* Adds the frames of the language that the current thread runs to a stack that d_ustack took, with
 * the same arguments; or takes them alone (WIRE_LANGUAGE_ALONE). Returns the bytes of all
 * frames. */
ROUTINE s64 d_language(void *chunks, void *processes, void *wanted, struct wire_stack *dst,
		       const struct wire_unwind_offsets *o)
{
	struct language_walk w;
	u64 n = dst->n, max = n >> WIRE_LANGUAGE_ALONE & 0xff;

	w.chunks = chunks;
	w.dst = dst;
#ifndef DESCRY_AGENT
	w.s = (struct language_state *)((struct wire_walk *)dst)->state;
#endif
	w.wanted = wanted;
	w.s->alone = max;
	w.s->lines = n >> WIRE_LANGUAGE_LINES;
	w.s->max = max && max < WIRE_STACK_FRAMES ? max : WIRE_STACK_FRAMES;
	if (max)
		n = 0;
	w.s->n = n;
	language_walk(&w, processes, o);
	n = w.s->n;
	if (n > WIRE_STACK_FRAMES)
		n = WIRE_STACK_FRAMES;
	dst->n = (u32)n;
	return (s64)(n * 8);
}
