/* Characters of untrusted UTF-8 text. */
#ifndef DESCRY_BASE_UTF8_H
#define DESCRY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of the character at s (n >= 1 bytes are there), or 0 when it is none: overlong
 * forms, surrogates and numbers above U+10FFFF are none (RFC 3629). Sets *ret_c to the character,
 * or leaves it untouched when there is none. */
uint32_t utf8_decode(const void *s, size_t n, uint32_t *ret_c);
/* Writes the character's bytes to `to`, and returns how many; 0: it is none. */
uint32_t utf8_encode(uint32_t c, char to[4]);
/* Returns true when the n bytes begin a character whose rest is missing. */
bool utf8_is_cut(const void *s, size_t n);
/* Returns the length of a text that is cut to at most n bytes: it ends with a whole character. The
 * text has more than n bytes. */
uint32_t utf8_cut(const char *s, uint32_t n);
/* Returns true for characters that act instead of being seen: C0 and C1 controls, DEL, characters
 * that turn the direction of writing (Unicode's Bidi_Control), line and paragraph separators, tags,
 * the byte order mark, non-characters. */
bool utf8_is_unseen(uint32_t c);

#endif
