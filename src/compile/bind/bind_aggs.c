/* Binds aggregations: functions and their parameters, keys, and the actions that take an
 * aggregation. */
#include "compile/bind/bind_private.h"
#include "data/agg.h"

static enum agg_func func_of(enum subr_id id)
{
	switch (id) {
	case SUBR_COUNT: return AGG_COUNT;
	case SUBR_SUM: return AGG_SUM;
	case SUBR_AVG: return AGG_AVG;
	case SUBR_MIN: return AGG_MIN;
	case SUBR_MAX: return AGG_MAX;
	case SUBR_STDDEV: return AGG_STDDEV;
	case SUBR_QUANTIZE: return AGG_QUANTIZE;
	case SUBR_LQUANTIZE: return AGG_LQUANTIZE;
	default: return AGG_LLQUANTIZE;
	}
}

static const char *func_name(enum agg_func f)
{
	static const enum subr_id ids[] = {
		[AGG_COUNT] = SUBR_COUNT,
		[AGG_SUM] = SUBR_SUM,
		[AGG_AVG] = SUBR_AVG,
		[AGG_MIN] = SUBR_MIN,
		[AGG_MAX] = SUBR_MAX,
		[AGG_STDDEV] = SUBR_STDDEV,
		[AGG_QUANTIZE] = SUBR_QUANTIZE,
		[AGG_LQUANTIZE] = SUBR_LQUANTIZE,
		[AGG_LLQUANTIZE] = SUBR_LLQUANTIZE,
	};

	return subr_table[ids[f]].name;
}

/* Returns the index of the aggregation with n's name. Adds an undefined aggregation when there is
 * none. */
static uint32_t agg_named(struct bind_cx *cx, const struct node *n)
{
	struct bind_state *s = cx->state;
	bool fresh;
	uint64_t *slot = hash_put(&s->aggs, n->agg.name, strlen(n->agg.name), &fresh);

	if (fresh) {
		struct agg *a = arena_new(cx->arena, struct agg);

		a->name = n->agg.name;
		a->id = s->out->aggs.n;
		a->loc = n->loc;
		a->nwords = 1; /* as for count(), while no statement gives its function */
		vec_push(&s->out->aggs, a);
		vec_push(&s->out->agg_key_types, NULL);
		vec_push(&s->agg_info, arena_new(cx->arena, struct agg_info));
		*slot = s->out->aggs.n;
	}
	return (uint32_t)*slot - 1;
}

static void set_agg(struct bind_cx *cx, struct node *n, uint32_t agg)
{
	n->id = arena_new(cx->arena, struct bind_ident);
	n->id->kind = IDENT_AGG;
	n->id->agg = agg;
	n->type = T_VOID;
}

/* --- keys --- */

/* Binds a key. Returns its type, or T_VOID, after an error, when its type cannot be a key's. */
static type_id bind_key(struct bind_cx *cx, struct node *k, uint32_t i)
{
	type_id t;

	bind_expr(cx, k);
	if (is_poison(k))
		return T_VOID;
	if (k->type == T_DYN && is_action(k))
		return T_DYN;
	if (is_xlated(k) || k->type == T_DYN || k->type == T_VOID) {
		bind_error(cx, k, "D_KEY_TYPE", "aggregation key #%u may not be of type %s", i + 1,
			   value_text(cx, k));
		return T_VOID;
	}
	if (type_is_char_array(cx->types, k->type))
		to_string(cx, k);
	decay(cx, k);
	t = k->type;
	while (type_kind(cx->types, t) == TYPE_CONST || type_kind(cx->types, t) == TYPE_VOLATILE)
		t = type_ref(cx->types, t);
	if (!type_is_scalar(cx->types, t) && !type_is_string(cx->types, t) &&
	    !type_is_sou(cx->types, t)) {
		bind_error(cx, k, "D_KEY_TYPE", "aggregation key #%u may not be of type \"%s\"",
			   i + 1, type_text(cx, k->type));
		return T_VOID;
	}
	return t;
}

