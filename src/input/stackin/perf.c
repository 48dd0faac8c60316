/* The text of perf script: a header for each sample, its frames from the leaf on, an empty line.
 *
 *	comm 123/124 [000] 6710.310807:     200040 cpu-clock:
 *		ffffffff821e2e1a vsnprintf+0x23a ([kernel.kallsyms])
 *		          101829 syscall+0x19 (/usr/lib/x86_64-linux-gnu/libc.so.6)
 *
 * The result for a line is that of stackcollapse-perf.pl, to the byte, with two corrections: a
 * command's name of one letter is a name, and a last sample without an empty line behind it counts.
 */
#define _GNU_SOURCE
#include "base/hash.h"
#include "input/stackin/stackin_reader.h"

/* A table from the text behind the address to its frames, because most lines were seen before. */
struct line_slot {
	uint64_t hash;
	const char *text; /* NULL = free */
	uint32_t len, value;
};

enum {
	/* value: index into `many`, where the number of frames stands in front of them */
	LINE_MANY = 1u << 31,
	LINE_SLOTS_MIN = 4096
};

struct perf {
	struct line_slot *slots;
	uint32_t nslots, used;
	VEC(uint32_t) many;
	VEC(uint32_t) stack; /* leaf first */
	struct perf_names names;
	struct arena text;
	uint64_t period;
	bool in_sample;
};

/* Adds the frames of a line at the end of `many`, leaf first. "->" separates inlined functions. */
static uint32_t frames_of(struct stackin *in, struct text raw, struct text pc, struct text mod)
{
	struct perf *p = in->state;
	uint32_t first = p->many.n;
	const char *s, *end;

	raw.n = tidy_offset(raw.s, raw.n, false);
	while (raw.n >= 2 && !memcmp(raw.s + raw.n - 2, "->", 2))
		raw.n -= 2;
	if (!raw.n || raw.s[0] == '(')
		return 0;
	for (s = raw.s, end = raw.s + raw.n; s;) {
		const char *arrow = memmem(s, (size_t)(end - s), "->", 2);
		struct text func = { s, (size_t)((arrow ? arrow : end) - s) };

		vec_push(&p->many, perf_function(in, &p->names, func, pc, mod, s > raw.s));
		s = arrow ? arrow + 2 : NULL;
	}
	for (uint32_t i = first, j = p->many.n - 1; i < j; i++, j--) {
		uint32_t t = p->many.v[i];

		p->many.v[i] = p->many.v[j];
		p->many.v[j] = t;
	}
	return p->many.n - first;
}

static void slots_grow(struct perf *p)
{
	struct line_slot *was = p->slots;
	uint32_t n = p->nslots, mask;

	p->nslots = n ? n * 2 : LINE_SLOTS_MIN;
	mask = p->nslots - 1;
	p->slots = xcalloc(p->nslots, sizeof(*p->slots));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = (uint32_t)was[i].hash & mask;

		if (!was[i].text)
			continue;
		while (p->slots[j].text)
			j = (j + 1) & mask;
		p->slots[j] = was[i];
	}
	free(was);
}

/* Finds the last " (" with a ')' behind it. */
static bool split_module(const char *s, const char *end, const char **ret_open,
			 const char **ret_close)
{
	const char *close = memrchr(s, ')', (size_t)(end - s));

	if (!close)
		return false;
	for (const char *p = close - 1; p > s; p--)
		if (*p == '(' && p[-1] == ' ') {
			*ret_open = p - 1;
			*ret_close = close;
			return true;
		}
	return false;
}

/* Handles a line that the table does not have, or has no room for. Finds the same parts as perl's
 * "(\w+)\s*(.+) \((.*)\)"; `key` is the first byte behind the address and the space. */
static bool parse_frame(struct stackin *in, const char *word, const char *key, const char *end,
			bool *ret_cache, uint32_t *ret_n)
{
	const char *open, *close, *pc_end = key;
	struct text raw, pc, mod;

	if (!split_module(word, end, &open, &close))
		return false;
	*ret_cache = open > key;
	if (open <= key) { /* no name: perl takes the last byte of the text there for one */
		key = open - 1;
		if (key <= word)
			return false;
		pc_end = key;
	}
	while (pc_end > word && is_space(pc_end[-1]))
		pc_end--;
	pc = (struct text){ word, (size_t)(pc_end - word) };
	raw = (struct text){ key, (size_t)(open - key) };
	mod = (struct text){ open + 2, (size_t)(close - open - 2) };
	*ret_n = frames_of(in, raw, pc, mod);
	return true;
}

