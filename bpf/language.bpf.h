/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames of interpreted languages (wire/language.h), of the current thread: Python's. */
#include "wire/language.h"

/* The state that changes from frame to frame. It lies where d_ustack's state was. */
struct language_state {
	u64 thread, frame, pthread, n;
	u64 word, about[WIRE_LANGUAGE_ABOUT];
	u8 byte[8];
	u32 tgid, ask; /* a struct wire_unwind_ask, with code and id */
	u64 code, id;
};
_Static_assert(sizeof(struct language_state) <= WIRE_UNWIND_STATE * 8, "room behind a stack");

struct language_walk {
	struct wire_stack *dst;
	const struct wire_language *l;
	struct language_state *s;
	u32 *codes;
	void *wanted;
};

INLINE bool language_read(struct language_walk *w, u64 *dst, u64 addr)
{
	return !bpf_probe_read_user(dst, 8, (const void *)addr);
}

/* Makes a step along the list of threads. Returns 1 at the current one, or at the end. */
CALLBACK language_thread(u32 i, struct language_walk *w)
{
	struct language_state *s = w->s;

	if (!s->thread || !language_read(w, &s->word, s->thread + w->l->thread_id)) {
		s->thread = 0;
		return 1;
	}
	if (s->word == s->pthread)
		return 1;
	if (!language_read(w, &s->thread, s->thread + w->l->thread_next))
		s->thread = 0;
	return 0;
}

/* Requests the name of a code object that is met for the first time. */
INLINE void language_ask(struct language_walk *w)
{
	struct language_state *s = w->s;
	u32 at = (u32)s->id & 0xffff, word = (u32)(s->id >> 16) | 1u << 31;

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

CALLBACK language_frame(u32 i, struct language_walk *w)
{
	struct language_state *s = w->s;
	const struct wire_language *l = w->l;
	u64 n = s->n, frame = s->frame, at;
	u32 kind = l->frames;
	bool entry = kind == WIRE_LANGUAGE_OBJECTS;

	if (!frame || n >= WIRE_STACK_FRAMES)
		return 1;
	if (!language_read(w, &s->frame, frame + l->frame_previous))
		return 1;
	if (kind != WIRE_LANGUAGE_OBJECTS) {
		u64 mark = kind == WIRE_LANGUAGE_SHIMS ? l->frame_owner : l->frame_is_entry;

		if (bpf_probe_read_user(s->byte, 1, (const void *)(frame + mark)))
			return 1;
		if (kind == WIRE_LANGUAGE_SHIMS && s->byte[0] == l->shim) {
			language_entry(w, n);
			return 0;
		}
		entry = kind == WIRE_LANGUAGE_CFRAMES && s->byte[0];
	}
	if (!language_read(w, &s->code, frame + l->frame_code) ||
	    !language_read(w, &s->word, frame + l->frame_instruction) ||
	    bpf_probe_read_user(s->about, sizeof(s->about),
				(const void *)(s->code + l->code_about)))
		return 1;
	s->id = wire_language_id(s->tgid, s->code, s->about);
	at = kind == WIRE_LANGUAGE_OBJECTS ? (u64)((s64)(s32)s->word * (s32)l->scale)
					   : s->word - s->code - l->code_instructions;
	language_ask(w);
	*language_word(w, n) = wire_language_word(s->id, at) | (entry ? WIRE_LANGUAGE_ENTRY : 0);
	s->n = n + 1;
	return 0;
}

/* Finds the innermost frame of the thread's state. */
INLINE bool language_innermost(struct language_walk *w)
{
	struct language_state *s = w->s;

	if (!s->thread || !language_read(w, &s->frame, s->thread + w->l->thread_frame))
		return false;
	if (!w->l->by_cframe || !s->frame)
		return s->frame;
	return language_read(w, &s->frame, s->frame + w->l->cframe_frame);
}

/* Adds the frames of the language that the current thread runs to a stack that d_ustack took, with
 * the same arguments. Returns the bytes of all frames. */
ROUTINE s64 d_language(void *chunks, void *processes, void *wanted, struct wire_stack *dst,
		       const struct wire_unwind_offsets *o)
{
	struct language_walk w;
	struct language_state *s = (struct language_state *)((struct wire_walk *)dst)->state;
	struct wire_unwind_process *p;
	const u32 *words;
	u64 n = dst->n;

	s->tgid = bpf_get_current_pid_tgid() >> 32;
	p = bpf_map_lookup_elem(processes, &s->tgid);
	if (!p || !p->language || o->thread_fsbase == WIRE_NO_OFFSET)
		return (s64)(n * 8);
	words = unwind_chunk(chunks, p->language);
	w.codes = unwind_chunk(chunks, WIRE_UNWIND_CODES << 16);
	if (!words || !w.codes)
		return (s64)(n * 8);
	w.l = (const void *)(words + (p->language & 0xffe0));
	w.dst = dst;
	w.s = s;
	w.wanted = wanted;
	s->n = n;
	if (bpf_probe_read_kernel(
		    &s->pthread, 8,
		    KERNEL(bpf_get_current_task() + o->task_thread + o->thread_fsbase)) ||
	    !language_read(&w, &s->thread, w.l->interpreters) ||
	    !language_read(&w, &s->thread, s->thread + w.l->interpreter_threads))
		return (s64)(n * 8);
	bpf_loop(WIRE_LANGUAGE_THREADS, language_thread, &w, 0);
	if (language_innermost(&w))
		bpf_loop(2 * WIRE_STACK_FRAMES, language_frame, &w, 0);
	n = s->n;
	if (n > WIRE_STACK_FRAMES)
		n = WIRE_STACK_FRAMES;
	dst->n = (u32)n;
	return (s64)(n * 8);
}
