/* Generates @name[keys] = func(args): finds or adds this CPU's entry and updates it in place. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"

static struct ir_val cell(struct gen *g, struct ir_val entry, struct ir_val bucket,
			  uint32_t nbuckets, uint32_t full)
{
	ir_if(g->f, bucket, IF_UGE, IR_I(nbuckets), full);
	return ir_bin(g->f, ALU_ADD, ir_bin(g->f, ALU_SHL, bucket, IR_I(3)), entry);
}

/* Returns lquantize's bucket: (v - base) / step + 1, clamped. Bucket 0 is below the base, the last
 * at or above the limit. */
static struct ir_val linear_bucket(struct gen *g, const struct agg *a, struct ir_val v)
{
	struct ir_fn *f = g->f;
	struct ir_val b = ir_new_reg(f), rel;
	uint32_t done = ir_new_label(f), high = ir_new_label(f);

	ir_set(f, b, IR_I(0));
	ir_if(f, v, IF_SLT, IR_I(a->base), done);
	ir_if(f, v, IF_SGE, IR_I(a->limit), high);
	rel = ir_bin(f, ALU_SUB, v, IR_I(a->base));
	ir_set(f, b, ir_bin(f, ALU_ADD, ir_bin(f, ALU_DIV, rel, IR_I(a->step)), IR_I(1)));
	ir_goto(f, done);
	ir_place(f, high);
	ir_set(f, b, IR_I(a->nwords - 2));
	ir_place(f, done);
	return b;
}

/* Returns the rank of a magnitude where each order of magnitude is a power of two. The number of
 * its bits is its order, and its bits below the highest are its step, so no loop looks for the
 * order. The caller has compared it with the bounds of the lowest and the highest order. */
static struct ir_val binary_rank(struct gen *g, const struct agg *a, struct ir_val magnitude)
{
	struct ir_fn *f = g->f;
	struct ir_val rank = ir_new_reg(f), bits;
	uint32_t shift = (uint32_t)__builtin_ctz(a->steps), half = a->steps / 2;
	uint32_t first = a->low_mag > shift ? a->low_mag : shift, done = ir_new_label(f);
	int64_t lowest = INT64_C(1) << a->low_mag, full = INT64_C(1) << first;

	/* Orders that have no more numbers than steps: a step is a number. */
	ir_set(f, rank, ir_bin(f, ALU_SUB, magnitude, IR_I(lowest - 1)));
	ir_if(f, magnitude, IF_ULT, IR_I(INT64_C(1) << shift), done);
	bits = ir_bin(f, ALU_SUB, ir_routine(f, "d_quantize_bucket", 1, magnitude), IR_I(63));
	ir_set(f, rank, ir_bin(f, ALU_SHR, magnitude, ir_bin(f, ALU_SUB, bits, IR_I(shift))));
	ir_set(f, rank, ir_bin(f, ALU_ADD, rank, ir_bin(f, ALU_MUL, bits, IR_I(half))));
	ir_set(f, rank,
	       ir_bin(f, ALU_ADD, rank, IR_I(1 + full - lowest - (int64_t)half * (first + 2))));
	ir_place(f, done);
	return rank;
}

/* Returns the log-linear rank of a magnitude. */
static struct ir_val log_linear_rank(struct gen *g, const struct agg *a, struct ir_val magnitude)
{
	enum { MAX_ORDER = 61 };
	struct ir_fn *f = g->f;
	struct ir_val rank;
	uint32_t done, high;

	if (a->factor != 2 || a->steps < 2 || a->high_mag > MAX_ORDER ||
	    __builtin_ctz(a->steps) > MAX_ORDER)
		return ir_routine(f, "d_llquantize_rank", 5, magnitude, IR_I(a->factor),
				  IR_I(a->low_mag), IR_I(a->high_mag), IR_I(a->steps));
	rank = ir_new_reg(f);
	done = ir_new_label(f);
	high = ir_new_label(f);
	ir_set(f, rank, IR_I(0));
	ir_if(f, magnitude, IF_ULT, IR_I(INT64_C(1) << a->low_mag), done);
	ir_if(f, magnitude, IF_UGE, IR_I(INT64_C(1) << (a->high_mag + 1)), high);
	ir_set(f, rank, binary_rank(g, a, magnitude));
	ir_goto(f, done);
	ir_place(f, high);
	ir_set(f, rank, IR_I(agg_ll_middle(a->factor, a->low_mag, a->high_mag, a->steps)));
	ir_place(f, done);
	return rank;
}

