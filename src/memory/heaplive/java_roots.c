/* What holds HotSpot's objects: class loaders and their handles, threads and their stacks, and the
 * JVM. */
#include "base/sorted.h"
#include "memory/heaplive/java_heap.h"

enum {
	LOADERS_MAX = 1 << 18,
	/* ChunkedHandleList: chunks of references */
	CHUNK_SLOTS = 32,
	CHUNK_USED = CHUNK_SLOTS * 8,
	CHUNK_NEXT = CHUNK_USED + 8,
	CHUNKS_MAX = 1 << 16,
	BLOCKS_MAX = 1 << 16, /* of a thread's JNI handles */
	BLOCK_HANDLES = 32,
	STACK_MAX = 64 << 20,
};

/* What holds a group of objects: another object, or by itself. */
struct holder {
	uint64_t object; /* 0: a root */
	const char *kind, *label;
};

/* The graph keeps each of them, however often the same structures name it. */
static bool hold_afford(struct java_reader *x)
{
	if (!x->holds) {
		x->unheld++;
		return false;
	}
	x->holds--;
	return true;
}

void java_root(struct java_reader *x, uint64_t object, const char *kind)
{
	if (java_is_object(x, object) && hold_afford(x))
		graph_root(x->graph, object, kind);
}

void java_alias(struct java_reader *x, uint64_t reference, uint64_t object)
{
	if (object && object != reference && hold_afford(x))
		graph_alias(x->graph, reference, object);
}

static void hold(struct java_reader *x, const struct holder *h, uint64_t object)
{
	if (!h->object) {
		java_root(x, object, h->kind);
	} else if (h->object != object && java_is_object(x, object) && hold_afford(x)) {
		graph_edge_from(x->graph, h->object, object,
				graph_label(x->graph, h->label, strlen(h->label)), GRAPH_STRONG);
	}
}

/* Adds the handles of a class loader's data that are no mirrors and no class's constants. */
static void chunks_add(struct java_reader *x, uint64_t loader, const struct hash *known,
		       const struct holder *h)
{
	/* the list's member is in front of that of the classes */
	uint64_t chunk =
		jvm_get(x->jvm, loader, (struct jvm_member){ x->layout.loader_classes.at - 8, 8 });

	for (uint32_t i = 0; chunk && i < CHUNKS_MAX && java_afford(x, CHUNK_SLOTS); i++) {
		uint64_t n = jvm_get(x->jvm, chunk, (struct jvm_member){ CHUNK_USED, 4 }), object;

		if (n > CHUNK_SLOTS)
			return;
		for (uint64_t k = 0; k < n; k++)
			if (jvm_word(x->jvm, chunk + k * 8, &object)) {
				object = java_wide(x, object);
				if (!hash_get(known, &object, sizeof(object)))
					hold(x, h, object);
			}
		if (!jvm_word(x->jvm, chunk + CHUNK_NEXT, &chunk))
			return;
	}
}

/* Class loader data belongs to a loader, or to the first of its hidden classes. What the boot
 * loader has loaded is never unloaded. */
static void loader_add(struct java_reader *x, uint64_t loader, const struct hash *known)
{
	const struct java_layout *l = &x->layout;
	struct holder classes = { 0, "system class", "<classes>" },
		      others = { 0, "VM", "<handles>" };
	uint64_t klass = jvm_get(x->jvm, loader, l->loader_classes);
	const struct java_class *c = klass ? java_class_at(x, klass) : NULL;
	bool hidden = jvm_get(x->jvm, loader, (struct jvm_member){ l->loader_hidden.at, 1 }) == 1;

	if (hidden)
		classes.object = c ? c->mirror : 0;
	else
		classes.object = java_handle(x, loader + l->loader_object.at);
	if (classes.object && !java_is_object(x, classes.object))
		return;
	others.object = classes.object;
	if (hidden && !classes.object)
		return;
	for (uint32_t i = 0; c && i < x->classes.n && java_afford(x, 2); i++) {
		hold(x, &classes, c->mirror);
		klass = jvm_get(x->jvm, klass, l->class_next);
		c = klass ? java_class_at(x, klass) : NULL;
	}
	chunks_add(x, loader, known, &others);
}

