/* src/memory/heaplive/java_*.c on memory that is made up. */
#include "unit.h"

#include "java_memory.h"
#include "memory/heap/heap.h"
#include "memory/heapfile/hprof_write.h"

static struct heap_memory mem;

static bool counting; /* is wanted */
static bool zgc;      /* is the collector */

/* Calls `look`, if there is one, before the reader is freed. */
static struct graph *read_and_look(struct java_reader *x, void (*look)(const struct java_reader *x))
{
	const struct graph_wanted w = { .labels = true, .counts = counting };
	struct memory_copy *c = NULL;
	struct graph *g = graph_new(&w);
	struct space *s;
	struct jvm j;

	assert_null(memory_copy(&mem.space, &c));
	s = memory_copy_space(c, &mem.space);
	jm_reader(x, &j, c, s, g);
	if (zgc)
		jm_zgc(x);
	assert_null(java_read(x));
	if (look)
		look(x);
	assert_null(graph_finish(g));
	jm_reader_fini(x);
	space_free(s);
	memory_copy_free(c);
	return g;
}

static struct graph *read_mem(struct java_reader *x)
{
	return read_and_look(x, NULL);
}

/* The name of the reference between two objects; NULL: there is none. */
static const char *field(struct graph *g, uint64_t from, uint64_t to, enum graph_strength strength)
{
	static char buf[64];
	struct graph_edge_to e;
	graph_id id = graph_find(g, from);
	struct graph_walk w;

	assert_int_not_equal(id, GRAPH_NONE);
	w = graph_out(g, id);
	while (graph_walk_next(&w, &e))
		if (graph_address(g, e.id) == to && e.strength == strength)
			return graph_label_text(g, e.label, buf, sizeof(buf));
	return NULL;
}

static bool reaches(struct graph *g, uint64_t addr)
{
	graph_id id = graph_find(g, addr);

	assert_int_not_equal(id, GRAPH_NONE);
	return graph_reachable(g, id);
}

/* A graph that counts has the rows of the whole graph. */
static void java_counts(void **state)
{
	struct graph_rows whole, counted;
	struct java_reader x;
	struct graph *g, *n;

	(void)state;
	jm_make(&mem);
	g = read_mem(&x);
	counting = true;
	n = read_mem(&x);
	counting = false;
	assert_true(graph_totals(g)->objects > 5);
	graph_histogram(g, GRAPH_ALL, &whole);
	graph_histogram(n, GRAPH_ALL, &counted);
	assert_int_equal(counted.n, whole.n);
	for (uint32_t i = 0; i < whole.n; i++) {
		assert_int_equal(counted.v[i].class, whole.v[i].class);
		assert_int_equal(counted.v[i].n, whole.v[i].n);
		assert_int_equal(counted.v[i].bytes, whole.v[i].bytes);
	}
	graph_rows_free(&whole);
	graph_rows_free(&counted);
	graph_free(g);
	graph_free(n);
}

/* Reads the memory as a heap of ZGC. */
static struct graph *read_zgc(struct java_reader *x)
{
	struct graph *g;

	zgc = true;
	g = read_mem(x);
	zgc = false;
	return g;
}

