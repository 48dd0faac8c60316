/* Builds stack trees: merges stacks, sorts nodes, reverses and compares trees. */
#define _GNU_SOURCE
#include "view/stacktree.h"

#include <assert.h>

#include "base/hash.h"

/* Three hash tables with open addressing, at most half full: text -> frame, (parent, frame) ->
 * node, ids -> stack. Every frame of the input costs a look-up, so a slot is small and its key
 * decides nearly every comparison. */
struct stacktree_slot {
	uint64_t key;
	uint32_t val; /* index + 1; 0 = free */
};

enum { SLOTS_MIN = 1024 };

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t child_key(uint32_t parent, uint32_t frame)
{
	return (uint64_t)parent << 32 | frame;
}

static void slots_grow(struct stacktree_slot **slots, uint32_t *cap, uint32_t n)
{
	struct stacktree_slot *from = *slots;
	uint32_t was = *cap, mask;

	if ((uint64_t)n * 2 < was)
		return;
	*cap = was ? was * 2 : SLOTS_MIN;
	assert(*cap);
	*slots = xcalloc(*cap, sizeof(**slots));
	mask = *cap - 1;
	for (uint32_t i = 0; i < was; i++) {
		uint32_t j = (uint32_t)hash_word(from[i].key) & mask;

		if (!from[i].val)
			continue;
		while ((*slots)[j].val)
			j = (j + 1) & mask;
		(*slots)[j] = from[i];
	}
	free(from);
}

static uint32_t node_new(struct stacktree *t, uint32_t parent, uint32_t frame)
{
	uint32_t id = t->nodes.n;

	vec_push(&t->nodes, (struct stacktree_node){ .frame = frame,
						     .parent = parent,
						     .first = STACKTREE_NONE,
						     .next = STACKTREE_NONE });
	if (t->differential)
		vec_push(&t->before, (struct stacktree_before){ 0 });
	if (parent != STACKTREE_NONE) {
		struct stacktree_node *p = &t->nodes.v[parent];

		t->nodes.v[id].next = p->first;
		t->nodes.v[id].depth = p->depth + 1;
		p->first = id;
	}
	return id;
}

void stacktree_init(struct stacktree *t)
{
	*t = (struct stacktree){ 0 };
	arena_init(&t->text);
	node_new(t, STACKTREE_NONE, stacktree_frame(t, FRAME_NATIVE, "", 0));
}

void stacktree_fini(struct stacktree *t)
{
	vec_fini(&t->nodes);
	vec_fini(&t->frames);
	vec_fini(&t->before);
	vec_fini(&t->ids);
	vec_fini(&t->stacks);
	vec_fini(&t->path);
	vec_fini(&t->last);
	free(t->frame_slots);
	free(t->child_slots);
	free(t->stack_slots);
	arena_fini(&t->text);
}

static uint32_t module_of(const char *text, size_t len)
{
	const char *tick = memchr(text, '`', len);

	return tick ? (uint32_t)(tick - text) : 0;
}

uint32_t stacktree_frame(struct stacktree *t, enum frame_kind kind, const char *text, size_t len)
{
	uint64_t hash = hash_bytes(text, len) + kind;
	struct stacktree_slot *s;
	uint32_t mask, i;
	char *copy;

	assert(len < UINT32_MAX);
	slots_grow(&t->frame_slots, &t->frame_cap, t->frames.n + 1);
	mask = t->frame_cap - 1;
	for (i = (uint32_t)hash_word(hash) & mask; (s = &t->frame_slots[i])->val;
	     i = (i + 1) & mask) {
		const struct stacktree_frame *f = &t->frames.v[s->val - 1];

		if (s->key == hash && f->kind == kind && f->len == len &&
		    !memcmp(f->text, text, len))
			return s->val - 1;
	}
	copy = arena_alloc(&t->text, len + 1);
	memcpy(copy, text, len);
	*s = (struct stacktree_slot){ hash, t->frames.n + 1 };
	vec_push(&t->frames, (struct stacktree_frame){ .text = copy,
						       .len = (uint32_t)len,
						       .module = module_of(copy, len),
						       .kind = kind });
	return t->frames.n - 1;
}

