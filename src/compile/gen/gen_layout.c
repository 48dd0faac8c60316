/* Plans the image before any code is made: places of variables, layouts of keys, and the tables and
 * maps that the program needs. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"
#include "wire/routines.h"

/* The tables that the clauses need, made once for the image. */
struct look {
	struct gen *g;
	const struct bound_clause *cl;
	uint32_t parts; /* uses of probefunc and the like */
	bool id, strtok;
};

static void layout_look(void *arg, const struct node *n)
{
	struct look *needs = arg;
	struct gen *g = needs->g;
	const struct bound_clause *cl = needs->cl;

	if (!n->id)
		return;
	gen_slots_look(g, n);
	if (n->kind == N_IDENT && n->id->kind == IDENT_BUILTIN) {
		switch (n->id->builtin) {
		case BUILTIN_PROBEPROV:
		case BUILTIN_PROBEMOD:
		case BUILTIN_PROBEFUNC:
		case BUILTIN_PROBENAME: needs->parts++; break;
		case BUILTIN_ID: needs->id = true; break;
		case BUILTIN_ARG1: /* of ERROR: the id of the probe that failed */
			needs->id |= cl->attach == ATTACH_SELF;
			break;
		case BUILTIN_UCALLER:
		case BUILTIN_USTACKDEPTH: g->uses_switch_stacks |= cl->thread_arg >= 0; break;
		case BUILTIN_VTIMESTAMP: g->uses_vtime = !g->target->inside; break;
		default: break;
		}
	} else if (n->kind == N_CALL && n->id->kind == IDENT_SUBR && n->id->subr == SUBR_STRTOK) {
		needs->strtok = true;
	} else if (n->kind == N_CALL && n->id->kind == IDENT_SUBR && cl->thread_arg >= 0 &&
		   (n->id->subr == SUBR_STACK || n->id->subr == SUBR_USTACK ||
		    n->id->subr == SUBR_JSTACK)) {
		g->uses_switch_stacks = true;
	} else if (n->kind == N_AGG && n->id->kind == IDENT_AGG && n->agg.keys) {
		gen_widen_tuple(g, &g->agg_keys[n->id->agg], n->agg.keys, true);
	} else if (n->kind == N_INDEX && n->id->kind == IDENT_VAR && n->id->var->assoc) {
		gen_widen_tuple(g, &g->vars[n->id->var->index].key, n->e.b, false);
	}
	/* System calls cannot interrupt each other on a CPU. All other probes can, so they add
	 * atomically. */
	if (n->kind == N_AGG && n->id->kind == IDENT_AGG && cl->attach != ATTACH_SYSCALL_ENTRY &&
	    cl->attach != ATTACH_SYSCALL_RETURN)
		g->agg_atomic[n->id->agg] = true;
}

/* Returns the bytes of a variable's value, in whole words, or GEN_VARIABLES_MAX + 8 if it is
 * larger. */
static uint32_t value_size(struct gen *g, type_id t)
{
	uint64_t n = type_is_string(g->types, t) ? g->strsize : type_size(g->types, t);

	if (n > GEN_VARIABLES_MAX)
		return GEN_VARIABLES_MAX + 8;
	/* The size of a type that exceeds 64 bits is 0. */
	if (!n && type_kind(g->types, type_strip(g->types, t)) == TYPE_ARRAY)
		return GEN_VARIABLES_MAX + 8;
	return n ? (uint32_t)((n + 7) & ~7ull) : 8;
}

/* Returns 1, 2, 4 or 8, so that the scalar is aligned too. */
static uint32_t scalar_size(struct gen *g, type_id t)
{
	uint64_t n = type_size(g->types, t);

	return n == 1 || n == 2 || n == 4 ? (uint32_t)n : 8;
}

