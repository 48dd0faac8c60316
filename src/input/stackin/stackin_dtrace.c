/* The text of DTrace and of descry: aggregations with stacks among their keys, and stack() and
 * ustack() as actions.
 *
 *	  bash                                              keys, narrower than frames are indented
 *	              vmlinux`vfs_read+0x10                 frames, leaf first; an empty line between two stacks
 *	              vmlinux`ksys_read+0x60
 *	  more keys              12                         and the count; alone, when no key follows the stack
 */
#define _GNU_SOURCE
#include "input/stackin/stackin_reader.h"

struct dtrace {
	VEC(char) keys;  /* a line of keys whose meaning depends on the next line */
	uint32_t block;  /* where the second stack begins in f.ids; 0: there is only one */
	uint32_t indent; /* of frames; 0 = none seen yet */
	bool has_keys,
		row; /* row: a probe's line stands above, so a stack without a count is one event */
	bool blank;  /* the line before was empty */
	bool heading;      /* the keys begin at the margin, where an aggregation prints none */
	bool distribution; /* in a quantize(): its counts are summed up */
	uint64_t sum;
};

struct line {
	const char *s; /* without the blanks around it */
	size_t n, indent;
};

static struct line line_of(const char *s, size_t n)
{
	struct line l = { .s = s };

	while (n && is_space(s[n - 1]))
		n--;
	while (l.indent < n && is_space(s[l.indent]))
		l.indent++;
	l.s = s + l.indent;
	l.n = n - l.indent;
	return l;
}

static bool is_address(const char *s, size_t n)
{
	if (n < 3 || s[0] != '0' || s[1] != 'x')
		return false;
	for (size_t i = 2; i < n; i++)
		if (!is_hex(s[i]))
			return false;
	return true;
}

/* Reads "dash+0x466f": a file without symbols, and an offset in it. */
static bool is_offset(const char *s, size_t n)
{
	const char *plus = memrchr(s, '+', n);

	return plus && plus != s && !memchr(s, ' ', n) &&
	       is_address(plus + 1, n - (size_t)(plus + 1 - s));
}

/* Returns true for the reason why descry's walk ended. It stands for the missing frames. */
static bool is_end(struct line l)
{
	static const char mark[] = "[stack ends: ";

	return l.n > sizeof(mark) - 1 && !memcmp(l.s, mark, sizeof(mark) - 1);
}

/* Returns true for a frame: indented as stacks are by themselves, or at the margin, as a format's
 * %k prints them, and then with the name of a module. */
static bool looks_like_frame(struct line l)
{
	if (!l.indent && l.n && l.s[0] != '`')
		return memchr(l.s, '`', l.n) && !memchr(l.s, ';', l.n) &&
		       !(is_digit(l.s[l.n - 1]) && memchr(l.s, ' ', l.n));
	return l.indent >= 4 && (is_address(l.s, l.n) || is_offset(l.s, l.n) ||
				 (memchr(l.s, '`', l.n) && l.s[0] != '`') || is_end(l));
}

/* "  0   1013   vfs_read:entry" */
static bool is_probe_row(struct line l)
{
	const char *p = l.s, *end = l.s + l.n;

	for (int i = 0; i < 2; i++) {
		const char *digits = p;

		while (p < end && is_digit(*p))
			p++;
		if (p == digits || p == end || !is_space(*p))
			return false;
		while (p < end && is_space(*p))
			p++;
	}
	return memchr(p, ':', (size_t)(end - p)) && !memchr(p, ' ', (size_t)(end - p));
}

static bool is_kernel(const struct stackin *in, uint32_t id)
{
	return stacktree_in_kernel(&in->tree->frames.v[id]);
}

/* Puts the kernel's frames nearer to the leaf, in whatever order the keys are. */
static void order_blocks(struct stackin *in, struct dtrace *d)
{
	uint32_t n = in->frames.ids.n, second = n - d->block;
	cleanup_free uint32_t *was = NULL;

	if (!d->block || d->block >= n || is_kernel(in, in->frames.ids.v[0]) ||
	    !is_kernel(in, in->frames.ids.v[d->block]))
		return;
	was = xmemdup(in->frames.ids.v, n * sizeof(*was));
	memcpy(in->frames.ids.v, was + d->block, second * sizeof(*was));
	memcpy(in->frames.ids.v + second, was, d->block * sizeof(*was));
}

static void dtrace_add(struct stackin *in, struct dtrace *d, uint64_t count)
{
	order_blocks(in, d);
	if (!in->frames.ids.n)
		frames_push(in, "[no stack]", 10, false);
	frames_add(in, count);
	d->block = 0;
	d->row = d->has_keys = d->distribution = false;
}

