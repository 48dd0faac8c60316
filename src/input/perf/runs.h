/* Sorts elements that are nearly sorted: by the u64 that they begin with, and equal ones in their
 * old order.
 *
 * perf.data has a rising run for each processor, and kallsyms one for the kernel and one for each
 * module. Merging neighbouring runs is a fraction of a sort's work. The functions are inline, so
 * that the compiler knows the size of the elements that it moves.
 */
#ifndef DESCRY_INPUT_PERF_RUNS_H
#define DESCRY_INPUT_PERF_RUNS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

static inline uint64_t run_key(const char *v, uint32_t i, size_t size)
{
	uint64_t key;

	memcpy(&key, v + i * size, sizeof(key));
	return key;
}

/* Merges [a, mid) and [mid, end) of `from` into [a, end) of `to`. */
static inline void run_merge(const char *from, uint32_t a, uint32_t mid, uint32_t end, char *to,
			     size_t size)
{
	uint32_t b = mid;

	for (to += a * size; a < mid && b < end; to += size) {
		uint32_t *least = run_key(from, b, size) < run_key(from, a, size) ? &b : &a;

		memcpy(to, from + *least * size, size);
		++*least;
	}
	memcpy(to, from + a * size, (mid - a) * size);
	memcpy(to + (mid - a) * size, from + b * size, (end - b) * size);
}

static inline void runs_sort(void *v, uint32_t n, size_t size)
{
	cleanup_free char *spare = NULL;
	VEC(uint32_t) runs = { 0 };
	char *from = v, *to;

	for (uint32_t i = 0; i < n; i++)
		if (!i || run_key(from, i, size) < run_key(from, i - 1, size))
			vec_push(&runs, i);
	if (runs.n > 1)
		spare = xmalloc(n * size);
	for (to = spare; runs.n > 1; to = from == v ? spare : v) {
		uint32_t left = 0;

		for (uint32_t i = 0; i < runs.n; i += 2) {
			uint32_t mid = i + 1 < runs.n ? runs.v[i + 1] : n;
			uint32_t end = i + 2 < runs.n ? runs.v[i + 2] : n;

			run_merge(from, runs.v[i], mid, end, to, size);
			runs.v[left++] = runs.v[i];
		}
		runs.n = left;
		from = to;
	}
	if (from != v)
		memcpy(v, from, n * size);
	vec_fini(&runs);
}

#endif
