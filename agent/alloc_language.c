/* The frames of Python and Ruby in the stack of an allocation, by the steps of
 * bpf/language.bpf.h.
 *
 * Memory is read by plain loads where nothing can be missing: from the state of this very thread,
 * which the interpreter itself keeps for the thread (find_thread()), from pointer to pointer that
 * is in use now, while the interpreter says that it lives (is_alive()), and only after the tracer
 * has read a function's name there, which shows that the members lie where they should. All else
 * is read by process_vm_readv(2).
 *
 * The frames of the walk before are kept, each with the words that were read for it, in the order
 * in which they were read. When a walk comes to the same frame, and all words from there on have
 * the same values, the rest is the same. Each word is read through a pointer that was just
 * compared.
 *
 * The code of a Ruby function has words of its own, which do not change. They are not compared
 * where each allocation is walked and one thread alone allocates: other code can come to the same
 * address only after an allocation, at which the frame that had the former code was gone, or had
 * another address in it. (Python keeps its code in memory that it manages itself.)
 */
#include "agent/alloc_walk.h"

typedef int32_t s32;
#define DESCRY_AGENT 1
#define ROUTINE static __attribute__((unused))
#define OPAQUE(x) ((void)0)
#define WEAK __attribute__((weak))
void *pthread_getspecific(uint32_t key) WEAK;

enum {
	MET_FIRST = 4096, /* of the ids that were met: a part that caches hold */
	MET_NEAR = 4,     /* places there where one may be, */
	MET_PROBES = 20,  /* and in all */
	KEYS_MAX = 1024,  /* PTHREAD_KEYS_MAX */
	TLS_BYTES = 4096, /* of thread-local variables that are searched */
	SEARCHES = 8,
	VAIN_MAX = 2000, /* walks without plain loads, until the process makes no more of them */
	NAMES_MS = 1000,
	EACH_MS = 20,
	SCOPES_MAX = 64, /* of a frame of Ruby */
	FUTEX_WAIT_ = 0,
	BPF_RB_FORCE_WAKEUP = 2,
	LANGUAGE_CODES_SHIFT = 0,
};
#define ADDRESS_END (1ull << 47)
#define ONE_BYTE (1ull << 63) /* in the address of a read */

typedef u64 __attribute__((may_alias)) any64;
typedef u8 __attribute__((may_alias)) any8;

/* Of the process. */
static u32 key_of_state;   /* 1 + the key by which Python keeps a thread's state; 0: not found */
static u64 tls_of_context; /* distance of Ruby's variable for it below the thread pointer; 0: ... */
static u32 searches, vain, names_unserved;
static u32 no_codes[1];

/* Of a walk. */
struct language_reader {
	struct alloc_language *a;
	struct language_frame *to; /* keeps what is read; 0: nothing does */
	bool plain;
	bool loose; /* keeps no words of code */
	u32 nasks;
};

/* --- what bpf/language.bpf.h asks for --- */

INLINE void keep_read(struct language_reader *r, u64 addr, u64 value)
{
	struct language_frame *f = r->to;

	if (!f)
		return;
	if (LIKELY(f->nreads < LANGUAGE_READS))
		f->reads[f->nreads] = (struct walk_read){ addr, value };
	f->nreads++;
}

INLINE long language_load(const struct language_reader *r, void *dst, u64 size, u64 addr)
{
	u64 *to = dst;

	if (UNLIKELY(addr < 4096 || addr >= ADDRESS_END))
		return -1;
	if (UNLIKELY(!r->plain)) {
		if (alloc_read_far(dst, addr, size))
			return -1;
	} else if (size == 1) {
		*(u8 *)dst = *(const any8 *)addr;
	} else {
		for (u64 i = 0; i < size / 8; i++)
			to[i] = ((const any64 *)addr)[i];
	}
	return 0;
}

INLINE long language_get(struct language_reader *r, void *dst, u64 size, u64 addr)
{
	u64 *to = dst;

	if (language_load(r, dst, size, addr))
		return -1;
	if (size == 1)
		keep_read(r, addr | ONE_BYTE, *(u8 *)dst);
	for (u64 i = 0; i < size / 8; i++)
		keep_read(r, addr + i * 8, to[i]);
	return 0;
}