/* Binds the keys of n. The first use sets the types of the aggregation's keys. */
static bool bind_agg_keys(struct bind_cx *cx, struct node *n, uint32_t agg, bool first)
{
	struct bind_state *s = cx->state;
	struct agg *a = s->out->aggs.v[agg];
	struct agg_info *info = s->agg_info.v[agg];
	uint32_t count = list_length(n->agg.keys), i = 0;
	type_id *types = s->out->agg_key_types.v[agg], t;

	if (!check_key_count(cx, n, n->agg.keys))
		return false;
	if (first) {
		types = arena_array(cx->arena, type_id, count);
		info->key_subr = arena_array(cx->arena, enum subr_id, count);
	} else if (count != a->nkeys) {
		bind_error(cx, n, "D_PROTO_LEN",
			   "@%s[ ] prototype mismatch: %u key%s passed, %u expected", a->name,
			   count, count == 1 ? "" : "s", a->nkeys);
		return false;
	}
	for (struct node *k = n->agg.keys; k; k = k->next, i++) {
		enum subr_id subr;

		t = bind_key(cx, k, i);
		if (t == T_VOID)
			return false;
		subr = t == T_DYN ? k->id->subr : 0;
		if (first) {
			types[i] = t;
			info->key_subr[i] = subr;
			continue;
		}
		if ((t == T_DYN) != (types[i] == T_DYN) ||
		    (t == T_DYN ? subr != info->key_subr[i] : !convert(cx, k, types[i]))) {
			bind_error(
				cx, n, "D_PROTO_ARG",
				"@%s[ ] key #%u is incompatible with its first use: \"%s\" is not \"%s\"",
				a->name, i + 1,
				t == T_DYN ? subr_table[subr].name : type_text(cx, t),
				types[i] == T_DYN ? subr_table[info->key_subr[i]].name
						  : type_text(cx, types[i]));
			return false;
		}
	}
	if (first) {
		a->nkeys = count;
		s->out->agg_key_types.v[agg] = types;
	}
	return true;
}

/* --- functions --- */

static bool bad_arg(struct bind_cx *cx, struct node *n, const char *tag, const char *func,
		    const char *what)
{
	bind_error(cx, n, tag, "%s( ) %s", func, what);
	return false;
}

static bool is_int_const(struct bind_cx *cx, const struct node *a)
{
	return is_const(a) && is_integer(cx, a);
}

/* Binds lquantize(value, base, limit, [step], [increment]). */
static bool bind_lquantize(struct bind_cx *cx, struct node *n, struct node *arg, struct agg *a)
{
	struct node *base = arg->next, *limit = base->next, *step = limit->next;
	const char *f = "lquantize";
	int64_t levels;

	if (!is_int_const(cx, base))
		return bad_arg(cx, n, "D_LQUANT_BASETYPE", f,
			       "argument #2 (base) must be an integer constant");
	a->base = (int64_t)base->i.value;
	if (a->base < INT32_MIN || a->base > INT32_MAX)
		return bad_arg(cx, n, "D_LQUANT_BASEVAL", f,
			       "argument #2 (base) must be a 32-bit quantity");
	if (!is_int_const(cx, limit))
		return bad_arg(cx, n, "D_LQUANT_LIMTYPE", f,
			       "argument #3 (limit) must be an integer constant");
	a->limit = (int64_t)limit->i.value;
	if (a->limit < INT32_MIN || a->limit > INT32_MAX)
		return bad_arg(cx, n, "D_LQUANT_LIMVAL", f,
			       "argument #3 (limit) must be a 32-bit quantity");
	if (a->limit <= a->base)
		return bad_arg(cx, n, "D_LQUANT_MISMATCH", f,
			       "base (argument #2) must be less than limit (argument #3)");
	a->step = 1;
	if (step) {
		if (!positive_const(cx, step))
			return bad_arg(cx, n, "D_LQUANT_STEPTYPE", f,
				       "argument #4 (step) must be a non-zero positive integer "
				       "constant");
		if (step->i.value > UINT16_MAX)
			return bad_arg(cx, n, "D_LQUANT_STEPVAL", f,
				       "argument #4 (step) must be a 16-bit quantity");
		a->step = (int64_t)step->i.value;
	}
	levels = (a->limit - a->base) / a->step;
	if (!levels)
		return bad_arg(cx, n, "D_LQUANT_STEPLARGE", f,
			       "step (argument #4) too large: must have at least one "
			       "quantization level");
	if (levels > UINT16_MAX)
		return bad_arg(cx, n, "D_LQUANT_STEPSMALL", f,
			       "step (argument #4) too small: number of quantization levels must "
			       "be a 16-bit quantity");
	/* The limit is rounded down to a whole number of steps from the base. */
	a->limit = a->base + levels * a->step;
	return true;
}

