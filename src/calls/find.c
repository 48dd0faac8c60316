/* Finds the functions whose calls are traced: slots of procedure linkage tables, entries of
 * functions, and all the places where these functions return. */
#include <elf.h>
#include <string.h>

#include "base/characters.h"
#include "base/glob.h"
#include "calls/find_private.h"
#include "calls/returns.h"

/* Functions beyond have no result. Each takes about a kilobyte when it is compiled. */
enum { RETS_OF_ALL_MAX = 1 << 15 };
/* Objects that are searched for names, all together. A program of 200 libraries needs four million
 * looks. */
enum { LOOKS_MAX = 1 << 24 };

/* Returns the prototype of a function without a known prototype. */
static const struct prototype *unknown(struct calls *c, const char *name)
{
	struct prototype_type *t = arena_new(&c->arena, struct prototype_type);
	struct prototype *f = arena_new(&c->arena, struct prototype);

	t->kind = PROTOTYPE_INT;
	t->size = t->align = 8;
	t->lens = LENS_HEX;
	f->name = name;
	f->result = t;
	f->nparams = CALLS_UNKNOWN_ARGS;
	f->params = arena_array(&c->arena, struct prototype_param, f->nparams);
	for (uint32_t i = 0; i < f->nparams; i++)
		f->params[i].type = t;
	return f;
}

/* Returns true when the name can stand in the D program. Counts the others. */
static bool can_stand(struct calls *c, const char *name)
{
	if (probe_name_is_plain(name))
		return true;
	if (!c->nleft_out++)
		c->left_out = arena_strdup(&c->arena, name);
	return false;
}

/* The module of an object in a probe description. */
static const char *module_of(const struct process_object *po, bool loaded)
{
	return po->is_main ? "a.out" : loaded ? po->name : po->seen;
}

struct calls_function *find_function(struct calls *c, const char *name, char how)
{
	cleanup_free char *key = xasprintf("%c%s", how, name);
	struct calls_function *f;
	bool is_new;
	uint64_t *slot = hash_put(&c->by_name, key, strlen(key), &is_new);

	if (!is_new)
		return (struct calls_function *)(uintptr_t)*slot;
	if (c->functions.n == CALLS_FUNCTIONS_MAX) {
		c->ntoo_many++; /* once for the name: the table keeps it, with NULL */
		return NULL;
	}
	f = arena_new(&c->arena, struct calls_function);
	*slot = (uintptr_t)f;
	f->name = arena_strdup(&c->arena, name);
	f->linkage = how == 'p';
	f->prototype = prototypes_find(c->prototypes, name);
	f->guessed = !f->prototype;
	if (f->guessed)
		f->prototype = unknown(c, f->name);
	f->number = c->functions.n;
	vec_push(&c->functions, f);
	return f;
}

static bool called_library(const struct calls_options *o, const struct process_object *po)
{
	return !o->libraries.rules.n || calls_filter_takes(&o->libraries, "x", po);
}

static bool is_definition(const struct object_symbol *s)
{
	return s->is_func && s->is_global;
}

const struct object_symbol *find_defines(const struct process_object *po, const char *name)
{
	const struct object_symbol *s = object_find_name(po->object, name);

	return s && is_definition(s) ? s : NULL;
}

static void take_possible(void *arg, struct probe *p)
{
	*(bool *)arg |= !p->unavailable;
}

/* Adds the places where a function that one object defines returns. loaded: the process maps it.
 * *ret_variant: as of struct return_places. */
