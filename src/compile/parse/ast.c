/* The names of node kinds and operators, and the parts of each kind of node, by which nodes are
 * copied and walked. */
#include "ast.h"

#include <stddef.h>

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

// clang-format off
struct part {
	enum { PART_END, PART_NODES, PART_DECLS, PART_NAME, PART_TEXT, PART_PDESCS, PART_PROBES } type;
	size_t at; /* in struct node */
};

#define NODES(member) { PART_NODES, offsetof(struct node, member) }
#define DECLS(member) { PART_DECLS, offsetof(struct node, member) }
#define NAME(member) { PART_NAME, offsetof(struct node, member) }

/* The members of each kind of node that point to something: its nodes in the order of the text. A
 * kind that is not here has none. The binder's members point to what is not the node's. */
static const struct part parts[NODE_KIND_COUNT + 1][4] = {
	[N_STR] = { { PART_TEXT } },
	[N_MACRO] = { { PART_TEXT } },
	[N_IDENT] = { NAME(ident.name), NAME(ident.module) },
	[N_EXTERN] = { NAME(ident.name), NAME(ident.module) },
	[N_AGG] = { NAME(agg.name), NODES(agg.keys) },
	[N_CALL] = { NAME(call.func), NODES(call.args) },
	[N_MEMBER] = { NODES(member.a), NAME(member.name) },
	[N_PMEMBER] = { NODES(member.a), NAME(member.name) },
	[N_INDEX] = { NODES(e.a), NODES(e.b), NODES(e.c) },
	[N_UNARY ... N_COMMA] = { NODES(e.a), NODES(e.b), NODES(e.c) },
	[N_SIZEOF] = { NODES(e.a), NODES(e.b), NODES(e.c) },
	[N_STRINGOF] = { NODES(e.a), NODES(e.b), NODES(e.c) },
	[N_CAST] = { DECLS(t.type), NAME(t.member), NODES(t.a) },
	[N_SIZEOF_TYPE] = { DECLS(t.type), NAME(t.member), NODES(t.a) },
	[N_OFFSETOF] = { DECLS(t.type), NAME(t.member), NODES(t.a) },
	[N_XLATE] = { DECLS(t.type), NAME(t.member), NODES(t.a) },
	[N_BODY] = { NODES(fn.args), NODES(fn.body) },
	[S_EXPR] = { NODES(block.body) },
	[S_BLOCK] = { NODES(block.body) },
	[S_RETURN] = { NODES(block.body) },
	[S_LOCAL] = { DECLS(local.decl), NODES(local.value) },
	[S_LOOP] = { NODES(loop.cond), NODES(loop.step), NODES(loop.body) },
	[S_IF] = { NODES(cond.cond), NODES(cond.then), NODES(cond.els) },
	[D_CLAUSE] = { { PART_PDESCS }, NODES(clause.pred), NODES(clause.body) },
	[D_DECL] = { DECLS(decl.decls) },
	[D_FUNC] = { DECLS(inl.decl), DECLS(inl.params), NODES(inl.value) },
	[D_INLINE] = { DECLS(inl.decl), DECLS(inl.params), NODES(inl.value) },
	[D_TRANSLATOR] = { DECLS(xlator.out), DECLS(xlator.in), NODES(xlator.members) },
	[D_PROVIDER] = { NAME(provider.name), { PART_PROBES } },
	[D_PRAGMA] = { NAME(pragma.text) },
};
// clang-format on

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

struct node *node_clone(struct arena *a, const struct node *n)
{
	struct node *c;

	if (!n)
		return NULL;
	c = dup_mem(a, n, sizeof(*n));
	c->next = NULL;
	for (const struct part *p = parts[n->kind]; p->type; p++) {
		void *at = (char *)c + p->at;

		switch (p->type) {
		case PART_END: break;
		case PART_NODES: *(struct node **)at = clone_list(a, *(struct node **)at); break;
		case PART_DECLS: *(struct decl **)at = clone_decls(a, *(struct decl **)at); break;
		case PART_NAME: *(const char **)at = dup_str(a, *(const char **)at); break;
		case PART_TEXT:
			c->s.text = memcpy(arena_alloc(a, n->s.len + 1), n->s.text, n->s.len);
			break;
		case PART_PDESCS: c->clause.pdescs = clone_pdescs(a, n->clause.pdescs); break;
		case PART_PROBES: c->provider.probes = clone_probes(a, n->provider.probes); break;
		}
	}
	return c;
}

struct node_lists node_lists(const struct node *n)
{
	struct node_lists lists = { 0 };
	uint32_t i = 0;

	for (const struct part *p = parts[n->kind]; p->type; p++)
		if (p->type == PART_NODES)
			lists.list[i++] = *(struct node *const *)((const char *)n + p->at);
	return lists;
}

void node_walk(const struct node *n, void (*fn)(void *arg, const struct node *n), void *arg)
{
	for (; n; n = n->next) {
		struct node_lists below = node_lists(n);

		fn(arg, n);
		for (uint32_t i = 0; i < ARRAY_SIZE(below.list); i++)
			node_walk(below.list[i], fn, arg);
	}
}
