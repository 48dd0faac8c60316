/* Collects diagnostics with their sources and prints them. */
#define _GNU_SOURCE
#include "base/diag.h"

#include <ctype.h>

#include "base/mem.h"
#include "base/sorted.h"
#include "base/term.h"
#include "base/utf8.h"

enum { DIAG_LIMIT = 20, QUOTE_BEFORE = 100, QUOTE_MAX = 200 /* bytes of a line */ };

/* A line marker of cpp. The text from `off` on is line `line` of `name`. */
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

/* Parses `# 12 "file"` or `#line 12 "file"` at p. The file name may be missing. */
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
		base = s->base + s->len + 1; /* the end of a text has a loc too */
	}
	d->sources = xrealloc(d->sources, (d->nsources + 1) * sizeof(*d->sources));
	s = &d->sources[d->nsources++];
	memset(s, 0, sizeof(*s));
	s->name = xstrdup(name);
	/* a file's name makes no line of its own */
	for (char *p = kind == SOURCE_ARG ? NULL : strchr(s->name, '\n'); p; p = strchr(p, '\n'))
		*p = '?';
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
	uint32_t i = partition_point(d->nsources, k, d->sources[k].base + d->sources[k].len < loc);

	return loc && i < d->nsources && loc >= d->sources[i].base ? &d->sources[i] : NULL;
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

static uint32_t limit(const struct diags *d)
{
	return d->limit ? d->limit : DIAG_LIMIT;
}

bool diags_full(const struct diags *d)
{
	return d->errors >= limit(d);
}

int diag_shown(const char *text)
{
	size_t n = strnlen(text, DIAG_TEXT_MAX + 1);

	if (n <= DIAG_TEXT_MAX)
		return (int)n;
	n = DIAG_TEXT_MAX;
	while (n && ((unsigned char)text[n] & 0xc0) == 0x80) /* do not cut inside a character */
		n--;
	return (int)n;
}

static void diag_add(struct diags *d, enum diag_level level, loc_t loc, loc_t end, const char *tag,
		     const char *fmt, va_list ap)
{
	struct diag *g;
	int n;

	if (level == DIAG_ERROR)
		d->dropping = ++d->errors > limit(d);
	else if (level == DIAG_WARNING)
		d->dropping = ++d->warnings > limit(d);
	if (d->dropping)
		return;
	if (d->n == d->cap)
		vec_grow_((void **)&d->list, &d->cap, d->n + 1, sizeof(*d->list));
	g = &d->list[d->n++];
	*g = (struct diag){ .level = level, .tag = tag, .loc = loc, .end = end };
	if (vasprintf(&g->text, fmt, ap) < 0)
		g->text = xstrdup(fmt);
	n = diag_shown(g->text);
	if (g->text[n]) {
		char *cut = xasprintf("%.*s...", n, g->text);

		free(g->text);
		g->text = cut;
	}
}

struct diags_mark diags_mark(const struct diags *d)
{
	return (struct diags_mark){ d->n, d->errors, d->warnings };
}

void diags_forget(struct diags *d, struct diags_mark mark)
{
	while (d->n > mark.n)
		free(d->list[--d->n].text);
	d->errors = mark.errors;
	d->warnings = mark.warnings;
	d->dropping = false;
}

void diag_error(struct diags *d, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_add(d, DIAG_ERROR, loc, end, tag, fmt, ap);
	va_end(ap);
}

void diag_note(struct diags *d, loc_t loc, loc_t end, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_add(d, DIAG_NOTE, loc, end, NULL, fmt, ap);
	va_end(ap);
}

void diag_warn(struct diags *d, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_add(d, DIAG_WARNING, loc, end, tag, fmt, ap);
	va_end(ap);
}

/* Returns the bytes of the character at text[i]. *ret_shown: it is printed as it is, not as '?'. */
static uint32_t character(const struct source *s, uint32_t i, uint32_t end, bool *ret_shown)
{
	uint32_t c, n = utf8_decode(s->text + i, end - i, &c);

	*ret_shown = n && (c == '\t' || !utf8_is_unseen(c));
	return n ? n : 1;
}

/* Prints text as wide as the characters of [i, end): a tab for each tab, and `fill` for all
 * others. */
static void put_width(const struct source *s, uint32_t i, uint32_t end, char fill, FILE *out)
{
	bool shown;

	for (; i < end; i += character(s, i, end, &shown))
		putc(s->text[i] == '\t' && fill == ' ' ? '\t' : fill, out);
}

/* Narrows [*from, *to), a long line, to the bytes that are quoted. `off` stays among them. */
static void quote_window(const struct source *s, uint32_t off, uint32_t *from, uint32_t *to)
{
	if (*to - *from <= QUOTE_MAX)
		return;
	if (off - *from > QUOTE_BEFORE) {
		*from = off - QUOTE_BEFORE;
		for (uint32_t i = 0; i < 3 && ((uint8_t)s->text[*from] & 0xc0) == 0x80; i++)
			(*from)++;
	}
	if (*to - *from > QUOTE_MAX) {
		*to = *from + QUOTE_MAX;
		for (uint32_t i = 0; i < 3 && ((uint8_t)s->text[*to] & 0xc0) == 0x80; i++)
			(*to)--;
	}
}

static void paint(const char *sequence, bool color, FILE *out)
{
	if (color)
		term_raw(out, sequence, strlen(sequence));
}

/* Prints the source line of g, or the part around the caret, with the bytes [loc, end) underlined.
 * The caret line repeats tabs and has one column for each character. */
