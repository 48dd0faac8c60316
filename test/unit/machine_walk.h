/* The walks that programs make through code of a machine that compiles (bpf/java.bpf.h,
 * bpf/javascript.bpf.h), over memory that is made up: the words of frames, and what was asked for.
 * Included behind the header of the memory, and before the walk. */
#ifndef DESCRY_TEST_MACHINE_WALK_H
#define DESCRY_TEST_MACHINE_WALK_H

#include "made_memory.h"
#include "wire/language.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#include "bpf/machine_state.bpf.h"

enum { MACHINE_WALK_ASKS = 256 };

struct unwind_state {
	u64 pc, sp, bp, size, bias, pages, n, end, call, guess;
	u64 word, pair[2];
	u32 tgid, ask; /* a struct wire_unwind_ask, with what follows */
	u64 code, entry, id;
	struct machine_state machine;
	struct java_state java;
	struct javascript_state js;
	u64 frame;
};

/* As chunks of unwind tables, and the ring of requests. */
struct machine_made {
	struct made_memory *memory;
	u32 words[2 * WIRE_LANGUAGE_WORDS]; /* the second half: a struct wire_language */
	u32 codes[1 << 16];
	struct wire_unwind_ask asks[MACHINE_WALK_ASKS];
	u32 nasks, reads;
	struct unwind_state state, first; /* first: after the first step */
	u64 frames[WIRE_STACK_FRAMES];
};

struct unwind_walk {
	struct machine_made *chunks, *wanted;
	struct unwind_state *s;
};

static inline long machine_made_read(struct machine_made *m, void *dst, u32 size, u64 addr)
{
	uint32_t gap;

	m->reads++;
	return made_memory_read(&m->memory->space, addr, dst, size, &gap) == size ? 0 : -14;
}

static inline u32 *machine_made_chunk(struct machine_made *m, u64 at)
{
	return at == WIRE_UNWIND_CODES << 16 ? m->codes : m->words;
}

/* Reads a register by its number in DWARF. */
static inline long machine_made_register(struct machine_made *m, u32 reg)
{
	const struct user_regs_struct *r = &m->memory->thread.regs;
	const u64 v[16] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp,
			    r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15 };

	m->state.word = reg < 16 ? v[reg] : 0;
	return 0;
}

static inline long machine_made_ask(struct machine_made *m, const void *ask)
{
	if (m->nasks == MACHINE_WALK_ASKS)
		return -11;
	memcpy(&m->asks[m->nasks++], ask, sizeof(m->asks[0]));
	return 0;
}

/* Begins a walk from a place in a process with these words of its language. */
static inline void machine_made_begin(struct machine_made *m, struct made_memory *memory,
				      const struct wire_language *l, u64 pc, u64 sp, u64 bp,
				      bool called)
{
	memset(m, 0, sizeof(*m));
	m->memory = memory;
	memcpy(m->words + WIRE_LANGUAGE_WORDS, l, sizeof(*l));
	m->state = (struct unwind_state){ .pc = pc, .sp = sp, .bp = bp, .call = called };
	m->state.machine.data = WIRE_LANGUAGE_WORDS;
	m->state.tgid = (u32)memory->space.pid;
}

#define INLINE static inline __attribute__((unused))
#define SUBROUTINE static inline long
#define BPF_RB_FORCE_WAKEUP 2
#define unwind_chunk(chunks, at) machine_made_chunk(chunks, at)
#define UNWIND_USER(w, dst, size, addr) machine_made_read((w)->chunks, dst, size, addr)
#define UNWIND_REGISTER(w, reg) machine_made_register((w)->chunks, reg)
#define bpf_ringbuf_output(wanted, ask, size, flags) machine_made_ask(wanted, ask)
#define bpf_loop(n, fn, arg, flags) \
	({ \
		u32 n_ = (u32)(n), i_ = 0; \
\
		while (i_ < n_ && !fn(i_++, arg)) \
			; \
		(long)i_; \
	})

#pragma GCC diagnostic ignored "-Wunknown-pragmas"

#endif
