/* Memory of the host tools: allocation that ends the program when there is none (STYLE: errors,
 * kind 4), arenas, growing vectors and the guards that free on scope exit.
 */
#ifndef DESCRY_BASE_MEM_H
#define DESCRY_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Never return NULL: on exhaustion print one line and exit(1). All memory from malloc(3): free()
 * it. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *xmemdup(const void *p, size_t n);

/* An arena: allocations live until arena_fini() frees all of them at once. Memory is zeroed,
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
void vec_grow_(void **v, uint32_t *cap, uint32_t need, size_t elem);
#define vec_reserve(vec, more) \
	do { \
		if ((vec)->n + (uint32_t)(more) > (vec)->cap) \
			vec_grow_((void **)&(vec)->v, &(vec)->cap, (vec)->n + (uint32_t)(more), \
				  sizeof(*(vec)->v)); \
	} while (0)
#define vec_push(vec, ...) \
	do { \
		vec_reserve(vec, 1); \
		(vec)->v[(vec)->n++] = (__VA_ARGS__); \
	} while (0)
/* Adds one zeroed element and gives its address. */
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

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

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