/* ZGC's pages are read. What its marks do not have is dead, unless the page is of this cycle. */
static void java_zgc_pages(void **state)
{
	uint32_t place = (JM_NUMBERS - JM_BOTTOM) / 8 * 2;
	struct java_reader x;
	struct graph *g;

	(void)state;
	jm_make(&mem);
	jm_make_zgc(&mem);
	g = read_zgc(&x);
	assert_int_equal(graph_totals(g)->objects, JM_NCLASSES + 8);
	assert_string_equal(graph_root_kind(g, graph_find(g, JM_NODE_A)), "local variable");
	assert_int_equal(graph_remarks(g), 1);
	graph_free(g);
	heap_memory_at(&mem, JM_Z_BITS, 256)[place / 8] &= (uint8_t) ~(3u << place % 8);
	g = read_zgc(&x);
	assert_int_equal(graph_find(g, JM_NUMBERS), GRAPH_NONE);
	assert_int_equal(graph_totals(g)->objects, JM_NCLASSES + 7);
	graph_free(g);
	heap_memory_put(&mem, JM_Z_PAGE, (uint64_t)JM_Z_CYCLE << 32);
	g = read_zgc(&x);
	assert_int_equal(graph_totals(g)->objects, JM_NCLASSES + 8);
	graph_free(g);
	/* java_zgc_marks() uses no bitmap of another size, and adds a remark */
	heap_memory_put(&mem, JM_Z_PAGE + 72, 4096);
	g = read_zgc(&x);
	assert_int_equal(graph_totals(g)->objects, JM_NCLASSES + 8);
	assert_int_equal(graph_remarks(g), 2);
	assert_non_null(strstr(graph_remark_text(g, 0), "marks"));
	graph_free(g);
}

/* A reference of an old colour leads to where the object is now. One of the colour of now does
 * not, and a number without a colour is none. */
static void java_zgc_moved(void **state)
{
	const uint64_t old = JM_Z_OLD + 5 * 8, colour = 2ull * JM_Z_BASE;
	struct java_reader x;
	struct graph *g;

	(void)state;
	jm_make(&mem);
	jm_make_zgc(&mem);
	heap_memory_put(&mem, JM_BLOCK + 16, colour | old);
	g = read_zgc(&x);
	assert_string_equal(graph_root_kind(g, graph_find(g, JM_NUMBERS)), "VM");
	graph_free(g);
	heap_memory_put(&mem, JM_BLOCK + 16, JM_Z_BASE | old);
	g = read_zgc(&x);
	assert_null(graph_root_kind(g, graph_find(g, JM_NUMBERS)));
	graph_free(g);
	heap_memory_put(&mem, JM_BLOCK + 16, JM_NUMBERS - JM_Z_BASE);
	g = read_zgc(&x);
	assert_null(graph_root_kind(g, graph_find(g, JM_NUMBERS)));
	graph_free(g);
	/* the same place, not moved: another number is in its entries */
	heap_memory_put(&mem, JM_BLOCK + 16, colour | (JM_Z_OLD + 6 * 8));
	g = read_zgc(&x);
	assert_null(graph_root_kind(g, graph_find(g, JM_NUMBERS)));
	graph_free(g);
}

/* The reference of a class to its mirror may have an old colour too. */
static void java_zgc_moved_mirror(void **state)
{
	struct java_reader x;
	struct graph *g;
	graph_id mirror;
	uint32_t n = 0;

	(void)state;
	jm_make(&mem);
	jm_make_zgc(&mem);
	heap_memory_put(&mem, JM_HANDLES, 2ull * JM_Z_BASE | (JM_Z_OLD + 5 * 8));
	g = read_zgc(&x);
	mirror = graph_find(g, JM_NUMBERS);
	for (uint32_t i = 0; i < graph_classes(g); i++)
		n += graph_class_id(g, i) == mirror;
	assert_int_not_equal(mirror, GRAPH_NONE);
	assert_int_equal(n, 1);
	graph_free(g);
}

/* A table without an end is not gone over by each reference to it. */
static void java_zgc_full(void **state)
{
	uint64_t entries[4] = { 1, 1, 1, 1 };
	struct java_reader x = { .zgc = { .offsets = JM_Z_BASE - 1,
					  .base = JM_Z_BASE,
					  .good = JM_Z_BASE,
					  .looks = 9 } };

	(void)state;
	vec_push(&x.zgc.moved, ((struct java_moved){ .start = JM_Z_OLD,
						     .end = JM_Z_OLD + HM_SIZE,
						     .shift = 3,
						     .mask = 3,
						     .entries = (const uint8_t *)entries }));
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(java_zgc_object(&x, 2ull * JM_Z_BASE | (JM_Z_OLD + 48)),
				 JM_Z_BASE + JM_Z_OLD + 48);
	assert_int_equal(x.zgc.looks, 0);
	vec_fini(&x.zgc.moved);
}

