/* Prints types as C text, and parses C text into types. */
#include <ctype.h>
#include <string.h>

#include "type_private.h"

/* --- base types by their words, in any order: "long unsigned int" --- */

bool name_base_type(const char *text, type_id *ret)
{
	enum {
		W_VOID,
		W_CHAR,
		W_INT,
		W_FLOAT,
		W_DOUBLE,
		W_BOOL,
		W_SHORT,
		W_LONG,
		W_SIGNED,
		W_UNSIGNED,
		W_COUNT
	};
	static const char *const words[W_COUNT] = {
		"void",  "char",  "int",  "float",  "double",
		"_Bool", "short", "long", "signed", "unsigned",
	};
	uint8_t n[W_COUNT] = { 0 };
	uint32_t total = 0, bases = 0;

	while (*text) {
		size_t len;
		uint32_t w;

		if (isspace((unsigned char)*text)) {
			text++;
			continue;
		}
		len = strcspn(text, " \t\n");
		for (w = 0; w < W_COUNT; w++) {
			if (len == strlen(words[w]) && !memcmp(text, words[w], len))
				break;
		}
		if (w == W_COUNT || ++total > 4)
			return false;
		n[w]++;
		text += len;
	}
	for (uint32_t w = W_VOID; w <= W_BOOL; w++)
		bases += n[w];
	if (!total || bases > 1 || n[W_SHORT] > 1 || n[W_LONG] > 2 ||
	    n[W_SIGNED] + n[W_UNSIGNED] > 1)
		return false;
	if (n[W_VOID] || n[W_FLOAT] || n[W_BOOL]) {
		if (total > 1)
			return false;
		*ret = n[W_VOID] ? T_VOID : n[W_FLOAT] ? T_FLOAT : T_BOOL;
		return true;
	}
	if (n[W_DOUBLE]) {
		if (total != 1u + n[W_LONG] || n[W_LONG] > 1)
			return false;
		*ret = n[W_LONG] ? T_LDOUBLE : T_DOUBLE;
		return true;
	}
	if (n[W_SHORT] && n[W_LONG])
		return false;
	if (n[W_CHAR]) {
		if (n[W_SHORT] || n[W_LONG])
			return false;
		*ret = n[W_UNSIGNED] ? T_UCHAR : n[W_SIGNED] ? T_SCHAR : T_CHAR;
		return true;
	}
	*ret = n[W_SHORT] ? T_SHORT : n[W_LONG] == 2 ? T_LLONG : n[W_LONG] ? T_LONG : T_INT;
	*ret += n[W_UNSIGNED];
	return true;
}
_Static_assert(T_USHORT == T_SHORT + 1 && T_UINT == T_INT + 1 && T_ULONG == T_LONG + 1 &&
		       T_ULLONG == T_LLONG + 1,
	       "each unsigned type follows its signed one");

/* --- printing ---
 *
 * A declarator is built from the inside out. `inner` is the text around the name so far. Each step
 * towards the base type adds to it: a pointer puts a star in front, an array or function puts text
 * behind. */

struct printer {
	struct type_graph *g;
	struct arena *a;
	uint32_t work;
};

enum {
	PRINT_LIMIT = 400, /* steps; beyond, "..." */
	STEP_TEXT = 1024,  /* bytes of text that are copied in a step; a name may have 16,384 */
};

enum { Q_CONST = 1, Q_VOLATILE = 2, Q_RESTRICT = 4 };

static uint32_t qualifier(enum type_kind kind)
{
	switch (kind) {
	case TYPE_CONST: return Q_CONST;
	case TYPE_VOLATILE: return Q_VOLATILE;
	case TYPE_RESTRICT: return Q_RESTRICT;
	default: return 0;
	}
}

static const char *qualified(struct printer *p, uint32_t q, const char *after)
{
	if (!q)
		return after;
	return arena_printf(p->a, "%s%s%s%s", q & Q_CONST ? "const " : "",
			    q & Q_VOLATILE ? "volatile " : "", q & Q_RESTRICT ? "restrict " : "",
			    after);
}

