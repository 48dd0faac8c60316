/* Reads the output of SystemTap's print_stack() and print_backtrace(), with a count behind each
 * stack.
 *
 *	 0xffffffff8103ce3b : native_safe_halt+0xb/0x10 [kernel]
 *	 0xffffffff8101c6a3 : default_idle+0x53/0x1d0 [kernel]
 *		2404
 */
#define _GNU_SOURCE
#include "input/stackin/stackin_reader.h"

/* The name of " 0x... : name+0x53/0x1d0 [module]". */
static bool frame_of(const char *s, size_t n, const char **ret, size_t *ret_n)
{
	const char *end = s + n, *colon, *p;

	while (s < end && is_space(*s))
		s++;
	while (end > s && is_space(end[-1]))
		end--;
	colon = memmem(s, (size_t)(end - s), " : ", 3);
	if (end - s < 4 || s[0] != '0' || s[1] != 'x' || !colon)
		return false;
	for (p = s + 2; p < colon; p++)
		if (!is_hex(*p))
			return false;
	s = colon + 3;
	p = end > s && end[-1] == ']' ? memrchr(s, '[', (size_t)(end - s)) : NULL;
	if (p && p > s && p[-1] == ' ')
		end = p - 1;
	p = memrchr(s, '+', (size_t)(end - s));
	if (p && end - p > 2 && p[1] == '0' && p[2] == 'x')
		end = p;
	*ret = s;
	*ret_n = (size_t)(end - s);
	return true;
}

static void systemtap_lines(struct stackin *in, const char *text, size_t len)
{
	const char *end = text + len, *s, *name;
	uint64_t count;
	size_t n, name_len;

	while ((s = stackin_line(&text, end, &n))) {
		in->lines++;
		while (n && is_space(*s)) {
			s++;
			n--;
		}
		while (n && is_space(s[n - 1]))
			n--;
		if (!n)
			continue;
		if (number_of(s, n, &count))
			frames_add(in, count);
		else if (frame_of(s, n, &name, &name_len))
			frames_push(in, name, name_len, false);
		else if (in->frames.ids.n)
			stackin_skip(in);
		else
			frames_push_base(in, s, n);
	}
}

static uint32_t systemtap_recognise(const char *text, size_t len)
{
	const char *end = text + len, *s, *name;
	uint32_t found = 0;
	size_t n, name_len;

	while ((s = stackin_line(&text, end, &n)))
		found += frame_of(s, n, &name, &name_len);
	return found;
}

const struct stackin_reader stackin_systemtap = {
	.recognise = systemtap_recognise,
	.lines = systemtap_lines,
};
