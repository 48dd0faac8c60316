/* SPDX-License-Identifier: GPL-2.0-only */
/* User stacks by unwind tables (wire/wire_unwind.h): finds the tables. wire/step.h has the
 * steps. */
#include "bpf/machine_state.bpf.h"
#include "wire/offsets.h"

/* Byte offsets in struct pt_regs of x86-64. */
enum { REGS_BP = 32, REGS_IP = 128 };
/* Offset / 8 of each register of DWARF's numbers, four bits each (rsp, 7, is not used). */
#define REGS_OFFSETS 0x0123678904ED5BCAull

/* The state that changes from frame to frame. In BPF it lies behind the stack that is taken, for
 * two reasons: the 512 bytes of BPF stack are too few for all calls, and the verifier knows nothing
 * of data loaded from there, so that it walks the callback once. In the agent it lies in private
 * memory of the thread: a process with fewer rights may have the stack that is taken mapped too,
 * and would choose the addresses that are read. */
struct unwind_state {
	u64 mappings, nmappings; /* the process's list; 0: its tables are not loaded */
	u64 pc, sp, bp;
	u64 start, size; /* the mapping that was found last */
	u64 bias;
	u64 pages, first_page, npages;
	u64 n, end;
	u64 call;          /* 1: pc is a return address, so the call lies before it */
	u64 guess;         /* pc was found by frame pointer */
	u64 missed;        /* an address lies in no mapping */
	u64 fresh;         /* the tables lack the file at an address (so far) */
	u64 regs;          /* struct pt_regs of the innermost frame */
	u64 mm;            /* the kernel's own tree of mappings; 0: the walk does not use it */
	u64 word, pair[2]; /* the words that were read last */
	u64 tag, hash;     /* tag of the list; hash of the address whose rule is searched */
	u64 listed;        /* the last mapping came from the list and not from the kernel's tree */
	/* Always 0. Added to the bounds of a search, it hides them from the verifier, which would
	 * otherwise follow each combination of steps separately. */
	u64 zero;
	struct wire_unwind_process new;
	u32 tgid, ask; /* a struct wire_unwind_ask, with what follows */
	u64 code, entry, id;
	struct machine_state machine;
	union {
		struct java_state java;
		struct javascript_state js;
	};
	u64 frame; /* the word of the frame, if a language's machine made its code */
};
_Static_assert(sizeof(struct unwind_state) <= WIRE_UNWIND_STATE * 8, "room behind a stack");

struct unwind_walk {
	void *chunks;
	u32 *rules; /* chunk 0 */
	struct wire_stack *dst;
	const struct wire_unwind_offsets *o;
	struct unwind_state *s;
	void *wanted;
#ifndef DESCRY_AGENT
	u64 *known; /* remembered rules; NULL: none for this process */
#endif
};

/* Members of a mapping that is still being searched. */
#define UNWIND_NODE bias     /* in the tree, then the vm_area_struct */
#define UNWIND_AT first_page /* the address that is searched */

#define UNWIND_FRAMES(w) WIRE_STACK_FRAMES
#define UNWIND_REGISTER(w, reg) UNWIND_READ(w, (w)->s->regs + (REGS_OFFSETS >> ((reg)*4) & 15) * 8)

/* agent/routine.c has the agent's reading functions. */
#ifndef DESCRY_AGENT
/* Returns the chunk in which an address lies. */
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

/* Returns the entry of the process, NULL: it has none. Notes the request there. */
#define UNWIND_PROCESS(processes, s) bpf_map_lookup_elem(processes, &(s)->tgid)
#define UNWIND_ASKED(p, what) ((p)->asked |= (what))
/* Returns the address of the walk's state. */
#define UNWIND_STATE(chunks, dst) ((struct unwind_state *)((struct wire_walk *)dst)->state)
/* Returns true when the walk looks for frames of machines that make code. */
#define UNWIND_MEETS(w) ((w)->o->java || (w)->o->javascript)
#define UNWIND_IS_JAVA(w) ((w)->o->java && (w)->s->machine.frames == WIRE_LANGUAGE_JAVA)
#define UNWIND_IS_V8(w) ((w)->o->javascript && (w)->s->machine.frames == WIRE_LANGUAGE_V8)

