/* src/memory/heapfile/: dumps that are made here, whole, packed, cut short and wrong. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/hash.h"
#include "hprof_make.h"
#include "memory/graph/graph_private.h"
#include "memory/heap/heap.h"
#include "memory/heapfile/hprof.h"

enum {
	TEXT_CLASS = 0x10,
	TEXT_OBJECT,
	TEXT_NODE,
	TEXT_NEXT,
	TEXT_VALUE,
	TEXT_COUNT,
	TEXT_ARRAY,
	TEXT_BYTES,
	TEXT_REFERENCE,
	TEXT_WEAK,
	TEXT_REFERENT,
	TEXT_CACHE,

	CLASS_CLASS = 0x1000,
	CLASS_OBJECT = 0x1100,
	CLASS_NODE = 0x1200,
	CLASS_ARRAY = 0x1300,
	CLASS_BYTES = 0x1400,
	CLASS_REFERENCE = 0x1500,
	CLASS_WEAK = 0x1600,
	HEAP = 0x10000,
	NODES = 10,
};

static uint64_t node_at(unsigned i)
{
	return HEAP +
	       i * 32u; /* header 12, two references of 4, an int: 24; and 8 that the machine adds */
}

/* Ten nodes in a list, an array of four of them, texts, and a weak reference. */
static void make_dump(struct hprof_make *m, unsigned id_size, bool segments)
{
	static const struct {
		uint64_t id;
		const char *text;
	} texts[] = {
		{ TEXT_CLASS, "java/lang/Class" },
		{ TEXT_OBJECT, "java/lang/Object" },
		{ TEXT_NODE, "shop/Node" },
		{ TEXT_NEXT, "next" },
		{ TEXT_VALUE, "value" },
		{ TEXT_COUNT, "count" },
		{ TEXT_ARRAY, "[[Lshop/Node;" },
		{ TEXT_BYTES, "[B" },
		{ TEXT_REFERENCE, "java/lang/ref/Reference" },
		{ TEXT_WEAK, "java/lang/ref/WeakReference" },
		{ TEXT_REFERENT, "referent" },
		{ TEXT_CACHE, "cache" },
	};
	const uint64_t fields[] = { TEXT_NEXT, 2, TEXT_VALUE, 2, TEXT_COUNT, 10 };
	const uint64_t referent[] = { TEXT_REFERENT, 2 };
	const uint64_t statics[] = { TEXT_CACHE, HEAP + 0x1000 };
	const uint64_t elements[] = { node_at(0), 0, node_at(5), 0xdead00 };
	uint8_t tag = segments ? 0x1c : 0x0c;

	hm_begin(m, id_size);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		hm_text(m, texts[i].id, texts[i].text);
	hm_load(m, CLASS_CLASS, TEXT_CLASS);
	hm_load(m, CLASS_OBJECT, TEXT_OBJECT);
	hm_load(m, CLASS_NODE, TEXT_NODE);
	hm_load(m, CLASS_ARRAY, TEXT_ARRAY);
	hm_load(m, CLASS_BYTES, TEXT_BYTES);
	hm_load(m, CLASS_REFERENCE, TEXT_REFERENCE);
	hm_load(m, CLASS_WEAK, TEXT_WEAK);
	hm_record(m, 0x05, 12); /* a stack trace, which is passed over */
	out_fill(&m->o, 'x', 12);
	hm_segment(m, tag);
	hm_class(m, CLASS_WEAK, CLASS_REFERENCE, NULL, 0, NULL, 0);
	hm_class(m, CLASS_CLASS, CLASS_OBJECT, NULL, 0, NULL, 0);
	hm_class(m, CLASS_OBJECT, 0, NULL, 0, NULL, 0);
	hm_class(m, CLASS_NODE, CLASS_OBJECT, statics, 1, fields, 3);
	hm_class(m, CLASS_ARRAY, CLASS_OBJECT, NULL, 0, NULL, 0);
	hm_class(m, CLASS_BYTES, CLASS_OBJECT, NULL, 0, NULL, 0);
	hm_class(m, CLASS_REFERENCE, CLASS_OBJECT, NULL, 0, referent, 1);
	for (unsigned i = 0; i < NODES; i++) {
		if (segments && i % 4 == 1)
			hm_segment(m, tag);
		hm_instance(m, node_at(i), CLASS_NODE, 2 * id_size + 4);
		hm_id(m, i + 1 < NODES ? node_at(i + 1) : 0);
		hm_id(m, i == 9 ? HEAP + 0x2000 : 0);
		hm_number(m, i, 4);
	}
	hm_objects(m, HEAP + 0x1000, CLASS_ARRAY, elements, 4);
	hm_bytes(m, HEAP + 0x1020, "some text", 9);
	hm_bytes(m, HEAP + 0x1040, "0123456789abcdef", 16);
	hm_bytes(m, HEAP + 0x1060, "some text", 9);
	hm_bytes(m, HEAP + 0x2000, "value", 5);
	hm_instance(m, HEAP + 0x3000, CLASS_WEAK, id_size);
	hm_id(m, HEAP + 0x1040);
	hm_root(m, 0x05, CLASS_NODE, 0, 0);
	hm_root(m, 0x01, HEAP + 0x3000, 1, 0);
	hm_root(m, 0xff, CLASS_WEAK, 0, 0);
	hm_root(m, 0x02, HEAP + 0x1020, 0, 2);
	hm_root(m, 0x03, HEAP + 0x1020, 0, 2);
	hm_root(m, 0x04, CLASS_WEAK, 0, 1);
	hm_root(m, 0x06, CLASS_WEAK, 0, 1);
	hm_root(m, 0x07, CLASS_WEAK, 0, 0);
	hm_root(m, 0x8d, CLASS_WEAK, 0, 0);
	hm_root(m, 0x8e, CLASS_WEAK, 0, 2);
	hm_number(m, 0xfe, 1);
	hm_number(m, 1, 4);
	hm_id(m, TEXT_CLASS);
	if (segments)
		hm_segment(m, tag);
	hm_root(m, 0x08, HEAP + 0x1060, 0, 2); /* the thread of the local ones */
	hm_segment_end(m);
	hm_record(m, 0x2c, 0);
}

