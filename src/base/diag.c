#define _GNU_SOURCE
#include "base/diag.h"

#include <ctype.h>

#include "base/mem.h"

enum { DIAG_LIMIT = 20 };

/* A line marker of cpp: the text from `off` on is line `line` of `name`. */
struct source_mark {
	uint32_t off, line;
	char *name;
};

void diags_init(struct diags *d)
{
	memset(d, 0, sizeof(*d));
}

void diags_fini(struct diags *d)
{
	for (uint32_t i = 0; i < d->nsources; i++) {
		struct source *s = &d->sources[i];

		for (uint32_t j = 0; j < s->nmarks; j++)
			free(s->marks[j].name);
		free(s->marks);
		free(s->name);
		free(s->text);
	}
	for (uint32_t i = 0; i < d->n; i++)
		free(d->list[i].text);
	free(d->sources);
	free(d->list);
	memset(d, 0, sizeof(*d));
}

/* Reads `# 12 "file"` or `#line 12 "file"` at p; the file name may be missing. */
static bool parse_mark(const char *p, uint32_t *ret_line, const char **ret_name, size_t *ret_len)
{
	const char *q;
	uint64_t n = 0;

	p++;
	while (*p == ' ' || *p == '\t')
		p++;
	if (!strncmp(p, "line", 4) && (p[4] == ' ' || p[4] == '\t'))
		p += 4;
	while (*p == ' ' || *p == '\t')
		p++;
	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p) && n <= UINT32_MAX; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	while (*p == ' ' || *p == '\t')
		p++;
	*ret_line = (uint32_t)n;
	*ret_name = NULL;
	*ret_len = 0;
	if (*p == '"') {
		for (q = ++p; *q && *q != '"' && *q != '\n'; q++)
			;
		*ret_name = p;
		*ret_len = (size_t)(q - p);
	}
	return true;
}

static void read_marks(struct source *s)
{
	const char *p = s->text, *end = s->text + s->len, *nl, *name;
	uint32_t line, cap = 0;
	size_t len;

	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			break;
		if (*p != '#' || !parse_mark(p, &line, &name, &len))
			continue;
		if (s->nmarks == cap)
			vec_grow_((void **)&s->marks, &cap, s->nmarks + 1, sizeof(*s->marks));
		s->marks[s->nmarks].off = (uint32_t)(nl + 1 - s->text);
		s->marks[s->nmarks].line = line;
		if (name)
			s->marks[s->nmarks].name = xstrndup(name, len);
		else
			s->marks[s->nmarks].name =
				xstrdup(s->nmarks ? s->marks[s->nmarks - 1].name : s->name);
		s->nmarks++;
	}
}

struct source *source_add(struct diags *d, enum source_kind kind, const char *name,
			  const char *text, size_t len)
{
	struct source *s;
	loc_t base = 1;

	if (d->nsources) {
		s = &d->sources[d->nsources - 1];
		base = s->base + s->len + 1; /* the end of a text has a loc of its own */
	}
	d->sources = xrealloc(d->sources, (d->nsources + 1) * sizeof(*d->sources));
	s = &d->sources[d->nsources++];
	memset(s, 0, sizeof(*s));
	s->name = xstrdup(name);
	s->kind = kind;
	s->text = xmalloc(len + 1);
	memcpy(s->text, text, len);
	s->text[len] = '\0';
	s->len = (uint32_t)len;
	s->base = base;
	read_marks(s);
	return s;
}

const struct source *source_of(const struct diags *d, loc_t loc)
{
	uint32_t lo = 0, hi = d->nsources, mid;

	if (!loc)
		return NULL;
	while (lo < hi) {
		const struct source *s;

		mid = lo + (hi - lo) / 2;
		s = &d->sources[mid];
		if (loc < s->base)
			hi = mid;
		else if (loc - s->base > s->len)
			lo = mid + 1;
		else
			return s;
	}
	return NULL;
}