static struct err *add_returns(struct finder *f, struct calls_function *fn,
			       const struct process_object *po, const struct object_symbol *s,
			       bool loaded, uint64_t *ret_variant)
{
	cleanup_free char *prov = xasprintf("pid%d", (int)f->pid);
	const char *module = module_of(po, loaded);
	const struct probe_desc pd = { prov, module, s->name, "return" };
	struct arena *a = &f->c->arena;
	struct return_places places = { 0 };
	const struct prototype *typed;
	bool possible = false;
	struct err *e;
	uint32_t n;

	/* The name alone does not say which version of the function is meant. */
	(void)object_find_names(po->object, s->name, &n);
	e = returns_find(f->returns, po, s, n > 1, &places);
	*ret_variant = places.variant;

	if (!e && !can_stand(f->c, module)) {
		vec_fini(&places.rets);
		fn->blind = true;
		return NULL;
	}
	typed = fn->guessed ? calls_typed(f->c, f->ps->types, po->path, s->addr, fn->name) : NULL;
	if (typed) {
		fn->prototype = typed;
		fn->guessed = false;
	}
	if (!e && places.symbolic)
		e = probe_match(f->ps, &pd, take_possible, &possible, &n);
	if (possible)
		vec_push(&fn->returns,
			 arena_printf(a, "pid%s:%s:%s:return", f->process, module, s->name));
	fn->nests |= !places.leaf;
	fn->jumps |= !places.symbolic;
	fn->blind |= places.blind || (places.symbolic && !possible);
	f->nrets += places.rets.n;
	if (f->nrets > RETS_OF_ALL_MAX) {
		f->nrets -= places.rets.n;
		places.rets.n = 0;
		fn->blind = places.too_much = true;
	}
	f->c->without_returns += places.too_much && !fn->counted;
	fn->counted |= places.too_much;
	for (uint32_t i = 0; i < places.rets.n; i++) {
		const struct return_place *r = &places.rets.v[i];
		const char *in = r->in == po ? module : module_of(r->in, true);

		if (can_stand(f->c, in))
			vec_push(&fn->rets, arena_printf(a, "pid%s:%s:--:%llx", f->process, in,
							 (unsigned long long)r->addr));
	}
	vec_fini(&places.rets);
	return e;
}

/* Adds the places where the versions of a function that one object defines return. */
static struct err *add_returns_of(struct finder *f, struct calls_function *fn,
				  const struct process_object *po, bool loaded)
{
	uint32_t n;
	const struct object_symbol *const *s = object_find_names(po->object, fn->name, &n);
	struct err *e = NULL;
	uint64_t variant;

	/* Definitions come first, by their addresses. A file may have any number of one name. */
	for (uint32_t i = 0; i < n && is_definition(s[i]) && !e; i++)
		if (!i || s[i - 1]->addr != s[i]->addr)
			e = add_returns(f, fn, po, s[i], loaded, &variant);
	return e;
}

static void take_slot(void *arg, struct probe *p)
{
	struct finder *f = arg;

	if (!p->unavailable)
		vec_push(&f->slots, p);
}

/* Adds the returns of a called function, if the object defines it. Returns the function or NULL. */
static struct calls_function *add_callee(struct finder *f, const char *name,
					 const struct process_object *po, bool loaded,
					 struct err **ret_e)
{
	struct calls_function *fn;

	if (process_object_is_linker(po) || !find_defines(po, name) || !called_library(f->c->o, po))
		return NULL;
	fn = find_function(f->c, name, 'p');
	if (fn && fn->placed != f->pid)
		*ret_e = add_returns_of(f, fn, po, loaded);
	return fn;
}

/* Returns the function that calls of this name lead to, or NULL, with the returns of all objects
 * that define it. Which of them the dynamic linker chooses is not known. A return belongs to a call
 * by its place on the stack, so all of them may be probed. Each name is looked for once: thousands
 * of objects may import the same. */
static struct calls_function *find_callee(struct finder *f, const char *name, struct err **ret_e)
{
	struct calls_function *fn = NULL;
	uint64_t *known;
	bool is_new;

	if (f->known_needed != f->needed.n)
		hash_fini(&f->known);
	f->known_needed = f->needed.n;
	known = hash_put(&f->known, name, strlen(name), &is_new);
	if (!is_new)
		return (struct calls_function *)(uintptr_t)*known;
	if (f->looks > LOOKS_MAX) {
		f->c->ntoo_many++;
		return NULL;
	}
	f->looks += f->objects->n + f->needed.n;
	for (uint32_t k = 0; k < f->objects->n && !*ret_e; k++)
		fn = add_callee(f, name, &f->objects->v[k], true, ret_e) ?: fn;
	for (uint32_t k = 0; k < f->needed.n && !*ret_e; k++)
		fn = add_callee(f, name, &f->needed.v[k], false, ret_e) ?: fn;
	if (fn)
		fn->placed = f->pid;
	*hash_put(&f->known, name, strlen(name), NULL) = (uintptr_t)fn;
	return fn;
}