/* A file in memory, as many are written. */
static char path[40];

static int setup(void **state)
{
	int fd = memfd_create("heapfile", 0);

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fd < 0;
}

static struct err *read_bytes(const void *p, size_t n, bool gzip, const struct graph_wanted *w,
			      struct graph **ret, const char **ret_source)
{
	const struct heap_source *source = NULL;
	struct err *e;
	FILE *f;

	if (gzip) {
		gzFile z = gzopen(path, "wb1");

		assert_int_equal(gzwrite(z, p, (unsigned)n), n);
		assert_int_equal(gzclose(z), Z_OK);
	} else {
		f = fopen(path, "wb");
		assert_int_equal(fwrite(p, 1, n, f), n);
		fclose(f);
	}
	e = heap_read_file(path, w, ret, &source);
	*ret_source = source ? source->name : "";
	return e;
}

static const struct graph_row *row_of(struct graph *g, const struct graph_rows *r,
				      const char *class)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (!strcmp(graph_class_text(g, r->v[i].class), class))
			return &r->v[i];
	fail_msg("no class %s", class);
	return NULL;
}

static void check_dump(struct graph *g)
{
	struct graph_rows r;
	struct graph_duplicate *d;
	struct graph_walk w;
	struct graph_edge_to edge;
	char buf[16];

	assert_int_equal(graph_remarks(g), 0);
	assert_int_equal(graph_totals(g)->objects, 7 + NODES + 1 + 4 + 1);
	assert_int_equal(graph_totals(g)->dangling, 1); /* the element 0xdead00 */
	assert_int_equal(graph_totals(g)->weak_edges, 1);
	graph_histogram(g, GRAPH_ALL, &r);
	assert_int_equal(row_of(g, &r, "shop.Node")->n, NODES);
	assert_int_equal(row_of(g, &r, "shop.Node")->bytes, NODES * 32);
	assert_int_equal(row_of(g, &r, "shop.Node[][]")->n, 1);
	assert_int_equal(row_of(g, &r, "shop.Node[][]")->bytes, 32);
	assert_int_equal(row_of(g, &r, "byte[]")->n, 4);
	assert_int_equal(row_of(g, &r, "java.lang.Class")->n, 7);
	graph_rows_free(&r);
	/* The class Node holds the array, and the array the list, whose nodes hold what follows. */
	assert_int_equal(graph_dominator(g, graph_find(g, HEAP + 0x1000)),
			 graph_find(g, CLASS_NODE));
	assert_int_equal(graph_dominator(g, graph_find(g, node_at(0))),
			 graph_find(g, HEAP + 0x1000));
	assert_int_equal(graph_dominator(g, graph_find(g, node_at(4))), graph_find(g, node_at(3)));
	assert_int_equal(graph_dominator(g, graph_find(g, node_at(5))),
			 graph_find(g, HEAP + 0x1000));
	assert_int_equal(graph_dominator(g, graph_find(g, HEAP + 0x2000)),
			 graph_find(g, node_at(9)));
	assert_int_equal(graph_dominator(g, graph_find(g, HEAP + 0x1020)),
			 graph_find(g, HEAP + 0x1060));
	assert_false(graph_reachable(g, graph_find(g, HEAP + 0x1040)));
	assert_int_equal(graph_reach(g)->weak, 1);
	assert_string_equal(graph_root_kind(g, graph_find(g, HEAP + 0x3000)), "JNI global");
	assert_string_equal(graph_root_kind(g, graph_find(g, HEAP + 0x1060)), "thread");
	assert_null(graph_root_kind(g, graph_find(g, HEAP + 0x1020)));
	w = graph_in(g, graph_find(g, node_at(5)));
	assert_true(graph_walk_next(&w, &edge));
	assert_string_equal(graph_label_text(g, edge.label, buf, sizeof(buf)), "next");
	assert_true(graph_walk_next(&w, &edge));
	assert_string_equal(graph_label_text(g, edge.label, buf, sizeof(buf)), "[2]");
	assert_false(graph_walk_next(&w, &edge));
	assert_int_equal(graph_duplicates(g, &d), 1);
	assert_int_equal(d->n, 2);
	assert_memory_equal(d->head, "some text", 9);
	free(d);
}

