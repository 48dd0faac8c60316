/* The functions of malloc(3) and of C++ that a preloaded recorder has in place of the next
 * object's. Each frees in the recording before the call, and allocates after it, so that the order
 * of ticks is one in which the calls can have happened. */
#include <stdbool.h>

#include "agent/alloc_order.h"

#define EXPORT __attribute__((visibility("default")))

#define X(type, name, arguments) type name arguments;
ALLOC_NEXT(X)
#undef X

/* Static, because the object is loaded with the program. */
static __thread struct thread self __attribute__((tls_model("initial-exec")));

enum { ENOMEM_ = 12, PAGE = 4096, LEAST_ALIGN = 16 };

#define CALLER (((const uintptr_t *)FRAME)[1])
#define BARRIER __asm__ volatile("" : : : "memory")

static inline __attribute__((always_inline)) void put(enum wire_alloc_op op, uint64_t align,
						      uint64_t size, uint64_t addr)
{
	struct thread *t = &self;
	uint64_t now, d;
	uint8_t *p;

	if (UNLIKELY(t->writing) && !alloc_left(t)) {
		alloc_lose(t);
		return;
	}
	t->writing = FRAME;
	BARRIER;
	if (UNLIKELY(CALLER - state.linker < state.linker_size))
		alloc_linked(op == WIRE_ALLOC_FREE || op == WIRE_ALLOC_REALLOC_FROM);
	if (UNLIKELY(t->at >= t->limit) && !alloc_room(t)) {
		alloc_lose(t);
	} else {
		bool allocates = op != WIRE_ALLOC_FREE && op != WIRE_ALLOC_REALLOC_FROM;
		uint32_t stack = 0;

		if (t->walk && allocates && (op == WIRE_ALLOC_MAP || takes_stack(t))) {
			stack = alloc_walk(t, FRAME);
			t->ring->bare += !stack;
		}
		now = ticks_of(t, op, addr);
		d = now - t->time;
		d = (int64_t)d < 0 ? 0 : d;
		p = put_number(t->at, d << 3 | op);
		if (op == WIRE_ALLOC_ALIGNED || op == WIRE_ALLOC_MAP)
			p = put_number(p, align);
		if (allocates)
			p = put_number(p, size);
		p = put_address(t, p, addr);
		if (t->walk && allocates) {
			int32_t more = (int32_t)(stack - t->stack);

			p = put_number(p, (uint32_t)more << 1 ^ (uint32_t)(more >> 31));
			t->stack = stack;
		}
		t->time += d;
		t->addr = addr;
		publish(t, p);
	}
	BARRIER;
	t->writing = 0;
}

/* Returns true for a call that counts: this process records, and it is no call within a call. */
static inline __attribute__((always_inline)) int counts(void)
{
	return LIKELY(*state.on) && (LIKELY(!self.in) || FRAME >= self.in);
}

/* Calls the next object's function as an outermost call. */
#define CALL(result, call) \
	do { \
		uintptr_t outer_ = self.in; \
\
		self.in = FRAME; \
		BARRIER; \
		result(call); \
		BARRIER; \
		self.in = outer_; \
	} while (0)

int alloc_ready(uintptr_t frame)
{
	if (UNLIKELY(!state.begun))
		alloc_start();
	if (UNLIKELY(state.page && !state.page[PAGE_ON] && !state.page[PAGE_ASKED]))
		alloc_follow(&self, frame);
	return state.next.malloc != 0;
}

void alloc_put_map(enum wire_alloc_map kind, uint64_t size, uintptr_t addr, uintptr_t frame)
{
	if (*state.on && (!self.in || frame >= self.in))
		put(WIRE_ALLOC_MAP, kind, size, addr);
}

static uint64_t times(size_t n, size_t size)
{
	uint64_t bytes;

	return __builtin_mul_overflow(n, size, &bytes) ? ~0ull : bytes;
}

/* The bodies of functions that allocate `size` bytes by the next object's `call`. `instead` answers
 * when it has none. */
#define ALLOCATE(op, align, size, has, call, instead) \
	void *p_; \
\
	if (UNLIKELY(!counts()) && !alloc_ready(FRAME)) \
		return alloc_early(size, (align) > LEAST_ALIGN ? (align) : LEAST_ALIGN); \
	if (UNLIKELY(!(has))) \
		return instead; \
	if (UNLIKELY(!counts())) \
		return call; \
	CALL(p_ =, call); \
	put(op, align, size, (uintptr_t)p_); \
	return p_;

