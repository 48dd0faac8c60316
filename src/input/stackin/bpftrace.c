/* Reads the maps that bpftrace prints: stacks and other keys between brackets, then a number. The
 * first of two stacks must be the kernel's, as in @[kstack, ustack].
 *
 *	@counts[bash,
 *	    vfs_read+16
 *	    ksys_read+96
 *	, 123]: 12
 */
#define _GNU_SOURCE
#include "input/stackin/stackin_reader.h"

struct bpftrace {
	bool inside; /* of the brackets */
};

static void push_keys(struct stackin *in, const char *s, size_t n)
{
	const char *end = s + n;

	while (s < end) {
		const char *comma = memmem(s, (size_t)(end - s), ", ", 2),
			   *stop = comma ? comma : end;

		while (stop > s && (is_space(stop[-1]) || stop[-1] == ','))
			stop--;
		if (stop > s)
			frames_push_base(in, s, (size_t)(stop - s));
		s = comma ? comma + 2 : end;
	}
}

/* Keys, and perhaps the end: "]: 12". */
static void keys_line(struct stackin *in, struct bpftrace *b, const char *s, size_t n)
{
	const char *close = NULL;
	uint64_t count;

	for (const char *p = s; (p = memmem(p, (size_t)(s + n - p), "]: ", 3)); p++)
		close = p;
	if (n && *s == ',') {
		s++;
		n--;
	}
	while (n && is_space(*s)) {
		s++;
		n--;
	}
	push_keys(in, s, close ? (close > s ? (size_t)(close - s) : 0) : n);
	b->inside = !close;
	if (!close)
		return;
	n -= (size_t)(close + 3 - s);
	if (number_of(close + 3, n, &count)) {
		frames_add(in, count);
	} else {
		frames_drop(in);
		stackin_skip(in);
	}
}

static void bpftrace_lines(struct stackin *in, const char *text, size_t len)
{
	struct bpftrace *b = in->state;
	const char *end = text + len, *s, *open;
	size_t n;

	while ((s = stackin_line(&text, end, &n))) {
		in->lines++;
		if (!n)
			continue;
		if (*s == '@' && (open = memchr(s, '[', n))) {
			if (b->inside)
				frames_drop(in);
			keys_line(in, b, open + 1, n - (size_t)(open + 1 - s));
		} else if (!b->inside) {
			stackin_skip(in);
		} else if (is_space(*s)) {
			while (n && is_space(*s)) {
				s++;
				n--;
			}
			while (n && is_space(s[n - 1]))
				n--;
			if (n)
				frames_push(in, s, n, true);
		} else {
			keys_line(in, b, s, n);
		}
	}
}

static uint32_t bpftrace_recognise(const char *text, size_t len)
{
	const char *end = text + len, *s;
	uint32_t n = 0, inside = 0;
	size_t l;

	while ((s = stackin_line(&text, end, &l))) {
		if (l && *s == '@' && memchr(s, '[', l))
			inside = 2;
		n += inside;
		if (inside && memmem(s, l, "]: ", 3))
			inside = 0;
	}
	return n;
}

const struct stackin_reader stackin_bpftrace = {
	.state_size = sizeof(struct bpftrace),
	.recognise = bpftrace_recognise,
	.lines = bpftrace_lines,
};
