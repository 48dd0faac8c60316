/* The stack of an allocation: the steps of wire/step.h by the tracer's tables, and the numbers of
 * frames in the shared memory. */
#include "agent/alloc_walk.h"

typedef u64 __attribute__((may_alias)) any64;

/* The static linker defines the bounds of this object. */
extern const uint8_t __ehdr_start[] HIDDEN, _etext[] HIDDEN;

enum { TRIES = 4, PROBES = 64 };
/* Each function of this object keeps the frame pointer. */
#define OWN_RULE WIRE_UNWIND_RULE(WIRE_UNWIND_RBP, -2, 2)

/* wire/step.h writes the addresses here. */
struct frames {
	u64 *pc;
};

struct unwind_walk {
	struct unwind_state s[1];
	const struct frames *dst;
	struct alloc_walk *w;
	struct wire_alloc *m;
};

INLINE u32 *chunk(const struct wire_alloc *m, u32 address)
{
	return (u32 *)((uint8_t *)m + WIRE_ALLOC_BYTES) +
	       (u64)(address >> 16 & (WIRE_ALLOC_CHUNKS - 1)) * WIRE_UNWIND_CHUNK_WORDS;
}

INLINE struct wire_alloc_node *nodes(const struct wire_alloc *m)
{
	return (struct wire_alloc_node *)((uint8_t *)m + WIRE_ALLOC_BYTES + WIRE_ALLOC_NODES_AT);
}

INLINE bool is_own_text(u64 at)
{
	return at - (uintptr_t)__ehdr_start < (u64)(_etext - __ehdr_start);
}

/* --- what wire/step.h asks for --- */

static NOINLINE long read_slowly(struct unwind_walk *w, u64 *dst, u64 size, u64 addr)
{
	if (!alloc_reach(w->w, addr, size)) {
		w->w->unsure = 1;
		return alloc_read_far(dst, addr, size);
	}
	dst[0] = *(const any64 *)addr;
	if (size == 16)
		dst[1] = *(const any64 *)(addr + 8);
	w->w->unsure |= !w->w->whole;
	return 0;
}

/* Reads 8 or 16 bytes, and notes them. */
INLINE long walk_user(struct unwind_walk *u, u64 *dst, u64 size, u64 addr)
{
	struct alloc_walk *w = u->w;
	struct walk_read *to = &w->now[w->nread];

	if (UNLIKELY(addr - w->lo > w->hi - w->lo - size || addr & 7)) {
		if (read_slowly(u, dst, size, addr)) {
			w->unsure = 1;
			return -1;
		}
	} else {
		dst[0] = *(const any64 *)addr;
		if (size == 16)
			dst[1] = *(const any64 *)(addr + 8);
	}
	if (UNLIKELY(w->nread + 2 > WALK_READS)) {
		w->unsure = 1;
		return 0;
	}
	to[0] = (struct walk_read){ addr, dst[0] };
	if (size == 16)
		to[1] = (struct walk_read){ addr + 8, dst[1] };
	w->nread += (u32)size / 8;
	return 0;
}

/* Never more than there is room for. */
INLINE u32 depth_of(const struct wire_alloc *m)
{
	u32 depth = __atomic_load_n(&m->depth, __ATOMIC_RELAXED);

	return depth < WIRE_ALLOC_FRAMES ? depth : WIRE_ALLOC_FRAMES;
}
#define UNWIND_FRAMES(w) depth_of((w)->m)
#define UNWIND_USER(w, dst, size, addr) walk_user(w, dst, size, addr)
/* Registers of the code that has called malloc(3) are not known any more. */
#define UNWIND_REGISTER(w, reg) ((void)(reg), -1)
#define UNWIND_KNOWN(w, at) unwind_known(w, at)

/* --- rules of addresses that were met --- */

/* An entry of rules[]: the low 34 bits of the mixed address, whose upper 13 are the entry's place;
 * 1; 1 when the CFA follows from rbp, else from rsp; the fields rbp (12 bits) and off (16) of the
 * rule. Rules of other kinds are looked up each time. */
enum { KNOWN_BITS = 30, KNOWN_VALID = 1 << 29, KNOWN_RBP = 1 << 28 };
#define MIXED_BITS 47
#define MIXED_MASK ((1ull << MIXED_BITS) - 1)
#define TAG_BITS 34
_Static_assert(WALK_RULES == 1 << (MIXED_BITS - TAG_BITS), "bits of an address");