static const struct graph_wanted all = { .labels = true, .contents = true, .values = true };

static void hprof(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		unsigned id_size = i & 1 ? 8 : 4;
		struct hprof_make m;
		struct graph *g;
		const char *source;

		make_dump(&m, id_size, i & 2);
		assert_null(read_bytes(m.o.v, m.o.n, i & 4, &all, &g, &source));
		assert_string_equal(source, "hprof");
		check_dump(g);
		graph_free(g);
		out_fini(&m.o);
	}
}

/* Each shorter file is refused with its offset, or has fewer records. */
static void hprof_truncated(void **state)
{
	struct hprof_make m;
	unsigned refused = 0;

	(void)state;
	make_dump(&m, 8, false);
	for (size_t n = 0; n < m.o.n; n += 2) {
		struct graph *g = NULL;
		const char *source;
		struct err *e = read_bytes(m.o.v, n, n % 6 == 0, &all, &g, &source);

		if (e) {
			assert_non_null(strstr(e->text, path));
			if (e->code != ENOEXEC)
				assert_non_null(strstr(e->text, "truncated"));
			refused++;
		}
		err_free(e);
		graph_free(g);
	}
	assert_true(refused > m.o.n * 4 / 10);
	out_fini(&m.o);
}

/* Any byte may be wrong: a message, or another graph. */
static void hprof_damaged(void **state)
{
	struct hprof_make m;

	(void)state;
	make_dump(&m, 4, true);
	for (size_t i = 0; i < m.o.n; i++) {
		char kept = m.o.v[i];
		struct graph *g = NULL;
		const char *source;

		m.o.v[i] = (char)(i % 2 ? 0xff : kept ^ 0x81);
		if (err_drop(read_bytes(m.o.v, m.o.n, false, &all, &g, &source))) {
			m.o.v[i] = kept;
			continue;
		}
		graph_reach(g);
		graph_free(g);
		m.o.v[i] = kept;
	}
	out_fini(&m.o);
}

static void refused(const char *text, const char *message)
{
	struct graph *g = NULL;
	const char *source;
	struct err *e = read_bytes(text, strlen(text), false, &all, &g, &source);

	assert_non_null(e);
	if (!strstr(e->text, message))
		fail_msg("%s: not %s", e->text, message);
	err_free(e);
}

#define SNAPSHOT_META \
	"{\"snapshot\":{\"meta\":{\"node_fields\":[\"type\",\"name\",\"id\",\"self_size\",\"edge_count\"]," \
	"\"node_types\":[[\"hidden\",\"object\",\"string\",\"synthetic\"],\"string\",\"number\"]," \
	"\"edge_fields\":[\"type\",\"name_or_index\",\"to_node\"]," \
	"\"edge_types\":[[\"element\",\"property\",\"weak\",\"shortcut\"],\"string_or_number\",\"node\"]}," \
	"\"node_count\":5},\n"

