/* Reads constants and macros, the tokens that carry a value. See lex.h. */

#include "lex.h"

static int at(const struct lexer *lx, uint32_t pos)
{
	return pos < lx->len ? (unsigned char)lx->text[pos] : 0;
}

static int hex_digit(int c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t unescape(const char *s, size_t n, char *out)
{
	size_t o = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned int v = 0, digits = 0;

		if (s[i] != '\\' || i + 1 == n) {
			out[o++] = s[i];
			continue;
		}
		switch (s[++i]) {
		case 'a': out[o++] = '\a'; break;
		case 'b': out[o++] = '\b'; break;
		case 'f': out[o++] = '\f'; break;
		case 'n': out[o++] = '\n'; break;
		case 'r': out[o++] = '\r'; break;
		case 't': out[o++] = '\t'; break;
		case 'v': out[o++] = '\v'; break;
		case '0':
		case '1':
		case '2':
		case '3':
		case '4':
		case '5':
		case '6':
		case '7':
			while (digits < 3 && i < n && s[i] >= '0' && s[i] <= '7') {
				v = v * 8 + (unsigned int)(s[i++] - '0');
				digits++;
			}
			i--;
			out[o++] = (char)v;
			break;
		case 'x':
			while (i + 1 < n && hex_digit(s[i + 1]) >= 0) {
				v = v * 16 + (unsigned int)hex_digit(s[++i]);
				digits++;
			}
			out[o++] = digits ? (char)v : 'x';
			break;
		case '"':
		case '\\': out[o++] = s[i]; break;
		/* Other sequences, \' and \? among them, are no escapes in any DTrace: both
		 * characters stay. */
		default: out[o++] = '\\'; out[o++] = s[i];
		}
	}
	return o;
}

/* Reads [0-9]+ | 0x[0-9a-f]+, then [uU] and up to two [lL] in either order. Sets the value, based
 * and the suffix. *ret_end is the first character behind the constant. Returns false on
 * overflow. */
