/* Characters of UTF-8 text that may come from anywhere. */
#ifndef DESCRY_BASE_UTF8_H
#define DESCRY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at s (n >= 1 bytes are there), 0 when it is none: overlong forms,
 * surrogates and what lies past U+10FFFF are none (RFC 3629). *ret_c is the character, untouched
 * when there is none. */
uint32_t utf8_decode(const void *s, size_t n, uint32_t *ret_c);
/* Are the n bytes the beginning of a character whose rest is missing? */
bool utf8_is_cut(const void *s, size_t n);
/* Characters that act instead of being seen: C0 and C1 controls, DEL, those that turn the direction
 * of writing (Unicode's Bidi_Control), line and paragraph separators, tags, the byte order mark,
 * non-characters. */
bool utf8_is_unseen(uint32_t c);

#endif