static bool too_large(struct gen *g, const struct variable *v, uint32_t others, uint32_t size)
{
	if (size <= GEN_VARIABLES_MAX && others <= GEN_VARIABLES_MAX - size)
		return false;
	diag_error(g->diags, v->loc, 0, "D_TOO_LARGE",
		   "variable %s of type %s does not fit: %s at most %u MB%s", v->name,
		   type_name(g->types, g->arena, v->type, NULL),
		   v->assoc ? "an element has" : "the variables of a scope have",
		   GEN_VARIABLES_MAX >> 20, v->assoc ? "" : " together");
	g->failed = true;
	return true;
}

enum { ENTRIES_MAX = 1 << 20 };

/* Returns how many elements of `each` bytes fit in this much memory. */
static uint32_t elements(uint64_t bytes, uint64_t each)
{
	uint64_t n = bytes / each;

	return n < 1 ? 1 : n > ENTRIES_MAX ? ENTRIES_MAX : (uint32_t)n;
}

/* Returns the same for an option's memory. Warns when this is fewer than the option asks for. */
static uint32_t entries(struct gen *g, enum option_id option, uint64_t each, const char *kind,
			const char *name, loc_t loc)
{
	const struct option_value *v = &g->options->v[option];
	uint64_t n = (uint64_t)v->num / each;

	if (n > ENTRIES_MAX && v->set)
		diag_warn(g->diags, loc, 0, "D_OPT_REDUCED",
			  "%s=%lld: %s%s has at most %d keys, which take %lld bytes",
			  option_name(option), (long long)v->num, kind, name, ENTRIES_MAX,
			  (long long)(ENTRIES_MAX * each));
	return elements((uint64_t)v->num, each);
}

/* Bytes that the kernel keeps for a hash element beside key and value. */
enum { ELEMENT_OVERHEAD = 64 };

static void place_variables(struct gen *g)
{
	g->tls_size = sizeof(struct wire_tls);
	for (uint32_t i = 0; i < g->b->vars.n; i++) {
		const struct variable *v = g->b->vars.v[i];
		struct var_layout *l = &g->vars[i];
		uint32_t *top = v->scope == SCOPE_SELF   ? &g->tls_size
				: v->scope == SCOPE_THIS ? &g->this_size
							 : &g->globals_size;

		l->size = value_size(g, v->type);
		l->map = -1;
		if (too_large(g, v, v->assoc ? 0 : *top, l->size))
			l->size = 8; /* compilation ends after the layout */
		if (v->assoc) {
			gen_layout_tuple(g, &l->key, v->keys, v->nkeys);
			continue;
		}
		if (v->scope == SCOPE_THIS && type_is_scalar(g->types, v->type))
			continue;
		if (type_is_scalar(g->types, v->type)) {
			uint32_t size = scalar_size(g, v->type);

			*top = (*top + size - 1) / size * size;
			l->offset = *top;
			*top += size;
			continue;
		}
		*top = (*top + 7) & ~7u;
		l->offset = *top;
		*top += l->size;
	}
}

static bool is_shared(const struct var_layout *l)
{
	return l->key.tag != 0;
}

/* Puts all arrays into one map. Its keys and values have the size of the longest. */
static void share_arrays(struct gen *g)
{
	uint32_t key = 0, value = 0, tag = 0, map;

	for (uint32_t i = 0; i < g->b->vars.n; i++) {
		if (!g->b->vars.v[i]->assoc)
			continue;
		g->vars[i].key.tag = ++tag;
		if (key < 8 + g->vars[i].key.size)
			key = 8 + g->vars[i].key.size;
		if (value < g->vars[i].size)
			value = g->vars[i].size;
	}
	if (!tag)
		return;
	map = gen_map(g, MAP_ASSOC, "arrays", BPF_MAP_TYPE_HASH, key, value,
		      elements((uint64_t)opt_num(g->options, OPT_DYNVARSIZE) * tag, key + value),
		      BPF_F_NO_PREALLOC);
	for (uint32_t i = 0; i < g->b->vars.n; i++) {
		if (!is_shared(&g->vars[i]))
			continue;
		g->vars[i].map = (int)map;
		g->vars[i].key.size = key;
		g->vars[i].size = value;
	}
}

