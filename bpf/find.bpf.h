/* SPDX-License-Identifier: GPL-2.0-only */
/* Searches text for characters, words and delimiters. */

struct find_char {
	u64 src, size, pattern; /* the character in every byte */
	s64 first, last;
	long error;
	bool stop_at_first;
};

CALLBACK find_char_word(u32 index, struct find_char *f)
{
	u64 i = index, w, mask, hits;

	if (i >= MAX_WORDS)
		return 1;
	f->error = text_word(f->src, i, f->size, &w, &mask);
	if (f->error)
		return 1;
	/* Exact: bit 7 of each equal byte becomes 1, and no borrow disturbs the bytes above. Bytes
	 * after the text do not count. */
	w ^= f->pattern;
	hits = ~(((w & ~(ONES << 7)) + ~(ONES << 7)) | w) & (ONES << 7) & mask;
	if (hits) {
		u64 lowest = ((hits & -hits) >> 7) - 1;
		s64 at = (s64)(i * 8 + mask_bytes(lowest));

		if (f->first < 0)
			f->first = at;
		f->last = (s64)(i * 8) + (s64)((bit_length(hits) - 1) >> 3);
		if (f->stop_at_first)
			return 1;
	}
	return mask != ~0ull;
}

/* Finds the offset of a character; *ret is -1 when the text lacks it. c may be the NUL at the
 * end. */
INLINE long find_char(u64 src, u64 size, u64 c, bool last, s64 *ret)
{
	struct find_char f = { .src = src,
			       .size = size,
			       .pattern = (c & 0xff) * ONES,
			       .first = -1,
			       .last = -1,
			       .stop_at_first = !last };

	if (!(c & 0xff)) {
		*ret = text_length(src, size);
		return *ret < 0 ? E_FAULT : 0;
	}
	bpf_loop((u32)(size >> 3), find_char_word, &f, 0);
	*ret = last ? f.last : f.first;
	return f.error;
}

/* Copies the text from offset `at`; at < 0: not found. */
INLINE long copy_from(char *dst, u64 size, u64 src, long error, s64 at)
{
	u64 offset = (u64)at;

	dst[0] = 0;
	if (error)
		return error;
	OPAQUE(offset);
	if (offset >= WIRE_STRING_MAX)
		return NOT_FOUND;
	return copy_text(dst, size, src + offset, size - 1 - offset);
}

ROUTINE long d_strchr(char *dst, u64 size, u64 src, u64 c)
{
	s64 at;
	long error = find_char(src, size, c, false, &at);

	RESULT(copy_from(dst, size, src, error, at));
}

ROUTINE long d_strrchr(char *dst, u64 size, u64 src, u64 c)
{
	s64 at;
	long error = find_char(src, size, c, true, &at);

	RESULT(copy_from(dst, size, src, error, at));
}

/* --- strstr, index, rindex --- */

struct find_text {
	u64 src, needle, size;
	u64 head, head_mask; /* the needle's first word */
	s64 needle_len;
	u64 now, next; /* the words of src at and after the present position */
	s64 from, to;  /* positions that count */
	s64 found;
	u64 pos;   /* the present position */
	u64 check; /* number of the needle's bytes that matched; 0: none yet */
	u64 ended; /* src has no further word */
	u64 last, error;
};

INLINE long next_word(struct find_text *f, u64 i)
{
	u64 mask;

	f->next = 0;
	if (f->ended || i * 8 >= f->size || i >= MAX_WORDS)
		return 0;
	if (text_word(f->src, i, f->size, &f->next, &mask)) {
		f->error = 1;
		return 1;
	}
	f->ended = hidden(mask != ~0ull);
	return 0;
}

/* Returns true when the needle's next eight bytes match at the position. *ret_whole: they were the
 * last. */
INLINE bool needle_goes_on(struct find_text *f, bool *ret_whole)
{
	u64 check = f->check & (WIRE_STRING_MAX - 1), at = f->pos & (WIRE_STRING_MAX - 1), a, b;

	*ret_whole = (s64)(check + 8) >= f->needle_len;
	f->check = hidden(check + 8);
	at += check;
	if (read_word(f->needle + check, &b) || read_word(f->src + at, &a)) {
		f->error = 1;
		return false;
	}
	return !((a ^ b) & text_mask(b));
}

/* Does one step: compares the needle's first word at a position, or its next word at the same
 * position. */
CALLBACK find_step(u32 index, struct find_text *f)
{
	u64 pos = f->pos, shift = (pos & 7) * 8, w;
	bool whole = true, same;

	if (f->check) {
		same = needle_goes_on(f, &whole);
	} else {
		if (!(pos & 7)) {
			f->now = f->next;
			if (next_word(f, (pos >> 3) + 1))
				return 1;
		}
		if ((s64)pos > f->to)
			return 1;
		w = f->now >> shift | f->next << 1 << (63 - shift);
		same = !((w ^ f->head) & f->head_mask) && (s64)pos >= f->from;
		if (same && f->needle_len > 8) {
			f->check = hidden(8);
			return 0;
		}
	}
	if (same && !whole)
		return f->error != 0;
	f->check = hidden(0);
	f->pos = hidden(pos + 1);
	if (!same)
		return f->error != 0;
	f->found = (s64)hidden(pos);
	return f->last == 0;
}

/* Searches the positions from..to (both in 0..len) for the needle; *ret: the first or the last
 * match. */