static const char *trim(struct printer *p, const char *s)
{
	size_t n = strlen(s);

	return n && s[n - 1] == ' ' ? arena_strndup(p->a, s, n - 1) : s;
}

static const char *base_text(struct type_graph *g, struct printer *p, type_id t)
{
	const struct tnode *n = tnode(g, t);
	const char *tag = NULL;

	switch (n->kind) {
	case TYPE_STRUCT: tag = "struct"; break;
	case TYPE_UNION: tag = "union"; break;
	case TYPE_ENUM: tag = "enum"; break;
	case TYPE_FORWARD: tag = n->is_union ? "union" : "struct"; break;
	default: return *n->name ? n->name : "?";
	}
	return *n->name ? arena_printf(p->a, "%s %s", tag, n->name) : tag;
}

static const char *declare(struct printer *p, type_id t, uint32_t quals, const char *inner);

static const char *params_text(struct printer *p, type_id t)
{
	const char *s = "";
	uint32_t n;
	bool varargs;
	const struct type_param *prm = type_params(p->g, t, &n, &varargs);

	if (!n && !varargs)
		return "void";
	for (uint32_t i = 0; i < n; i++) {
		if (p->work > PRINT_LIMIT)
			return arena_printf(p->a, "%s%s...", s, i ? ", " : "");
		s = arena_printf(p->a, "%s%s%s", s, i ? ", " : "", declare(p, prm[i].type, 0, ""));
		p->work += (uint32_t)(strlen(s) / STEP_TEXT);
	}
	return varargs ? arena_printf(p->a, "%s%s...", s, n ? ", " : "") : s;
}

static const char *declare(struct printer *p, type_id t, uint32_t quals, const char *inner)
{
	for (;;) {
		struct tnode *n = tnode(p->g, t);
		enum type_kind ref;

		p->work += 1 + (uint32_t)(strlen(inner) / STEP_TEXT);
		if (p->work > PRINT_LIMIT)
			return *inner ? arena_printf(p->a, "... %s", inner) : "...";
		switch (n->kind) {
		case TYPE_CONST:
		case TYPE_VOLATILE:
		case TYPE_RESTRICT:
			quals |= qualifier(n->kind);
			t = type_ref(p->g, t);
			break;
		case TYPE_POINTER:
			inner = arena_printf(p->a, "*%s",
					     quals ? trim(p, qualified(p, quals, inner)) : inner);
			quals = 0;
			t = type_ref(p->g, t);
			/* A qualified array or function still needs the parentheses. */
			ref = tnode(p->g, t)->kind;
			for (type_id r = t; qualifier(ref) && ++p->work < PRINT_LIMIT;
			     ref = tnode(p->g, r)->kind)
				r = type_ref(p->g, r);
			if (ref == TYPE_ARRAY || ref == TYPE_FUNC)
				inner = arena_printf(p->a, "(%s)", inner);
			break;
		case TYPE_ARRAY:
			inner = n->nelems ? arena_printf(p->a, "%s[%u]", inner, n->nelems)
					  : arena_printf(p->a, "%s[]", inner);
			t = type_ref(p->g, t);
			break;
		case TYPE_FUNC:
			inner = arena_printf(p->a, "%s(%s)", inner, params_text(p, t));
			quals = 0;
			t = type_ref(p->g, t);
			break;
		default:
			return arena_printf(p->a, "%s%s%s",
					    qualified(p, quals, base_text(p->g, p, t)),
					    *inner ? " " : "", inner);
		}
	}
}

const char *type_name(struct type_graph *g, struct arena *a, type_id t, const char *name)
{
	struct printer p = { .g = g, .a = a };

	return declare(&p, t, 0, name ? name : "");
}

/* --- reading ---
 *
 *	type       = {qualifier} specifier {qualifier} abstract
 *	specifier  = ("struct" | "union" | "enum") [module "`"] tag | base word {base word} | [module "`"] typedef
 *	abstract   = {"*" {qualifier}} ["(" abstract ")"] {"[" [number] "]" | "(" [params] ")"}
 *	params     = "void" | type {"," type} ["," "..."]
 */

