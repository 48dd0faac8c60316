/* The names of node kinds and operators, and deep copies of nodes. */
#include "ast.h"

const char *node_kind_name(enum node_kind k)
{
	static const char *const names[] = {
#define X(id, name) [id] = name,
		NODE_KINDS(X)
#undef X
	};

	return (unsigned int)k < NODE_KIND_COUNT ? names[k] : "?";
}

const char *op_name(enum op op)
{
	static const char *const names[] = {
#define X(id, name) [id] = name,
		OPS(X)
#undef X
	};

	return (unsigned int)op < OP_COUNT ? names[op] : "?";
}

static struct decl *clone_decls(struct arena *a, const struct decl *d);
static struct node *clone_list(struct arena *a, const struct node *n);

static void *dup_mem(struct arena *a, const void *p, size_t n)
{
	return memcpy(arena_alloc(a, n), p, n);
}

static const char *dup_str(struct arena *a, const char *s)
{
	return s ? arena_strdup(a, s) : NULL;
}

static struct spec *clone_spec(struct arena *a, const struct spec *s)
{
	struct spec *c = dup_mem(a, s, sizeof(*s));
	struct enumerator **tail = &c->enumerators;

	c->name = dup_str(a, s->name);
	c->module = dup_str(a, s->module);
	c->members = clone_decls(a, s->members);
	for (const struct enumerator *e = s->enumerators; e; e = e->next) {
		struct enumerator *ce = dup_mem(a, e, sizeof(*e));

		ce->name = dup_str(a, e->name);
		ce->value = clone_list(a, e->value);
		ce->next = NULL;
		*tail = ce;
		tail = &ce->next;
	}
	return c;
}

static struct declarator *clone_declarators(struct arena *a, const struct declarator *d)
{
	struct declarator *list = NULL, **tail = &list;

	for (; d; d = d->next) {
		struct declarator *c = dup_mem(a, d, sizeof(*d));

		c->size = clone_list(a, d->size);
		c->params = clone_decls(a, d->params);
		c->next = NULL;
		*tail = c;
		tail = &c->next;
	}
	return list;
}

/* Copies a list of declarations. Declarations that share a `struct spec` ("int a, b;") share its
 * copy too. */
static struct decl *clone_decls(struct arena *a, const struct decl *d)
{
	struct decl *list = NULL, **tail = &list;
	const struct spec *last = NULL;
	struct spec *last_copy = NULL;

	for (; d; d = d->next) {
		struct decl *c = dup_mem(a, d, sizeof(*d));

		if (d->spec && d->spec != last) {
			last = d->spec;
			last_copy = clone_spec(a, last);
		}
		c->spec = d->spec ? last_copy : NULL;
		c->declr = clone_declarators(a, d->declr);
		c->name = dup_str(a, d->name);
		c->bits = clone_list(a, d->bits);
		c->next = NULL;
		*tail = c;
		tail = &c->next;
	}
	return list;
}

static struct pdesc *clone_pdescs(struct arena *a, const struct pdesc *d)
{
	struct pdesc *list = NULL, **tail = &list;

	for (; d; d = d->next) {
		struct pdesc *c = dup_mem(a, d, sizeof(*d));

		c->prov = dup_str(a, d->prov);
		c->mod = dup_str(a, d->mod);
		c->func = dup_str(a, d->func);
		c->name = dup_str(a, d->name);
		c->next = NULL;
		*tail = c;
		tail = &c->next;
	}
	return list;
}

static struct provider_probe *clone_probes(struct arena *a, const struct provider_probe *p)
{
	struct provider_probe *list = NULL, **tail = &list;

	for (; p; p = p->next) {
		struct provider_probe *c = dup_mem(a, p, sizeof(*p));

		c->name = dup_str(a, p->name);
		c->native = clone_decls(a, p->native);
		c->translated = clone_decls(a, p->translated);
		c->next = NULL;
		*tail = c;
		tail = &c->next;
	}
	return list;
}

const struct decl *provider_args(const struct provider_probe *p)
{
	return p->is_translated ? p->translated : p->native;
}

uint32_t provider_native(const struct provider_probe *p, const struct decl *arg, uint32_t place)
{
	uint32_t i = 0;

	for (const struct decl *n = p->is_translated ? p->native : NULL; n && arg->name;
	     n = n->next, i++) {
		if (n->name && !strcmp(n->name, arg->name))
			return i;
	}
	return place;
}

