/* Reads prototype files: ltrace's configuration language.
 *
 *	file    = { line }
 *	line    = [ typedef | function | import ] [ ( ";" | "#" ) comment ]
 *	typedef = "typedef" NAME "=" type
 *	function= [ "function" ] type NAME "(" [ param { "," param } ] ")"
 *	param   = [ "+" ] type
 *	import  = "import" '"' NAME '"'
 *	type    = base { "*" }
 */
#include "program/prototype/prototype.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

enum { MAX_FIELDS = 256, MAX_STRUCT = 1 << 20 };

struct parser {
	struct prototypes *set;
	const char *at, *end; /* of the line */
	char message[160];    /* the error in the line; "": none */
	uint32_t depth;
	const char *file; /* the name of the text */
	uint32_t text;    /* its number, from 1 */
};

/* A name of a type, and the text that defined it. */
struct type_name {
	struct prototype_type *type;
	uint32_t text;
};

static const struct prototype_type *parse_type(struct parser *p);

void prototypes_init(struct prototypes *p)
{
	memset(p, 0, sizeof(*p));
	arena_init(&p->arena);
}

void prototypes_fini(struct prototypes *p)
{
	hash_fini(&p->types);
	hash_fini(&p->functions);
	arena_fini(&p->arena);
}

static void __attribute__((format(printf, 2, 3))) wrong(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	if (*p->message)
		return; /* the first error is reported */
	va_start(ap, fmt);
	vsnprintf(p->message, sizeof(p->message), fmt, ap);
	va_end(ap);
}

static void skip_blanks(struct parser *p)
{
	while (p->at < p->end && isspace((unsigned char)*p->at))
		p->at++;
}

