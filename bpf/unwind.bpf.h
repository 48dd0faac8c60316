/* SPDX-License-Identifier: GPL-2.0-only */
/* User stacks by unwind tables (wire/unwind.h). Its twin on the host is
 * src/program/unwind/walk.c: the same steps in the same order. */
#include "wire/offsets.h"
#include "wire/unwind.h"

/* Byte offsets in struct pt_regs of x86-64. */
enum { REGS_BP = 32, REGS_IP = 128, REG_RDI = 5 };
/* Offset / 8 of each register of DWARF's numbers, four bits each (rsp, 7: not needed). */
#define REGS_OFFSETS 0x0123678904ED5BCAull

/* What changes from frame to frame. In BPF it lies behind the stack that is taken: 512 bytes of
 * stack are little for all calls, and of what is loaded from there the verifier knows nothing, so
 * it walks the callback once. */
struct unwind_state {
	u64 mappings, nmappings; /* the process's list; 0: tables not loaded */
	u64 pc, sp, bp;
	u64 start, size; /* the mapping found last */
	u64 bias;
	u64 pages, first_page, npages;
	u64 n, end;
	u64 call;          /* 1: pc is a return address, the call lies before it */
	u64 guess;         /* pc was found by frame pointer */
	u64 missed;        /* an address in no mapping */
	u64 fresh;         /* the file at an address is not among the tables (yet) */
	u64 regs;          /* struct pt_regs of the innermost frame */
	u64 mm;            /* the kernel's own tree of mappings; 0: it is not to be looked at */
	u64 word, pair[2]; /* read last */
	u64 tag, hash;     /* of the list; of the address whose rule is looked for */
	u64 listed; /* the mapping found last is of the list, not the kernel's: when it goes, the list does */
	/* Stays 0. Added to what a search narrows, it hides its bounds: the verifier would follow
	 * each combination of steps on its own. */
	u64 zero;
	struct wire_unwind_process new;
	u32 tgid, ask; /* a struct wire_unwind_ask */
};
_Static_assert(sizeof(struct unwind_state) <= WIRE_UNWIND_STATE * 8, "room behind a stack");

struct unwind_walk {
	void *chunks;
	u32 *rules; /* chunk 0 */
	struct wire_stack *dst;
	const struct wire_unwind_offsets *o;
#ifdef DESCRY_AGENT
	struct unwind_state s[1];
#else
	struct unwind_state *s;
	u64 *known; /* rules found before, NULL: not of this process */
#endif
};

/* Of a mapping that is still being looked for. */
#define UNWIND_NODE bias     /* in the tree, then the vm_area_struct */
#define UNWIND_AT first_page /* the address searched for */