static struct node *clone_list(struct arena *a, const struct node *n)
{
	struct node *list = NULL, **tail = &list;

	for (; n; n = n->next) {
		*tail = node_clone(a, n);
		tail = &(*tail)->next;
	}
	return list;
}

/* Copies n and everything below it. The copy's `next` is NULL. The binder's fields (type, id,
 * selected, aux) are copied as pointers, not their targets. */
struct node *node_clone(struct arena *a, const struct node *n)
{
	struct node *c;

	if (!n)
		return NULL;
	c = dup_mem(a, n, sizeof(*n));
	c->next = NULL;
	switch (n->kind) {
	case N_INT:
	case NODE_KIND_COUNT: break;
	case N_STR:
	case N_MACRO: {
		char *text = arena_alloc(a, n->s.len + 1);

		memcpy(text, n->s.text, n->s.len);
		c->s.text = text;
		break;
	}
	case N_IDENT:
	case N_EXTERN:
		c->ident.name = dup_str(a, n->ident.name);
		c->ident.module = dup_str(a, n->ident.module);
		break;
	case N_AGG:
		c->agg.name = dup_str(a, n->agg.name);
		c->agg.keys = clone_list(a, n->agg.keys);
		break;
	case N_CALL:
		c->call.func = dup_str(a, n->call.func);
		c->call.args = clone_list(a, n->call.args);
		break;
	case N_MEMBER:
	case N_PMEMBER:
		c->member.a = node_clone(a, n->member.a);
		c->member.name = dup_str(a, n->member.name);
		break;
	case N_INDEX:
	case N_UNARY:
	case N_BINARY:
	case N_ASSIGN:
	case N_TERNARY:
	case N_COMMA:
	case N_SIZEOF:
	case N_STRINGOF:
		c->e.a = clone_list(a, n->e.a);
		c->e.b = clone_list(a, n->e.b);
		c->e.c = clone_list(a, n->e.c);
		break;
	case N_CAST:
	case N_SIZEOF_TYPE:
	case N_OFFSETOF:
	case N_XLATE:
		c->t.type = clone_decls(a, n->t.type);
		c->t.member = dup_str(a, n->t.member);
		c->t.a = clone_list(a, n->t.a);
		break;
	case S_EXPR:
	case S_BLOCK: c->block.body = clone_list(a, n->block.body); break;
	case N_BODY:
		c->fn.args = clone_list(a, n->fn.args);
		c->fn.body = node_clone(a, n->fn.body);
		break;
	case S_RETURN: c->block.body = clone_list(a, n->block.body); break;
	case S_LOCAL:
		c->local.decl = clone_decls(a, n->local.decl);
		c->local.value = node_clone(a, n->local.value);
		break;
	case S_BREAK:
	case S_CONTINUE: break;
	case S_LOOP:
		c->loop.cond = node_clone(a, n->loop.cond);
		c->loop.step = node_clone(a, n->loop.step);
		c->loop.body = node_clone(a, n->loop.body);
		break;
	case S_IF:
		c->cond.cond = node_clone(a, n->cond.cond);
		c->cond.then = node_clone(a, n->cond.then);
		c->cond.els = node_clone(a, n->cond.els);
		break;
	case D_CLAUSE:
		c->clause.pdescs = clone_pdescs(a, n->clause.pdescs);
		c->clause.pred = node_clone(a, n->clause.pred);
		c->clause.body = clone_list(a, n->clause.body);
		break;
	case D_DECL: c->decl.decls = clone_decls(a, n->decl.decls); break;
	case D_FUNC:
	case D_INLINE:
		c->inl.decl = clone_decls(a, n->inl.decl);
		c->inl.params = clone_decls(a, n->inl.params);
		c->inl.value = node_clone(a, n->inl.value);
		break;
	case D_TRANSLATOR:
		c->xlator.out = clone_decls(a, n->xlator.out);
		c->xlator.in = clone_decls(a, n->xlator.in);
		c->xlator.members = clone_list(a, n->xlator.members);
		break;
	case D_PROVIDER:
		c->provider.name = dup_str(a, n->provider.name);
		c->provider.probes = clone_probes(a, n->provider.probes);
		break;
	case D_PRAGMA: c->pragma.text = dup_str(a, n->pragma.text); break;
	}
	return c;
}