static void push_value(struct perf *p, uint32_t value)
{
	const uint32_t *v;

	if (!(value & LINE_MANY)) {
		vec_push(&p->stack, value);
		return;
	}
	v = p->many.v + (value & ~LINE_MANY);
	for (uint32_t i = 1; i <= v[0]; i++)
		vec_push(&p->stack, v[i]);
}

/* Returns false when the line is no frame. */
static bool frame_line(struct stackin *in, const char *s, const char *end)
{
	struct perf *p = in->state;
	const char *word = s, *key;
	struct line_slot *slot;
	uint32_t mask, n, at;
	uint64_t hash;
	bool cache;
	size_t len;

	while (word < end && is_space(*word))
		word++;
	key = word;
	while (key < end && is_word(*key))
		key++;
	if (key == word)
		return false;
	while (key < end && is_space(*key))
		key++;
	if (!p->in_sample) {
		const char *open, *close;

		return split_module(word, end, &open, &close);
	}
	if (in->options.addrs)
		len = (size_t)(end - word), hash = hash_bytes(word, len);
	else
		len = (size_t)(end - key), hash = hash_bytes(key, len);
	hash ^= p->names.java;
	if (p->used * 2 >= p->nslots)
		slots_grow(p);
	mask = p->nslots - 1;
	for (at = (uint32_t)hash & mask; (slot = &p->slots[at])->text; at = (at + 1) & mask)
		if (slot->hash == hash && slot->len == len && !memcmp(slot->text, end - len, len)) {
			push_value(p, slot->value);
			return true;
		}
	at = p->many.n;
	vec_push(&p->many, 0);
	if (!parse_frame(in, word, key, end, &cache, &n)) {
		p->many.n = at;
		return false;
	}
	p->many.v[at] = n;
	push_value(p, at | LINE_MANY);
	if (n == 1) {
		at = p->many.v[at + 1];
		p->many.n -= 2;
	} else {
		at |= LINE_MANY;
	}
	if (cache && len < UINT32_MAX) {
		char *copy = arena_alloc(&p->text, len + 1);

		memcpy(copy, end - len, len);
		*slot = (struct line_slot){ hash, copy, (uint32_t)len, at };
		p->used++;
	}
	return true;
}

/* Returns true for "pid/tid " at s, and the places of the numbers. */
static bool ids_at(const char *s, const char *end, struct text *ret_pid, struct text *ret_tid)
{
	const char *p = s, *q;

	while (p < end && is_digit(*p))
		p++;
	if (p == s)
		return false;
	q = p;
	while (q < end && *q == '/')
		q++;
	*ret_pid = (struct text){ s, (size_t)(p - s) };
	ret_tid->s = q;
	while (q < end && is_digit(*q))
		q++;
	ret_tid->n = (size_t)(q - ret_tid->s);
	return q < end && is_space(*q);
}

/* Behind a name of one letter, accepts only "pid [cpu] time:" or "pid time:", which can be nothing
 * else. */
static bool ids_and_time_at(const char *s, const char *end, struct text *ret_pid,
			    struct text *ret_tid)
{
	if (!ids_at(s, end, ret_pid, ret_tid))
		return false;
	s = ret_tid->s + ret_tid->n;
	while (s < end && is_space(*s))
		s++;
	if (s < end && *s == '[') {
		while (s < end && *s != ']')
			s++;
		s += s < end;
		while (s < end && is_space(*s))
			s++;
	}
	if (s == end || !is_digit(*s))
		return false;
	while (s < end && (is_digit(*s) || *s == '.'))
		s++;
	return s < end && *s == ':';
}