static bool takes(struct parser *p, char c)
{
	skip_blanks(p);
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static bool expect(struct parser *p, char c)
{
	if (takes(p, c))
		return true;
	if (p->at == p->end)
		wrong(p, "the line ends where a '%c' is expected", c);
	else
		wrong(p, "a '%c' is expected, not '%.*s'", c,
		      (int)(p->end - p->at > 20 ? 20 : p->end - p->at), p->at);
	return false;
}

/* Takes a name: letters, digits, '_', and '.' and '@' within symbol names. Returns NULL when there
 * is none. */
static const char *take_name(struct parser *p)
{
	const char *from;

	skip_blanks(p);
	from = p->at;
	while (p->at < p->end && (isalnum((unsigned char)*p->at) || strchr("_.@$", *p->at)))
		p->at++;
	return p->at == from ? NULL : arena_strndup(&p->set->arena, from, (size_t)(p->at - from));
}

static const char *need_name(struct parser *p, const char *what)
{
	const char *name = take_name(p);

	if (!name)
		wrong(p, "%s is expected", what);
	return name;
}

/* Takes a whole number: decimal, 0x..., or 0... in octal. */
static bool parse_take_number(struct parser *p, int64_t *ret)
{
	char text[32], *end;
	size_t n = 0;

	skip_blanks(p);
	while (p->at + n < p->end && n + 1 < sizeof(text) &&
	       (isalnum((unsigned char)p->at[n]) || (!n && p->at[n] == '-'))) {
		text[n] = p->at[n];
		n++;
	}
	text[n] = '\0';
	*ret = *text == '-' ? strtoll(text, &end, 0) : (int64_t)strtoull(text, &end, 0);
	if (!n || *end)
		return false;
	p->at += n;
	return true;
}

static struct prototype_type *new_type(struct parser *p, enum prototype_kind kind, uint32_t size)
{
	struct prototype_type *t = arena_new(&p->set->arena, struct prototype_type);

	t->kind = kind;
	t->size = size;
	t->align = size ? size : 1;
	return t;
}

static const struct prototype_type *pointer_to(struct parser *p,
					       const struct prototype_type *target)
{
	struct prototype_type *t = new_type(p, PROTOTYPE_POINTER, 8);

	t->target = target;
	return t;
}

static const struct prototype_type *with_lens(struct parser *p, const struct prototype_type *of,
					      enum prototype_lens lens)
{
	struct prototype_type *t = arena_new(&p->set->arena, struct prototype_type);

	*t = *of;
	t->lens = lens;
	return t;
}

static const struct prototype_type *integer(struct parser *p, uint32_t size, bool is_signed,
					    enum prototype_lens lens)
{
	struct prototype_type *t = new_type(p, PROTOTYPE_INT, size);

	t->is_signed = is_signed;
	t->lens = lens;
	return t;
}

/* Reads the digits behind the word in "arg2", "elt1". */
static bool numbered(const char *name, const char *word, uint64_t *ret)
{
	size_t n = strlen(word);
	char *end;

	if (strncmp(name, word, n) || !isdigit((unsigned char)name[n]))
		return false;
	*ret = strtoull(name + n, &end, 10);
	return !*end && *ret > 0;
}

/* length = NUMBER | "argN" | "eltN" | "retval" | "arg0" | "zero" [ "(" length ")" ] */
static struct prototype_length parse_length(struct parser *p)
{
	struct prototype_length l = { 0 };
	const char *name;
	int64_t v;

	skip_blanks(p);
	if (p->at < p->end && (isdigit((unsigned char)*p->at) || *p->at == '-')) {
		if (!parse_take_number(p, &v) || v < 0)
			wrong(p, "a length is a number from 0");
		l.value = (uint64_t)v;
		return l;
	}
	name = need_name(p, "a length (a number, argN, eltN, retval, zero)");
	if (!name)
		return l;
	if (!strcmp(name, "arg0")) {
		l.count = COUNT_RESULT;
	} else if (numbered(name, "arg", &l.value)) {
		l.count = COUNT_ARG;
	} else if (numbered(name, "elt", &l.value)) {
		l.count = COUNT_ELEMENT;
	} else if (!strcmp(name, "retval")) {
		l.count = COUNT_RESULT;
	} else if (!strcmp(name, "zero")) {
		if (takes(p, '(')) {
			if (++p->depth > PROTOTYPE_DEPTH)
				wrong(p, "lengths are nested too deep");
			else
				l = parse_length(p);
			p->depth--;
			expect(p, ')');
		} else {
			l.count = COUNT_ZERO;
		}
		l.zero = true;
	} else {
		wrong(p, "%s is no length: a number, argN, eltN, retval or zero", name);
	}
	return l;
}

/* Counts n elements of t. A few lines can name more of them than a walk could visit in a year, and
 * their sizes, which may be 0, do not limit them. */
static void contain(struct parser *p, struct prototype_type *t,
		    const struct prototype_type *element, uint32_t n)
{
	uint64_t parts = t->parts + (uint64_t)n * (1 + element->parts);

	if (parts > PROTOTYPE_PARTS)
		wrong(p, "a type has at most %d parts", PROTOTYPE_PARTS);
	else
		t->parts = (uint32_t)parts;
	if (t->nested < element->nested + 1)
		t->nested = element->nested + 1;
	if (t->nested > PROTOTYPE_NESTED)
		wrong(p, "types are nested deeper than %d", PROTOTYPE_NESTED);
}

static const struct prototype_type *array_of(struct parser *p, const struct prototype_type *target,
					     struct prototype_length length)
{
	struct prototype_type *t = new_type(p, PROTOTYPE_ARRAY, 0);

	if (!target->size)
		wrong(p, "an array's elements have a size");
	if (length.count == COUNT_NUMBER && target->size) {
		if (length.value > MAX_STRUCT / target->size)
			wrong(p, "an array has at most %d bytes", MAX_STRUCT);
		else
			t->size = (uint32_t)length.value * target->size;
	}
	t->target = target;
	t->length = length;
	t->align = target->align;
	contain(p, t, target,
		length.count == COUNT_NUMBER && length.value < PROTOTYPE_ELEMENTS
			? (uint32_t)length.value
			: PROTOTYPE_ELEMENTS);
	return t;
}

/* Makes a pointer to text of that length. */
static const struct prototype_type *parse_text_of(struct parser *p, struct prototype_length length,
						  enum prototype_lens lens)
{
	const struct prototype_type *t = integer(p, 1, true, LENS_CHAR);

	return with_lens(p, pointer_to(p, array_of(p, t, length)), lens);
}

static const struct prototype_type *text_zero(struct parser *p, enum prototype_lens lens)
{
	return parse_text_of(p, (struct prototype_length){ .count = COUNT_ZERO, .zero = true },
			     lens);
}

/* "struct" [ "(" type [ NAME ] { "," type [ NAME ] } ")" ]: without the list, its members are not
 * known. */
static const struct prototype_type *parse_struct(struct parser *p)
{
	const struct prototype_type *fields[MAX_FIELDS];
	const char *names[MAX_FIELDS];
	struct prototype_type *t = new_type(p, PROTOTYPE_STRUCT, 0);
	uint64_t size = 0;

	skip_blanks(p);
	if (p->at == p->end || *p->at != '(') {
		t->lens = LENS_DOTS;
		t->unknown = true;
		return t;
	}
	p->at++;
	if (takes(p, ')'))
		return t;
	do {
		const struct prototype_type *f = parse_type(p);

		if (t->nfields == MAX_FIELDS) {
			wrong(p, "a structure has at most %d elements", MAX_FIELDS);
			break;
		}
		if (*p->message)
			break;
		if (f->kind == PROTOTYPE_VOID)
			wrong(p, "a structure's element cannot be void");
		if (f->unknown)
			wrong(p, "an element is a structure whose own elements are not known");
		contain(p, t, f, 1);
		names[t->nfields] = take_name(p);
		fields[t->nfields++] = f;
		size = round_up(size, f->align) + f->size;
		if (f->align > t->align)
			t->align = f->align;
	} while (takes(p, ','));
	expect(p, ')');
	size = round_up(size, t->align);
	if (size > MAX_STRUCT)
		wrong(p, "a structure has at most %d bytes", MAX_STRUCT);
	t->size = size > MAX_STRUCT ? 0 : (uint32_t)size;
	t->fields = arena_array(&p->set->arena, const struct prototype_type *, t->nfields + 1);
	memcpy(t->fields, fields, t->nfields * sizeof(*fields));
	t->field_names = arena_array(&p->set->arena, const char *, t->nfields + 1);
	memcpy(t->field_names, names, t->nfields * sizeof(*names));
	return t;
}

/* ( "enum" | "flags" ) [ "[" type "]" ] "(" NAME [ "=" NUMBER [ "/" NUMBER ] ] { "," ... } ")" */
static const struct prototype_type *parse_enum(struct parser *p, enum prototype_lens lens)
{
	VEC(struct prototype_name) names = { 0 };
	const struct prototype_type *base = integer(p, 4, true, LENS_DEFAULT);
	struct prototype_type *t;
	struct prototype_name *copy;
	int64_t next = 0;

	if (takes(p, '[')) {
		base = parse_type(p);
		if (!*p->message && base->kind != PROTOTYPE_INT)
			wrong(p, "an enum's type is a whole number's");
		expect(p, ']');
	}
	if (!expect(p, '('))
		return base;
	do {
		const char *name = need_name(p, "a name of the enum");
		int64_t mask;

		if (!name)
			break;
		if (takes(p, '=')) {
			skip_blanks(p);
			if (p->at < p->end && *p->at == '\'' && p->end - p->at > 2 &&
			    p->at[2] == '\'') {
				next = p->at[1];
				p->at += 3;
			} else if (!parse_take_number(p, &next)) {
				wrong(p, "a number is expected behind %s =", name);
				break;
			}
		}
		mask = next;
		if (takes(p, '/') && !parse_take_number(p, &mask)) {
			wrong(p, "a number is expected behind the '/' of %s", name);
			break;
		}
		vec_push(&names, (struct prototype_name){ name, next, mask });
		next = (int64_t)((uint64_t)next + 1);
	} while (takes(p, ','));
	expect(p, ')');
	t = (struct prototype_type *)with_lens(p, base, lens);
	copy = arena_array(&p->set->arena, struct prototype_name, names.n + 1);
	if (names.n)
		memcpy(copy, names.v, names.n * sizeof(*copy));
	t->names = copy;
	t->nnames = names.n;
	vec_fini(&names);
	return t;
}

/* "array" "(" type "," length ")" */
static const struct prototype_type *parse_array(struct parser *p)
{
	const struct prototype_type *t;
	struct prototype_length l = { 0 };

	expect(p, '(');
	t = parse_type(p);
	if (expect(p, ','))
		l = parse_length(p);
	expect(p, ')');
	return *p->message ? t : array_of(p, t, l);
}

/* "string" [ "(" type ")" | "[" length "]" | N ]: N is the argument with the length. */
static const struct prototype_type *parse_string(struct parser *p, const char *name)
{
	const struct prototype_type *t;
	struct prototype_length l = { .count = COUNT_ARG };

	if (numbered(name, "string", &l.value)) {
		l.zero = true;
		return parse_text_of(p, l, LENS_STRING);
	}
	if (takes(p, '[')) {
		l = parse_length(p);
		l.zero = true;
		expect(p, ']');
		return parse_text_of(p, l, LENS_STRING);
	}
	if (!takes(p, '('))
		return text_zero(p, LENS_STRING);
	t = parse_type(p);
	expect(p, ')');
	if (*p->message)
		return t;
	if (t->kind == PROTOTYPE_INT && t->size == 1) /* a char: any number of them */
		return text_zero(p, LENS_STRING);
	if (t->kind == PROTOTYPE_POINTER && t->target->kind != PROTOTYPE_ARRAY &&
	    t->target->size == 1)
		return text_zero(p, LENS_STRING);
	return with_lens(p, t, LENS_STRING);
}

/* "format" [ "(" type ")" ]: the type is a string's. */
static const struct prototype_type *parse_format(struct parser *p)
{
	const struct prototype_type *t;

	if (!takes(p, '('))
		return text_zero(p, LENS_FORMAT);
	t = parse_type(p);
	expect(p, ')');
	if (!*p->message && !prototype_is_text(t) && !prototype_is_wide(t))
		wrong(p, "a format is a string");
	return with_lens(p, t, LENS_FORMAT);
}

static const struct prototype_type *lens_of(struct parser *p, enum prototype_lens lens)
{
	const struct prototype_type *t;

	if (!expect(p, '('))
		return new_type(p, PROTOTYPE_VOID, 0);
	t = parse_type(p);
	expect(p, ')');
	if (*p->message)
		return t;
	/* of what the pointer points to: "hex(uint*)" */
	if (lens != LENS_HIDE && lens != LENS_BITVEC && t->kind == PROTOTYPE_POINTER &&
	    (t->target->kind == PROTOTYPE_INT || t->target->kind == PROTOTYPE_FLOAT))
		return pointer_to(p, with_lens(p, t->target, lens));
	return with_lens(p, t, lens);
}

/* "errno" "(" type ")": a result of which -1 or an address of 0 means failure. */
static const struct prototype_type *parse_failing(struct parser *p)
{
	struct prototype_type *r = arena_new(&p->set->arena, struct prototype_type);

	if (!expect(p, '('))
		return new_type(p, PROTOTYPE_VOID, 0);
	*r = *parse_type(p);
	expect(p, ')');
	r->fails = true;
	return r;
}

static const struct prototype_type *simple_type(struct parser *p, const char *name)
{
	static const struct {
		const char *name;
		uint8_t size;
		bool is_signed;
		enum prototype_lens lens;
	} integers[] = {
		{ "int", 4, true, LENS_DEFAULT },   { "uint", 4, false, LENS_DEFAULT },
		{ "long", 8, true, LENS_DEFAULT },  { "ulong", 8, false, LENS_DEFAULT },
		{ "short", 2, true, LENS_DEFAULT }, { "ushort", 2, false, LENS_DEFAULT },
		{ "llong", 8, true, LENS_DEFAULT }, { "ullong", 8, false, LENS_DEFAULT },
		{ "char", 1, true, LENS_CHAR },     { "uchar", 1, false, LENS_CHAR },
		{ "octal", 4, false, LENS_OCT },    { "addr", 8, false, LENS_HEX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(integers); i++)
		if (!strcmp(name, integers[i].name))
			return integer(p, integers[i].size, integers[i].is_signed,
				       integers[i].lens);
	if (!strcmp(name, "void"))
		return new_type(p, PROTOTYPE_VOID, 0);
	if (!strcmp(name, "float"))
		return new_type(p, PROTOTYPE_FLOAT, 4);
	if (!strcmp(name, "double"))
		return new_type(p, PROTOTYPE_FLOAT, 8);
	if (!strcmp(name, "ldouble"))
		return new_type(p, PROTOTYPE_FLOAT, 16);
	if (!strcmp(name, "file"))
		return with_lens(p, pointer_to(p, new_type(p, PROTOTYPE_VOID, 0)), LENS_HEX);
	return NULL;
}

static const struct prototype_type *parse_base(struct parser *p)
{
	static const struct {
		const char *name;
		enum prototype_lens lens;
	} lenses[] = {
		{ "hex", LENS_HEX },       { "oct", LENS_OCT },   { "octal", LENS_OCT },
		{ "bool", LENS_BOOL },     { "hide", LENS_HIDE }, { "bitvec", LENS_BITVEC },
		{ "guess", LENS_DEFAULT },
	};
	const char *name = need_name(p, "a type");
	const struct prototype_type *t;
	const uint64_t *known;

	if (!name)
		return new_type(p, PROTOTYPE_VOID, 0);
	if (!strcmp(name, "struct"))
		return parse_struct(p);
	if (!strcmp(name, "enum"))
		return parse_enum(p, LENS_ENUM);
	if (!strcmp(name, "flags"))
		return parse_enum(p, LENS_FLAGS);
	if (!strcmp(name, "errno"))
		return parse_failing(p);
	if (!strcmp(name, "array"))
		return parse_array(p);
	if (!strcmp(name, "format"))
		return parse_format(p);
	if (!strcmp(name, "string") ||
	    (!strncmp(name, "string", 6) && isdigit((unsigned char)name[6])))
		return parse_string(p, name);
	known = hash_get(&p->set->types, name, strlen(name));
	if (known)
		return ((const struct type_name *)(uintptr_t)*known)->type;
	skip_blanks(p);
	for (size_t i = 0; i < ARRAY_SIZE(lenses) && p->at < p->end && *p->at == '('; i++)
		if (!strcmp(name, lenses[i].name))
			return lens_of(p, lenses[i].lens);
	t = simple_type(p, name);
	if (!t) {
		wrong(p, "there is no type %s", name);
		t = new_type(p, PROTOTYPE_VOID, 0);
	}
	return t;
}

static const struct prototype_type *parse_type(struct parser *p)
{
	const struct prototype_type *t;
	uint32_t stars = 0;

	if (++p->depth > PROTOTYPE_DEPTH) {
		wrong(p, "types are nested deeper than %d", PROTOTYPE_DEPTH);
		t = new_type(p, PROTOTYPE_VOID, 0);
	} else {
		t = parse_base(p);
	}
	while (!*p->message && takes(p, '*')) {
		if (++stars > PROTOTYPE_DEPTH)
			wrong(p, "more than %d stars", PROTOTYPE_DEPTH);
		t = pointer_to(p, t);
	}
	p->depth--;
	return t;
}

/* Returns true when the rest of the line is a comment. */
static bool ends(struct parser *p)
{
	skip_blanks(p);
	if (!*p->message && p->at < p->end && *p->at != ';' && *p->at != '#')
		wrong(p, "what is \"%.*s\"?", (int)(p->end - p->at > 20 ? 20 : p->end - p->at),
		      p->at);
	return !*p->message;
}

/* Gives the structure that the same text has announced its elements, so that pointers to it lead
 * to them. */
static void complete(struct prototype_type *announced, const struct prototype_type *t)
{
	announced->size = t->size;
	announced->align = t->align;
	announced->parts = t->parts;
	announced->nested = t->nested;
	announced->fields = t->fields;
	announced->field_names = t->field_names;
	announced->nfields = t->nfields;
	announced->lens = t->lens;
	announced->unknown = false;
}

/* A later text may replace a name, so that a user's file counts more than a shipped one. */
static void parse_typedef(struct parser *p)
{
	const char *name = need_name(p, "the name of a type");
	const struct prototype_type *t;
	struct type_name *made;
	const uint64_t *at;

	if (!name || !expect(p, '='))
		return;
	t = parse_type(p);
	if (!ends(p))
		return;
	at = hash_get(&p->set->types, name, strlen(name));
	made = at ? (struct type_name *)(uintptr_t)*at : NULL;
	if (made && made->text == p->text) {
		if (!made->type->unknown || t->kind != PROTOTYPE_STRUCT || t->unknown)
			wrong(p, "type %s is there already", name);
		else
			complete(made->type, t);
		return;
	}
	made = arena_new(&p->set->arena, struct type_name);
	made->type = arena_new(&p->set->arena, struct prototype_type);
	*made->type = *t;
	made->text = p->text;
	*hash_put(&p->set->types, name, strlen(name), NULL) = (uintptr_t)made;
}

/* An array is passed by its address. */
static const struct prototype_type *as_parameter(struct parser *p, const struct prototype_type *t)
{
	if (t->kind != PROTOTYPE_ARRAY)
		return t;
	return t->lens == LENS_STRING ? with_lens(p, pointer_to(p, t), LENS_STRING)
				      : pointer_to(p, t);
}

static void parse_params(struct parser *p, struct prototype *f)
{
	if (!expect(p, '(') || takes(p, ')'))
		return;
	do {
		struct prototype_param param = { 0 };

		if (f->nparams == PROTOTYPE_PARAMS) {
			wrong(p, "a function has at most %d parameters", PROTOTYPE_PARAMS);
			return;
		}
		param.out = takes(p, '+');
		param.type = as_parameter(p, parse_type(p));
		if (*p->message)
			return;
		if (param.type->kind == PROTOTYPE_VOID && param.type->lens != LENS_HIDE) {
			if (f->nparams || param.out)
				wrong(p, "a parameter cannot be void");
			break; /* "(void)": none */
		}
		f->params[f->nparams++] = param;
	} while (takes(p, ','));
	expect(p, ')');
}

static void parse_function(struct parser *p)
{
	struct prototype_param params[PROTOTYPE_PARAMS];
	struct prototype f = { .params = params };
	struct prototype *kept;

	f.result = as_parameter(p, parse_type(p));
	if (*p->message)
		return;
	f.name = need_name(p, "a function's name");
	if (!f.name)
		return;
	parse_params(p, &f);
	if (!ends(p))
		return;
	kept = arena_new(&p->set->arena, struct prototype);
	*kept = f;
	kept->params = arena_array(&p->set->arena, struct prototype_param, f.nparams + 1);
	memcpy(kept->params, params, f.nparams * sizeof(*params));
	*hash_put(&p->set->functions, f.name, strlen(f.name), NULL) = (uintptr_t)kept;
}

/* Returns true when the word stands here, with a blank behind it. */
static bool takes_word(const struct parser *p, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(p->end - p->at) > n && !strncmp(p->at, word, n) &&
	       isspace((unsigned char)p->at[n]);
}

/* Does "typedef NAME =" stand here? "typedef NAME (" is a function whose type has that name. */
static bool takes_definition(const struct parser *p)
{
	struct parser ahead = *p;

	if (!takes_word(p, "typedef"))
		return false;
	ahead.at += strlen("typedef");
	return !take_name(&ahead) || !takes(&ahead, '(');
}

/* Returns false for a function whose type is named "import". */
static bool imports(struct parser *p)
{
	struct parser ahead = *p;
	const char *end;

	ahead.at += strlen("import");
	if (!takes(&ahead, '"'))
		return false;
	end = memchr(ahead.at, '"', (size_t)(ahead.end - ahead.at));
	if (!end) {
		wrong(p, "a '\"' is missing behind import");
		return true;
	}
	p->at = end + 1;
	if (ends(p) && p->set->import)
		p->set->import(p->set->import_arg, p->file,
			       arena_strndup(&p->set->arena, ahead.at, (size_t)(end - ahead.at)));
	return true;
}

static void parse_line(struct parser *p)
{
	skip_blanks(p);
	if (p->at == p->end || *p->at == ';' || *p->at == '#')
		return;
	if (takes_definition(p)) {
		p->at += strlen("typedef");
		parse_typedef(p);
		return;
	}
	if (takes_word(p, "import") && imports(p))
		return;
	if (takes_word(p, "function"))
		p->at += strlen("function");
	parse_function(p);
}

uint32_t prototypes_read(struct prototypes *set, const char *name, const char *text, size_t n,
			 void (*report)(void *arg, const char *message), void *arg)
{
	uint32_t line = 0, nwrong = 0, number = ++set->ntexts;

	for (const char *at = text, *end = text + n; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		struct parser p = {
			.set = set, .at = at, .end = nl ? nl : end, .file = name, .text = number
		};

		line++;
		parse_line(&p);
		if (*p.message) {
			cleanup_free char *message = xasprintf("%s:%u: %s", name, line, p.message);

			nwrong++;
			if (report)
				report(arg, message);
		}
		at = nl ? nl + 1 : end;
	}
	return nwrong;
}

const struct prototype *prototypes_find(const struct prototypes *p, const char *function)
{
	const uint64_t *v = hash_get(&p->functions, function, strlen(function));

	return v ? (const struct prototype *)(uintptr_t)*v : NULL;
}
