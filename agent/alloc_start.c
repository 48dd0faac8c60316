/* What the preloaded recorder of allocations does rarely: looks up the next object's functions,
 * finds the memory of the tracer, and gets rings and room in them. */
#include <elf.h>

#include "agent/alloc_order.h"
#include "agent/alloc_walk.h"
#include "agent/environment.h"

#define RTLD_NEXT_ ((void *)-1l)
#define RTLD_DEFAULT_ ((void *)0)
#define WEAK __attribute__((weak))

void *dlsym(void *handle, const char *name) WEAK;
char *dlerror(void) WEAK;
struct dl_info {
	const char *file;
	void *base;
	const char *name;
	void *addr;
};
/* The static linker defines the beginning of this object. */
extern const uint8_t __ehdr_start[] HIDDEN;
int dladdr(const void *addr, struct dl_info *ret) WEAK;
int dladdr1(const void *addr, struct dl_info *ret, void **extra, int flags) WEAK;
enum { RTLD_DL_SYMENT_ = 1 };
/* glibc before 2.34 has dlsym(3) in another object, which may be missing. */
void *__libc_malloc(size_t size) WEAK;
void *__libc_calloc(size_t n, size_t size) WEAK;
void *__libc_realloc(void *p, size_t size) WEAK;
void *__libc_memalign(size_t align, size_t size) WEAK;
void __libc_free(void *p) WEAK;
int *__errno_location(void) WEAK;

enum {
	FUTEX_WAIT_ = 0,
	FUTEX_WAKE_ = 1,
	OWNER_DIED = 0x40000000,
	SS_ONSTACK_ = 1,
	PAGE = 4096,
	WAIT_EACH_MS = 20,
	PR_SET_SECCOMP_ = 22,
	PR_SET_TSC_ = 26,
	SECCOMP_MODE_STRICT_ = 1, /* of prctl(2); of seccomp(2): 0. It forbids the counter, too. */
};

static const uint32_t off;
struct state state = { .on = &off };
uint32_t alloc_quiet;
uint64_t alloc_crossed[ALLOC_CROSSED];
void *alloc_next_syscall, *alloc_next_prctl;
uint8_t early[EARLY] __attribute__((aligned(64)));
static uint32_t early_used;

