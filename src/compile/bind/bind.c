/* Drives the binder. bind_add() takes the sources; bind_finish() binds the clauses when all sources
 * are there. */
#define _GNU_SOURCE
#include "compile/bind/bind.h"

#include <stdarg.h>

#include "compile/bind/bind_private.h"

const char bind_poison_mark;

const struct subr_info subr_table[SUBR_ID_COUNT] = {
#define X(id, name, kind, min, max, type, flags, doc) { name, kind, min, max, type, flags, doc },
#include "compile/bind/subrs.def"
#undef X
};

const struct builtin_info builtin_table[BUILTIN_COUNT] = {
#define X(id, name, type, doc) { name, type, doc },
#include "compile/bind/builtins.def"
#undef X
};

/* --- tools of all binder files --- */

void poison(struct node *n)
{
	n->kind = N_INT;
	n->op = OP_NONE;
	memset(&n->i, 0, sizeof(n->i));
	n->type = T_INT;
	n->constant = false;
	n->lvalue = false;
	n->id = NULL;
	n->selected = NULL;
	n->aux = (void *)&bind_poison_mark;
}

void bind_error(struct bind_cx *cx, struct node *n, const char *tag, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	diag_error(cx->diags, n->loc, n->end, tag, "%s", text);
	poison(n);
}

struct node *make_node(struct bind_cx *cx, enum node_kind kind, const struct node *at)
{
	struct node *n = arena_new(cx->arena, struct node);

	n->kind = kind;
	n->loc = at->loc;
	n->end = at->end;
	return n;
}

void replace_node(struct node *n, const struct node *by)
{
	struct node *next = n->next;

	*n = *by;
	n->next = next;
}

const char *type_text(struct bind_cx *cx, type_id t)
{
	return type_name(cx->types, cx->arena, t, NULL);
}

uint32_t list_length(const struct node *n)
{
	uint32_t len = 0;

	for (; n; n = n->next)
		len++;
	return len;
}

/* --- the program --- */

void bind_init(struct bind_cx *cx)
{
	struct bind_state *s = xcalloc(1, sizeof(*s));

	cx->state = s;
	s->out = arena_new(cx->arena, struct bound);
	ident_init(cx);
}

void bind_fini(struct bind_cx *cx)
{
	struct bind_state *s = cx->state;
	uint32_t pos = 0;
	const void *key;
	size_t len;
	uint64_t *val;

	if (!s)
		return;
	while (hash_next(&s->funcs, &pos, &key, &len, &val)) {
		struct func_def *def = (struct func_def *)(uintptr_t)*val;

		vec_fini(&def->params);
	}
	pos = 0;
	while (hash_next(&s->inlines, &pos, &key, &len, &val)) {
		struct inline_def *def = (struct inline_def *)(uintptr_t)*val;

		vec_fini(&def->params);
	}
	lib_fini(cx);
	hash_fini(&s->vars);
	hash_fini(&s->uses);
	hash_fini(&s->enumerators);
	vec_fini(&s->attributes);
	hash_fini(&s->aggs);
	hash_fini(&s->inlines);
	hash_fini(&s->funcs);
	hash_fini(&s->specs);
	hash_fini(&s->texts);
	hash_fini(&s->user_tags);
	hash_fini(&s->builtins);
	hash_fini(&s->subrs);
	hash_fini(&s->lib_names);
	hash_fini(&s->xlators);
	vec_fini(&s->providers);
	vec_fini(&s->clauses);
	vec_fini(&s->agg_uses);
	vec_fini(&s->agg_info);
	vec_fini(&s->out->vars);
	vec_fini(&s->out->aggs);
	vec_fini(&s->out->agg_key_types);
	vec_fini(&s->out->clauses);
	free(s);
	cx->state = NULL;
}

bool bind_is_type(void *arg, const char *module, const char *name)
{
	struct bind_cx *cx = arg;
	type_id t;

	if (!module && (var_find(cx, SCOPE_NONE, name) || builtin_find(cx, name) >= 0 ||
			subr_find(cx, name) >= 0))
		return false;
	if (!module && type_lookup(cx->types, "D", TYPE_TYPEDEF, name, &t))
		return true;
	if (!module && hash_get(&cx->state->inlines, name, strlen(name)))
		return false;
	if (!module && lib_load(cx, 't', name))
		return true;
	return type_lookup(cx->types, module, TYPE_TYPEDEF, name, &t);
}

/* Copies the next word of *p to buf. Returns false at the end. */
static bool next_word(const char **p, char *buf, size_t size)
{
	size_t n = 0;

	while (**p == ' ' || **p == '\t')
		++*p;
	while (**p && **p != ' ' && **p != '\t' && **p != '\r' && **p != '\n') {
		if (n + 1 < size)
			buf[n++] = **p;
		++*p;
	}
	buf[n] = '\0';
	return n > 0;
}

/* Is text "name" or "name=value"? */
static bool names_option(const char *text, const char *name)
{
	const size_t n = strcspn(text, "=");

	return strlen(name) == n && !strncasecmp(name, text, n);
}