static void java_objects(void **state)
{
	struct java_reader x;
	struct graph *g;
	graph_id id;

	(void)state;
	jm_make(&mem);
	g = read_mem(&x);
	assert_int_equal(graph_totals(g)->objects, JM_NCLASSES + 10);
	assert_int_equal(x.holes, JM_BEHIND - JM_BUFFER_TOP);
	assert_int_equal(x.skipped, 0);
	assert_int_equal(graph_find(g, JM_BUFFER_TOP), GRAPH_NONE);
	assert_string_equal(field(g, JM_NODE_A, JM_NODE_B, GRAPH_STRONG), "next");
	assert_string_equal(field(g, JM_ARRAY, JM_BEHIND, GRAPH_STRONG), "[0]");
	assert_string_equal(field(g, JM_ARRAY, JM_REFERENCE, GRAPH_STRONG), "[2]");
	assert_string_equal(field(g, JM_REFERENCE, JM_IN_BUFFER, GRAPH_WEAK), "referent");
	assert_string_equal(field(g, JM_MIRRORS + JM_WEAK * 0x40, JM_MIRRORS + JM_BASE * 0x40,
				  GRAPH_STRONG),
			    "<super>");
	id = graph_find(g, JM_ARRAY);
	assert_int_equal(graph_size(g, id), 32);
	assert_string_equal(graph_class_text(g, graph_class_of(g, id)), "Node[]");
	assert_int_equal(graph_size(g, graph_find(g, JM_NUMBERS)), 40);
	assert_int_equal(graph_size(g, graph_find(g, JM_MIRRORS)), 64);
	assert_string_equal(graph_root_kind(g, graph_find(g, JM_NODE_A)), "local variable");
	assert_string_equal(graph_root_kind(g, graph_find(g, JM_MIRRORS)), "system class");
	assert_string_equal(graph_root_kind(g, graph_find(g, JM_LOST)), "VM");
	assert_true(reaches(g, JM_REFERENCE));
	assert_false(reaches(g, JM_IN_BUFFER));
	assert_false(reaches(g, JM_NUMBERS));
	graph_free(g);
}

/* A number of 32 bits on the stack is a reference, too. */
static void java_narrow_stack(void **state)
{
	struct java_reader x;
	struct graph *g;

	(void)state;
	jm_make(&mem);
	heap_memory_put(&mem, HM_STACK + 0x1808, (uint64_t)JM_NUMBERS << 32 | 7);
	heap_memory_put(&mem, HM_STACK + 0x800, JM_REST); /* below the stack pointer */
	g = read_mem(&x);
	assert_true(reaches(g, JM_NUMBERS));
	assert_false(reaches(g, JM_REST));
	graph_free(g);
}

/* An object that is half made, in the thread's buffer and outside of it. */
static void java_half_made(void **state)
{
	struct java_reader x;
	struct graph *g;

	(void)state;
	jm_make(&mem);
	jm_put4(&mem, JM_IN_BUFFER + 8, 0);
	jm_put4(&mem, JM_NODE_B + 8, 0);
	g = read_mem(&x);
	assert_int_equal(graph_totals(g)->objects, JM_NCLASSES + 8);
	assert_int_equal(x.skipped, 48);
	assert_int_not_equal(graph_find(g, JM_ARRAY), GRAPH_NONE);
	assert_int_not_equal(graph_find(g, JM_BEHIND), GRAPH_NONE);
	graph_free(g);

	jm_make(&mem);
	jm_object(&mem, JM_IN_BUFFER, JM_INTS, 20); /* longer than the buffer has objects */
	jm_object(&mem, JM_REST, JM_INTS, UINT32_MAX);
	g = read_mem(&x);
	assert_int_equal(graph_totals(g)->objects, JM_NCLASSES + 8);
	assert_int_equal(x.skipped, 24 + JM_TOP - JM_REST);
	graph_free(g);
}

