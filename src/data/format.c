/* Parses printf() formats into conversions. The binder checks to which types a conversion
 * applies. */
#include "data/format.h"

#include <ctype.h>

/* Conversion letters, with the size prefixes of each. */
static const struct letter {
	char c;
	enum conv_kind kind;
	const char *prefixes; /* "" none, "i" hh h l ll j z t q, "w" l or w, "L" L */
} letters[] = {
	{ 'd', CONV_SIGNED, "i" },    { 'i', CONV_SIGNED, "i" },   { 'o', CONV_UNSIGNED, "i" },
	{ 'u', CONV_UNSIGNED, "i" },  { 'x', CONV_UNSIGNED, "i" }, { 'X', CONV_UNSIGNED, "i" },
	{ 'c', CONV_CHAR, "w" },      { 'C', CONV_ESC_CHAR, "" },  { 's', CONV_STRING, "w" },
	{ 'S', CONV_ESC_STRING, "" }, { 'p', CONV_POINTER, "" },   { 'a', CONV_KADDR, "" },
	{ 'A', CONV_UADDR, "" },      { 'k', CONV_STACK, "" },     { 'T', CONV_TIME, "" },
	{ 'Y', CONV_DATE, "" },       { 'e', CONV_FLOAT, "L" },    { 'E', CONV_FLOAT, "L" },
	{ 'f', CONV_FLOAT, "L" },     { 'g', CONV_FLOAT, "L" },    { 'G', CONV_FLOAT, "L" },
	{ 'P', CONV_PORT, "" },       { 'I', CONV_INET, "" },      { 'H', CONV_UNSIGNED, "" },
	{ 'j', CONV_SIGNED, "" },     { 'L', CONV_SIGNED, "" },
};

struct parse {
	struct arena *arena;
	VEC(struct conv) convs;
	const char *error;
	uint32_t error_pos;
};

static const struct letter *find_letter(char c)
{
	for (size_t i = 0; i < ARRAY_SIZE(letters); i++)
		if (letters[i].c == c)
			return &letters[i];
	return NULL;
}