struct reader {
	struct type_graph *g;
	const char *s;
	uint32_t depth;
};

enum { READ_DEPTH = 32, PARAMS_MAX = 64, WORD_MAX = 256 };

static void skip_space(struct reader *r)
{
	while (isspace((unsigned char)*r->s))
		r->s++;
}

static bool accept(struct reader *r, char c)
{
	skip_space(r);
	if (*r->s != c)
		return false;
	r->s++;
	return true;
}

/* Finds the identifier at the cursor without taking it. Returns its length, 0 when there is
 * none. */
static size_t peek_word(struct reader *r)
{
	size_t n = 0;

	skip_space(r);
	if (isdigit((unsigned char)*r->s))
		return 0;
	while (isalnum((unsigned char)r->s[n]) || r->s[n] == '_' || (n && r->s[n] == '$'))
		n++;
	return n < WORD_MAX ? n : 0;
}

static bool accept_word(struct reader *r, const char *word)
{
	size_t n = peek_word(r);

	if (!n || n != strlen(word) || memcmp(r->s, word, n))
		return false;
	r->s += n;
	return true;
}

static bool take_word(struct reader *r, char *buf)
{
	size_t n = peek_word(r);

	memcpy(buf, r->s, n);
	buf[n] = '\0';
	r->s += n;
	return n;
}

static uint32_t read_qualifiers(struct reader *r)
{
	uint32_t q = 0;

	for (;;) {
		if (accept_word(r, "const") || accept_word(r, "__const"))
			q |= Q_CONST;
		else if (accept_word(r, "volatile"))
			q |= Q_VOLATILE;
		else if (accept_word(r, "restrict") || accept_word(r, "__restrict"))
			q |= Q_RESTRICT;
		else
			return q;
	}
}

static type_id apply(struct type_graph *g, type_id t, uint32_t q)
{
	if (q & Q_CONST)
		t = type_new_qualified(g, TYPE_CONST, t);
	if (q & Q_VOLATILE)
		t = type_new_qualified(g, TYPE_VOLATILE, t);
	if (q & Q_RESTRICT)
		t = type_new_qualified(g, TYPE_RESTRICT, t);
	return t;
}

/* Takes name, or module`name. */
static bool take_name(struct reader *r, char *module, char *name)
{
	*module = '\0';
	if (!take_word(r, name))
		return false;
	if (*r->s != '`')
		return true;
	strcpy(module, name);
	r->s++;
	return take_word(r, name);
}

static bool read_specifier(struct reader *r, type_id *ret)
{
	static const char *const tags[] = { "struct", "union", "enum" };
	static const enum type_kind kinds[] = { TYPE_STRUCT, TYPE_UNION, TYPE_ENUM };
	char module[WORD_MAX], name[WORD_MAX], words[WORD_MAX * 2] = "";
	const char *start;
	uint32_t q = read_qualifiers(r);
	type_id t;

	skip_space(r);
	start = r->s;
	if (!take_name(r, module, name))
		return false;
	for (uint32_t i = 0; i < ARRAY_SIZE(tags); i++) {
		if (strcmp(name, tags[i]))
			continue;
		if (*module) {
			char again[WORD_MAX];

			if (!take_word(r, again) || !type_lookup(r->g, module, kinds[i], again, &t))
				return false;
		} else if (!take_name(r, module, name) ||
			   !type_lookup(r->g, module, kinds[i], name, &t)) {
			return false;
		}
		*ret = apply(r->g, t, q | read_qualifiers(r));
		return true;
	}
	/* Take all base words, with qualifiers between them. */
	if (!*module) {
		r->s = start;
		for (;;) {
			const char *before = r->s;
			type_id part;

			q |= read_qualifiers(r);
			if (!take_word(r, name) ||
			    strlen(words) + strlen(name) + 2 > sizeof(words) ||
			    !name_base_type(name, &part)) {
				r->s = before;
				break;
			}
			strcat(words, " ");
			strcat(words, name);
		}
		if (*words) {
			if (!name_base_type(words, &t))
				return false;
			*ret = apply(r->g, t, q | read_qualifiers(r));
			return true;
		}
		r->s = start;
		take_name(r, module, name);
	}
	if (!type_lookup(r->g, module, TYPE_TYPEDEF, name, &t))
		return false;
	*ret = apply(r->g, t, q | read_qualifiers(r));
	return true;
}