/* Returns true for options that have an effect only before a program is read. */
static bool for_command_line(const char *text)
{
	static const char *const names[] = { "cppargs", "cpphdrs",    "cpppath", "ctfpath",
					     "define",  "incdir",     "ldpath",  "lockmem",
					     "modpath", "procfspath", "stdc",    "undef" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names_option(text, names[i]))
			return true;
	return false;
}

/* Sets the option of `#pragma D option name[=value]`. Blanks may stand around "=". */
static void pragma_option(struct bind_cx *cx, const struct node *n, const char *text)
{
	char *copy = arena_strdup(cx->arena, text), *to = copy;
	const char *error = NULL;

	bool apart = false; /* there are words that no "=" joins */

	for (const char *p = text; *p; p++) {
		bool blank = strchr(" \t\r\n", *p);

		apart |= !blank && p > text && strchr(" \t\r\n", p[-1]) && to > copy &&
			 to[-1] != '=' && *p != '=';
		if (!blank)
			*to++ = *p;
	}
	*to = '\0';
	if (apart)
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_MALFORM",
			   "superfluous arguments specified for #pragma option");
	else if (for_command_line(copy))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_OPTSET",
			   "failed to set option '%s': it comes too late in a program, -x sets it",
			   copy);
	else if (names_option(copy, "core"))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_OPTSET",
			   "failed to set option '%s': a program does not end descry with a core "
			   "file, -x sets it",
			   copy);
	else if (!*copy)
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_MALFORM",
			   "malformed #pragma option directive: expected name or name=value");
	else if (!options_set_text(cx->options, copy, WHEN_COMPILE, &error))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_OPTSET",
			   "failed to set option '%s': %s", copy, error);
}

static bool provider_exists(const char *name)
{
	for (const struct provider *const *pv = providers; *pv; pv++)
		if ((*pv)->claims(*pv, name) || !strcmp((*pv)->name, name))
			return true;
	return false;
}

/* Checks the form of `#pragma D attributes a/b/c name` and `#pragma D binding "1.5" name`. These
 * pragmas have no effect. */
static void pragma_words(struct bind_cx *cx, const struct node *n, const char *what, const char *p)
{
	char word[128];
	bool attributes = !strcmp(what, "attributes");
	uint32_t words = 0, want = 2;

	while (next_word(&p, word, sizeof(word))) {
		words++;
		if (words == 2 && attributes &&
		    (!strcmp(word, "provider") || !strcmp(word, "module") ||
		     !strcmp(word, "function") || !strcmp(word, "name") || !strcmp(word, "args")))
			want = 3;
	}
	if (words < want)
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_MALFORM",
			   "malformed #pragma D %s directive: %u words expected", what, want);
	else if (words > (want == 3 ? 4 : want))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_UNUSED",
			   "superfluous arguments specified for #pragma %s", what);
	else if (attributes && want == 2 && !is_lib_loc(cx, n->loc))
		vec_push(&cx->state->attributes, n);
}

/* Reports attributes of a name that the program defines nowhere. */
static void check_attributes(struct bind_cx *cx)
{
	for (uint32_t i = 0; i < cx->state->attributes.n; i++) {
		const struct node *n = cx->state->attributes.v[i];
		const char *p = n->pragma.text;
		char name[128];

		for (int word = 0; word < 4; word++) /* D attributes a/b/c name */
			next_word(&p, name, sizeof(name));
		name[strcspn(name, ";")] = '\0';
		if (!is_defined_name(cx, name))
			diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_UNUSED",
				   "unused #pragma attributes: the program does not define %s",
				   name);
	}
}

static void pragma_depends(struct bind_cx *cx, const struct node *n, const char *p)
{
	char kind[32], name[128], extra[8];

	const struct source *src = source_of(cx->diags, n->loc);

	if (!next_word(&p, kind, sizeof(kind)) || !next_word(&p, name, sizeof(name))) {
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_MALFORM",
			   "malformed #pragma depends_on directive: expected class and name");
		return;
	}
	if (next_word(&p, extra, sizeof(extra))) {
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_UNUSED",
			   "superfluous arguments specified for #pragma depends_on");
		return;
	}
	if (!strcmp(kind, "library") && src && src->kind != SOURCE_LIB)
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_DEPEND",
			   "the program may not depend on a library explicitly: libraries are read "
			   "when a name of theirs is used");
	else if (!strcmp(kind, "library") && lib_busy(cx, name))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_DEPEND",
			   "library \"%s\" depends on itself, by way of this one", name);
	else if (!strcmp(kind, "library") && !lib_load(cx, 'f', name) && !lib_loaded(cx, name))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_DEPEND",
			   "this library requires library \"%s\", which was not found", name);
	else if (!strcmp(kind, "provider") && !provider_exists(name))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_DEPEND",
			   "program requires provider \"%s\", which is not available", name);
	else if (strcmp(kind, "library") && strcmp(kind, "module") && strcmp(kind, "provider"))
		diag_error(
			cx->diags, n->loc, n->end, "D_PRAGMA_INVAL",
			"invalid class \"%s\" in #pragma depends_on: library, module or provider",
			kind);
}

