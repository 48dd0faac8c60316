/* What Python's objects refer to: by type where the structures are known, and by each word that is
 * an object's address in all others. */
#include "memory/heaplive/python_heap.h"

enum {
	ITEMS = 16,
	LIST_ITEMS = 24,
	TUPLE_ITEMS = 24,
	WEAK_SIZE = 56,
	SET_MASK = 32,
	SET_TABLE = 40,
	SET_ENTRY = 16,
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	CACHED_KEYS = 872,
	HEAP_TYPE = 904,
	BODY_MAX = 1 << 24,
	DEEP_MAX = 1 << 14,
	NAME_MAX_ = 200,
};

static const uint8_t *python_refs_look(struct python_reader *x, uint64_t addr, uint64_t n)
{
	const uint8_t *p = addr & 7 || !addr ? NULL : python_memory(x, addr, n);

	if (!p || x->budget < n / 8 + 1)
		return NULL;
	x->budget -= n / 8 + 1;
	return p;
}

static void refer(struct python_reader *x, uint64_t addr, uint32_t label)
{
	if (addr && python_see(x, addr, true))
		graph_edge(x->graph, addr, label, GRAPH_STRONG);
}

/* The label of a variable: a str of ASCII. */
static uint32_t label_of(struct python_reader *x, uint64_t key)
{
	const struct python_layout *l = &x->python->layout;
	const struct python_type *t;
	const uint8_t *p;
	uint64_t n;

	if (!graph_wanted(x->graph)->labels)
		return GRAPH_LABEL_NONE;
	t = python_object(x, key);
	p = t && t->kind == PYTHON_STR ? python_memory(x, key, l->text_ascii) : NULL;
	if (!p || (python_at(p, l->text_state) & 0x60) != 0x60)
		return GRAPH_LABEL_NONE;
	n = python_at(p, l->text_length);
	p = n && n < NAME_MAX_ ? python_memory(x, key + l->text_ascii, n) : NULL;
	return p ? graph_label(x->graph, (const char *)p, n) : GRAPH_LABEL_NONE;
}

static void refer_items(struct python_reader *x, uint64_t addr, uint64_t n)
{
	const uint8_t *p = n > UINT32_MAX ? NULL : python_refs_look(x, addr, n * 8);

	for (uint64_t i = 0; p && i < n; i++)
		refer(x, python_at(p + i * 8, 0), GRAPH_LABEL_INDEX | (uint32_t)(i & INT32_MAX));
}

/* values: the address of the values of keys that several dicts share, 0: they are in the
 * entries. */
static void refer_keys(struct python_reader *x, uint64_t keys, uint64_t values)
{
	struct python_keys k;
	const uint8_t *p, *v = NULL;

	if (!python_keys(x, keys, &k))
		return;
	p = python_refs_look(x, k.entries, k.n * k.entry);
	python_own(x, keys);
	if (values) {
		v = python_refs_look(x, values, k.n * 8);
		python_own(x, values);
	}
	for (uint64_t i = 0; p && i < k.n; i++) {
		uint64_t key = python_at(p + i * k.entry, k.entry - 16);
		uint64_t value = python_at(p + i * k.entry, k.entry - 8);

		if (values)
			value = v ? python_at(v + i * 8, 0) : 0;
		if (!value)
			continue;
		refer(x, value, label_of(x, key));
		if (!values) /* else the keys are the class's */
			refer(x, key, GRAPH_LABEL_NONE);
	}
}

static void refer_dict(struct python_reader *x, const uint8_t *p)
{
	uint64_t values = python_at(p, DICT_VALUES);

	if (values && values != UINT64_MAX && x->python->layout.version >= PYTHON_3_13)
		values += 8; /* behind four numbers of a byte */
	refer_keys(x, python_at(p, DICT_KEYS), values == UINT64_MAX ? 0 : values);
}

static void refer_set(struct python_reader *x, const uint8_t *p)
{
	uint64_t n = python_at(p, SET_MASK) + 1, table = python_at(p, SET_TABLE);
	const uint8_t *e = n > UINT32_MAX ? NULL : python_refs_look(x, table, n * SET_ENTRY);

	python_own(x, table);
	for (uint64_t i = 0; e && i < n; i++)
		refer(x, python_at(e + i * SET_ENTRY, 0), GRAPH_LABEL_NONE);
}

/* The names of the variables of a class's objects. */
static void refer_names(struct python_reader *x, uint64_t addr)
{
	const uint8_t *p =
		x->python->layout.version == PYTHON_3_11 ? python_memory(x, addr, HEAP_TYPE) : NULL;
	const struct python_type *t = p ? python_type(x, addr) : NULL;
	struct python_keys k;

	if (!t || !(t->flags & PYTHON_FLAG_HEAP) || !python_keys(x, python_at(p, CACHED_KEYS), &k))
		return;
	python_own(x, python_at(p, CACHED_KEYS));
	p = python_refs_look(x, k.entries, k.n * k.entry);
	for (uint64_t i = 0; p && i < k.n; i++)
		refer(x, python_at(p + i * k.entry, k.entry - 16), GRAPH_LABEL_NONE);
}