static void finish_keys(struct gen *g, struct tuple_layout *l, bool thread, const char *what,
			const char *name, loc_t loc)
{
	if (gen_finish_tuple(l, thread))
		return;
	diag_error(g->diags, loc, 0, "D_TOO_LARGE",
		   "the keys of %s%s do not fit: those of one element have at most %u MB", what,
		   name, GEN_KEY_MAX >> 20);
	g->failed = true;
}

static void make_arrays(struct gen *g, bool share)
{
	for (uint32_t i = 0; i < g->b->vars.n; i++) {
		const struct variable *v = g->b->vars.v[i];
		struct var_layout *l = &g->vars[i];

		if (!v->assoc)
			continue;
		finish_keys(g, &l->key, v->scope == SCOPE_SELF, "array ", v->name, v->loc);
		if (share)
			continue;
		l->map = (int)gen_map(g, MAP_ASSOC, arena_strdup(g->arena, v->name),
				      BPF_MAP_TYPE_HASH, l->key.size, l->size,
				      entries(g, OPT_DYNVARSIZE, l->key.size + l->size, "array ",
					      v->name, v->loc),
				      BPF_F_NO_PREALLOC);
	}
	if (share)
		share_arrays(g);
}

/* The values of a key that is one probe name or literal are few, so all elements are preallocated.
 * Adding one in a probe with interrupts off sometimes fails (sdt:::). */
enum { FEW_KEYS = 64, SMALL_PROBES = 8192 };

static bool is_small(const struct gen *g, const struct tuple_layout *l)
{
	return l->n == 1 && l->fields[0].kind == FIELD_STRID && g->probes.n <= SMALL_PROBES;
}

/* Keys with stacks are often new. Since 6.8 the kernel requests an interrupt nearly each time that
 * it adds an element with a value for each CPU, 8 us in a virtual machine. So such elements are
 * preallocated, up to this number and aggsize. */
enum { STACK_KEYS_MAX = 1 << 16 };

static bool has_stack(const struct tuple_layout *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->fields[i].kind == FIELD_USTACKID || l->fields[i].kind == FIELD_KSTACKID)
			return true;
	return false;
}

static uint32_t agg_entries(struct gen *g, const struct agg *a, const struct tuple_layout *l)
{
	uint64_t least = l->size + a->nwords * 8 + sizeof(uint64_t);

	if (l->size <= GEN_KEY_MAX && (uint64_t)opt_num(g->options, OPT_AGGSIZE) < least) {
		diag_error(g->diags, a->loc, a->loc, "D_OPT_SIZE",
			   "aggsize=%lld has no room for one value of @%s, %llu bytes",
			   (long long)opt_num(g->options, OPT_AGGSIZE), a->name,
			   (unsigned long long)least);
		g->failed = true;
	}
	return l->n ? entries(g, OPT_AGGSIZE, l->size + a->nwords * 8 + ELEMENT_OVERHEAD,
			      "aggregation @", a->name, a->loc)
		    : 1;
}

static void make_agg_map(struct gen *g, uint32_t i)
{
	struct agg *a = g->b->aggs.v[i];
	const struct tuple_layout *l = &g->agg_keys[i];
	const char *name = arena_printf(g->arena, "agg_%s", a->name);
	uint32_t n = agg_entries(g, a, l);

	if (gen_slots_take(g, i, is_small(g, l) ? FEW_KEYS + 2 * g->probes.n : n))
		a->map = gen_map(g, MAP_AGG, name, BPF_MAP_TYPE_PERCPU_ARRAY, 4, a->nwords * 8,
				 a->nslots, 0);
	else if (is_small(g, l))
		a->map = gen_map(g, MAP_AGG, name, BPF_MAP_TYPE_PERCPU_HASH, l->size, a->nwords * 8,
				 FEW_KEYS + 2 * g->probes.n, 0);
	else if (l->n)
		a->map = gen_map(g, MAP_AGG, name, BPF_MAP_TYPE_PERCPU_HASH, l->size, a->nwords * 8,
				 n, has_stack(l) && n <= STACK_KEYS_MAX ? 0 : BPF_F_NO_PREALLOC);
	else
		a->map = gen_map(g, MAP_AGG, name, BPF_MAP_TYPE_PERCPU_ARRAY, 4, a->nwords * 8, 1,
				 0);
}

