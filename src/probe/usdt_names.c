/* The function that a probe of an interpreter or a JVM fires in, and its file or class: D texts of
 * the probe's arguments, which probefunc and probemod stand for; and the condition by which a
 * description selects them:
 *
 *	python123:app.py:Order*:function-entry
 *	java123:com.shop.Order:save:entry
 */
#include <string.h>

#include "base/glob.h"
#include "probe/usdt.h"

static const struct {
	const char *provider, *name;
	struct usdt_names names;
} all[] = {
#define PYTHON \
	.mod = "basename(copyinstr(arg0))", .func = "copyinstr(arg1)", .mod_known = "arg0", \
	.func_known = "arg1", .texts = "arg0, 0, arg1, 0"
#define RUBY .mod = "copyinstr(arg0)", .func = "copyinstr(arg1)"
#define JAVA(name) \
	.mod = "copyinstr(arg1, arg2)", .func = "copyinstr(arg3, arg4)", .mod_at = "arg1", \
	.mod_length = "arg2", .func_at = "arg3", .func_length = "arg4", .java = (name), \
	.slashes = true, .texts = "arg1, arg2, arg3, arg4"
	{ "python", "function__entry", { PYTHON } },
	{ "python", "function__return", { PYTHON } },
	{ "python", "line", { PYTHON } },
	{ "ruby", "method__entry", { RUBY } },
	{ "ruby", "method__return", { RUBY } },
	{ "hotspot", "method__entry", { JAVA("entry") } },
	{ "hotspot", "method__return", { JAVA("return") } },
};

const struct usdt_names *usdt_names(const struct object_usdt *u)
{
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(u->provider, all[i].provider) && !strcmp(u->name, all[i].name))
			return &all[i].names;
	return NULL;
}

static bool is_ascii(const char *s)
{
	while (*s && !(*s & 0x80))
		s++;
	return !*s;
}

/* A text of the process: see struct usdt_names. */
struct source {
	const char *text, *at, *length, *known;
	bool slashes;
};

/* Returns the condition under which a text of the process matches a pattern, "": always. NULL: D
 * has no such comparison. */
static const char *condition(struct arena *a, const struct source *s, const char *pattern)
{
	const char *text = s->text;
	bool before = pattern[0] == '*', behind;
	char *word = arena_strdup(a, pattern + before);
	size_t n = strlen(word);

	behind = n && word[n - 1] == '*';
	if (behind)
		word[--n] = 0;
	if (!n)
		return before || behind || !*pattern ? "" : NULL;
	if (strpbrk(word, "*?[\\\"\n")) /* it becomes part of a string of D */
		return NULL;
	for (char *p = word; s->slashes && *p; p++)
		if (*p == '.')
			*p = '/';
	if (before && behind)
		return arena_printf(a, "strstr(%s, \"%s\") != NULL", text, word);
	/* Copies nothing, unless the length fits. A constant length counts the NUL. */
	if (s->length)
		return behind   ? arena_printf(a, "%s >= %zu && copyinstr(%s, %zu) == \"%s\"",
					       s->length, n, s->at, n + 1, word)
		       : before ? arena_printf(
					  a, "%s >= %zu && copyinstr(%s + %s - %zu, %zu) == \"%s\"",
					  s->length, n, s->at, s->length, n, n + 1, word)
				: arena_printf(a, "%s == %zu && %s == \"%s\"", s->length, n, text,
					       word);
	if (behind)
		return arena_printf(a, "substr(%s, 0, %zu) == \"%s\"", text, n, word);
	if (before)
		return arena_printf(a,
				    "strlen(%s) >= %zu && substr(%s, strlen(%s) - %zu) == \"%s\"",
				    text, n, text, text, n, word);
	return s->known && is_ascii(word)
		       ? arena_printf(a, "%s && %s == \"%s\"", s->known, text, word)
		       : arena_printf(a, "%s == \"%s\"", text, word);
}

/* Returns what the lengths of texts must be, so that the pattern may match; NULL: anything. */
static const char *lengths(struct arena *a, const struct source *s, const char *pattern)
{
	bool before = pattern[0] == '*', behind;
	size_t n = strlen(pattern) - before;

	behind = n && pattern[before + n - 1] == '*';
	n -= behind;
	return s->length && n
		       ? arena_printf(a, "%s %s %zu", s->length, before || behind ? ">=" : "==", n)
		       : NULL;
}

static const char *both(struct arena *a, const char *one, const char *two)
{
	return one && two ? arena_printf(a, "%s && %s", one, two) : one ?: two;
}

const char *usdt_names_filter(struct arena *a, const struct usdt_names *names, const char *mod,
			      const char *func)
{
	const struct source of[] = {
		{ names->mod, names->mod_at, names->mod_length, names->mod_known, names->slashes },
		{ names->func, names->func_at, names->func_length, names->func_known, false },
	};
	const char *of_mod = condition(a, &of[0], mod), *of_func = condition(a, &of[1], func);

	if (!of_func || !of_mod)
		return NULL;
	if (!*of_mod && !*of_func)
		return "";
	/* The lengths alone reject most functions of Java. */
	return both(a, both(a, lengths(a, &of[0], mod), lengths(a, &of[1], func)),
		    arena_printf(a, "__by_id(%s%s%s)",
				 both(a, *of_mod ? of_mod : NULL, *of_func ? of_func : NULL),
				 names->texts ? ", " : "", names->texts ?: ""));
}
