/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads, copies, compares and joins text in words of eight bytes. */

#define ONES 0x0101010101010101ull

/* Ones for the bytes of w before its first NUL: all ones when it has none. */
INLINE u64 text_mask(u64 w)
{
	u64 zeros = (w - ONES) & ~w & (ONES << 7);

	return ((zeros & -zeros) >> 7) - 1;
}

/* Returns the number of bytes that a text_mask() covers: 0..8. */
INLINE u64 mask_bytes(u64 mask)
{
	return ((mask & ONES) * ONES) >> 56;
}

INLINE u64 swap_bytes(u64 v)
{
	return __builtin_bswap64(v);
}

/* Reads eight bytes at addr. When they cross the end of a mapping, reads as many as the text
 * has. */
INLINE long read_word(u64 addr, u64 *ret)
{
	u64 w[2];

	if (bpf_probe_read_kernel(w, 8, KERNEL(addr)) &&
	    bpf_probe_read_kernel_str(w, 9, KERNEL(addr)) < 0)
		return E_FAULT;
	*ret = w[0];
	return 0;
}

/* Reads word i of the text at src, with zeroes behind the NUL; the text ends after size - 1
 * bytes. i is below MAX_WORDS, so that src may be a pointer that the verifier knows. *ret_mask:
 * text_mask. */
INLINE long text_word(u64 src, u64 i, u64 size, u64 *ret, u64 *ret_mask)
{
	u64 w, mask;

	if (read_word(src + i * 8, &w))
		return E_FAULT;
	mask = text_mask(w);
	if (i * 8 + 8 >= size)
		mask &= ~0ull >> 8;
	*ret = w & mask;
	*ret_mask = mask;
	return 0;
}

/* Writes w at dst + pos, pos <= size; cuts bytes that do not fit. */
INLINE void put_word(char *dst, u64 size, u64 pos, u64 w)
{
	if (pos <= size - 8) {
		*(u64 *)(dst + pos) = w;
	} else if (pos < size) {
		u64 *last = (u64 *)(dst + size - 8);
		u64 shift = (pos - (size - 8)) * 8;

		*last = (*last & ((1ull << (shift & 63)) - 1)) | w << (shift & 63);
	}
}

INLINE void put_char(char *dst, u64 size, u64 pos, char c)
{
	if (pos < size)
		dst[pos] = c;
}

/* Copies src to dst and cuts it to `length` bytes. */
INLINE long copy_text(char *dst, u64 size, u64 src, u64 length)
{
	if (bpf_probe_read_kernel_str(dst, size, KERNEL(src)) < 0) {
		dst[0] = 0;
		return E_FAULT;
	}
	put_char(dst, size, length, 0);
	return 0;
}

ROUTINE long d_strcpy(char *dst, u64 size, u64 src)
{
	return copy_text(dst, size, src, size);
}

ROUTINE long d_strcpy_pad(char *dst, u64 size, u64 src)
{
	zero(dst, size);
	if (bpf_probe_read_kernel_str(dst, size, KERNEL(src)) < 0) {
		zero(dst, size);
		return E_FAULT;
	}
	return 0;
}

/* --- strlen, strcmp --- */

struct scan {
	u64 src, size, n;
	long error;
};

CALLBACK scan_length(u32 index, struct scan *s)
{
	u64 i = index, w, mask;

	if (i >= MAX_WORDS)
		return 1;
	s->error = text_word(s->src, i, s->size, &w, &mask);
	if (s->error)
		return 1;
	s->n = i * 8 + mask_bytes(mask);
	return mask != ~0ull;
}

/* Returns the length of the text at src, at most size - 1 bytes. */
INLINE long text_length(u64 src, u64 size)
{
	struct scan s = { .src = src, .size = size };

	bpf_loop((u32)(size >> 3), scan_length, &s, 0);
	return s.error ? s.error : (long)s.n;
}

ROUTINE long d_strlen(u64 src, u64 size)
{
	return text_length(src, size);
}

struct compare {
	u64 a, b, size;
	long result;
};

CALLBACK compare_word(u32 index, struct compare *c)
{
	u64 i = index, a, b, mask_a, mask_b;

	if (i >= MAX_WORDS)
		return 1;
	if (text_word(c->a, i, c->size, &a, &mask_a) || text_word(c->b, i, c->size, &b, &mask_b)) {
		c->result = E_FAULT;
		return 1;
	}
	if (a != b) {
		c->result = swap_bytes(a) < swap_bytes(b) ? -1 : 1;
		return 1;
	}
	return mask_a != ~0ull;
}

ROUTINE long d_strcmp(u64 a, u64 b, u64 size)
{
	struct compare c = { .a = a, .b = b, .size = size };

	bpf_loop((u32)(size >> 3), compare_word, &c, 0);
	return c.result;
}

/* --- strjoin, toupper, tolower --- */

struct append {
	char *dst;
	u64 size, src, pos, add; /* toupper, tolower: 'a' or 'A', the first letter of the range */
	long error;
};