/* Reads "comm  pid[/tid] ": the shortest name of two letters or more with numbers behind it. */
static bool split_header(const char *s, const char *end, struct text *ret_comm,
			 struct text *ret_pid, struct text *ret_tid)
{
	for (const char *p = s + 1; p < end; p++) {
		const char *q = p;

		if (!is_space(*p))
			continue;
		while (q < end && is_space(*q))
			q++;
		if (p == s + 1) {
			if (!ids_and_time_at(q, end, ret_pid, ret_tid))
				continue;
		} else if (!ids_at(q, end, ret_pid, ret_tid)) {
			p = q - 1;
			continue;
		}
		*ret_comm = (struct text){ s, (size_t)(p - s) };
		return true;
	}
	return false;
}

/* Reads ": [period] event:" at the end of a header. */
static bool split_event(const char *s, const char *end, struct text *ret_event,
			struct text *ret_period)
{
	struct text event, period;
	const char *p, *e;

	while (end > s && is_space(end[-1]))
		end--;
	if (end - s < 2 || end[-1] != ':')
		return false;
	e = --end;
	while (e > s && !is_space(e[-1]))
		e--;
	if (e == end || e == s)
		return false;
	event = (struct text){ e, (size_t)(end - e) };
	while (e > s && is_space(e[-1]))
		e--;
	for (p = e; p > s && is_digit(p[-1]);)
		p--;
	period = (struct text){ p, (size_t)(e - p) };
	while (p > s && is_space(p[-1]))
		p--;
	if (p == s || p[-1] != ':')
		return false;
	*ret_event = event;
	*ret_period = period;
	return true;
}

static bool header_line(struct stackin *in, const char *s, const char *end)
{
	struct perf *p = in->state;
	struct text comm, pid, tid, event, period = { s, 0 };

	if (s == end || is_space(*s) || !split_header(s, end, &comm, &pid, &tid))
		return false;
	if (split_event(s, end, &event, &period)) {
		const char *wanted = in->options.event ? in->options.event : in->event;

		if (!wanted) {
			in->event = xstrndup(event.s, event.n);
		} else if (strlen(wanted) != event.n || memcmp(wanted, event.s, event.n)) {
			in->filtered++;
			return true;
		}
	}
	if (!number_of(period.s, period.n, &p->period) || (period.n == 1 && !p->period))
		p->period = 1;
	perf_comm(in, &p->names, comm, pid, tid);
	p->in_sample = true;
	return true;
}

static void end_of_stack(struct stackin *in)
{
	struct perf *p = in->state;

	if (!p->in_sample)
		return;
	for (uint32_t i = p->names.comm.n; i; i--)
		vec_push(&p->stack, p->names.comm.v[i - 1]);
	stackin_count(in, p->stack.v, p->stack.n, p->period);
	p->stack.n = 0;
	p->in_sample = false;
}

static void perf_lines(struct stackin *in, const char *text, size_t len)
{
	const char *end = text + len, *s;
	size_t n;

	while ((s = stackin_line(&text, end, &n))) {
		in->lines++;
		if (!n)
			end_of_stack(in);
		else if (*s != '#' && !header_line(in, s, s + n) && !frame_line(in, s, s + n))
			stackin_skip(in);
	}
}

static uint32_t perf_recognise(const char *text, size_t len)
{
	const char *end = text + len, *s;
	uint32_t n = 0;
	size_t l;

	while ((s = stackin_line(&text, end, &l))) {
		const char *open, *close, *p = s;
		struct text comm, pid, tid, event, period;

		if (l && split_header(s, s + l, &comm, &pid, &tid) &&
		    split_event(s, s + l, &event, &period)) {
			n++;
			continue;
		}
		while (p < s + l && is_space(*p))
			p++;
		if (p == s + l || !is_hex(*p))
			continue;
		while (p < s + l && is_hex(*p))
			p++;
		n += p < s + l && *p == ' ' && split_module(p, s + l, &open, &close) &&
		     close == s + l - 1;
	}
	return n;
}

static void perf_end(struct stackin *in)
{
	end_of_stack(in);
}

static void perf_fini(struct stackin *in)
{
	struct perf *p = in->state;

	free(p->slots);
	vec_fini(&p->many);
	vec_fini(&p->stack);
	perf_names_fini(&p->names);
	arena_fini(&p->text);
}

const struct stackin_reader stackin_perf = {
	.state_size = sizeof(struct perf),
	.recognise = perf_recognise,
	.lines = perf_lines,
	.end = perf_end,
	.fini = perf_fini,
};
