/* Makes a process's memory with a heap of HotSpot in it for tests: a few classes and objects in the
 * parts of heap_memory.h. */
#ifndef DESCRY_TEST_JAVA_MEMORY_H
#define DESCRY_TEST_JAVA_MEMORY_H

#include "heap_memory.h"
#include "memory/heaplive/java_heap.h"

/* Addresses. */
enum {
	JM_HEAP_VAR = HM_VAR,
	JM_LOADERS_VAR = HM_VAR + 8,
	JM_CLASS_VAR = HM_VAR + 16,
	JM_RESERVE_VAR = HM_VAR + 24,
	JM_THREADS_VAR = HM_VAR + 32,
	JM_STORAGE_VAR = HM_VAR + 40,
	JM_GC = HM_VAR + 0x100,
	JM_YOUNG = HM_VAR + 0x200,
	JM_OLD = HM_VAR + 0x240,
	JM_EDEN = HM_VAR + 0x280,
	JM_FROM = HM_VAR + 0x2c0,
	JM_TENURED = HM_VAR + 0x300,
	JM_LOADER = HM_VAR + 0x400,
	JM_HANDLES = HM_VAR + 0x500, /* of the mirrors */
	JM_LIST = HM_VAR + 0x600,
	JM_THREAD = HM_VAR + 0x700,
	JM_THREAD_HANDLE = HM_VAR + 0x800,
	JM_KLASS = HM_HEAP + 0x100, /* JM_STEP for each class */
	JM_STEP = 0x280,
	JM_FIELDS = HM_HEAP + 0x1400, /* 0x20 for each class */
	JM_CONSTANTS = HM_HEAP + 0x1600,
	JM_SYMBOLS = HM_HEAP + 0x1a00, /* 0x40 for each */
	JM_STORAGE = HM_SECOND + 0x1000,
	JM_BLOCK = HM_SECOND + 0x1100,
	JM_BOTTOM = HM_MAPPED, /* of eden */
	JM_TOP = HM_MAPPED + 0x800,
	JM_OLD_BOTTOM = HM_MAPPED + 0x1000,
	JM_OLD_TOP = HM_MAPPED + 0x1100,
	/* classes */
	JM_CLASS = 0,
	JM_NODE,
	JM_NODES,
	JM_INTS,
	JM_WEAK,
	JM_BASE,
	JM_NCLASSES,
	/* objects of eden */
	JM_MIRRORS = JM_BOTTOM, /* 0x40 for each class */
	JM_NODE_A = JM_MIRRORS + JM_NCLASSES * 0x40,
	JM_NODE_B = JM_NODE_A + 24,
	JM_ARRAY = JM_NODE_B + 24,   /* of 3 nodes */
	JM_NUMBERS = JM_ARRAY + 32,  /* of 5 int */
	JM_BUFFER = JM_NUMBERS + 40, /* the thread's, of 0x100 bytes */
	JM_IN_BUFFER = JM_BUFFER,    /* a node */
	JM_BUFFER_TOP = JM_BUFFER + 24,
	JM_BUFFER_END = JM_BUFFER + 0x100,
	JM_BEHIND = JM_BUFFER_END + 16, /* a node, behind the reserve */
	JM_REFERENCE = JM_BEHIND + 24,  /* a weak reference */
	JM_REST = JM_REFERENCE + 24,    /* numbers up to the top */
	JM_LOST = JM_OLD_BOTTOM,        /* a node that only the storage holds */
	/* of ZGC: eden is a page of a heap that begins at JM_Z_BASE */
	JM_Z_BASE = 0x8000000,
	JM_Z_GRANULE = 1 << 21,
	JM_Z_PAGES = HM_SECOND + 0x200, /* a table, as the next: a word for each granule */
	JM_Z_FORWARDINGS = HM_SECOND + 0x400,
	JM_Z_PAGE = HM_SECOND + 0x600,
	JM_Z_BITS = HM_SECOND + 0x680,
	JM_Z_MOVED = HM_SECOND + 0x7c0,
	JM_Z_OLD = 2 * JM_Z_GRANULE, /* offset of the page that objects were moved out of */
	JM_Z_CYCLE = 7,
};

static inline uint64_t jm_klass(uint32_t i)
{
	return JM_KLASS + (uint64_t)i * JM_STEP;
}

static inline void jm_put4(struct heap_memory *m, uint64_t addr, uint32_t v)
{
	uint8_t *p = heap_memory_at(m, addr, sizeof(v));

	if (p)
		memcpy(p, &v, sizeof(v));
}