CALLBACK append_word(u32 index, struct append *a)
{
	u64 i = index, w, mask;

	if (i >= MAX_WORDS)
		return 1;
	a->error = text_word(a->src, i, a->size, &w, &mask);
	if (a->error)
		return 1;
	put_word(a->dst, a->size, a->pos, w);
	a->pos = hidden(a->pos + 8);
	return mask != ~0ull || a->pos >= a->size;
}

ROUTINE long d_strjoin(char *dst, u64 size, u64 first, u64 second)
{
	struct append a = { .dst = dst, .size = size, .src = second };
	long n = bpf_probe_read_kernel_str(dst, size, KERNEL(first));

	if (n < 0) {
		dst[0] = 0;
		return E_FAULT;
	}
	a.pos = hidden((u64)n - 1);
	bpf_loop((u32)(size >> 3), append_word, &a, 0);
	if (a.error)
		dst[0] = 0;
	dst[size - 1] = 0;
	return a.error;
}

/* Returns bit 5 of every byte that is a letter of the range first .. first + 25. */
INLINE u64 case_bits(u64 w, u64 first)
{
	u64 low = w & ~(ONES << 7);
	u64 above = low + ONES * (128 - first);       /* bit 7: byte >= first */
	u64 beyond = low + ONES * (128 - first - 26); /* bit 7: byte > last */

	return ((above & ~beyond & ~w) & (ONES << 7)) >> 2;
}

CALLBACK case_word(u32 index, struct append *a)
{
	u64 i = index, w, mask;

	if (i >= MAX_WORDS)
		return 1;
	a->error = text_word(a->src, i, a->size, &w, &mask);
	if (a->error)
		return 1;
	w ^= case_bits(w, a->add);
	put_word(a->dst, a->size, i * 8, w);
	return mask != ~0ull;
}

INLINE long change_case(char *dst, u64 size, u64 src, u64 first)
{
	struct append a = { .dst = dst, .size = size, .src = src, .add = first };

	bpf_loop((u32)(size >> 3), case_word, &a, 0);
	if (a.error)
		dst[0] = 0;
	dst[size - 1] = 0;
	return a.error;
}

ROUTINE long d_toupper(char *dst, u64 size, u64 src)
{
	return change_case(dst, size, src, 'a');
}

ROUTINE long d_tolower(char *dst, u64 size, u64 src)
{
	return change_case(dst, size, src, 'A');
}

/* --- memstr --- */

/* Returns ones for the bytes of w that are NUL. */
INLINE u64 nul_bytes(u64 w)
{
	u64 low = ~(ONES << 7);

	return ~(((w & low) + low) | w | low) >> 7;
}

CALLBACK memory_word(u32 index, struct append *a)
{
	u64 i = index, w = 0, left = a->pos - i * 8;

	if (i >= MAX_WORDS || i * 8 >= a->pos)
		return 1;
	if (left > 8)
		left = 8;
	OPAQUE(left);
	if (left > 8)
		return 1; /* the verifier needs it */
	a->error = bpf_probe_read_kernel(&w, left, KERNEL(a->src + i * 8));
	if (a->error)
		return 1;
	w |= nul_bytes(w) * a->add;
	put_word(a->dst, a->size, i * 8, w);
	return 0;
}

/* Copies n bytes of memory as text, the last of them for the NUL; NULs become c. */
ROUTINE long d_memstr(char *dst, u64 size, u64 src, u64 c, u64 n)
{
	struct append a = { .dst = dst, .size = size, .src = src, .add = c & 0xff };

	dst[0] = 0;
	if (!n)
		return 0;
	a.pos = (n < size ? n : size) - 1;
	bpf_loop((u32)(size >> 3), memory_word, &a, 0);
	if (a.error) {
		dst[0] = 0;
		return E_FAULT;
	}
	put_char(dst, size, a.pos, 0);
	return 0;
}

/* --- substr --- */

/* A negative index counts from the end. A negative length leaves that many characters off the end.
 * The part of the range before the text shortens the length. */
ROUTINE long d_substr(char *dst, u64 size, u64 src, s64 index, s64 length)
{
	s64 len = text_length(src, size), max = (s64)size;

	dst[0] = 0;
	if (len < 0)
		return E_FAULT;
	if (length > max)
		length = max;
	if (length < -max)
		return 0;
	if (index > max || index < -2 * max)
		return 0;
	if (index < 0) {
		index += len;
		if (index < 0 && index + length > 0) {
			length += index;
			index = 0;
		}
	}
	if (index < 0 || index >= len)
		return 0;
	if (length < 0)
		length += len - index;
	else if (length > len - index)
		length = len - index;
	if (length <= 0)
		return 0;
	u64 at = (u64)index, n = (u64)length;
	OPAQUE(at);
	if (at >= WIRE_STRING_MAX)
		return 0;
	return copy_text(dst, size, src + at, n);
}
