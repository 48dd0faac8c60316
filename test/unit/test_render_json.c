/* The JSON sink: exact objects, and valid UTF-8 from any bytes. */
#include "unit.h"

#include "image_make.h"
#include "render/json.h"

static struct make m;

static int setup(void **state)
{
	make_init(&m, sink_json_new());
	make_probe(&m, 177, "syscall", "vmlinux", "read", "entry");
	return 0;
}

static int teardown(void **state)
{
	make_fini(&m);
	return 0;
}

#define PROBE \
	"\"probe\":{\"id\":177,\"provider\":\"syscall\",\"module\":\"vmlinux\",\"function\":\"read\",\"name\":\"entry\"}"
#define HEAD "\"time\":5,\"cpu\":1,\"tid\":42," PROBE

static void run(struct segment *s, struct wire_record *r)
{
	struct record_view v = { .image = &m.img,
				 .segment = s,
				 .probe = &m.probes[0],
				 .head = r,
				 .data = (uint8_t *)r,
				 .size = s->size };

	r->tid = 42;
	assert_null(sink_do(m.sink, record_begin, &v));
	for (uint32_t i = 0; i < s->nactions; i++)
		assert_null(m.sink->ops->action(m.sink, &v, &s->actions[i]));
	assert_null(sink_do(m.sink, record_end, &v));
}

static void test_printf(void **state)
{
	struct segment *s = make_segment(&m, 0);
	struct action *a = make_action(&m, s, ACT_PRINTF);
	struct wire_record *r;

	a->format = make_format(&m, "%d \"%s\"\n");
	a->fields[a->nfields++] = make_field(s, FIELD_INT, 4, T_INT);
	a->fields[a->nfields++] = make_field(s, FIELD_STRING, 16, T_STRING);
	a->fields[a->nfields++] = make_field(s, FIELD_INT, 8, T_VOIDPTR);
	a->fields[a->nfields++] = make_field(s, FIELD_INT, 1, T_BOOL);
	make_action(&m, s, ACT_DEFAULT);
	r = make_record(&m, s, 5, 1, 0);
	put_int(s, r, 0, -3);
	put_str(s, r, 1, "a\xff\xc3\xa9");
	put_int(s, r, 2, 0x1234);
	put_int(s, r, 3, 1);
	run(s, r);
	assert_string_equal(
		make_text(&m),
		"{\"type\":\"printf\"," HEAD
		",\"text\":\"-3 \\\"a\\\\xff\xc3\xa9\\\"\\n\",\"args\":[-3,\"a\\\\xff\xc3\xa9\",\"0x1234\",true]}\n"
		"{\"type\":\"probe\"," HEAD "}\n");
}

static void test_stack(void **state)
{
	struct segment *s = make_segment(&m, 0);
	struct wire_record *r;
	uint64_t data[3] = { 8, 0xffffffff81000000, 0 };

	make_action_of(&m, s, ACT_STACK, make_field(s, FIELD_KSTACK, 24, T_DYN));
	r = make_record(&m, s, 5, 1, 0);
	memcpy((uint8_t *)r + s->fields[0].offset, data, sizeof(data));
	run(s, r);
	assert_string_equal(make_text(&m), "{\"type\":\"stack\"," HEAD
					   ",\"args\":[[{\"address\":\"0xffffffff81000000\","
					   "\"module\":null,\"function\":null}]]}\n");
}

static void test_aggregations(void **state)
{
	struct agg *a = make_agg(&m, "a", AGG_COUNT), *q = make_agg(&m, "q", AGG_QUANTIZE);
	int64_t n[] = { 7 }, w[128] = { 3 };
	struct agg_row row = { .key = (const uint8_t *)"ls\0\0\0\0\0", .words = n };
	struct agg_view v = { .agg = a, .rows = &row, .nrows = 1, .normal = 1 }, *views[] = { &v };

	make_key(a, FIELD_STRING, 8, T_STRING);
	assert_null(m.sink->ops->printa(m.sink, NULL, NULL, views, 1));
	assert_string_equal(
		make_text(&m),
		"{\"type\":\"aggregation\",\"name\":\"a\",\"func\":\"count\",\"keys\":[\"ls\"],\"value\":7}\n");
	w[1 + agg_quantize_bucket(-3)] = 1;
	w[1 + agg_quantize_bucket(0)] = 1;
	w[1 + agg_quantize_bucket(5)] = 1;
	row.words = w;
	v.agg = q;
	assert_null(m.sink->ops->printa(m.sink, NULL, NULL, views, 1));
	assert_string_equal(
		make_text(&m),
		"{\"type\":\"aggregation\",\"name\":\"q\",\"func\":\"quantize\",\"keys\":[],"
		"\"distribution\":[{\"min\":-3,\"max\":-2,\"count\":1},{\"min\":0,\"max\":0,\"count\":1},"
		"{\"min\":4,\"max\":7,\"count\":1}]}\n");
}

static void test_messages(void **state)
{
	struct wire_fault f = {
		.head = { .segment = WIRE_SEG_FAULT, .time = 5, .cpu = 1, .tid = 42 },
		.code = WIRE_FAULT_DIVZERO
	};
	struct report_probe p = { &m.probes[0], "x", 3, 1 };
	struct run_report r = { .elapsed_ns = 10, .probes = &p, .nprobes = 1 };

	assert_null(m.sink->ops->fault(m.sink, &m.img, &f));
	assert_null(m.sink->ops->drop(m.sink, DROP_DATA, 1, 5));
	assert_string_equal(make_text(&m),
			    "{\"type\":\"fault\"," HEAD
			    ",\"clause\":0,\"code\":4,\"fault\":\"divide-by-zero\","
			    "\"value\":\"0x0\",\"pc\":0}\n"
			    "{\"type\":\"drop\",\"kind\":\"data\",\"cpu\":1,\"count\":5}\n");
	m.sink->ops->report(m.sink, &r);
	const char *text = make_text(&m);
	assert_non_null(strstr(text, "{\"type\":\"report\",\"elapsed_ns\":10,"));
	assert_non_null(strstr(text, "\"probe_cpu_ns\":null"));
	assert_non_null(strstr(
		text, "{\"fired\":3,\"dropped\":1,\"left_out\":0,\"mode\":\"x\"," PROBE "}"));
}

static void check_string(const char *bytes, size_t n, const char *want)
{
	struct out o;

	out_init(&o, NULL);
	json_string(&o, bytes, n);
	out_char(&o, 0);
	assert_string_equal(o.v, want);
	out_fini(&o);
}

static void test_utf8(void **state)
{
	check_string("", 0, "\"\"");
	check_string("a\0b\x1f\x7f", 5, "\"a\\u0000b\\u001f\\u007f\"");
	check_string("\t\"\\/", 4, "\"\\t\\\"\\\\/\"");
	check_string("\xe2\x82\xac", 3, "\"\xe2\x82\xac\"");
	check_string("\xe2\x82", 2, "\"\\\\xe2\\\\x82\"");            /* cut off */
	check_string("\xc0\x80", 2, "\"\\\\xc0\\\\x80\"");            /* overlong */
	check_string("\xed\xa0\x80", 3, "\"\\\\xed\\\\xa0\\\\x80\""); /* surrogate */
	check_string("\xf0\x9f\x98\x80", 4, "\"\xf0\x9f\x98\x80\"");
	check_string("\xf4\x90\x80\x80", 4, "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"");
	check_string("\xe0\x80\x80", 3, "\"\\\\xe0\\\\x80\\\\x80\"");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_printf), T(test_stack), T(test_aggregations), T(test_messages), T(test_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