/* The variables of an object of 3.11, whose names its class has, or its dict. */
static void refer_variables(struct python_reader *x, uint64_t addr, const struct python_type *t)
{
	const uint8_t *p = python_refs_look(x, addr - 32, 32), *type;

	if (!p)
		return;
	if (x->python->layout.version != PYTHON_3_11) {
		refer(x, python_at(p, 8) & ~1ull, GRAPH_LABEL_NONE);
		return;
	}
	refer(x, python_at(p, 8), graph_label(x->graph, "__dict__", 8));
	if (!python_at(p, 0))
		return;
	type = python_memory(x, t->address, HEAP_TYPE);
	if (type)
		refer_keys(x, python_at(type, CACHED_KEYS), python_at(p, 0));
}

static void refer_words(struct python_reader *x, uint64_t addr, uint64_t n)
{
	const uint8_t *p = python_refs_look(x, addr, n);

	for (uint64_t i = 0; p && i + 8 <= n; i += 8) {
		uint64_t word = python_at(p + i, 0);
		uint32_t k;

		if (word & 7 || word < 4096)
			continue;
		refer(x, word, GRAPH_LABEL_NONE);
		k = heap_chunk(&x->blocks, word);
		if (k == LEAKS_NONE || x->found.n == DEEP_MAX ||
		    chunk_block(&x->blocks.chunks.v[k]) != word ||
		    x->blocks.chunks.v[k].bits & (CHUNK_FREE | CHUNK_REACHED))
			continue;
		x->blocks.chunks.v[k].bits |= CHUNK_REACHED;
		vec_push(&x->found, k);
	}
}

/* The words of an object, and of the blocks of malloc(3) that it alone leads to. */
static void refer_body(struct python_reader *x, uint64_t addr, uint64_t n)
{
	x->found.n = 0;
	refer_words(x, addr + 16, n - 16 < BODY_MAX ? n - 16 : BODY_MAX);
	while (x->found.n) {
		const struct leaks_chunk *c = &x->blocks.chunks.v[x->found.v[--x->found.n]];

		refer_words(x, chunk_block(c), chunk_usable(c));
	}
}

/* A weak reference: the object, what is called when it goes, the hash, its neighbours in the
 * object's list. */
static void refer_weakly(struct python_reader *x, uint64_t addr, const uint8_t *p, uint64_t n)
{
	const uint64_t to = n >= WEAK_SIZE ? python_at(p, 16) : 0;

	if (to && python_see(x, to, false))
		graph_edge(x->graph, to, GRAPH_LABEL_NONE, GRAPH_WEAK);
	if (n < WEAK_SIZE)
		return;
	refer(x, python_at(p, 24), GRAPH_LABEL_NONE);
	if (n > WEAK_SIZE)
		refer_body(x, addr + WEAK_SIZE - 16, n - WEAK_SIZE + 16);
}

void python_refs(struct python_reader *x, uint64_t addr, const struct python_type *t)
{
	const uint8_t *p = python_memory(x, addr, t->basic);
	uint64_t end;

	if (!p || t->kind == PYTHON_PLAIN ||
	    (t->kind == PYTHON_STR && !(t->flags & PYTHON_FLAG_GC)))
		return;
	if (t->flags & PYTHON_FLAG_VALUES && x->python->layout.version >= PYTHON_3_11)
		refer_variables(x, addr, t);
	switch (t->kind) {
	case PYTHON_LIST:
		python_own(x, python_at(p, LIST_ITEMS));
		refer_items(x, python_at(p, LIST_ITEMS), python_at(p, ITEMS));
		break;
	case PYTHON_TUPLE:
		end = python_at(p, ITEMS);
		refer_items(x, addr + TUPLE_ITEMS, end);
		break;
	case PYTHON_DICT: refer_dict(x, p); break;
	case PYTHON_SET: refer_set(x, p); break;
	case PYTHON_WEAK: refer_weakly(x, addr, p, t->basic); return;
	case PYTHON_STR:
	case PYTHON_PLAIN: break;
	case PYTHON_A_TYPE:
	case PYTHON_OTHER:
		end = t->basic;
		if (t->item && python_at(p, ITEMS) < BODY_MAX)
			end += python_at(p, ITEMS) * t->item;
		refer_body(x, addr, end);
		if (t->kind == PYTHON_A_TYPE)
			refer_names(x, addr);
		return;
	}
	/* what a class derived from a list, a dict and so on adds */
	if (t->flags & PYTHON_FLAG_HEAP && t->kind != PYTHON_TUPLE)
		refer_body(x, addr, t->basic);
}