static bool fail(struct parse *p, uint32_t pos, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static bool fail(struct parse *p, uint32_t pos, const char *fmt, ...)
{
	char buf[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	p->error = arena_strdup(p->arena, buf);
	p->error_pos = pos;
	return false;
}

/* Adds the text from s to the next conversion as one piece: %% stands for %. Returns its end. */
static const char *literal(struct parse *p, const char *text, const char *s)
{
	const char *end = s;
	uint32_t len = 0;
	char *copy;

	while (*end && (*end != '%' || end[1] == '%'))
		end += *end == '%' ? 2 : 1;
	if (end == s)
		return end;
	copy = arena_alloc(p->arena, (size_t)(end - s) + 1);
	for (const char *c = s; c < end; c += *c == '%' ? 2 : 1)
		copy[len++] = *c;
	copy[len] = '\0';
	vec_push(&p->convs, (struct conv){ .kind = CONV_LITERAL,
					   .text = copy,
					   .len = len,
					   .pos = (uint32_t)(s - text) });
	return end;
}

/* number: digits. *ret is at most INT32_MAX. */
static const char *format_number(const char *s, int32_t *ret)
{
	int64_t n = 0;

	for (; isdigit((unsigned char)*s); s++)
		n = n > INT32_MAX / 10 ? INT32_MAX : n * 10 + (*s - '0');
	*ret = n > INT32_MAX ? INT32_MAX : (int32_t)n;
	return s;
}

/* flags: any of "-+# 0'@?"; width: number | "*"; precision: "." (number | "*" | ) */
static const char *modifiers(struct parse *p, const char *s, struct conv *c, uint32_t nth)
{
	bool dot = false, digits = false;

	for (;; s++) {
		switch (*s) {
		case '-':
			c->flags |= CONV_LEFT;
			c->flags &= ~(uint32_t)CONV_ZERO;
			break;
		case '+': c->flags |= CONV_PLUS; break;
		case '#': c->flags |= CONV_ALT; break;
		case ' ': c->flags |= CONV_SPACE; break;
		case '\'': c->flags |= CONV_GROUP; break;
		case '@': c->flags |= CONV_AGG; break;
		case '?': c->width = 16; break; /* as wide as a pointer in hex */
		case '*':
			if (c->flags & (dot ? CONV_DYN_PREC : CONV_DYN_WIDTH)) {
				fail(p, c->pos,
				     "format conversion #%u has more than one '*' specified for the "
				     "output %s",
				     nth, dot ? "precision" : "width");
				return NULL;
			}
			c->flags |= dot ? CONV_DYN_PREC | CONV_HAS_PREC : CONV_DYN_WIDTH;
			break;
		case '.':
			if (dot) {
				fail(p, c->pos,
				     "format conversion #%u has more than one '.' specified", nth);
				return NULL;
			}
			dot = true;
			digits = false;
			c->flags |= CONV_HAS_PREC;
			break;
		case '$':
			fail(p, c->pos,
			     "format conversion #%u uses unsupported positional format (%%n$)",
			     nth);
			return NULL;
		case '0':
			if (!dot && !digits) {
				if (!(c->flags & CONV_LEFT))
					c->flags |= CONV_ZERO;
				break;
			}
			/* fallthrough */
		case '1' ... '9':
			s = format_number(s, dot ? &c->prec : &c->width) - 1;
			digits = true;
			break;
		default: return s;
		}
	}
}

static bool prefix_ok(const struct letter *l, const char *prefix)
{
	static const char *const ints[] = { "h", "hh", "l", "ll", "j", "z", "t", "q" };

	if (!*prefix)
		return true;
	switch (l->prefixes[0]) {
	case 'i':
		for (size_t i = 0; i < ARRAY_SIZE(ints); i++)
			if (!strcmp(prefix, ints[i]))
				return true;
		return false;
	case 'w': return !strcmp(prefix, "l") || !strcmp(prefix, "w");
	case 'L': return !strcmp(prefix, "L") || !strcmp(prefix, "l");
	default: return false;
	}
}

/* conversion: "%" modifiers prefix letter. Returns the text behind it, or NULL with the error
 * set. */
static const char *conversion(struct parse *p, const char *text, const char *s, uint32_t nth)
{
	struct conv c = { .pos = (uint32_t)(s - text) };
	char prefix[4] = "";
	const struct letter *l;
	size_t n = 0;

	s = modifiers(p, s + 1, &c, nth);
	if (!s)
		return NULL;
	while (*s && strchr("hlLwjztq", *s) && n < sizeof(prefix) - 1) {
		/* %j and %L are whole conversions when no letter follows. */
		if ((*s == 'j' || *s == 'L') && !isalpha((unsigned char)s[1]))
			break;
		prefix[n++] = *s++;
	}
	prefix[n] = 0;
	if (!*s)
		return fail(p, c.pos,
			    "format conversion #%u name expected before end of format string", nth),
		       NULL;
	if (*s == '%')
		return fail(p, c.pos,
			    "format conversion #%u cannot be combined with other format flags: %%%%",
			    nth),
		       NULL;
	l = find_letter(*s);
	if (!l || !prefix_ok(l, prefix))
		return fail(p, c.pos, "format conversion #%u is undefined: %%%s%c", nth, prefix,
			    *s),
		       NULL;
	c.kind = l->kind;
	c.spec = *s == 'H' ? 'x' : *s == 'j' || *s == 'L' ? 'd' : *s;
	if (!strcmp(prefix, "hh"))
		c.size = 1;
	else if (!strcmp(prefix, "h"))
		c.size = 2;
	else if (!strcmp(prefix, "w") || (l->prefixes[0] == 'w' && *prefix))
		c.size = 4; /* wchar_t */
	else if (*prefix == 'L')
		c.size = 16;
	else if (*prefix)
		c.size = 8;
	vec_push(&p->convs, c);
	return s + 1;
}

bool format_parse(struct arena *a, const char *text, struct format **ret, const char **ret_error,
		  uint32_t *ret_pos)
{
	struct parse p = { .arena = a };
	struct format *f;
	const char *s = text;
	uint32_t nth = 1;

	while (*s) {
		s = literal(&p, text, s);
		if (!*s)
			break;
		s = conversion(&p, text, s, nth++);
		if (!s) {
			vec_fini(&p.convs);
			*ret_error = p.error;
			*ret_pos = p.error_pos;
			return false;
		}
	}
	f = arena_new(a, struct format);
	f->text = arena_strdup(a, text);
	f->n = p.convs.n;
	f->convs = arena_array(a, struct conv, p.convs.n ? p.convs.n : 1);
	if (p.convs.n)
		memcpy(f->convs, p.convs.v, sizeof(*f->convs) * p.convs.n);
	vec_fini(&p.convs);
	*ret = f;
	return true;
}

uint32_t format_nargs(const struct format *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct conv *c = &f->convs[i];

		if (c->kind == CONV_LITERAL)
			continue;
		n += !!(c->flags & CONV_DYN_WIDTH) + !!(c->flags & CONV_DYN_PREC) +
		     !(c->flags & CONV_AGG);
	}
	return n;
}