/* In the agent, agent/routine.c has what reads. */
#ifndef DESCRY_AGENT
/* The chunk an address lies in. */
INLINE u32 *unwind_chunk(void *chunks, u64 address)
{
	u32 index = (u32)address >> 16, zero = 0;
	void *chunk = bpf_map_lookup_elem(chunks, &index);

	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

INLINE u64 *unwind_known_chunk(void *chunks)
{
	u64 cpu = bpf_get_smp_processor_id() % WIRE_UNWIND_KNOWN_CHUNKS;

	return (u64 *)unwind_chunk(chunks, (WIRE_UNWIND_CHUNKS - 1 - cpu) << 16);
}

#define UNWIND_USER(w, dst, size, addr) bpf_probe_read_user(dst, size, (const void *)(addr))
#define UNWIND_READ(w, addr) bpf_probe_read_kernel(&(w)->s->word, 8, KERNEL(addr))
/* The rule of an address, if it is remembered, else 0; the rule of that number, which is
 * remembered.
 *
 * Searching the tables costs a dozen misses of caches and TLBs, in a probe that fires a thousand
 * times a second nearly all of what a frame costs; this is one. A word is the upper 48 bits of a
 * hash of list and address, and the rule's number: read and written at once, since several CPUs
 * may.
 */
#define UNWIND_KNOWN(w, at) unwind_known(w, at)
#define UNWIND_RULE(w, at, number) unwind_remember(w, number)

INLINE u32 unwind_known(struct unwind_walk *w, u64 at)
{
	u64 word;

	if (!w->known)
		return 0;
	w->s->hash = wire_unwind_mix(at ^ w->s->tag);
	word = w->known[w->s->hash >> 32 & (WIRE_UNWIND_KNOWN - 1)];
	return (word ^ w->s->hash) >> 16 ? 0 : w->rules[word & 0xffff];
}

INLINE u32 unwind_remember(struct unwind_walk *w, u32 number)
{
	if (w->known && w->s->listed)
		w->known[w->s->hash >> 32 & (WIRE_UNWIND_KNOWN - 1)] = (w->s->hash & ~0xffffull) |
								       (number & 0xffff);
	return w->rules[number & 0xffff];
}
#endif

INLINE bool unwind_user(struct unwind_walk *w, u64 *dst, u64 addr)
{
	return !UNWIND_USER(w, dst, 8, addr);
}

/* The last of the process's mappings that starts at or before `at`; is it in there? */
INLINE bool unwind_find_mapping(struct unwind_walk *w, u64 at)
{
	const u32 *words = unwind_chunk(w->chunks, w->s->mappings);
	const struct wire_unwind_mapping *m;
	u64 zero = w->s->zero, base = w->s->mappings, lo = zero, hi = w->s->nmappings + zero;

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
	w->s->start = m->start;
	w->s->size = (u64)m->size << 12;
	w->s->bias = m->bias;
	w->s->pages = m->pages;
	w->s->first_page = m->first_page;
	w->s->npages = m->npages;
	return at - w->s->start < w->s->size;
}

#ifdef DESCRY_AGENT
INLINE long unwind_find_vma(struct unwind_walk *w)
{
	return 0;
}
#else
/* One level down the maple tree to the mapping that holds the address: 1 when w->s->UNWIND_NODE is
 * that, or nothing.
 *
 *	node | type << 3	leaf 1, range 2: slots of 16; arange 3: of 10 (include/linux/maple_tree.h)
 *	slot[i] holds (pivot[i - 1], pivot[i]]; pivots not in use are 0
 */
CALLBACK unwind_level(u32 i, struct unwind_walk *w)
{
	const struct wire_unwind_offsets *o = w->o;
	u64 type = w->s->UNWIND_NODE >> 3 & 15, node = w->s->UNWIND_NODE & ~255ull;
	bool arange = type == 3;
	u64 pivot = node + (arange ? o->arange_pivot : o->range_pivot);
	u64 slot = node + (arange ? o->arange_slot : o->range_slot);
	u64 lo = w->s->zero, hi = ((slot - pivot) >> 3) + w->s->zero;

	w->s->UNWIND_NODE = 0;
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
		if (w->s->word && w->s->word < w->s->UNWIND_AT)
			lo = mid + 1 + w->s->zero;
		else
			hi = mid + w->s->zero;
	}
	if (UNWIND_READ(w, slot + lo * 8))
		return 1;
	w->s->UNWIND_NODE = w->s->word;
	return type == 1;
}

/* What the table of files says of the file behind a mapping. */
INLINE void unwind_use_file(struct unwind_walk *w, u64 key, u64 pgoff)
{
	const struct wire_unwind_file *f;
	const u32 *words = unwind_chunk(w->chunks, 1 << 16);
	u64 at = key;

	w->s->pages = 0;
	w->s->npages = 0;
	if (!words)
		return;
#pragma unroll
	for (int i = 0; i < WIRE_UNWIND_PROBES; i++) {
		f = (const void *)(words + 8 + ((at + i) & (WIRE_UNWIND_FILES - 1)) * 8);
		if (f->key == key) {
			w->s->bias = w->s->start - (pgoff << 12) - f->delta;
			w->s->pages = f->pages;
			w->s->first_page = f->first_page;
			w->s->npages = f->npages;
			return;
		}
	}
	w->s->fresh = 1;
	w->s->missed = 1;
}

/* The inode that /proc/PID/maps names: an overlayfs's, not that of the file which it has mapped in
 * its place. 0: cannot be read. */
INLINE u64 unwind_inode(struct unwind_walk *w, u64 file)
{
	const struct wire_unwind_offsets *o = w->o;
	u64 at = file + o->file_inode;

	if (o->backing_path != WIRE_NO_OFFSET && o->file_mode != WIRE_NO_OFFSET) {
		if (UNWIND_READ(w, file + o->file_mode))
			return 0;
		if (w->s->word & WIRE_UNWIND_BACKING) {
			if (UNWIND_READ(w, file + o->backing_path + o->path_dentry))
				return 0;
			at = w->s->word + o->dentry_inode;
		}
	}
	return UNWIND_READ(w, at) ? 0 : w->s->word;
}

