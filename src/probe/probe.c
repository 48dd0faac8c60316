/* Matches probe descriptions against all providers, and keeps the set of probes found. */
#include "probe/probe.h"

#include <assert.h>
#include <string.h>

#include "base/glob.h"
#include "probe/fbt.h"
#include "probe/foreign_probes.h"
#include "probe/plt.h"
#include "probe/tracepoint.h"
#include "probe/usdt.h"
#include "program/text/text.h"

const struct provider *const providers[] = {
#define PROVIDER(name) &provider_##name,
#include "probe/providers.def"
#undef PROVIDER
	NULL,
};

void probe_set_init(struct probe_set *ps, struct type_graph *types, struct symbols *symbols)
{
	memset(ps, 0, sizeof(*ps));
	arena_init(&ps->arena);
	intern_init(&ps->names);
	ps->types = types;
	ps->symbols = symbols;
}

void probe_set_fini(struct probe_set *ps)
{
	for (uint32_t i = 0; i < ps->notes.n; i++)
		free(ps->notes.v[i]);
	tracepoints_free(ps->tracepoints);
	fbt_free(ps->fbt);
	plt_free(ps->plt);
	usdt_questions_free(ps->questions);
	usdt_javas_free(ps->javas);
	for (uint32_t i = 0; i < PROBE_TEXTS; i++)
		text_free(ps->texts[i].text);
	vec_fini(&ps->notes);
	remarks_fini(&ps->remarks);
	hash_fini(&ps->links);
	vec_fini(&ps->targets);
	vec_fini(&ps->all);
	hash_fini(&ps->by_key);
	intern_fini(&ps->names);
	arena_fini(&ps->arena);
	memset(ps, 0, sizeof(*ps));
}

bool probe_name_is_plain(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.-+/";

	return *name && !name[strspn(name, plain)] && !strstr(name, "//");
}

bool probe_desc_matches(const struct probe_desc *pd, const char *prov, const char *mod,
			const char *func, const char *name)
{
	return glob_match(pd->name, name) && glob_match(pd->func, func) &&
	       glob_match(pd->mod, mod) && glob_match(pd->prov, prov);
}

static const char *intern_name(struct probe_set *ps, const char *s)
{
	return intern_text(&ps->names, intern_shown(&ps->names, s, strlen(s)));
}

struct probe *probe_add(struct probe_set *ps, const struct provider *pv, uint32_t id,
			const char *prov, const char *mod, const char *func, const char *name,
			bool *ret_new)
{
	cleanup_free char *key = xasprintf("%s:%s:%s:%s", prov, mod, func, name);
	bool is_new;
	uint64_t *slot = hash_put(&ps->by_key, key, strlen(key), &is_new);
	struct probe *p;

	if (ret_new)
		*ret_new = is_new;
	if (!is_new)
		return ps->all.v[*slot - 1];
	p = arena_new(&ps->arena, struct probe);
	p->id = id ? id : PROBE_ID_DYNAMIC + ps->ndynamic++;
	p->provider = pv;
	p->prov = intern_name(ps, prov);
	p->mod = intern_name(ps, mod);
	p->func = intern_name(ps, func);
	p->name = intern_name(ps, name);
	p->thread_arg = -1;
	vec_push(&ps->all, p);
	*slot = ps->all.n;
	return p;
}

struct counted {
	probe_fn *found;
	void *arg;
	uint32_t n;
};

static void count_found(void *arg, struct probe *p)
{
	struct counted *c = arg;

	c->n++;
	if (c->found)
		c->found(c->arg, p);
}

struct err *probe_match(struct probe_set *ps, const struct probe_desc *pd, probe_fn *found,
			void *arg, uint32_t *ret_n)
{
	struct counted c = { .found = found, .arg = arg };
	struct probe_desc ours = foreign_translate(pd);

	for (const struct provider *const *pv = providers; *pv; pv++) {
		struct err *e;

		if (!(*pv)->claims(*pv, ours.prov))
			continue;
		e = (*pv)->match(*pv, ps, &ours, count_found, &c);
		if (e)
			return err_wrap(e, "probes of provider %s", (*pv)->name);
	}
	*ret_n = c.n;
	return NULL;
}

static struct probe *known_id(struct probe_set *ps, uint32_t id)
{
	for (uint32_t i = 0; i < ps->all.n; i++) {
		if (ps->all.v[i]->id == id)
			return ps->all.v[i];
	}
	return NULL;
}

struct err *probe_by_id(struct probe_set *ps, uint32_t id, struct probe **ret)
{
	static const struct probe_desc any = { "", "", "", "" };
	struct probe *p = known_id(ps, id);

	for (size_t i = 0; !p && providers[i]; i++) {
		const struct provider *pv = providers[i];
		struct counted c = { 0 };
		struct err *e;

		if (!pv->first_id || id < pv->first_id || id > pv->last_id)
			continue;
		e = pv->match(pv, ps, &any, count_found, &c);
		if (e)
			return e;
		p = known_id(ps, id);
	}
	*ret = p;
	return NULL;
}

struct err *probe_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	struct probe_args args;
	struct err *e;

	memset(&args, 0, sizeof(args));
	for (size_t i = 0; i < ARRAY_SIZE(args.arg); i++)
		args.arg[i].type = T_INT64;
	for (size_t i = 0; i < ARRAY_SIZE(args.typed); i++)
		args.typed[i].type = T_INT64;
	e = p->provider->args(ps, p, &args);
	if (!e)
		*ret = args;
	return e;
}

const char *attach_kind_name(enum attach_kind k)
{
	static const char *const names[ATTACH_KIND_COUNT] = {
		[ATTACH_SELF] = "self",
		[ATTACH_SYSCALL_ENTRY] = "syscall-entry",
		[ATTACH_SYSCALL_RETURN] = "syscall-return",
		[ATTACH_RAW_TP] = "raw-tracepoint",
		[ATTACH_TP_BTF] = "typed-tracepoint",
		[ATTACH_TRACEPOINT] = "tracepoint",
		[ATTACH_PROFILE] = "profile",
		[ATTACH_TICK] = "tick",
		[ATTACH_UPROBE] = "uprobe",
		[ATTACH_URETPROBE] = "uretprobe",
		[ATTACH_KPROBE] = "kprobe",
		[ATTACH_KRETPROBE] = "kretprobe",
		[ATTACH_FENTRY] = "fentry",
		[ATTACH_FEXIT] = "fexit",
	};

	assert(k < ATTACH_KIND_COUNT);
	return names[k];
}
