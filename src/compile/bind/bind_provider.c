/* Binds provider p { probe name(T, T) : (X, X); }: types for the arguments of probes that give
 * none. */
#include "compile/bind/bind_private.h"

#include <ctype.h>

#include "program/object/call_sites.h"

/* Returns true when prov is the name, or the name and a process id: "app" also names the probes of
 * app123. */
static bool is_provider(const char *name, const char *prov)
{
	size_t n = strlen(name);

	if (strncmp(name, prov, n))
		return false;
	for (prov += n; isdigit((unsigned char)*prov); prov++)
		continue;
	return !*prov;
}

/* Compares names. In a definition, "__" stands for "-". */
static bool is_probe(const char *name, const char *probe)
{
	for (; *name && *probe; name++, probe++) {
		if (name[0] == '_' && name[1] == '_' && *probe == '-')
			name++;
		else if (*name != *probe)
			return false;
	}
	return !*name && !*probe;
}

static const struct provider_probe *provider_find(struct bind_cx *cx, const struct probe *p)
{
	struct bind_state *s = cx->state;

	for (uint32_t i = 0; i < s->providers.n; i++) {
		if (!is_provider(s->providers.v[i]->provider.name, p->prov))
			continue;
		for (const struct provider_probe *d = s->providers.v[i]->provider.probes; d;
		     d = d->next) {
			if (is_probe(d->name, p->name))
				return d;
		}
	}
	return NULL;
}

enum { PROVIDER_NAME_MAX = 63, PROBE_ARGS_MAX = 32 };

/* Checks and keeps a provider's definition. */
void bind_provider(struct bind_cx *cx, const struct node *n)
{
	const char *name = n->provider.name;
	size_t len = strlen(name);
	struct hash seen = { 0 };

	if (len > PROVIDER_NAME_MAX || (len && isdigit((unsigned char)name[len - 1])))
		diag_error(cx->diags, n->loc, n->end, "D_PROV_BADNAME",
			   "provider name \"%s\" may not %s", name,
			   len > PROVIDER_NAME_MAX
				   ? "be longer than 63 characters"
				   : "end in a digit: a process's number follows it");
	for (const struct provider_probe *d = n->provider.probes; d; d = d->next) {
		uint32_t args = 0;

		for (const struct decl *a = d->native; a; a = a->next)
			args++;
		if (args > PROBE_ARGS_MAX)
			diag_error(cx->diags, d->loc, 0, "D_PROV_PRARGLEN",
				   "probe %s has %u arguments, at most %d are possible", d->name,
				   args, PROBE_ARGS_MAX);
		if (hash_get(&seen, d->name, strlen(d->name)))
			diag_error(cx->diags, d->loc, 0, "D_PROV_PRDUP",
				   "probe redeclared: %s:::%s", name, d->name);
		hash_put(&seen, d->name, strlen(d->name), NULL);
	}
	hash_fini(&seen);
	vec_push(&cx->state->providers, n);
}

void provider_types(struct bind_cx *cx, const struct probe *p, struct probe_args *args)
{
	const struct provider_probe *d = args->known && args->ntyped ? NULL : provider_find(cx, p);
	type_id native[ARRAY_SIZE(args->arg)];
	uint32_t n = 0, count = 0;

	if (!d)
		return;
	for (const struct decl *a = d->native; a && n < ARRAY_SIZE(native); a = a->next)
		native[n++] = bind_decl_type(cx, a);
	for (const struct decl *a = provider_args(d); a && count < ARRAY_SIZE(args->typed);
	     a = a->next) {
		uint32_t i = provider_native(d, a, count);
		type_id t = bind_decl_type(cx, a);

		if (i >= n)
			break;
		args->typed[count] = args->arg[i];
		args->typed[count].type = native[i];
		args->typed[count].xlate = type_same(cx->types, t, native[i])
						   ? NULL
						   : type_name(cx->types, cx->arena, t, NULL);
		count++;
	}
	args->known = true;
	args->ntyped = count;
}

/* A parameter list (void) has no argument. */
static bool is_void(const struct decl *d)
{
	return d->spec && d->spec->base == BASE_VOID && !d->declr;
}

static int size_of(struct bind_cx *cx, type_id t)
{
	int size = type_is_integer(cx->types, t) ? (int)type_size(cx->types, t) : 8;

	if (size != 1 && size != 2 && size != 4)
		size = 8;
	return type_is_integer(cx->types, t) && type_is_signed(cx->types, t) ? -size : size;
}

void bind_probe_definition(struct bind_cx *cx, const char *provider, const struct provider_probe *p,
			   struct probe_definition *ret)
{
	struct probe_definition d = { .provider = provider, .name = p->name };
	int sizes[ARRAY_SIZE(d.native)];
	uint32_t place = 0;

	for (const struct decl *a = p->native; a && d.nnative < ARRAY_SIZE(d.native); a = a->next) {
		type_id t;

		if (is_void(a))
			continue;
		t = bind_decl_type(cx, a);
		sizes[d.nnative] = size_of(cx, t);
		d.native[d.nnative++] = type_name(cx->types, cx->arena, t, NULL);
	}
	for (const struct decl *a = provider_args(p); a && d.nargs < ARRAY_SIZE(d.args);
	     a = a->next, place++) {
		uint32_t i = provider_native(p, a, place);

		if (is_void(a) || i >= d.nnative)
			continue;
		d.args[d.nargs++] = (struct probe_definition_arg){
			.type = d.native[i],
			.shown = type_name(cx->types, cx->arena, bind_decl_type(cx, a), NULL),
			.size = sizes[i],
			.native = (uint8_t)i
		};
	}
	*ret = d;
}
