/* Reads events of waiting and waking that a D program prints (examples/chain.d). Each event is a
 * line and the stacks behind it.
 *
 *	wakeup TID COMM             the waker's command, its stacks; TID: the woken thread
 *	              vmlinux`try_to_wake_up+0x10
 *
 *	              libc.so.6`write+0x10
 *
 *	offcpu TID MICROSECONDS COMM    the thread that waited, its stacks
 *
 * A wait becomes one stack: its command, its frames, "--", and above it the frames of its last
 * waker (FRAME_WAKER), upside down: from the waking function to the waker's command, as chain
 * graphs are drawn. A wait without a waker (a preemption, a timer that was not seen) has no upper
 * half.
 */
#define _GNU_SOURCE
#include "base/characters.h"
#include "base/hash.h"
#include "input/stackin/stackin_reader.h"

enum kind { KIND_NONE, KIND_WAKEUP, KIND_OFFCPU };

struct waker {
	uint32_t *ids; /* from the waking function to the command */
	uint32_t n;
};

struct chain {
	enum kind kind;
	uint64_t tid, us;
	VEC(char) comm;
	VEC(uint32_t) stack; /* leaf first */
	VEC(struct waker) wakers;
	struct hash index; /* tid -> index in wakers + 1 */
	VEC(char) scratch;
};

/* Reads the number at *s, and the blanks behind it. */
static bool chain_take_number(const char **s, const char *end, uint64_t *ret)
{
	const char *p = *s;

	while (p < end && is_digit(*p))
		p++;
	if (!number_of(*s, (size_t)(p - *s), ret) || p == end || *p != ' ')
		return false;
	while (p < end && *p == ' ')
		p++;
	*s = p;
	return true;
}

static enum kind head_line(const char *s, size_t n, uint64_t *ret_tid, uint64_t *ret_us,
			   struct text *ret_comm)
{
	static const char wakeup[] = "wakeup ", offcpu[] = "offcpu ";
	const char *end = s + n;
	enum kind kind = KIND_NONE;

	if (n > 7 && !memcmp(s, wakeup, 7))
		kind = KIND_WAKEUP;
	else if (n > 7 && !memcmp(s, offcpu, 7))
		kind = KIND_OFFCPU;
	s += 7;
	if (!kind || !chain_take_number(&s, end, ret_tid))
		return KIND_NONE;
	if (kind == KIND_OFFCPU && !chain_take_number(&s, end, ret_us))
		return KIND_NONE;
	while (end > s && is_space(end[-1]))
		end--;
	*ret_comm = (struct text){ s, (size_t)(end - s) };
	return s < end ? kind : KIND_NONE;
}

static uint32_t waker_frame(struct stackin *in, struct chain *c, const char *s, size_t n)
{
	c->scratch.n = 0;
	vec_reserve(&c->scratch, n);
	for (size_t i = 0; i < n; i++)
		c->scratch.v[i] = s[i] == ';' ? ':' : s[i];
	characters_show(c->scratch.v, n);
	return stacktree_frame(in->tree, FRAME_WAKER, c->scratch.v, n);
}

static void end_wakeup(struct stackin *in, struct chain *c)
{
	uint64_t *index = hash_put(&c->index, &c->tid, sizeof(c->tid), NULL);
	struct waker *w;

	if (!*index) {
		(void)vec_add(&c->wakers);
		*index = c->wakers.n;
	}
	w = &c->wakers.v[*index - 1];
	w->n = in->frames.ids.n + 1;
	w->ids = xrealloc(w->ids, w->n * sizeof(*w->ids));
	for (uint32_t i = 0; i < in->frames.ids.n; i++) {
		struct stacktree_frame f = in->tree->frames.v[in->frames.ids.v[i]];

		w->ids[i] = waker_frame(in, c, f.text, f.len);
	}
	w->ids[in->frames.ids.n] = waker_frame(in, c, c->comm.v, c->comm.n);
}

static void end_offcpu(struct stackin *in, struct chain *c)
{
	uint64_t *index = hash_get(&c->index, &c->tid, sizeof(c->tid));

	c->stack.n = 0;
	if (index && c->wakers.v[*index - 1].n) {
		struct waker *w = &c->wakers.v[*index - 1];

		for (uint32_t i = w->n; i; i--)
			vec_push(&c->stack, w->ids[i - 1]);
		vec_push(&c->stack, stacktree_frame(in->tree, FRAME_NATIVE, "--", 2));
		w->n = 0; /* one wake-up ends one wait */
	}
	for (uint32_t i = 0; i < in->frames.ids.n; i++)
		vec_push(&c->stack, in->frames.ids.v[i]);
	c->scratch.n = 0;
	vec_reserve(&c->scratch, c->comm.n);
	for (uint32_t i = 0; i < c->comm.n; i++)
		c->scratch.v[i] = c->comm.v[i] == ';' ? ':' : c->comm.v[i];
	characters_show(c->scratch.v, c->comm.n);
	vec_push(&c->stack, stacktree_frame(in->tree, FRAME_NATIVE, c->scratch.v, c->comm.n));
	stackin_count(in, c->stack.v, c->stack.n, c->us);
}

static void end_event(struct stackin *in)
{
	struct chain *c = in->state;

	if (c->kind == KIND_WAKEUP)
		end_wakeup(in, c);
	else if (c->kind == KIND_OFFCPU)
		end_offcpu(in, c);
	c->kind = KIND_NONE;
	frames_drop(in);
}

static void chain_lines(struct stackin *in, const char *text, size_t len)
{
	struct chain *c = in->state;
	const char *end = text + len, *s;
	size_t n;

	while ((s = stackin_line(&text, end, &n))) {
		struct text comm;
		enum kind kind;
		uint64_t tid, us = 0;

		in->lines++;
		kind = head_line(s, n, &tid, &us, &comm);
		if (kind) {
			end_event(in);
			c->kind = kind;
			c->tid = tid;
			c->us = us;
			c->comm.n = 0;
			vec_reserve(&c->comm, comm.n);
			memcpy(c->comm.v, comm.s, comm.n);
			c->comm.n = (uint32_t)comm.n;
			continue;
		}
		while (n && is_space(*s)) {
			s++;
			n--;
		}
		while (n && is_space(s[n - 1]))
			n--;
		if (n && c->kind)
			frames_push(in, s, n, false);
		else if (n)
			stackin_skip(in);
	}
}

static uint32_t chain_recognise(const char *text, size_t len)
{
	const char *end = text + len, *s;
	uint32_t n = 0;
	size_t l;

	while ((s = stackin_line(&text, end, &l))) {
		struct text comm;
		uint64_t tid, us;

		n += l && (*s == 'w' || *s == 'o') && head_line(s, l, &tid, &us, &comm);
	}
	/* surer than the frames below, which other formats have too */
	return n > UINT32_MAX / 1024 ? UINT32_MAX : n * 1024;
}

static void chain_fini(struct stackin *in)
{
	struct chain *c = in->state;

	for (uint32_t i = 0; i < c->wakers.n; i++)
		free(c->wakers.v[i].ids);
	vec_fini(&c->wakers);
	vec_fini(&c->comm);
	vec_fini(&c->stack);
	vec_fini(&c->scratch);
	hash_fini(&c->index);
}

const struct stackin_reader stackin_chain = {
	.state_size = sizeof(struct chain),
	.recognise = chain_recognise,
	.lines = chain_lines,
	.end = end_event,
	.fini = chain_fini,
};