/* An odd factor: no two addresses give the same number. */
INLINE u64 mix_address(u64 at)
{
	return at * 0x9e3779b97f4a7c15ull & MIXED_MASK;
}

/* Returns the entry's lower part, 0: the address is not there. */
INLINE u32 known_rule(const struct alloc_walk *w, u64 at)
{
	u64 x = mix_address(at), e = w->rules[x >> TAG_BITS];

	if (UNLIKELY((e ^ x << KNOWN_BITS) >> KNOWN_BITS || at >> MIXED_BITS))
		return 0;
	return (u32)e & ((1u << KNOWN_BITS) - 1);
}

static void remember_rule(struct alloc_walk *w, u64 at, u32 rule)
{
	u32 kind = WIRE_UNWIND_RULE_KIND(rule);
	u64 x = mix_address(at);

	if ((kind != WIRE_UNWIND_RSP && kind != WIRE_UNWIND_RBP) || at >> MIXED_BITS)
		return;
	w->rules[x >> TAG_BITS] = x << KNOWN_BITS | KNOWN_VALID |
				  (kind == WIRE_UNWIND_RBP ? KNOWN_RBP : 0) |
				  (rule >> 4 & 0xfff) << 16 | rule >> 16;
}

INLINE u32 unwind_known(const struct unwind_walk *u, u64 at)
{
	u32 e = known_rule(u->w, at);

	if (e)
		return WIRE_UNWIND_RULE(e & KNOWN_RBP ? WIRE_UNWIND_RBP : WIRE_UNWIND_RSP, e >> 16,
					e);
	return is_own_text(at) ? OWN_RULE : 0;
}

/* --- mappings --- */

/* Finds the last mapping that starts at or before `at`. */
static bool search_mappings(struct unwind_walk *u, u64 at)
{
	const struct wire_unwind_mapping *m =
		(const void *)(chunk(u->m, u->m->mappings) + (u->m->mappings & 0xfff8));
	u32 lo = 0, hi = u->m->nmappings;

	if (!hi || hi > WIRE_UNWIND_MAPPINGS_MAX)
		return false;
	while (hi - lo > 1) {
		u32 mid = (lo + hi) / 2;

		if (m[mid].start <= at)
			lo = mid;
		else
			hi = mid;
	}
	u->s->start = m[lo].start;
	u->s->size = (u64)m[lo].size << 12;
	u->s->bias = m[lo].bias;
	u->s->pages = m[lo].pages;
	u->s->first_page = m[lo].first_page;
	u->s->npages = m[lo].npages;
	return at - u->s->start < u->s->size;
}

static NOINLINE bool unwind_mapping(struct unwind_walk *u, u64 at)
{
	bool listed = search_mappings(u, at);

	if (listed && at == u->w->wanted) {
		state.vain = 0;
		u->w->wanted = 0;
	}
	if (listed && u->s->pages)
		return true;
	u->w->wanted = at;
	/* Text that was mapped since. New tables end the walk: it begins anew. */
	u->w->not_loaded = alloc_ask_for(u->m, listed);
	if (listed && !u->w->not_loaded)
		return true;
	u->w->unsure = 1;
	u->s->size = 0;
	return false;
}

static NOINLINE u32 unwind_find_rule(struct unwind_walk *u, u64 at)
{
	u64 addr = at - u->s->bias;
	u64 page = (addr >> WIRE_UNWIND_PAGE_SHIFT) - u->s->first_page;
	const u32 *words;
	u32 lo, hi, number;

	if (at - u->s->start >= u->s->size || !u->s->pages || page >= u->s->npages)
		return 0;
	words = chunk(u->m, u->s->pages) + ((u->s->pages + (u32)page * 2) & 0xfffe);
	lo = words[0] & 0xffff;
	hi = lo + words[1];
	words = chunk(u->m, words[0]);
	while (hi - lo > 1 && hi <= WIRE_UNWIND_CHUNK_WORDS) {
		u32 mid = (lo + hi) / 2;

		if (WIRE_UNWIND_ROW_PC(words[mid]) <= (addr & 0xffff))
			lo = mid;
		else
			hi = mid;
	}
	number = WIRE_UNWIND_ROW_RULE(words[lo]);
	remember_rule(u->w, at, chunk(u->m, 0)[number]);
	return chunk(u->m, 0)[number];
}

#include "wire/step.h"

/* --- numbers of frames --- */

