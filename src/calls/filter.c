/* Filters of calls, as ltrace(1) writes them: [+-][SYMBOL][@LIBRARY]... */
#include <string.h>

#include "base/glob.h"
#include "calls/calls.h"

/* Returns the length of a pattern: up to a sign or '@' outside of brackets. */
static size_t pattern_length(const char *text)
{
	bool inside = false;
	size_t n = 0;

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
		text += n;
		if (*text == '@') {
			/* A library's name may have a sign: it ends a rule only before a symbol
			 * or '@', not before a digit. */
			n = 1;
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
	return glob_match(r->library, object) || (soname && glob_match(r->library, soname));
}

bool calls_filter_takes(const struct calls_filter *f, const char *symbol, const char *object,
			const char *soname, bool is_main)
{
	bool takes = false;

	for (uint32_t i = 0; i < f->rules.n; i++) {
		const struct calls_rule *r = &f->rules.v[i];

		if (glob_match(r->symbol, symbol) && library_fits(r, object, soname, is_main))
			takes = !r->minus;
	}
	return takes;
}