uint32_t stacktree_marked(struct stacktree *t, const char *text, size_t len)
{
	enum frame_kind kind = frame_kind_of_text(text, &len);

	return stacktree_frame(t, kind, text, len);
}

static struct stacktree_slot *child_slot(struct stacktree *t, uint64_t key)
{
	uint32_t mask, i;

	slots_grow(&t->child_slots, &t->child_cap, t->nchild_slots + 1);
	mask = t->child_cap - 1;
	for (i = (uint32_t)hash_word(key) & mask; t->child_slots[i].val; i = (i + 1) & mask)
		if (t->child_slots[i].key == key)
			break;
	return &t->child_slots[i];
}

static void child_register(struct stacktree *t, uint32_t node)
{
	uint64_t key = child_key(t->nodes.v[node].parent, t->nodes.v[node].frame);

	*child_slot(t, key) = (struct stacktree_slot){ key, node + 1 };
	t->nchild_slots++;
}

/* Nearly all nodes have few children, and the newest is usually the right one. A short walk along
 * the list avoids most of the cache misses of the table. A node with FEW children or more has all
 * of them in the table. */
uint32_t stacktree_child(struct stacktree *t, uint32_t parent, uint32_t frame)
{
	enum { FEW = 8 };
	uint32_t node = t->nodes.v[parent].first, n = 0;

	for (; node != STACKTREE_NONE && n < FEW; node = t->nodes.v[node].next, n++)
		if (t->nodes.v[node].frame == frame)
			return node;
	if (n == FEW) {
		struct stacktree_slot *s = child_slot(t, child_key(parent, frame));

		if (s->val)
			return s->val - 1;
	}
	node = node_new(t, parent, frame);
	if (n == FEW)
		child_register(t, node);
	else if (n == FEW - 1)
		for (uint32_t k = node; k != STACKTREE_NONE; k = t->nodes.v[k].next)
			child_register(t, k);
	return node;
}

void stacktree_count(struct stacktree *t, uint32_t node, uint64_t count)
{
	t->nodes.v[node].self = sum(t->nodes.v[node].self, count);
}

bool stacktree_add(struct stacktree *t, const uint32_t *ids, uint32_t n, uint64_t count)
{
	uint64_t hash = hash_bytes(ids, n * sizeof(*ids));
	struct stacktree_slot *s;
	uint32_t mask, i;

	slots_grow(&t->stack_slots, &t->stack_cap, t->stacks.n + 1);
	mask = t->stack_cap - 1;
	for (i = (uint32_t)hash_word(hash) & mask; (s = &t->stack_slots[i])->val;
	     i = (i + 1) & mask) {
		struct stacktree_stack *k = &t->stacks.v[s->val - 1];

		if (s->key == hash && k->n == n &&
		    !memcmp(t->ids.v + k->at, ids, n * sizeof(*ids))) {
			k->count = sum(k->count, count);
			return false;
		}
	}
	*s = (struct stacktree_slot){ hash, t->stacks.n + 1 };
	vec_push(&t->stacks, (struct stacktree_stack){ .count = count, .at = t->ids.n, .n = n });
	vec_reserve(&t->ids, n);
	if (n)
		memcpy(t->ids.v + t->ids.n, ids, n * sizeof(*ids));
	t->ids.n += n;
	return true;
}