static void bind_pragma(struct bind_cx *cx, const struct node *n)
{
	const char *p = n->pragma.text;
	char word[64], what[64];

	if (!next_word(&p, word, sizeof(word)))
		return;
	if (!strcmp(word, "error")) {
		while (*p == ' ' || *p == '\t')
			p++;
		diag_error(cx->diags, n->loc, n->end, "D_PRAGERR", "#pragma error: %s", p);
		return;
	}
	if (strcmp(word, "D")) {
		/* As in C: other tools own the other pragmas, "ident" and "line" among them. */
		return;
	}
	if (!next_word(&p, what, sizeof(what)))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_MALFORM",
			   "malformed #pragma: expected a keyword after D");
	else if (!strcmp(what, "option"))
		pragma_option(cx, n, p);
	else if (!strcmp(what, "depends_on"))
		pragma_depends(cx, n, p);
	else if (!strcmp(what, "attributes") || !strcmp(what, "binding"))
		pragma_words(cx, n, what, p);
	else if (strcmp(what, "error") && strcmp(what, "ident") && strcmp(what, "line"))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGMA_INVAL", "invalid #pragma D %s",
			   what);
	else if (!strcmp(what, "error"))
		diag_error(cx->diags, n->loc, n->end, "D_PRAGERR", "#pragma error:%s", p);
}

void bind_add(struct bind_cx *cx, struct node *top)
{
	struct bind_state *s = cx->state;
	const struct source *src;

	for (struct node *n = top; n; n = n->next) {
		switch (n->kind) {
		case D_CLAUSE:
			src = source_of(cx->diags, n->loc);
			if (src && src->kind == SOURCE_LIB)
				diag_error(cx->diags, n->loc, n->end, "D_SYNTAX",
					   "probe clauses are not permitted in a library");
			else
				vec_push(&s->clauses, n);
			break;
		case D_DECL: bind_declaration(cx, n); break;
		case D_INLINE: bind_inline(cx, n); break;
		case D_FUNC: bind_func(cx, n); break;
		case D_TRANSLATOR: bind_translator(cx, n); break;
		case D_PRAGMA: bind_pragma(cx, n); break;
		case D_PROVIDER: bind_provider(cx, n); break;
		default: break;
		}
	}
}

static void note_available(void *arg, struct probe *p)
{
	*(bool *)arg |= !p->unavailable;
}

static bool uses_provider(struct bind_cx *cx, const struct provider *pv)
{
	struct bind_state *s = cx->state;
	bool uses = false;

	for (uint32_t i = 0; i < s->clauses.n; i++) {
		for (const struct pdesc *d = s->clauses.v[i]->clause.pdescs; d; d = d->next) {
			struct probe_desc pd = { d->prov, d->mod, d->func, d->name };
			struct probe *p = NULL;

			if (d->by_id)
				err_free(probe_by_id(cx->probes, d->id, &p));
			else if (pv->claims(pv, d->prov))
				err_free(pv->match(pv, cx->probes, &pd, note_available, &uses));
			uses |= p && p->provider == pv;
		}
	}
	return uses;
}

static void number_clause(struct bind_cx *cx, const struct node *clause, uint32_t index)
{
	bind_clause(cx, clause, index);
	for (const struct pdesc *d = clause->clause.pdescs; d; d = d->next)
		cx->state->ndescs++;
}

/* Binds the clauses that providers themselves bring. Their probes do not count as the program's. */
static void bind_provider_clauses(struct bind_cx *cx, bool after)
{
	struct bind_state *s = cx->state;
	uint32_t matched = s->out->matched;

	for (const struct provider *const *pv = providers; *pv; pv++) {
		const char *text = after ? (*pv)->after : (*pv)->before;
		struct node *top;

		if (!text || !uses_provider(cx, *pv))
			continue;
		source_add(cx->diags, SOURCE_LIB, (*pv)->name, text, strlen(text));
		top = parse_source(cx->parse, cx->diags->nsources - 1, PDESC_NAME);
		for (; top; top = top->next) {
			if (top->kind == D_DECL)
				bind_declaration(cx, top);
			else
				number_clause(cx, top, s->out->nclauses++);
		}
	}
	s->out->matched = matched;
}

struct bound *bind_finish(struct bind_cx *cx)
{
	struct bind_state *s = cx->state;

	type_set_strsize(cx->types, opt_num(cx->options, OPT_STRSIZE));
	lib_load_own(cx);
	s->out->nclauses = s->clauses.n;
	version_check_option(cx);
	bind_choose_events(cx);
	bind_provider_clauses(cx, false);
	for (uint32_t i = 0; i < s->clauses.n; i++)
		number_clause(cx, s->clauses.v[i], i);
	bind_provider_clauses(cx, true);
	check_attributes(cx);
	aggs_check(cx);
	if (!cx->diags->errors)
		units_find(s->out);
	return s->out;
}
