/* Generates slots: aggregations whose keys are known for each probe at compile time.
 *
 *	@[probefunc] = count();  @["reads", probename] = sum(arg0);  @[1] = max(arg1);
 *
 * When every update of an aggregation has such a key, each different key gets a number, its slot.
 * The aggregation is then an array by slot, and no firing looks up a key. The image keeps the key
 * of each slot (struct agg), from which engines return keys.
 *
 * A program computes the slot from the probe that fired. The slot is the same for all of the
 * program's probes, or the probe's number plus a constant, or an entry of a table in the read-only
 * data. */
#define _GNU_SOURCE /* qsort_r */
#include "compile/gen/gen_private.h"

/* A table's entry for a probe without this clause. */
enum { NO_SLOT = UINT32_MAX };

static bool is_known(struct gen *g, const struct node *n)
{
	if (n->kind == N_CAST || n->kind == N_STRINGOF) {
		const struct node *a = n->kind == N_CAST ? n->t.a : n->e.a;

		return gen_is_string(g, n) && gen_is_string(g, a) && is_known(g, a);
	}
	return n->kind == N_INT || n->kind == N_STR || gen_probe_part(n) >= 0 ||
	       (n->kind == N_IDENT && n->id && n->id->kind == IDENT_BUILTIN &&
		n->id->builtin == BUILTIN_ID);
}

static bool all_known(struct gen *g, const struct node *keys)
{
	for (; keys; keys = keys->next)
		if (!is_known(g, keys))
			return false;
	return true;
}

static const char *gen_slot_text_of(const struct gen *g, const struct node *n, uint32_t probe)
{
	if (n->kind == N_CAST || n->kind == N_STRINGOF)
		return gen_slot_text_of(g, n->kind == N_CAST ? n->t.a : n->e.a, probe);
	return n->kind == N_STR ? n->s.text : gen_part_text(&g->probes.v[probe], gen_probe_part(n));
}

/* Returns the FIELD_STRID of a text. Equal texts have equal ids, whether a probe or a literal gives
 * them. */
static uint32_t id_of(struct gen *g, const struct node *n, uint32_t probe)
{
	const char *text = gen_slot_text_of(g, n, probe);
	uint64_t *at = hash_put(&g->slot_texts, text, strlen(text), NULL);
	int part = gen_probe_part(n);

	if (!*at)
		*at = 1 + (part >= 0 ? 4 * probe + (uint32_t)part
				     : 4 * g->probes.n + gen_text(g, text));
	return (uint32_t)*at - 1;
}

/* Writes the key of an update in a firing of the probe, l->size bytes, to ret. */
static void key_of(struct gen *g, const struct tuple_layout *l, const struct node *keys,
		   uint32_t probe, uint8_t *ret)
{
	uint32_t i = 0;

	memset(ret, 0, l->size);
	for (const struct node *k = keys; k && i < l->n; k = k->next, i++) {
		const struct field *fl = &l->fields[i];
		uint64_t v = fl->kind == FIELD_STRID ? id_of(g, k, probe)
			     : k->kind == N_INT      ? k->i.value
						     : g->probes.v[probe].id;

		memcpy(ret + fl->offset, &v, fl->size < 8 ? fl->size : 8);
	}
}

/* --- the layout --- */

struct numbering {
	struct gen *g;
	const struct bound_clause *cl;
};

void gen_slots_look(struct gen *g, const struct node *n)
{
	const struct node *a;

	if (n->kind == N_AGG && n->id->kind == IDENT_AGG && n->agg.keys) {
		struct agg_slots *s = &g->slots[n->id->agg];

		s->refused |= !all_known(g, n->agg.keys);
		for (const struct node *k = n->agg.keys; k; k = k->next)
			s->parts += gen_probe_part(k) >= 0;
	}
	if (n->kind != N_CALL || n->id->kind != IDENT_SUBR ||
	    (n->id->subr != SUBR_CLEAR && n->id->subr != SUBR_TRUNC))
		return;
	/* Clearing min() or max() removes the key. An array cannot remove a key without losing
	 * concurrent updates. */
	a = n->call.args;
	if (a && a->kind == N_AGG && a->id) {
		const struct agg *agg = g->b->aggs.v[a->id->agg];

		g->slots[a->id->agg].refused |= agg->func == AGG_MIN || agg->func == AGG_MAX;
	}
}

static void number_keys(void *arg, const struct node *n)
{
	struct numbering *nb = arg;
	struct gen *g = nb->g;

	if (n->kind != N_AGG || !n->id || n->id->kind != IDENT_AGG || !n->agg.keys)
		return;
	struct agg_slots *s = &g->slots[n->id->agg];
	const struct tuple_layout *l = &g->agg_keys[n->id->agg];

	if (s->refused)
		return;
	for (uint32_t i = 0; i < nb->cl->nprobes; i++) {
		uint32_t probe = gen_probe_number(g, nb->cl->probes[i]);
		cleanup_free uint8_t *key = xmalloc(l->size);
		uint64_t *at;

		key_of(g, l, n->agg.keys, probe, key);
		at = hash_put(&s->index, key, l->size, NULL);
		if (*at)
			continue;
		*at = ++s->n;
		for (uint32_t b = 0; b < l->size; b++)
			vec_push(&s->keys, key[b]);
	}
}

