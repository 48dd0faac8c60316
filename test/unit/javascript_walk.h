/* The walk of JavaScript's frames that programs make (bpf/javascript.bpf.h), over memory that is
 * made up: the words of frames, and what was asked for. Included last. */
#ifndef DESCRY_TEST_JAVASCRIPT_WALK_H
#define DESCRY_TEST_JAVASCRIPT_WALK_H

#include "v8_memory.h"
#include "wire/language.h"

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#include "bpf/machine_state.bpf.h"

enum { JS_WALK_ASKS = 256, JS_NOT_V8 = 7 };

struct unwind_state {
	u64 pc, sp, bp, bias, pages, n, end, call, guess;
	u64 word, pair[2];
	u32 tgid, ask; /* a struct wire_unwind_ask, with what follows */
	u64 code, entry, id;
	struct machine_state machine;
	struct javascript_state js;
	u64 frame;
};

/* As chunks of unwind tables, and the ring of requests. */
struct js_made {
	struct v8_memory *memory;
	u32 words[2 * WIRE_LANGUAGE_WORDS]; /* the second half: a struct wire_language */
	u32 codes[1 << 16];
	struct wire_unwind_ask asks[JS_WALK_ASKS];
	u32 nasks, reads;
	struct unwind_state state;
	u64 frames[WIRE_STACK_FRAMES];
};

struct unwind_walk {
	struct js_made *chunks, *wanted;
	struct unwind_state *s;
};

static inline long js_made_read(struct js_made *m, void *dst, u32 size, u64 addr)
{
	uint32_t gap;

	m->reads++;
	return made_memory_read(&m->memory->made.space, addr, dst, size, &gap) == size ? 0 : -14;
}

static inline u32 *js_made_chunk(struct js_made *m, u64 at)
{
	return at == WIRE_UNWIND_CODES << 16 ? m->codes : m->words;
}

static inline long js_made_register(struct js_made *m, u32 reg)
{
	const struct user_regs_struct *r = &m->memory->made.thread.regs;

	m->state.word = reg == 5    ? r->rdi
			: reg == 9  ? r->r9
			: reg == 12 ? r->r12
			: reg == 15 ? r->r15
				    : 0;
	return 0;
}

static inline long js_made_ask(struct js_made *m, const void *ask)
{
	if (m->nasks == JS_WALK_ASKS)
		return -11;
	memcpy(&m->asks[m->nasks++], ask, sizeof(m->asks[0]));
	return 0;
}

#define INLINE static inline __attribute__((unused))
#define CALLBACK static inline long
#define BPF_RB_FORCE_WAKEUP 2
#define unwind_chunk(chunks, at) js_made_chunk(chunks, at)
#define UNWIND_USER(w, dst, size, addr) js_made_read((w)->chunks, dst, size, addr)
#define UNWIND_REGISTER(w, reg) js_made_register((w)->chunks, reg)
#define bpf_ringbuf_output(wanted, ask, size, flags) js_made_ask(wanted, ask)
#define bpf_loop(n, fn, arg, flags) \
	({ \
		u32 n_ = (u32)(n), i_ = 0; \
\
		while (i_ < n_ && !fn(i_++, arg)) \
			; \
		(long)i_; \
	})

#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "bpf/javascript.bpf.h"

/* Frames that are not V8's end the walk. */
INLINE long unwind_frame_pointer(struct unwind_walk *w, u32 i)
{
	return JS_NOT_V8;
}

/* Walks from a place, up to code that is not V8's. Returns the number of words in m->frames. */
static inline u32 js_made_walk(struct js_made *m, struct v8_memory *memory, u64 pc, u64 sp, u64 bp,
			       bool called)
{
	struct unwind_walk w = { m, m, &m->state };
	struct wire_language l;
	long r = 0;

	memset(m, 0, sizeof(*m));
	m->memory = memory;
	memory->v8.blob = V8_BUILTINS;
	memory->v8.blob_size = V8_MADE - V8_BUILTINS;
	if (!v8_wire(&memory->v8.runtime, &l))
		return 0;
	memcpy(m->words + WIRE_LANGUAGE_WORDS, &l, sizeof(l));
	m->state = (struct unwind_state){ .pc = pc, .sp = sp, .bp = bp, .call = called };
	m->state.machine.data = WIRE_LANGUAGE_WORDS;
	m->state.tgid = (u32)memory->made.space.pid;
	while (!r && m->state.n < WIRE_STACK_FRAMES) {
		const u64 at = m->state.pc - m->state.call;

		if (at < V8_BUILTINS || at >= V8_MADE_END)
			break;
		m->state.pages = at < V8_MADE;
		m->state.frame = m->state.pc;
		m->state.n++;
		r = javascript_step(&w, (u32)m->state.n - 1);
		m->frames[m->state.n - 1] = m->state.frame;
		if (r == JS_NOT_V8)
			m->state.n--;
	}
	return (u32)m->state.n;
}

#endif