/* A bucket: the node's number, and above it a part of the address's hash. */
enum { NUMBER_BITS = 21, LINE = 16, FAR_BITS = 18, FARTHEST_BITS = 21 };
_Static_assert(WIRE_ALLOC_NODES == 1 << NUMBER_BITS, "bits of a node's number");
_Static_assert(WIRE_ALLOC_FAR == 1 << FAR_BITS, "bits of the hash");
_Static_assert(WIRE_ALLOC_FARTHEST == 1 << FARTHEST_BITS, "bits of the hash");

INLINE u64 hash_address(u64 pc)
{
	return pc * 0x9e3779b97f4a7c15ull;
}

/* Returns the i-th place of a node. The first ones lie in its parent, which the walk has just read.
 * Then follows a cache line of a table whose few pages are soon in memory, and at last places
 * anywhere in a large one. */
INLINE u32 *bucket_of(const struct wire_alloc *m, u32 parent, u64 hash, u32 i)
{
	u32 *far = (u32 *)((uint8_t *)m + WIRE_ALLOC_BYTES + WIRE_ALLOC_FAR_AT);
	u64 x;

	if (LIKELY(i < WIRE_ALLOC_NEAR))
		return &nodes(m)[parent].near[i];
	i -= WIRE_ALLOC_NEAR;
	x = (hash ^ parent) * 0x9e3779b97f4a7c15ull;
	if (LIKELY(i < LINE))
		return far + (x >> (64 - FAR_BITS) & (u64)-LINE) + i;
	return far + WIRE_ALLOC_FAR +
	       (((x >> (64 - FARTHEST_BITS)) + i) & (WIRE_ALLOC_FARTHEST - 1));
}

/* Takes a new node. Returns its number, 0: there are no more. */
static NOINLINE u32 new_node(struct wire_alloc *m, u32 parent, u64 pc)
{
	struct wire_alloc_node *n = nodes(m);
	u32 mine;

	if (__atomic_load_n(&m->nnodes, __ATOMIC_RELAXED) >= WIRE_ALLOC_NODES - 1)
		return 0;
	mine = __atomic_add_fetch(&m->nnodes, 1, __ATOMIC_RELAXED);
	if (mine >= WIRE_ALLOC_NODES)
		return 0;
	/* A page of shared memory that is read first is mapped with those around it that the tracer
	 * has made: 16 at once. */
	(void)__atomic_load_n(&n[mine].filled, __ATOMIC_RELAXED);
	n[mine].pc = pc;
	n[mine].parent = parent;
	__atomic_store_n(&n[mine].filled, 1, __ATOMIC_RELEASE);
	return mine;
}

u32 alloc_node(struct wire_alloc *m, u32 parent, u64 pc)
{
	const struct wire_alloc_node *n = nodes(m);
	u64 hash = hash_address(pc);
	u32 mine = 0, there, part = (u32)(hash >> 32) & ~(WIRE_ALLOC_NODES - 1u);

	for (u32 i = 0; i < PROBES; i++) {
		u32 *b = bucket_of(m, parent, hash, i);

		there = __atomic_load_n(b, __ATOMIC_ACQUIRE);
		if (!there) {
			mine = mine ?: new_node(m, parent, pc);
			if (!mine)
				return 0;
			if (__atomic_compare_exchange_n(b, &there, mine | part, 0, __ATOMIC_ACQ_REL,
							__ATOMIC_ACQUIRE))
				return mine;
		}
		if (((there ^ part) & ~(WIRE_ALLOC_NODES - 1u)))
			continue;
		there &= WIRE_ALLOC_NODES - 1;
		if (n[there].pc == pc && n[there].parent == parent)
			return there;
	}
	return 0;
}

static u32 number_root(const struct unwind_walk *u, u32 end)
{
	return alloc_node(u->m, 0, WIRE_ALLOC_ROOT(end, u->m->epoch));
}

/* --- walks --- */

INLINE void begin_walk(struct unwind_walk *u, uintptr_t frame)
{
	struct unwind_state *s = u->s;

	*s = (struct unwind_state){ .pc = ((const any64 *)frame)[1],
				    .sp = frame + 16,
				    .bp = *(const any64 *)frame,
				    .call = 1,
				    .end = WIRE_UNWIND_END_DEEP };
	u->w->nread = u->w->nnew = 0;
	u->w->unsure = u->w->not_loaded = 0;
}

INLINE u32 state_of(const struct unwind_state *s, u32 i)
{
	return (u32)s->call | (u32)s->guess << 1 | (i != 0) << 2;
}