#define FREE(has, call, instead) \
	if ((UNLIKELY(!counts()) && !alloc_ready(FRAME)) || UNLIKELY(alloc_is_early(p))) \
		return; \
	if (UNLIKELY(!(has))) { \
		instead; \
		return; \
	} \
	if (UNLIKELY(!counts())) { \
		call; \
		return; \
	} \
	if (LIKELY(p != 0)) \
		put(WIRE_ALLOC_FREE, 0, 0, (uintptr_t)p); \
	CALL(, call);

EXPORT void *malloc(size_t size){ ALLOCATE(WIRE_ALLOC_MALLOC, 0, size, 1, state.next.malloc(size),
					   0) }

EXPORT void free(void *p){ FREE(1, state.next.free(p), ) }

EXPORT void *calloc(size_t n, size_t size)
{
	ALLOCATE(WIRE_ALLOC_CALLOC, 0, times(n, size), 1, state.next.calloc(n, size), 0)
}

/* A block of alloc_early() moves to the heap. */
static NOINLINE void *move_early(void *p, size_t size)
{
	uint8_t *to = malloc(size), *from = p;
	size_t left = (uintptr_t)PAGE * 16; /* no more than the memory behind p is read */

	if (to)
		for (size_t i = 0; i < size && i < left && alloc_is_early(from + i); i++)
			to[i] = from[i];
	return to;
}

#define REALLOCATE(size, has, call, instead) \
	void *q; \
\
	if ((UNLIKELY(!counts()) && !alloc_ready(FRAME)) || UNLIKELY(alloc_is_early(p))) \
		return move_early(p, size); \
	if (UNLIKELY(!(has))) \
		return instead; \
	if (UNLIKELY(!counts())) \
		return call; \
	if (p) \
		put(WIRE_ALLOC_REALLOC_FROM, 0, 0, (uintptr_t)p); \
	CALL(q =, call); \
	put(WIRE_ALLOC_REALLOC, 0, size, (uintptr_t)q); \
	return q;

EXPORT void *realloc(void *p, size_t size){ REALLOCATE(size, 1, state.next.realloc(p, size), 0) }

EXPORT void *reallocarray(void *p, size_t n, size_t size){
	REALLOCATE(times(n, size), state.next.reallocarray, state.next.reallocarray(p, n, size),
		   realloc(p, times(n, size)))
}

EXPORT int posix_memalign(void **ret, size_t align, size_t size)
{
	int r;

	if (UNLIKELY(!alloc_ready(FRAME)))
		return (*ret = alloc_early(size, align)) ? 0 : ENOMEM_;
	if (UNLIKELY(!state.next.posix_memalign))
		return (*ret = memalign(align, size)) ? 0 : ENOMEM_;
	if (UNLIKELY(!counts()))
		return state.next.posix_memalign(ret, align, size);
	CALL(r =, state.next.posix_memalign(ret, align, size));
	put(WIRE_ALLOC_ALIGNED, align, size, r ? 0 : (uintptr_t)*ret);
	return r;
}

EXPORT void *aligned_alloc(size_t align, size_t size){
	ALLOCATE(WIRE_ALLOC_ALIGNED, align, size, state.next.aligned_alloc,
		 state.next.aligned_alloc(align, size), memalign(align, size))
}

EXPORT void *memalign(size_t align,
		      size_t size){ ALLOCATE(WIRE_ALLOC_ALIGNED, align, size, state.next.memalign,
					     state.next.memalign(align, size), 0) }

EXPORT void *valloc(size_t size){ ALLOCATE(WIRE_ALLOC_ALIGNED, PAGE, size, state.next.valloc,
					   state.next.valloc(size), memalign(PAGE, size)) }

EXPORT void *pvalloc(size_t size){
	ALLOCATE(WIRE_ALLOC_ALIGNED, PAGE, size, state.next.pvalloc, state.next.pvalloc(size),
		 memalign(PAGE, (size + PAGE - 1) & ~(size_t)(PAGE - 1)))
}

/* --- C++: the names are those of the Itanium ABI for x86-64 --- */

/* An operator of another object than malloc()'s is no event of its own: it calls malloc(), and so
 * does the exception that it throws. */
#define OPERATOR(name) (state.next.name && state.operators)

#define NEW(name) \
	EXPORT void *name(size_t size) \
	{ \
		ALLOCATE(WIRE_ALLOC_MALLOC, 0, size, OPERATOR(name), state.next.name(size), \
			 state.next.name ? state.next.name(size) : malloc(size)) \
	}