static void heapsnapshot(void **state)
{
	static const char text[] = SNAPSHOT_META
		"\"nodes\":[3,1,1,0,1\n,1,2,3,100,3\n,1,3,5,40,1\n,2,4,7,24,0\n,0,4,9,8,0],\n"
		"\"edges\":[0,1,5\n,1,5,10\n,0,7,15\n,2,5,20\n,1,5,15],\n\"more\":[{\"a\":[]},-1.5e3,null,\"\\\"]\"],"
		"\"strings\":[\"<dummy>\",\"(GC roots)\",\"Or\\u0064er\",\"Item\",\"a \\\"text\\\"\",\"field\"]}";
	struct graph *g;
	const char *source;
	struct graph_rows r;
	struct graph_walk w;
	struct graph_edge_to edge;
	char buf[16];

	(void)state;
	assert_null(read_bytes(text, strlen(text), false, &all, &g, &source));
	assert_string_equal(source, "heapsnapshot");
	assert_int_equal(graph_totals(g)->objects, 5);
	assert_int_equal(graph_totals(g)->bytes, 172);
	assert_int_equal(graph_totals(g)->weak_edges, 1);
	assert_int_equal(graph_reach(g)->objects, 4);
	assert_int_equal(graph_retained(g, graph_find(g, 3)), 164);
	assert_int_equal(graph_dominator(g, graph_find(g, 7)), graph_find(g, 3));
	assert_string_equal(graph_root_kind(g, graph_find(g, 3)), "(GC roots)");
	graph_histogram(g, GRAPH_ALL, &r);
	assert_int_equal(row_of(g, &r, "Order")->bytes, 100);
	assert_int_equal(row_of(g, &r, "(string)")->n, 1);
	assert_int_equal(row_of(g, &r, "(system)")->n, 1);
	graph_rows_free(&r);
	w = graph_out(g, graph_find(g, 3));
	assert_true(graph_walk_next(&w, &edge));
	assert_string_equal(graph_label_text(g, edge.label, buf, sizeof(buf)), "field");
	assert_true(graph_walk_next(&w, &edge));
	assert_string_equal(graph_label_text(g, edge.label, buf, sizeof(buf)), "[7]");
	graph_free(g);

	for (size_t n = 40; n + 1 < strlen(text); n += 3) {
		char cut[sizeof(text)];

		snprintf(cut, sizeof(cut), "%.*s", (int)n, text);
		refused(cut, "truncated");
	}
	refused(SNAPSHOT_META "\"nodes\":[9,1,1,0,1],\"edges\":[],\"strings\":[\"\"]}",
		"known type");
	refused(SNAPSHOT_META "\"nodes\":[1,1,1,0,9],\"edges\":[],\"strings\":[\"\"]}",
		"an edge that a node counts");
	refused(SNAPSHOT_META "\"nodes\":[1,1,1,0,1],\"edges\":[0,1,10],\"strings\":[\"\"]}",
		"byte");
	refused(SNAPSHOT_META "\"nodes\":[1,1],\"edges\":[],\"strings\":[\"\"]}",
		"rest of the fields");
	refused(SNAPSHOT_META "\"strings\":[\"\"]}", "edges");
	refused("{\"snapshot\":{\"meta\":{}},\"strings\":[\"\"]}", "description");
	refused("{\"snapshot\":]", "byte 12");
}

/* A name that all references have is looked up once. */
static void snapshot_long_name(void **state)
{
	enum { EDGES = 2000, NAME = 1000 };
	struct out o;
	struct graph *g = NULL;
	const char *source;

	(void)state;
	out_init(&o, NULL);
	out_printf(&o, SNAPSHOT_META "\"nodes\":[1,0,1,0,%u,1,0,3,0,0],\"edges\":[", EDGES);
	for (uint32_t i = 0; i < EDGES; i++)
		out_printf(&o, "%s1,1,5", i ? "," : "");
	out_str(&o, "],\"strings\":[\"\",\"");
	out_fill(&o, 'n', NAME);
	out_str(&o, "\"]}");
	assert_null(read_bytes(o.v, o.n, false, &all, &g, &source));
	assert_int_equal(graph_totals(g)->edges, EDGES);
	assert_in_range(g->label_names.asked, NAME, 2 * NAME);
	graph_free(g);
	out_fini(&o);
}