static bool parse_integer(const char *s, const char *stop, struct token *t, const char **ret_end,
			  int *ret_bad)
{
	unsigned int radix = 10;
	bool fits = true;
	uint64_t v = 0;

	*ret_bad = 0;
	t->based = s < stop && *s == '0';
	if (t->based) {
		radix = 8;
		if (s + 2 < stop && (s[1] == 'x' || s[1] == 'X') && hex_digit(s[2]) >= 0) {
			radix = 16;
			s += 2;
		}
	}
	for (; s < stop; s++) {
		int d = hex_digit((unsigned char)*s);

		if (d < 0 || (radix != 16 && !is_digit(*s)))
			break;
		if ((unsigned int)d >= radix && !*ret_bad)
			*ret_bad = *s;
		if (__builtin_mul_overflow(v, radix, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			fits = false;
	}
	for (; s < stop; s++) {
		if ((*s == 'u' || *s == 'U') && !t->is_unsigned)
			t->is_unsigned = true;
		else if ((*s == 'l' || *s == 'L') && t->longs < 2)
			t->longs++;
		else
			break;
	}
	t->value = v;
	*ret_end = s;
	return fits;
}

/* Returns the length of the floating-point constant at pos: digits with a dot or an exponent.
 * Returns 0 when there is none. */
static uint32_t float_len(const struct lexer *lx)
{
	uint32_t i = lx->pos, j;
	bool dot = false, exp = false;

	while (is_digit(at(lx, i)))
		i++;
	if (at(lx, i) == '.' && at(lx, i + 1) != '.') {
		dot = true;
		for (i++; is_digit(at(lx, i)); i++)
			;
	}
	if (at(lx, i) == 'e' || at(lx, i) == 'E') {
		j = i + 1;
		if (at(lx, j) == '+' || at(lx, j) == '-')
			j++;
		if (is_digit(at(lx, j))) {
			exp = true;
			for (i = j; is_digit(at(lx, i)); i++)
				;
		}
	}
	if (!dot && !exp)
		return 0;
	if (at(lx, i) && strchr("fFlL", at(lx, i)))
		i++;
	return i - lx->pos;
}

void lex_number(struct lexer *lx, struct token *t)
{
	const char *s = lx->text + lx->pos, *end;
	uint32_t n = float_len(lx);
	bool fits;
	int bad;

	if (n && !(s[0] == '0' && (s[1] | 0x20) == 'x')) {
		lx->pos += n;
		t->end = lx->base + lx->pos;
		lex_error(lx, t, "D_SYNTAX", "floating-point constants are not permitted");
		t->kind = TOK_INT;
		return;
	}
	fits = parse_integer(s, lx->text + lx->len, t, &end, &bad);
	lx->pos = (uint32_t)(end - lx->text);
	t->end = lx->base + lx->pos;
	if (bad)
		lex_error(lx, t, "D_INT_DIGIT", "constant %.*s contains invalid digit %c",
			  (int)(end - s), s, bad);
	else if (!fits)
		lex_error(lx, t, "D_INT_OFLOW", "constant %.*s results in integer overflow",
			  (int)(end - s), s);
	t->kind = TOK_INT; /* only the value is wrong: parsing continues */
}

/* Returns the end of the quoted text that begins at pos. The end is the quote, or a newline, a NUL
 * or the end of the text if that comes first. */
static uint32_t quoted_end(const struct lexer *lx, char quote)
{
	uint32_t i = lx->pos + 1;

	for (; i < lx->len && at(lx, i) != quote && at(lx, i) != '\n'; i++)
		if (at(lx, i) == '\\' && at(lx, i + 1) != '\n')
			i++;
	return i < lx->len ? i : lx->len;
}

static void text_token(struct lexer *lx, struct token *t, const char *s, size_t n)
{
	char *buf = arena_alloc(lx->cx->arena, n + 1);

	t->kind = TOK_STR;
	t->len = (uint32_t)unescape(s, n, buf);
	buf[t->len] = '\0';
	t->text = buf;
}

void lex_string(struct lexer *lx, struct token *t)
{
	uint32_t start = lx->pos + 1, end = quoted_end(lx, '"');

	lx->pos = end < lx->len && at(lx, end) == '"' ? end + 1 : end;
	t->end = lx->base + lx->pos;
	if (end >= lx->len)
		lex_error(lx, t, "D_SYNTAX",
			  "syntax error near \"\"\": closing \" expected before end-of-input");
	else if (at(lx, end) == '\n')
		lex_error(lx, t, "D_STR_NL", "newline encountered in string literal");
	else
		text_token(lx, t, lx->text + start, end - start);
}

/* Reads 'abc'. The first character is the most significant byte. */
void lex_char(struct lexer *lx, struct token *t)
{
	uint32_t start = lx->pos + 1, end = quoted_end(lx, '\'');

	lx->pos = end < lx->len && at(lx, end) == '\'' ? end + 1 : end;
	t->end = lx->base + lx->pos;
	if (end >= lx->len) {
		lex_error(lx, t, "D_SYNTAX",
			  "syntax error near \"'\": closing ' expected before end-of-input");
		return;
	}
	if (at(lx, end) == '\n') {
		lex_error(lx, t, "D_CHR_NL", "newline encountered in character constant");
		return;
	}

	cleanup_free char *buf = xmalloc(end - start + 1);
	size_t n = unescape(lx->text + start, end - start, buf);

	if (end == start)
		lex_error(lx, t, "D_CHR_NULL", "empty character constant");
	else if (n > sizeof(t->value))
		lex_error(lx, t, "D_CHR_OFLOW", "character constant is too long");
	for (size_t i = 0; i < n && i < sizeof(t->value); i++)
		t->value = t->value << 8 | (unsigned char)buf[i];
	t->kind = TOK_INT;
	t->is_char = true;
}

const char *macro_text(struct parse_cx *cx, const char *name, bool string, bool *ret_unset)
{
	struct macro_args *m = cx->macros;

	if (!m)
		return NULL;
	if (is_digit(name[0])) {
		unsigned long i = strtoul(name, NULL, 10);

		if (i < m->argc) {
			if (m->used)
				m->used[i] = true;
			return m->argv[i];
		}
		return m->defaultargs ? (string ? "" : "0") : NULL;
	}

	const struct {
		const char *name;
		int64_t value;
	} known[] = {
		{ "target", m->target }, { "pid", m->pid }, { "ppid", m->ppid },
		{ "pgid", m->pgid },     { "sid", m->sid }, { "uid", m->uid },
		{ "euid", m->euid },     { "gid", m->gid }, { "egid", m->egid },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].name, name))
			continue;
		if (i == 0 && m->target == -1) {
			*ret_unset = true;
			return NULL;
		}
		return arena_printf(cx->arena, "%lld", (long long)known[i].value);
	}
	return m->get ? m->get(m->get_arg, name) : NULL;
}

