/* Reads blanks, comments, # lines, words and punctuation. See lex.h. */
#define _GNU_SOURCE
#include <stdarg.h>

#include "lex.h"

static const struct {
	const char *text;
	enum token_kind kind;
	enum keyword_class class;
} keywords[] = {
#define X(id, text, class) { text, id, class },
	KEYWORDS(X)
#undef X
};

static const struct {
	const char *text;
	uint8_t len;
	enum token_kind kind;
} puncts[] = {
#define X(id, text) { text, sizeof(text) - 1, id },
	PUNCTUATION(X)
#undef X
};

enum token_kind keyword_find(const char *s, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
		if (strlen(keywords[i].text) == n && !memcmp(keywords[i].text, s, n))
			return keywords[i].kind;
	return TOK_IDENT;
}

enum keyword_class token_class(enum token_kind k)
{
	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
		if (keywords[i].kind == k)
			return keywords[i].class;
	return K_NONE;
}

const char *token_kind_text(enum token_kind k)
{
	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
		if (keywords[i].kind == k)
			return keywords[i].text;
	for (size_t i = 0; i < ARRAY_SIZE(puncts); i++)
		if (puncts[i].kind == k)
			return puncts[i].text;
	return k == TOK_IDENT ? "identifier" : k == TOK_EPRED ? "/" : "?";
}

void lex_init(struct lexer *lx, struct parse_cx *cx, uint32_t src)
{
	const struct source *s = &cx->diags->sources[src];

	*lx = (struct lexer){ .cx = cx, .text = s->text, .len = s->len, .base = s->base };
	lx->pragmas_tail = &lx->pragmas;
}

void lex_seek(struct lexer *lx, loc_t loc)
{
	lx->pos = loc - lx->base;
}

void lex_error(struct lexer *lx, struct token *t, const char *tag, const char *fmt, ...)
{
	uint32_t at = t->loc - lx->base + 1;
	cleanup_free char *text = NULL;
	va_list ap;

	t->kind = TOK_ERROR;
	if (lx->quiet || at <= lx->reported)
		return;
	lx->reported = at;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	diag_error(lx->cx->diags, t->loc, t->end, tag, "%s", text);
}

static int at(const struct lexer *lx, uint32_t pos)
{
	return pos < lx->len ? (unsigned char)lx->text[pos] : 0;
}

/* Reports an error in a comment or a # line. */
static void blank_error(struct lexer *lx, uint32_t from, uint32_t to, const char *tag,
			const char *msg, const char *arg)
{
	struct token t = { .loc = lx->base + from, .end = lx->base + to };

	lex_error(lx, &t, tag, msg, arg);
}

/* Skips the comment at pos. Stops at the end of the text at the latest. */
static void block_comment(struct lexer *lx)
{
	uint32_t start = lx->pos;

	for (lx->pos += 2; lx->pos < lx->len; lx->pos++) {
		if (at(lx, lx->pos) == '*' && at(lx, lx->pos + 1) == '/') {
			lx->pos += 2;
			return;
		}
		if (at(lx, lx->pos) == '/' && at(lx, lx->pos + 1) == '*') {
			blank_error(lx, lx->pos, lx->pos + 2, "D_SYNTAX",
				    "/* encountered inside a comment%s", "");
			lx->pos++;
		}
	}
	blank_error(lx, start, start + 2, "D_SYNTAX",
		    "end-of-file encountered before matching */%s", "");
}

/* Returns the end of the control line [s, e) without trailing blanks and comment. A comment begins
 * after a blank and outside quotes. */
static uint32_t control_end(const struct lexer *lx, uint32_t s, uint32_t e)
{
	bool quoted = false;

	for (uint32_t i = s; i < e; i++) {
		if (at(lx, i) == '"')
			quoted = !quoted;
		if (!quoted && at(lx, i) == '/' && i > s && is_blank_char(at(lx, i - 1)) &&
		    (at(lx, i + 1) == '/' || at(lx, i + 1) == '*')) {
			e = i;
			break;
		}
	}
	while (e > s && is_blank_char(at(lx, e - 1)))
		e--;
	return e;
}

