/* Strips offsets and arguments from names of functions, as tracers print them. */
#define _GNU_SOURCE
#include "input/stackin/stackin_reader.h"

#include "base/characters.h"

size_t tidy_offset(const char *s, size_t n, bool decimal)
{
	size_t i = n;

	while (i && is_hex(s[i - 1]))
		i--;
	if (i < n && i > 2 && s[i - 1] == 'x' && s[i - 2] == '0' && s[i - 3] == '+')
		return i - 3;
	if (!decimal)
		return n;
	for (i = n; i && is_digit(s[i - 1]);)
		i--;
	return i < n && i > 1 && s[i - 1] == '+' ? i - 1 : n;
}

/* net/http.(*Client).Do: these parentheses are a part of the name. */
static bool is_go_method(const char *s, size_t n)
{
	const char *open = memmem(s, n, ".(", 2);

	return open && memmem(open + 2, n - (size_t)(open + 2 - s), ").", 2);
}

size_t tidy_function(const char *s, size_t n, char *ret)
{
	static const char anonymous[] = "(anonymous namespace)";
	const size_t alen = sizeof(anonymous) - 1;
	size_t out = 0;

	if (memchr(s, '(', n) && !is_go_method(s, n))
		for (size_t i = 0; i < n; i++)
			if (s[i] == '(' && (n - i < alen || memcmp(s + i, anonymous, alen))) {
				n = i;
				break;
			}
	for (size_t i = 0; i < n; i++)
		if (s[i] != '"' && s[i] != '\'')
			ret[out++] = s[i] == ';' ? ':' : s[i];
	return out;
}

bool number_of(const char *s, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if (!n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(s[i]))
			return false;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
			v = UINT64_MAX;
	}
	*ret = v;
	return true;
}

void frames_push(struct stackin *in, const char *s, size_t n, bool decimal_offset)
{
	struct stackin_frames *f = &in->frames;

	n = tidy_offset(s, n, decimal_offset);
	f->scratch.n = 0;
	vec_reserve(&f->scratch, n + 1);
	n = tidy_function(s, n, f->scratch.v);
	characters_show(f->scratch.v, n);
	vec_push(&f->ids, n ? stacktree_marked(in->tree, f->scratch.v, n)
			    : stacktree_marked(in->tree, "-", 1));
}

void frames_push_base(struct stackin *in, const char *s, size_t n)
{
	struct stackin_frames *f = &in->frames;

	f->scratch.n = 0;
	vec_reserve(&f->scratch, n + 1);
	for (size_t i = 0; i < n; i++)
		f->scratch.v[i] = s[i] == ';' ? ':' : s[i];
	characters_show(f->scratch.v, n);
	vec_push(&f->base, stacktree_marked(in->tree, f->scratch.v, n));
}

void frames_add(struct stackin *in, uint64_t count)
{
	struct stackin_frames *f = &in->frames;

	for (uint32_t i = f->base.n; i; i--)
		vec_push(&f->ids, f->base.v[i - 1]);
	if (f->ids.n)
		stackin_count(in, f->ids.v, f->ids.n, count);
	frames_drop(in);
}

void frames_drop(struct stackin *in)
{
	in->frames.ids.n = in->frames.base.n = 0;
}