/* Circles of classes and loaders, and parts of the heap that overlap, or are in no memory. */
static void java_hostile(void **state)
{
	struct java_reader x;
	struct graph *g;

	(void)state;
	jm_make(&mem);
	heap_memory_put(&mem, jm_klass(JM_NCLASSES - 1) + 144, jm_klass(0));
	heap_memory_put(&mem, jm_klass(JM_BASE) + 120, jm_klass(JM_WEAK));
	heap_memory_put(&mem, JM_LOADER + 112, JM_LOADER);
	jm_space(&mem, JM_FROM, JM_BOTTOM + 0x40, JM_TOP);
	jm_space(&mem, JM_TENURED, JM_OLD_BOTTOM, JM_OLD_BOTTOM + 0x100000);
	jm_put4(&mem, jm_klass(JM_NODE) + 296, UINT32_MAX);
	g = read_mem(&x);
	assert_int_not_equal(graph_find(g, JM_LOST), GRAPH_NONE);
	assert_int_equal(x.outside, 0x100000 - 0x1000);
	assert_int_equal(graph_totals(g)->repeated, 0);
	graph_free(g);
}

static void no_long_runs(const struct java_reader *x)
{
	uint32_t run = 0, longest = 0;

	assert_in_range(x->classes.n, 200, 300);
	for (uint32_t i = 0; i <= x->class_mask; i++) {
		run = x->class_slots[i] ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	assert_in_range(longest, 1, 100);
}

/* A process can put its classes where a hash without a secret gives them neighbouring places. */
static void java_colliding_classes(void **state)
{
	enum { CLASSES = 200, PLACES = 100, STEP = 16 };
	uint64_t klass = 1ull << 40, loader = HM_SECOND;
	struct java_reader x;

	(void)state;
	jm_make(&mem);
	for (int i = 0; i < CLASSES; i++, loader += STEP) {
		do
			klass += 8;
		while ((klass * 0x9e3779b97f4a7c15u >> 32 & 4095) >= PLACES);
		heap_memory_put(&mem, loader + 56, klass);
		heap_memory_put(&mem, loader + 112, i + 1 < CLASSES ? loader + STEP : 0);
	}
	heap_memory_put(&mem, JM_LOADER + 112, HM_SECOND);
	graph_free(read_and_look(&x, no_long_runs));
}

/* Any number of mirrors can name a class with any number of static fields, all at one place. */
static void java_many_mirrors(void **state)
{
	enum { FIELDS = 100, MIRRORS = 60 };
	struct java_reader x;
	struct graph *g;
	uint64_t edges;

	(void)state;
	jm_make(&mem);
	g = read_mem(&x);
	edges = graph_totals(g)->edges;
	graph_free(g);
	for (uint32_t i = 0; i < FIELDS; i++) {
		const uint16_t f[] = { 8, 6, 8, 0, 40 << 2 | 1, 0 };

		memcpy(heap_memory_at(&mem, HM_SECOND + 4 + i * sizeof(f), sizeof(f)), f,
		       sizeof(f));
	}
	heap_memory_put(&mem, jm_klass(JM_CLASS) + 456, HM_SECOND);
	jm_put4(&mem, jm_klass(JM_CLASS) + 308, FIELDS << 16);
	jm_put4(&mem, JM_MIRRORS + 40, JM_NODE_A);
	jm_space(&mem, JM_TENURED, JM_OLD_BOTTOM, JM_OLD_TOP + MIRRORS * 64);
	for (uint32_t i = 0; i < MIRRORS; i++) {
		uint64_t at = JM_OLD_TOP + i * 64ull;

		jm_object(&mem, at, JM_CLASS, 0);
		heap_memory_put(&mem, at + 16, jm_klass(JM_CLASS));
		jm_put4(&mem, at + 24, 8);
		jm_put4(&mem, at + 40, JM_NODE_A);
	}
	g = read_mem(&x);
	assert_int_equal(graph_totals(g)->objects, JM_NCLASSES + 10 + MIRRORS);
	/* the class's own mirror has room for 16 references */
	assert_int_equal(graph_totals(g)->edges, edges + 16);
	graph_free(g);
}

/* A thread that is listed many times, and threads that share a stack. */
static void java_threads_again(void **state)
{
	enum { THREADS = 100, OTHER = HM_SECOND + 0x800 };
	struct java_reader x;
	uint64_t holds;

	(void)state;
	jm_make(&mem);
	for (uint64_t at = HM_STACK + 0x1800; at < HM_STACK + HM_SIZE; at += 8)
		heap_memory_put(&mem, at, JM_NODE_A);
	graph_free(read_mem(&x));
	holds = x.holds;
	jm_put4(&mem, JM_LIST + 4, THREADS);
	heap_memory_put(&mem, JM_LIST + 16, HM_SECOND);
	for (uint32_t i = 0; i < THREADS; i++)
		heap_memory_put(&mem, HM_SECOND + i * 8, i % 2 ? JM_THREAD : OTHER);
	heap_memory_put(&mem, OTHER + 64, HM_STACK + HM_SIZE);
	heap_memory_put(&mem, OTHER + 72, HM_SIZE);
	graph_free(read_mem(&x));
	assert_int_equal(x.holds, holds);
	assert_int_equal(x.unheld, 0);
}

/* A circle of blocks of JNI handles. */
static void java_handles_circle(void **state)
{
	enum { BLOCK = HM_SECOND };
	struct java_reader x;
	struct graph *g;
	bool said = false;

	(void)state;
	jm_make(&mem);
	for (uint32_t i = 0; i < 32; i++)
		heap_memory_put(&mem, BLOCK + i * 8, JM_NODE_A);
	jm_put4(&mem, BLOCK + 256, 32);
	heap_memory_put(&mem, BLOCK + 264, BLOCK);
	heap_memory_put(&mem, JM_THREAD + 120, BLOCK);
	g = read_mem(&x);
	assert_int_equal(x.holds, 0);
	assert_true(x.unheld > 1000);
	for (uint32_t i = 0; i < graph_remarks(g); i++)
		said |= strstr(graph_remark_text(g, i), "left out: there are too many") != NULL;
	assert_true(said);
	graph_free(g);
}

static struct err *nothing_resident(struct space *s, struct space_range in, space_range_vec *ret)
{
	(void)s;
	(void)in;
	(void)ret;
	return NULL;
}

/* A process can map any file privately, of which pages are read only when they are few. */
static void java_large_files(void **state)
{
	const uint64_t small = 1ull << 32, large = 1ull << 33, bytes = 1ull << 30;
	struct mapping map[] = {
		{ .start = small, .end = small + 0x4000, .path = "/x.jsa" },
		{ .start = large, .end = large + bytes, .path = "/x" },
	};
	struct memory_copy *c = NULL;
	struct space_ops ops;

	(void)state;
	heap_memory_init(&mem);
	ops = *mem.space.ops;
	ops.resident = nothing_resident;
	mem.space.ops = &ops;
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		map[i].read = map[i].write = true;
	mem.maps = (struct mappings){ .v = map, .n = ARRAY_SIZE(map) };
	assert_null(memory_copy(&mem.space, &c));
	assert_int_equal(c->runs.n, 0);
	assert_null(memory_copy_files(c, &mem.space));
	assert_int_equal(c->runs.n, 1);
	assert_int_equal(c->runs.v[0].start, small);
	assert_int_equal(c->runs.v[0].end, small + 0x4000);
	assert_int_equal(c->left_out, bytes);
	memory_copy_free(c);
}

/* The search for the marks reads each region of G1 once. */
static void java_regions(void **state)
{
	enum { PARTS = 64, REGION = HM_SECOND, TOPS = 0x180 };
	struct java_reader x;
	struct jvm j;

	(void)state;
	jm_make(&mem);
	jm_reader(&x, &j, NULL, &mem.space, graph_new(&(struct graph_wanted){ 0 }));
	x.layout.size.region = 0x400;
	for (uint64_t i = 0; i < PARTS; i++)
		vec_push(&x.parts, (struct java_part){ .bottom = JM_BOTTOM,
						       .top = JM_TOP,
						       .structure = REGION });
	heap_memory_put(&mem, REGION + TOPS, JM_BOTTOM);
	heap_memory_put(&mem, REGION + TOPS + 8, JM_TOP);
	mem.reads = 0;
	java_marks_find(&x);
	assert_in_range(mem.reads, PARTS, PARTS + 10);
	assert_null(x.parts.v[0].marks);
	graph_free(x.graph);
	jm_reader_fini(&x);
}

/* A region whose objects end within a place of 256 bytes has a bit more than whole places. */
static void java_marks_to_the_end(void **state)
{
	enum {
		REGION = HM_SECOND,
		TOPS = 0x180,
		ALIGN = 256,
		BYTES = ALIGN * 64, /* a bit each in the last word of the memory */
		MARK = HM_SECOND + 0xa00,
		BITMAP = MARK + 16,
	};
	struct java_reader x;
	struct jvm j;

	(void)state;
	for (uint64_t more = 0; more <= 8; more += 8) {
		struct memory_copy *c = NULL;

		jm_make(&mem);
		heap_memory_put(&mem, JM_GC, MARK);
		heap_memory_put(&mem, JM_GC + 8, JM_BOTTOM);
		heap_memory_put(&mem, MARK + 8, JM_GC);
		heap_memory_put(&mem, BITMAP, JM_BOTTOM);
		heap_memory_put(&mem, BITMAP + 8, BYTES / 8);
		heap_memory_put(&mem, BITMAP + 16, 5);
		heap_memory_put(&mem, BITMAP + 24, HM_STACK + HM_SIZE - 8);
		heap_memory_put(&mem, BITMAP + 32, BYTES / 8 >> 5);
		heap_memory_put(&mem, MARK + 64, BITMAP);
		heap_memory_put(&mem, MARK + 72, BITMAP + 8);
		heap_memory_put(&mem, REGION + TOPS, JM_BOTTOM + ALIGN);
		heap_memory_put(&mem, REGION + TOPS + 8, JM_BOTTOM + ALIGN);
		assert_null(memory_copy(&mem.space, &c));
		jm_reader(&x, &j, c, &mem.space, graph_new(&(struct graph_wanted){ 0 }));
		x.align = ALIGN;
		x.layout.heap_reserved = (struct jvm_member){ 8, 8 };
		x.layout.size.g1_heap = 64;
		x.layout.size.region = 0x400;
		vec_push(&x.parts, (struct java_part){ .bottom = JM_BOTTOM,
						       .top = JM_BOTTOM + BYTES + more,
						       .structure = REGION });
		java_marks_find(&x);
		if (more)
			assert_null(x.parts.v[0].marks);
		else
			assert_non_null(x.parts.v[0].marks);
		graph_free(x.graph);
		jm_reader_fini(&x);
		memory_copy_free(c);
	}
}

static struct err *first_resident(struct space *s, struct space_range in, space_range_vec *ret)
{
	(void)s;
	vec_push(ret, ((struct space_range){ in.start, in.start + HM_SIZE }));
	return NULL;
}

/* An array whose elements nobody has touched: they are not kept as zeros. */
static void java_untouched_numbers(void **state)
{
	enum { BYTES = 8 << 20 };
	const struct graph_wanted w = { .labels = true, .values = true };
	struct graph *g = graph_new(&w);
	struct memory_copy *c = NULL;
	struct java_reader x;
	struct space_ops ops;
	struct space *s;
	struct jvm j;
	size_t n;

	(void)state;
	jm_make(&mem);
	for (uint32_t i = 0; i < HM_PARTS; i++)
		if (mem.map[i].start == HM_MAPPED)
			mem.map[i].end = HM_MAPPED + BYTES;
	ops = *mem.space.ops;
	ops.resident = first_resident;
	mem.space.ops = &ops;
	jm_space(&mem, JM_EDEN, JM_BOTTOM, JM_BOTTOM + BYTES);
	jm_space(&mem, JM_TENURED, 0, 0);
	jm_object(&mem, JM_REST, JM_INTS, (JM_BOTTOM + BYTES - JM_REST - 16) / 4);
	assert_null(memory_copy(&mem.space, &c));
	s = memory_copy_space(c, &mem.space);
	jm_reader(&x, &j, c, s, g);
	assert_null(java_read(&x));
	assert_null(graph_finish(g));
	assert_int_equal(graph_size(g, graph_find(g, JM_REST)), JM_BOTTOM + BYTES - JM_REST);
	(void)graph_values_of(g, graph_find(g, JM_REST), &n);
	assert_int_equal(n, 0);
	(void)graph_values_of(g, graph_find(g, JM_NUMBERS), &n);
	assert_int_equal(n, 5 * 4);
	jm_reader_fini(&x);
	graph_free(g);
	space_free(s);
	memory_copy_free(c);
}

/* Is the number that says how a String is encoded found behind this many others? */
static bool is_wide_behind(uint32_t others)
{
	const struct graph_wanted w = { .labels = true, .values = true };
	struct graph *g = graph_new(&w);
	const uint32_t string = graph_class(g, 5), bytes = graph_class(g, 7);
	uint64_t budget = 100, spent = 0;
	struct out o;
	bool wide;

	graph_class_name(g, string, "java.lang.String", 16);
	graph_class_name(g, bytes, "byte[]", 6);
	for (uint32_t i = 0; i < others; i++)
		graph_class_field(g, string, false, 'B', graph_field_name(g, "x", 1), 0);
	graph_class_field(g, string, false, 'B', graph_field_name(g, "coder", 5), 0);
	graph_object(g, 0x1000, string, 24);
	memset(graph_values(g, others + 1), 1, others + 1);
	graph_edge(g, 0x2000, GRAPH_LABEL_NONE, GRAPH_STRONG);
	graph_object(g, 0x2000, bytes, 24);
	memcpy(graph_values(g, 4), "a\0b", 4);
	assert_null(graph_finish(g));
	out_init(&o, NULL);
	assert_true(heap_text(g, graph_find(g, 0x1000), &o, &budget));
	assert_true(budget < 100);
	wide = !strcmp(o.v, "ab");
	assert_false(heap_text(g, graph_find(g, 0x1000), &o, &spent));
	out_fini(&o);
	graph_free(g);
	return wide;
}

/* Each String's fields are gone over when its text is asked for. */
static void java_string_of_many_fields(void **state)
{
	(void)state;
	assert_true(is_wide_behind(0));
	assert_true(is_wide_behind(3));
	assert_false(is_wide_behind(100));
}

/* Writes a graph. Returns the bytes. */
static size_t written(struct graph *g, struct graph *read)
{
	char path[] = "/tmp/descry-heapjava-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	struct out o;
	size_t n;

	assert_non_null(f);
	out_init(&o, f);
	assert_int_equal(hprof_write(g, &o), 0);
	assert_null(out_flush(&o));
	out_fini(&o);
	n = (size_t)ftell(f);
	fclose(f);
	assert_null(heap_source_hprof.read_file(path, read));
	unlink(path);
	assert_null(graph_finish(read));
	return n;
}

/* An object with many references, all of one name, and the smallest object of the same class. */
static void java_export_of_one_name(void **state)
{
	enum { REFS = 600, OBJECTS = 1000, SIZE = 16 + 4 * REFS, AT = 0x100000 };
	const struct graph_wanted w = { .labels = true };
	struct graph *g = graph_new(&w), *read = graph_new(&w);
	uint32_t class = graph_class(g, 5), label = graph_label(g, "f", 1);

	(void)state;
	graph_class_name(g, class, "A", 1);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		graph_object(g, AT + i * 0x1000, class, SIZE);
		for (uint64_t k = 0; i < 3 && k < REFS; k++)
			graph_edge(g, AT + k * 0x1000, label, GRAPH_STRONG);
	}
	assert_null(graph_finish(g));
	written(g, read);
	assert_int_equal(graph_totals(read)->edges, graph_totals(g)->edges);
	assert_int_equal(graph_totals(read)->edges, 3 * REFS);
	graph_free(read);
	graph_free(g);
}

