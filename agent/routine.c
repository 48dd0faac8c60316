/* Routines of bpf/ that are long and called often: the same source as in the kernel, compiled as
 * code of the agent. */
#define DESCRY_AGENT 1
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "agent/native.h"
#include "wire/language.h"
#include "wire/wire_unwind.h"

/* --- the reading functions of bpf/unwind.bpf.h --- */

#define bpf_get_current_pid_tgid() \
	((u64)NATIVE(w->chunks)->thread->pid << 32 | NATIVE(w->chunks)->thread->tid)
#define bpf_get_current_task() (own_words(NATIVE(w->chunks)->thread)->task)
#define bpf_get_current_task_btf() NATIVE(w->chunks)->thread
#define bpf_task_pt_regs(thread) (own_words(thread)->regs)

INLINE u32 *native_chunk(const struct native_map *n, u64 address)
{
	u32 index = (u32)address >> 16;
	const struct wire_map *inner;

	if (index >= n->map->max_entries)
		return NULL;
	inner = (const struct wire_map *)__atomic_load_n((u64 *)n->map->base + index,
							 __ATOMIC_ACQUIRE);
	return inner ? (u32 *)inner->base : NULL;
}
#define unwind_chunk(chunks, address) native_chunk(chunks, address)

/* Returns true for memory above the firing's place on the thread's stack. */
INLINE void look_at_stack(struct native_map *n)
{
	const struct wire_own *o = own_words(n->thread);
	const u64 rsp = fired_at(o);

	n->stack_lo = rsp;
	n->stack_room = rsp > o->stack_lo && rsp < o->stack_hi ? o->stack_hi - rsp : 0;
}

static NOINLINE long native_far(struct native_map *n, void *dst, u64 size, u64 addr)
{
	long r = read_inside(n->thread, dst, size, addr);

	/* a read may have found the stack's bounds again */
	look_at_stack(n);
	return r;
}

/* Reads 8 or 16 bytes. */
INLINE long native_user(struct native_map *n, u64 *dst, u64 size, u64 addr)
{
	u64 off = addr - n->stack_lo, word;

	if (UNLIKELY(off >= n->stack_room || n->stack_room - off < size))
		return native_far(n, dst, size, addr);
	/* The program may have unmapped the upper part of the range since it was found. */
	LOAD(64, addr, word, bad);
	dst[0] = word;
	if (size == 16) {
		LOAD(64, addr + 8, word, bad);
		dst[1] = word;
	}
	return 0;
bad:
	return E_FAULT;
}
#define UNWIND_USER(w, dst, size, addr) native_user(NATIVE((w)->chunks), dst, size, (u64)(addr))
#define UNWIND_READ(w, addr) native_far(NATIVE((w)->chunks), &(w)->s->word, 8, (u64)(addr))

/* Remembers the rules of addresses. An entry is one word, so a reader sees a whole entry. A writer
 * removes its entry again when the tables changed meanwhile. */
static inline u64 *native_entry(u64 at)
{
	return &private()->rules[at * WIRE_THREAD_MIX >> 52];
}
_Static_assert(WIRE_RULES == 4096, "bits of the hash");

INLINE u32 native_known(const u32 *rules, u64 at)
{
	u64 e = __atomic_load_n(native_entry(at), __ATOMIC_RELAXED);

	return e && e >> 16 == at ? rules[e & 0xffff] : 0;
}

INLINE u32 native_rule(const u32 *rules, u64 at, u32 number)
{
	u64 *e = native_entry(at), version = private()->rules_version;

	if (number && at >> 47 == 0 &&
	    __atomic_load_n(&area()->unwind_version, __ATOMIC_ACQUIRE) == version) {
		__atomic_store_n(e, at << 16 | number, __ATOMIC_SEQ_CST);
		if (UNLIKELY(__atomic_load_n(&area()->unwind_version, __ATOMIC_SEQ_CST) != version))
			__atomic_store_n(e, 0, __ATOMIC_RELAXED);
	}
	return rules[number];
}

/* Drops rules from older tables, and requests that are to be made again. Called before a walk. */
static inline void native_forget(void)
{
	u64 version = __atomic_load_n(&area()->unwind_version, __ATOMIC_ACQUIRE);
	u32 codes = __atomic_load_n(&area()->codes_version, __ATOMIC_RELAXED);

	if (UNLIKELY(codes != private()->codes_version)) {
		private()->codes_version = codes;
		mem_zero(private()->codes, sizeof(private()->codes));
	}
	if (LIKELY(version == private()->rules_version))
		return;
	mem_zero(private()->rules, sizeof(private()->rules));
	if (!(version & 1))
		__atomic_store_n(&private()->rules_version, version, __ATOMIC_RELEASE);
}
/* Copies this process's entry of wire_area.unwinds, which only the tracer writes. Requests go to
 * wire_said.unwind_asked, in shared memory. */
#define UNWIND_PROCESS(processes, s) native_process(&(s)->new)
#define UNWIND_ASKED(p, what) ((p)->asked |= (what), said(self())->unwind_asked |= (what))