static uint32_t line_start(const struct source *s, uint32_t off)
{
	while (off && s->text[off - 1] != '\n')
		off--;
	return off;
}

bool source_pos(const struct diags *d, loc_t loc, const char **ret_name, uint32_t *ret_line,
		uint32_t *ret_col)
{
	const struct source *s = source_of(d, loc);
	const char *name;
	uint32_t off, from = 0, line = 1;

	if (!s)
		return false;
	off = loc - s->base;
	name = s->name;
	for (uint32_t i = 0; i < s->nmarks && s->marks[i].off <= off; i++) {
		from = s->marks[i].off;
		line = s->marks[i].line;
		name = s->marks[i].name;
	}
	for (uint32_t i = from; i < off; i++)
		line += s->text[i] == '\n';
	if (ret_name)
		*ret_name = name;
	if (ret_line)
		*ret_line = line;
	if (ret_col)
		*ret_col = off - line_start(s, off) + 1;
	return true;
}

static void add(struct diags *d, enum diag_level level, loc_t loc, loc_t end, const char *tag,
		const char *fmt, va_list ap)
{
	uint32_t limit = d->limit ? d->limit : DIAG_LIMIT;
	struct diag *g;

	if (level == DIAG_ERROR)
		d->errors++;
	if (level != DIAG_WARNING && d->errors > limit)
		return; /* a dropped error's notes go with it */
	if (d->n == d->cap)
		vec_grow_((void **)&d->list, &d->cap, d->n + 1, sizeof(*d->list));
	g = &d->list[d->n++];
	*g = (struct diag){ .level = level, .tag = tag, .loc = loc, .end = end };
	if (vasprintf(&g->text, fmt, ap) < 0)
		g->text = xstrdup(fmt);
}

void diag_error(struct diags *d, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, DIAG_ERROR, loc, end, tag, fmt, ap);
	va_end(ap);
}

void diag_note(struct diags *d, loc_t loc, loc_t end, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, DIAG_NOTE, loc, end, NULL, fmt, ap);
	va_end(ap);
}

void diag_warn(struct diags *d, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, DIAG_WARNING, loc, end, tag, fmt, ap);
	va_end(ap);
}

/* The source line of g with the bytes [loc, end) underlined; the caret line repeats tabs and takes one column
 * per UTF-8 character. */
static void print_caret(const struct source *s, const struct diag *g, uint32_t line, bool color,
			FILE *out)
{
	uint32_t off = g->loc - s->base, start = line_start(s, off), stop = off, end, i;

	while (stop < s->len && s->text[stop] != '\n')
		stop++;
	fprintf(out, "%5u | ", line);
	for (i = start; i < stop; i++) {
		unsigned char c = (unsigned char)s->text[i];

		putc(c == '\t' || (c >= ' ' && c != 0x7f) ? c : '?', out);
	}
	fprintf(out, "\n      | ");
	for (i = start; i < off; i++) {
		if (((unsigned char)s->text[i] & 0xc0) != 0x80)
			putc(s->text[i] == '\t' ? '\t' : ' ', out);
	}
	end = g->end > g->loc ? g->end - s->base : off + 1;
	if (end > stop)
		end = stop;
	fprintf(out, "%s^", color ? "\033[1;32m" : "");
	for (i = off + 1; i < end; i++) {
		if (((unsigned char)s->text[i] & 0xc0) != 0x80)
			putc('~', out);
	}
	fprintf(out, "%s\n", color ? "\033[0m" : "");
}

