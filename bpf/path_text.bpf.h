/* SPDX-License-Identifier: GPL-2.0-only */
/* basename, dirname, cleanpath: path names as text. */

/* The last component of a path, [start, end), and the end of the component before. */
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
	char *dst; /* holds the path; the write position never overtakes the read position */
	u64 size, out;
	u64 root, keep; /* root: 1 for "/..."; keep: length of the fixed beginning */
	u64 state;      /* the component so far: 0 empty, 1 ".", 2 "..", 3 a name */
};

/* Moves `out` back to the last slash before it, or to 0. */
CALLBACK back_up(u32 index, struct clean *c)
{
	u64 out = c->out - 1;

	OPAQUE(out);
	if (out >= c->size) /* out was 0 */
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

/* Removes "..", which ends at `out`, and the component before it with its slash. */
INLINE void clean_parent(struct clean *c)
{
	u64 out;

	c->out -= 2;
	if (c->out <= c->keep)
		return;
	c->out--;
	bpf_loop((u32)c->size, back_up, c, 0);
	out = c->out;
	OPAQUE(out);
	if (out < c->size && c->dst[out] == '/')
		c->out = out + 1;
}

CALLBACK clean_char(u32 index, struct clean *c)
{
	u64 i = index, state = c->state;
	char ch;

	if (i >= c->size)
		return 1;
	ch = c->dst[i];
	if (!i && ch == '/') {
		c->root = c->keep = 1;
		clean_put(c, '/');
		return 0;
	}
	if (ch && ch != '/') {
		c->state = ch == '.' && state < 2 ? state + 1 : 3;
		clean_put(c, ch);
		return 0;
	}
	c->state = 0;
	if (state == 1) {
		c->out--;
	} else if (state == 2 && (c->root || c->out - 2 > c->keep)) {
		clean_parent(c);
	} else if (state) {
		clean_put(c, '/');
		if (state == 2)
			c->keep = c->out;
	}
	return !ch;
}

/* Turns "//" and "/./" into "/", and "/x/../" into "/"; removes a slash at the end. Reads no file
 * system. */
ROUTINE long d_cleanpath(char *dst, u64 size, u64 src)
{
	struct clean c = { .dst = dst,
			   .size = size,
			   .out = hidden(0),
			   .root = hidden(0),
			   .keep = hidden(0),
			   .state = hidden(0) };
	char first;

	if (bpf_probe_read_kernel_str(dst, size, KERNEL(src)) < 0) {
		dst[0] = 0;
		RESULT(E_FAULT);
	}
	first = dst[0];
	bpf_loop((u32)size, clean_char, &c, 0);
	if (c.out > c.root)
		c.out--;
	else if (!c.out && first)
		clean_put(&c, '.');
	put_char(dst, size, c.out, 0);
	dst[size - 1] = 0;
	RESULT(0);
}
