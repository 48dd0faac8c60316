/* Allocates memory, and ends the program when there is none. */
#define _GNU_SOURCE
#include "base/mem.h"

#include <malloc.h>
#include <sys/mman.h>

enum {
	IDLE_MAX = 4 << 20, /* freed bytes that the heap keeps */
	LOOK_EVERY_S = 5,
};

/* Here and in mem_exhausted() alone a host tool ends for lack of memory. */
__attribute__((noreturn)) static void out_of_memory(size_t n)
{
	fprintf(stderr, "descry: out of memory (requested %zu bytes)\n", n);
	exit(1);
}

void mem_exhausted(const char *why)
{
	fprintf(stderr, "descry: %s\n", why);
	exit(1);
}

void *xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (!p)
		out_of_memory(n);
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory(n * size);
	return p;
}

void *xrealloc(void *p, size_t n)
{
	p = realloc(p, n ? n : 1);
	if (!p)
		out_of_memory(n);
	return p;
}

void *xcalloc_table(size_t n, size_t size)
{
	const size_t huge = 2 << 20, line = 64;
	size_t bytes;
	void *p = NULL;

	if (!__builtin_mul_overflow(n, size, &bytes) && bytes <= SIZE_MAX - huge)
		p = bytes < huge ? aligned_alloc(line, round_up(bytes ? bytes : 1, line))
				 : aligned_alloc(huge, round_up(bytes, huge));
	if (!p)
		out_of_memory(n * size);
	if (bytes >= huge) /* a kernel without them has small ones */
		(void)!madvise(p, bytes, MADV_HUGEPAGE);
	return memset(p, 0, bytes);
}

char *xstrdup(const char *s)
{
	return xmemdup(s, strlen(s) + 1);
}

/* Copies at most n bytes of s, up to its NUL if that comes first. */
char *xstrndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = xmalloc(len + 1);

	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *p;

	if (vasprintf(&p, fmt, ap) < 0)
		out_of_memory(0);
	return p;
}

char *xasprintf(const char *fmt, ...)
{
	char *p;
	va_list ap;

	va_start(ap, fmt);
	p = xvasprintf(fmt, ap);
	va_end(ap);
	return p;
}

void *xmemdup(const void *p, size_t n)
{
	void *copy = xmalloc(n);

	if (n)
		memcpy(copy, p, n);
	return copy;
}

enum { ARENA_ALIGN = 16, ARENA_BLOCK = 16 * 1024 };

struct arena_block {
	struct arena_block *next;
	size_t used, size; /* of data */
	_Alignas(ARENA_ALIGN) uint8_t data[];
};

void arena_init(struct arena *a)
{
	a->head = NULL;
}

void arena_fini(struct arena *a)
{
	struct arena_block *b = a->head, *next;

	for (; b; b = next) {
		next = b->next;
		free(b);
	}
	a->head = NULL;
}

/* Makes a new block. A block for one large object goes behind the head, so that the head's rest
 * stays in use. */
static struct arena_block *arena_block_new(struct arena *a, size_t n)
{
	size_t size = n > ARENA_BLOCK / 4 ? n : ARENA_BLOCK;
	struct arena_block *b = xcalloc(1, sizeof(*b) + size);

	b->size = size;
	if (size == n && a->head) {
		b->next = a->head->next;
		a->head->next = b;
	} else {
		b->next = a->head;
		a->head = b;
	}
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->head;
	void *p;

	if (n > SIZE_MAX / 2)
		out_of_memory(n);
	n = n ? (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1) : ARENA_ALIGN;
	if (!b || b->size - b->used < n)
		b = arena_block_new(a, n);
	p = b->data + b->used;
	b->used += n;
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = arena_alloc(a, len + 1);

	memcpy(p, s, len);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		out_of_memory(0);
	va_end(ap);
	return arena_strdup(a, text);
}

void vec_grow_(void **v, uint32_t *cap, uint64_t need, size_t elem)
{
	uint64_t want = *cap ? (uint64_t)*cap * 2 : 8;

	if (want < need)
		want = need;
	if (want > UINT32_MAX || need < *cap) /* need < cap: the sum wrapped */
		out_of_memory(want * elem);
	*v = xrealloc(*v, want * elem);
	*cap = (uint32_t)want;
}

void mem_give_back(uint64_t now)
{
	static uint64_t looked;

	if (now - looked < LOOK_EVERY_S * 1000000000ull)
		return;
	looked = now;
	if (mallinfo2().fordblks > IDLE_MAX)
		(void)malloc_trim(0);
}
