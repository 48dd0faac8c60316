/* What Ruby's objects refer to. */
#include "memory/heaplive/ruby_heap.h"

enum {
	ST_ENTRY = 24,
	ID_ITEM = 16,
	CONST_SIZE = 24, /* rb_const_entry_t: the value, the file */
	CACHES_SIZE = 1 << 16,
	ENVIRONMENT = 0,    /* the kind of imemo */
	DEEP_MAX = 1 << 14, /* blocks of one object */
};

/* Takes n bytes from the budget, and returns them. */
static const uint8_t *ruby_edges_look(struct ruby_reader *x, uint64_t addr, uint64_t n)
{
	const uint8_t *p = addr & 7 ? NULL : ruby_memory(x, addr, n);

	if (!p || x->budget < n / 8 + 1)
		return NULL;
	x->budget -= n / 8 + 1;
	return p;
}

static void refer(struct ruby_reader *x, uint64_t value, uint32_t label)
{
	const uint8_t *slot;

	if (ruby_is_immediate(value)) {
		ruby_number(x, value, label);
		return;
	}
	slot = ruby_slot(&x->heap, value, NULL);
	if (slot && ruby_type(ruby_slot_word(slot, 0)))
		graph_edge(x->graph, value, label, GRAPH_STRONG);
}

static void refer_words(struct ruby_reader *x, uint64_t addr, uint64_t n)
{
	const uint8_t *p = ruby_edges_look(x, addr, n);

	for (uint64_t i = 0; p && i + 8 <= n; i += 8)
		refer(x, ruby_slot_word(p + i, 0), GRAPH_LABEL_NONE);
}

/* A block of code has the address of its variables, in the memory of an environment, or tagged of
 * those around it. The word behind the first is the environment's object. */
static void refer_environment(struct ruby_reader *x, uint64_t word)
{
	const uint8_t *p, *slot;
	uint64_t object;

	word &= ~3ull;
	if (word & 7 || word < x->blocks.lo || word >= x->blocks.hi)
		return;
	p = ruby_edges_look(x, word, 16);
	object = p ? ruby_slot_word(p, 8) : 0;
	slot = object ? ruby_slot(&x->heap, object, NULL) : NULL;
	if (slot && ruby_type(ruby_slot_word(slot, 0)) == RUBY_IMEMO &&
	    ruby_imemo_kind(ruby_slot_word(slot, 0)) == ENVIRONMENT)
		graph_edge(x->graph, object, GRAPH_LABEL_NONE, GRAPH_STRONG);
}

static void refer_variables(struct ruby_reader *x, uint64_t addr, uint64_t n)
{
	const uint8_t *p = ruby_edges_look(x, addr, n);

	for (uint64_t i = 0; p && i + 8 <= n; i += 8) {
		refer(x, ruby_slot_word(p + i, 0), GRAPH_LABEL_NONE);
		if ((ruby_slot_word(p + i, 0) & 3) == 1)
			refer_environment(x, ruby_slot_word(p + i, 0));
	}
}

static void refer_items(struct ruby_reader *x, const struct ruby_part *part, uint64_t class)
{
	const uint8_t *p = ruby_edges_look(x, part->addr, part->n);
	const bool ivars = part->kind == RUBY_PART_IVARS, values = graph_wanted(x->graph)->values;

	for (uint64_t i = 0; p && (i + 1) * 8 <= part->n; i++) {
		uint64_t value = ruby_slot_word(p + i * 8, 0);

		if (values || !ruby_is_immediate(value))
			refer(x, value,
			      ivars ? ruby_ivar_label(x, class, (uint32_t)i)
				    : GRAPH_LABEL_INDEX | (uint32_t)(i & INT32_MAX));
	}
}

/* An entry that was deleted has the hash ~0. */
static void refer_table(struct ruby_reader *x, const struct ruby_part *part)
{
	const uint8_t *p = ruby_edges_look(x, part->addr, part->n);

	for (uint64_t i = 0; p && i + ST_ENTRY <= part->n; i += ST_ENTRY) {
		if (ruby_slot_word(p + i, 0) == UINT64_MAX)
			continue;
		if (part->kind == RUBY_PART_TABLE)
			refer(x, ruby_slot_word(p + i, 8), GRAPH_LABEL_NONE);
		refer(x, ruby_slot_word(p + i, 16), GRAPH_LABEL_NONE);
	}
}

/* The caches of a method: numbers, the method, and the address of pairs of objects. */
static void refer_caches(struct ruby_reader *x, uint64_t addr)
{
	const uint8_t *p = ruby_edges_look(x, addr, 24);
	uint64_t pairs = p ? ruby_slot_word(p, 16) : 0, n = pairs ? ruby_block_size(x, pairs) : 0;

	if (p)
		refer(x, ruby_slot_word(p, 8), GRAPH_LABEL_NONE);
	refer_words(x, pairs, n < CACHES_SIZE ? n : CACHES_SIZE);
}

