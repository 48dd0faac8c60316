/* The walk of Java's frames that programs make (bpf/java.bpf.h), over memory that is made up: the
 * words of frames, and what was asked for. Included last. */
#ifndef DESCRY_TEST_JAVA_WALK_H
#define DESCRY_TEST_JAVA_WALK_H

#include "jvm_memory.h"
#include "wire/language.h"

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#include "bpf/machine_state.bpf.h"

enum { JAVA_WALK_ASKS = 256 };

struct unwind_state {
	u64 pc, sp, bp, n, end, call, guess;
	u64 word, pair[2];
	u32 tgid, ask; /* a struct wire_unwind_ask, with what follows */
	u64 code, entry, id;
	struct machine_state machine;
	struct java_state java;
	u64 frame;
};

/* As chunks of unwind tables, and the ring of requests. */
struct java_made {
	struct jvm_memory *memory;
	u32 words[2 * WIRE_LANGUAGE_WORDS]; /* the second half: a struct wire_language */
	u32 codes[1 << 16];
	struct wire_unwind_ask asks[JAVA_WALK_ASKS];
	u32 nasks, reads;
	struct unwind_state state, first; /* first: after the first step */
	u64 frames[WIRE_STACK_FRAMES];
};

struct unwind_walk {
	struct java_made *chunks, *wanted;
	struct unwind_state *s;
};

static inline long java_made_read(struct java_made *m, void *dst, u32 size, u64 addr)
{
	uint32_t gap;

	m->reads++;
	return made_memory_read(&m->memory->made.space, addr, dst, size, &gap) == size ? 0 : -14;
}

static inline u32 *java_made_chunk(struct java_made *m, u64 at)
{
	return at == WIRE_UNWIND_CODES << 16 ? m->codes : m->words;
}

static inline long java_made_register(struct java_made *m, u32 reg)
{
	const struct user_regs_struct *r = &m->memory->made.thread.regs;

	m->state.word = reg == 0 ? r->rax : reg == 3 ? r->rbx : reg == 13 ? r->r13 : 0;
	return 0;
}

static inline long java_made_ask(struct java_made *m, const void *ask)
{
	if (m->nasks == JAVA_WALK_ASKS)
		return -11;
	memcpy(&m->asks[m->nasks++], ask, sizeof(m->asks[0]));
	return 0;
}

#define INLINE static inline __attribute__((unused))
#define CALLBACK static inline long
#define BPF_RB_FORCE_WAKEUP 2
#define unwind_chunk(chunks, at) java_made_chunk(chunks, at)
#define UNWIND_USER(w, dst, size, addr) java_made_read((w)->chunks, dst, size, addr)
#define UNWIND_REGISTER(w, reg) java_made_register((w)->chunks, reg)
#define bpf_ringbuf_output(wanted, ask, size, flags) java_made_ask(wanted, ask)
#define bpf_loop(n, fn, arg, flags) \
	({ \
		u32 n_ = (u32)(n), i_ = 0; \
\
		while (i_ < n_ && !fn(i_++, arg)) \
			; \
		(long)i_; \
	})

#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "bpf/java.bpf.h"

/* Walks from a place, up to code that is not the JVM's. Returns the number of words in
 * m->frames. */
static inline u32 java_made_walk(struct java_made *m, struct jvm_memory *memory, u64 pc, u64 sp,
				 u64 bp, bool called)
{
	struct unwind_walk w = { m, m, &m->state };
	struct wire_language l;
	long r = JAVA_CALLER;

	memset(m, 0, sizeof(*m));
	m->memory = memory;
	if (!jvm_wire(&memory->jvm.runtime, &l))
		return 0;
	memcpy(m->words + WIRE_LANGUAGE_WORDS, &l, sizeof(l));
	m->state = (struct unwind_state){ .pc = pc, .sp = sp, .bp = bp, .call = called };
	m->state.machine.data = WIRE_LANGUAGE_WORDS;
	m->state.tgid = (u32)memory->made.space.pid;
	while (r == JAVA_CALLER && m->state.n < WIRE_STACK_FRAMES) {
		r = java_step(&w);
		if (r != JAVA_NOT_CODE)
			m->frames[m->state.n++] = m->state.frame;
		if (m->state.n == 1 && !m->first.pc)
			m->first = m->state;
	}
	return (u32)m->state.n;
}

#endif