static size_t common(const char *a, const char *b, size_t n)
{
	uint64_t x, y;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
			return i + (size_t)__builtin_ctzll(x ^ y) / 8;
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* Returns the node of a path. Does not parse the frames shared with the path before again. */
static uint32_t stacktree_walk(struct stacktree *t, const char *text, size_t len)
{
	size_t same = common(text, t->last.v, len < t->last.n ? len : t->last.n), at = 0;
	uint32_t node = STACKTREE_ROOT;

	assert(len < UINT32_MAX);
	while (t->path.n) {
		const struct stacktree_step *s = vec_last(&t->path);

		if (s->end < same || (s->end == same && (s->end == len || text[s->end] == ';'))) {
			node = s->node;
			at = s->end + 1;
			break;
		}
		t->path.n--;
	}
	if (len > same) {
		t->last.n = (uint32_t)same;
		vec_reserve(&t->last, len - same);
		memcpy(t->last.v + same, text + same, len - same);
	}
	t->last.n = (uint32_t)len;
	while (len && at <= len) {
		const char *semi = memchr(text + at, ';', len - at);
		size_t end = semi ? (size_t)(semi - text) : len;

		node = stacktree_child(t, node, stacktree_marked(t, text + at, end - at));
		vec_push(&t->path, (struct stacktree_step){ node, (uint32_t)end });
		at = end + 1;
	}
	return node;
}

void stacktree_add_text(struct stacktree *t, const char *text, size_t len, uint64_t count)
{
	stacktree_count(t, stacktree_walk(t, text, len), count);
}

static void set_differential(struct stacktree *t)
{
	if (t->differential)
		return;
	t->differential = true;
	vec_reserve(&t->before, t->nodes.n);
	memset(t->before.v, 0, t->nodes.n * sizeof(*t->before.v));
	t->before.n = t->nodes.n;
}

static void add_change(struct stacktree *t, uint32_t node, uint64_t before, uint64_t after)
{
	struct stacktree_node *n = &t->nodes.v[node];

	n->self = sum(n->self, after);
	t->before.v[node].self = sum(t->before.v[node].self, before);
}

void stacktree_add_change(struct stacktree *t, const char *text, size_t len, uint64_t before,
			  uint64_t after)
{
	set_differential(t);
	add_change(t, stacktree_walk(t, text, len), before, after);
}

/* Moves the stacks added as ids into the tree. */
static void settle(struct stacktree *t)
{
	for (uint32_t i = 0; i < t->stacks.n; i++) {
		const struct stacktree_stack *k = &t->stacks.v[i];
		uint32_t node = STACKTREE_ROOT;

		for (uint32_t j = k->n; j; j--)
			node = stacktree_child(t, node, t->ids.v[k->at + j - 1]);
		stacktree_count(t, node, k->count);
	}
	t->stacks.n = t->ids.n = 0;
	if (t->stack_cap)
		memset(t->stack_slots, 0, t->stack_cap * sizeof(*t->stack_slots));
}

bool stacktree_in_kernel(const struct stacktree_frame *f)
{
	static const char *const modules[] = { "vmlinux", "kernel", "unix", "genunix" };

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
		if (f->module == strlen(modules[i]) && !memcmp(f->text, modules[i], f->module))
			return true;
	return false;
}

/* Returns byte i of a frame's text and mark, and `last` behind them. */
static int byte_at(const struct stacktree_frame *f, uint32_t i, int last)
{
	const char *mark = frame_mark(f->kind);

	if (i < f->len)
		return (uint8_t)f->text[i];
	return i - f->len < strlen(mark)    ? mark[i - f->len]
	       : i - f->len == strlen(mark) ? last
					    : -2;
}

int stacktree_compare(const struct stacktree_frame *x, int a, const struct stacktree_frame *y,
		      int b)
{
	uint32_t i = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->text, y->text, i), ca, cb;

	if (order)
		return order;
	do {
		ca = byte_at(x, i, a);
		cb = byte_at(y, i, b);
		i++;
	} while (ca == cb && ca != -2);
	return ca - cb;
}

/* Compares two nodes like the lines of folded text: a frame is followed by the space before its
 * count, or by the ';' before its first child. */
static int node_compare(const void *a, const void *b, void *arg)
{
	const struct stacktree *t = arg;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;

	return stacktree_compare(stacktree_frame_of(t, ia), t->nodes.v[ia].self ? ' ' : ';',
				 stacktree_frame_of(t, ib), t->nodes.v[ib].self ? ' ' : ';');
}

