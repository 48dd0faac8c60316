/* SPDX-License-Identifier: GPL-2.0-only */
/* basename, dirname, cleanpath: path names as text. */

/* Where the last component of a path lies: [start, end), and the end of the one before. */
struct parts {
	u64 src, size;
	u64 start, end, before;
	u64 len;
	u64 in_component, components;
	long error;
};

CALLBACK part_char(u32 index, struct parts *p)
{
	u64 i = index;
	char c = 0;

	if (i >= WIRE_STRING_MAX)
		return 1;
	if (bpf_probe_read_kernel(&c, 1, KERNEL(p->src + i))) {
		p->error = E_FAULT;
		return 1;
	}
	if (!c)
		return 1;
	p->len = i + 1;
	if (c == '/') {
		p->in_component = 0;
		return 0;
	}
	if (!p->in_component) {
		p->before = p->end;
		p->start = i;
		p->in_component = 1;
		p->components++;
	}
	p->end = i + 1;
	return 0;
}

INLINE void find_parts(struct parts *p)
{
	p->start = hidden(0);
	p->end = hidden(0);
	p->before = hidden(0);
	p->len = hidden(0);
	p->in_component = hidden(0);
	p->components = hidden(0);
	bpf_loop((u32)p->size - 1, part_char, p, 0);
}

INLINE long one_char(char *dst, char c)
{
	dst[0] = c;
	dst[1] = 0;
	return 0;
}

ROUTINE long d_basename(char *dst, u64 size, u64 src)
{
	struct parts p = { .src = src, .size = size };
	u64 start;

	dst[0] = 0;
	find_parts(&p);
	if (p.error)
		RESULT(p.error);
	if (!p.len)
		RESULT(one_char(dst, '.'));
	if (!p.components)
		RESULT(one_char(dst, '/'));
	start = p.start;
	OPAQUE(start);
	if (start >= WIRE_STRING_MAX)
		RESULT(0);
	RESULT(copy_text(dst, size, src + start, p.end - p.start));
}

ROUTINE long d_dirname(char *dst, u64 size, u64 src)
{
	struct parts p = { .src = src, .size = size };
	long error;

	dst[0] = 0;
	find_parts(&p);
	error = p.error;
	if (!error && p.len && p.components > 1)
		error = copy_text(dst, size, src, p.before);
	else if (!error)
		one_char(dst, !p.len || (p.components && !p.start) ? '.' : '/');
	RESULT(error);
}

/* --- cleanpath --- */

struct clean {
	char *dst; /* holds the path; what is written never overtakes what is read */
	u64 size, out;
	u64 state; /* characters held back: 0 none, 1 "/", 2 "/.", 3 "/.." */
};

/* Removes the last component: `out` ends on its slash. */
CALLBACK back_up(u32 index, struct clean *c)
{
	u64 out = c->out - 1;

	OPAQUE(out);
	if (out >= c->size) /* it was 0 */
		return 1;
	c->out = out;
	return c->dst[out] == '/';
}

INLINE void clean_put(struct clean *c, char ch)
{
	u64 out = c->out;

	OPAQUE(out);
	if (out < c->size)
		c->dst[out] = ch;
	c->out = out + 1;
}

CALLBACK clean_char(u32 index, struct clean *c)
{
	u64 i = index, state = c->state;
	char ch;

	if (i >= c->size)
		return 1;
	ch = c->dst[i];
	if (state == 3 && (ch == '/' || !ch)) {
		bpf_loop((u32)c->size, back_up, c, 0);
		if (!ch)
			clean_put(c, '/');
		c->state = 1;
		return !ch;
	}
	if (ch == '/' && (state == 1 || state == 2)) {
		c->state = 1;
		return 0;
	}
	if (ch == '/' && !state) {
		c->state = 1;
		return 0;
	}
	if (ch == '.' && (state == 1 || state == 2)) {
		c->state = state + 1;
		return 0;
	}
	/* An ordinary character, or the end: what was held back is part of a name. */
	if (state >= 1)
		clean_put(c, '/');
	if (state >= 2)
		clean_put(c, '.');
	if (state >= 3)
		clean_put(c, '.');
	c->state = 0;
	if (!ch)
		return 1;
	clean_put(c, ch);
	return 0;
}

/* "//" and "/./" become "/", "/x/../" becomes "/". Nothing is looked up. */
ROUTINE long d_cleanpath(char *dst, u64 size, u64 src)
{
	struct clean c = { .dst = dst, .size = size, .out = hidden(0), .state = hidden(0) };

	if (bpf_probe_read_kernel_str(dst, size, KERNEL(src)) < 0) {
		dst[0] = 0;
		RESULT(E_FAULT);
	}
	bpf_loop((u32)size, clean_char, &c, 0);
	put_char(dst, size, c.out, 0);
	dst[size - 1] = 0;
	RESULT(0);
}
