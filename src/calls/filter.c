/* Filters of calls, as ltrace(1) writes them: [+-][SYMBOL][@LIBRARY]... */
#include <regex.h>
#include <string.h>

#include "base/glob.h"
#include "calls/calls.h"

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

	if (n < 3 || regcomp(r, arena_strndup(a, text + 1, n - 2), REG_EXTENDED | REG_NOSUB) != 0)
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

bool calls_filter_read(struct arena *a, struct calls_filter *f, const char *text)
{
	bool first = true;

	if (!*text)
		return false;
	while (*text) {
		struct calls_rule r = { .symbol = "", .library = "" };
		bool sign = *text == '+' || *text == '-';
		size_t n;

		r.minus = *text == '-';
		if (!sign && !first)
			return false;
		text += sign;
		/* "-free" alone takes something away from everything. */
		if (first && r.minus && !f->rules.n)
			vec_push(&f->rules, (struct calls_rule){ .symbol = "", .library = "MAIN" });
		n = pattern_length(text);
		if (n)
			r.symbol = arena_strndup(a, text, n);
		if (*text == '/') {
			r.symbol_regex = compile(a, f, text, n);
			if (!r.symbol_regex)
				return false;
		}
		text += n;
		if (*text == '@') {
			/* A library's name may have a sign: it ends a rule only before a symbol
			 * or '@', not before a digit. */
			n = text[1] == '/' ? 1 + regex_length(text + 1) : 1;
			if (n > 1) {
				r.library_regex = compile(a, f, text + 1, n - 1);
				if (!r.library_regex)
					return false;
			}
			while (text[n] && !((text[n] == '+' || text[n] == '-') &&
					    (text[n + 1] < '0' || text[n + 1] > '9')))
				n++;
			r.library = arena_strndup(a, text + 1, n - 1);
			text += n;
		}
		if (!*r.symbol && !*r.library)
			return false;
		vec_push(&f->rules, r);
		first = false;
	}
	return true;
}

static bool library_fits(const struct calls_rule *r, const char *object, const char *soname,
			 bool is_main)
{
	if (!*r->library)
		return true;
	if (!strcmp(r->library, "MAIN"))
		return is_main;
	if (r->library_regex)
		return !regexec(r->library_regex, object, 0, NULL, 0) ||
		       (soname && !regexec(r->library_regex, soname, 0, NULL, 0));
	return glob_match(r->library, object) || (soname && glob_match(r->library, soname));
}

static bool symbol_fits(const struct calls_rule *r, const char *symbol)
{
	return r->symbol_regex ? !regexec(r->symbol_regex, symbol, 0, NULL, 0)
			       : glob_match(r->symbol, symbol);
}

bool calls_filter_takes(const struct calls_filter *f, const char *symbol, const char *object,
			const char *soname, bool is_main)
{
	bool takes = false;

	for (uint32_t i = 0; i < f->rules.n; i++) {
		const struct calls_rule *r = &f->rules.v[i];

		if (symbol_fits(r, symbol) && library_fits(r, object, soname, is_main))
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