void *alloc_early(size_t size, size_t align)
{
	uint32_t used = __atomic_load_n(&early_used, __ATOMIC_RELAXED), at;

	/* constructors of other preloaded objects may have started threads */
	do {
		at = (used + (uint32_t)align - 1) & ~((uint32_t)align - 1);
		if (align > PAGE || size > EARLY || at + size > EARLY)
			return 0;
	} while (!__atomic_compare_exchange_n(&early_used, &used, (at + (uint32_t)size + 15) & ~15u,
					      0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return early + at;
}

/* syscall(2) and prctl(2) where dlsym(3) cannot find the C library's. */
int64_t alloc_syscall(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		      uint64_t f)
{
	int64_t r = sys6(nr, a, b, c, d, e, f);

	if (r >= 0 || r <= -PAGE)
		return r;
	if (__errno_location)
		*__errno_location() = (int)-r;
	return -1;
}

static int plain_prctl(uint64_t option, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	return (int)alloc_syscall(SYS_PRCTL, option, a, b, c, d, 0);
}

static void find_others(void)
{
	alloc_next_syscall = dlsym ? dlsym(RTLD_NEXT_, "syscall") : 0;
	alloc_next_prctl = dlsym ? dlsym(RTLD_NEXT_, "prctl") : 0;
	alloc_next_syscall = alloc_next_syscall ?: (void *)alloc_syscall;
	alloc_next_prctl = alloc_next_prctl ?: (void *)plain_prctl;
}

void *alloc_next_unless_libc(const char *name)
{
	struct dl_info with, libc;
	void *next = dlsym(RTLD_NEXT_, name);

	if (!next || !dladdr || !dladdr(next, &with) ||
	    !dladdr(dlsym(RTLD_NEXT_, "gnu_get_libc_version"), &libc) || with.base == libc.base)
		return 0;
	return next;
}

/* Returns true when the program's calls of malloc(3) go to another object than this one. */
static bool calls_other_malloc(void)
{
	const void *addr = dlsym(RTLD_DEFAULT_, "malloc");
	struct dl_info with;
	const Elf64_Sym *symbol;

	if (!dladdr1 || !dladdr1(addr, &with, (void **)&symbol, RTLD_DL_SYMENT_))
		return false;
	/* A program at a fixed address that takes the address of malloc() defines it as that of an
	 * entry of its own PLT, which leads here: its symbol is in no section. */
	return with.base != (const void *)__ehdr_start &&
	       (!symbol || symbol->st_shndx != SHN_UNDEF);
}

static void find_next(void)
{
	struct next *n = &state.next;
	struct dl_info with, operators;

	if (!dlsym) {
		*n = (struct next){ .malloc = __libc_malloc,
				    .calloc = __libc_calloc,
				    .realloc = __libc_realloc,
				    .memalign = __libc_memalign,
				    .free = __libc_free };
		return;
	}
	find_others();
	alloc_find_exec();
	/* malloc() last: until it is known, calls are answered by alloc_early() */
#define X(type, name, arguments) \
	if (__builtin_strcmp(#name, "malloc")) \
		*(void **)&n->name = dlsym(RTLD_NEXT_, #name);
	ALLOC_NEXT(X)
#undef X
	*(void **)&n->malloc = dlsym(RTLD_NEXT_, "malloc");
	if (n->_Znwm && dladdr && dladdr(*(void **)&n->malloc, &with) &&
	    dladdr(*(void **)&n->_Znwm, &operators))
		state.operators = with.base == operators.base;
	state.hidden = calls_other_malloc();
	if (dlerror) /* the program must not see that a name is missing */
		dlerror();
}

/* --- the tracer --- */

/* Removes descry's variables from the environment. Returns the value of WIRE_ALLOC_ENV, or 0. */
static char *take_variable(char **env)
{
	char **to = env, *ret = 0;

	for (; *env; env++) {
		char *preload = value_of(*env, "LD_PRELOAD="),
		     *ours = value_of(*env, WIRE_ALLOC_ENV "=");

		if (ours)
			ret = ours;
		else if (!preload || restore(preload))
			*to++ = *env;
	}
	*to = 0;
	return ret;
}

void alloc_start(void)
{
	struct recording *r = &state.recording;
	uint64_t *stack, *auxv;
	uint32_t object;
	char *numbers;

	if (__atomic_exchange_n(&state.begun, 1, __ATOMIC_RELAXED))
		return;
	find_next();
	stack = start_of_stack();
	auxv = stack ? stack + 1 + *stack + 1 : 0;
	while (auxv && *auxv++) /* before variables are removed */
		;
	numbers = stack ? take_variable((char **)(stack + 1 + *stack + 1)) : 0;
	if (!numbers)
		return;
	object = (uint32_t)number(&numbers);
	r->tracer = (uint32_t)number(&numbers);
	r->object = (uint32_t)number(&numbers);
	r->name = (uint32_t)number(&numbers);
	r->device = number(&numbers);
	r->inode = number(&numbers);
	r->secret = number(&numbers);
	r->proof = number(&numbers);
	if (object)
		sys2(SYS_CLOSE, object, 0);
	alloc_walks_start(stack, auxv);
	alloc_begin();
}

__attribute__((constructor)) static void begin(void)
{
	alloc_start();
}

/* --- rings --- */

static void stop(void)
{
	/* the page is this process's own: a forked child comes here never, its page is zero */
	__atomic_store_n(&state.page[PAGE_ON], 0, __ATOMIC_RELAXED);
}

void alloc_before_prctl(uint64_t option, uint64_t arg)
{
	if (!alloc_next_prctl)
		find_others();
	if ((uint32_t)option == PR_SET_SECCOMP_)
		alloc_quiet = 1;
	if (((uint32_t)option == PR_SET_SECCOMP_ && arg == SECCOMP_MODE_STRICT_) ||
	    (uint32_t)option == PR_SET_TSC_) {
		if (*state.on) {
			state.memory->forbidden = 1;
			stop();
		}
	}
}

void alloc_before_syscall(uint64_t nr, uint64_t a, uint64_t b)
{
	if (!alloc_next_syscall)
		find_others();
	if (nr == SYS_MLOCKALL)
		alloc_shrink();
	if (nr == SYS_SECCOMP)
		alloc_before_prctl(PR_SET_SECCOMP_, a ? 2 : SECCOMP_MODE_STRICT_);
	if (nr == SYS_PRCTL)
		alloc_before_prctl(a, b);
}

/* Returns true when the recording has ended, or the tracer has died. */
int alloc_is_over(const struct wire_alloc *m)
{
	return __atomic_load_n(&m->done, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&m->tracer, __ATOMIC_ACQUIRE) & OWNER_DIED;
}

int alloc_is_open(void)
{
	const struct wire_alloc_life *l = state.recording.life;

	return l && __atomic_load_n(&l->follow, __ATOMIC_ACQUIRE) &&
	       !(__atomic_load_n(&l->tracer, __ATOMIC_ACQUIRE) & OWNER_DIED);
}

static struct wire_alloc_ring *claim(struct wire_alloc *m)
{
	uint64_t tid = alloc_quiet ? 0x7fffffff : (uint64_t)sys2(SYS_GETTID, 0, 0);
	const uint32_t rings = __atomic_load_n(&state.rings, __ATOMIC_SEQ_CST);

	/* the first turn: that of a thread of this id, which has ended */
	for (int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < rings; i++) {
			struct wire_alloc_ring *r = &m->rings[i];
			uint64_t old = __atomic_load_n(&r->owner, __ATOMIC_ACQUIRE);

			if ((uint32_t)old != (turn || alloc_quiet ? 0 : tid))
				continue;
			if (__atomic_compare_exchange_n(&r->owner, &old,
							((old >> 32) + 1) << 32 | tid, 0,
							__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
				if (i >= __atomic_load_n(&state.rings, __ATOMIC_SEQ_CST)) {
					__atomic_store_n(&r->owner, old & ~0xffffffffull,
							 __ATOMIC_SEQ_CST);
					return 0; /* it is unmapped now */
				}
				/* before any event of this thread */
				if (__atomic_fetch_add(&state.claims, 1, __ATOMIC_SEQ_CST))
					__atomic_store_n(&state.several, 1, __ATOMIC_SEQ_CST);
				return r;
			}
		}
	}
	return 0;
}

/* Gives a thread the blocks of a ring, and forgets those of the thread that had it before. */
static void alloc_own_open(struct thread *t, uint32_t ring)
{
	t->own = state.owns ? state.owns + (uint64_t)ring * ALLOC_OWN : 0;
	for (uint32_t i = 0; t->own && i < ALLOC_OWN; i++)
		if (t->own[i].addr)
			t->own[i].addr = 0;
}

static void set_position(struct thread *t, uint64_t position)
{
	uint64_t in_ring = position % WIRE_ALLOC_RING;

	t->at = t->data + in_ring;
	t->off = position - (uint64_t)(uintptr_t)t->at;
	t->limit = t->data + in_ring - in_ring % WIRE_ALLOC_SEGMENT + WIRE_ALLOC_SEGMENT -
		   WIRE_ALLOC_EVENT_MAX;
}

void alloc_ring_bell(void)
{
	struct wire_alloc_lobby *l = state.recording.lobby;

	__atomic_fetch_add(&l->bell, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&l->sleeping, __ATOMIC_SEQ_CST) && !alloc_quiet)
		sys4(SYS_FUTEX, (uintptr_t)&l->bell, FUTEX_WAKE_, 1, 0);
}

/* Waits until a whole segment at the position is free. */
static int wait_for_room(struct thread *t, uint64_t position)
{
	struct wire_alloc *m = state.memory;
	uint64_t until = ticks() + m->ticks_per_ms * WAIT_MS;
	const uint64_t timeout[2] = { 0, WAIT_EACH_MS * 1000000 };

	for (;;) {
		uint32_t drained = __atomic_load_n(&m->drained, __ATOMIC_ACQUIRE);
		uint64_t tail = __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE);

		if (WIRE_ALLOC_POSITION(position + WIRE_ALLOC_SEGMENT - tail) <= WIRE_ALLOC_RING)
			return 1;
		if (!*state.on) /* a signal handler has forked, and this is the child */
			return 0;
		if (alloc_is_over(m)) {
			stop();
			return 0;
		}
		/* one wait in vain is enough until the tracer moves */
		if (__atomic_load_n(&m->gave_up, __ATOMIC_RELAXED) == drained + 1)
			return 0;
		if (ticks() >= until) {
			__atomic_store_n(&m->gave_up, drained + 1, __ATOMIC_RELAXED);
			return 0;
		}
		__atomic_fetch_add(&m->waiting, 1, __ATOMIC_SEQ_CST);
		alloc_ring_bell();
		if (alloc_quiet)
			for (int i = 0; i < 1000; i++)
				__asm__ volatile("pause");
		else
			sys4(SYS_FUTEX, (uintptr_t)&m->drained, FUTEX_WAIT_, drained,
			     (uintptr_t)timeout);
		__atomic_fetch_sub(&m->waiting, 1, __ATOMIC_SEQ_CST);
	}
}

static void put_open(struct thread *t)
{
	uint64_t now = ticks();
	uint8_t *p = put_number(t->at, WIRE_ALLOC_OTHER);

	p = put_number(p, t->walk ? WIRE_ALLOC_STACKS : WIRE_ALLOC_OPEN);
	p = put_number(p, (uint32_t)t->ring->owner);
	p = put_number(p, now);
	t->time = now;
	t->addr = 0;
	t->stack = 0;
	t->count -= 1ull << 40; /* it is no event */
	publish(t, p);
}

int alloc_room(struct thread *t)
{
	uint8_t skip[16];
	uint64_t next;

	if (!t->ring) {
		struct wire_alloc *m = state.memory;
		struct wire_alloc_ring *r = alloc_is_over(m) ? 0 : claim(m);

		if (!r)
			return 0;
		t->data =
			(uint8_t *)m + WIRE_ALLOC_HEAD + (uint64_t)(r - m->rings) * WIRE_ALLOC_RING;
		t->count = r->head & ~WIRE_ALLOC_POSITION(~0ull);
		if (state.walks) {
			t->walk = &state.walks[r - m->rings];
			/* of a thread that has ended */
			t->walk->n = t->walk->whole = 0;
			t->walk->lo = t->walk->hi = 0;
			t->walk->other_lo = t->walk->other_hi = 0;
			alloc_language_forget(t->walk);
			t->random = (uint32_t)ticks() | 1;
			t->wait = m->sample > 1 ? alloc_interval(t) : 0;
		}
		alloc_own_open(t, (uint32_t)(r - m->rings));
		t->ring = r;
		set_position(t, WIRE_ALLOC_POSITION(r->head));
		if (t->at < t->limit) {
			put_open(t);
			return 1;
		}
		t->time = 0; /* it opens in the next segment */
	}
	if (t->at < t->limit)
		return 1;
	next = t->off + (uint64_t)(uintptr_t)t->at;
	next = next - next % WIRE_ALLOC_SEGMENT + WIRE_ALLOC_SEGMENT;
	if (!wait_for_room(t, next))
		return 0;
	/* other processes may write the head, so that it may be at a segment's last byte */
	put_number(put_number(skip, WIRE_ALLOC_OTHER), WIRE_ALLOC_SKIP);
	for (int i = 0; i < 2 && t->at + i < t->limit + WIRE_ALLOC_EVENT_MAX; i++)
		t->at[i] = skip[i];
	set_position(t, next);
	t->count -= 1ull << 40;
	publish(t, t->at);
	alloc_ring_bell();
	if (!t->time)
		put_open(t);
	return 1;
}

void alloc_lose(struct thread *t)
{
	if (!*state.on)
		return;
	if (t->walk)
		alloc_language_skip(t->walk);
	if (t->ring)
		__atomic_store_n(&t->ring->lost, t->ring->lost + 1, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&state.memory->unheard, 1, __ATOMIC_RELAXED);
}

int alloc_left(struct thread *t)
{
	struct {
		uint64_t sp;
		int32_t flags, pad;
		uint64_t size;
	} stack = { 0 };

	if ((uintptr_t)__builtin_frame_address(0) < t->writing || alloc_quiet ||
	    sys2(SYS_SIGALTSTACK, 0, (uintptr_t)&stack) || stack.flags & SS_ONSTACK_)
		return 0;
	if (t->ring) {
		t->count = t->ring->head & ~WIRE_ALLOC_POSITION(~0ull);
		set_position(t, WIRE_ALLOC_POSITION(t->ring->head));
		t->time = 0;
		if (t->walk) {
			t->walk->n = 0;
			alloc_language_forget(t->walk);
		}
		if (t->at < t->limit)
			put_open(t);
	}
	t->writing = 0;
	return 1;
}