static bool is_name(const char *v)
{
	if (!is_ident_start(*v) && *v != '`')
		return false;
	while (is_ident_char(*v) || *v == '`')
		v++;
	return !*v && v[-1] != '`';
}

/* Makes a token of the macro's text: an integer or an identifier if the text has that form, else a
 * string, without its quotes. */
static void value_token(struct lexer *lx, struct token *t, const char *v)
{
	const char *digits = v + (*v == '-' || *v == '+'), *stop = v + strlen(v), *end;
	int bad;

	if (is_digit(*digits)) {
		struct token num = { 0 };
		bool fits = parse_integer(digits, stop, &num, &end, &bad);

		if (end == stop && !bad) {
			if (!fits) {
				lex_error(
					lx, t, "D_MACRO_OFLOW",
					"macro argument %.*s constant %s results in integer overflow",
					(int)(t->end - t->loc), lx->text + (t->loc - lx->base), v);
			}
			t->kind = TOK_INT;
			t->value = num.value;
			t->negative = *v == '-';
			t->is_unsigned = num.is_unsigned;
			t->longs = num.longs;
			t->based = num.based;
			return;
		}
	}
	if (is_name(v)) {
		enum token_kind kw = keyword_find(v, strlen(v));
		const char *quote = strrchr(v, '`');

		t->kind = token_class(kw) == K_TYPE && kw != TOK_STRUCT && kw != TOK_UNION &&
					  kw != TOK_ENUM
				  ? kw
				  : TOK_IDENT;
		t->text = arena_strdup(lx->cx->arena, quote ? quote + 1 : v);
		t->scoped = quote;
		while (*v == '`')
			v++;
		if (quote > v)
			t->module = arena_strndup(lx->cx->arena, v, (size_t)(quote - v));
		return;
	}

	size_t n = strlen(v);

	if (n > 1 && v[0] == '"' && v[n - 1] == '"') {
		v++;
		n -= 2;
	}
	text_token(lx, t, v, n);
}

void lex_macro(struct lexer *lx, struct token *t)
{
	bool string = at(lx, lx->pos + 1) == '$', unset = false;
	uint32_t start = lx->pos + 1 + string, end = start;
	const char *name, *v;

	if (is_digit(at(lx, end)))
		while (is_digit(at(lx, end)))
			end++;
	else
		while (is_ident_char(at(lx, end)))
			end++;
	lx->pos = end;
	t->end = lx->base + end;
	if (end == start) {
		lex_error(lx, t, "D_SYNTAX", "syntax error near \"$\"");
		return;
	}
	name = arena_strndup(lx->cx->arena, lx->text + start, end - start);
	v = macro_text(lx->cx, name, string, &unset);
	if (!v && unset) {
		/* Scripts use $target in a condition that is false without a process. Idle CPUs run
		 * process 0, and DTrace uses 0 too. */
		diag_warn(
			lx->cx->diags, t->loc, t->end, "D_MACRO_UNDEF",
			"macro variable $target is not set and taken as 0: -p and -c give a process");
		v = "0";
	}
	if (!v) {
		if (is_digit(name[0]))
			lex_error(lx, t, "D_MACRO_UNDEF", "macro argument $%s%s is not defined",
				  string ? "$" : "", name);
		else
			lex_error(lx, t, "D_MACRO_UNDEF", "macro variable $%s%s is not defined",
				  string ? "$" : "", name);
		t->kind = TOK_INT; /* an integer may stand here: parsing continues */
	} else if (string) {
		text_token(lx, t, v, strlen(v));
	} else {
		value_token(lx, t, v);
	}
}