static inline void jm_symbol(struct heap_memory *m, uint32_t i, const char *text)
{
	uint64_t at = JM_SYMBOLS + i * 0x40ull;
	uint8_t *p = heap_memory_at(m, at, 0x40);

	p[4] = (uint8_t)strlen(text);
	p[5] = 0;
	memcpy(p + 6, text, strlen(text));
	heap_memory_put(m, JM_CONSTANTS + 72 + 8 * i, at); /* its constant has the same number */
}

/* A class with one field of this name, type and place, when place is not 0. */
static inline void jm_class(struct heap_memory *m, uint32_t i, int32_t layout, uint32_t super,
			    uint32_t field, uint32_t place)
{
	uint64_t k = jm_klass(i);
	uint8_t *p = heap_memory_at(m, JM_FIELDS + i * 0x20ull, 16);
	const uint16_t f[] = { 0, (uint16_t)field, 8, 0, (uint16_t)(place << 2 | 1), 0 };

	jm_put4(m, k + 8, (uint32_t)layout);
	heap_memory_put(m, k + 24, JM_SYMBOLS + i * 0x40ull);
	heap_memory_put(m, k + 112, JM_HANDLES + i * 8ull);
	heap_memory_put(m, JM_HANDLES + i * 8ull, JM_MIRRORS + i * 0x40ull);
	heap_memory_put(m, k + 120, super < JM_NCLASSES ? jm_klass(super) : 0);
	heap_memory_put(m, k + 144, i + 1 < JM_NCLASSES ? jm_klass(i + 1) : 0);
	heap_memory_put(m, k + 232, JM_CONSTANTS);
	heap_memory_put(m, k + 456, JM_FIELDS + i * 0x20ull);
	jm_put4(m, k + 308, place ? 1u << 16 : 0); /* its fields */
	jm_put4(m, JM_FIELDS + i * 0x20ull, 6);
	memcpy(p + 4, f, sizeof(f));
}

static inline void jm_object(struct heap_memory *m, uint64_t addr, uint32_t class, uint32_t word)
{
	heap_memory_put(m, addr, 1);
	jm_put4(m, addr + 8, (uint32_t)jm_klass(class));
	jm_put4(m, addr + 12, word);
}

static inline void jm_space(struct heap_memory *m, uint64_t space, uint64_t bottom, uint64_t top)
{
	heap_memory_put(m, space + 8, bottom);
	heap_memory_put(m, space + 64, top);
}

/* Classes Class, Node (with a field `next`), Node[], int[] and a weak reference; a thread that has
 * a node on its stack, and a buffer in eden. */