/* The mapping of the current process that holds `at`, from the kernel's own tree; no lock is held:
 * what is read while it changes is refused, or at worst not found. */
INLINE long unwind_find_vma(struct unwind_walk *w)
{
	const struct wire_unwind_files *files = (const void *)unwind_chunk(w->chunks, 1 << 16);
	const struct wire_unwind_offsets *o = w->o;
	u64 vma, pgoff, file, inode, ino, sec, nsec, sb;

	if (!files || !files->enabled) {
		w->s->mm = 0; /* not asked again */
		return 0;
	}
	if (UNWIND_READ(w, w->s->mm + o->mm_mt + o->tree_root))
		return 0;
	w->s->UNWIND_NODE = w->s->word;
	bpf_loop(8, unwind_level, w, 0);
	vma = w->s->UNWIND_NODE;
	if (!vma || UNWIND_READ(w, vma + o->vma_start))
		return 0;
	w->s->start = w->s->word;
	if (UNWIND_READ(w, vma + o->vma_end))
		return 0;
	w->s->size = w->s->word - w->s->start;
	if (w->s->UNWIND_AT - w->s->start >= w->s->size)
		return 0;
	if (UNWIND_READ(w, vma + o->vma_pgoff))
		return 0;
	pgoff = w->s->word;
	if (UNWIND_READ(w, vma + o->vma_file))
		return 0;
	file = w->s->word;
	w->s->bias = w->s->start;
	w->s->pages = 0;
	if (!file) {
		if (UNWIND_READ(w, w->s->mm + o->mm_vdso) || w->s->word != w->s->start)
			return 1; /* a JIT's */
		unwind_use_file(w, WIRE_UNWIND_KEY_VDSO, 0);
		return 1;
	}
	inode = unwind_inode(w, file);
	if (!inode)
		return 0;
	if (UNWIND_READ(w, inode + o->inode_ino))
		return 0;
	ino = w->s->word;
	if (UNWIND_READ(w, inode + o->inode_mtime_sec))
		return 0;
	sec = w->s->word;
	if (UNWIND_READ(w, inode + o->inode_mtime_nsec))
		return 0;
	nsec = w->s->word & 0xffffffff;
	if (UNWIND_READ(w, inode + o->inode_sb))
		return 0;
	sb = w->s->word;
	if (UNWIND_READ(w, sb + o->sb_dev))
		return 0;
	unwind_use_file(w, wire_unwind_file_key((u32)w->s->word, ino, sec, (u32)nsec), pgoff);
	return 1;
}

#endif

/* The mapping that holds `at`: among those that were told of, or the kernel's. */
INLINE bool unwind_mapping(struct unwind_walk *w, u64 at)
{
	w->s->listed = 1;
	if (w->s->nmappings && unwind_find_mapping(w, at))
		return true;
	w->s->listed = 0;
	w->s->missed |= w->s->nmappings != 0;
	if (w->s->mm) {
		w->s->UNWIND_AT = at;
		if (unwind_find_vma(w))
			return true;
		w->s->size = 0;
	}
	return !w->s->mm && !w->s->nmappings;
}

INLINE u32 unwind_find_rule(struct unwind_walk *w, u64 at)
{
	u64 addr = at - w->s->bias, page = (addr >> WIRE_UNWIND_PAGE_SHIFT) - w->s->first_page;
	u64 zero = w->s->zero, lo, hi;
	u32 index, rows, pc = addr & 0xffff;
	const u32 *words;

	if (!w->s->pages || page >= w->s->npages)
		return 0;
	words = unwind_chunk(w->chunks, w->s->pages);
	if (!words)
		return 0;
	index = ((u32)w->s->pages + (u32)page * 2) & 0xfffe;
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
	u64 bp = w->s->bp;

	if (!bp || bp < w->s->sp || (bp & 7)) {
		w->s->end = !bp && i ? WIRE_UNWIND_END_ROOT : WIRE_UNWIND_END_NO_TABLE;
		return 1;
	}
	if (UNWIND_USER(w, w->s->pair, 16, bp)) {
		w->s->end = WIRE_UNWIND_END_UNREADABLE;
		return 1;
	}
	w->s->bp = w->s->pair[0];
	w->s->pc = w->s->pair[1];
	w->s->sp = bp + 16;
	w->s->guess = 1;
	w->s->call = 1;
	return 0;
}