static bool word_is(const char *text, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(text, word, n) && !is_ident_char(text[n]);
}

/* Applies the options that change how the rest of the source is read: `#pragma D option
 * defaultargs`, pspec and empty. */
static void reading_option(struct parse_cx *cx, const char *text)
{
	const char *value = text + strcspn(text, "= \t");
	size_t n = (size_t)(value - text);
	bool on;

	while (*value == '=' || is_blank_char(*value))
		value++;
	on = strcmp(value, "0") && strcmp(value, "off") && strcmp(value, "unset") &&
	     strcmp(value, "no");
	if (n == strlen("defaultargs") && !strncmp(text, "defaultargs", n) && cx->macros)
		cx->macros->defaultargs = on;
	else if (n == strlen("pspec") && !strncmp(text, "pspec", n))
		cx->pspec = on;
	else if (n == strlen("empty") && !strncmp(text, "empty", n))
		cx->empty = on;
}

/* Returns true when text has the form of "Stable/Evolving/Common". */
static bool is_attributes(const char *text, size_t len)
{
	static const char *const levels = "|Internal|Private|Obsolete|External|Unstable|Evolving|"
					  "Stable|Standard|";
	static const char *const classes = "|Unknown|CPU|Platform|Group|ISA|Common|";
	const char *end = text + len;
	int parts = 0;

	for (;; text++, parts++) {
		size_t n = strcspn(text, "/ \t");
		cleanup_free char *word = xasprintf("|%.*s|", (int)n, text);

		if (!n || parts > 2 || !strcasestr(parts < 2 ? levels : classes, word))
			return false;
		text += n;
		if (text >= end)
			return parts == 2;
	}
}

/* Checks the `a/b/c name` of an attributes pragma. The binder reports missing words. */
static bool attributes_pragma(struct lexer *lx, const char *text, uint32_t from, uint32_t to)
{
	size_t len, rest;

	while (is_blank_char(*text))
		text++;
	len = strcspn(text, " \t");
	rest = strspn(text + len, " \t");
	if (!text[len + rest] || is_attributes(text, len))
		return true;
	blank_error(lx, from, to, "D_PRAGMA_INVAL",
		    "invalid attributes %s: they are name/data/class, as in "
		    "Evolving/Evolving/Common",
		    arena_strndup(lx->cx->arena, text, len));
	return false;
}

/* Checks the text after "#pragma D", such as "option quiet". Returns false, with an error, when D
 * has no pragma of this name. */
static bool d_pragma(struct lexer *lx, const char *text, uint32_t from, uint32_t to)
{
	static const char *const known[] = { "binding", "depends_on", "ident", "line", "option" };

	while (is_blank_char(*text))
		text++;
	if (word_is(text, "option")) {
		for (text += strlen("option"); is_blank_char(*text); text++)
			;
		reading_option(lx->cx, text);
		return true;
	}
	if (word_is(text, "attributes"))
		return attributes_pragma(lx, text + strlen("attributes"), from, to);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (word_is(text, known[i]))
			return true;
	blank_error(lx, from, to, "D_PRAGMA_INVAL", "invalid D pragma: %s", text);
	return false;
}

/*   #pragma D option quiet | #! interpreter | # 12 "file" | #line 12 | #ident "..." | #error text
 * Handles one control line. pos is at the `#`, the first character of its line that is not blank.
 * source_pos reads the line markers. */