#define UNWIND_USER(w, dst, size, addr) bpf_probe_read_user(dst, size, (const void *)(addr))
#define UNWIND_READ(w, addr) bpf_probe_read_kernel(&(w)->s->word, 8, KERNEL(addr))
/* unwind_known(): returns an address's rule if it is remembered, else 0. unwind_remember():
 * remembers a rule's number for the address and returns the rule.
 *
 * A search in the tables costs a dozen misses of caches and TLBs. In a probe that fires a thousand
 * times a second, that is nearly the whole cost of a frame; this costs one miss. A word has the
 * upper 48 bits of a hash of list and address, and the rule's number. Several CPUs may use a word,
 * so it is read and written at once.
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

/* Finds the last of the process's mappings that starts at or before `at`. Returns true when it
 * contains `at`. */
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
/* A stand-in's mm_struct has no tree of mappings. */
INLINE long unwind_find_vma(struct unwind_walk *w)
{
	w->s->mm = 0; /* not used again */
	return 0;
}
#else
/* Goes one level down the maple tree to the mapping that contains the address. Returns 1 when the
 * search is over. Then w->s->UNWIND_NODE is the mapping, or 0 when no mapping contains it.
 *
 *	node | type << 3  leaf 1, range 2: slots of 16; arange 3: of 10 (include/linux/maple_tree.h)
 *	slot[i] holds (pivot[i - 1], pivot[i]]; unused pivots are 0
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
		/* Finds the first pivot at or above the address. */
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

/* Takes the facts of a mapping's file from the table of files. */
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

/* Returns the inode that /proc/PID/maps shows: an overlayfs's own, not the inode of the file that
 * overlayfs maps. 0: cannot be read. */
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

/* Finds the mapping of the current process that contains `at` in the kernel's own tree. Holds no
 * lock: data that changes meanwhile is refused, or in the worst case not found. */