INLINE long unwind_signal(struct unwind_walk *w)
{
	u64 uc = w->s->sp;

	/* rsp and rip are neighbours */
	if (UNWIND_USER(w, w->s->pair, 16, uc + WIRE_UNWIND_UC_RSP) ||
	    !unwind_user(w, &w->s->word, uc + WIRE_UNWIND_UC_RBP)) {
		w->s->end = WIRE_UNWIND_END_UNREADABLE;
		return 1;
	}
	w->s->bp = w->s->word;
	w->s->sp = w->s->pair[0];
	w->s->pc = w->s->pair[1];
	w->s->call = 0;
	return 0;
}

INLINE long unwind_step(struct unwind_walk *w, u32 rule, u32 i)
{
	u32 kind = WIRE_UNWIND_RULE_KIND(rule);
	s64 off = (s64)WIRE_UNWIND_RULE_OFF(rule) * 8, rbp = (s64)WIRE_UNWIND_RULE_RBP(rule) * 8;
	u64 cfa, from;
	bool by_rbp = kind == WIRE_UNWIND_RBP_DEREF, other_stack = kind == WIRE_UNWIND_STACK;

	w->s->end = WIRE_UNWIND_END_BAD;
	if (kind == WIRE_UNWIND_REG || kind == WIRE_UNWIND_INDEX || kind == WIRE_UNWIND_RA_RDI) {
		bool index = kind == WIRE_UNWIND_INDEX;
		u32 reg = kind == WIRE_UNWIND_RA_RDI ? REG_RDI : WIRE_UNWIND_RULE_REG(rule);

		w->s->end = WIRE_UNWIND_END_NO_TABLE;
		if (i) {
			/* rbx is where the function that was called from here has put it. */
			if (kind != WIRE_UNWIND_REG || reg != WIRE_UNWIND_REG_RBX ||
			    rbp == (s64)WIRE_UNWIND_SAME * 8 ||
			    !unwind_user(w, &w->s->word, w->s->sp + rbp))
				return 1;
		} else if (UNWIND_READ(w, w->s->regs + (REGS_OFFSETS >> (reg * 4) & 15) * 8)) {
			return 1;
		}
		if (kind == WIRE_UNWIND_REG && reg == WIRE_UNWIND_REG_RBX)
			rbp = (s64)WIRE_UNWIND_SAME * 8;
		cfa = w->s->word + (s64)WIRE_UNWIND_RULE_WORDS(rule) * 8;
		if (kind == WIRE_UNWIND_RA_RDI)
			cfa = w->s->sp + off;
		if (index) {
			w->s->end = WIRE_UNWIND_END_UNREADABLE;
			if (!unwind_user(w, w->s->pair, cfa + w->s->sp + w->s->word * 7))
				return 1;
			cfa = w->s->pair[0] + 8;
		}
		w->s->end = WIRE_UNWIND_END_BAD;
	} else if (kind == WIRE_UNWIND_PLT) {
		cfa = w->s->sp + 8 + ((s64)(w->s->pc & 15) * 8 >= off ? 8 : 0);
	} else {
		cfa = (kind == WIRE_UNWIND_RBP || other_stack || by_rbp ? w->s->bp : w->s->sp) +
		      off;
		if (kind == WIRE_UNWIND_RSP_DEREF || kind == WIRE_UNWIND_RSP_DEREF8 || by_rbp) {
			w->s->end = WIRE_UNWIND_END_UNREADABLE;
			if (!unwind_user(w, w->s->pair, cfa))
				return 1;
			cfa = w->s->pair[0];
			w->s->end = WIRE_UNWIND_END_BAD;
			if (kind == WIRE_UNWIND_RSP_DEREF8)
				cfa += 8;
		}
	}
	if (kind == WIRE_UNWIND_RA_RDI) {
		w->s->pc = w->s->word;
		w->s->call = 1;
	} else {
		/* OCaml's caml_c_call pops its return address: it is still where it was. */
		if (cfa < w->s->sp + w->s->call && !other_stack)
			return 1;
		w->s->call = 1;
		w->s->end = WIRE_UNWIND_END_UNREADABLE;
		/* The saved rbp mostly lies below the return address: one read for both. */
		if (rbp == -16 && !by_rbp) {
			if (UNWIND_USER(w, w->s->pair, 16, cfa - 16))
				return 1;
			w->s->bp = w->s->pair[0];
			w->s->pc = w->s->pair[1];
			w->s->sp = cfa;
			return 0;
		}
		if (!unwind_user(w, w->s->pair, cfa - 8))
			return 1;
		w->s->pc = w->s->pair[0];
	}
	if (rbp != (s64)WIRE_UNWIND_SAME * 8) {
		w->s->end = WIRE_UNWIND_END_UNREADABLE;
		from = (by_rbp ? w->s->bp : cfa) + rbp;
		if (!unwind_user(w, w->s->pair, from))
			return 1;
		w->s->bp = w->s->pair[0];
	}
	w->s->sp = cfa;
	return 0;
}