INLINE struct wire_unwind_process *native_process(struct wire_unwind_process *copy)
{
	const struct wire_unwind_process *list =
		(const struct wire_unwind_process *)area()->unwinds;
	const u32 i = self();

	if (!list || i >= WIRE_PROCESSES_MAX)
		return NULL;
	*copy = list[i];
	copy->asked = said(i)->unwind_asked;
	return copy;
}

/* Sends a request from private memory, which a program may not send from. */
static NOINLINE long native_ask(const struct native_map *wanted, const void *data, u64 flags)
{
	struct wire_unwind_ask ask;

	mem_copy(&ask, data, sizeof(ask));
	return agent_ring_output((uintptr_t)wanted->map, (uintptr_t)&ask, sizeof(ask), flags, 0,
				 wanted->thread);
}
#undef bpf_ringbuf_output
#define bpf_ringbuf_output(m, data, n, flags) native_ask(NATIVE(m), data, flags)

#define UNWIND_KNOWN(w, at) native_known((w)->rules, at)
#define UNWIND_RULE(w, at, number) native_rule((w)->rules, at, number)
#define UNWIND_STATE(chunks, dst) ((struct unwind_state *)own_words(NATIVE(chunks)->thread)->walk)
#define UNWIND_MEETS(w) true
#define UNWIND_IS_JAVA(w) ((w)->s->machine.frames == WIRE_LANGUAGE_JAVA)
#define UNWIND_IS_V8(w) ((w)->s->machine.frames == WIRE_LANGUAGE_V8)

/* --- what the walks of languages' frames read through --- */

enum { PLAIN_MAX = WIRE_JAVA_BLOB }; /* bytes of a read by plain loads */

/* Finds the range of an address, for a walk that goes to and fro between a few. A range that has
 * gone since is a fault, which is survived. */
static NOINLINE bool find_plain(struct native_map *n, u64 addr)
{
	const struct wire_own_range *r = own_words(n->thread)->ranges;
	u64 room;

	if (!n->plain)
		return false;
#pragma GCC unroll 7
	for (u32 i = 0; i < WIRE_OWN_RANGES; i++) {
		room = r[i].hi - r[i].lo - PLAIN_MAX;
		if (addr - r[i].lo < room && r[i].hi) {
			n->other_lo = n->range_lo;
			n->other_room = n->range_room;
			n->range_lo = r[i].lo;
			n->range_room = room;
			return true;
		}
	}
	return false;
}

INLINE bool is_plain(struct native_map *n, u64 addr)
{
	return LIKELY(addr - n->range_lo < n->range_room || addr - n->other_lo < n->other_room) ||
	       find_plain(n, addr);
}

/* Reads a word of the stack, or of other memory. */
static NOINLINE long native_machine_word(struct native_map *n, u64 *to, u64 addr)
{
	u64 off = addr - n->stack_lo, word;

	if ((off >= n->stack_room || n->stack_room - off < 8) && UNLIKELY(!is_plain(n, addr)))
		return native_far(n, to, 8, addr);
	LOAD(64, addr, word, bad);
	*to = word;
	return 0;
bad:
	return E_FAULT;
}

/* Reads words, or one byte. */
static NOINLINE long native_machine_near(struct native_map *n, void *dst, u64 size, u64 addr)
{
	u64 off = addr - n->stack_lo, *to = dst, word;
	u8 byte;

	if (size > PLAIN_MAX || (size % 8 && size != 1) ||
	    ((off >= n->stack_room || n->stack_room - off < size) && UNLIKELY(!is_plain(n, addr))))
		return native_far(n, dst, size, addr);
	if (size == 1) {
		LOAD(8, addr, byte, bad);
		*(u8 *)dst = byte;
		return 0;
	}
	for (u64 i = 0; i < size; i += 8) {
		LOAD(64, addr + i, word, bad);
		*to++ = word;
	}
	return 0;
bad:
	return E_FAULT;
}

#define MACHINE_READ(w, dst, size, addr) \
	(__builtin_constant_p(size) && (size) == 8 \
		 ? native_machine_word(NATIVE((w)->chunks), (u64 *)(dst), (u64)(addr)) \
		 : native_machine_near(NATIVE((w)->chunks), dst, size, (u64)(addr)))
#define MACHINE_CODES(w) (private()->codes)
enum { MACHINE_CODES_SHIFT = 13 };
_Static_assert(1 << MACHINE_CODES_SHIFT == WIRE_CODES, "words");

#include "bpf/base.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind.bpf.h"
_Static_assert(sizeof(struct unwind_state) <= WIRE_OWN_WALK * 8, "room in private memory");

/* One for each size, because the end of a loop over words would be guessed wrong. */
static NOINLINE long native_language_word(struct native_map *n, u64 *to, u64 addr)
{
	u64 word;

	if (UNLIKELY(!is_plain(n, addr)))
		return read_inside(n->thread, to, 8, addr);
	LOAD(64, addr, word, bad);
	*to = word;
	return 0;
bad:
	return E_FAULT;
}