static void sort_children(struct stacktree *t)
{
	VEC(uint32_t) kids = { 0 };

	for (uint32_t i = 0; i < t->nodes.n; i++) {
		uint32_t *link = &t->nodes.v[i].first;

		if (*link == STACKTREE_NONE || t->nodes.v[*link].next == STACKTREE_NONE)
			continue;
		kids.n = 0;
		for (uint32_t k = *link; k != STACKTREE_NONE; k = t->nodes.v[k].next)
			vec_push(&kids, k);
		qsort_r(kids.v, kids.n, sizeof(*kids.v), node_compare, t);
		for (uint32_t k = 0; k < kids.n; k++) {
			*link = kids.v[k];
			link = &t->nodes.v[kids.v[k]].next;
		}
		*link = STACKTREE_NONE;
	}
	vec_fini(&kids);
}

void stacktree_finish(struct stacktree *t)
{
	settle(t);
	t->depth = 0;
	for (uint32_t i = 0; i < t->nodes.n; i++) {
		struct stacktree_node *n = &t->nodes.v[i];

		n->total = n->self;
		n->size = 1;
		if (n->depth > t->depth)
			t->depth = n->depth;
	}
	for (uint32_t i = 0; i < t->before.n; i++)
		t->before.v[i].total = t->before.v[i].self;
	for (uint32_t i = t->nodes.n - 1; i; i--) {
		const struct stacktree_node *n = &t->nodes.v[i];
		struct stacktree_node *p = &t->nodes.v[n->parent];

		assert(n->parent < i);
		p->total = sum(p->total, n->total);
		p->size += n->size;
		if (t->differential)
			t->before.v[n->parent].total =
				sum(t->before.v[n->parent].total, t->before.v[i].total);
	}
	sort_children(t);
}

uint32_t stacktree_next(const struct stacktree *t, uint32_t i, bool skip)
{
	if (!skip && t->nodes.v[i].first != STACKTREE_NONE)
		return t->nodes.v[i].first;
	while (i != STACKTREE_NONE && t->nodes.v[i].next == STACKTREE_NONE)
		i = t->nodes.v[i].parent;
	return i == STACKTREE_NONE ? STACKTREE_NONE : t->nodes.v[i].next;
}

static uint32_t copy_frame(struct stacktree *to, const struct stacktree *from, uint32_t node)
{
	const struct stacktree_frame *f = stacktree_frame_of(from, node);

	return stacktree_frame(to, f->kind, f->text, f->len);
}

void stacktree_reverse(const struct stacktree *from, struct stacktree *to)
{
	if (from->differential)
		set_differential(to);
	for (uint32_t i = 0; i < from->nodes.n; i++) {
		uint64_t self = from->nodes.v[i].self;
		uint64_t before = from->differential ? from->before.v[i].self : 0;
		uint32_t node = STACKTREE_ROOT;

		if (!self && !before)
			continue;
		for (uint32_t f = i; f != STACKTREE_ROOT; f = from->nodes.v[f].parent)
			node = stacktree_child(to, node, copy_frame(to, from, f));
		to->nodes.v[node].self = sum(to->nodes.v[node].self, self);
		if (from->differential)
			to->before.v[node].self = sum(to->before.v[node].self, before);
	}
}

/* Adds the counts of `from` to `to`, multiplied by factor. Parents come before their children, so a
 * parent's place in `to` is known. */
static void merge(const struct stacktree *from, struct stacktree *to, bool before, double factor)
{
	cleanup_free uint32_t *place = xcalloc(from->nodes.n, sizeof(*place));

	for (uint32_t i = 0; i < from->nodes.n; i++) {
		const struct stacktree_node *n = &from->nodes.v[i];
		uint64_t self = factor == 1 ? n->self : (uint64_t)((double)n->self * factor);

		if (i)
			place[i] = stacktree_child(to, place[n->parent], copy_frame(to, from, i));
		add_change(to, place[i], before ? self : 0, before ? 0 : self);
	}
}

void stacktree_diff(const struct stacktree *before, const struct stacktree *after, bool scale,
		    struct stacktree *to)
{
	uint64_t was = before->nodes.v[0].total, is = after->nodes.v[0].total;

	set_differential(to);
	merge(before, to, true, scale && was ? (double)is / (double)was : 1);
	merge(after, to, false, 1);
}
