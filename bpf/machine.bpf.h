/* SPDX-License-Identifier: GPL-2.0-only */
/* The words of frames of code that a language's machine has made. */
#ifndef DESCRY_BPF_MACHINE_H
#define DESCRY_BPF_MACHINE_H

#include "bpf/machine_state.bpf.h"

/* The agent has its own definitions of these (agent/routine.c):
 *
 *	MACHINE_READ(w, dst, size, addr)	reads the process's memory; 0 on success
 *	MACHINE_CODES(w)	words for hashes of the functions that were asked for,
 *				1 << MACHINE_CODES_SHIFT of them
 */
#ifndef DESCRY_AGENT
#define MACHINE_READ(w, dst, size, addr) UNWIND_USER(w, dst, size, addr)
#define MACHINE_CODES(w) unwind_chunk((w)->chunks, WIRE_UNWIND_CODES << 16)
enum { MACHINE_CODES_SHIFT = 16 };
#endif

INLINE bool machine_user(struct unwind_walk *w, u64 *dst, u64 addr)
{
	return !MACHINE_READ(w, dst, 8, addr);
}

/* Returns the facts about the process's machine. NULL: there are none. */
INLINE const struct wire_language *machine_data(struct unwind_walk *w)
{
	const u32 *words = unwind_chunk(w->chunks, w->s->machine.data);

	if (!words)
		return NULL;
	return (const void *)(words + (w->s->machine.data & (0x10000 - WIRE_LANGUAGE_WORDS)));
}

/* Notes the process's machine, whose facts are at an address, for the walk that begins. */
INLINE void machine_begin(struct unwind_walk *w, u64 data)
{
	const struct wire_language *l;

	w->s->machine.data = data;
	l = data ? machine_data(w) : NULL;
	w->s->machine.frames = l && l->frames >= WIRE_LANGUAGE_JAVA ? l->frames : 0;
}

/* Sets s->frame to the word of s->id, and requests the name when it is met for the first time. */
INLINE void machine_word(struct unwind_walk *w, u64 code, u64 entry, u64 at)
{
	u32 *codes = MACHINE_CODES(w);
	struct unwind_state *s = w->s;
	u32 slot = (u32)s->id & ((1u << MACHINE_CODES_SHIFT) - 1), ask = s->ask;
	u32 word = (u32)(s->id >> MACHINE_CODES_SHIFT) | 1u << 31;

	if (s->machine.addresses)
		return;
	s->frame = wire_language_word(s->id, at);
	if (!codes || codes[slot] == word)
		return;
	s->code = code;
	s->entry = entry;
	s->ask = WIRE_UNWIND_ASK_CODE;
	if (!bpf_ringbuf_output(w->wanted, &s->tgid, sizeof(struct wire_unwind_ask),
				BPF_RB_FORCE_WAKEUP))
		codes[slot] = word;
	s->ask = ask;
}

#endif