/* Binds llquantize(value, factor, low magnitude, high magnitude, steps, [increment]). */
static bool bind_llquantize(struct bind_cx *cx, struct node *n, struct node *arg, struct agg *a)
{
	static const struct {
		const char *type_tag, *val_tag, *what;
	} params[] = {
		{ "D_LLQUANT_FACTORTYPE", "D_LLQUANT_FACTORVAL", "factor" },
		{ "D_LLQUANT_LMAGTYPE", "D_LLQUANT_LMAGVAL", "low magnitude" },
		{ "D_LLQUANT_HMAGTYPE", "D_LLQUANT_HMAGVAL", "high magnitude" },
		{ "D_LLQUANT_STEPTYPE", "D_LLQUANT_STEPVAL", "linear steps per magnitude" },
	};
	uint32_t *fields[] = { &a->factor, &a->low_mag, &a->high_mag, &a->steps };
	struct node *p = arg->next;
	uint64_t order = 1, v;

	for (size_t i = 0; i < ARRAY_SIZE(params); i++, p = p->next) {
		if (!is_int_const(cx, p)) {
			bind_error(cx, n, params[i].type_tag,
				   "llquantize( ) argument #%zu (%s) must be an integer constant",
				   i + 2, params[i].what);
			return false;
		}
		if (fields[i] == &a->steps && !positive_const(cx, p)) {
			bind_error(
				cx, n, params[i].type_tag,
				"llquantize( ) argument #%zu (%s) must be a non-zero positive integer "
				"constant",
				i + 2, params[i].what);
			return false;
		}
		if (p->i.value > UINT16_MAX) {
			bind_error(cx, n, params[i].val_tag,
				   "llquantize( ) argument #%zu (%s) must be an unsigned 16-bit "
				   "quantity",
				   i + 2, params[i].what);
			return false;
		}
		*fields[i] = (uint32_t)p->i.value;
	}
	if (a->factor < 2)
		return bad_arg(cx, n, "D_LLQUANT_FACTORVAL", "llquantize",
			       "factor (argument #2) must be two or more");
	if (a->low_mag > a->high_mag)
		return bad_arg(cx, n, "D_LLQUANT_HMAGVAL", "llquantize",
			       "high magnitude (argument #4) must be at least the low "
			       "magnitude (argument #3)");
	for (v = a->factor; v < a->steps; v *= a->factor)
		continue;
	if (a->steps < a->factor ? a->factor % a->steps : a->steps % a->factor || v % a->steps)
		return bad_arg(
			cx, n, "D_LLQUANT_STEPVAL", "llquantize",
			"the number of steps per magnitude (argument #5) and factor (argument #2) must "
			"divide one another evenly, and the number of steps a power of the factor");
	for (uint32_t i = 0; i < a->high_mag; i++) {
		if (__builtin_mul_overflow(order, a->factor, &order) || order > INT64_MAX) {
			bind_error(
				cx, n, "D_LLQUANT_HMAGVAL",
				"llquantize( ) factor (%u) raised to power of high magnitude (%u) "
				"overflows 64 bits",
				a->factor, a->high_mag);
			return false;
		}
	}
	return true;
}

static bool same_parameters(struct bind_cx *cx, struct node *n, const struct agg *old,
			    const struct agg *now)
{
	const struct {
		int64_t was, is;
		const char *tag, *what;
	} all[] = {
		{ old->base, now->base, "D_LQUANT_MATCHBASE", "base (argument #2)" },
		{ old->limit, now->limit, "D_LQUANT_MATCHLIM", "limit (argument #3)" },
		{ old->step, now->step, "D_LQUANT_MATCHSTEP", "step (argument #4)" },
		{ old->factor, now->factor, "D_LLQUANT_MATCHFACTOR", "factor (argument #2)" },
		{ old->low_mag, now->low_mag, "D_LLQUANT_MATCHLMAG",
		  "low magnitude (argument #3)" },
		{ old->high_mag, now->high_mag, "D_LLQUANT_MATCHHMAG",
		  "high magnitude (argument #4)" },
		{ old->steps, now->steps, "D_LLQUANT_MATCHSTEPS",
		  "linear steps per magnitude (argument #5)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].was != all[i].is) {
			bind_error(
				cx, n, all[i].tag,
				"%s( ) %s doesn't match previous declaration: expected %lld, found %lld",
				func_name(now->func), all[i].what, (long long)all[i].was,
				(long long)all[i].is);
			return false;
		}
	}
	return true;
}

/* Returns the words of an aggregation's value: those of data/schema.h. */
static uint32_t value_words(const struct agg *a)
{
	switch (a->func) {
	case AGG_COUNT: return 1;
	case AGG_SUM:
	case AGG_AVG:
	case AGG_MIN:
	case AGG_MAX: return 2;
	case AGG_STDDEV: return 4;
	case AGG_QUANTIZE: return 1 + 127;
	case AGG_LQUANTIZE: return 1 + (uint32_t)((a->limit - a->base) / a->step) + 2;
	case AGG_LLQUANTIZE:
		return 1 + agg_ll_nbuckets(a->factor, a->low_mag, a->high_mag, a->steps);
	}
	return 0;
}