static bool read_type(struct reader *r, type_id *ret);

static bool read_params(struct reader *r, type_id *t)
{
	struct type_param params[PARAMS_MAX];
	bool varargs = false;
	uint32_t n = 0;

	do {
		skip_space(r);
		if (!strncmp(r->s, "...", 3)) {
			r->s += 3;
			varargs = true;
			break;
		}
		if (!n && *r->s == ')')
			break;
		if (n == PARAMS_MAX || !read_type(r, &params[n].type))
			return false;
		params[n++].name = "";
	} while (accept(r, ','));
	if (!accept(r, ')'))
		return false;
	if (n == 1 && !varargs && params[0].type == T_VOID)
		n = 0;
	*t = type_new_func(r->g, *t, params, n, varargs);
	return true;
}

/* Reads dimensions. "[2][3]" is an array of 2 arrays of 3: the last dimension is the innermost. */
static bool read_arrays(struct reader *r, type_id *t)
{
	uint64_t n = 0;

	if (r->depth == READ_DEPTH)
		return false;
	skip_space(r);
	if (isdigit((unsigned char)*r->s)) {
		char *end;

		n = strtoull(r->s, &end, 0);
		r->s = end;
	}
	if (n > UINT32_MAX || !accept(r, ']'))
		return false;
	if (accept(r, '[')) {
		r->depth++;
		if (!read_arrays(r, t))
			return false;
		r->depth--;
	}
	*t = type_new_array(r->g, *t, (uint32_t)n);
	return true;
}

static bool read_suffix(struct reader *r, type_id *t)
{
	if (accept(r, '('))
		return read_params(r, t);
	return !accept(r, '[') || read_arrays(r, t);
}

/* Returns true when "(" opens a nested declarator, because one of * ( [ follows, and false for a
 * parameter list. */
static bool nested_follows(struct reader *r)
{
	const char *s;

	skip_space(r);
	if (*r->s != '(')
		return false;
	s = r->s + 1;
	while (isspace((unsigned char)*s))
		s++;
	return *s == '*' || *s == '(' || *s == '[';
}

static const char *matching_paren(const char *s)
{
	uint32_t open = 0;

	for (; *s; s++) {
		if (*s == '(')
			open++;
		else if (*s == ')' && !--open)
			return s;
	}
	return NULL;
}

static bool read_abstract(struct reader *r, type_id *t)
{
	bool ok;

	if (++r->depth > READ_DEPTH)
		return false;
	while (accept(r, '*'))
		*t = apply(r->g, type_new_pointer(r->g, *t), read_qualifiers(r));
	if (nested_follows(r)) {
		/* The text behind the parentheses is nearer to the base type than the text in
		 * them. */
		const char *inside = r->s + 1, *close = matching_paren(r->s), *after;

		if (!close)
			return false;
		r->s = close + 1;
		if (!read_suffix(r, t))
			return false;
		after = r->s;
		r->s = inside;
		ok = read_abstract(r, t);
		skip_space(r);
		ok = ok && r->s == close;
		r->s = after;
	} else {
		ok = read_suffix(r, t);
	}
	r->depth--;
	return ok;
}

static bool read_type(struct reader *r, type_id *ret)
{
	type_id t;

	if (++r->depth > READ_DEPTH || !read_specifier(r, &t) || !read_abstract(r, &t))
		return false;
	r->depth--;
	*ret = t;
	return true;
}

bool type_parse_name(struct type_graph *g, const char *text, type_id *ret)
{
	struct reader r = { .g = g, .s = text };
	type_id t;

	if (!read_type(&r, &t))
		return false;
	skip_space(&r);
	if (*r.s)
		return false;
	*ret = t;
	return true;
}
