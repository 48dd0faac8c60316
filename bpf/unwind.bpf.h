/* SPDX-License-Identifier: GPL-2.0-only */
/* User stacks by unwind tables (wire/unwind.h). Its twin on the host is
 * src/program/unwind/walk.c: the same steps in the same order. */
#include "wire/unwind.h"

/* Byte offsets in struct pt_regs of x86-64. */
enum { REGS_R10 = 56, REGS_BP = 32, REGS_DI = 112, REGS_IP = 128 };

struct unwind_walk {
	void *chunks;
	u32 *rules; /* chunk 0 */
	struct wire_stack *dst;
	u64 di, r10;
	/* What changes from frame to frame is 64 bits wide and starts as a stored number the
	 * verifier knows nothing of: it walks the callback again for any new value of anything
	 * else (widths, constants, bytes a helper wrote). */
	u64 mappings, nmappings; /* the process's list; 0: tables not loaded */
	u64 pc, sp, bp;
	u64 start, size; /* the mapping found last */
	u64 bias;
	u64 pages, first_page, npages;
	u64 n, end;
	u64 call;   /* 1: pc is a return address, the call lies before it */
	u64 guess;  /* pc was found by frame pointer */
	u64 missed; /* an address in no mapping */
	u64 inner;  /* not the innermost frame any more */
	u64 ask;    /* send the process's id to whom keeps the tables */
	/* Stays 0. Added to what a search narrows, it hides its bounds: the verifier would follow
	 * each combination of steps on its own. */
	u64 zero[2];
};

/* A new unknown that is 0. */
#define UNWIND_ZERO(w) (*(volatile u64 *)&(w)->zero)