struct err *find_calls_of(struct finder *f, const struct process_object *caller, bool loaded)
{
	cleanup_free char *prov = xasprintf("plt%d", (int)f->pid);
	cleanup_free char *module = xstrdup(caller->name); /* as probes have it */
	const struct probe_desc pd = { prov, module_of(caller, loaded), "", "entry" };
	struct err *e;
	uint32_t n;

	f->slots.n = 0;
	if (!can_stand(f->c, pd.mod))
		return NULL;
	characters_show(module, strlen(module));
	e = probe_match(f->ps, &pd, take_slot, f, &n);
	for (uint32_t i = 0; i < f->slots.n && !e; i++) {
		const char *name = f->slots.v[i]->func;
		struct calls_function *fn;

		if (strcmp(f->slots.v[i]->mod, module) ||
		    !calls_filter_takes(&f->c->o->plt, name, caller) || !can_stand(f->c, name))
			continue;
		fn = find_callee(f, name, &e);
		if (!fn && !f->c->o->libraries.rules.n) {
			/* The dynamic linker's own, or not there yet. */
			fn = find_function(f->c, name, 'p');
			if (fn)
				fn->blind = true;
		}
		if (fn)
			vec_push(&fn->entries, arena_printf(&f->c->arena, "plt%s:%s:%s:entry",
							    f->process, pd.mod, name));
	}
	return e;
}

static struct err *add_entry(struct finder *f, const struct process_object *po,
			     const struct object_symbol *s, bool loaded)
{
	struct calls_function *fn = find_function(f->c, s->name, 'x');
	const char *module = module_of(po, loaded);
	struct err *e = NULL;
	uint64_t variant;

	if (!fn)
		return NULL;
	e = add_returns(f, fn, po, s, loaded, &variant);
	if (!s->is_ifunc && fn->entered == po)
		return e; /* the description means all functions of the name */
	fn->entered = s->is_ifunc ? fn->entered : po;
	if (!s->is_ifunc)
		vec_push(&fn->entries, arena_printf(&f->c->arena, "pid%s:%s:%s:entry", f->process,
						    module, s->name));
	else if (variant) /* else the program does not call it */
		vec_push(&fn->entries, arena_printf(&f->c->arena, "pid%s:%s:--:%llx", f->process,
						    module, (unsigned long long)variant));
	return e;
}

struct err *find_entries_of(struct finder *f, const struct process_object *po, bool loaded,
			    uint32_t *ret_n)
{
	const struct object_symbol *s;
	struct err *e = NULL;
	uint64_t last = UINT64_MAX;
	uint32_t n;

	s = can_stand(f->c, module_of(po, loaded)) ? object_symbols(po->object, &n) : (n = 0, NULL);
	for (uint32_t i = 0; i < n && !e; i++) {
		if (!s[i].is_func || (s[i].is_ifunc && !loaded) || s[i].addr == last ||
		    !calls_filter_takes(&f->c->o->entries, s[i].name, po) ||
		    !can_stand(f->c, s[i].name))
			continue;
		last = s[i].addr;
		e = add_entry(f, po, &s[i], loaded);
		(*ret_n)++;
	}
	return e;
}

static struct err *find_in(struct finder *f)
{
	struct err *e = process_objects(f->ps, f->pid, &f->objects);
	uint32_t n = 0;