/* Puts all aggregations with as many words as the first into one map. Its keys have the size of the
 * longest. */
static void share_aggs(struct gen *g, uint32_t first)
{
	uint32_t nwords = g->b->aggs.v[first]->nwords, key = 0, map;
	uint64_t n = 0;

	for (uint32_t i = first; i < g->b->aggs.n; i++) {
		struct tuple_layout *l = &g->agg_keys[i];

		if (g->b->aggs.v[i]->nwords != nwords)
			continue;
		if (key < 8 + l->size)
			key = 8 + l->size;
		n += agg_entries(g, g->b->aggs.v[i], l);
	}
	map = gen_map(g, MAP_AGG, arena_printf(g->arena, "aggs_%u", nwords),
		      BPF_MAP_TYPE_PERCPU_HASH, key, nwords * 8, elements(n, 1), BPF_F_NO_PREALLOC);
	for (uint32_t i = first; i < g->b->aggs.n; i++) {
		struct agg *a = g->b->aggs.v[i];

		if (a->nwords != nwords)
			continue;
		a->map = map;
		a->tag = g->agg_keys[i].tag = i + 1;
		g->agg_keys[i].size = key;
	}
}

static void make_aggs(struct gen *g, bool share)
{
	for (uint32_t i = 0; i < g->b->aggs.n; i++)
		finish_keys(g, &g->agg_keys[i], false, "@", g->b->aggs.v[i]->name,
			    g->b->aggs.v[i]->loc);
	gen_slots_number(g);
	for (uint32_t i = 0; i < g->b->aggs.n; i++) {
		struct agg *a = g->b->aggs.v[i];
		struct tuple_layout *l = &g->agg_keys[i];

		a->keys = l->fields;
		a->nkeys = l->n;
		a->key_size = l->n ? l->size : 0;
		a->tag = 0;
		a->nslots = 0;
	}
	for (uint32_t i = 0; i < g->b->aggs.n; i++) {
		if (!share)
			make_agg_map(g, i);
		else if (!g->b->aggs.v[i]->tag)
			share_aggs(g, i);
	}
}

/* Returns true when aggregations, arrays and the other maps exceed the maps that the kernel lets a
 * program use. */
static bool has_too_many(const struct gen *g)
{
	enum { OTHER_MAPS = 16 };
	uint32_t n = g->b->aggs.n + OTHER_MAPS;

	for (uint32_t i = 0; i < g->b->vars.n; i++)
		n += g->b->vars.v[i]->assoc;
	return g->target->maps_max && n > g->target->maps_max;
}

/* Counts the uses of probefunc and the like that need no text, because the image has the keys of
 * slots. */
static uint32_t slotted_parts(const struct gen *g)
{
	uint32_t parts = 0;

	for (uint32_t i = 0; i < g->b->aggs.n; i++)
		if (g->b->aggs.v[i]->nslots)
			parts += g->slots[i].parts;
	return parts;
}