static void loaders_add(struct java_reader *x)
{
	uint64_t loader = jvm_get(x->jvm, x->layout.variable.loaders, (struct jvm_member){ 0, 8 });
	struct hash known = { 0 };

	for (uint32_t i = 0; i < x->classes.n; i++) {
		const struct java_class *c = &x->classes.v[i];

		if (c->mirror)
			hash_put(&known, &c->mirror, sizeof(c->mirror), NULL);
		if (c->constants)
			hash_put(&known, &c->constants, sizeof(c->constants), NULL);
	}
	for (uint32_t i = 0; loader && i < LOADERS_MAX && java_afford(x, 4); i++) {
		loader_add(x, loader, &known);
		loader = jvm_get(x->jvm, loader, x->layout.loader_next);
	}
	hash_fini(&known);
}

/* Adds each word that is an object's address, and each half of one that is the number of one. */
static void word_add(struct java_reader *x, const struct holder *h, uint64_t word)
{
	hold(x, h, java_wide(x, word));
	if (!x->narrow)
		return;
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t half = (uint32_t)(word >> 32 * i);

		if (half)
			hold(x, h, x->oop_base + ((uint64_t)half << x->oop_shift));
	}
}

/* What was added: a structure that is named again adds nothing. */
struct added {
	struct hash threads, stacks;
	memory_word_vec sps; /* by address */
};

static bool is_new(struct hash *h, uint64_t key)
{
	bool fresh;

	hash_put(h, &key, sizeof(key), &fresh);
	return fresh;
}

static void stack_add(struct java_reader *x, struct added *a, uint64_t thread,
		      const struct holder *h)
{
	uint64_t base = jvm_get(x->jvm, thread, x->layout.thread_stack),
		 size = jvm_get(x->jvm, thread, x->layout.thread_stack_size), sp = 0;
	const struct memory_region *r;
	uint32_t i;

	if (size > base)
		return;
	i = partition_point(a->sps.n, k, a->sps.v[k] < base - size);
	if (i < a->sps.n && a->sps.v[i] < base && is_new(&a->stacks, a->sps.v[i]))
		sp = a->sps.v[i];
	r = sp ? memory_region_at(x->copy, sp) : NULL;
	if (!r || base > r->end || base - sp > STACK_MAX)
		return;
	for (uint64_t at = (sp + 7) & ~7ull; at + 8 <= base && java_afford(x, 1); at += 8)
		word_add(x, h, memory_word(r, at));
}

static void handles_add(struct java_reader *x, uint64_t thread, const struct holder *h)
{
	const struct java_layout *l = &x->layout;
	uint64_t block = jvm_get(x->jvm, thread, l->thread_handles), object;

	for (uint32_t i = 0; block && i < BLOCKS_MAX && java_afford(x, BLOCK_HANDLES); i++) {
		uint64_t n = jvm_get(x->jvm, block, l->handles_top);

		for (uint64_t k = 0; k < n && k < BLOCK_HANDLES; k++)
			if (jvm_word(x->jvm, block + l->handles_first.at + k * 8, &object))
				hold(x, h, java_wide(x, object));
		block = jvm_get(x->jvm, block, l->handles_next);
	}
}

static void threads_add(struct java_reader *x)
{
	const struct java_layout *l = &x->layout;
	const struct jvm_member words[] = { l->thread_exception, l->thread_result };
	struct jvm_threads threads = jvm_threads_begin(x->jvm);
	uint64_t thread;
	struct added added = { 0 };

	memory_stacks(x->copy, &added.sps);
	while (java_afford(x, 16) && (thread = jvm_threads_next(&threads))) {
		struct holder h = { 0, "local variable", "<local>" };

		if (!is_new(&added.threads, thread))
			continue;
		/* a handle from Java 16 on */
		if (!jvm_word(x->jvm, thread + l->thread_object.at, &h.object) ||
		    !java_is_object(x, h.object))
			h.object = java_handle(x, thread + l->thread_object.at);
		if (java_is_object(x, h.object))
			java_root(x, h.object, "thread");
		else
			h.object = 0;
		stack_add(x, &added, thread, &h);
		h.label = h.kind = "JNI local";
		handles_add(x, thread, &h);
		h.label = h.kind = "VM";
		for (size_t k = 0; k < ARRAY_SIZE(words); k++)
			hold(x, &h, java_wide(x, jvm_get(x->jvm, thread, words[k])));
	}
	vec_fini(&added.sps);
	hash_fini(&added.threads);
	hash_fini(&added.stacks);
}

void java_roots_add(struct java_reader *x)
{
	const struct holder registers = { 0, "register", "" };

	loaders_add(x);
	java_storages_add(x);
	threads_add(x);
	for (uint32_t i = 0; i < x->copy->registers.n; i++)
		word_add(x, &registers, x->copy->registers.v[i]);
}