/* Columns are two blanks apart, also the column of a count. */
static void push_keys(struct stackin *in, const char *s, size_t n)
{
	const char *end = s + n;

	while (s < end) {
		const char *gap = memmem(s, (size_t)(end - s), "  ", 2);

		if (!gap)
			gap = end;
		if (gap > s)
			frames_push_base(in, s, (size_t)(gap - s));
		for (s = gap; s < end && is_space(*s);)
			s++;
	}
}

static void settle_keys(struct stackin *in, struct dtrace *d)
{
	if (d->has_keys)
		push_keys(in, d->keys.v, d->keys.n);
	d->has_keys = false;
}

/* Counts an event that printed stacks and no count. */
static void end_event(struct stackin *in, struct dtrace *d)
{
	if (d->row && in->frames.ids.n)
		dtrace_add(in, d, 1);
	frames_drop(in);
	d->block = 0;
	d->row = d->has_keys = d->distribution = false;
}

/* Returns the beginning of the last column when it is a number, else n. */
static size_t last_column(struct line l, uint64_t *ret)
{
	size_t i = l.n;

	while (i && is_digit(l.s[i - 1]))
		i--;
	if (i == l.n || (i && !is_space(l.s[i - 1])) || !number_of(l.s + i, l.n - i, ret))
		return l.n;
	return i;
}

static void blank_line(struct stackin *in, struct dtrace *d)
{
	if (d->distribution) {
		dtrace_add(in, d, d->sum);
		d->sum = 0;
	} else if (in->frames.ids.n && !d->block) {
		d->block = in->frames.ids.n;
	} else if (d->has_keys && d->heading && !in->frames.ids.n && !in->frames.base.n) {
		d->has_keys = false;
		stackin_skip(in);
	}
}

/* Handles a line that is neither empty nor a frame. */
static void key_line(struct stackin *in, struct dtrace *d, struct line l)
{
	uint64_t count;
	size_t at = last_column(l, &count);

	if (d->distribution) {
		if (memchr(l.s, '|', l.n) && at < l.n)
			d->sum += count;
	} else if (memmem(l.s, l.n, "- Distribution -", 16)) {
		settle_keys(in, d);
		d->distribution = true;
		d->sum = 0;
	} else if (memmem(l.s, l.n, "FUNCTION:NAME", 13) || is_probe_row(l)) {
		end_event(in, d);
		d->row = l.s[0] != 'C';
	} else if (at == 0 && (in->frames.ids.n || d->has_keys || d->blank)) {
		settle_keys(in, d);
		dtrace_add(in, d, count);
	} else if (at < l.n && in->frames.ids.n) {
		settle_keys(in, d);
		push_keys(in, l.s, at);
		dtrace_add(in, d, count);
	} else {
		if (d->has_keys) /* a line of no stack */
			stackin_skip(in);
		d->keys.n = 0;
		vec_reserve(&d->keys, l.n);
		memcpy(d->keys.v, l.s, l.n);
		d->keys.n = (uint32_t)l.n;
		d->has_keys = true;
		d->heading = !l.indent;
	}
}

static void dtrace_lines(struct stackin *in, const char *text, size_t len)
{
	struct dtrace *d = in->state;
	const char *end = text + len, *s;
	uint64_t number;
	size_t n;

	while ((s = stackin_line(&text, end, &n))) {
		struct line l = line_of(s, n);

		in->lines++;
		if (!l.n) {
			blank_line(in, d);
		} else if (looks_like_frame(l) ||
			   (d->indent && l.indent == d->indent && !number_of(l.s, l.n, &number) &&
			    !d->distribution)) {
			if (!d->indent)
				d->indent = (uint32_t)l.indent;
			settle_keys(in, d);
			frames_push(in, l.s, l.n, false);
		} else {
			key_line(in, d, l);
		}
		d->blank = !l.n;
	}
}

static uint32_t dtrace_recognise(const char *text, size_t len)
{
	const char *end = text + len, *s;
	uint32_t n = 0;
	size_t l;

	while ((s = stackin_line(&text, end, &l)))
		n += looks_like_frame(line_of(s, l));
	return n;
}

static void dtrace_finish(struct stackin *in)
{
	struct dtrace *d = in->state;

	if (d->distribution)
		dtrace_add(in, d, d->sum);
	else
		end_event(in, d);
}

static void dtrace_fini(struct stackin *in)
{
	struct dtrace *d = in->state;

	vec_fini(&d->keys);
}

const struct stackin_reader stackin_dtrace = {
	.state_size = sizeof(struct dtrace),
	.recognise = dtrace_recognise,
	.lines = dtrace_lines,
	.end = dtrace_finish,
	.fini = dtrace_fini,
};