INLINE long language_fixed(struct language_reader *r, void *dst, u64 size, u64 addr)
{
	return LIKELY(r->loose) ? language_load(r, dst, size, addr)
				: language_get(r, dst, size, addr);
}

/* A frame's stack pointer moves while its function runs. */
INLINE long language_control(struct language_reader *r, u64 *dst, u64 addr)
{
	if (language_load(r, dst, 24, addr))
		return -1;
	keep_read(r, addr, dst[0]);
	keep_read(r, addr + 16, dst[2]);
	return 0;
}

INLINE u64 *place_of_met(u64 id, u32 i)
{
	u64 *met = (u64 *)(void *)(state.walks + WIRE_ALLOC_RINGS);

	return &met[(id + i) & ((i < MET_NEAR ? MET_FIRST : LANGUAGE_MET) - 1)];
}

/* Returns true when the id is new, and keeps it. */
static NOINLINE bool meet(u64 id)
{
	for (u32 i = 0; i < MET_PROBES; i++) {
		u64 *at = place_of_met(id, i), there;

		there = __atomic_load_n(at, __ATOMIC_RELAXED);
		if (!there && __atomic_compare_exchange_n(at, &there, id | 1ull << 63, 0,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (there == (id | 1ull << 63))
			return false;
	}
	return false;
}

/* The name was not read: the next walk that meets the function requests it again. */
static void unmeet(u64 id)
{
	for (u32 i = 0; i < MET_PROBES; i++)
		if (__atomic_load_n(place_of_met(id, i), __ATOMIC_RELAXED) == (id | 1ull << 63))
			__atomic_store_n(place_of_met(id, i), 0, __ATOMIC_RELAXED);
}

/* Keeps the request for a function's name until the end of the walk. */
INLINE long keep_ask(struct language_reader *r, const void *ask)
{
	const struct wire_unwind_ask *from = ask;

	if (r->nasks < LANGUAGE_FRAMES && meet(from->id))
		r->a->asks[r->nasks++] = (struct wire_alloc_name){ .code = from->code,
								   .entry = from->entry,
								   .id = from->id };
	return -1; /* the walk itself remembers nothing */
}

INLINE u64 thread_pointer(void)
{
	u64 tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

#define READER(w) ((struct language_reader *)(w)->chunks)
#define LANGUAGE_READ(w, dst, size, addr) language_get(READER(w), dst, size, addr)
#define LANGUAGE_FIXED(w, dst, size, addr) language_fixed(READER(w), dst, size, addr)
#define LANGUAGE_CONTROL(w, dst, addr) language_control(READER(w), dst, addr)
#define LANGUAGE_TGID(w) 0
#define LANGUAGE_OF(w, processes) 0
#define LANGUAGE_POINTER(w, o) 0
#define LANGUAGE_CODES(w) no_codes
#define unwind_chunk(chunks, at) no_codes
#define bpf_ringbuf_output(wanted, ask, size, flags) keep_ask(wanted, ask)
#define bpf_loop(n, fn, arg, flags) \
	({ \
		u32 n_ = (u32)(n), i_ = 0; \
\
		while (i_ < n_ && !fn(i_++, arg)) \
			; \
		(long)i_; \
	})

#include "bpf/language.bpf.h"

/* --- the thread's state --- */

/* Searches for the key by which the interpreter keeps the address of the thread's state. */
static void find_key(u64 value)
{
	for (u32 i = 0; pthread_getspecific && i < KEYS_MAX; i++)
		if ((u64)pthread_getspecific(i) == value) {
			__atomic_store_n(&key_of_state, i + 1, __ATOMIC_RELAXED);
			return;
		}
}

/* Searches the thread-local variables for the one that has the address of the context. It must be
 * the only one. */
static void find_variable(struct alloc_language *a, u64 value)
{
	u64 tp = thread_pointer(), *words = (u64 *)(void *)a->new, found = 0, end = tp;

	_Static_assert(sizeof(a->new) >= TLS_BYTES, "room for a page");
	while (end > tp - TLS_BYTES) {
		u64 from = (end - 1) & ~(u64)(TLS_BYTES - 1);

		from = from < tp - TLS_BYTES ? tp - TLS_BYTES : from;
		if (alloc_read_far(words, from, end - from))
			break;
		for (u64 i = 0; i < (end - from) / 8; i++)
			if (words[i] == value) {
				if (found)
					return;
				found = tp - (from + i * 8);
			}
		end = from;
	}
	__atomic_store_n(&tls_of_context, found, __ATOMIC_RELAXED);
}

/* Finds the thread in the interpreter's own list. Returns false when it is not there. */
static NOINLINE bool find_slowly(struct language_walk *w)
{
	struct language_reader *r = READER(w);
	struct alloc_language *a = r->a;
	bool ruby = w->l->frames == WIRE_LANGUAGE_RUBY;

	r->plain = false;
	if (alloc_quiet || !language_read(w, &w->s->word, w->l->root) || !w->s->word)
		return false;
	if (ruby) {
		if (!ruby_find(w))
			return false;
		if (!tls_of_context && searches < SEARCHES) {
			searches++;
			find_variable(a, w->s->word);
		}
		a->state = tls_of_context && *(const any64 *)(w->s->pthread - tls_of_context) ==
						     w->s->word
				   ? w->s->word
				   : 0;
		return true;
	}
	if (!python_find(w))
		return false;
	if (!key_of_state && searches < SEARCHES) {
		searches++;
		find_key(w->s->thread);
	}
	a->state = key_of_state && (u64)pthread_getspecific(key_of_state - 1) == w->s->thread
			   ? w->s->thread
			   : 0;
	return true;
}

/* Returns false when the interpreter ends: it frees the states and frames of threads that are not
 * told, also of this one, of which Ruby's variable stays. */
INLINE bool is_alive(const struct wire_language *l)
{
	u64 vm;

	if (l->frames != WIRE_LANGUAGE_RUBY)
		return !*(const any64 *)(l->root - l->python.finalizing);
	vm = *(const any64 *)l->root;
	return vm && *(const any64 *)(vm + l->ruby.vm_main);
}

/* Finds the state of this thread. Python keeps it under a key of pthread_getspecific(3), and
 * removes it there before it frees the state. Ruby has it in a thread-local variable. */
INLINE bool find_thread(struct language_walk *w, bool known)
{
	struct language_reader *r = READER(w);
	struct language_state *s = w->s;
	u64 state;

	s->pthread = thread_pointer();
	if (w->l->frames == WIRE_LANGUAGE_RUBY) {
		state = r->a->state ? *(const any64 *)(s->pthread - tls_of_context) : 0;
		s->word = state;
	} else {
		state = key_of_state ? (u64)pthread_getspecific(key_of_state - 1) : 0;
		if (key_of_state && !state)
			return false; /* no thread of Python's */
		state = state == r->a->state ? state : 0;
		s->thread = state;
	}
	r->plain = known;
	return LIKELY(state != 0) || find_slowly(w);
}

/* --- a walk --- */

INLINE bool is_same(const struct language_frame *f)
{
	if (f->nreads > LANGUAGE_READS)
		return false;
	for (u32 i = 0; i < f->nreads; i++) {
		u64 addr = f->reads[i].addr, now;

		now = UNLIKELY(addr & ONE_BYTE) ? *(const any8 *)(addr & ~ONE_BYTE)
						: *(const any64 *)addr;
		if (now != f->reads[i].value)
			return false;
	}
	return true;
}

/* Returns the number of frames of the walk before that are the rest of this one, 0: none. *end: the
 * number of them that may be. */
INLINE u32 same_rest(const struct alloc_language *a, u64 at, u32 *end)
{
	u32 k = *end, i;

	while (k && a->frames[k - 1].at != at)
		k--;
	if (!k)
		return 0;
	for (i = k; i && is_same(&a->frames[i - 1]); i--)
		;
	*end = i ? i - 1 : 0;
	return i ? 0 : k;
}

INLINE bool is_end(const struct language_walk *w)
{
	const struct language_state *s = w->s;

	return w->l->frames == WIRE_LANGUAGE_RUBY ? s->frame + 2ull * w->l->ruby.frame_size > s->end
						  : !s->frame;
}

/* Goes to the caller. Returns true when it cannot. */
static NOINLINE bool step_out(struct language_walk *w)
{
	u32 scopes = 0;

	if (w->l->frames != WIRE_LANGUAGE_RUBY)
		return python_frame(0, w);
	do {
		if (ruby_frame(0, w))
			return true;
	} while (w->s->scope && ++scopes < SCOPES_MAX);
	return w->s->scope;
}

/* Walks. Returns the number of frames that are those of the walk before; *ret_n: of new ones.
 * *whole is false when frames are missing. */
static u32 walk_out(struct language_walk *w, u32 *ret_n, bool *ret_whole)
{
	struct language_reader *r = READER(w);
	struct alloc_language *a = r->a;
	u32 n, end = r->plain ? a->n : 0, base = 0;
	bool fails = false;

	for (n = 0; n < LANGUAGE_FRAMES && !is_end(w) && !fails; n++) {
		struct language_frame *f = &a->new[n];
		u64 had = w->s->n;

		base = same_rest(a, w->s->frame, &end);
		if (base)
			break;
		f->at = w->s->frame;
		f->nreads = 0;
		r->to = f;
		fails = step_out(w);
		f->word = w->s->n > had;
		f->marks = w->l->frames == WIRE_LANGUAGE_SHIMS && !f->word && !fails;
	}
	r->to = 0;
	if (base && a->frames[base - 1].marks)
		language_entry(w, w->s->n);
	*ret_n = n;
	*ret_whole = base || (is_end(w) && !fails);
	return base;
}

/* --- names --- */

static int is_answered(const struct wire_alloc *m, u32 ticket)
{
	return (s32)(__atomic_load_n(&m->names_served, __ATOMIC_ACQUIRE) - ticket) >= 0;
}

static void wait_for_names(struct wire_alloc *m, u32 ticket)
{
	const u64 until = ticks() + m->ticks_per_ms * NAMES_MS,
		  timeout[2] = { 0, EACH_MS * 1000000 };

	while (!is_answered(m, ticket)) {
		u32 served = __atomic_load_n(&m->names_served, __ATOMIC_ACQUIRE);

		/* one wait in vain is enough until the tracer moves */
		if (__atomic_load_n(&names_unserved, __ATOMIC_RELAXED) == served + 1)
			return;
		if (!*state.on || alloc_is_over(m) || ticks() >= until) {
			__atomic_store_n(&names_unserved, served + 1, __ATOMIC_RELAXED);
			return;
		}
		alloc_ring_bell();
		if (alloc_quiet)
			for (int i = 0; i < 1000; i++)
				__asm__ volatile("pause");
		else
			sys4(SYS_FUTEX, (uintptr_t)&m->names_served, FUTEX_WAIT_, served,
			     (uintptr_t)timeout);
	}
}

/* Takes the next ticket, and returns true, when its place is free. Otherwise it takes none: the
 * tracer would wait for a request that this thread cannot write. */
static bool take_ticket(struct wire_alloc *m, u32 *ret)
{
	u32 asked = __atomic_load_n(&m->names_asked, __ATOMIC_RELAXED);

	do {
		if (!is_answered(m, asked + 1 - WIRE_ALLOC_NAMES))
			wait_for_names(m, asked + 1 - WIRE_ALLOC_NAMES);
		if (!is_answered(m, asked + 1 - WIRE_ALLOC_NAMES))
			return false;
	} while (!__atomic_compare_exchange_n(&m->names_asked, &asked, asked + 1, 0,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	*ret = asked + 1;
	return true;
}

/* Lets the tracer read the names of functions, while their frames keep them. */
static NOINLINE void ask_names(struct wire_alloc *m, const struct wire_alloc_name *asks, u32 n)
{
	u32 ticket = 0, i;

	for (i = 0; i < n && take_ticket(m, &ticket); i++) {
		struct wire_alloc_name *to = &m->names[ticket % WIRE_ALLOC_NAMES];

		to->code = asks[i].code;
		to->entry = asks[i].entry;
		to->id = asks[i].id;
		__atomic_store_n(&to->ticket, ticket, __ATOMIC_RELEASE);
	}
	if (i)
		wait_for_names(m, ticket);
	for (i = i && is_answered(m, ticket) ? i : 0; i < n; i++)
		unmeet(asks[i].id);
}

/* --- numbers --- */

/* Puts the new frames behind the first `base` of those before. Returns the number of the innermost,
 * 0: there are no more. */
static u32 keep_frames(struct language_walk *w, u32 base, u32 n, bool whole)
{
	struct alloc_language *a = READER(w)->a;
	struct wire_alloc *m = state.memory;
	u32 node = base ? a->frames[base - 1].node : alloc_node(m, 0, WIRE_ALLOC_PAIR(0));
	u64 words = w->s->n;

	a->n = 0;
	while (node && n--) {
		const struct language_frame *from = &a->new[n];
		struct language_frame *to = &a->frames[base];

		if (from->word)
			node = alloc_node(m, node, a->stack.pc[--words]);
		if (base == LANGUAGE_FRAMES) {
			whole = false;
			continue;
		}
		to->at = from->at;
		to->nreads = from->nreads;
		to->marks = from->marks;
		to->node = node;
		for (u32 i = 0; i < from->nreads && i < LANGUAGE_READS; i++)
			to->reads[i] = from->reads[i];
		base++;
	}
	if (whole && node && READER(w)->plain)
		a->n = base;
	return node;
}

/* Returns true when a process has made many walks that could not read by plain loads. */
static bool gives_up(struct wire_alloc *m, const struct language_reader *r)
{
	if (LIKELY(r->plain || (m->names_known && r->a->state)))
		return false;
	if (__atomic_add_fetch(&vain, 1, __ATOMIC_RELAXED) == VAIN_MAX)
		m->names_gave_up = 1;
	return true;
}

u32 alloc_language(struct thread *t, u32 native, bool in_loop)
{
	struct alloc_language *a = &t->walk->language;
	struct wire_alloc *m = state.memory;
	struct language_reader r = { .a = a };
	struct language_walk w;
	u32 n, base, node;
	u64 context;
	bool whole;

	/* A thread of Ruby that ends is in no loop, and its variable leads to what another one
	 * frees. */
	if (UNLIKELY(vain >= VAIN_MAX || (m->names_known && !is_alive(&a->facts)) ||
		     (!in_loop && a->facts.frames == WIRE_LANGUAGE_RUBY))) {
		a->n = 0;
		return native;
	}
	w.chunks = w.wanted = &r;
	w.dst = &a->stack;
	w.l = &a->facts;
	w.codes = no_codes;
	w.s->alone = w.s->lines = w.s->n = w.s->scope = w.s->method[0] = 0;
	w.s->max = WIRE_STACK_FRAMES;
	w.s->tgid = m->pid;
	if (!find_thread(&w, m->names_known != 0)) {
		(void)gives_up(m, &r);
		a->n = 0;
		return native;
	}
	context = w.s->word; /* of Ruby: its fiber's */
	if (!(w.l->frames == WIRE_LANGUAGE_RUBY ? ruby_innermost(&w) : python_innermost(&w))) {
		(void)gives_up(m, &r);
		a->n = 0;
		return native;
	}
	/* Another stack of Ruby's, that of a fiber, may overlap one that is no more. */
	if (w.l->frames == WIRE_LANGUAGE_RUBY && (a->end != w.s->end || a->context != context)) {
		a->end = w.s->end;
		a->context = context;
		a->n = 0;
	}
	r.loose = r.plain && !state.several && m->sample <= 1;
	if (UNLIKELY(a->loose != r.loose)) {
		a->loose = r.loose;
		a->n = 0;
	}
	base = walk_out(&w, &n, &whole);
	if (UNLIKELY(r.nasks))
		ask_names(m, a->asks, r.nasks);
	(void)gives_up(m, &r);
	node = keep_frames(&w, base, n, whole);
	if (!node || (!base && !w.s->n))
		return native;
	if (a->native != native || a->node != node) {
		a->pair = alloc_node(m, native, WIRE_ALLOC_PAIR(node));
		a->native = native;
		a->node = node;
	}
	return a->pair ?: native;
}

void alloc_language_begin(struct alloc_walk *w, const struct wire_alloc *m,
			  const struct wire_language *facts)
{
	struct alloc_language *a = &w->language;

	w->loop = m->loop;
	w->loop_size = facts ? m->loop_size : 0;
	if (facts)
		a->facts = *facts;
	alloc_language_forget(w);
}

void alloc_language_forget(struct alloc_walk *w)
{
	w->language.n = w->language.native = w->language.node = 0;
	w->language.state = 0;
}

void alloc_language_drop(void)
{
	/* Python may have made a new key in the child */
	key_of_state = searches = vain = names_unserved = 0;
}