static void print_own(const struct diags *d, const struct diag *g, const struct diag_style *st,
		      FILE *out)
{
	static const char *const level[] = { "error", "warning", "note" };
	static const char *const color[] = { "\033[1;31m", "\033[1;35m", "\033[1;36m" };
	const struct source *s = source_of(d, g->loc);
	const char *name = NULL;
	uint32_t line = 0, col = 0;

	if (source_pos(d, g->loc, &name, &line, &col)) {
		/* The name of a -n source is its text: of no use in front of a line that shows it. */
		if (s->kind == SOURCE_ARG && name == s->name)
			name = "<command line>";
		fprintf(out, "%s%s:%u:%u: ", st->color ? "\033[1m" : "", name, line, col);
	} else if (g->level != DIAG_NOTE) {
		fprintf(out, "%s%s: ", st->color ? "\033[1m" : "",
			st->progname ? st->progname : "descry");
	}
	fprintf(out, "%s%s:%s %s", st->color ? color[g->level] : "", level[g->level],
		st->color ? "\033[0m" : "", g->text);
	if (g->tag)
		fprintf(out, " [%s]", g->tag);
	putc('\n', out);
	if (s)
		print_caret(s, g, line, st->color, out);
}

/* The part of a clause that off lies in, as DTrace calls it, by braces and slashes alone. NULL: its descriptions. */
static const char *clause_region(const struct source *s, uint32_t off)
{
	int depth = 0;
	bool pred = false;
	char quote = 0;

	for (uint32_t i = 0; i < off && i < s->len; i++) {
		char c = s->text[i];

		if (quote) {
			if (c == '\\')
				i++;
			else if (c == quote)
				quote = 0;
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (c == '/' && s->text[i + 1] == '*') {
			const char *e = strstr(s->text + i + 2, "*/");

			i = e ? (uint32_t)(e + 1 - s->text) : s->len;
		} else if (c == '{') {
			depth++;
			pred = false;
		} else if (c == '}' && depth) {
			depth--;
		} else if (c == '/' && !depth) {
			pred = true; /* division does not end it: only '{' does */
		}
	}
	return depth ? "action list" : pred ? "predicate" : NULL;
}

/* Errors that DTrace finds before it knows, or after it has forgotten, which part of a clause they are in. */
static bool has_region(const char *tag)
{
	static const char *const without[] = { "D_SYNTAX", "D_MACRO_OFLOW", "D_MACRO_UNDEF",
					       "D_TUPLE_REGS" };

	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		if (tag && !strcmp(tag, without[i]))
			return false;
	return tag;
}

/* DTrace's one line. Notes have no place in it. */
static void print_dtrace(const struct diags *d, const struct diag *g, const struct diag_style *st,
			 FILE *out)
{
	const struct source *s = source_of(d, g->loc);
	const char *name = NULL;
	uint32_t line = 0;

	if (g->level == DIAG_NOTE)
		return;
	if (!s && d->nsources)
		s = &d->sources[d->nsources - 1];
	source_pos(d, g->loc, &name, &line, NULL);
	fprintf(out, "%s: ", st->progname ? st->progname : "dtrace");
	if (g->level == DIAG_WARNING)
		fprintf(out, "warning: ");
	else if (s && s->kind == SOURCE_ARG)
		fprintf(out, "invalid probe specifier %s: ", s->name);
	else if (s)
		fprintf(out, "failed to compile script %s: ", s->name);
	if (st->errtags && g->tag)
		fprintf(out, "[%s] ", g->tag);
	if (name && s->kind == SOURCE_ARG) {
		const char *region = clause_region(s, g->loc - s->base);

		if (region && has_region(g->tag))
			fprintf(out, "in %s: ", region);
	} else if (name && name != s->name) {
		fprintf(out, "\"%s\", line %u: ", name, line);
	} else if (name) {
		fprintf(out, "line %u: ", line);
	}
	fprintf(out, "%s\n", g->text);
}

void diags_print(const struct diags *d, const struct diag_style *style, FILE *out)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < d->n; i++) {
		if (style->dtrace && shown)
			return; /* DTrace ends with the first */
		if (style->dtrace)
			print_dtrace(d, &d->list[i], style, out);
		else
			print_own(d, &d->list[i], style, out);
		shown += d->list[i].level == DIAG_ERROR;
	}
	if (d->errors > shown)
		fprintf(out, "%s: %u more error%s not shown\n",
			style->progname ? style->progname : "descry", d->errors - shown,
			d->errors - shown == 1 ? "" : "s");
}
