/* Bytes moved without a C library, for short pieces: keys, values, records. */
#ifndef DESCRY_AGENT_MEMORY_H
#define DESCRY_AGENT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the compiler may not see as, or turn into, a call of memcpy() or memset(). */
typedef uint64_t __attribute__((may_alias, aligned(1))) any64;
typedef uint32_t __attribute__((may_alias, aligned(1))) any32;
typedef uint8_t __attribute__((may_alias)) any8;

static inline void mem_copy(void *dst, const void *src, uint64_t n)
{
	any8 *d = dst;
	const any8 *s = src;

	if (n >= 512) {
		__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
		return;
	}
	for (; n >= 8; n -= 8, d += 8, s += 8) {
		*(any64 *)d = *(const any64 *)s;
		__asm__ volatile("" ::: "memory");
	}
	for (; n; n--) {
		*d++ = *s++;
		__asm__ volatile("" ::: "memory");
	}
}

static inline void mem_zero(void *dst, uint64_t n)
{
	any8 *d = dst;

	if (n >= 512) {
		__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(0) : "memory");
		return;
	}
	for (; n >= 8; n -= 8, d += 8) {
		*(any64 *)d = 0;
		__asm__ volatile("" ::: "memory");
	}
	for (; n; n--) {
		*d++ = 0;
		__asm__ volatile("" ::: "memory");
	}
}

static inline bool mem_same(const void *a, const void *b, uint64_t n)
{
	const any8 *x = a, *y = b;

	for (; n >= 8; n -= 8, x += 8, y += 8)
		if (*(const any64 *)x != *(const any64 *)y)
			return false;
	for (; n; n--)
		if (*x++ != *y++)
			return false;
	return true;
}

static inline uint64_t mem_hash(const void *key, uint64_t n)
{
	const any8 *p = key;
	uint64_t h = n * 0x9e3779b97f4a7c15ull, w;
	unsigned __int128 m;

	while (n) {
		if (n >= 8) {
			w = *(const any64 *)p;
			p += 8;
			n -= 8;
		} else {
			for (w = 0; n; n--)
				w = w << 8 | *p++;
		}
		m = (unsigned __int128)(h ^ w) * 0xd6e8feb86659fd93ull;
		h = ((uint64_t)m ^ (uint64_t)(m >> 64)) + 0x9e3779b97f4a7c15ull;
	}
	return h ^ h >> 32;
}

#endif
