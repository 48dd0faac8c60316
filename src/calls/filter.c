/* Filters of calls, as ltrace(1) writes them: [+-][SYMBOL][@LIBRARY]... */
#include <regex.h>
#include <string.h>
#include <unistd.h>

#include "base/glob.h"
#include "calls/calls.h"
#include "probe/process.h"

/* Returns the length of a regular expression with its slashes; 0: it has no end. */
static size_t regex_length(const char *text)
{
	size_t n = 1;

	while (text[n] && text[n] != '/')
		n += text[n] == '\\' && text[n + 1] ? 2 : 1;
	return text[n] ? n + 1 : 0;
}

/* Compiles "/EXPRESSION/". Returns NULL when it is none. */
static regex_t *compile(struct arena *a, struct calls_filter *f, const char *text, size_t n)
{
	regex_t *r = arena_new(a, regex_t);

	if (n < 3 || regcomp(r, arena_strndup(a, text + 1, n - 2), REG_EXTENDED) != 0)
		return NULL;
	vec_push(&f->regexes, r);
	return r;
}

/* Returns the length of a pattern: up to a sign or '@' outside of brackets. */
static size_t pattern_length(const char *text)
{
	bool inside = false;
	size_t n = 0;

	if (*text == '/')
		return regex_length(text);
	for (; text[n] && (inside || !strchr("+-@", text[n])); n++)
		inside = text[n] == '[' || (inside && text[n] != ']');
	return n;
}

/* Does a library's pattern end at this sign? A library's name may have a sign before a digit; a
 * path has slashes behind those of its directories. */
static bool ends_library(const char *sign, bool is_path)
{
	return (sign[1] < '0' || sign[1] > '9') &&
	       (!is_path || sign[1 + strcspn(sign + 1, "/@")] != '/');
}

/* Returns the length of a library's pattern. */
static size_t library_length(const char *text)
{
	size_t n = *text == '/' ? regex_length(text) : 0;

	if (*text == '/' && !access(text, F_OK))
		return strlen(text); /* whatever signs it has */
	if (n && (!text[n] || text[n] == '+' || text[n] == '-'))
		return n;
	for (n = 0; text[n]; n++)
		if ((text[n] == '+' || text[n] == '-') && ends_library(text + n, *text == '/'))
			break;
	return n;
}

/* Returns a pattern without '^' and '$' around it, which mean what every pattern means. */
static const char *take_pattern(struct arena *a, const char *text, size_t n)
{
	const bool begins = n && text[0] == '^', ends = n > begins && text[n - 1] == '$';

	return arena_strndup(a, text + begins, n - begins - ends);
}

/* Sets a rule's library: "/EXPRESSION/", a path, or a pattern of names. */
static bool set_library(struct arena *a, struct calls_filter *f, struct calls_rule *r,
			const char *text, size_t n)
{
	r->library = take_pattern(a, text, n);
	r->main = n == 4 && !memcmp(text, "MAIN", n);
	if (n < 2 || text[0] != '/' || text[n - 1] != '/')
		return true;
	r->library_regex = compile(a, f, text, n);
	return r->library_regex;
}

/* Reads "/SYMBOL@LIBRARY/", two expressions. */
static bool read_pair(struct arena *a, struct calls_filter *f, struct calls_rule *r,
		      const char *text, size_t n, const char *at)
{
	const char *symbol = arena_printf(a, "%.*s/", (int)(at - text), text);
	const char *library = arena_printf(a, "/%.*s", (int)(text + n - at - 1), at + 1);

	if (strlen(symbol) > 2)
		r->symbol_regex = compile(a, f, r->symbol = symbol, strlen(symbol));
	return (strlen(symbol) == 2 || r->symbol_regex) &&
	       (strlen(library) == 2 || set_library(a, f, r, library, strlen(library)));
}

bool calls_filter_read(struct arena *a, struct calls_filter *f, const char *text)
{
	bool first = true;

	if (!*text)
		return false;
	while (*text) {
		struct calls_rule r = { .symbol = "", .library = "" };
		/* Older versions of ltrace had '!' for "all but". */
		bool sign = *text == '+' || *text == '-' || (first && *text == '!');
		const char *at;
		size_t n;

		r.minus = *text == '-' || *text == '!';
		if (!sign && !first)
			return false;
		text += sign;
		/* "-free" alone takes something away from everything. */
		if (first && r.minus && !f->rules.n)
			vec_push(&f->rules, (struct calls_rule){ .symbol = "", .library = "" });
		if (!*text)
			return false;
		n = pattern_length(text);
		at = *text == '/' && text[n] != '@' ? memchr(text, '@', n) : NULL;
		if (at) {
			if (!read_pair(a, f, &r, text, n, at))
				return false;
		} else if (n) {
			r.symbol = take_pattern(a, text, n);
			if (*text == '/' && !(r.symbol_regex = compile(a, f, text, n)))
				return false;
		}
		text += n;
		if (*text == '@') {
			n = library_length(++text);
			if (!set_library(a, f, &r, text, n))
				return false;
			text += n;
		}
		vec_push(&f->rules, r);
		first = false;
	}
	return true;
}

bool calls_filter_add_library(struct arena *a, struct calls_filter *f, const char *text)
{
	struct calls_rule r = { .symbol = "" };

	if (!*text || !set_library(a, f, &r, text, strlen(text)))
		return false;
	vec_push(&f->rules, r);
	return true;
}

/* An expression must match the whole text, as a pattern must. */
static bool regex_fits(const regex_t *r, const char *text)
{
	regmatch_t m;

	return !regexec(r, text, 1, &m, 0) && !m.rm_so && m.rm_eo == (regoff_t)strlen(text);
}

static bool library_fits(const struct calls_rule *r, const struct process_object *po)
{
	const char *soname = object_soname(po->object);

	if (!*r->library)
		return true;
	if (r->main)
		return po->is_main;
	if (r->library_regex)
		return regex_fits(r->library_regex, po->name) ||
		       (soname && regex_fits(r->library_regex, soname));
	return process_object_matches(po, r->library) || glob_match(r->library, po->name) ||
	       (soname && glob_match(r->library, soname));
}

static bool symbol_fits(const struct calls_rule *r, const char *symbol)
{
	return r->symbol_regex ? regex_fits(r->symbol_regex, symbol)
			       : glob_match(r->symbol, symbol);
}

bool calls_filter_takes(const struct calls_filter *f, const char *symbol,
			const struct process_object *po)
{
	bool takes = false;

	for (uint32_t i = 0; i < f->rules.n; i++) {
		const struct calls_rule *r = &f->rules.v[i];

		if (symbol_fits(r, symbol) && library_fits(r, po))
			takes = !r->minus;
	}
	return takes;
}

bool calls_rule_is_pattern(const struct calls_rule *r)
{
	return r->symbol_regex || glob_is_pattern(r->symbol);
}

void calls_filter_fini(struct calls_filter *f)
{
	for (uint32_t i = 0; i < f->regexes.n; i++)
		regfree(f->regexes.v[i]);
	vec_fini(&f->regexes);
	vec_fini(&f->rules);
}
