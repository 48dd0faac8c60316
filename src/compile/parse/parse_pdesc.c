/* Parses probe descriptions: expands macros, then splits the text into four fields. */
#include "parse_private.h"

/* Replaces macros ("pid$target", "$1:::", "$$1") and joins their values with the text around them.
 * \$ is a dollar; other backslashes stay for the glob. Returns NULL, with an error, when a macro
 * has no value. */
static const char *expand(struct parse_cx *cx, const struct token *t)
{
	cleanup_free char *buf = NULL;
	size_t len = 0;
	FILE *out;
	const char *s = t->text, *result;

	if (!strchr(s, '$'))
		return s;
	out = open_memstream(&buf, &len);
	if (!out)
		return s;
	while (*s) {
		bool string = s[0] == '$' && s[1] == '$', unset = false;
		const char *start = s + 1 + string, *e = start, *v, *name;

		if (*s == '\\' && s[1]) {
			if (s[1] != '$')
				fputc('\\', out);
			fputc(s[1], out);
			s += 2;
			continue;
		}
		if (*s != '$') {
			fputc(*s++, out);
			continue;
		}
		if (is_digit(*e))
			while (is_digit(*e))
				e++;
		else
			while (is_ident_char(*e))
				e++;
		name = arena_strndup(cx->arena, start, (size_t)(e - start));
		v = e > start ? macro_text(cx, name, string, &unset) : NULL;
		if (!v) {
			if (unset) {
				diag_error(
					cx->diags, t->loc, t->end, "D_MACRO_UNDEF",
					"macro variable $target is not set: give a process with -p or -c");
			} else {
				diag_error(
					cx->diags, t->loc, t->end, "D_PDESC_INVAL",
					"invalid probe description \"%s\": undefined macro variable %s%s",
					t->text, string ? "$$" : "$", name);
			}
			fclose(out);
			return NULL;
		}
		fputs(v, out);
		s = e;
	}
	fclose(out);
	result = arena_strndup(cx->arena, buf, len);
	return result;
}

/* Finds the separators of the fields: colons that are not escaped and not inside parentheses or
 * brackets. */
static uint32_t find_colons(const char *s, const char **ret, uint32_t max)
{
	uint32_t n = 0, depth = 0;

	for (; *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (*s == '(')
			depth++;
		else if (*s == ')' && depth)
			depth--;
		else if (*s == ':' && !depth && n < max)
			ret[n++] = s;
	}
	return n;
}

/* Returns true for a pid provider. Names of C++ functions in its descriptions may hold colons. */
static bool is_pid_provider(const char *s, const char *colon)
{
	return colon - s >= 3 && !strncmp(s, "pid", 3) &&
	       (colon == s + 3 || is_digit(s[3]) || s[3] == '*');
}

/* pdesc:  number  |  [[[prov:]mod:]func:]name     (-P, -m, -f: the last field is prov, mod, func) */
struct pdesc *parse_pdesc(struct parse_cx *cx, enum pdesc_form form, const struct token *t)
{
	enum { MAX_COLONS = 64 };
	struct pdesc *d = arena_new(cx->arena, struct pdesc);
	const char **field[4] = { &d->prov, &d->mod, &d->func, &d->name }, *colons[MAX_COLONS], *s,
		   *start, *end;
	uint32_t last = form == PDESC_PROV   ? 0
			: form == PDESC_MOD  ? 1
			: form == PDESC_FUNC ? 2
					     : 3,
		 n;

	d->prov = d->mod = d->func = d->name = "";
	d->loc = t->loc;
	d->end = t->end;
	if (t->kind == TOK_INT) {
		if (t->value > UINT32_MAX || t->value == 0) {
			diag_error(cx->diags, t->loc, t->end, "D_PDESC_INVAL",
				   "invalid probe identifier %llu: Unknown probe identifier",
				   (unsigned long long)t->value);
			return NULL;
		}
		d->by_id = true;
		d->id = (uint32_t)t->value;
		return d;
	}
	s = expand(cx, t);
	if (!s)
		return NULL;
	n = find_colons(s, colons, MAX_COLONS);
	if (n > last && last == 3 && n < MAX_COLONS && is_pid_provider(s, colons[0])) {
		colons[2] = colons[n - 1];
		n = 3;
	}
	if (n > last && n == last + 1 && colons[0] == s) {
		/* ":mod:func" given as a function: drop the empty first field */
		s++;
		memmove(colons, colons + 1, n * sizeof(*colons));
		n--;
	}
	if (n > last) {
		diag_error(cx->diags, t->loc, t->end, "D_PDESC_INVAL",
			   "invalid probe description \"%s\": Overspecified probe description", s);
		return NULL;
	}
	for (uint32_t i = 0; i <= n; i++) {
		start = i ? colons[i - 1] + 1 : s;
		end = i < n ? colons[i] : s + strlen(s);
		*field[last - n + i] = arena_strndup(cx->arena, start, (size_t)(end - start));
	}
	return d;
}