/* Returns true when the step from frame k of the walk before would read the same. */
INLINE bool is_same_step(const struct alloc_walk *w, u32 k)
{
	const struct walk_read *back = &w->returns[k];
	const struct walk_frame *f, *up;

	if (LIKELY(back->addr))
		return *(const any64 *)back->addr == back->value;
	f = &w->frames[k];
	up = f - 1;
	if (f->quick)
		return ((const any64 *)up->sp)[-1] == up->pc &&
		       (!up->needs || !f->sets || ((const any64 *)up->sp)[f->saved] == up->bp);
	for (u32 i = k ? up->reads : 0; i < f->reads; i++)
		if (*(const any64 *)w->reads[i].addr != w->reads[i].value)
			return false;
	return true;
}

/* Returns true when the rest of the walk is that of the one before from its frame k on. The steps
 * of its frames before *good are known to be the same; that of *bad is the first that is not. */
INLINE bool is_rest(const struct unwind_walk *u, u32 i, u32 k, u32 *good, u32 *bad)
{
	const struct alloc_walk *w = u->w;
	const struct walk_frame *f = &w->frames[k];
	const struct unwind_state *s = u->s;
	u32 all = i + k + 1, at = *good;

	if (f->sp != s->sp || f->pc != s->pc || (f->needs && f->bp != s->bp) ||
	    f->state != state_of(s, i) || k >= *bad)
		return false;
	if (w->end == WIRE_UNWIND_END_DEEP ? all != depth_of(u->m) : all > depth_of(u->m))
		return false;
	while (at <= k && is_same_step(w, at))
		at++;
	*good = at;
	if (at <= k)
		*bad = at;
	return at > k;
}

/* Steps to the caller as wire/step.h does, when the rule is known and of the usual kinds, and all
 * words lie where they may be read. Returns false without a change else. */
INLINE bool step_quickly(struct unwind_walk *u, struct walk_frame *f)
{
	struct unwind_state *s = u->s;
	const struct alloc_walk *w = u->w;
	u32 e = known_rule(w, s->pc - s->call);
	u64 cfa, saved, pc, last = w->hi - w->lo - 8;

	f->saved = (s16)((s16)(e >> 16 << 4) >> 4);
	f->uses = (e & KNOWN_RBP) != 0;
	f->sets = f->saved != WIRE_UNWIND_SAME;
	cfa = (f->uses ? s->bp : s->sp) + (u64)((s64)(s16)e * 8);
	saved = cfa + (u64)((s64)f->saved * 8);
	if (UNLIKELY(!e || cfa <= s->sp || cfa & 7 || cfa - 8 - w->lo > last))
		return false;
	if (f->sets && UNLIKELY(saved - w->lo > last))
		return false;
	pc = ((const any64 *)cfa)[-1];
	if (UNLIKELY(!pc))
		return false;
	if (f->sets)
		s->bp = *(const any64 *)saved;
	s->pc = pc;
	s->sp = cfa;
	s->call = 1;
	s->guess = 0;
	return true;
}

/* Walks. Returns the number of frames that the walk before has from there on. */
INLINE u32 walk_up(struct unwind_walk *u)
{
	struct alloc_walk *w = u->w;
	u32 k = w->n, good = 0, bad = ~0u, i, depth = depth_of(u->m);

	for (i = 0; i < depth; i++) {
		struct walk_frame *f = &w->new[i];
		bool ends;

		while (k && w->frames[k - 1].sp < u->s->sp)
			k--;
		if (k && is_rest(u, i, k - 1, &good, &bad)) {
			w->nnew = i;
			return k;
		}
		f->pc = u->s->pc;
		f->sp = u->s->sp;
		f->bp = u->s->bp;
		f->state = state_of(u->s, i);
		/* A frame that is not kept has its words in reads. */
		f->quick = i + 1 < depth && step_quickly(u, f);
		f->own = !f->quick && is_own_text(f->pc);
		if (f->quick)
			u->s->n = i + 1;
		ends = !f->quick && unwind_frame(i, u);
		f->reads = w->nread;
		if (ends)
			break;
	}
	w->nnew = (u32)u->s->n;
	return 0;
}

/* Puts the new frames behind the first `base` of those before. Returns the number of the
 * innermost. */
