/* Memory of the host tools: allocation that ends the program when there is none (STYLE: errors,
 * kind 4), arenas, growing vectors, and guards that free at the end of a scope. */
#ifndef DESCRY_BASE_MEM_H
#define DESCRY_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Never return NULL. On exhaustion they print one line and call exit(1). All memory comes from
 * malloc(3): free() it. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
/* Memory of zeros for a table that is read at random, which begins at a cache line. A large one is
 * in huge pages, so that few of its addresses miss in the processor's table of pages. */
void *xcalloc_table(size_t n, size_t size);
/* Prints why there is no memory, and ends the program in the same way. */
void mem_exhausted(const char *why) __attribute__((noreturn));
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
void *xmemdup(const void *p, size_t n);

/* Gives memory that was freed back to the system, when it is many megabytes. Costs nothing within
 * seconds of the last call. now: CLOCK_MONOTONIC, ns. For loops that run for hours. */
void mem_give_back(uint64_t now);

/* An arena. Its allocations live until arena_fini() frees all of them at once. Memory is zeroed and
 * 16-byte aligned. */
struct arena {
	struct arena_block *head;
};
void arena_init(struct arena *a);
void arena_fini(struct arena *a);
void *arena_alloc(struct arena *a, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (size_t)(n)))

/* A growing array: declare `VEC(struct foo) foos;` (zero is empty), push with vec_push(&foos,
 * value). Pointers into it are valid until the next push. */
#define VEC(T) \
	struct { \
		T *v; \
		uint32_t n, cap; \
	}
/* Ends the process where more than UINT32_MAX elements are needed. */
void vec_grow_(void **v, uint32_t *cap, uint64_t need, size_t elem);
#define vec_reserve(vec, more) \
	do { \
		uint64_t vec_need_ = (uint64_t)(vec)->n + (more); \
\
		if (vec_need_ > (vec)->cap) \
			vec_grow_((void **)&(vec)->v, &(vec)->cap, vec_need_, sizeof(*(vec)->v)); \
	} while (0)
#define vec_push(vec, ...) \
	do { \
		vec_reserve(vec, 1); \
		(vec)->v[(vec)->n++] = (__VA_ARGS__); \
	} while (0)
/* Adds a zeroed element and returns its address. */
#define vec_add(vec) \
	({ \
		vec_reserve(vec, 1); \
		memset(&(vec)->v[(vec)->n], 0, sizeof(*(vec)->v)); \
		&(vec)->v[(vec)->n++]; \
	})
#define vec_fini(vec) \
	do { \
		free((vec)->v); \
		(vec)->v = NULL; \
		(vec)->n = (vec)->cap = 0; \
	} while (0)
#define vec_last(vec) (&(vec)->v[(vec)->n - 1])

/* For qsort(3): below, at or above 0 when a is less than, equal to or greater than b. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Returns the least multiple of unit that is n or more. */
static inline uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static inline void cleanup_free_(void *p)
{
	free(*(void **)p);
}
static inline void cleanup_close_(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
#define cleanup_free __attribute__((cleanup(cleanup_free_)))
#define cleanup_close __attribute__((cleanup(cleanup_close_)))

#endif