/* Objects of a class have one size, and a file that claims another does not make all as large. */
static void java_export_sizes(void **state)
{
	enum { OBJECTS = 1000, LARGE = 1 << 17, AT = 0x100000 };
	const struct graph_wanted w = { .labels = true };
	struct graph *g = graph_new(&w), *read = graph_new(&w);
	uint32_t class = graph_class(g, 5);

	(void)state;
	graph_class_name(g, class, "A", 1);
	for (uint64_t i = 0; i < OBJECTS; i++)
		graph_object(g, AT + i * LARGE, class, i ? 16 : LARGE);
	assert_null(graph_finish(g));
	assert_in_range(written(g, read), OBJECTS * 25, 2 * LARGE);
	assert_int_equal(graph_totals(read)->objects, OBJECTS + 1); /* and the class */
	graph_free(read);
	graph_free(g);
}

/* What is written as an HPROF file is read as the same graph. */
static void java_exported(void **state)
{
	const struct graph_wanted w = { .labels = true };
	struct graph *g, *read = graph_new(&w);
	char path[] = "/tmp/descry-heapjava-XXXXXX";
	struct java_reader x;
	struct out o;
	FILE *f = fdopen(mkstemp(path), "w");

	(void)state;
	assert_non_null(f);
	jm_make(&mem);
	g = read_mem(&x);
	out_init(&o, f);
	assert_int_equal(hprof_write(g, &o), 0);
	assert_null(out_flush(&o));
	out_fini(&o);
	fclose(f);
	assert_null(heap_source_hprof.read_file(path, read));
	unlink(path);
	assert_null(graph_finish(read));
	assert_int_equal(graph_totals(read)->objects, graph_totals(g)->objects);
	assert_int_equal(graph_totals(read)->edges, graph_totals(g)->edges);
	assert_int_equal(graph_totals(read)->weak_edges, 1);
	assert_int_equal(graph_reach(read)->objects, graph_reach(g)->objects);
	assert_string_equal(field(read, JM_NODE_A, JM_NODE_B, GRAPH_STRONG), "next");
	assert_string_equal(field(read, JM_ARRAY, JM_REFERENCE, GRAPH_STRONG), "[2]");
	assert_string_equal(field(read, JM_REFERENCE, JM_IN_BUFFER, GRAPH_WEAK), "referent");
	for (graph_id i = 0; i < graph_totals(g)->objects; i++)
		if (graph_is_class(g, i) == GRAPH_NONE)
			assert_int_equal(graph_size(read, i), graph_size(g, i));
	graph_free(read);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(java_objects),
		cmocka_unit_test(java_narrow_stack),
		cmocka_unit_test(java_half_made),
		cmocka_unit_test(java_hostile),
		cmocka_unit_test(java_exported),
		cmocka_unit_test(java_counts),
		cmocka_unit_test(java_zgc_pages),
		cmocka_unit_test(java_zgc_moved),
		cmocka_unit_test(java_zgc_moved_mirror),
		cmocka_unit_test(java_zgc_full),
		cmocka_unit_test(java_colliding_classes),
		cmocka_unit_test(java_many_mirrors),
		cmocka_unit_test(java_threads_again),
		cmocka_unit_test(java_handles_circle),
		cmocka_unit_test(java_large_files),
		cmocka_unit_test(java_regions),
		cmocka_unit_test(java_marks_to_the_end),
		cmocka_unit_test(java_untouched_numbers),
		cmocka_unit_test(java_string_of_many_fields),
		cmocka_unit_test(java_export_of_one_name),
		cmocka_unit_test(java_export_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