static inline void jm_make(struct heap_memory *m)
{
	static const char *const names[] = { "java/lang/Class",
					     "Node",
					     "[LNode;",
					     "[I",
					     "java/lang/ref/WeakReference",
					     "java/lang/ref/Reference",
					     "next",
					     "referent",
					     "LNode;" };

	heap_memory_init(m);
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		jm_symbol(m, i, names[i]);
	jm_class(m, JM_CLASS, 0x40 | 1, JM_NCLASSES, 0, 0);
	jm_class(m, JM_NODE, 24, JM_NCLASSES, 6, 12);
	jm_class(m, JM_NODES, (int32_t)0x80100002, JM_NCLASSES, 0, 0);
	jm_class(m, JM_INTS, (int32_t)0xc0100a02, JM_NCLASSES, 0, 0);
	jm_class(m, JM_WEAK, 24, JM_BASE, 0, 0);
	jm_class(m, JM_BASE, 24, JM_NCLASSES, 7, 12);
	heap_memory_put(m, JM_HEAP_VAR, JM_GC);
	heap_memory_put(m, JM_LOADERS_VAR, JM_LOADER);
	heap_memory_put(m, JM_CLASS_VAR, jm_klass(JM_CLASS));
	heap_memory_put(m, JM_THREADS_VAR, JM_LIST);
	heap_memory_put(m, JM_STORAGE_VAR, JM_STORAGE);
	heap_memory_put(m, JM_GC + 96, JM_YOUNG);
	heap_memory_put(m, JM_GC + 104, JM_OLD);
	heap_memory_put(m, JM_YOUNG, JM_EDEN);
	heap_memory_put(m, JM_YOUNG + 8, JM_FROM);
	heap_memory_put(m, JM_OLD, JM_TENURED);
	jm_space(m, JM_EDEN, JM_BOTTOM, JM_TOP);
	jm_space(m, JM_TENURED, JM_OLD_BOTTOM, JM_OLD_TOP);
	heap_memory_put(m, JM_LOADER + 56, jm_klass(0));
	heap_memory_put(m, JM_LIST + 4, 1);
	heap_memory_put(m, JM_LIST + 16, JM_LIST + 32);
	heap_memory_put(m, JM_LIST + 32, JM_THREAD);
	heap_memory_put(m, JM_THREAD, JM_BUFFER);
	heap_memory_put(m, JM_THREAD + 8, JM_BUFFER_TOP);
	heap_memory_put(m, JM_THREAD + 24, JM_BUFFER_END);
	heap_memory_put(m, JM_THREAD + 32, JM_BUFFER_END);
	heap_memory_put(m, JM_THREAD + 64, HM_STACK + HM_SIZE);
	heap_memory_put(m, JM_THREAD + 72, HM_SIZE);
	heap_memory_put(m, HM_STACK + 0x1800, JM_NODE_A);
	for (uint32_t i = 0; i < JM_NCLASSES; i++) {
		jm_object(m, JM_MIRRORS + i * 0x40ull, JM_CLASS, 0);
		heap_memory_put(m, JM_MIRRORS + i * 0x40ull + 16, jm_klass(i));
		jm_put4(m, JM_MIRRORS + i * 0x40ull + 24, 8);
	}
	jm_object(m, JM_NODE_A, JM_NODE, JM_NODE_B);
	jm_object(m, JM_NODE_B, JM_NODE, JM_ARRAY);
	jm_object(m, JM_ARRAY, JM_NODES, 3);
	jm_put4(m, JM_ARRAY + 16, JM_BEHIND);
	jm_put4(m, JM_ARRAY + 24, JM_REFERENCE);
	jm_object(m, JM_NUMBERS, JM_INTS, 5);
	jm_object(m, JM_IN_BUFFER, JM_NODE, 0);
	jm_object(m, JM_BUFFER_TOP, JM_NODE, 0); /* is of the past */
	jm_object(m, JM_BEHIND, JM_NODE, 0);
	jm_object(m, JM_REFERENCE, JM_WEAK, JM_IN_BUFFER);
	jm_object(m, JM_REST, JM_INTS, (JM_TOP - JM_REST - 16) / 4);
	jm_object(m, JM_LOST, JM_NODE, 0);
	jm_object(m, JM_LOST + 24, JM_INTS, (JM_OLD_TOP - JM_LOST - 24 - 16) / 4);
	heap_memory_put(m, JM_STORAGE, JM_SYMBOLS + 6);      /* a name */
	heap_memory_put(m, JM_STORAGE + 8, JM_STORAGE + 32); /* its blocks */
	heap_memory_put(m, JM_STORAGE + 32, 1);
	heap_memory_put(m, JM_STORAGE + 40, 1);
	heap_memory_put(m, JM_STORAGE + 56, JM_BLOCK);
	heap_memory_put(m, JM_BLOCK + 16, JM_LOST);
	heap_memory_put(m, JM_BLOCK + 512, 4);
	heap_memory_put(m, JM_BLOCK + 520, JM_STORAGE);
}

static inline void jm_reader(struct java_reader *x, struct jvm *j, const struct memory_copy *c,
			     struct space *s, struct graph *g)
{
	*j = (struct jvm){ .runtime.space = s, .budget = 1 << 20, .work = 1 << 20 };
	arena_init(&j->names);
	j->layout.class_name = (struct jvm_member){ 24, 8 };
	j->layout.class_constants = (struct jvm_member){ 232, 8 };
	j->layout.symbol_length = (struct jvm_member){ 4, 2 };
	j->layout.symbol_text = (struct jvm_member){ 6, 1 };
	j->layout.threads_length = (struct jvm_member){ 4, 4 };
	j->layout.threads_first = (struct jvm_member){ 16, 8 };
	j->layout.variable.threads = JM_THREADS_VAR;
	j->layout.size.constants = 72;
	*x = (struct java_reader){ .copy = c,
				   .jvm = j,
				   .graph = g,
				   .collector = JAVA_SERIAL,
				   .narrow = true,
				   .narrow_class = true,
				   .align = 8,
				   .major = 17,
				   .mark_unused = 0xffffff8000000080ull,
				   .mirror_class = 16,
				   .mirror_words = 24 };
	x->layout = (struct java_layout){
		.heap_active = { 48, 1 },
		.serial_young = { 96, 8 },
		.serial_old = { 104, 8 },
		.young_eden = { 0, 8 },
		.young_from = { 8, 8 },
		.tenured_space = { 0, 8 },
		.space_bottom = { 8, 8 },
		.space_top = { 64, 8 },
		.class_layout = { 8, 4 },
		.class_super = { 120, 8 },
		.class_next = { 144, 8 },
		.class_mirror = { 112, 8 },
		.class_vtable = { 160, 4 },
		.class_itable = { 300, 4 },
		.class_maps = { 296, 4 },
		.class_fields = { 456, 8 },
		.class_nfields = { 310, 2 },
		.constants_cache = { 16, 8 },
		.cache_references = { 16, 8 },
		.loader_object = { 8, 8 },
		.loader_next = { 112, 8 },
		.loader_classes = { 56, 8 },
		.loader_hidden = { 33, 1 },
		.thread_tlab = { 0, 8 },
		.thread_handles = { 120, 8 },
		.thread_exception = { 128, 8 },
		.thread_object = { 136, 8 },
		.thread_result = { 144, 8 },
		.thread_stack = { 64, 8 },
		.thread_stack_size = { 72, 8 },
		.tlab_start = { 0, 8 },
		.tlab_top = { 8, 8 },
		.tlab_end = { 24, 8 },
		.tlab_desired = { 40, 8 },
		.handles_first = { 0, 8 },
		.handles_top = { 256, 4 },
		.handles_next = { 264, 8 },
		.variable = { .heap = JM_HEAP_VAR,
			      .loaders = JM_LOADERS_VAR,
			      .class_class = JM_CLASS_VAR,
			      .tlab_reserve = JM_RESERVE_VAR },
		.size = { .instance_class = 464 },
	};
}