/* Returns llquantize's bucket: the rank of the magnitude, up or down from the bucket in the
 * middle. */
static struct ir_val log_linear_bucket(struct gen *g, const struct agg *a, struct ir_val v)
{
	struct ir_fn *f = g->f;
	struct ir_val sign = ir_bin(f, ALU_SAR, v, IR_I(63)), rank;
	uint32_t middle = agg_ll_middle(a->factor, a->low_mag, a->high_mag, a->steps);

	rank = log_linear_rank(g, a, ir_bin(f, ALU_SUB, ir_bin(f, ALU_XOR, v, sign), sign));
	rank = ir_bin(f, ALU_SUB, ir_bin(f, ALU_XOR, rank, sign), sign);
	return ir_bin(f, ALU_ADD, rank, IR_I(middle));
}

/* Updates min() or max(). Compares values as int64_t, whatever their type, because the consumer
 * does so when it merges CPUs. */
static void extreme(struct gen *g, const struct agg *a, struct ir_val entry, struct ir_val v)
{
	struct ir_fn *f = g->f;
	uint32_t set = ir_new_label(f), done = ir_new_label(f);
	struct ir_val old;

	ir_if(f, ir_load(f, entry, 0, 8, false), IF_EQ, IR_I(0), set);
	old = ir_load(f, entry, 8, 8, false);
	if (a->func == AGG_MIN)
		ir_if(f, v, IF_SGE, old, done);
	else
		ir_if(f, v, IF_SLE, old, done);
	ir_place(f, set);
	ir_store(f, entry, 8, 8, v);
	ir_place(f, done);
}

static struct ir_val increment(struct gen *g, const struct node *arg)
{
	return arg ? gen_expr(g, arg) : IR_I(1);
}

static const struct node *nth(const struct node *n, uint32_t i)
{
	while (n && i--)
		n = n->next;
	return n;
}

static void update(struct gen *g, const struct agg *a, const struct node *args, struct ir_val entry,
		   struct ir_val v, bool atomic, uint32_t done)
{
	struct ir_fn *f = g->f;
	struct ir_val by = IR_I(1), bucket;

	switch (a->func) {
	case AGG_COUNT: break;
	case AGG_SUM:
	case AGG_AVG: ir_add_mem(f, entry, 8, 8, v, atomic); break;
	case AGG_MIN:
	case AGG_MAX: extreme(g, a, entry, v); break;
	case AGG_STDDEV: (void)ir_routine(f, "d_stddev_add", 2, entry, v); return;
	case AGG_QUANTIZE:
		by = increment(g, nth(args, 1));
		bucket = ir_routine(f, "d_quantize_bucket", 1, v);
		ir_add_mem(f, cell(g, entry, bucket, a->nwords - 1, done), 8, 8, by, atomic);
		break;
	case AGG_LQUANTIZE:
		by = increment(g, nth(args, 4));
		bucket = linear_bucket(g, a, v);
		ir_add_mem(f, cell(g, entry, bucket, a->nwords - 1, done), 8, 8, by, atomic);
		break;
	case AGG_LLQUANTIZE:
		by = increment(g, nth(args, 5));
		bucket = log_linear_bucket(g, a, v);
		ir_add_mem(f, cell(g, entry, bucket, a->nwords - 1, done), 8, 8, by, atomic);
		break;
	}
	ir_add_mem(f, entry, 0, 8, IR_I(1), atomic);
}

/* Returns the expression for the address of the text that alone is the key. NULL: the key is
 * something else. The expression may be evaluated twice. *ret_arg is the probe's argument that it
 * is, NULL: something else. */
static const struct node *text_key(const struct gen *g, const struct tuple_layout *l,
				   const struct node *keys, const struct probe_arg **ret_arg)
{
	const struct node *arg, *value;

	if (!g->target->inside || l->tag || l->n != 1 || l->fields[0].kind != FIELD_STRING ||
	    keys->kind != N_CALL || !keys->id || keys->id->kind != IDENT_SUBR ||
	    keys->id->subr != SUBR_COPYINSTR)
		return NULL;
	arg = value = keys->call.args;
	while (value && value->kind == N_CAST)
		value = value->t.a;
	if (!value || arg->next || value->kind != N_IDENT)
		return NULL;
	if (value->id && value->id->kind == IDENT_BUILTIN && value->id->builtin <= BUILTIN_ARG9)
		*ret_arg = value->aux;
	return arg;
}

