/* Characters of runtimes' strings, written as UTF-8. */
#ifndef DESCRY_BASE_CHARACTERS_H
#define DESCRY_BASE_CHARACTERS_H

#include "base/out.h"

/* Writes n characters of `width` bytes each, little-endian: Latin-1, UTF-16 or UTF-32. A NUL, half
 * of a pair and what is no character become U+FFFD. */
void out_characters(struct out *o, const void *p, size_t n, unsigned width);

/* Returns true for a control character of ASCII. In a name that a stranger has chosen, a line feed
 * would make a line of its own, and an escape acts on a terminal. */
static inline bool character_is_control(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f;
}
/* Replaces such characters by '?'. */
void characters_show(char *s, size_t n);

#endif