static void refer_ids(struct ruby_reader *x, const struct ruby_part *part)
{
	const uint8_t *p = ruby_edges_look(x, part->addr, part->n), *to;

	for (uint64_t i = 0; p && i + ID_ITEM <= part->n; i += ID_ITEM) {
		uint64_t value = ruby_slot_word(p + i, 8);

		if (ruby_is_immediate(value)) {
			continue;
		} else if (part->kind == RUBY_PART_IDS) {
			refer(x, value, GRAPH_LABEL_NONE);
		} else if (part->kind == RUBY_PART_CONSTS) {
			to = ruby_edges_look(x, value, CONST_SIZE);
			if (to) {
				refer(x, ruby_slot_word(to, 8), GRAPH_LABEL_NONE);
				refer(x, ruby_slot_word(to, 16), GRAPH_LABEL_NONE);
			}
		} else {
			refer_caches(x, value);
		}
	}
}

/* The words of a block, and of the blocks that it leads to and no root and no other object has. */
static void refer_deep(struct ruby_reader *x, const struct ruby_part *part)
{
	uint32_t blocks = 0;
	uint64_t addr = part->addr, n = part->n;

	x->found.n = 0;
	for (;;) {
		const uint8_t *p = ruby_edges_look(x, addr, n);

		for (uint64_t i = 0; p && i + 8 <= n; i += 8) {
			uint64_t word = ruby_slot_word(p + i, 0);
			uint32_t k;

			refer(x, word, GRAPH_LABEL_NONE);
			if (word & 7 || word < x->blocks.lo || word >= x->blocks.hi)
				continue;
			refer_environment(x, word);
			k = heap_chunk(&x->blocks, word);
			if (k == LEAKS_NONE || blocks == DEEP_MAX ||
			    chunk_block(&x->blocks.chunks.v[k]) != word ||
			    x->blocks.chunks.v[k].bits & (CHUNK_FREE | CHUNK_REACHED))
				continue;
			x->blocks.chunks.v[k].bits |= CHUNK_REACHED;
			vec_push(&x->found, k);
			blocks++;
		}
		if (!x->found.n)
			return;
		addr = chunk_block(&x->blocks.chunks.v[x->found.v[--x->found.n]]);
		n = ruby_block_size(x, addr);
	}
}

void ruby_edges(struct ruby_reader *x, uint64_t addr, const uint8_t *slot, uint32_t size,
		uint64_t real, const struct ruby_parts *parts)
{
	const uint64_t class = ruby_slot_word(slot, 8);
	const uint32_t type = ruby_type(ruby_slot_word(slot, 0));
	const bool ivars = type == RUBY_OBJECT, items = type == RUBY_ARRAY || type == RUBY_STRUCT,
		   values = graph_wanted(x->graph)->values && (ivars || items);

	/* the graph knows that an object refers to its class */
	if (class != real && type != RUBY_IMEMO)
		refer(x, class, GRAPH_LABEL_NONE);
	for (uint32_t i = parts->from; i < parts->to && i + 8 <= size; i += 8) {
		uint64_t value = ruby_slot_word(slot, i);
		uint32_t k = (i - 16) / 8;

		if (ruby_is_immediate(value) && !values)
			continue;
		if (i == parts->weak && ruby_slot(&x->heap, value, NULL))
			graph_edge(x->graph, value, GRAPH_LABEL_NONE, GRAPH_WEAK);
		else if (i != parts->weak)
			refer(x, value,
			      ivars   ? ruby_ivar_label(x, real, k)
			      : items ? GRAPH_LABEL_INDEX | k
				      : GRAPH_LABEL_NONE);
	}
	for (uint32_t i = 0; i < parts->n; i++) {
		const struct ruby_part *p = &parts->v[i];

		switch (p->kind) {
		case RUBY_PART_BYTES: break;
		case RUBY_PART_VARIABLES: refer_variables(x, p->addr, p->n); break;
		case RUBY_PART_VALUES:
		case RUBY_PART_BLOCK: refer_words(x, p->addr, p->n); break;
		case RUBY_PART_ITEMS:
		case RUBY_PART_IVARS: refer_items(x, p, real); break;
		case RUBY_PART_TABLE:
		case RUBY_PART_VALUED: refer_table(x, p); break;
		case RUBY_PART_IDS:
		case RUBY_PART_CONSTS:
		case RUBY_PART_CACHES: refer_ids(x, p); break;
		case RUBY_PART_DEEP: refer_deep(x, p); break;
		}
	}
	(void)addr;
}