/* Goes to `found` when the agent knows the text's entry. Returns the text's address. */
static struct ir_val look_up_text(struct gen *g, const struct agg *a, const struct node *text,
				  const struct probe_arg *arg, struct ir_val entry, uint32_t found,
				  bool before[LAZY_COUNT])
{
	struct ir_fn *f = g->f;
	struct ir_val addr, v;
	bool named = arg && gen_named_entry(g, arg, a->map, NULL, &v);

	if (named) {
		ir_set(f, entry, v);
		ir_if(f, entry, IF_NE, IR_I(0), found);
		gen_lazy_save(g, before);
	}
	addr = ir_mov(f, gen_expr(g, text));
	ir_set(f, entry, ir_routine(f, "d_agg_text", 3, ir_map(f, a->map), addr, IR_I(0)));
	ir_if(f, entry, IF_NE, IR_I(0), found);
	if (!named)
		gen_lazy_save(g, before);
	return addr;
}

/* Lets the agent note the entry that was found for a text. */
static void note_text(struct gen *g, const struct agg *a, const struct probe_arg *arg,
		      struct ir_val addr, struct ir_val entry)
{
	struct ir_val v;
	bool named = arg && gen_named_entry(g, arg, a->map, &entry, &v);
	uint32_t noted = named ? ir_new_label(g->f) : 0;

	if (named)
		ir_if(g->f, v, IF_NE, IR_I(0), noted);
	(void)ir_routine(g->f, "d_agg_text", 3, ir_map(g->f, a->map), addr, entry);
	if (named)
		ir_place(g->f, noted);
}

void gen_aggregate(struct gen *g, const struct node *assign)
{
	struct ir_fn *f = g->f;
	const struct node *name = assign->e.a, *call = assign->e.b;
	uint32_t index = name->id->agg, found = ir_new_label(f), done = ir_new_label(f),
		 none = ir_new_label(f), looked_up = 0;
	const struct agg *a = g->b->aggs.v[index];
	const struct tuple_layout *l = &g->agg_keys[index];
	const struct probe_arg *arg = NULL;
	const struct node *text = a->nslots ? NULL : text_key(g, l, name->agg.keys, &arg);
	struct ir_val v = IR_I(0), entry = ir_new_reg(f), key, addr = IR_I(0);
	bool known[LAZY_COUNT], before[LAZY_COUNT];

	if (call->call.args)
		v = gen_expr(g, call->call.args);
	if (text) {
		looked_up = ir_new_label(f);
		addr = look_up_text(g, a, text, arg, entry, found, before);
	}
	if (a->nslots) {
		uint32_t at = ir_new_object(f, 8, "slot");

		ir_store_stack(f, at, 0, 4, gen_slot(g, index, name->agg.keys, none));
		key = ir_stack(f, at, 0);
	} else if (l->n || l->tag) {
		key = gen_tuple(g, l, name->agg.keys, false);
	} else {
		uint32_t zero = ir_new_object(f, 8, "key");

		ir_store_stack(f, zero, 0, 8, IR_I(0));
		key = ir_stack(f, zero, 0);
	}
	ir_set(f, entry, ir_call(f, HELPER_MAP_LOOKUP, 2, ir_map(f, a->map), key));
	ir_if(f, entry, IF_NE, IR_I(0), text ? looked_up : found);
	gen_lazy_save(g, known);
	if ((l->n || l->tag) && !a->nslots) {
		(void)ir_call(f, HELPER_MAP_UPDATE, 4, ir_map(f, a->map), key,
			      ir_map_value(f, gen_fixed_map(g, MAP_RODATA), g->zeros),
			      IR_I(BPF_NOEXIST));
		ir_set(f, entry, ir_call(f, HELPER_MAP_LOOKUP, 2, ir_map(f, a->map), key));
		ir_if(f, entry, IF_EQ, IR_I(0), none);
	} else {
		ir_goto(f, none);
	}
	gen_lazy_restore(g, known);
	if (text) {
		ir_place(f, looked_up);
		note_text(g, a, arg, addr, entry);
		gen_lazy_restore(g, before);
	}
	ir_place(f, found);
	update(g, a, call->call.args, entry, v, g->agg_atomic[index], done);
	ir_goto(f, done);
	ir_place(f, none);
	gen_count(g, IR_I(WIRE_DROP_AGG));
	gen_lazy_restore(g, text ? before : known);
	ir_place(f, done);
}