static void control_line(struct lexer *lx)
{
	uint32_t start = lx->pos, eol = start, word, end;
	bool first = start + 1 > lx->controlled;

	while (eol < lx->len && lx->text[eol] != '\n')
		eol++;
	lx->pos = eol;
	if (!first)
		return;
	lx->controlled = start + 1;
	if (at(lx, start + 1) == '!')
		return;
	for (word = start + 1; word < eol && is_blank_char(at(lx, word)); word++)
		;
	for (end = word; end < eol && is_ident_char(at(lx, end)); end++)
		;
	uint32_t rest = end, stop;

	while (rest < eol && is_blank_char(at(lx, rest)))
		rest++;
	stop = control_end(lx, rest, eol);

	const char *w = lx->text + word;
	size_t n = end - word;
	cleanup_free char *name = xstrndup(w, n), *text = xstrndup(lx->text + rest, stop - rest);

	if (word == eol || is_digit(*w) || !strcmp(name, "line") || !strcmp(name, "ident"))
		return;
	if (!strcmp(name, "error")) {
		blank_error(lx, start, stop, "D_PRAGERR", "#error: %s", text);
	} else if (!strcmp(name, "pragma") &&
		   (word_is(text, "error") || word_is(text, "D error"))) {
		blank_error(lx, start, stop, "D_PRAGERR", "#pragma error:%s",
			    strchr(text, 'r') + strlen("rror"));
	} else if (strcmp(name, "pragma")) {
		blank_error(lx, start, end, "D_PRAGCTL_INVAL",
			    n ? "invalid control directive: #%s (C preprocessing needs -C)"
			      : "invalid control directive%s",
			    name);
	} else if (!word_is(text, "D") || d_pragma(lx, text + 1, start, stop)) {
		struct lex_pragma *pr = arena_new(lx->cx->arena, struct lex_pragma);

		pr->text = arena_strdup(lx->cx->arena, text);
		pr->loc = lx->base + start;
		pr->end = lx->base + (stop > end ? stop : end);
		*lx->pragmas_tail = pr;
		lx->pragmas_tail = &pr->next;
	}
}

static bool at_line_start(const struct lexer *lx, uint32_t pos)
{
	while (pos && at(lx, pos - 1) != '\n') {
		if (!is_blank_char(at(lx, pos - 1)))
			return false;
		pos--;
	}
	return true;
}

int lex_blank(struct lexer *lx)
{
	while (lx->pos < lx->len) {
		int c = at(lx, lx->pos), d = at(lx, lx->pos + 1);

		if (is_blank_char(c))
			lx->pos++;
		else if (c == '\\' && d == '\n')
			lx->pos += 2;
		else if (c == '/' && d == '*')
			block_comment(lx);
		else if (c == '/' && d == '/' && !(lx->pred && at(lx, lx->pos + 2) == '*'))
			while (lx->pos < lx->len && lx->text[lx->pos] != '\n')
				lx->pos++;
		else if (c == '#' && at_line_start(lx, lx->pos))
			control_line(lx);
		else
			return c ? c : -1;
	}
	return 0;
}

/* Reads the word at pos, with a backquote and a second word if they follow: x  mod`x  `x */
static void lex_word(struct lexer *lx, struct token *t)
{
	uint32_t start = lx->pos, quote = UINT32_MAX;
	struct arena *a = lx->cx->arena;

	while (is_ident_char(at(lx, lx->pos)) || at(lx, lx->pos) == '`') {
		if (at(lx, lx->pos) == '`')
			quote = lx->pos;
		lx->pos++;
	}
	t->end = lx->base + lx->pos;
	if (quote == UINT32_MAX) {
		t->kind = keyword_find(lx->text + start, lx->pos - start);
		t->text = arena_strndup(a, lx->text + start, lx->pos - start);
		return;
	}
	t->kind = TOK_IDENT;
	t->scoped = true;
	t->text = arena_strndup(a, lx->text + quote + 1, lx->pos - quote - 1);
	while (start < quote && at(lx, start) == '`')
		start++;
	if (start < quote)
		t->module = arena_strndup(a, lx->text + start, quote - start);
	if (!t->text[0])
		lex_error(lx, t, "D_IDENT_UNDEF", "a name must follow the scoping operator `");
}

/* Returns true when the slash before pos ends a predicate, because `{`, `;`, `/` or the end of the
 * text follows. */
