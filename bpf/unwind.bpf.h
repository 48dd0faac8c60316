/* SPDX-License-Identifier: GPL-2.0-only */
/* User stacks by unwind tables (wire/unwind.h). Its twin on the host is
 * src/program/unwind/walk.c: the same steps in the same order. */
#include "wire/offsets.h"
#include "wire/unwind.h"

/* Byte offsets in struct pt_regs of x86-64. */
enum { REGS_BP = 32, REGS_IP = 128, REG_RDI = 5 };
/* Offset / 8 of each register of DWARF's numbers, four bits each (rsp, 7: not needed). */
#define REGS_OFFSETS 0x0123678904ED5BCAull

struct unwind_walk {
	void *chunks;
	u32 *rules; /* chunk 0 */
	struct wire_stack *dst;
	u64 regs; /* struct pt_regs of the innermost frame */
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
	u64 fresh;  /* the file at an address is not among the tables (yet) */
	/* The kernel's own tree of mappings. */
	const struct wire_unwind_offsets *o;
	u64 mm;   /* 0: it is not to be looked at */
	u64 word; /* read last */
	/* Stays 0. Added to what a search narrows, it hides its bounds: the verifier would follow
	 * each combination of steps on its own. */
	u64 zero[1];
};

/* Of a mapping that is still being looked for; 512 bytes of stack are little for all calls. */
#define UNWIND_NODE bias     /* in the tree, then the vm_area_struct */
#define UNWIND_AT first_page /* the address searched for */

/* A new unknown that is 0. */
#define UNWIND_ZERO(w) (*(volatile u64 *)&(w)->zero)