void gen_slots_number(struct gen *g)
{
	struct numbering nb = { .g = g };

	for (uint32_t i = 0; i < g->b->clauses.n; i++) {
		nb.cl = g->b->clauses.v[i];
		node_walk(nb.cl->body, number_keys, &nb);
	}
}

/* The argument of by_key(): the keys of all slots. */
struct slot_keys {
	const uint8_t *v;
	uint32_t size; /* bytes of one key */
};

static int by_key(const void *x, const void *y, void *arg)
{
	const struct slot_keys *k = arg;

	return memcmp(k->v + (size_t) * (const uint32_t *)x * k->size,
		      k->v + (size_t) * (const uint32_t *)y * k->size, k->size);
}

bool gen_slots_take(struct gen *g, uint32_t agg, uint32_t max)
{
	/* Bytes of an array. The kernel allocates an array for each CPU at the start. Of an
	 * in-process thread's array, only used pages take memory. */
	enum { CPU_MAX = 1 << 20, THREAD_MAX = 1 << 23 };
	struct agg_slots *s = &g->slots[agg];
	struct agg *a = g->b->aggs.v[agg];
	uint32_t *order;
	uint8_t *keys;

	a->nslots = 0;
	a->slot_keys = NULL;
	a->slot_order = NULL;
	s->refused |= !s->n || s->n > max ||
		      (uint64_t)s->n * a->nwords * 8 > (g->target->inside ? THREAD_MAX : CPU_MAX);
	if (s->refused)
		return false;
	keys = arena_alloc(g->arena, s->keys.n);
	memcpy(keys, s->keys.v, s->keys.n);
	a->nslots = s->n;
	a->slot_keys = keys;
	order = arena_alloc(g->arena, s->n * sizeof(*order));
	for (uint32_t i = 0; i < s->n; i++)
		order[i] = i;
	qsort_r(order, s->n, sizeof(*order), by_key,
		&(struct slot_keys){ keys, g->agg_keys[agg].size });
	a->slot_order = order;
	return true;
}

void gen_slots_fini(struct gen *g)
{
	for (uint32_t i = 0; g->slots && i < g->b->aggs.n; i++) {
		hash_fini(&g->slots[i].index);
		vec_fini(&g->slots[i].keys);
	}
	hash_fini(&g->slot_texts);
}

/* --- code --- */

static uint32_t gen_slot_of(struct gen *g, uint32_t agg, const struct node *keys, uint32_t probe)
{
	const struct tuple_layout *l = &g->agg_keys[agg];
	cleanup_free uint8_t *key = xmalloc(l->size);
	const uint64_t *at;

	key_of(g, l, keys, probe, key);
	at = hash_get(&g->slots[agg].index, key, l->size);
	return at ? (uint32_t)*at - 1 : NO_SLOT;
}

/* Puts slots into a table in the read-only data. Returns the entry of the probe that fired. Jumps
 * to `none` when the probe is outside [first, first + n). */
static struct ir_val look_up(struct gen *g, const uint32_t *slots, uint32_t first, uint32_t n,
			     uint32_t none)
{
	uint32_t at = gen_rodata(g, slots, n * 4, 8);
	struct ir_val i = ir_bin(g->f, ALU_SUB, g->probe, IR_I(first)), base;

	ir_if(g->f, i, IF_UGE, IR_I(n), none);
	base = ir_bin(g->f, ALU_ADD, ir_map_value(g->f, gen_fixed_map(g, MAP_RODATA), at),
		      ir_bin(g->f, ALU_SHL, i, IR_I(2)));
	return ir_load(g->f, base, 0, 4, false);
}

struct ir_val gen_slot(struct gen *g, uint32_t agg, const struct node *keys, uint32_t none)
{
	const uint32_t *probes = g->prog_probes;
	uint32_t first = UINT32_MAX, last = 0, slot = NO_SLOT;
	cleanup_free uint32_t *slots = NULL;
	bool same = true, even = true;
	int64_t ahead = 0;
	struct ir_val v;

	if (g->probe.kind == IR_IMM)
		return IR_I(gen_slot_of(g, agg, keys, (uint32_t)g->probe.imm));
	for (uint32_t i = 0; i < g->prog_nprobes; i++) {
		first = probes[i] < first ? probes[i] : first;
		last = probes[i] > last ? probes[i] : last;
	}
	slots = xmalloc((last - first + 1) * sizeof(*slots));
	memset(slots, 0xff, (last - first + 1) * sizeof(*slots));
	for (uint32_t i = 0; i < g->prog_nprobes; i++) {
		uint32_t s = slots[probes[i] - first] = gen_slot_of(g, agg, keys, probes[i]);

		if (s == NO_SLOT)
			continue;
		if (slot == NO_SLOT)
			ahead = (int64_t)s - probes[i];
		same &= slot == NO_SLOT || s == slot;
		even &= (int64_t)s - probes[i] == ahead;
		slot = s;
	}
	if (same)
		return IR_I(slot);
	v = even ? ir_bin(g->f, ALU_ADD, g->probe, IR_I(ahead))
		 : look_up(g, slots, first, last - first + 1, none);
	return v;
}