static void rubydump(void **state)
{
	static const char text[] =
		"{\"type\":\"ROOT\", \"root\":\"global_tbl\", \"references\":[\"0x1000\", \"0x9000\"]}\n"
		"{\"address\":\"0x1000\", \"type\":\"OBJECT\", \"class\":\"0x2000\", \"references\":[\"0x1028\"], "
		"\"memsize\":40, \"flags\":{\"old\":true, \"marked\":true}}\n"
		"{\"address\":\"0x1028\", \"type\":\"STRING\", \"class\":\"0x2100\", \"value\":\"a \\u00e4\", \"memsize\":60}\n"
		"{\"address\":\"0x1050\", \"type\":\"STRING\", \"class\":\"0x2100\", \"value\":\"a \\u00e4\", \"memsize\":40}\n"
		"{\"address\":\"0x2000\", \"type\":\"CLASS\", \"class\":\"0x2200\", \"name\":\"Shop::Order\", \"memsize\":500}\n"
		"{\"address\":\"0x2100\", \"type\":\"CLASS\", \"class\":\"0x2200\", \"name\":\"String\", \"memsize\":500}\n"
		"{\"address\":\"0x3000\", \"type\":\"IMEMO\", \"class\":\"0x1\", \"imemo_type\":\"iseq\", \"slot_size\":80}\n"
		"{\"address\":\"0x3100\", \"type\":\"NONE\"}\n";
	static const char nul[] = "{\"type\":\"ROOT\", \"root\":\"vm\"}\n\0{\"type\":\"NONE\"}\n";
	struct graph *g;
	const char *source;
	struct graph_rows r;
	struct graph_duplicate *d;
	struct err *e;

	(void)state;
	for (int gzip = 0; gzip < 2; gzip++) {
		assert_null(read_bytes(text, strlen(text), gzip, &all, &g, &source));
		assert_string_equal(source, "rubydump");
		assert_int_equal(graph_totals(g)->objects, 6);
		assert_int_equal(graph_totals(g)->bytes, 40 + 60 + 40 + 500 + 500 + 80);
		assert_int_equal(graph_reach(g)->objects, 4); /* with the classes of two */
		assert_int_equal(graph_retained(g, graph_find(g, 0x1000)), 40 + 60 + 500 + 500);
		assert_string_equal(graph_root_kind(g, graph_find(g, 0x1000)), "global_tbl");
		graph_histogram(g, GRAPH_ALL, &r);
		assert_int_equal(row_of(g, &r, "Shop::Order")->bytes, 40);
		assert_int_equal(row_of(g, &r, "String")->n, 2);
		assert_int_equal(row_of(g, &r, "Class")->n, 2);
		assert_int_equal(row_of(g, &r, "(IMEMO iseq)")->bytes, 80);
		graph_rows_free(&r);
		assert_int_equal(graph_duplicates(g, &d), 1);
		assert_int_equal(d->n, 2);
		assert_int_equal(d->bytes, 100);
		free(d);
		graph_free(g);
	}
	refused("{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[\"0x1\"", "truncated");
	refused("{\"type\":\"ROOT\", \"root\":\"vm\"}\n{\"address\" 5}",
		"byte 40: ':' was expected");
	refused("{\"type\":\"ROOT\", \"root\":\"vm\"}\nx", "byte 29");
	/* a NUL byte is not the end of the file */
	assert_non_null(e = read_bytes(nul, sizeof(nul) - 1, false, &all, &g, &source));
	assert_non_null(strstr(e->text, "byte 29"));
	err_free(e);
}

/* Each class below one of 65,000 fields goes over them: 100 MB of classes could take hours. */
static void hprof_many_fields(void **state)
{
	enum { FIELDS = 65000, CLASSES = 400, TOP = 0x2000, FIRST = 0x3000 };
	uint64_t *fields = xcalloc(2 * FIELDS, sizeof(*fields));
	struct graph *g = NULL;
	struct hprof_make m;
	const char *source;
	struct err *e;

	(void)state;
	for (uint32_t i = 0; i < FIELDS; i++) {
		fields[2 * i] = TEXT_COUNT;
		fields[2 * i + 1] = 8; /* a byte */
	}
	hm_begin(&m, 8);
	hm_text(&m, TEXT_COUNT, "count");
	hm_segment(&m, 0x1c);
	hm_class(&m, TOP, 0, NULL, 0, fields, FIELDS);
	for (uint32_t i = 0; i < CLASSES; i++)
		hm_class(&m, FIRST + i, TOP, NULL, 0, NULL, 0);
	for (uint32_t i = 0; i < CLASSES; i++) {
		hm_instance(&m, HEAP + ((uint64_t)i << 20), FIRST + i, FIELDS);
		out_fill(&m.o, 0, FIELDS);
	}
	hm_segment_end(&m);
	e = read_bytes(m.o.v, m.o.n, false, &all, &g, &source);
	assert_non_null(e);
	if (!strstr(e->text, "the classes have too many fields"))
		fail_msg("%s", e->text);
	err_free(e);
	out_fini(&m.o);
	free(fields);
}