INLINE long find_text(u64 src, u64 needle, u64 size, s64 len, s64 needle_len, s64 from, s64 to,
		      bool last, s64 *ret)
{
	struct find_text f = { .src = src,
			       .needle = needle,
			       .size = size,
			       .needle_len = needle_len,
			       .from = from,
			       .to = to,
			       .found = hidden(-1),
			       .pos = hidden(0),
			       .check = hidden(0),
			       .last = last };

	*ret = -1;
	if (needle_len > len)
		return 0;
	if (to > len - needle_len)
		f.to = len - needle_len;
	if (read_word(needle, &f.head))
		return E_FAULT;
	f.head_mask = text_mask(f.head);
	if (next_word(&f, 0))
		return E_FAULT;
	f.now = hidden(0);
	f.next = hidden(f.next);
	f.ended = hidden(f.ended);
	/* The number of steps is enough for every word of the needle at every position. */
	bpf_loop((u32)(size * (size >> 3)), find_step, &f, 0);
	*ret = f.found;
	return f.error ? E_FAULT : 0;
}

ROUTINE long d_strstr(char *dst, u64 size, u64 src, u64 needle)
{
	s64 len = text_length(src, size), needle_len = text_length(needle, size), at;
	long error;

	dst[0] = 0;
	if (len < 0 || needle_len < 0)
		RESULT(E_FAULT);
	error = find_text(src, needle, size, len, needle_len, 0, len, false, &at);
	RESULT(copy_from(dst, size, src, error, at));
}

/* Clamps the position as Perl's index() does. An empty needle matches everywhere, at last at the
 * end. */
ROUTINE long d_index(u64 src, u64 needle, s64 start, u64 size)
{
	s64 len = text_length(src, size), needle_len = text_length(needle, size), at;

	if (len < 0 || needle_len < 0)
		RESULT(E_FAULT);
	if (start < 0)
		start = 0;
	if (!needle_len)
		RESULT(start < len ? start : len);
	if (start >= len)
		RESULT(-1);
	if (find_text(src, needle, size, len, needle_len, start, len, false, &at))
		RESULT(E_FAULT);
	RESULT(at);
}

ROUTINE long d_rindex(u64 src, u64 needle, s64 start, u64 size)
{
	s64 len = text_length(src, size), needle_len = text_length(needle, size), at;

	if (len < 0 || needle_len < 0)
		RESULT(E_FAULT);
	if (start > len)
		start = len;
	if (!needle_len)
		RESULT(start < 0 ? 0 : start);
	if (start < 0)
		RESULT(-1);
	if (find_text(src, needle, size, len, needle_len, 0, start, true, &at))
		RESULT(E_FAULT);
	RESULT(at);
}

/* --- strtok --- */

struct token {
	struct wire_strtok *state;
	char *dst;
	u64 size, pos, n; /* n: characters of the token so far */
	u64 set[4];       /* delimiters, one bit for each character */
	u64 delims;
	long error;
};

INLINE bool in_set(const struct token *t, u64 c)
{
	u64 low = c & 64 ? t->set[1] : t->set[0], high = c & 64 ? t->set[3] : t->set[2];

	return (c & 128 ? high : low) >> (c & 63) & 1;
}

INLINE void add_to_set(struct token *t, u64 c)
{
	u64 bit = 1ull << (c & 63);

	if (c & 128) {
		if (c & 64)
			t->set[3] |= bit;
		else
			t->set[2] |= bit;
	} else {
		if (c & 64)
			t->set[1] |= bit;
		else
			t->set[0] |= bit;
	}
}

CALLBACK add_delimiter(u32 index, struct token *t)
{
	u64 i = index;
	unsigned char c = 0;

	if (i >= WIRE_STRING_MAX)
		return 1;
	if (bpf_probe_read_kernel(&c, 1, KERNEL(t->delims + i))) {
		t->error = E_FAULT;
		return 1;
	}
	add_to_set(t, c);
	return !c;
}

CALLBACK token_char(u32 index, struct token *t)
{
	u64 pos = t->pos, n = t->n, c;

	if (pos >= t->size || n >= t->size)
		return 1;
	c = (unsigned char)t->state->text[pos];
	if (!c)
		return 1;
	if (in_set(t, c)) {
		/* Leaves the delimiter behind a token for the next call, which may have other
		 * delimiters. */
		t->pos = pos + !n;
		return n > 0;
	}
	t->pos = pos + 1;
	t->dst[n] = (char)c;
	t->n = n + 1;
	return 0;
}

ROUTINE long d_strtok(char *dst, u64 size, u64 src, u64 delims, struct wire_strtok *state)
{
	struct token t = { .state = state, .dst = dst, .size = size, .delims = delims };

	dst[0] = 0;
	if (src) {
		state->pos = 1;
		if (bpf_probe_read_kernel_str(state->text, size, KERNEL(src)) < 0) {
			state->pos = 0;
			RESULT(E_FAULT);
		}
	}
	if (!state->pos)
		RESULT(NOT_FOUND);
	t.pos = hidden(state->pos - 1);
	t.n = hidden(0);
	bpf_loop((u32)size, add_delimiter, &t, 0);
	if (t.error)
		RESULT(t.error);
	bpf_loop((u32)size, token_char, &t, 0);
	put_char(dst, size, t.n, 0);
	dst[size - 1] = 0;
	state->pos = t.n ? t.pos + 1 : 0;
	RESULT(t.n ? 0 : NOT_FOUND);
}