static bool ends_predicate(const struct lexer *lx)
{
	struct lexer ahead = *lx;
	int c;

	if (at(lx, lx->pos) == '/')
		return true;
	ahead.quiet = true;
	ahead.pred = false;
	ahead.controlled = UINT32_MAX;
	c = lex_blank(&ahead);
	return c == 0 || c == ';' || c == '{' || c == '/';
}

static void bad_char(struct lexer *lx, struct token *t)
{
	int c = at(lx, lx->pos);

	lx->pos++;
	t->end = lx->base + lx->pos;
	if (c > ' ' && c < 0x7f)
		lex_error(lx, t, "D_SYNTAX", "syntax error near \"%c\"", c);
	else
		lex_error(lx, t, "D_SYNTAX", "syntax error near byte 0x%02x", c);
}

void lex_next(struct lexer *lx, struct token *t)
{
	int c = lex_blank(lx);

	*t = (struct token){ .kind = TOK_EOF,
			     .loc = lx->base + lx->pos,
			     .end = lx->base + lx->pos };
	if (c == 0)
		return;
	if (is_ident_start(c) || c == '`') {
		lex_word(lx, t);
	} else if (is_digit(c) || (c == '.' && is_digit(at(lx, lx->pos + 1)))) {
		lex_number(lx, t);
	} else if (c == '"') {
		lex_string(lx, t);
	} else if (c == '\'') {
		lex_char(lx, t);
	} else if (c == '$') {
		lex_macro(lx, t);
	} else if (c == '@') {
		uint32_t start = ++lx->pos;

		if (is_ident_start(at(lx, start)))
			while (is_ident_char(at(lx, lx->pos)))
				lx->pos++;
		t->kind = TOK_AGG;
		t->text = arena_strndup(lx->cx->arena, lx->text + start, lx->pos - start);
		if (!strcmp(t->text, "_"))
			t->text = "";
		t->end = lx->base + lx->pos;
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(puncts); i++) {
			if (lx->len - lx->pos < puncts[i].len ||
			    memcmp(lx->text + lx->pos, puncts[i].text, puncts[i].len))
				continue;
			t->kind = puncts[i].kind;
			lx->pos += puncts[i].len;
			t->end = lx->base + lx->pos;
			if (t->kind == TOK_DIV && lx->pred && ends_predicate(lx))
				t->kind = TOK_EPRED;
			return;
		}
		bad_char(lx, t);
	}
}

/* Characters of a probe description. DTrace accepts  - $ : letters . ? * \ [ ] !  and, after the
 * first character, digits and `. The others are for the names of C++, Go, Rust and versioned
 * symbols, and mean nothing else at top level. */
static bool is_pspec_char(int c, bool first)
{
	if (is_ident_start(c) || (c && strchr("-$:.?*\\[]!~@+%=<>^&|", c)))
		return true;
	return !first && (is_digit(c) || c == '`');
}

/* Returns the length of "(...)" at pos when it closes on the same line and holds no brace or
 * semicolon, else 0. */
static uint32_t paren_len(const struct lexer *lx, uint32_t pos)
{
	uint32_t depth = 0;

	for (uint32_t i = pos; i < lx->len; i++) {
		int c = at(lx, i);

		if (c == '(')
			depth++;
		else if (c == ')' && --depth == 0)
			return i + 1 - pos;
		else if (c == '\n' || c == '{' || c == '}' || c == ';')
			break;
	}
	return 0;
}

/* Returns the length of an absolute path at the module's place in a description, such as
 * "/usr/lib/libz.so.1" before the ":" of its function. Returns 0 when the "/" begins a predicate. A
 * path with other characters than path_len() accepts can be written as a pattern, with "?" for the
 * character. */
