/* Matches texts against glob patterns. */
#include "base/glob.h"

#include <stddef.h>

/* Matches c against the class after '['. Leaves *pp behind the ']'. A class that does not end
 * matches nothing and leaves *pp NULL. A ']' or '-' in first place means itself. */
static bool match_class(const char **pp, unsigned char c)
{
	const char *p = *pp;
	bool negate = false, hit = false, first = true;
	unsigned char lo, hi;

	if (*p == '!') {
		negate = true;
		p++;
	}
	for (; *p && (first || *p != ']'); first = false) {
		if (*p == '\\' && p[1])
			p++;
		lo = hi = (unsigned char)*p++;
		if (*p == '-' && p[1] && p[1] != ']') {
			p++;
			if (*p == '\\' && p[1])
				p++;
			hi = (unsigned char)*p++;
		}
		if (lo <= c && c <= hi)
			hit = true;
	}
	*pp = *p ? p + 1 : NULL;
	return *p && hit != negate;
}

/* Returns whether the element at *pp, which matches one character, matches c. Moves *pp behind the
 * element, or sets it to NULL when the pattern is malformed. */
static bool match_one(const char **pp, unsigned char c)
{
	const char *p = *pp;

	switch (*p) {
	case '?': *pp = p + 1; return true;
	case '[': *pp = p + 1; return match_class(pp, c);
	case '\\':
		if (p[1])
			p++;
		break;
	}
	*pp = p + 1;
	return (unsigned char)*p == c;
}

/* Backing up to the last star is enough, because the last star can try everything that an earlier
 * star could. */
bool glob_match(const char *pattern, const char *text)
{
	const char *p = pattern, *s = text, *next;
	const char *star = NULL, *star_text = NULL;

	if (!*p)
		return true;
	for (;;) {
		if (*p == '*') {
			star = ++p;
			star_text = s;
			continue;
		}
		if (!*s && !*p)
			return true;
		if (*s && *p) {
			next = p;
			if (match_one(&next, (unsigned char)*s)) {
				p = next;
				s++;
				continue;
			}
			if (!next)
				return false;
		}
		if (!star || !*star_text)
			return false;
		s = ++star_text;
		p = star;
	}
}

bool glob_is_pattern(const char *s)
{
	for (; *s; s++) {
		if (*s == '*' || *s == '?' || *s == '[')
			return true;
		if (*s == '\\' && s[1])
			s++;
	}
	return false;
}
