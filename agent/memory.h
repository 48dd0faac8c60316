/* Copies bytes without a C library, for short pieces: keys, values, records. */
#ifndef DESCRY_AGENT_MEMORY_H
#define DESCRY_AGENT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of any memory. With them, the compiler does not turn a copy into a call of memcpy() or
 * memset(). */
typedef uint64_t __attribute__((may_alias, aligned(1))) any64;
typedef uint32_t __attribute__((may_alias, aligned(1))) any32;
typedef uint8_t __attribute__((may_alias)) any8;

/* A probe may fire while the traced code has the direction flag set, as copies of overlapping
 * memory do. The red zone of the function around must stay. */
#define MEM_FORWARD(rep) \
	"lea -128(%%rsp), %%rsp\n pushfq\n cld\n " rep "\n popfq\n lea 128(%%rsp), %%rsp"

static __attribute__((unused)) void mem_copy(void *dst, const void *src, uint64_t n)
{
	any8 *d = dst;
	const any8 *s = src;

	if (n >= 512) {
		__asm__ volatile(MEM_FORWARD("rep movsb") : "+D"(d), "+S"(s), "+c"(n) : : "memory");
		return;
	}
	for (; n >= 32; n -= 32, d += 32, s += 32) {
		uint64_t w0 = *(const any64 *)s, w1 = *(const any64 *)(s + 8),
			 w2 = *(const any64 *)(s + 16), w3 = *(const any64 *)(s + 24);

		*(any64 *)d = w0;
		*(any64 *)(d + 8) = w1;
		*(any64 *)(d + 16) = w2;
		*(any64 *)(d + 24) = w3;
		__asm__ volatile("" ::: "memory");
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

static __attribute__((unused)) void mem_zero(void *dst, uint64_t n)
{
	any8 *d = dst;

	if (n >= 512) {
		__asm__ volatile(MEM_FORWARD("rep stosb") : "+D"(d), "+c"(n) : "a"(0) : "memory");
		return;
	}
	for (; n >= 32; n -= 32, d += 32) {
		*(any64 *)d = 0;
		*(any64 *)(d + 8) = 0;
		*(any64 *)(d + 16) = 0;
		*(any64 *)(d + 24) = 0;
		__asm__ volatile("" ::: "memory");
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

	for (; n >= 32; n -= 32, x += 32, y += 32)
		if ((*(const any64 *)x ^ *(const any64 *)y) |
		    (*(const any64 *)(x + 8) ^ *(const any64 *)(y + 8)) |
		    (*(const any64 *)(x + 16) ^ *(const any64 *)(y + 16)) |
		    (*(const any64 *)(x + 24) ^ *(const any64 *)(y + 24)))
			return false;
	for (; n >= 8; n -= 8, x += 8, y += 8)
		if (*(const any64 *)x != *(const any64 *)y)
			return false;
	for (; n; n--)
		if (*x++ != *y++)
			return false;
	return true;
}

static inline uint64_t mem_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)(a ^ b) * 0xd6e8feb86659fd93ull;

	return ((uint64_t)m ^ (uint64_t)(m >> 64)) + 0x9e3779b97f4a7c15ull;
}

/* Hashes in four lanes, because each multiplication waits for the one before it, and strings have
 * rooms of 256 bytes. n is a multiple of 32. */
static __attribute__((noinline, unused)) uint64_t mem_hash_long(const any8 *p, uint64_t n,
								uint64_t h)
{
	uint64_t h1 = h + 1, h2 = h + 2, h3 = h + 3;

	for (; n; n -= 32, p += 32) {
		h = mem_mix(h, *(const any64 *)p);
		h1 = mem_mix(h1, *(const any64 *)(p + 8));
		h2 = mem_mix(h2, *(const any64 *)(p + 16));
		h3 = mem_mix(h3, *(const any64 *)(p + 24));
	}
	return mem_mix(mem_mix(h, h1), mem_mix(h2, h3));
}

static inline uint64_t mem_hash(const void *key, uint64_t n)
{
	const any8 *p = key;
	uint64_t h = n * 0x9e3779b97f4a7c15ull, w;

	if (n >= 64) {
		h = mem_hash_long(p, n & ~31ull, h);
		p += n & ~31ull;
		n &= 31;
	}
	while (n) {
		if (n >= 8) {
			w = *(const any64 *)p;
			p += 8;
			n -= 8;
		} else {
			for (w = 0; n; n--)
				w = w << 8 | *p++;
		}
		h = mem_mix(h, w);
	}
	return h ^ h >> 32;
}

#endif