static uint32_t path_len(const struct lexer *lx, uint32_t pos)
{
	uint32_t i = pos;

	if (at(lx, i) != '/' || at(lx, i + 1) == '/' || at(lx, i + 1) == '*')
		return 0;
	while (is_ident_start(at(lx, i)) || is_digit(at(lx, i)) ||
	       (at(lx, i) && strchr("/.-+@?*[]!~%,", at(lx, i))))
		i++;
	return at(lx, i) == ':' ? i - pos : 0;
}

/* Returns the length of a pspec. A pspec consists of the characters of is_pspec_char(), of `\` with
 * the character after it, of balanced parentheses with any contents, and of a path at the module's
 * place:
 *    pid$target::main.(*T).f:entry     pid1::f(int, char):entry
 *    pid1::operator\ new:entry         pid$target:/usr/lib/libz.so.1::entry
 */
static uint32_t pspec_len(const struct lexer *lx, uint32_t start)
{
	uint32_t pos = start, colons = 0;

	for (;;) {
		int c = at(lx, pos), d = at(lx, pos + 1);

		if (c == '\\' && (d == 0 || d == '\n')) {
			break;
		} else if (c == '\\') {
			pos += 2;
		} else if (c == ':') {
			colons++;
			pos++;
			if (colons == 1)
				pos += path_len(lx, pos);
		} else if (is_pspec_char(c, pos == start)) {
			pos++;
		} else if (c == '(' && pos > start && paren_len(lx, pos)) {
			pos += paren_len(lx, pos);
		} else {
			break;
		}
	}
	return pos - start;
}

void lex_top(struct lexer *lx, struct token *t)
{
	int c = lex_blank(lx);
	uint32_t n;

	*t = (struct token){ .kind = TOK_EOF,
			     .loc = lx->base + lx->pos,
			     .end = lx->base + lx->pos };
	if (c == 0)
		return;
	if (is_digit(c)) {
		lex_number(lx, t);
	} else if ((n = pspec_len(lx, lx->pos))) {
		t->kind = keyword_find(lx->text + lx->pos, n);
		switch (token_class(t->kind)) {
		case K_TYPE:
		case K_QUAL:
		case K_CLASS:
		case K_TOP: break;
		default: t->kind = TOK_PSPEC;
		}
		t->text = arena_strndup(lx->cx->arena, lx->text + lx->pos, n);
		t->len = n;
		lx->pos += n;
		t->end = lx->base + lx->pos;
	} else if (c == '/' || c == ',' || c == '{' || c == '}' || c == ';') {
		t->kind = c == '/'   ? TOK_DIV
			  : c == ',' ? TOK_COMMA
			  : c == '{' ? TOK_LBRACE
			  : c == '}' ? TOK_RBRACE
				     : TOK_SEMI;
		t->end = lx->base + ++lx->pos;
	} else {
		bad_char(lx, t);
	}
}

/* A declaration reaches a `;` before any `{` or `/`; a clause never does. DTrace looks the word up
 * as a type instead. It therefore takes "int* {" for a type, and needs the kernel's types to read
 * any program. */
bool lex_is_decl(struct lexer *lx)
{
	struct lexer ahead = *lx;
	uint32_t depth = 0;
	int c, last = 0;

	if (!is_ident_start(at(lx, lx->pos)) && at(lx, lx->pos) != '`')
		return false;
	for (uint32_t i = lx->pos; is_pspec_char(at(lx, i), false); i++)
		if (strchr(":-.?!$\\", at(lx, i)))
			return false;
	if (lx->pos >= lx->decl_from && lx->pos < lx->decl_to)
		return lx->decl;
	ahead.quiet = true;
	ahead.controlled = UINT32_MAX;
	for (;; ahead.pos++) {
		c = lex_blank(&ahead);
		if (c == 0 || c == '{' || c == ';' || (c == '/' && !depth))
			break;
		last = c;
		if (c == '[')
			depth++;
		else if (c == ']')
			depth -= depth > 0;
	}
	lx->decl_from = lx->pos;
	lx->decl_to = ahead.pos;
	lx->decl = c == ';' || (c == '{' && last == ')'); /* a function has a body */
	return lx->decl;
}
