/* HotSpot's classes: those of all class loaders, by the address of their Klass. */
#include "base/hash.h"
#include "memory/heaplive/java_heap.h"

#include "memory/heapfile/java_name.h"

enum {
	CLASSES_MAX = 1 << 20,
	LOADERS_MAX = 1 << 18,
	NAME_MAX_BYTES = 4096,
	SUPERS_MAX = 512,
	CLASS_WORDS = 64, /* that the reading of a class takes */
	/* Klass::_layout_helper of an array: the header's bytes, and log2 of an element's */
	LAYOUT_HEADER = 16,
	LAYOUT_SHIFT = 63,
	LAYOUT_OBJECTS = -2,
	LAYOUT_TAG = 30,
};

static uint32_t class_place(const struct java_reader *x, uint64_t klass)
{
	uint32_t i = (uint32_t)hash_word(klass) & x->class_mask;

	while (x->class_slots[i] && x->classes.v[x->class_slots[i] - 1].address != klass)
		i = (i + 1) & x->class_mask;
	return i;
}

struct java_class *java_class_at(const struct java_reader *x, uint64_t klass)
{
	uint32_t i = x->class_slots ? x->class_slots[class_place(x, klass)] : 0;

	return i ? &x->classes.v[i - 1] : NULL;
}

static void class_slots_grow(struct java_reader *x)
{
	x->class_mask = x->class_mask ? x->class_mask * 2 + 1 : 4095;
	free(x->class_slots);
	x->class_slots = xcalloc((size_t)x->class_mask + 1, sizeof(*x->class_slots));
	for (uint32_t i = 0; i < x->classes.n; i++)
		x->class_slots[class_place(x, x->classes.v[i].address)] = i + 1;
}

/* Returns the JVM's name for a class: "java/lang/String", "[I". */
static const char *class_name(const struct java_reader *x, uint64_t klass)
{
	const struct jvm_layout *l = &x->jvm->layout;
	uint64_t symbol = jvm_get(x->jvm, klass, l->class_name),
		 n = jvm_get(x->jvm, symbol, l->symbol_length);

	if (!symbol || !n || n > NAME_MAX_BYTES)
		return NULL;
	return jvm_text(x->jvm, symbol + l->symbol_text.at, (uint32_t)n);
}

static bool class_describe(struct java_reader *x, struct java_class *c)
{
	int64_t helper;

	if (!jvm_read(x->jvm, c->address, x->layout.class_layout, &helper))
		return false;
	if (helper > 0) {
		c->kind = JAVA_INSTANCE;
		c->size = (uint32_t)helper & ~7u;
		return c->size >= 8;
	}
	if (!helper)
		return false; /* of no objects */
	c->kind = helper >> LAYOUT_TAG == LAYOUT_OBJECTS ? JAVA_REFERENCES : JAVA_NUMBERS;
	c->size = helper >> LAYOUT_HEADER & 0xff;
	c->shift = helper & LAYOUT_SHIFT;
	return c->size >= 16 && c->shift <= 3 &&
	       (c->kind == JAVA_NUMBERS || c->shift == (x->narrow ? 2 : 3));
}

static void class_add(struct java_reader *x, uint64_t klass)
{
	struct java_class c = { .address = klass };
	struct out o;

	if (!class_describe(x, &c)) { /* an interface has no instances, but static fields */
		c.kind = JAVA_INSTANCE;
		c.size = 0;
	}
	c.name = class_name(x, klass);
	c.super = jvm_get(x->jvm, klass, x->layout.class_super);
	c.mirror = java_handle(x, klass + x->layout.class_mirror.at);
	c.number = graph_class(x->graph, klass);
	if (c.name) {
		out_init(&o, NULL);
		java_name(&o, c.name);
		graph_class_name(x->graph, c.number, o.v, o.n);
		out_fini(&o);
	}
	if (c.mirror)
		graph_class_object(x->graph, c.number, c.mirror);
	vec_push(&x->classes, c);
	if (x->classes.n >= x->class_mask / 2)
		class_slots_grow(x);
	else
		x->class_slots[class_place(x, klass)] = x->classes.n;
}

static void loader_classes(struct java_reader *x, uint64_t loader)
{
	uint64_t klass = jvm_get(x->jvm, loader, x->layout.loader_classes);

	while (klass && !(klass & 7) && !java_class_at(x, klass) && x->classes.n < CLASSES_MAX &&
	       java_afford(x, CLASS_WORDS)) {
		class_add(x, klass);
		klass = jvm_get(x->jvm, klass, x->layout.class_next);
	}
}

/* Gives a class what its superclasses say of its instances. */
static void class_inherit(struct java_reader *x, struct java_class *c)
{
	static const struct {
		const char *name;
		enum graph_strength strength;
	} known[] = { { "java/lang/ref/WeakReference", GRAPH_WEAK },
		      { "java/lang/ref/SoftReference", GRAPH_SOFT },
		      { "java/lang/ref/PhantomReference", GRAPH_PHANTOM } };
	const struct java_class *s = c;

	for (int depth = 0; s && depth < SUPERS_MAX && java_afford(x, 1); depth++) {
		for (size_t i = 0; s->name && i < ARRAY_SIZE(known); i++)
			if (!strcmp(s->name, known[i].name)) {
				c->strength = known[i].strength;
				return;
			}
		s = s->super ? java_class_at(x, s->super) : NULL;
	}
}

struct err *java_classes_find(struct java_reader *x)
{
	const struct jvm_member word = { 0, 8 };
	uint64_t loader = jvm_get(x->jvm, x->layout.variable.loaders, word), class_class;
	struct java_class *mirrors;

	for (uint32_t i = 0; loader && i < LOADERS_MAX && java_afford(x, 4); i++) {
		loader_classes(x, loader);
		loader = jvm_get(x->jvm, loader, x->layout.loader_next);
	}
	class_class = jvm_get(x->jvm, x->layout.variable.class_class, word);
	mirrors = java_class_at(x, class_class);
	if (!mirrors || mirrors->kind != JAVA_INSTANCE || mirrors->size < 16)
		return err_new(0,
			       "the heap of Java %s is not as it should be: java.lang.Class is not "
			       "found",
			       x->jvm->runtime.version);
	mirrors->kind = JAVA_MIRROR;
	for (uint32_t i = 0; i < x->classes.n; i++)
		class_inherit(x, &x->classes.v[i]);
	return NULL;
}