/* In the agent, agent/routine.c has what reads. */
#ifndef DESCRY_AGENT
/* The chunk an address lies in. */
INLINE u32 *unwind_chunk(void *chunks, u64 address)
{
	u32 index = (u32)address >> 16, zero = 0;
	void *chunk = bpf_map_lookup_elem(chunks, &index);

	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

#define UNWIND_USER(w, dst, size, addr) bpf_probe_read_user(dst, size, (const void *)(addr))
#define UNWIND_READ(w, addr) bpf_probe_read_kernel(&(w)->word, 8, KERNEL(addr))
/* The rule of an address, if it is remembered, else 0; the rule of that number, which is remembered. */
#define UNWIND_KNOWN(w, at) 0
#define UNWIND_RULE(w, at, number) ((w)->rules[number])
#endif

INLINE bool unwind_user(struct unwind_walk *w, u64 *dst, u64 addr)
{
	return !UNWIND_USER(w, dst, 8, addr);
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

#ifdef DESCRY_AGENT
INLINE long unwind_find_vma(struct unwind_walk *w)
{
	return 0;
}
#else
/* One level down the maple tree to the mapping that holds the address: 1 when w->UNWIND_NODE is that, or nothing.
 *
 *	node | type << 3	leaf 1, range 2: slots of 16; arange 3: of 10 (include/linux/maple_tree.h)
 *	slot[i] holds (pivot[i - 1], pivot[i]]; pivots not in use are 0
 */
CALLBACK unwind_level(u32 i, struct unwind_walk *w)
{
	const struct wire_unwind_offsets *o = w->o;
	u64 type = w->UNWIND_NODE >> 3 & 15, node = w->UNWIND_NODE & ~255ull;
	bool arange = type == 3;
	u64 pivot = node + (arange ? o->arange_pivot : o->range_pivot);
	u64 slot = node + (arange ? o->arange_slot : o->range_slot);
	u64 lo = w->zero[0], hi = ((slot - pivot) >> 3) + w->zero[0];

	w->UNWIND_NODE = 0;
	if (type < 1 || type > 3)
		return 1;
	/* The first pivot at or above. */
#pragma unroll
	for (int k = 0; k < 4; k++) {
		u64 mid = (lo + hi) >> 1;

		if (lo >= hi)
			break;
		if (UNWIND_READ(w, pivot + mid * 8))
			return 1;
		if (w->word && w->word < w->UNWIND_AT)
			lo = mid + 1 + w->zero[0];
		else
			hi = mid + w->zero[0];
	}
	if (UNWIND_READ(w, slot + lo * 8))
		return 1;
	w->UNWIND_NODE = w->word;
	return type == 1;
}

/* What the table of files says of the file behind a mapping. */
INLINE void unwind_use_file(struct unwind_walk *w, u64 key, u64 pgoff)
{
	const struct wire_unwind_file *f;
	const u32 *words = unwind_chunk(w->chunks, 1 << 16);
	u64 at = key;

	w->pages = 0;
	w->npages = 0;
	if (!words)
		return;
#pragma unroll
	for (int i = 0; i < WIRE_UNWIND_PROBES; i++) {
		f = (const void *)(words + 8 + ((at + i) & (WIRE_UNWIND_FILES - 1)) * 8);
		if (f->key == key) {
			w->bias = w->start - (pgoff << 12) - f->delta;
			w->pages = f->pages;
			w->first_page = f->first_page;
			w->npages = f->npages;
			return;
		}
	}
	w->fresh = 1;
	w->missed = 1;
}

/* The mapping of the current process that holds `at`, from the kernel's own tree; no lock is held: what is read while it
 * changes is refused, or at worst not found. */
INLINE long unwind_find_vma(struct unwind_walk *w)
{
	const struct wire_unwind_offsets *o = w->o;
	u64 vma, pgoff, file, inode, ino, sec, nsec, sb;

	if (UNWIND_READ(w, w->mm + o->mm_mt + o->tree_root))
		return 0;
	w->UNWIND_NODE = w->word;
	bpf_loop(8, unwind_level, w, 0);
	vma = w->UNWIND_NODE;
	if (!vma || UNWIND_READ(w, vma + o->vma_start))
		return 0;
	w->start = w->word;
	if (UNWIND_READ(w, vma + o->vma_end))
		return 0;
	w->size = w->word - w->start;
	if (w->UNWIND_AT - w->start >= w->size)
		return 0;
	if (UNWIND_READ(w, vma + o->vma_pgoff))
		return 0;
	pgoff = w->word;
	if (UNWIND_READ(w, vma + o->vma_file))
		return 0;
	file = w->word;
	w->bias = w->start;
	w->pages = 0;
	if (!file) {
		if (UNWIND_READ(w, w->mm + o->mm_vdso) || w->word != w->start)
			return 1; /* a JIT's */
		unwind_use_file(w, WIRE_UNWIND_KEY_VDSO, 0);
		return 1;
	}
	if (UNWIND_READ(w, file + o->file_inode))
		return 0;
	inode = w->word;
	if (UNWIND_READ(w, inode + o->inode_ino))
		return 0;
	ino = w->word;
	if (UNWIND_READ(w, inode + o->inode_mtime_sec))
		return 0;
	sec = w->word;
	if (UNWIND_READ(w, inode + o->inode_mtime_nsec))
		return 0;
	nsec = w->word & 0xffffffff;
	if (UNWIND_READ(w, inode + o->inode_sb))
		return 0;
	sb = w->word;
	if (UNWIND_READ(w, sb + o->sb_dev))
		return 0;
	unwind_use_file(w, wire_unwind_file_key((u32)w->word, ino, sec, (u32)nsec), pgoff);
	return 1;
}

#endif

/* The mapping that holds `at`: among those that were told of, or the kernel's. */
INLINE bool unwind_mapping(struct unwind_walk *w, u64 at)
{
	if (w->nmappings && unwind_find_mapping(w, at))
		return true;
	w->missed |= w->nmappings != 0;
	if (!w->mm)
		return !w->nmappings;
	w->UNWIND_AT = at;
	if (unwind_find_vma(w))
		return true;
	w->size = UNWIND_ZERO(w);
	return false;
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
	return UNWIND_RULE(w, at, words[lo & 0xffff] >> 16);
}

/* To the caller; 1 when the walk ends here, with its reason. */
INLINE long unwind_frame_pointer(struct unwind_walk *w, u32 i)
{
	u64 pair[2], bp = w->bp;

	if (!bp || bp < w->sp || (bp & 7)) {
		w->end = !bp && i ? WIRE_UNWIND_END_ROOT : WIRE_UNWIND_END_NO_TABLE;
		return 1;
	}
	if (UNWIND_USER(w, pair, 16, bp)) {
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
	if (UNWIND_USER(w, at_sp, 16, uc + WIRE_UNWIND_UC_RSP) ||
	    !unwind_user(w, &bp, uc + WIRE_UNWIND_UC_RBP)) {
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
	if (kind == WIRE_UNWIND_REG || kind == WIRE_UNWIND_INDEX || kind == WIRE_UNWIND_RA_RDI) {
		bool index = kind == WIRE_UNWIND_INDEX;
		u32 reg = kind == WIRE_UNWIND_RA_RDI ? REG_RDI : WIRE_UNWIND_RULE_REG(rule);

		w->end = WIRE_UNWIND_END_NO_TABLE;
		if (i) {
			/* rbx is where the function that was called from here has put it. */
			if (kind != WIRE_UNWIND_REG || reg != WIRE_UNWIND_REG_RBX ||
			    rbp == (s64)WIRE_UNWIND_SAME * 8 || !unwind_user(w, &w->word, w->sp + rbp))
				return 1;
		} else if (UNWIND_READ(w, w->regs + (REGS_OFFSETS >> (reg * 4) & 15) * 8)) {
			return 1;
		}
		if (kind == WIRE_UNWIND_REG && reg == WIRE_UNWIND_REG_RBX)
			rbp = (s64)WIRE_UNWIND_SAME * 8;
		cfa = w->word + (s64)WIRE_UNWIND_RULE_WORDS(rule) * 8;
		if (kind == WIRE_UNWIND_RA_RDI)
			cfa = w->sp + off;
		if (index) {
			w->end = WIRE_UNWIND_END_UNREADABLE;
			if (!unwind_user(w, &cfa, cfa + w->sp + w->word * 7))
				return 1;
			cfa += 8;
		}
		w->end = WIRE_UNWIND_END_BAD;
	} else if (kind == WIRE_UNWIND_PLT) {
		cfa = w->sp + 8 + ((s64)(w->pc & 15) * 8 >= off ? 8 : 0);
	} else {
		cfa = (kind == WIRE_UNWIND_RBP || by_rbp ? w->bp : w->sp) + off;
		if (kind == WIRE_UNWIND_RSP_DEREF || kind == WIRE_UNWIND_RSP_DEREF8 || by_rbp) {
			w->end = WIRE_UNWIND_END_UNREADABLE;
			if (!unwind_user(w, &cfa, cfa))
				return 1;
			w->end = WIRE_UNWIND_END_BAD;
			if (kind == WIRE_UNWIND_RSP_DEREF8)
				cfa += 8;
		}
	}
	if (kind == WIRE_UNWIND_RA_RDI) {
		w->pc = w->word;
	} else {
		if (cfa <= w->sp)
			return 1;
		w->end = WIRE_UNWIND_END_UNREADABLE;
		/* The saved rbp mostly lies below the return address: one read for both. */
		if (rbp == -16 && !by_rbp) {
			if (UNWIND_USER(w, pair, 16, cfa - 16))
				return 1;
			w->bp = pair[0];
			w->pc = pair[1];
			w->sp = cfa;
			return 0;
		}
		if (!unwind_user(w, pair, cfa - 8))
			return 1;
		w->pc = pair[0];
	}
	if (rbp != (s64)WIRE_UNWIND_SAME * 8) {
		w->end = WIRE_UNWIND_END_UNREADABLE;
		from = (by_rbp ? w->bp : cfa) + rbp;
		if (!unwind_user(w, pair, from))
			return 1;
		w->bp = pair[0];
	}
	w->sp = cfa;
	return 0;
}

CALLBACK unwind_frame(u32 i, struct unwind_walk *w)
{
	u64 at = w->pc - w->call;
	u32 rule;
	long stop;

	if (i >= WIRE_STACK_FRAMES)
		return 1;
	rule = UNWIND_KNOWN(w, at);
	if (!rule && at - w->start >= w->size && !unwind_mapping(w, at)) {
		w->end = WIRE_UNWIND_END_NO_TABLE;
		/* A frame pointer that led out of the program's text was none. */
		if (w->guess)
			return 1;
		w->dst->pc[i] = w->pc;
		w->n = i + 1;
		return 1;
	}
	w->dst->pc[i] = w->pc;
	w->n = i + 1;
	if (w->fresh) {
		w->end = WIRE_UNWIND_END_NOT_LOADED;
		return 1;
	}
	if (!rule)
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
	w->end = WIRE_UNWIND_END_DEEP;
	return 0;
}

/* Whether the kernel's tree of mappings can be used; w->mm then, and in any case the number the address space goes by. */
INLINE u32 unwind_open_mm(struct unwind_walk *w)
{
	const struct wire_unwind_offsets *o = w->o;
	const struct wire_unwind_files *files;
	u64 mm;

	if (UNWIND_READ(w, (u64)bpf_get_current_task() + o->task_mm) || !w->word)
		return 0; /* it is exiting */
	mm = w->word;
	files = (const void *)unwind_chunk(w->chunks, 1 << 16);
	if (files && files->enabled && o->mm_mt != WIRE_NO_OFFSET && o->range_slot != WIRE_NO_OFFSET &&
	    o->inode_mtime_sec != WIRE_NO_OFFSET)
		w->mm = mm;
	return (u32)(mm >> 6) | 1;
}

/* The current thread's user stack to dst->pc, at most dst->n frames, and how it ended to dst->end
 * (enum wire_unwind_end + 1); the bytes of frames, 0 for a kernel thread, or -errno. A process
 * whose mappings are not loaded is walked by the kernel's, or else by frame pointer, and asked for through `wanted`, as is
 * one whose mappings have changed. */
ROUTINE s64 d_ustack(void *chunks, void *processes, void *wanted, struct wire_stack *dst,
		     const struct wire_unwind_offsets *o)
{
	struct unwind_walk w = { .chunks = chunks, .dst = dst, .o = o };
	u32 tgid = bpf_get_current_pid_tgid() >> 32, max = dst->n, space;
	struct wire_unwind_process *p;
	const char *regs;
	bool ask = false;

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
	w.regs = (u64)regs;
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
	w.fresh = UNWIND_ZERO(&w);
	w.word = UNWIND_ZERO(&w);
	w.mm = UNWIND_ZERO(&w);
	w.mappings = UNWIND_ZERO(&w);
	w.nmappings = UNWIND_ZERO(&w);
	space = unwind_open_mm(&w);
	/* Both branches leave the same kinds of values, or the loop is walked for each. */
	p = bpf_map_lookup_elem(processes, &tgid);
	if (p) {
		if (!p->mm)
			p->mm = space;
		if (!space || p->mm == space) {
			w.mappings += p->mappings;
			w.nmappings += p->n;
		} else {
			/* It runs another program now: the list is the old one's. */
			p->n = 0;
			p->mm = space;
			p->missed = 0;
			w.missed |= 1;
		}
	} else {
		struct wire_unwind_process new = { .mm = space };

		ask = space && !bpf_map_update_elem(processes, &tgid, &new, BPF_NOEXIST);
	}
	bpf_loop(max, unwind_frame, &w, 0);
	if (!w.nmappings && !w.mm && w.end != WIRE_UNWIND_END_DEEP)
		w.end = WIRE_UNWIND_END_NOT_LOADED;
	if (w.missed) {
		p = bpf_map_lookup_elem(processes, &tgid);
		if (p && !p->missed) {
			p->missed = 1;
			ask = true;
		}
	}
	if (ask)
		bpf_ringbuf_output(wanted, &tgid, sizeof(tgid), BPF_RB_FORCE_WAKEUP);
	dst->n = (u32)w.n;
	dst->end = 1 + (u32)w.end;
	return (s64)(w.n * 8);
}

/* Counts how the walk that made s ended: each reason has a slot. */
ROUTINE s64 d_ustack_end(void *counters, const struct wire_stack *s)
{
	u32 end = s->end;

	if (end && end <= WIRE_UNWIND_END_COUNT)
		count(counters, WIRE_USTACKS + end - 1);
	return end;
}