/* Makes what ZGC has: a page of an earlier cycle, in which all objects are marked, and one object
 * (JM_NUMBERS) that was the sixth place of another page. */
static inline void jm_make_zgc(struct heap_memory *m)
{
	uint64_t start = JM_BOTTOM - JM_Z_BASE;
	uint8_t *bits = heap_memory_at(m, JM_Z_BITS, 256);

	heap_memory_put(m, JM_GC + 0x48, JM_Z_PAGES);
	heap_memory_put(m, JM_GC + 0x58, JM_Z_FORWARDINGS);
	heap_memory_put(m, JM_Z_PAGES + start / JM_Z_GRANULE * 8, JM_Z_PAGE);
	heap_memory_put(m, JM_Z_PAGE, (JM_Z_CYCLE - 1ull) << 32);
	heap_memory_put(m, JM_Z_PAGE + 8, start);
	heap_memory_put(m, JM_Z_PAGE + 16, start + HM_SIZE);
	heap_memory_put(m, JM_Z_PAGE + 24, JM_TOP - JM_Z_BASE);
	heap_memory_put(m, JM_Z_PAGE + 32, JM_Z_CYCLE);
	heap_memory_put(m, JM_Z_PAGE + 48, UINT64_MAX); /* segments that are valid */
	heap_memory_put(m, JM_Z_PAGE + 64, JM_Z_BITS);
	heap_memory_put(m, JM_Z_PAGE + 72, 2048);
	heap_memory_put(m, JM_Z_PAGE + 88, 5);
	memset(bits, 0xff, 256);
	heap_memory_put(m, JM_Z_FORWARDINGS + JM_Z_OLD / JM_Z_GRANULE * 8, JM_Z_MOVED);
	heap_memory_put(m, JM_Z_MOVED, JM_Z_OLD);
	heap_memory_put(m, JM_Z_MOVED + 8, JM_Z_OLD + HM_SIZE);
	heap_memory_put(m, JM_Z_MOVED + 16, 3);
	heap_memory_put(m, JM_Z_MOVED + 24, 4);
	for (uint32_t i = 0; i < 4; i++)
		heap_memory_put(m, JM_Z_MOVED + 32 + i * 8,
				1 | (JM_NUMBERS - JM_Z_BASE) << 1 | (i == 2 ? 5ull : 9) << 46);
}

static inline void jm_zgc(struct java_reader *x)
{
	struct java_layout *l = &x->layout;

	x->collector = JAVA_ZGC;
	x->zgc = (struct java_zgc){ .offsets = JM_Z_BASE - 1,
				    .base = JM_Z_BASE,
				    .good = JM_Z_BASE,
				    .phase = 2,
				    .cycle = JM_Z_CYCLE };
	l->z_heap = (struct jvm_member){ 0x40, 8 };
	l->z_page_words = l->z_forwarding_words = (struct jvm_member){ 8, 8 };
	l->z_forwardings = (struct jvm_member){ 16, 8 };
	l->z_page_seqnum = (struct jvm_member){ 4, 8 };
	l->z_page_virtual = l->z_end = (struct jvm_member){ 8, 8 };
	l->z_page_top = l->z_entries = (struct jvm_member){ 24, 8 };
	l->z_from_shift = (struct jvm_member){ 16, 8 };
	l->z_pages = l->z_page_map = l->z_forwarding_map = l->z_start = l->z_from =
		l->z_entries_length = (struct jvm_member){ 0, 8 };
	l->size.z_forwarding = 32;
}

static inline void jm_reader_fini(struct java_reader *x)
{
	arena_fini(&x->jvm->names);
	java_reader_fini(x);
}

#endif