/* The chunk an address lies in. */
INLINE u32 *unwind_chunk(void *chunks, u64 address)
{
	u32 index = (u32)address >> 16, zero = 0;
	void *chunk = bpf_map_lookup_elem(chunks, &index);

	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

INLINE bool unwind_user(u64 *dst, u64 addr)
{
	return !bpf_probe_read_user(dst, 8, (const void *)addr);
}

/* The last of the process's mappings that starts at or before `at`; is it in there? */
INLINE bool unwind_find_mapping(struct unwind_walk *w, u64 at)
{
	const u32 *words = unwind_chunk(w->chunks, w->mappings);
	const struct wire_unwind_mapping *m;
	u64 zero = w->zero[0], base = w->mappings, lo = zero, hi = w->nmappings + zero;

	if (!words)
		return false;
#pragma unroll
	for (int i = 0; i < 12; i++) {
		u64 mid = (lo + hi) >> 1;

		if (hi - lo <= 1)
			break;
		m = (const void *)(words + ((base + mid * 8) & 0xfff8));
		if (m->start <= at)
			lo = mid + zero;
		else
			hi = mid + zero;
	}
	m = (const void *)(words + ((base + lo * 8) & 0xfff8));
	w->start = m->start;
	w->size = (u64)m->size << 12;
	w->bias = m->bias;
	w->pages = m->pages;
	w->first_page = m->first_page;
	w->npages = m->npages;
	return at - w->start < w->size;
}

INLINE u32 unwind_find_rule(struct unwind_walk *w, u64 at)
{
	u64 addr = at - w->bias, page = (addr >> WIRE_UNWIND_PAGE_SHIFT) - w->first_page;
	u64 zero = w->zero[0], lo, hi;
	u32 index, rows, pc = addr & 0xffff;
	const u32 *words;

	if (!w->pages || page >= w->npages)
		return 0;
	words = unwind_chunk(w->chunks, w->pages);
	if (!words)
		return 0;
	index = ((u32)w->pages + (u32)page * 2) & 0xfffe;
	rows = words[index];
	hi = words[index + 1];
	words = unwind_chunk(w->chunks, rows);
	if (!words)
		return 0;
	lo = (rows & 0xffff) + zero;
	hi += lo;
#pragma unroll
	for (int i = 0; i < 16; i++) {
		u64 mid = (lo + hi) >> 1;

		if (hi - lo <= 1)
			break;
		if (WIRE_UNWIND_ROW_PC(words[mid & 0xffff]) <= pc)
			lo = mid + zero;
		else
			hi = mid + zero;
	}
	return w->rules[words[lo & 0xffff] >> 16];
}

/* To the caller; 1 when the walk ends here, with its reason. */
INLINE long unwind_frame_pointer(struct unwind_walk *w, u32 i)
{
	u64 pair[2], bp = w->bp;

	if (!bp || bp < w->sp || (bp & 7)) {
		w->end = !bp && i ? WIRE_UNWIND_END_ROOT : WIRE_UNWIND_END_NO_TABLE;
		return 1;
	}
	if (bpf_probe_read_user(pair, 16, (const void *)bp)) {
		w->end = WIRE_UNWIND_END_UNREADABLE;
		return 1;
	}
	w->bp = pair[0];
	w->pc = pair[1];
	w->sp = bp + 16;
	w->guess = 1;
	return 0;
}

INLINE long unwind_signal(struct unwind_walk *w)
{
	u64 uc = w->sp, at_sp[2], bp;

	/* rsp and rip are neighbours */
	if (bpf_probe_read_user(at_sp, 16, (const void *)(uc + WIRE_UNWIND_UC_RSP)) ||
	    !unwind_user(&bp, uc + WIRE_UNWIND_UC_RBP)) {
		w->end = WIRE_UNWIND_END_UNREADABLE;
		return 1;
	}
	w->bp = bp;
	w->sp = at_sp[0];
	w->pc = at_sp[1];
	w->call = 0;
	return 0;
}

INLINE long unwind_step(struct unwind_walk *w, u32 rule, u32 i)
{
	u32 kind = WIRE_UNWIND_RULE_KIND(rule);
	s64 off = (s64)WIRE_UNWIND_RULE_OFF(rule) * 8, rbp = (s64)WIRE_UNWIND_RULE_RBP(rule) * 8;
	u64 cfa, from, pair[2];
	bool by_rbp = kind == WIRE_UNWIND_RBP_DEREF;

	w->end = WIRE_UNWIND_END_BAD;
	if (kind == WIRE_UNWIND_R10 || kind == WIRE_UNWIND_RA_RDI) {
		if (w->inner)
			return 1;
		cfa = (kind == WIRE_UNWIND_R10 ? w->r10 : w->sp) + off;
	} else if (kind == WIRE_UNWIND_PLT) {
		cfa = w->sp + 8 + ((s64)(w->pc & 15) * 8 >= off ? 8 : 0);
	} else {
		cfa = (kind == WIRE_UNWIND_RBP || by_rbp ? w->bp : w->sp) + off;
		if (kind == WIRE_UNWIND_RSP_DEREF || kind == WIRE_UNWIND_RSP_DEREF8 || by_rbp) {
			w->end = WIRE_UNWIND_END_UNREADABLE;
			if (!unwind_user(&cfa, cfa))
				return 1;
			w->end = WIRE_UNWIND_END_BAD;
			if (kind == WIRE_UNWIND_RSP_DEREF8)
				cfa += 8;
		}
	}
	if (kind == WIRE_UNWIND_RA_RDI) {
		w->pc = w->di;
	} else {
		if (cfa <= w->sp)
			return 1;
		w->end = WIRE_UNWIND_END_UNREADABLE;
		/* The saved rbp mostly lies below the return address: one read for both. */
		if (rbp == -16 && !by_rbp) {
			if (bpf_probe_read_user(pair, 16, (const void *)(cfa - 16)))
				return 1;
			w->bp = pair[0];
			w->pc = pair[1];
			w->sp = cfa;
			return 0;
		}
		if (!unwind_user(pair, cfa - 8))
			return 1;
		w->pc = pair[0];
	}
	if (rbp != (s64)WIRE_UNWIND_SAME * 8) {
		w->end = WIRE_UNWIND_END_UNREADABLE;
		from = (by_rbp ? w->bp : cfa) + rbp;
		if (!unwind_user(pair, from))
			return 1;
		w->bp = pair[0];
	}
	w->sp = cfa;
	return 0;
}

CALLBACK unwind_frame(u32 i, struct unwind_walk *w)
{
	u64 at = w->pc - w->call;
	u32 rule = 0;
	long stop;

	if (i >= WIRE_STACK_FRAMES)
		return 1;
	if (w->nmappings && at - w->start >= w->size && !unwind_find_mapping(w, at)) {
		w->end = WIRE_UNWIND_END_NO_TABLE;
		w->missed = 1;
		/* A frame pointer that led out of the program's text was none. */
		if (w->guess)
			return 1;
		w->dst->pc[i] = w->pc;
		w->n = i + 1;
		return 1;
	}
	w->dst->pc[i] = w->pc;
	w->n = i + 1;
	if (w->nmappings)
		rule = unwind_find_rule(w, at);
	w->guess = 0;
	w->call = 1;
	switch (WIRE_UNWIND_RULE_KIND(rule)) {
	case WIRE_UNWIND_STOP: w->end = WIRE_UNWIND_END_ROOT; return 1;
	case WIRE_UNWIND_NONE: stop = unwind_frame_pointer(w, i); break;
	case WIRE_UNWIND_SIGRETURN: stop = unwind_signal(w); break;
	default: stop = unwind_step(w, rule, i);
	}
	if (stop)
		return 1;
	w->inner = 1;
	w->end = WIRE_UNWIND_END_DEEP;
	return 0;
}

/* The current thread's user stack to dst->pc, at most max frames, and how it ended to dst->end
 * (enum wire_unwind_end + 1); the bytes of frames, 0 for a kernel thread, or -errno. A process
 * whose tables are not loaded is walked by frame pointer and asked for through `wanted`, as is
 * one whose mappings have changed. */
ROUTINE s64 d_ustack(void *chunks, void *processes, void *wanted, struct wire_stack *dst, u64 max)
{
	struct unwind_walk w = { .chunks = chunks, .dst = dst };
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct wire_unwind_process *p;
	const char *regs;

	dst->n = 0;
	dst->end = 1 + WIRE_UNWIND_END_NO_USER;
	regs = (const char *)bpf_task_pt_regs(bpf_get_current_task_btf());
	/* The words for the mapping serve as the buffer: ip, cs, flags, sp. */
	if (bpf_probe_read_kernel(&w.start, 32, regs + REGS_IP) || (w.size & 3) != 3)
		return 0;
	w.pc = w.start;
	w.sp = w.pages;
	bpf_probe_read_kernel(&w.start, 8, regs + REGS_BP);
	w.bp = w.start;
	bpf_probe_read_kernel(&w.di, 8, regs + REGS_DI);
	bpf_probe_read_kernel(&w.r10, 8, regs + REGS_R10);
	w.rules = unwind_chunk(chunks, 0);
	if (!w.rules)
		return -2 /* ENOENT */;
	/* Nothing can be read at 0: the helper zeroes. Its bytes are a new unknown each time they
	 * are loaded; a stored number would be the same one. */
	bpf_probe_read_kernel(&w.zero, sizeof(w.zero), NULL);
	w.start = UNWIND_ZERO(&w);
	w.size = UNWIND_ZERO(&w);
	w.bias = UNWIND_ZERO(&w);
	w.pages = UNWIND_ZERO(&w);
	w.first_page = UNWIND_ZERO(&w);
	w.npages = UNWIND_ZERO(&w);
	w.n = UNWIND_ZERO(&w);
	w.end = UNWIND_ZERO(&w) ^ WIRE_UNWIND_END_DEEP;
	w.call = UNWIND_ZERO(&w);
	w.guess = UNWIND_ZERO(&w);
	w.missed = UNWIND_ZERO(&w);
	w.inner = UNWIND_ZERO(&w);
	w.ask = UNWIND_ZERO(&w);
	w.mappings = UNWIND_ZERO(&w);
	w.nmappings = UNWIND_ZERO(&w);
	/* Both branches leave the same kinds of values, or the loop is walked for each. */
	p = bpf_map_lookup_elem(processes, &tgid);
	if (p) {
		w.mappings += p->mappings;
		w.nmappings += p->n;
	} else {
		/* any zeros: a new, empty entry */
		w.ask ^= !bpf_map_update_elem(processes, &tgid, &w.zero, BPF_NOEXIST);
	}
	bpf_loop((u32)max, unwind_frame, &w, 0);
	if (w.missed) {
		p = bpf_map_lookup_elem(processes, &tgid);
		if (p && !p->missed) {
			p->missed = 1;
			w.ask = 1;
		}
	}
	if (w.ask)
		bpf_ringbuf_output(wanted, &tgid, sizeof(tgid), BPF_RB_FORCE_WAKEUP);
	dst->n = (u32)w.n;
	dst->end = 1 + (u32)w.end;
	return (s64)(w.n * 8);
}