static NOINLINE long native_language_words(struct native_map *n, u64 *to, u64 addr)
{
	u64 a, b, c;

	if (UNLIKELY(!is_plain(n, addr)))
		return read_inside(n->thread, to, 24, addr);
	LOAD(64, addr, a, bad);
	LOAD(64, addr + 8, b, bad);
	LOAD(64, addr + 16, c, bad);
	to[0] = a;
	to[1] = b;
	to[2] = c;
	return 0;
bad:
	return E_FAULT;
}

/* Reads four words that begin less than WIRE_PYTHON_NEAR bytes behind addr. */
static NOINLINE long native_language_near(struct native_map *n, u64 to[4], u64 addr,
					  const u32 at[4])
{
	u64 a, b, c, d;

	if (UNLIKELY(!is_plain(n, addr))) {
		for (u32 i = 0; i < 4; i++)
			if (read_inside(n->thread, to + i, 8,
					addr + (at[i] & (WIRE_PYTHON_NEAR - 1))))
				return E_FAULT;
		return 0;
	}
	LOAD(64, addr + (at[0] & (WIRE_PYTHON_NEAR - 1)), a, bad);
	LOAD(64, addr + (at[1] & (WIRE_PYTHON_NEAR - 1)), b, bad);
	LOAD(64, addr + (at[2] & (WIRE_PYTHON_NEAR - 1)), c, bad);
	LOAD(64, addr + (at[3] & (WIRE_PYTHON_NEAR - 1)), d, bad);
	to[0] = a;
	to[1] = b;
	to[2] = c;
	to[3] = d;
	return 0;
bad:
	return E_FAULT;
}
static const u32 four_words[] = { 0, 8, 16, 24 };

#define LANGUAGE_NEAR(w, dst, addr, at) native_language_near(NATIVE((w)->chunks), dst, addr, at)
#define LANGUAGE_READ(w, dst, size, addr) \
	((size) == 8    ? native_language_word(NATIVE((w)->chunks), (u64 *)(dst), (u64)(addr)) \
	 : (size) == 24 ? native_language_words(NATIVE((w)->chunks), (u64 *)(dst), (u64)(addr)) \
	 : (size) == 32 ? native_language_near(NATIVE((w)->chunks), (u64 *)(dst), (u64)(addr), \
					       four_words) \
			: read_inside(NATIVE((w)->chunks)->thread, dst, size, (u64)(addr)))
#define LANGUAGE_TGID(w) (NATIVE((w)->chunks)->thread->pid)
#define LANGUAGE_OF(w, processes) native_language()
#define LANGUAGE_POINTER(w, o) (((w)->s->pthread = thread_pointer()) == 0)
#define LANGUAGE_CODES(w) (private()->codes)
enum { LANGUAGE_CODES_SHIFT = MACHINE_CODES_SHIFT };

INLINE u32 native_language(void)
{
	struct wire_unwind_process p;

	return native_process(&p) ? p.language : 0;
}

#include "bpf/language.bpf.h"

static inline struct native_map of_map(u64 map, struct wire_thread *t)
{
	return (struct native_map){ .map = (const struct wire_map *)map, .thread = t };
}

ENTRY int64_t agent_ustack(u64 chunks, u64 processes, u64 wanted, u64 dst, u64 offsets,
			   struct wire_thread *t)
{
	struct native_map c = of_map(chunks, t), p = of_map(processes, t), w = of_map(wanted, t);

	if (UNLIKELY(!is_own(t, dst, sizeof(struct wire_walk))))
		return refuse(t);
	native_forget();
	look_at_stack(&c);
	c.plain = reads_are_plain(t);
	return d_ustack(&c, &p, &w, (struct wire_stack *)dst,
			(const struct wire_unwind_offsets *)offsets);
}

ENTRY int64_t agent_language(u64 chunks, u64 processes, u64 wanted, u64 dst, u64 offsets,
			     struct wire_thread *t)
{
	struct native_map c = of_map(chunks, t), p = of_map(processes, t), w = of_map(wanted, t);

	if (UNLIKELY(!is_own(t, dst, sizeof(struct wire_walk)) ||
		     (u16)((struct wire_stack *)dst)->n > WIRE_STACK_FRAMES))
		return refuse(t);
	c.plain = reads_are_plain(t);
	return d_language(&c, &p, &w, (struct wire_stack *)dst,
			  (const struct wire_unwind_offsets *)offsets);
}

ENTRY int64_t agent_stack_id(u64 stacks, u64 counters, u64 stack, u64 bytes, u64 r5,
			     struct wire_thread *t)
{
	struct native_map s = of_map(stacks, t), c = of_map(counters, t);

	if (UNLIKELY(!is_own(t, stack, sizeof(struct wire_stack)) ||
		     (s64)bytes > WIRE_STACK_FRAMES * 8))
		return refuse(t);
	return d_stack_id(&s, &c, (struct wire_stack *)stack, (s64)bytes);
}