static void make_tables(struct gen *g, const struct look *needs)
{
	uint32_t zeros = g->strsize, n = g->probes.n;

	for (uint32_t i = 0; i < g->b->aggs.n; i++)
		if (zeros < g->b->aggs.v[i]->nwords * 8)
			zeros = g->b->aggs.v[i]->nwords * 8;
	for (uint32_t i = 0; i < g->b->vars.n; i++)
		if (zeros < g->vars[i].size)
			zeros = g->vars[i].size;
	/* Offset 0 stays unused so that 0 can mean "not made". */
	(void)gen_rodata(g, NULL, 8, 8);
	g->zeros = gen_rodata(g, NULL, zeros, 8);
	if (needs->id) {
		g->probe_ids = gen_rodata(g, NULL, 4 * n, 8);
		for (uint32_t i = 0; i < n; i++)
			memcpy(g->rodata.v + g->probe_ids + 4 * i, &g->probes.v[i].id, 4);
	}
	if (needs->parts == slotted_parts(g))
		return;
	g->probe_texts = gen_rodata(g, NULL, 16 * n, 8);
	for (uint32_t i = 0; i < n; i++) {
		const struct image_probe *p = &g->probes.v[i];
		uint32_t ids[4] = { gen_text(g, p->prov), gen_text(g, p->mod), gen_text(g, p->func),
				    gen_text(g, p->name) };

		memcpy(g->rodata.v + g->probe_texts + 16 * i, ids, 16);
	}
	g->text_count = g->texts.n;
	g->text_table = gen_rodata(g, NULL, 4 * g->text_count, 8);
	for (uint32_t i = 0; i < g->text_count; i++) {
		uint32_t at = gen_rodata_text(g, intern_text(&g->texts, i));

		memcpy(g->rodata.v + g->text_table + 4 * i, &at, 4);
	}
	g->text_end = g->rodata.n;
}

static void look_for_copy(void *arg, const struct node *n)
{
	bool *copies_in = arg;

	*copies_in |= n->kind == N_CALL && n->id && n->id->kind == IDENT_SUBR &&
		      (n->id->subr == SUBR_COPYIN || n->id->subr == SUBR_COPYINSTR ||
		       n->id->subr == SUBR_COPYINTO || n->id->subr == SUBR_TRACEMEM ||
		       n->id->subr == SUBR_PRINT);
	/* These pointers may point to the process's memory. */
	*copies_in |= n->kind == N_PMEMBER || n->kind == N_STRINGOF ||
		      (n->kind == N_UNARY && n->op == OP_DEREF) ||
		      (n->kind == N_INDEX && n->e.a->kind != N_IDENT);
}

struct kept {
	struct gen *g;
	bool found;
};

static void look_for_kept(void *arg, const struct node *n)
{
	struct kept *k = arg;

	if (!n->id)
		return;
	if (n->id->kind == IDENT_VAR)
		k->found |= n->id->var->scope == SCOPE_THIS &&
			    !type_is_scalar(k->g->types, n->id->var->type);
	else if (n->id->kind == IDENT_SUBR)
		k->found |= n->kind == N_CALL && n->id->subr == SUBR_STRTOK;
}

bool gen_keeps_scratch(struct gen *g, const struct bound_clause *cl)
{
	struct kept k = { .g = g };

	node_walk(cl->pred, look_for_kept, &k);
	node_walk(cl->body, look_for_kept, &k);
	return k.found || gen_uses_earlier_memory(g, cl);
}

struct earlier {
	const struct gen *g;
	const struct variable *var; /* the variable whose assignment is looked for */
	const struct bound_clause *cl;
	bool assigned, found;
};

static const struct variable *assigned_variable(const struct node *n);

static void look_for_assignment(void *arg, const struct node *n)
{
	struct earlier *e = arg;

	e->assigned |= assigned_variable(n) == e->var;
}

static void look_for_earlier(void *arg, const struct node *n)
{
	struct earlier *e = arg;

	if (e->found || n->kind != N_IDENT || !n->id || n->id->kind != IDENT_VAR ||
	    n->id->var->scope != SCOPE_THIS || !e->g->vars[n->id->var->index].own)
		return;
	e->var = n->id->var;
	e->assigned = false;
	node_walk(e->cl->body, look_for_assignment, e);
	e->found = !e->assigned;
}

bool gen_uses_earlier_memory(const struct gen *g, const struct bound_clause *cl)
{
	struct earlier e = { .g = g, .cl = cl };

	node_walk(cl->pred, look_for_earlier, &e);
	node_walk(cl->body, look_for_earlier, &e);
	return e.found;
}

bool gen_copies_in(const struct bound_clause *cl)
{
	bool copies_in = false;

	node_walk(cl->pred, look_for_copy, &copies_in);
	node_walk(cl->body, look_for_copy, &copies_in);
	return copies_in;
}

