/* What walks need rarely: the bounds of the stack that they read, the dynamic linker's text, and
 * new tables from the tracer. */
#include "agent/alloc_walk.h"

enum {
	PAGE = 4096,
	PAGES_MAX = 16384, /* of a thread's stack: 64 MB */
	PAGES_FAR = 256,   /* of another stack */
	PROT_READ_WRITE = 1 | 2,
	DONTDUMP = 16,                  /* MADV_DONTDUMP */
	MAP_PRIVATE_NORESERVE = 0x4022, /* anonymous */
	FUTEX_WAIT_ = 0,
	FIRST_MS = 20000, /* the tracer may have to make the tables of large files */
	MORE_MS = 10000,
	EACH_MS = 20,
	AGAIN_MS = 5, /* after a request for what is no text; doubled each time */
	DOUBLINGS = 8,
	AT_PHDR_ = 3,
	AT_BASE_ = 7,
	PT_LOAD_ = 1,
	PF_X_ = 1,
	PHDRS_MAX = 64,
};

/* --- the stack --- */

/* Makes a system call that reads 8 bytes of the page and then fails for another reason. */
static int is_mapped(u64 page)
{
	return !alloc_quiet && sys4(SYS_RT_SIGPROCMASK, ~0ull, page, 0, 8) != E_FAULT;
}

/* Returns the first page from `from` on that is not mapped, `to` at most. */
static u64 mapped_to(u64 from, u64 to)
{
	while (from < to && is_mapped(from))
		from += PAGE;
	return from;
}

/* The C library puts a thread's own data above its stack; the first thread's is where the kernel
 * has put it. */
static u64 end_of_stack(u64 sp)
{
	u64 tp, start = state.stack_start;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	if (tp <= sp)
		return start > sp ? start : 0;
	return start > sp && start < tp ? start : tp;
}

void alloc_find_stack(struct alloc_walk *w, u64 sp)
{
	u64 page = sp & ~(u64)(PAGE - 1), end, to;

	if (w->whole && page < w->lo && w->lo - page < (u64)PAGES_MAX * PAGE &&
	    mapped_to(page + PAGE, w->lo) >= w->lo) {
		w->lo = page;
		return;
	}
	w->n = 0;
	w->whole = 0;
	w->lo = page;
	w->hi = page + PAGE;
	end = end_of_stack(sp);
	if ((sp >= w->other_lo && sp < w->other_hi) || !end || end - page > (u64)PAGES_MAX * PAGE)
		return;
	to = mapped_to(w->hi, end);
	if (to >= end) {
		w->hi = end & ~7ull;
		w->whole = 1;
	} else if (!alloc_quiet) {
		w->other_lo = page;
		w->other_hi = to;
	}
}

int alloc_reach(struct alloc_walk *w, u64 addr, u64 size)
{
	u64 end = addr + size;

	if (addr < w->lo || end < addr || (w->whole && end > w->hi) ||
	    (end > w->hi && end - w->hi > (u64)PAGES_FAR * PAGE))
		return 0;
	if (end > w->hi)
		w->hi = mapped_to(w->hi, (end + PAGE - 1) & ~(u64)(PAGE - 1));
	return end <= w->hi;
}

int alloc_read_far(u64 *dst, u64 addr, u64 size)
{
	struct {
		u64 at, n;
	} to = { (uintptr_t)dst, size }, from = { addr, size };

	if (alloc_quiet)
		return -1;
	return sys6(SYS_PROCESS_VM_READV, (u64)sys2(SYS_GETPID, 0, 0), (uintptr_t)&to, 1,
		    (uintptr_t)&from, 1, 0) == (int64_t)size
		       ? 0
		       : -1;
}

/* --- tables --- */

void alloc_linked(int frees)
{
	__atomic_fetch_add(frees ? &state.closes : &state.loads, 1, __ATOMIC_RELAXED);
}