INLINE u32 keep_frames(struct unwind_walk *u, u32 base)
{
	struct alloc_walk *w = u->w;
	const struct walk_frame *up = base ? &w->frames[base - 1] : 0;
	u32 node = up ? up->node : 0, reads = up ? up->reads : 0;
	u8 needs = up ? up->needs : 0, loops = up ? up->loops : 0;

	if (!up) {
		w->end = (u32)u->s->end;
		loops = w->loop_size && w->end != WIRE_UNWIND_END_ROOT ? LOOP_PERHAPS : 0;
		node = number_root(u, w->end);
		if (!node)
			return 0;
	}
	for (u32 k = w->nnew; k--; base++) {
		const struct walk_frame *from = &w->new[k];
		u32 first = k ? w->new[k - 1].reads : 0;

		if (reads + from->reads - first > WALK_READS) {
			w->unsure = 1;
			reads = 0;
		}
		for (u32 i = first; i < from->reads; i++)
			w->reads[reads++] = w->now[i];
		if (!from->own)
			node = alloc_node(u->m, node, from->pc);
		if (!node)
			break;
		w->frames[base] = *from;
		w->frames[base].reads = reads;
		w->frames[base].node = node;
		w->returns[base].addr = 0;
		if (from->quick && !(needs && from->sets))
			w->returns[base] = (struct walk_read){ w->frames[base - 1].sp - 8,
							       w->frames[base - 1].pc };
		needs = from->quick ? from->uses | (needs & !from->sets) : 1;
		w->frames[base].needs = needs;
		if (UNLIKELY(from->pc - 1 - w->loop < w->loop_size))
			loops |= LOOP_HERE;
		w->frames[base].loops = loops;
	}
	w->loops = loops;
	w->n = w->unsure || !node ? 0 : base;
	return node;
}

/* The tables have changed, or this is the first walk: nothing of before counts. Returns false when
 * they are being changed. */
static NOINLINE int begin_anew(const struct wire_alloc *m, struct alloc_walk *w, u32 version)
{
	const u32 language = m->language;

	w->n = 0;
	for (u32 i = 0; i < WALK_RULES; i++)
		w->rules[i] = 0;
	w->version = version;
	alloc_language_begin(w, m,
			     language ? (const void *)(chunk(m, language) +
						       (language & (0x10000 - WIRE_LANGUAGE_WORDS)))
				      : 0);
	/* half of them may be of other tables */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&m->tables, __ATOMIC_RELAXED) != version)
		w->version |= 1;
	return !(w->version & 1);
}

/* The stack of a walk for which there are no tables. */
static NOINLINE u32 number_unknown(const struct unwind_walk *u, uintptr_t frame)
{
	u32 root = number_root(u, WIRE_UNWIND_END_NOT_LOADED);

	return root ? alloc_node(u->m, root, ((const any64 *)frame)[1]) : 0;
}

uint32_t alloc_walk(struct thread *t, uintptr_t frame)
{
	struct unwind_walk u;
	const struct frames dst = { t->walk->pcs };
	u32 base, node, version;

	u.dst = &dst;
	u.w = t->walk;
	u.m = state.memory;
	if (UNLIKELY(state.closes != state.closes_seen))
		(void)alloc_ask(u.m);
	for (int i = 0; i < TRIES; i++) {
		if (UNLIKELY(state.closes != state.closes_seen))
			break;
		version = __atomic_load_n(&u.m->tables, __ATOMIC_ACQUIRE);
		if (UNLIKELY(version != u.w->version || version & 1) &&
		    !begin_anew(u.m, u.w, version)) {
			(void)alloc_ask(u.m);
			continue;
		}
		if (UNLIKELY(frame - u.w->lo >= u.w->hi - u.w->lo || !u.w->whole))
			alloc_find_stack(u.w, frame);
		begin_walk(&u, frame);
		base = walk_up(&u);
		if (UNLIKELY(u.w->not_loaded))
			continue;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (UNLIKELY(__atomic_load_n(&u.m->tables, __ATOMIC_RELAXED) != version))
			continue;
		node = keep_frames(&u, base);
		if (UNLIKELY(u.w->end > WIRE_UNWIND_END_DEEP))
			t->ring->early++;
		if (LIKELY(!u.w->loops) || !node) {
			alloc_language_skip(u.w);
			return node;
		}
		return alloc_language(t, node, u.w->loops & LOOP_HERE);
	}
	t->ring->early++;
	u.w->n = 0;
	alloc_language_skip(u.w);
	return number_unknown(&u, frame);
}
