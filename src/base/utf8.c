/* Decodes UTF-8 and classifies characters. */
#include "base/utf8.h"

static uint32_t length_by_lead(uint8_t lead)
{
	return lead < 0x80   ? 1
	       : lead < 0xc2 ? 0
	       : lead < 0xe0 ? 2
	       : lead < 0xf0 ? 3
	       : lead < 0xf5 ? 4
			     : 0;
}

uint32_t utf8_decode(const void *p, size_t n, uint32_t *ret_c)
{
	const uint8_t *s = p;
	uint32_t len = length_by_lead(s[0]), c = len == 1 ? s[0] : s[0] & (0x7fu >> len);

	if (!len || len > n)
		return 0;
	for (uint32_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((len == 3 && c < 0x800) || (len == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret_c = c;
	return len;
}

uint32_t utf8_encode(uint32_t c, char to[4])
{
	const uint32_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	if (len == 1) {
		to[0] = (char)c;
		return 1;
	}
	for (uint32_t i = len; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(0xf00u >> len | c);
	return len;
}

bool utf8_is_cut(const void *p, size_t n)
{
	const uint8_t *s = p;

	if (!n || n >= length_by_lead(s[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return false;
	return true;
}

uint32_t utf8_cut(const char *s, uint32_t n)
{
	for (int i = 0; i < 3 && n && ((uint8_t)s[n] & 0xc0) == 0x80; i++)
		n--;
	return n;
}

bool utf8_is_unseen(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe007f) || (c & 0xfffe) == 0xfffe;
}
