/* The walk of interpreted languages' frames that programs make (bpf/language.bpf.h), over memory
 * that is made up: words of frames, and what was asked for. Included last. */
#ifndef DESCRY_TEST_LANGUAGE_WALK_H
#define DESCRY_TEST_LANGUAGE_WALK_H

#include "made_memory.h"
#include "wire/language.h"

#define DESCRY_AGENT 1
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

enum { LANGUAGE_WALK_ASKS = 256, LANGUAGE_CODES_SHIFT = 13 };

/* As chunks of unwind tables, the map of processes and the ring of requests. */
struct language_made {
	struct made_memory *memory;
	uint32_t words[128]; /* at 64: a struct wire_language */
	u32 codes[1 << LANGUAGE_CODES_SHIFT];
	struct wire_unwind_ask asks[LANGUAGE_WALK_ASKS];
	u32 nasks, reads;
	struct wire_walk walk;
};

static inline long language_made_read(struct language_made *m, void *dst, u32 size, u64 addr)
{
	uint32_t gap;

	m->reads++;
	return made_memory_read(&m->memory->space, addr, dst, size, &gap) == size ? 0 : -14;
}

static inline long language_made_ask(struct language_made *m, const void *ask)
{
	if (m->nasks == LANGUAGE_WALK_ASKS)
		return -11;
	memcpy(&m->asks[m->nasks++], ask, sizeof(m->asks[0]));
	return 0;
}

#define INLINE static inline __attribute__((unused))
#define CALLBACK static inline long
#define ROUTINE static inline
#define OPAQUE(x) ((void)0)
#define BPF_RB_FORCE_WAKEUP 2
#define MADE(chunks) ((struct language_made *)(chunks))
#define LANGUAGE_READ(w, dst, size, addr) language_made_read(MADE((w)->chunks), dst, size, addr)
#define LANGUAGE_TGID(w) ((u32)MADE((w)->chunks)->memory->space.pid)
#define LANGUAGE_OF(w, processes) 64u
#define LANGUAGE_POINTER(w, o) ((w)->s->pthread = MADE((w)->chunks)->memory->thread.regs.fs_base, 0)
#define LANGUAGE_CODES(w) (MADE((w)->chunks)->codes)
#define unwind_chunk(chunks, at) (MADE(chunks)->words)
#define bpf_ringbuf_output(wanted, ask, size, flags) language_made_ask(MADE(wanted), ask)
#define bpf_loop(n, fn, arg, flags) \
	({ \
		u32 n_ = (u32)(n), i_ = 0; \
\
		while (i_ < n_ && !fn(i_++, arg)) \
			; \
		(long)i_; \
	})

#include "bpf/language.bpf.h"

/* Walks the memory's thread, behind `native` frames. Returns the number of words in
 * m->walk.stack.pc. */
static inline u32 language_made_walk(struct language_made *m, struct made_memory *memory,
				     const struct wire_language *l, u32 native)
{
	memset(m, 0, sizeof(*m));
	m->memory = memory;
	memcpy(m->words + 64, l, sizeof(*l));
	m->walk.stack.n = native;
	(void)d_language(m, NULL, m, &m->walk.stack, NULL);
	return m->walk.stack.n;
}

#endif