CALLBACK unwind_frame(u32 i, struct unwind_walk *w)
{
	u64 at = w->s->pc - w->s->call;
	u32 rule;
	long stop;

	if (i >= WIRE_STACK_FRAMES)
		return 1;
	rule = at || w->s->call ? UNWIND_KNOWN(w, at) : WIRE_UNWIND_CALLED;
	stop = !rule && at - w->s->start >= w->s->size && !unwind_mapping(w, at);
	if (stop) {
		w->s->end = WIRE_UNWIND_END_NO_TABLE;
		/* A frame pointer that led out of the program's text was none. */
		if (w->s->guess)
			return 1;
	}
	w->dst->pc[i] = w->s->pc;
	w->s->n = i + 1;
	if (stop)
		return 1;
	if (w->s->fresh) {
		w->s->end = WIRE_UNWIND_END_NOT_LOADED;
		return 1;
	}
	if (!rule)
		rule = unwind_find_rule(w, at);
	w->s->guess = 0;
	switch (WIRE_UNWIND_RULE_KIND(rule)) {
	case WIRE_UNWIND_STOP: w->s->end = WIRE_UNWIND_END_ROOT; return 1;
	case WIRE_UNWIND_NONE: stop = unwind_frame_pointer(w, i); break;
	case WIRE_UNWIND_SIGRETURN: stop = unwind_signal(w); break;
	default: stop = unwind_step(w, rule, i);
	}
	if (stop)
		return 1;
	/* Who begins a stack by hand lets it return to 0: fibers. */
	stop = !w->s->pc && w->s->call && !w->s->guess;
	w->s->end = stop ? WIRE_UNWIND_END_ROOT : WIRE_UNWIND_END_DEEP;
	return stop;
}

/* The number the address space goes by; w->s->mm when its tree of mappings can be read. */
INLINE u32 unwind_open_mm(struct unwind_walk *w)
{
	const struct wire_unwind_offsets *o = w->o;

	if (UNWIND_READ(w, (u64)bpf_get_current_task() + o->task_mm) || !w->s->word)
		return 0; /* it is exiting */
	if (o->mm_mt != WIRE_NO_OFFSET && o->range_slot != WIRE_NO_OFFSET &&
	    o->inode_mtime_sec != WIRE_NO_OFFSET)
		w->s->mm = w->s->word;
	return (u32)(w->s->word >> 6) | 1;
}

/* The registers, and the list of the process's mappings: 0, or 1 when there is nothing to walk, or
 * -errno. (Functions of their own, so that their variables are not on the stack while frames are
 * walked.) */