int alloc_ask(struct wire_alloc *m)
{
	u32 loads = __atomic_load_n(&state.loads, __ATOMIC_RELAXED);
	u32 closes = __atomic_load_n(&state.closes, __ATOMIC_RELAXED);
	u32 served = __atomic_load_n(&m->served, __ATOMIC_ACQUIRE), mine;
	u64 until = ticks() + m->ticks_per_ms * (served ? MORE_MS : FIRST_MS);
	const u64 timeout[2] = { 0, EACH_MS * 1000000 };

	/* one wait in vain is enough until the tracer moves */
	if (__atomic_load_n(&state.unserved, __ATOMIC_RELAXED) == served + 1)
		return 0;
	mine = __atomic_add_fetch(&m->asked, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		served = __atomic_load_n(&m->served, __ATOMIC_ACQUIRE);
		if ((int32_t)(served - mine) >= 0)
			break;
		if (!*state.on || alloc_is_over(m) || ticks() >= until) {
			__atomic_store_n(&state.unserved, served + 1, __ATOMIC_RELAXED);
			return 0;
		}
		alloc_ring_bell();
		if (alloc_quiet)
			for (int i = 0; i < 1000; i++)
				__asm__ volatile("pause");
		else
			sys4(SYS_FUTEX, (uintptr_t)&m->served, FUTEX_WAIT_, served,
			     (uintptr_t)timeout);
	}
	__atomic_store_n(&state.loads_seen, loads, __ATOMIC_RELAXED);
	__atomic_store_n(&state.closes_seen, closes, __ATOMIC_RELAXED);
	return 1;
}

int alloc_ask_for(struct wire_alloc *m, int listed)
{
	u64 now = ticks();
	u32 vain = state.vain;

	if (__atomic_load_n(&state.loads, __ATOMIC_RELAXED) != state.loads_seen) {
		state.vain = 0;
		state.asked_at = now;
		return alloc_ask(m);
	}
	if (listed || (vain && now - state.asked_at < m->ticks_per_ms * AGAIN_MS << vain))
		return 0;
	state.vain = vain < DOUBLINGS ? vain + 1 : vain;
	state.asked_at = now;
	return alloc_ask(m);
}

/* --- the beginning --- */

struct elf_head {
	uint8_t ident[16];
	uint16_t type, machine;
	uint32_t version;
	u64 entry, phoff, shoff;
	uint32_t flags;
	uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
struct elf_segment {
	uint32_t type, flags;
	u64 offset, vaddr, paddr, filesz, memsz, align;
};

_Static_assert(sizeof(struct elf_head) == 64 && sizeof(struct elf_segment) == 56, "elf(5)");

/* Finds the text of the dynamic linker. One that has malloc(3) itself, musl's, unloads nothing. */
static void find_linker(const uint64_t *p)
{
	uintptr_t base = 0, headers = 0;
	const struct elf_head *h;
	const struct elf_segment *s;

	for (; *p; p += 2) {
		if (*p == AT_BASE_)
			base = p[1];
		if (*p == AT_PHDR_)
			headers = p[1];
	}
	/* 0: it was started as the program */
	base = base ?: headers & ~(uintptr_t)(PAGE - 1);
	if (!base)
		return;
	h = (const struct elf_head *)base;
	s = (const struct elf_segment *)(base + h->phoff);
	for (uint32_t i = 0; i < h->phnum && i < PHDRS_MAX; i++) {
		uintptr_t from = base + s[i].vaddr;

		if (s[i].type == PT_LOAD_ && s[i].flags & PF_X_ &&
		    (uintptr_t)state.next.malloc - from >= s[i].memsz) {
			state.linker = from;
			state.linker_size = s[i].memsz;
		}
	}
}

void alloc_walks_start(const uint64_t *start, const uint64_t *auxv)
{
	state.stack_start = (uintptr_t)start;
	find_linker(auxv);
}

void alloc_walks_drop(void)
{
	struct alloc_walk *parents = state.walks;

	state.walks = 0;
	state.unserved = state.vain = 0;
	alloc_language_drop();
	if (parents)
		sys2(SYS_MUNMAP, (uintptr_t)parents, ALLOC_WALKS_BYTES);
}

uint32_t alloc_interval(struct thread *t)
{
	const u64 sample = state.memory->sample;

	t->random ^= t->random << 13;
	t->random ^= t->random >> 17;
	t->random ^= t->random << 5;
	return sample > 1 ? (uint32_t)(1 + t->random % (2 * sample - 1)) : 1;
}

void alloc_walks_open(struct wire_alloc *m)
{
	int64_t at;

	at = sys6(SYS_MMAP, 0, ALLOC_WALKS_BYTES, PROT_READ_WRITE, MAP_PRIVATE_NORESERVE, ~0ull, 0);
	if (at < 0 && at > -PAGE) {
		m->no_stacks = 1;
		return;
	}
	sys4(SYS_MADVISE, (uint64_t)at, ALLOC_WALKS_BYTES, DONTDUMP, 0);
	state.walks = (struct alloc_walk *)at;
	(void)alloc_ask(m);
}