/* A name that all fields have is looked up once, as label and as name. */
static void hprof_long_name(void **state)
{
	enum { FIELDS = 1000, NAME = 4000, CLASS = 0x2000 };
	uint64_t fields[2 * FIELDS];
	struct graph *g = NULL;
	struct hprof_make m;
	const char *source;
	char name[NAME + 1];

	(void)state;
	memset(name, 'n', NAME);
	name[NAME] = 0;
	for (uint32_t i = 0; i < FIELDS; i++) {
		fields[2 * i] = TEXT_COUNT;
		fields[2 * i + 1] = i % 2 ? 8 : HPROF_OBJECT;
	}
	hm_begin(&m, 8);
	hm_text(&m, TEXT_COUNT, name);
	hm_segment(&m, 0x1c);
	hm_class(&m, CLASS, 0, NULL, 0, fields, FIELDS);
	hm_instance(&m, HEAP, CLASS, FIELDS / 2 * 9);
	out_fill(&m.o, 0, FIELDS / 2 * 9);
	hm_segment_end(&m);
	assert_null(read_bytes(m.o.v, m.o.n, false, &all, &g, &source));
	assert_in_range(g->label_names.asked, NAME, 2 * NAME);
	assert_in_range(g->names.asked, NAME, 2 * NAME);
	graph_free(g);
	out_fini(&m.o);
}

/* Two classes are above each other: each has the fields of both once. */
static void hprof_circle(void **state)
{
	enum { FIRST = 0x2000, SECOND = 0x3000, WORDS = 64 };
	const uint64_t referent[] = { TEXT_REFERENT, 2 };
	struct graph *g = NULL;
	struct hprof_make m;
	struct graph_walk w;
	struct graph_edge_to edge;
	const char *source;
	uint32_t n = 0;

	(void)state;
	hm_begin(&m, 8);
	hm_text(&m, TEXT_REFERENCE, "java/lang/ref/Reference");
	hm_text(&m, TEXT_REFERENT, "referent");
	hm_load(&m, FIRST, TEXT_REFERENCE);
	hm_segment(&m, 0x1c);
	hm_class(&m, FIRST, SECOND, NULL, 0, referent, 1);
	hm_class(&m, SECOND, FIRST, NULL, 0, referent, 1);
	hm_instance(&m, HEAP, FIRST, WORDS * 8);
	for (uint32_t i = 0; i < WORDS; i++)
		hm_id(&m, FIRST);
	hm_segment_end(&m);
	assert_null(read_bytes(m.o.v, m.o.n, false, &all, &g, &source));
	w = graph_out(g, graph_find(g, HEAP));
	while (graph_walk_next(&w, &edge))
		n += !strcmp(graph_label_text(g, edge.label, (char[16]){ 0 }, 16), "referent");
	assert_int_equal(n, 2);
	graph_free(g);
	out_fini(&m.o);
}

/* Android's arrays without elements: a heap that is written from the dump would have them. */
static void hprof_absent(void **state)
{
	(void)state;
	for (uint32_t few = 0; few < 2; few++) {
		struct graph *g = NULL;
		struct hprof_make m;
		const char *source;
		struct err *e;

		hm_begin(&m, 8);
		hm_segment(&m, 0x1c);
		for (uint32_t i = 0; i < 8; i++) {
			hm_number(&m, 0xc3, 1);
			hm_id(&m, HEAP + ((uint64_t)i << 32));
			hm_number(&m, 0, 4);
			hm_number(&m, few ? 1 << 20 : 0x1fffffff, 4);
			hm_number(&m, 11, 1); /* long */
		}
		hm_segment_end(&m);
		e = read_bytes(m.o.v, m.o.n, false, &all, &g, &source);
		if (few) {
			assert_null(e);
			graph_free(g);
		} else {
			assert_non_null(e);
			if (!strstr(e->text, "arrays without their elements"))
				fail_msg("%s", e->text);
			err_free(e);
		}
		out_fini(&m.o);
	}
}

/* Likewise instances without the bytes that their class has. */
static void hprof_absent_bytes(void **state)
{
	uint64_t fields[2 * 1000];
	struct graph *g = NULL;
	struct hprof_make m;
	const char *source;
	struct err *e;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(fields); i++)
		fields[i] = i % 2 ? 11 : 1; /* long */
	hm_begin(&m, 8);
	hm_segment(&m, 0x1c);
	hm_class(&m, CLASS_NODE, 0, NULL, 0, fields, ARRAY_SIZE(fields) / 2);
	for (uint32_t i = 0; i < 200000; i++) {
		hm_number(&m, 0x21, 1);
		hm_id(&m, HEAP + 8 * (uint64_t)i);
		hm_number(&m, 0, 4);
		hm_id(&m, CLASS_NODE);
		hm_number(&m, 0, 4);
	}
	hm_segment_end(&m);
	e = read_bytes(m.o.v, m.o.n, false, &all, &g, &source);
	assert_non_null(e);
	if (!strstr(e->text, "instances without their bytes"))
		fail_msg("%s", e->text);
	err_free(e);
	out_fini(&m.o);
}