static void print_caret(const struct source *s, const struct diag *g, uint32_t line, bool color,
			FILE *out)
{
	uint32_t off = g->loc - s->base, start = line_start(s, off), stop = off, from, to, end, n;
	bool shown;

	while (stop < s->len && s->text[stop] != '\n')
		stop++;
	from = start;
	to = stop;
	quote_window(s, off, &from, &to);
	fprintf(out, "%5u | %s", line, from > start ? "..." : "");
	for (uint32_t i = from; i < to; i += n) {
		n = character(s, i, to, &shown);
		fprintf(out, "%.*s", shown ? (int)n : 1, shown ? s->text + i : "?");
	}
	fprintf(out, "%s\n      | %s", to < stop ? "..." : "", from > start ? "   " : "");
	put_width(s, from, off, ' ', out);
	end = g->end > g->loc ? g->end - s->base : off + 1;
	if (end > to)
		end = to;
	paint("\033[1;32m", color, out);
	putc('^', out);
	if (off < end)
		put_width(s, off + character(s, off, to, &shown), end, '~', out);
	paint("\033[0m", color, out);
	putc('\n', out);
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
		/* The name of a -n source is its text, which the quoted line shows already. */
		if (s->kind == SOURCE_ARG && name == s->name)
			name = "<command line>";
		paint("\033[1m", st->color, out);
		fprintf(out, "%s:%u:%u: ", name, line, col);
	} else if (g->level != DIAG_NOTE) {
		paint("\033[1m", st->color, out);
		fprintf(out, "%s: ", st->progname ? st->progname : "descry");
	}
	paint(color[g->level], st->color, out);
	fprintf(out, "%s:", level[g->level]);
	paint("\033[0m", st->color, out);
	fprintf(out, " %s", g->text);
	if (g->tag)
		fprintf(out, " [%s]", g->tag);
	putc('\n', out);
	if (s)
		print_caret(s, g, line, st->color, out);
}

/* Returns DTrace's name for the part of a clause that holds off, by braces and slashes alone.
 * Returns NULL in the descriptions. */
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
			pred = true; /* a division does not end it, only '{' does */
		}
	}
	return depth ? "action list" : pred ? "predicate" : NULL;
}

/* Returns false for errors that DTrace reports without the part of the clause that they are in. */
static bool has_region(const char *tag)
{
	static const char *const without[] = { "D_SYNTAX", "D_MACRO_OFLOW", "D_MACRO_UNDEF",
					       "D_TUPLE_REGS" };

	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		if (tag && !strcmp(tag, without[i]))
			return false;
	return tag;
}

/* Prints DTrace's one-line form. It has no notes. */
static void print_dtrace(const struct diags *d, const struct diag *g, const struct diag_style *st,
			 FILE *out)
{
	const struct source *s = source_of(d, g->loc);
	const char *name = NULL;
	uint32_t line = 0;

	if (g->level == DIAG_NOTE)
		return;
	/* An error without a position is reported for the first program, because DTrace compiles it
	 * first. */
	for (uint32_t i = 0; i < d->nsources && !s; i++)
		if (d->sources[i].kind != SOURCE_LIB)
			s = &d->sources[i];
	source_pos(d, g->loc, &name, &line, NULL);
	fprintf(out, "%s: ", st->progname ? st->progname : "dtrace");
	if (g->level == DIAG_WARNING)
		fprintf(out, "warning: ");
	else if (s && s->kind == SOURCE_ARG)
		fprintf(out, "invalid probe specifier %.*s%s: ", diag_shown(s->name), s->name,
			DIAG_CUT(s->name));
	else if (s)
		fprintf(out, "failed to compile script %s: ", s->name);
	if (st->errtags && g->tag)
		fprintf(out, "[%s] ", g->tag);
	if (name && s->kind == SOURCE_ARG) {
		const char *region = clause_region(s, g->loc - s->base);

		if (region && has_region(g->tag))
			fprintf(out, "in %s: ", region);
	} else if (name && strcmp(name, s->name)) {
		fprintf(out, "\"%s\", line %u: ", name, line);
	} else if (name) {
		fprintf(out, "line %u: ", line);
	}
	fprintf(out, "%s\n", g->text);
}

static void print_more(uint32_t n, const char *what, const struct diag_style *style, FILE *out)
{
	if (n)
		fprintf(out, "%s: %u more %s%s not shown\n",
			style->progname ? style->progname : "descry", n, what, n == 1 ? "" : "s");
}

/* Returns true for a warning that dtrace(1) does not have. It takes $target without a process as 0,
 * silently, because scripts compare pid with it. */
static bool is_own_remark(const struct diag *g)
{
	return g->level == DIAG_WARNING && g->tag && !strcmp(g->tag, "D_MACRO_UNDEF");
}

void diags_print(const struct diags *d, const struct diag_style *style, FILE *out)
{
	uint32_t shown[DIAG_NOTE + 1] = { 0 };

	for (uint32_t i = 0; i < d->n; i++) {
		if (style->dtrace && shown[DIAG_ERROR])
			return; /* DTrace stops at the first error */
		if (style->dtrace && is_own_remark(&d->list[i]))
			;
		else if (style->dtrace)
			print_dtrace(d, &d->list[i], style, out);
		else
			print_own(d, &d->list[i], style, out);
		shown[d->list[i].level]++;
	}
	print_more(d->warnings - shown[DIAG_WARNING], "warning", style, out);
	print_more(d->errors - shown[DIAG_ERROR], "error", style, out);
}