/* Returns the index, from 0, of the argument that is a distribution's increment. */
static uint32_t increment_index(enum subr_id id)
{
	return id == SUBR_QUANTIZE ? 1 : id == SUBR_LQUANTIZE ? 4 : 5;
}

/* Returns the number, from 1, of the last argument that describes a distribution's buckets. */
static uint32_t constants_of(enum subr_id id)
{
	return id == SUBR_LQUANTIZE ? 3 : id == SUBR_LLQUANTIZE ? 5 : 1;
}

/* Binds the call's arguments and fills `a` from its constant arguments. */
static bool bind_function(struct bind_cx *cx, struct node *n, struct node *call, enum subr_id id,
			  struct agg *a)
{
	struct node *arg = call->call.args, *incr;
	uint32_t i = 1;

	for (struct node *x = arg; x; x = x->next, i++) {
		bind_expr(cx, x);
		if (bad_operand(n, x))
			return false;
		if (i > 1 && i <= constants_of(id) && !is_integer(cx, x)) {
			bind_error(
				cx, n, "D_PROTO_ARG",
				"%s( ) argument #%u is incompatible with prototype: prototype: integer, "
				"argument: %s",
				call->call.func, i, value_text(cx, x));
			return false;
		}
	}
	a->func = func_of(id);
	a->type = T_UINT64;
	if (!arg) {
		a->nwords = value_words(a);
		return true;
	}
	decay(cx, arg);
	if (!is_scalar(cx, arg)) {
		bind_error(cx, n, "D_AGG_SCALAR", "%s( ) argument #1 must be of scalar type",
			   call->call.func);
		return false;
	}
	a->type = type_is_integer(cx->types, arg->type) && type_is_signed(cx->types, arg->type)
			  ? T_INT64
			  : T_UINT64;
	cast_to(cx, arg, a->type);
	if ((id == SUBR_LQUANTIZE && !bind_lquantize(cx, n, arg, a)) ||
	    (id == SUBR_LLQUANTIZE && !bind_llquantize(cx, n, arg, a)))
		return false;
	incr = arg;
	for (i = 0; incr && i < increment_index(id); i++)
		incr = incr->next;
	if (incr) {
		decay(cx, incr);
		if (!is_scalar(cx, incr)) {
			bind_error(cx, n, "D_PROTO_ARG",
				   "%s( ) increment value must be of scalar type", call->call.func);
			return false;
		}
		cast_to(cx, incr, T_INT64);
	}
	a->nwords = value_words(a);
	return true;
}

bool agg_is_known(struct bind_cx *cx, const char *name)
{
	return hash_get(&cx->state->aggs, name, strlen(name));
}

void bind_agg_assign(struct bind_cx *cx, struct node *n)
{
	struct bind_state *s = cx->state;
	struct node *l = n->e.a, *call = n->e.b;
	int id = call->kind == N_CALL ? subr_find(cx, call->call.func) : -1;
	struct agg now = { 0 }, *a;
	struct agg_info *info;
	uint32_t agg;
	bool first;

	if (is_poison(n))
		return;
	agg = agg_named(cx, l);
	a = s->out->aggs.v[agg];
	info = s->agg_info.v[agg];
	if (n->op != OP_NONE || id < 0 || subr_table[id].kind != SUBR_KIND_AGG) {
		if (call->kind == N_CALL && id < 0)
			bind_expr(cx, call); /* reports that there is no function of this name */
		else
			bind_error(cx, n, "D_AGG_FUNC",
				   "@%s must be assigned the result of an aggregating function",
				   a->name);
		info->bad = true;
		poison(n);
		return;
	}
	first = !info->defined;
	if (!first && a->func != func_of((enum subr_id)id)) {
		bind_error(cx, n, "D_AGG_REDEF",
			   "aggregation redefined: @%s is %s( ) and becomes %s( )", a->name,
			   func_name(a->func), call->call.func);
		return;
	}
	if (!check_count(cx, call, (enum subr_id)id) ||
	    !bind_function(cx, n, call, (enum subr_id)id, &now) ||
	    !bind_agg_keys(cx, l, agg, first)) {
		info->bad = true;
		poison(n);
		return;
	}
	if (!first) {
		if (!same_parameters(cx, n, a, &now))
			return;
		/* Signed once, signed for all uses: the 64 bits of the value are the same. */
		if (now.type == T_INT64)
			a->type = T_INT64;
	} else {
		now.name = a->name;
		now.id = a->id;
		now.nkeys = a->nkeys;
		now.loc = a->loc;
		*a = now;
		info->defined = true;
	}
	set_agg(cx, l, agg);
	set_call(cx, call, (enum subr_id)id);
	n->type = T_VOID;
}

