/* Implements the writing of runtimes' characters as UTF-8. */
#include "base/characters.h"

#include "base/utf8.h"

static uint32_t unit_at(const uint8_t *p, unsigned width)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < width; i++)
		v |= (uint32_t)p[i] << 8 * i;
	return v;
}

void out_characters(struct out *o, const void *p, size_t n, unsigned width)
{
	const uint8_t *at = p, *end = at + n * width;

	for (; at < end; at += width) {
		uint32_t c = unit_at(at, width), low;
		char bytes[4];
		uint32_t len;

		if (width == 2 && c >= 0xd800 && c < 0xdc00 && end - at >= 4) {
			low = unit_at(at + 2, 2);
			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				at += 2;
			}
		}
		len = c ? utf8_encode(c, bytes) : 0; /* a NUL would end the text */
		if (!len)
			len = utf8_encode(0xfffd, bytes);
		out_mem(o, bytes, len);
	}
}

void characters_show(char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (character_is_control(s[i]))
			s[i] = '?';
}