INLINE long unwind_find_vma(struct unwind_walk *w)
{
	const struct wire_unwind_files *files = (const void *)unwind_chunk(w->chunks, 1 << 16);
	const struct wire_unwind_offsets *o = w->o;
	u64 vma, pgoff, file, inode, ino, sec, nsec, sb;

	if (!files || !files->enabled) {
		w->s->mm = 0; /* not used again */
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
			return 1; /* code of a JIT */
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

/* Finds the mapping that contains `at` in the process's list or in the kernel's tree. */
INLINE bool unwind_mapping(struct unwind_walk *w, u64 at)
{
	w->s->listed = 1;
	if (w->s->nmappings && unwind_find_mapping(w, at))
		return true;
	w->s->listed = 0;
	w->s->missed |= w->s->nmappings != 0;
#ifdef DESCRY_AGENT
	/* V8 makes pages for its code, which are not in the list at once. */
	if (UNWIND_IS_V8(w) && !w->s->guess) {
		w->s->start = at;
		w->s->size = 1;
		w->s->pages = 0;
		return true;
	}
#endif
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

#include "bpf/java.bpf.h"
#include "bpf/javascript.bpf.h"
#define UNWIND_CODE(w) (UNWIND_IS_JAVA(w) ? java_step(w) : 0)
#define UNWIND_IS_LINKED(w, at) \
	(UNWIND_IS_V8(w) && (at) - (w)->s->start < (w)->s->size && \
	 (!(w)->s->pages || (at) - (w)->s->js.low < (w)->s->js.size))
#define UNWIND_LINKED(w, i) (UNWIND_IS_V8(w) ? javascript_step(w, i) : unwind_frame_pointer(w, i))
#include "wire/step.h"

/* Returns the number of the address space; sets w->s->mm when its tree of mappings can be read. */
INLINE u32 unwind_open_mm(struct unwind_walk *w)
{
	const struct wire_unwind_offsets *o = w->o;

	if (UNWIND_READ(w, (u64)bpf_get_current_task() + o->task_mm) || !w->s->word)
		return 0; /* the process is exiting */
	if (o->mm_mt != WIRE_NO_OFFSET && o->range_slot != WIRE_NO_OFFSET &&
	    o->inode_mtime_sec != WIRE_NO_OFFSET)
		w->s->mm = w->s->word;
	return (u32)(w->s->word >> 6) | 1;
}

/* Sets the registers and the list of the process's mappings. Returns 0, 1 when there is nothing to
 * walk, or -errno. (A function of its own, so that its variables are not on the stack during the
 * walk.) */
ROUTINE s64 d_ustack_start(struct unwind_walk *w, void *processes)
{
	struct unwind_state *s = w->s;
	struct wire_unwind_process *p;
	const char *regs;
	u32 space;

	regs = (const char *)bpf_task_pt_regs(bpf_get_current_task_btf());
	/* Reads ip, cs, flags and sp into the words that later hold the mapping. */
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
	s->word = s->mm = s->zero = s->code = s->entry = s->id = s->ask = 0;
#ifndef DESCRY_AGENT
	w->known = NULL;
#endif
	s->machine.data = s->machine.frames = 0;
	s->js.size = s->js.script = 0;
	s->js.maps[0] = s->js.maps[1] = s->js.maps[2] = s->js.maps[3] = 0;
	s->js.meta = s->js.name = 0;
	for (int i = 0; i < WIRE_V8_PLAIN; i++)
		s->js.plain[i] = 0;
	s->tgid = bpf_get_current_pid_tgid() >> 32;
	space = unwind_open_mm(w);
	p = UNWIND_PROCESS(processes, s);
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
			if (UNWIND_MEETS(w))
				machine_begin(w, p->language);
		} else {
			/* The process runs another program now, and the list belongs to the old
			 * program. */
			p->n = 0;
			p->mm = space;
			p->asked = WIRE_UNWIND_ASK_MET;
			s->missed = 1;
		}
		if (!(p->asked & WIRE_UNWIND_ASK_MET)) {
			UNWIND_ASKED(p, WIRE_UNWIND_ASK_MET);
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

/* Requests the data that the walk missed, once. */
ROUTINE s64 d_ustack_ask(struct unwind_state *s, void *processes, void *wanted)
{
	struct wire_unwind_process *p;

	if (!s->nmappings && !s->mm && s->end != WIRE_UNWIND_END_DEEP)
		s->end = WIRE_UNWIND_END_NOT_LOADED;
	if (s->missed) {
		u32 what = s->fresh || !s->mm ? WIRE_UNWIND_ASK_LIST | WIRE_UNWIND_ASK_NOW
					      : WIRE_UNWIND_ASK_LIST;

		p = UNWIND_PROCESS(processes, s);
		if (p && (p->asked & what) != what) {
			UNWIND_ASKED(p, what);
			s->ask |= what;
		}
	}
	/* Requests that can wait do not wake the tracer. */
	if (s->ask)
		bpf_ringbuf_output(wanted, &s->tgid, sizeof(struct wire_unwind_ask),
				   s->ask & WIRE_UNWIND_ASK_NOW ? BPF_RB_FORCE_WAKEUP
								: BPF_RB_NO_WAKEUP);
	return 0;
}

/* Writes the current thread's user stack to dst->pc, at most dst->n frames, and how it ended to
 * dst->end (enum wire_unwind_end + 1); dst is part of a struct wire_walk. Returns the bytes of
 * frames, 0 for a kernel thread, or -errno. When a process's mappings are not loaded or have
 * changed, the walk uses the kernel's tree or else frame pointers, and requests the mappings
 * through `wanted`. */
ROUTINE s64 d_ustack(void *chunks, void *processes, void *wanted, struct wire_stack *dst,
		     const struct wire_unwind_offsets *o)
{
	struct unwind_walk w;
	u32 max = dst->n & (WIRE_UNWIND_ADDRESSES - 1);
#ifndef DESCRY_AGENT
	u32 returned = dst->n & WIRE_UNWIND_RETURNED;
#endif
	s64 r;

	w.chunks = chunks;
	w.dst = dst;
	w.o = o;
	w.s = UNWIND_STATE(chunks, dst);
	w.wanted = wanted;
	w.s->machine.addresses = dst->n & WIRE_UNWIND_ADDRESSES;
	dst->n = 0;
	dst->end = 1 + WIRE_UNWIND_END_NO_USER;
	r = d_ustack_start(&w, processes);
	if (r)
		return r > 0 ? 0 : r;
#ifndef DESCRY_AGENT
	if (returned && !bpf_probe_read_user(&w.s->pc, 8, (const void *)w.s->sp))
		w.s->sp += 8;
#endif
	bpf_loop(max, unwind_frame, &w, 0);
	d_ustack_ask(w.s, processes, wanted);
	dst->n = (u32)w.s->n;
	dst->end = 1 + (u32)w.s->end;
	return (s64)(w.s->n * 8);
}

/* Counts how the walk that made s ended; each reason has a slot. */
ROUTINE s64 d_ustack_end(void *counters, const struct wire_stack *s)
{
	u32 end = s->end;

	if (end && end <= WIRE_UNWIND_END_COUNT)
		count(counters, WIRE_USTACKS + end - 1);
	return end;
}
