/* Folded text: a stack on each line, "root;...;leaf COUNT". Two counts, as difffolded.pl writes
 * them, are before and after.
 */
#include <math.h>

#include "input/stackin/stackin_reader.h"

struct folded {
	bool known, two; /* the lines have two counts, as the first line has */
};

/* Reads "  COUNT" at the end of the line. Returns its value, and the length without it and one
 * space. */
static bool take_count(const char *s, size_t *len, uint64_t *ret, double factor)
{
	size_t i = *len, end = i;
	double v;

	while (i && is_digit(s[i - 1]))
		i--;
	if (i == end && (!i || s[i - 1] != '.'))
		return false;
	if (i && s[i - 1] == '.') {
		size_t dot = i - 1, j = dot;

		while (j && is_digit(s[j - 1]))
			j--;
		if (j < dot) {
			char buf[64];

			if (!j || !is_space(s[j - 1]) || end - j >= sizeof(buf))
				return false;
			memcpy(buf, s + j, end - j);
			buf[end - j] = '\0';
			v = round(strtod(buf, NULL) * (factor == 0 ? 1 : factor));
			*ret = v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
			*len = j - 1;
			return true;
		}
	}
	if (!i || !is_space(s[i - 1]) || !number_of(s + i, end - i, ret))
		return false;
	if (factor != 0 && factor != 1) {
		v = round((double)*ret * factor);
		*ret = v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
	}
	*len = i - 1;
	return true;
}

static uint32_t folded_recognise(const char *text, size_t len)
{
	const char *end = text + len, *line;
	uint32_t n = 0;
	uint64_t count;
	size_t l;

	while ((line = stackin_line(&text, end, &l)))
		n += l && !is_space(*line) && take_count(line, &l, &count, 1) &&
		     memchr(line, ';', l);
	return n;
}

static void folded_lines(struct stackin *in, const char *text, size_t len)
{
	struct folded *f = in->state;
	const char *end = text + len, *line;
	size_t l;

	while ((line = stackin_line(&text, end, &l))) {
		uint64_t count, before;
		size_t stack;

		in->lines++;
		if (l && line[l - 1] == '\r')
			l--;
		if (!take_count(line, &l, &count, in->options.factor)) {
			if (l)
				stackin_skip(in);
			continue;
		}
		in->stacks++;
		stack = l;
		if (!f->known || f->two)
			f->two = take_count(line, &stack, &before, in->options.factor) &&
				 (f->two || !f->known);
		f->known = true;
		if (f->two)
			stacktree_add_change(in->tree, line, stack, before, count);
		else
			stacktree_add_text(in->tree, line, l, count);
	}
}

const struct stackin_reader stackin_folded = {
	.state_size = sizeof(struct folded),
	.recognise = folded_recognise,
	.lines = folded_lines,
};
