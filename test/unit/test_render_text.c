/* The text sink against DTrace's output, to the column. */
#include "unit.h"

#include <arpa/inet.h>
#include <time.h>

#include "image_make.h"
#include "render/render.h"

static struct make m;

static int setup(void **state)
{
	make_init(&m, sink_text_new());
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

static int teardown(void **state)
{
	make_fini(&m);
	return 0;
}

static void set(const char *name, const char *value)
{
	const char *error;

	assert_true(options_set(&m.options, name, value, WHEN_DYNAMIC | WHEN_RUN, &error));
}

static void run(struct segment *s, struct wire_record *r, bool more)
{
	struct record_view v = { .image = &m.img,
				 .segment = s,
				 .probe = &m.probes[r->probe],
				 .head = r,
				 .data = (uint8_t *)r,
				 .size = s->size,
				 .more = more };

	assert_null(m.sink->ops->record_begin(m.sink, &v));
	for (uint32_t i = 0; i < s->nactions; i++)
		assert_null(m.sink->ops->action(m.sink, &v, &s->actions[i]));
	assert_null(m.sink->ops->record_end(m.sink, &v));
}

static void test_columns(void **state)
{
	uint32_t begin = make_probe(&m, 1, "dtrace", "", "", "BEGIN");
	uint32_t read = make_probe(&m, 177, "syscall", "vmlinux", "read", "entry");
	struct segment *empty = make_segment(&m, 0), *s = make_segment(&m, 1);
	uint32_t f64 = make_field(s, FIELD_INT, 8, T_INT64),
		 u64 = make_field(s, FIELD_INT, 8, T_UINT64);
	uint32_t f32 = make_field(s, FIELD_INT, 4, T_INT),
		 f16 = make_field(s, FIELD_INT, 2, T_SHORT);
	uint32_t f8 = make_field(s, FIELD_INT, 1, T_CHAR),
		 str = make_field(s, FIELD_STRING, 16, T_STRING);
	struct wire_record *r = make_record(&m, s, 5, 1, read);

	make_action(&m, empty, ACT_DEFAULT);
	for (uint32_t f = f64; f <= str; f++)
		make_action_of(&m, s, ACT_TRACE, f);
	put_int(s, r, f64, -5);
	put_int(s, r, u64, 7);
	put_int(s, r, f32, -32);
	put_int(s, r, f16, 16);
	put_int(s, r, f8, -1);
	put_str(s, r, str, "bash");
	run(empty, make_record(&m, empty, 1, 0, begin), false);
	run(s, r, false);
	assert_string_equal(make_text(&m),
			    "CPU     ID                    FUNCTION:NAME\n"
			    "  0      1                           :BEGIN \n"
			    "  1    177                       read:entry "
			    "                  -5                    7        -32    16  -1"
			    "  bash                             \n");
	set("quiet", NULL);
	run(s, r, false);
	assert_string_equal(make_text(&m), "-57-3216-1bash");
}

static void test_quiet_has_no_header(void **state)
{
	uint32_t p = make_probe(&m, 1, "dtrace", "", "", "BEGIN");
	struct segment *s = make_segment(&m, 0);

	set("quiet", NULL);
	make_action(&m, s, ACT_PRINTF)->format = make_format(&m, "hi %% there\n");
	run(s, make_record(&m, s, 1, 0, p), false);
	assert_string_equal(make_text(&m), "hi % there\n");
}

static void test_flowindent(void **state)
{
	uint32_t e = make_probe(&m, 1, "syscall", "", "read", "entry"),
		 b = make_probe(&m, 2, "pid1", "a.out", "f", "entry");
	uint32_t b2 = make_probe(&m, 3, "pid1", "a.out", "f", "return"),
		 x = make_probe(&m, 4, "sdt", "", "tick", "tick-1s");
	uint32_t e2 = make_probe(&m, 5, "syscall", "", "read", "return");
	struct segment *s = make_segment(&m, 0), *s2 = make_segment(&m, 1);

	set("flowindent", NULL);
	run(s, make_record(&m, s, 1, 0, e), true);
	run(s2, make_record(&m, s2, 1, 0, e), false);
	run(s, make_record(&m, s, 2, 0, b), false);
	run(s, make_record(&m, s, 3, 0, x), false);
	run(s, make_record(&m, s, 4, 0, b2), false);
	run(s, make_record(&m, s, 5, 0, e2), true);
	run(s2, make_record(&m, s2, 5, 0, e2), false);
	assert_string_equal(make_text(&m), "CPU FUNCTION                                 \n"
					   "  0  => read                                  \n"
					   "  0   | read:entry                            \n"
					   "  0    -> f                                   \n"
					   "  0     | tick:tick-1s                        \n"
					   "  0    <- f                                   \n"
					   "  0   | read:return                           \n"
					   "  0  <= read                                  \n");
}

/* printf of one field. */
static const char *fmt1(const char *format, enum field_kind kind, uint32_t size, type_id type,
			const void *bytes)
{
	static char text[512];
	struct wire_record *r;
	struct segment *s;

	m.img.nsegments = 0;
	memset(m.segments, 0, sizeof(m.segments[0]));
	s = make_segment(&m, 0);
	if (!m.img.nprobes)
		make_probe(&m, 1, "dtrace", "", "", "BEGIN");
	set("quiet", NULL);
	make_action_of(&m, s, ACT_PRINTF, make_field(s, kind, size, type))->format =
		make_format(&m, format);
	r = make_record(&m, s, 1, 0, 0);
	memcpy((uint8_t *)r + s->fields[0].offset, bytes, size);
	run(s, r, false);
	snprintf(text, sizeof(text), "%s", make_text(&m));
	return text;
}

static const char *fmt_int(const char *format, uint32_t size, type_id type, int64_t v)
{
	return fmt1(format, FIELD_INT, size, type, &v);
}

static const char *fmt_str(const char *format, const char *s)
{
	char buf[64] = "";

	strncpy(buf, s, sizeof(buf) - 1);
	return fmt1(format, FIELD_STRING, sizeof(buf), T_STRING, buf);
}

static void test_integers(void **state)
{
	assert_string_equal(fmt_int("%d", 4, T_INT, -7), "-7");
	assert_string_equal(fmt_int("%i|", 8, T_INT64, INT64_MIN), "-9223372036854775808|");
	assert_string_equal(fmt_int("%d", 4, T_UINT, 0xffffffff), "4294967295");
	assert_string_equal(fmt_int("%u", 4, T_INT, -1), "4294967295");
	assert_string_equal(fmt_int("%x", 1, T_CHAR, -1), "ff");
	assert_string_equal(fmt_int("%x", 4, T_INT, -1), "ffffffff");
	assert_string_equal(fmt_int("%#llx", 8, T_INT64, 255), "0xff");
	assert_string_equal(fmt_int("%X", 8, T_INT64, 48879), "BEEF");
	assert_string_equal(fmt_int("%o", 4, T_INT, 8), "10");
	assert_string_equal(fmt_int("[%6d]", 4, T_INT, 42), "[    42]");
	assert_string_equal(fmt_int("[%-6d]", 4, T_INT, 42), "[42    ]");
	assert_string_equal(fmt_int("[%06d]", 4, T_INT, -42), "[-00042]");
	assert_string_equal(fmt_int("[%+d]", 4, T_INT, 42), "[+42]");
	assert_string_equal(fmt_int("[% d]", 4, T_INT, 42), "[ 42]");
	assert_string_equal(fmt_int("[%.5d]", 4, T_INT, 42), "[00042]");
	assert_string_equal(fmt_int("[%8.3x]", 4, T_INT, 10), "[     00a]");
	assert_string_equal(fmt_int("%p", 8, T_VOIDPTR, (int64_t)0xffff800000001234),
			    "ffff800000001234");
	assert_string_equal(fmt_int("[%?p]", 8, T_VOIDPTR, 0x1234), "[            1234]");
	assert_string_equal(fmt_int("%c%%", 1, T_CHAR, 'x'), "x%");
	assert_string_equal(fmt_int("[%3c]", 4, T_INT, 'x'), "[  x]");
	assert_string_equal(fmt_int("%wc", 4, T_INT, 0x20ac), "€");
	assert_string_equal(fmt_int("%C", 1, T_CHAR, '\n'), "\\n");
	assert_string_equal(fmt_int("%C", 1, T_CHAR, 1), "\\001");
	assert_string_equal(fmt_int("%hd", 2, T_SHORT, -3), "-3");
	assert_string_equal(fmt_int("%hhx", 4, T_INT, 0x1ff), "ff");
	assert_string_equal(fmt_int("%P", 2, T_USHORT, 65123), "65123");
	assert_string_equal(fmt_int("[%-6P]", 2, T_USHORT, 65123), "[65123 ]");
}

static void test_strings(void **state)
{
	assert_string_equal(fmt_str("%s!", "bash"), "bash!");
	assert_string_equal(fmt_str("[%8s]", "bash"), "[    bash]");
	assert_string_equal(fmt_str("[%-8s]", "bash"), "[bash    ]");
	assert_string_equal(fmt_str("[%.2s]", "bash"), "[ba]");
	assert_string_equal(fmt_str("[%.0s]", "bash"), "[bash]");
	assert_string_equal(fmt_str("[%-6.3s]", "bash"), "[bas   ]");
	assert_string_equal(fmt_str("%S", "a\tb\"c\\d\x7f"), "a\\tb\\\"c\\\\d\\177");
	assert_string_equal(fmt1("%s", FIELD_BYTES, 4, T_CHAR, "abcd"), "abcd");
	assert_string_equal(fmt1("%ws", FIELD_BYTES, 12, T_INT, "\xac\x20\0\0a\0\0\0\0\0\0"), "€a");
}

static void test_times_and_floats(void **state)
{
	double d = 1.5;
	float f = -0.25f;
	uint32_t addr = htonl(0x7f000001);

	assert_string_equal(fmt_int("%Y", 8, T_UINT64, 1795222036LL * 1000000000),
			    "2026 Nov 21 00:47:16");
	assert_string_equal(fmt_int("%Y", 8, T_UINT64, 123456789LL * 1000000000),
			    "1973 Nov 29 21:33:09");
	assert_string_equal(fmt_int("%Y", 8, T_UINT64, 0), "1970 Jan  1 00:00:00");
	assert_string_equal(fmt_int("%T", 8, T_UINT64, 1795222036LL * 1000000000),
			    "Sat, 21 Nov 2026 00:47:16 UTC");
	assert_string_equal(fmt1("%.2f", FIELD_BYTES, 8, T_DOUBLE, &d), "1.50");
	assert_string_equal(fmt1("%g", FIELD_INT, 4, T_FLOAT, &f), "-0.25");
	assert_string_equal(fmt1("%I", FIELD_INT, 4, T_UINT, &addr), "127.0.0.1");
	assert_string_equal(fmt1("[%-9I]", FIELD_STRING, 8, T_STRING, "10.1.2\0"), "[10.1.2   ]");
}

static void test_dynamic_width(void **state)
{
	struct segment *s = make_segment(&m, 0);
	struct action *a = make_action(&m, s, ACT_PRINTF);
	struct wire_record *r;

	make_probe(&m, 1, "dtrace", "", "", "BEGIN");
	set("quiet", NULL);
	a->format = make_format(&m, "[%*.*s][%*d]\n");
	assert_int_equal(format_nargs(a->format), 5);
	for (uint32_t i = 0; i < 5; i++)
		a->fields[i] = i == 2 ? make_field(s, FIELD_STRING, 16, T_STRING)
				      : make_field(s, FIELD_INT, 4, T_INT);
	a->nfields = 5;
	r = make_record(&m, s, 1, 0, 0);
	put_int(s, r, 0, 6);
	put_int(s, r, 1, 3);
	put_str(s, r, 2, "abcdef");
	put_int(s, r, 3, -5);
	put_int(s, r, 4, 42);
	run(s, r, false);
	assert_string_equal(make_text(&m), "[   abc][42   ]\n");
}

static void test_stack_and_symbols(void **state)
{
	struct {
		int64_t n;
		uint64_t pc[3];
	} k = { 16, { 0xffffffff81000000, 0xffffffff81000010, 7 } };
	struct {
		uint32_t pid, pad;
		uint64_t addr;
	} u = { 0, 0, 0x401000 };
	uint64_t addr = 0xffffffff81000000;

	assert_string_equal(fmt1("%k", FIELD_KSTACK, sizeof(k), T_DYN, &k),
			    "\n0xffffffff81000000\n0xffffffff81000010\n");
	assert_string_equal(fmt1("%-4k", FIELD_KSTACK, sizeof(k), T_DYN, &k),
			    "\n    0xffffffff81000000\n    0xffffffff81000010\n");
	assert_string_equal(fmt1("%a", FIELD_INT, 8, T_UINT64, &addr), "0xffffffff81000000");
	assert_string_equal(fmt1("[%20a]", FIELD_SYM, 8, T_DYN, &addr), "[  0xffffffff81000000]");
	assert_string_equal(fmt1("%A", FIELD_USYM, 16, T_DYN, &u), "0x401000");
	k.n = -14;
	assert_string_equal(fmt1("%k", FIELD_KSTACK, sizeof(k), T_DYN, &k), "\n");
}

static void test_stack_action(void **state)
{
	struct segment *s = make_segment(&m, 0);
	uint32_t f = make_field(s, FIELD_KSTACK, 24, T_DYN);
	struct wire_record *r;
	uint64_t data[3] = { 16, 0xffffffff81000000, 0xffffffff81000010 };

	make_probe(&m, 9, "fbt", "vmlinux", "vfs_read", "entry");
	make_action_of(&m, s, ACT_STACK, f);
	r = make_record(&m, s, 1, 0, 0);
	memcpy((uint8_t *)r + s->fields[f].offset, data, sizeof(data));
	run(s, r, false);
	assert_string_equal(make_text(&m), "CPU     ID                    FUNCTION:NAME\n"
					   "  0      9                   vfs_read:entry \n"
					   "              0xffffffff81000000\n"
					   "              0xffffffff81000010\n"
					   "\n");
}

static void test_tracemem(void **state)
{
	struct segment *s = make_segment(&m, 0);
	uint32_t f = make_field(s, FIELD_MEM, 8 + 32, T_VOID);
	struct wire_record *r;
	uint64_t n = 20;

	make_probe(&m, 1, "dtrace", "", "", "BEGIN");
	set("quiet", NULL);
	make_action_of(&m, s, ACT_TRACEMEM, f);
	r = make_record(&m, s, 1, 0, 0);
	memcpy((uint8_t *)r + s->fields[f].offset, &n, 8);
	memcpy((uint8_t *)r + s->fields[f].offset + 8,
	       "Hello, world\n\x01\x02\x03"
	       "abcdefgh",
	       24);
	run(s, r, false);
	assert_string_equal(
		make_text(&m),
		"\n             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n"
		"         0: 48 65 6c 6c 6f 2c 20 77 6f 72 6c 64 0a 01 02 03  Hello, world....\n"
		"        10: 61 62 63 64                                      abcd\n");
}

/* --- aggregations --- */

static struct agg_view view;
static struct agg_view *views[] = { &view };
static struct agg_row rows[8];

static void final(struct agg *a, uint32_t n)
{
	view = (struct agg_view){
		.agg = a, .rows = rows, .nrows = n, .normal = view.normal ? view.normal : 1
	};
	assert_null(m.sink->ops->printa(m.sink, NULL, NULL, views, 1));
	view.normal = 1;
}

/* The picture of the DTrace guide's chapter on aggregations (write() sizes). */
static void test_quantize(void **state)
{
	int64_t w[128] = { 12 };
	struct agg *a = make_agg(&m, "", AGG_QUANTIZE);

	w[1 + agg_quantize_bucket(1)] = 3;
	w[1 + agg_quantize_bucket(2)] = 6;
	w[1 + agg_quantize_bucket(4)] = 0;
	w[1 + agg_quantize_bucket(8)] = 3;
	rows[0] = (struct agg_row){ .words = w };
	final(a, 1);
	assert_string_equal(make_text(&m),
			    "\n"
			    "           value  ------------- Distribution ------------- count    \n"
			    "               0 |                                         0        \n"
			    "               1 |@@@@@@@@@@                               3        \n"
			    "               2 |@@@@@@@@@@@@@@@@@@@@                     6        \n"
			    "               4 |                                         0        \n"
			    "               8 |@@@@@@@@@@                               3        \n"
			    "              16 |                                         0        \n"
			    "\n");
}

static void test_quantize_signs(void **state)
{
	int64_t w[128] = { 4 };
	struct agg *a = make_agg(&m, "", AGG_QUANTIZE);

	w[1 + agg_quantize_bucket(-1)] = -1;
	w[1 + agg_quantize_bucket(0)] = 3;
	rows[0] = (struct agg_row){ .words = w };
	final(a, 1);
	assert_string_equal(make_text(&m),
			    "\n"
			    "           value  ------------- Distribution ------------- count    \n"
			    "              -2                     |                     0        \n"
			    "              -1                @@@@@|                     -1       \n"
			    "               0                     |@@@@@@@@@@@@@@@      3        \n"
			    "               1                     |                     0        \n"
			    "\n");
	w[1 + agg_quantize_bucket(0)] = 0;
	final(a, 1);
	assert_string_equal(make_text(&m),
			    "\n"
			    "           value  ------------- Distribution ------------- count    \n"
			    "              -2                                         | 0        \n"
			    "              -1 @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -1       \n"
			    "               0                                         | 0        \n"
			    "\n");
	w[1 + agg_quantize_bucket(-1)] = 0;
	final(a, 1);
	assert_string_equal(make_text(&m),
			    "\n"
			    "           value  ------------- Distribution ------------- count    \n"
			    "              -1 |                                         0        \n"
			    "               0 |                                         0        \n"
			    "               1 |                                         0        \n"
			    "\n");
}

static void test_lquantize(void **state)
{
	int64_t w[13] = { 4, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1 };
	struct agg *a = make_agg(&m, "", AGG_LQUANTIZE);

	a->base = 0;
	a->limit = 100;
	a->step = 10;
	a->nwords = 13;
	rows[0] = (struct agg_row){ .words = w };
	final(a, 1);
	assert_string_equal(make_text(&m),
			    "\n"
			    "           value  ------------- Distribution ------------- count    \n"
			    "             < 0 |@@@@@@@@@@                               1        \n"
			    "               0 |                                         0        \n"
			    "              10 |@@@@@@@@@@@@@@@@@@@@                     2        \n"
			    "              20 |                                         0        \n"
			    "              30 |                                         0        \n"
			    "              40 |                                         0        \n"
			    "              50 |                                         0        \n"
			    "              60 |                                         0        \n"
			    "              70 |                                         0        \n"
			    "              80 |                                         0        \n"
			    "              90 |                                         0        \n"
			    "          >= 100 |@@@@@@@@@@                               1        \n"
			    "\n");
}

static void test_llquantize(void **state)
{
	struct agg *a = make_agg(&m, "", AGG_LLQUANTIZE);
	int64_t *w;

	a->factor = 10;
	a->low_mag = 0;
	a->high_mag = 5;
	a->steps = 5;
	a->nwords = 1 + agg_ll_nbuckets(10, 0, 5, 5);
	w = arena_array(&m.a, int64_t, a->nwords);
	w[0] = 1;
	w[1 + agg_ll_bucket(10, 0, 5, 5, 320)] = 8;
	rows[0] = (struct agg_row){ .words = w };
	final(a, 1);
	assert_string_equal(make_text(&m),
			    "\n"
			    "           value  ------------- Distribution ------------- count    \n"
			    "             100 |                                         0        \n"
			    "             200 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 8        \n"
			    "             400 |                                         0        \n"
			    "\n");
}

static void test_scalars_and_keys(void **state)
{
	struct agg *a = make_agg(&m, "a", AGG_COUNT), *b = make_agg(&m, "b", AGG_SUM);
	struct {
		char name[16];
		int32_t n;
		int32_t pad;
		int64_t l;
	} key = { "bash", -7, 0, 99 };
	int64_t one[2] = { 3 }, sum[2] = { 2, -10 };
	struct agg_view other = { .agg = b, .nrows = 1, .normal = 1 }, *both[] = { &view, &other };

	make_key(a, FIELD_STRING, 16, T_STRING);
	make_key(a, FIELD_INT, 4, T_INT);
	make_key(a, FIELD_INT, 8, T_INT64);
	rows[0] = (struct agg_row){ .key = (uint8_t *)&key, .words = one };
	final(a, 1);
	assert_string_equal(
		make_text(&m),
		"  bash                                                     -7               99"
		"                3\n");
	other.rows = &(struct agg_row){ .key = (uint8_t *)&key, .words = sum };
	view = (struct agg_view){ .agg = a, .rows = rows, .nrows = 1, .normal = 1 };
	assert_null(m.sink->ops->printa(m.sink, (const struct record_view *)1,
					&(struct action){ 0 }, both, 2));
	assert_string_equal(
		make_text(&m),
		"\n  bash                                                     -7               99"
		"                3              -10\n");
	other.normal = 5;
	assert_null(m.sink->ops->printa(
		m.sink, (const struct record_view *)1,
		&(struct action){ .format = make_format(&m, "%s/%d: %@d %@5d %@d\n") }, both, 2));
	assert_string_equal(make_text(&m), "bash/-7: 3    -2 -2\n");
}

static void test_agghist_and_pack(void **state)
{
	struct agg *a = make_agg(&m, "", AGG_COUNT), *q = make_agg(&m, "", AGG_QUANTIZE);
	int64_t one[] = { 1 }, three[] = { 3 }, w[128] = { 2 };

	set("agghist", NULL);
	make_key(a, FIELD_STRING, 8, T_STRING);
	rows[0] = (struct agg_row){ .key = (const uint8_t *)"ls\0\0\0\0\0", .words = one };
	rows[1] = (struct agg_row){ .key = (const uint8_t *)"bash\0\0\0", .words = three };
	final(a, 2);
	assert_string_equal(
		make_text(&m),
		"\n"
		"              key  ------------- Distribution ------------- count    \n"
		"               ls |@@@@@@@@@@                               1        \n"
		"             bash |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        \n");
	set("aggpack", NULL);
	setenv("TERM", "dumb", 1);
	make_key(q, FIELD_STRING, 8, T_STRING);
	w[1 + agg_quantize_bucket(4)] = 1;
	w[1 + agg_quantize_bucket(8)] = 1;
	rows[0].words = w;
	final(q, 1);
	assert_string_equal(make_text(&m), "\n"
					   "              key  min .----. max  | count\n"
					   "               ls    2 : xx : 16   | 2\n");
}

static void test_drop_tags(void **state)
{
	static const char *const tags[DROP_KIND_COUNT] = {
		[DROP_DATA] = "DTRACEDROP_PRINCIPAL",  [DROP_CONTROL] = "DTRACEDROP_CONTROL",
		[DROP_AGG] = "DTRACEDROP_AGGREGATION", [DROP_DYN] = "DTRACEDROP_DYNAMIC",
		[DROP_SPEC] = "DTRACEDROP_SPEC",       [DROP_SPEC_NOBUF] = "DTRACEDROP_SPECUNAVAIL",
		[DROP_SCRATCH] = "DTRACEDROP_SCRATCH", [DROP_STACK] = "DTRACEDROP_STACK",
		[DROP_ERROR] = "DTRACEDROP_DBLERROR",  [DROP_LATE] = "DTRACEDROP_LATE",
		[DROP_MISSED] = "DTRACEDROP_MISSED",   [DROP_TICKS] = "DTRACEDROP_TICK",
		[DROP_EVENTS] = "DTRACEDROP_EVENTS",   [DROP_NAMES] = "DTRACEDROP_NAMES",
		[DROP_CHANGED] = "DTRACEDROP_CHANGED",
	};

	set("droptags", "1");
	for (int i = 0; i < DROP_KIND_COUNT; i++) {
		char want[64];

		assert_non_null(tags[i]);
		assert_null(m.sink->ops->drop(m.sink, (enum drop_kind)i, 0, 3));
		snprintf(want, sizeof(want), "[%s] 3 ", tags[i]);
		assert_non_null(strstr(make_errors(&m), want));
	}
}

static void test_messages(void **state)
{
	struct wire_fault f = { .head = { .segment = WIRE_SEG_FAULT },
				.code = WIRE_FAULT_BADADDR,
				.value = 0x10,
				.insn = 169 };

	make_probe(&m, 177, "syscall", "vmlinux", "read", "entry");
	assert_null(m.sink->ops->fault(m.sink, &m.img, &f));
	assert_string_equal(
		make_errors(&m),
		"dtrace: error in dt_clause_0 for probe ID 177 (syscall:vmlinux:read:entry): "
		"invalid address (0x10) at BPF pc 0\n");
	assert_null(m.sink->ops->drop(m.sink, DROP_DATA, 1, 5));
	assert_null(m.sink->ops->drop(m.sink, DROP_AGG, 0, 1));
	assert_null(m.sink->ops->drop(m.sink, DROP_DYN, -1, 2));
	assert_null(m.sink->ops->drop(m.sink, DROP_SPEC_NOBUF, -1, 2));
	assert_string_equal(make_errors(&m),
			    "dtrace: 5 drops on CPU 1\n"
			    "dtrace: 1 aggregation drop on CPU 0\n"
			    "dtrace: 2 dynamic variable drops\n"
			    "dtrace: 2 failed speculations (no speculative buffer available)\n");
}

static void test_reopen(void **state)
{
	char path[] = "/tmp/descry-reopen-XXXXXX", text[64] = "";
	int fd = mkstemp(path);
	struct segment *s = make_segment(&m, 0);
	struct wire_record *r;

	assert_true(fd >= 0);
	make_probe(&m, 1, "dtrace", "", "", "BEGIN");
	set("quiet", NULL);
	make_action(&m, s, ACT_PRINTF)->format = make_format(&m, "line\n");
	r = make_record(&m, s, 1, 0, 0);
	run(s, r, false);
	assert_null(m.sink->ops->reopen(m.sink, path));
	run(s, r, false);
	run(s, r, false);
	assert_null(m.sink->ops->truncate(m.sink));
	run(s, r, false);
	assert_null(m.sink->ops->reopen(m.sink, ""));
	run(s, r, false);
	assert_string_equal(make_text(&m), "line\nline\n");
	assert_int_equal(read(fd, text, sizeof(text) - 1), 5);
	assert_string_equal(text, "line\n");
	close(fd);
	unlink(path);
	struct err *e = m.sink->ops->reopen(m.sink, "/dev/null/x");
	assert_non_null(e);
	err_free(e);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_columns),          T(test_quiet_has_no_header),
		T(test_flowindent),       T(test_integers),
		T(test_strings),          T(test_times_and_floats),
		T(test_dynamic_width),    T(test_stack_and_symbols),
		T(test_stack_action),     T(test_tracemem),
		T(test_quantize),         T(test_quantize_signs),
		T(test_lquantize),        T(test_llquantize),
		T(test_scalars_and_keys), T(test_agghist_and_pack),
		T(test_drop_tags),        T(test_messages),
		T(test_reopen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