/* The address of a class is any number, also one that stands for a kind of objects. */
static void rubydump_odd_classes(void **state)
{
	static const char kind[] = "(IMEMO iseq)";
	cleanup_free char *text =
		xasprintf("{\"address\":\"0x3000\", \"type\":\"IMEMO\", \"imemo_type\":\"iseq\"}\n"
			  "{\"address\":\"0x3100\", \"type\":\"OBJECT\", \"class\":\"0x%llx\"}\n"
			  "{\"address\":\"0x3200\", \"type\":\"OBJECT\", \"class\":\"0x1\"}\n"
			  "{\"address\":\"0x3300\", \"type\":\"OBJECT\", \"class\":\"0x3\"}\n",
			  (unsigned long long)hash_fixed(kind, strlen(kind)) | 1);
	struct graph *g;
	const char *source;
	struct graph_rows r;

	(void)state;
	assert_null(read_bytes(text, strlen(text), false, &all, &g, &source));
	graph_histogram(g, GRAPH_ALL, &r);
	assert_int_equal(row_of(g, &r, kind)->n, 1);
	graph_rows_free(&r);
	graph_free(g);
}

enum { LARGE = 300000, LARGE_AT = 0x1000000, CLASS_LATE = 0x1700 };

static uint64_t large_at(uint32_t i)
{
	return LARGE_AT + i * 32ull;
}

/* Many nodes that refer to any others, in segments: enough for several readers. Some objects are
 * there twice, far from each other. late: a class and its objects come at the end. */
static void make_large(struct hprof_make *m, bool late)
{
	uint64_t random = 1;

	make_dump(m, 8, true);
	for (uint32_t i = 0; i < LARGE; i++) {
		uint32_t n = i % 1000 == 999 ? LARGE - i : (uint32_t)(i * 7919ull % LARGE);

		if (i % 20000 == 0)
			hm_segment(m, 0x1c);
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		if (i % 50000 == 1)
			hm_root(m, 0x01, large_at((uint32_t)(random >> 33) % LARGE), 1, 0);
		hm_instance(m, large_at(n), CLASS_NODE, 20);
		hm_id(m, i % 3 ? large_at((uint32_t)(random >> 33) % LARGE) : 0);
		hm_id(m, large_at((uint32_t)(random >> 17) % (LARGE + LARGE / 100)));
		hm_number(m, i, 4);
		if (i % 1000 == 5) {
			hm_instance(m, LARGE_AT * 16ull + i * 16ull, CLASS_WEAK, 8);
			hm_id(m, large_at(i));
			hm_root(m, 0x03, large_at(i), 0, 2);
		}
	}
	if (late) {
		hm_class(m, CLASS_LATE, CLASS_NODE, NULL, 0, NULL, 0);
		hm_instance(m, LARGE_AT - 32, CLASS_LATE, 20);
		hm_id(m, large_at(0));
		hm_id(m, 0);
		hm_number(m, 0, 4);
		hm_root(m, 0x01, LARGE_AT - 32, 1, 0);
	}
	hm_segment_end(m);
}

static void same_graphs(struct graph *a, struct graph *b)
{
	const struct graph_totals *ta = graph_totals(a), *tb = graph_totals(b);
	uint64_t reached = 0;

	assert_int_equal(ta->objects, tb->objects);
	assert_int_equal(ta->bytes, tb->bytes);
	assert_int_equal(ta->edges, tb->edges);
	assert_int_equal(ta->weak_edges, tb->weak_edges);
	assert_int_equal(ta->roots, tb->roots);
	assert_int_equal(ta->repeated, tb->repeated);
	assert_int_equal(ta->dangling, tb->dangling);
	assert_int_equal(graph_reach(a)->bytes, graph_reach(b)->bytes);
	assert_int_equal(graph_reach(a)->weak, graph_reach(b)->weak);
	for (graph_id id = 0; id < ta->objects; id++) {
		struct graph_walk wa = graph_out(a, id), wb = graph_out(b, id);
		struct graph_edge_to ea, eb;
		char bufa[16], bufb[16];

		assert_int_equal(graph_address(a, id), graph_address(b, id));
		assert_string_equal(graph_class_text(a, graph_class_of(a, id)),
				    graph_class_text(b, graph_class_of(b, id)));
		assert_int_equal(graph_size(a, id), graph_size(b, id));
		assert_int_equal(graph_retained(a, id), graph_retained(b, id));
		assert_int_equal(graph_dominator(a, id), graph_dominator(b, id));
		reached += graph_reachable(a, id);
		while (graph_walk_next(&wa, &ea)) {
			assert_true(graph_walk_next(&wb, &eb));
			assert_int_equal(ea.id, eb.id);
			assert_int_equal(ea.strength, eb.strength);
			assert_string_equal(graph_label_text(a, ea.label, bufa, sizeof(bufa)),
					    graph_label_text(b, eb.label, bufb, sizeof(bufb)));
		}
		assert_false(graph_walk_next(&wb, &eb));
	}
	assert_true(reached > LARGE / 2);
}