	e = e ?: returns_new(f->pid, f->objects, &f->returns);
	for (uint32_t k = 0; !e && k < f->objects->n; k++)
		if (f->objects->v[k].is_main)
			vec_push(&f->c->programs,
				 arena_strdup(&f->c->arena, f->objects->v[k].name));
	for (uint32_t k = 0; !e && k < f->objects->n && !f->c->o->no_library; k++)
		e = find_calls_of(f, &f->objects->v[k], true);
	for (uint32_t i = 0; !e && i < f->c->o->plt.rules.n && !f->c->o->no_library; i++)
		e = find_later_caller(f, &f->c->o->plt.rules.v[i]);
	for (uint32_t k = 0; !e && k < f->objects->n && f->c->o->entries.rules.n; k++)
		e = find_entries_of(f, &f->objects->v[k], true, &n);
	for (uint32_t i = 0; !e && i < f->c->o->entries.rules.n; i++)
		if (!f->c->o->entries.rules.v[i].minus)
			e = find_later(f, &f->c->o->entries.rules.v[i]);
	returns_free(f->returns);
	vec_fini(&f->slots);
	if (f->cut)
		process_note(f->ps,
			     xasprintf("process %d: libraries that are not loaded need more than "
				       "%d others; calls of the rest are not found",
				       (int)f->pid, FIND_SEARCHES_MAX));
	vec_fini(&f->needed);
	hash_fini(&f->searched);
	hash_fini(&f->known);
	return e;
}

void calls_init(struct calls *c, const struct calls_options *o, struct prototypes *prototypes)
{
	memset(c, 0, sizeof(*c));
	arena_init(&c->arena);
	c->o = o;
	c->prototypes = prototypes;
}

void calls_fini(struct calls *c)
{
	for (uint32_t i = 0; i < c->functions.n; i++) {
		vec_fini(&c->functions.v[i]->entries);
		vec_fini(&c->functions.v[i]->returns);
		vec_fini(&c->functions.v[i]->rets);
		vec_fini(&c->functions.v[i]->inner);
	}
	vec_fini(&c->functions);
	vec_fini(&c->clauses);
	vec_fini(&c->programs);
	hash_fini(&c->by_name);
	hash_fini(&c->by_type);
	arena_fini(&c->arena);
}

const char *calls_caller(const struct image_probe *p)
{
	return strncmp(p->prov, "plt", 3) ? NULL : p->mod;
}

const char *calls_library(const struct calls *c, const struct image_probe *p)
{
	if (strncmp(p->prov, "pid", 3))
		return NULL;
	for (uint32_t i = 0; i < c->programs.n; i++)
		if (!strcmp(c->programs.v[i], p->mod))
			return NULL;
	return p->mod;
}

const char *calls_shown(const struct calls *c, const struct sink *s, const char *name)
{
	const char *demangled = c->o->demangled ? symbols_demangle(s->symbols, name) : NULL;

	return demangled ? demangled : name;
}

/* Drops indirect functions of -x for which the dynamic linker has not chosen a variant. */
static void drop_unresolved(struct calls *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->functions.n; i++) {
		struct calls_function *f = c->functions.v[i];

		if (f->entries.n) {
			c->functions.v[kept++] = f;
			continue;
		}
		vec_fini(&f->returns);
		vec_fini(&f->rets);
	}
	c->functions.n = kept;
}

/* Where a call through a linkage table and the call of the function end at one place, the records
 * of the function come first: it is the inner one. */
static int by_nearness(const void *a, const void *b)
{
	const struct calls_function *const *x = a, *const *y = b;

	return COMPARE((*x)->linkage, (*y)->linkage) ?: COMPARE((*x)->number, (*y)->number);
}

struct err *calls_find(struct calls *c, struct probe_set *ps)
{
	struct err *e = NULL;

	for (uint32_t i = 0; i < ps->targets.n && !e; i++) {
		struct finder f = { .c = c, .ps = ps, .pid = ps->targets.v[i].pid };

		if (ps->targets.n == 1)
			strcpy(f.process, "$target");
		else
			snprintf(f.process, sizeof(f.process), "%d", (int)f.pid);
		c->main_thread = ps->targets.n == 1 ? (uint32_t)f.pid : 0;
		e = find_in(&f);
	}
	if (!e)
		e = find_around(c, ps, ps);
	drop_unresolved(c);
	if (c->functions.n)
		qsort(c->functions.v, c->functions.n, sizeof(*c->functions.v), by_nearness);
	return e;
}
