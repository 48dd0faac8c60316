/* Names the types of blocks that C++ made, by the tables of virtual functions, and groups the
 * blocks.
 *
 *	object            table of virtual functions
 *	+-----------+     | distance to the object's beginning: 0 |
 *	| table   --|--.  | struct type_info *                  --|--> { table; const char *name; }
 *	| ...       |  '->| first function                        |
 *
 * (Itanium C++ ABI, 2.5.2 and 2.9.5.) Programs that are stripped have these, too. The strings that
 * two blocks show in their first words are no reason to group them. */
#include "base/hash.h"
#include "memory/leaks/leaks_private.h"

enum { NAME_MAX_BYTES = 1024, TYPES_MAX = 1 << 16 };

struct namer {
	struct leaks *l;
	struct space *space;
	struct symbols *symbols;
	struct hash tables; /* table -> const char *, 0: none */
	struct hash groups; /* type and size -> index in l->groups */
};

static const char *read_type(struct namer *n, uint64_t table)
{
	static const char is[] = "typeinfo name for ";
	uint64_t head[2], info[2];
	cleanup_free char *text = NULL, *symbol = NULL;
	const char *name;

	if (table % MEMORY_WORD || table < sizeof(head) ||
	    space_read_some(n->space, table - sizeof(head), head, sizeof(head)) != sizeof(head) ||
	    head[0] || !head[1] || head[1] % MEMORY_WORD ||
	    space_read_some(n->space, head[1], info, sizeof(info)) != sizeof(info))
		return NULL;
	text = space_string(n->space, info[1], NAME_MAX_BYTES);
	if (!text)
		return NULL;
	for (const char *s = text; *s; s++)
		if (*s <= ' ' || *s > '~')
			return NULL;
	/* A local type's name begins with a star, which is no part of it. */
	symbol = xasprintf("_ZTS%s", text + (*text == '*'));
	name = symbols_demangle(n->symbols, symbol);
	return strncmp(name, is, sizeof(is) - 1)
		       ? NULL
		       : arena_strdup(&n->l->arena, name + sizeof(is) - 1);
}

static const char *class_by_table(void *arg, uint64_t word)
{
	struct namer *n = arg;
	bool is_new;
	uint64_t *at;

	if (word < MEMORY_PAGE || n->tables.n >= TYPES_MAX)
		return NULL;
	at = hash_put(&n->tables, &word, sizeof(word), &is_new);
	if (is_new)
		*at = (uintptr_t)read_type(n, word);
	return (const char *)(uintptr_t)*at;
}

static void name_block(struct namer *n, const struct memory_copy *c, struct leaks_block *b)
{
	const uint64_t *first = memory_at(c, b->addr, sizeof(*first));
	uint64_t word = 0;

	if (first)
		memcpy(&word, first, sizeof(word));
	b->type = class_by_table(n, word);
	b->by = b->type ? LEAKS_BY_TABLE : LEAKS_BY_NOTHING;
}

/* Names the objects of C++ classes. Tables are constants of a file, and most words are none. */
static void name_objects(struct namer *n, const struct memory_copy *c, struct leaks_types *ret)
{
	const struct leaks_heap *h = n->l->heap;
	const struct mappings *maps;

	if (err_drop(space_mappings(n->space, 0, &maps)))
		return;
	for (uint32_t i = 0; i < h->chunks.n; i++) {
		const struct leaks_chunk *k = &h->chunks.v[i];
		const uint64_t *first = memory_at(c, chunk_block(k), sizeof(*first));
		const struct mapping *m;
		uint64_t word;

		if (k->bits & CHUNK_FREE || !first)
			continue;
		memcpy(&word, first, sizeof(word));
		m = mappings_find(maps, word);
		if (m && m->path[0] == '/' && !m->exec && !m->write)
			ret->of[i].name = class_by_table(n, word);
	}
}

void leaks_types_find(struct leaks *l, const struct memory_copy *c, struct space *s,
		      struct symbols *symbols, struct leaks_types *ret)
{
	struct namer n = { .l = l, .space = s, .symbols = symbols };

	*ret = (struct leaks_types){ .of = xcalloc(l->heap->chunks.n + 1ull, sizeof(*ret->of)) };
	name_objects(&n, c, ret);
	leaks_types_by_dwarf(l, c, s, class_by_table, &n, ret);
	hash_fini(&n.tables);
	hash_fini(&n.groups);
}

void leaks_types_fini(struct leaks_types *t)
{
	free(t->of);
	vec_fini(&t->variables);
}

static void add_block(struct namer *n, struct leaks_block *b)
{
	struct {
		const char *type;
		uint64_t size;
		uint32_t stack, by;
	} key;
	struct leaks_group *g;
	uint64_t *at;
	bool is_new;

	memset(&key, 0, sizeof(key));
	key.type = b->type;
	key.by = b->by;
	key.size = b->size;
	key.stack = b->stack;
	at = hash_put(&n->groups, &key, sizeof(key), &is_new);
	if (is_new) {
		*at = n->l->groups.n;
		*vec_add(&n->l->groups) = (struct leaks_group){ .type = b->type,
								.by = b->by,
								.size = b->size,
								.stack = b->stack,
								.first = b->addr };
	}
	b->group = (uint32_t)*at;
	g = &n->l->groups.v[*at];
	g->n++;
	g->bytes += b->size;
	g->held += b->held;
	g->held_bytes += b->held_bytes;
}

static int by_bytes(const void *a, const void *b)
{
	const struct leaks_group *x = a, *y = b;
	uint64_t m = x->bytes + x->held_bytes, n = y->bytes + y->held_bytes;

	if (m != n)
		return m > n ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

void leaks_group(struct leaks *l, const struct memory_copy *c, struct space *s,
		 struct symbols *symbols)
{
	struct namer n = { .l = l, .space = s, .symbols = symbols };
	struct hash place = { 0 };

	for (uint32_t i = 0; i < l->blocks.n; i++)
		name_block(&n, c, &l->blocks.v[i]);
	leaks_find_types(l, c, s, class_by_table, &n);
	for (uint32_t i = 0; i < l->blocks.n; i++)
		add_block(&n, &l->blocks.v[i]);
	if (l->groups.n)
		qsort(l->groups.v, l->groups.n, sizeof(*l->groups.v), by_bytes);
	/* The blocks' groups have moved. The first block of a group is in no other. */
	for (uint32_t i = 0; i < l->groups.n; i++)
		*hash_put(&place, &l->groups.v[i].first, sizeof(uint64_t), NULL) = i;
	for (uint32_t i = 0, *moved = NULL; i < l->blocks.n; i++) {
		const uint64_t *to = hash_get(&place, &l->blocks.v[i].addr, sizeof(uint64_t));

		if (!moved)
			moved = xcalloc(l->groups.n, sizeof(*moved));
		if (to)
			moved[l->blocks.v[i].group] = (uint32_t)*to;
		l->blocks.v[i].group = moved[l->blocks.v[i].group];
		if (i + 1 == l->blocks.n)
			free(moved);
	}
	hash_fini(&place);
	hash_fini(&n.tables);
	hash_fini(&n.groups);
}