ROUTINE s64 d_ustack_start(struct unwind_walk *w, void *processes)
{
	struct unwind_state *s = w->s;
	struct wire_unwind_process *p;
	const char *regs;
	u32 space;

	regs = (const char *)bpf_task_pt_regs(bpf_get_current_task_btf());
	/* The words for the mapping serve as the buffer: ip, cs, flags, sp. */
	if (bpf_probe_read_kernel(&s->start, 32, regs + REGS_IP) || (s->size & 3) != 3)
		return 1;
	s->pc = s->start;
	s->sp = s->pages;
	bpf_probe_read_kernel(&s->bp, 8, regs + REGS_BP);
	s->regs = (u64)regs;
	w->rules = unwind_chunk(w->chunks, 0);
	if (!w->rules)
		return -2 /* ENOENT */;
	s->mappings = s->nmappings = 0;
	s->start = s->size = s->bias = 0;
	s->pages = s->first_page = s->npages = 0;
	s->n = 0;
	s->end = WIRE_UNWIND_END_DEEP;
	s->call = s->guess = s->missed = s->fresh = s->listed = 0;
	s->word = s->mm = s->zero = s->ask = 0;
#ifndef DESCRY_AGENT
	w->known = NULL;
#endif
	s->tgid = bpf_get_current_pid_tgid() >> 32;
	space = unwind_open_mm(w);
	p = bpf_map_lookup_elem(processes, &s->tgid);
	if (p) {
		if (!p->mm)
			p->mm = space;
		if (!space || p->mm == space) {
			s->mappings = p->mappings;
			s->nmappings = p->n;
#ifndef DESCRY_AGENT
			s->tag = wire_unwind_mix(p->version);
			if (p->n)
				w->known = unwind_known_chunk(w->chunks);
#endif
		} else {
			/* It runs another program now: the list is the old one's. */
			p->n = 0;
			p->mm = space;
			p->asked = WIRE_UNWIND_ASK_MET;
			s->missed = 1;
		}
		if (!(p->asked & WIRE_UNWIND_ASK_MET)) {
			p->asked |= WIRE_UNWIND_ASK_MET;
			s->ask = WIRE_UNWIND_ASK_MET;
		}
	} else {
		s->new = (struct wire_unwind_process){ .asked = WIRE_UNWIND_ASK_MET, .mm = space };
		s->missed = space &&
			    !bpf_map_update_elem(processes, &s->tgid, &s->new, BPF_NOEXIST);
		if (s->missed)
			s->ask = WIRE_UNWIND_ASK_MET;
	}
	return 0;
}

/* What the walk found missing is asked for, once. */
ROUTINE s64 d_ustack_ask(struct unwind_state *s, void *processes, void *wanted)
{
	struct wire_unwind_process *p;

	if (!s->nmappings && !s->mm && s->end != WIRE_UNWIND_END_DEEP)
		s->end = WIRE_UNWIND_END_NOT_LOADED;
	if (s->missed) {
		u32 what = s->fresh || !s->mm ? WIRE_UNWIND_ASK_LIST | WIRE_UNWIND_ASK_NOW
					      : WIRE_UNWIND_ASK_LIST;

		p = bpf_map_lookup_elem(processes, &s->tgid);
		if (p && (p->asked & what) != what) {
			p->asked |= what;
			s->ask |= what;
		}
	}
	/* What can wait is taken when the tracer wakes up anyway. */
	if (s->ask)
		bpf_ringbuf_output(wanted, &s->tgid, sizeof(struct wire_unwind_ask),
				   s->ask & WIRE_UNWIND_ASK_NOW ? BPF_RB_FORCE_WAKEUP
								: BPF_RB_NO_WAKEUP);
	return 0;
}

/* The current thread's user stack to dst->pc, at most dst->n frames, and how it ended to dst->end
 * (enum wire_unwind_end + 1); dst is that of a struct wire_walk. The bytes of frames, 0 for a
 * kernel thread, or -errno. A process whose mappings are not loaded is walked by the kernel's, or
 * else by frame pointer, and asked for through `wanted`, as is one whose mappings have changed. */
ROUTINE s64 d_ustack(void *chunks, void *processes, void *wanted, struct wire_stack *dst,
		     const struct wire_unwind_offsets *o)
{
	struct unwind_walk w;
	u32 max = dst->n;
	s64 r;

	w.chunks = chunks;
	w.dst = dst;
	w.o = o;
#ifndef DESCRY_AGENT
	w.s = (struct unwind_state *)((struct wire_walk *)dst)->state;
#endif
	dst->n = 0;
	dst->end = 1 + WIRE_UNWIND_END_NO_USER;
	r = d_ustack_start(&w, processes);
	if (r)
		return r > 0 ? 0 : r;
	bpf_loop(max, unwind_frame, &w, 0);
	d_ustack_ask(w.s, processes, wanted);
	dst->n = (u32)w.s->n;
	dst->end = 1 + (u32)w.s->end;
	return (s64)(w.s->n * 8);
}

/* Counts how the walk that made s ended: each reason has a slot. */
ROUTINE s64 d_ustack_end(void *counters, const struct wire_stack *s)
{
	u32 end = s->end;

	if (end && end <= WIRE_UNWIND_END_COUNT)
		count(counters, WIRE_USTACKS + end - 1);
	return end;
}