/* Several readers make the graph that one makes: a file that is packed has one. */
static void hprof_readers(void **state)
{
	static const struct graph_wanted labels = { .labels = true };

	(void)state;
	for (int late = 0; late < 2; late++) {
		struct hprof_make m;
		struct graph *plain, *packed;
		const char *source;
		struct err *e;

		make_large(&m, late);
		assert_true(m.o.n > 9 << 20);
		assert_null(read_bytes(m.o.v, m.o.n, true, &labels, &packed, &source));
		assert_null(read_bytes(m.o.v, m.o.n, false, &labels, &plain, &source));
		assert_int_equal(graph_totals(plain)->objects, graph_totals(packed)->objects);
		assert_true(graph_totals(plain)->repeated > 0);
		assert_true(graph_totals(plain)->dangling > 1000);
		assert_int_equal(graph_find(plain, LARGE_AT - 32) != GRAPH_NONE, late);
		same_graphs(plain, packed);
		graph_free(plain);
		graph_free(packed);
		/* the last reader meets the end */
		e = read_bytes(m.o.v, m.o.n - 9, false, &labels, &plain, &source);
		assert_non_null(e);
		assert_non_null(strstr(e->text, "truncated"));
		err_free(e);
		out_fini(&m.o);
	}
}

struct flipped {
	int fd;
	off_t at;
	atomic_bool done;
};

static void *flip(void *arg)
{
	struct flipped *f = arg;

	while (!f->done)
		for (const char *kind = "\x02\x01\x1c"; *kind; kind++)
			assert_int_equal(pwrite(f->fd, kind, 1, f->at), 1);
	return NULL;
}

/* The kind of a record changes between that of objects, a class and a text, while the file is
 * read: the readers of parts have no names. */
static void hprof_changes(void **state)
{
	enum { SEGMENTS = 50 };
	static const struct graph_wanted labels = { .labels = true };
	const char *source;
	struct graph *g;
	struct hprof_make m;
	struct flipped f = { 0 };
	pthread_t thread;

	(void)state;
	hprof_limits(64, 0);
	make_dump(&m, 8, true);
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		f.at = (off_t)m.o.n;
		hm_segment(&m, 0x1c);
		hm_instance(&m, large_at(i), CLASS_NODE, 20);
		for (uint32_t k = 0; k < 2; k++)
			hm_id(&m, large_at((i + 1) % SEGMENTS));
		hm_number(&m, i, 4);
	}
	hm_segment_end(&m);
	assert_null(read_bytes(m.o.v, m.o.n, false, &labels, &g, &source));
	graph_free(g);
	f.fd = open(path, O_WRONLY);
	assert_int_equal(pthread_create(&thread, NULL, flip, &f), 0);
	for (int i = 0; i < 2000; i++) {
		const struct heap_source *from = NULL;
		struct err *e = heap_read_file(path, &labels, &g, &from);

		if (!e)
			graph_free(g);
		err_free(e);
	}
	f.done = true;
	pthread_join(thread, NULL);
	close(f.fd);
	out_fini(&m.o);
	hprof_limits(4 << 20, 64 << 20);
}

static void unknown(void **state)
{
	(void)state;
	refused("", "not a heap dump");
	refused("{\"a\":1}\n", "not a heap dump");
	refused("JAVA PROFILE", "not a heap dump");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hprof),
		cmocka_unit_test(hprof_truncated),
		cmocka_unit_test(hprof_damaged),
		cmocka_unit_test(heapsnapshot),
		cmocka_unit_test(snapshot_long_name),
		cmocka_unit_test(hprof_long_name),
		cmocka_unit_test(rubydump),
		cmocka_unit_test(rubydump_odd_classes),
		cmocka_unit_test(unknown),
		cmocka_unit_test(hprof_many_fields),
		cmocka_unit_test(hprof_circle),
		cmocka_unit_test(hprof_absent),
		cmocka_unit_test(hprof_absent_bytes),
		cmocka_unit_test(hprof_readers),
		cmocka_unit_test(hprof_changes),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