/* --- aggregations as arguments --- */

bool bind_agg_ref(struct bind_cx *cx, struct node *call, struct node *n)
{
	const char *f = call->call.func, *tag;

	if (n->kind == N_AGG && !n->agg.keys) {
		set_agg(cx, n, agg_named(cx, n));
		vec_push(&cx->state->agg_uses, (struct agg_use){ .call = call, .agg = n });
		return true;
	}
	tag = !strcmp(f, "clear")    ? "D_CLEAR_AGGARG"
	      : !strcmp(f, "trunc")  ? "D_TRUNC_AGGARG"
	      : !strcmp(f, "printa") ? "D_PRINTA_AGGARG"
				     : "D_NORMALIZE_AGGARG";
	if (n->kind == N_AGG) {
		bind_error(cx, call, tag, "%s( ) takes whole aggregations: @%s without keys", f,
			   n->agg.name);
		return false;
	}
	bind_expr(cx, n);
	if (is_poison(n))
		poison(call);
	else
		bind_error(
			cx, call, tag,
			"%s( ) argument is incompatible with prototype: prototype: aggregation, argument: %s",
			f, value_text(cx, n));
	return false;
}

static const char *undefined_tag(const char *f)
{
	return !strcmp(f, "clear")    ? "D_CLEAR_AGGBAD"
	       : !strcmp(f, "trunc")  ? "D_TRUNC_AGGBAD"
	       : !strcmp(f, "printa") ? "D_PRINTA_AGGBAD"
				      : "D_NORMALIZE_AGGBAD";
}

/* Reports aggregations of one printa() whose keys differ. */
static bool check_together(struct bind_cx *cx, struct node *call, uint32_t a, uint32_t b)
{
	struct bound *out = cx->state->out;
	const struct agg *x = out->aggs.v[a], *y = out->aggs.v[b];

	if (x->nkeys != y->nkeys) {
		bind_error(cx, call, "D_PRINTA_AGGKEY",
			   "printa( ) @%s and @%s have different numbers of keys", x->name,
			   y->name);
		return false;
	}
	for (uint32_t i = 0; i < x->nkeys; i++) {
		type_id s = out->agg_key_types.v[a][i], t = out->agg_key_types.v[b][i];

		if (s == t || (s != T_DYN && t != T_DYN && type_same(cx->types, s, t)) ||
		    (type_is_integer(cx->types, s) && type_is_integer(cx->types, t)))
			continue;
		bind_error(cx, call, "D_PRINTA_AGGPROTO",
			   "printa( ) @%s and @%s have different types of key #%u", x->name,
			   y->name, i + 1);
		return false;
	}
	return true;
}

void aggs_check(struct bind_cx *cx)
{
	struct bind_state *s = cx->state;
	struct node *last = NULL;
	uint32_t first = 0;

	for (uint32_t i = 0; i < s->agg_uses.n; i++) {
		struct node *call = s->agg_uses.v[i].call, *n = s->agg_uses.v[i].agg;
		struct nearest near = { .word = n->agg.name };
		uint32_t agg;

		if (call->kind != N_CALL)
			continue; /* was poisoned after this use was recorded */
		agg = n->id->agg;
		if (s->agg_info.v[agg]->bad)
			continue;
		if (!s->agg_info.v[agg]->defined) {
			for (uint32_t j = 0; j < s->out->aggs.n && !diags_full(cx->diags); j++) {
				if (s->agg_info.v[j]->defined)
					nearest_offer(&near, s->out->aggs.v[j]->name);
			}
			diag_error(cx->diags, n->loc, n->end, undefined_tag(call->call.func),
				   "undefined aggregation: @%s%s%s%s", n->agg.name,
				   near.name ? " (did you mean @" : "", near.name ? near.name : "",
				   near.name ? "?)" : "");
			s->agg_info.v[agg]->bad = true;
			continue;
		}
		if (call->id->subr != SUBR_PRINTA)
			continue;
		if (call == last) {
			if (!s->agg_info.v[first]->bad)
				check_together(cx, call, first, agg);
			continue;
		}
		last = call;
		first = agg;
		check_printa(cx, call, agg);
	}
}