/* --- variables that hold pointers to the firing's own memory --- */

/* The argument of suppose_own() and refute_own(). */
struct assigned {
	struct gen *g;
	bool changed;
};

static const struct variable *assigned_variable(const struct node *n)
{
	const struct node *l = n->e.a;

	return n->kind == N_ASSIGN && n->op == OP_NONE &&
			       (l->kind == N_IDENT || l->kind == N_INDEX) && l->id &&
			       l->id->kind == IDENT_VAR
		       ? l->id->var
		       : NULL;
}

static bool is_zero(const struct node *n)
{
	while (n->kind == N_CAST)
		n = n->t.a;
	return n->kind == N_INT && !n->i.value;
}

static void suppose_own(void *arg, const struct node *n)
{
	struct assigned *a = arg;
	const struct variable *v = assigned_variable(n);

	if (v && type_is_pointer(a->g->types, v->type) && !is_zero(n->e.b))
		a->g->vars[v->index].own = true;
}

static void refute_own(void *arg, const struct node *n)
{
	struct assigned *a = arg;
	const struct variable *v = assigned_variable(n);

	if (!v || !a->g->vars[v->index].own || is_zero(n->e.b) || gen_is_own(a->g, n->e.b))
		return;
	a->g->vars[v->index].own = false;
	a->changed = true;
}

static void walk_clauses(struct gen *g, void (*fn)(void *arg, const struct node *n), void *arg)
{
	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		node_walk(g->b->clauses.v[i]->pred, fn, arg);
		node_walk(g->b->clauses.v[i]->body, fn, arg);
	}
}

/* Finds the variables that hold only pointers to the firing's own memory. Assumes that every
 * assigned pointer variable does, and drops variables until no assignment contradicts. */
static void find_own(struct gen *g)
{
	struct assigned a = { .g = g };

	walk_clauses(g, suppose_own, &a);
	do {
		a.changed = false;
		walk_clauses(g, refute_own, &a);
	} while (a.changed);
}

/* needs: probes numbered.   gives: every layout, map and table but read-only text that code adds.
 * keeps: clauses. */
void gen_collect(struct gen *g)
{
	struct look needs = { .g = g };
	bool share;

	g->vars = arena_array(g->arena, struct var_layout, g->b->vars.n + 1);
	g->agg_keys = arena_array(g->arena, struct tuple_layout, g->b->aggs.n + 1);
	g->slots = arena_array(g->arena, struct agg_slots, g->b->aggs.n + 1);
	g->agg_atomic = arena_array(g->arena, bool, g->b->aggs.n + 1);
	g->dynsize = (uint32_t)((opt_num(g->options, OPT_SCRATCHSIZE) + 7) & ~7ll);
	if (g->dynsize < 64)
		g->dynsize = 64;
	if (g->dynsize > 1u << 20)
		g->dynsize = 1u << 20;
	g->this_size = SCRATCH_DYN + 2 * g->dynsize;
	place_variables(g);
	g->tls_size = (g->tls_size + 7) & ~7u;
	g->globals_size = g->globals_size ? (g->globals_size + 7) & ~7u : 8;
	find_own(g);
	for (uint32_t i = 0; i < g->b->aggs.n; i++)
		gen_layout_tuple(g, &g->agg_keys[i], g->b->agg_key_types.v[i],
				 g->b->aggs.v[i]->nkeys);
	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		const struct bound_clause *cl = g->b->clauses.v[i];

		needs.cl = cl;
		node_walk(cl->pred, layout_look, &needs);
		node_walk(cl->body, layout_look, &needs);
	}
	if (needs.strtok) {
		g->strtok_at = g->this_size;
		g->this_size += 8 + g->strsize;
	}
	g->scratch_size = g->this_size;
	share = has_too_many(g);
	make_arrays(g, share);
	make_aggs(g, share);
	make_tables(g, &needs);
	if (g->uses_vtime || g->uses_switch_stacks)
		(void)gen_fixed_map(g, MAP_TLS);
}