#define NEW_NOTHROW(name) \
	EXPORT void *name(size_t size, const void *tag) \
	{ \
		ALLOCATE(WIRE_ALLOC_MALLOC, 0, size, OPERATOR(name), state.next.name(size, tag), \
			 state.next.name ? state.next.name(size, tag) : malloc(size)) \
	}
#define NEW_ALIGNED(name) \
	EXPORT void *name(size_t size, size_t align) \
	{ \
		ALLOCATE(WIRE_ALLOC_ALIGNED, align, size, OPERATOR(name), \
			 state.next.name(size, align), \
			 state.next.name ? state.next.name(size, align) : memalign(align, size)) \
	}
#define NEW_ALIGNED_NOTHROW(name) \
	EXPORT void *name(size_t size, size_t align, const void *tag) \
	{ \
		ALLOCATE(WIRE_ALLOC_ALIGNED, align, size, OPERATOR(name), \
			 state.next.name(size, align, tag), \
			 state.next.name ? state.next.name(size, align, tag) \
					 : memalign(align, size)) \
	}
#define DELETE(name) \
	EXPORT void name(void *p) \
	{ \
		FREE(OPERATOR(name), state.next.name(p), \
		     state.next.name ? state.next.name(p) : free(p)) \
	}
#define DELETE_WITH(name, type) \
	EXPORT void name(void *p, type x) \
	{ \
		FREE(OPERATOR(name), state.next.name(p, x), \
		     state.next.name ? state.next.name(p, x) : free(p)) \
	}
#define DELETE_SIZED_ALIGNED(name) \
	EXPORT void name(void *p, size_t size, size_t align) \
	{ \
		FREE(OPERATOR(name), state.next.name(p, size, align), \
		     state.next.name ? state.next.name(p, size, align) : free(p)) \
	}

NEW(_Znwm) NEW(_Znam) NEW_NOTHROW(_ZnwmRKSt9nothrow_t) NEW_NOTHROW(_ZnamRKSt9nothrow_t)
	NEW_ALIGNED(_ZnwmSt11align_val_t) NEW_ALIGNED(_ZnamSt11align_val_t)
		NEW_ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t) NEW_ALIGNED_NOTHROW(
			_ZnamSt11align_val_tRKSt9nothrow_t) DELETE(_ZdlPv) DELETE(_ZdaPv)
			DELETE_WITH(_ZdlPvm, size_t) DELETE_WITH(_ZdaPvm, size_t)
				DELETE_WITH(_ZdlPvSt11align_val_t,
					    size_t) DELETE_WITH(_ZdaPvSt11align_val_t, size_t)
					DELETE_WITH(_ZdlPvRKSt9nothrow_t,
						    const void *) DELETE_WITH(_ZdaPvRKSt9nothrow_t,
									      const void *)
						DELETE_SIZED_ALIGNED(_ZdlPvmSt11align_val_t)
							DELETE_SIZED_ALIGNED(_ZdaPvmSt11align_val_t)

/* --- what a program forbids itself --- */

/* prctl(2) and syscall(2) of the program: look at calls that may set a filter of system calls,
 * switch the counter off, or lock memory. They jump
 * to the next object's function, with all arguments where they are. */
#define PASS(name, tests) \
	__asm__(".text\n" \
		".globl " #name "\n.type " #name ", @function\n" #name ":\n" \
		"	endbr64\n" tests "2:	mov alloc_next_" #name "(%rip), %r11\n" \
		"	test %r11, %r11\n" \
		"	je 1f\n" \
		"	jmp *%r11\n" \
		"1:	push %rax\n	push %rdi\n	push %rsi\n	push %rdx\n" \
		"	push %rcx\n	push %r8\n	push %r9\n" \
		"	call alloc_before_" #name "\n" \
		"	pop %r9\n	pop %r8\n	pop %rcx\n" \
		"	pop %rdx\n	pop %rsi\n	pop %rdi\n	pop %rax\n" \
		"	jmp *alloc_next_" #name "(%rip)\n" \
		".size " #name ", . - " #name "\n")

	/* PR_SET_SECCOMP, PR_SET_TSC */
	PASS(prctl, "	cmp $22, %edi\n	je 1f\n	cmp $26, %edi\n	je 1f\n");
/* seccomp(), prctl(), mlockall() */
PASS(syscall,
     "	cmp $317, %rdi\n	je 1f\n	cmp $157, %rdi\n	je 1f\n	cmp $151, %rdi\n	je 1f\n");
