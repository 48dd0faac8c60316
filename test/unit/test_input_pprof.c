/* Profiles of pprof: tables and samples that ask for more memory than their size allows. */
#include "unit.h"

#include <errno.h>

#include "input/stackin/stackin.h"

static void put_varint(struct out *o, uint64_t v)
{
	for (; v > 127; v >>= 7)
		out_char(o, (char)(v | 128));
	out_char(o, (char)v);
}

static void put_message(struct out *o, uint32_t field, const void *p, size_t n)
{
	put_varint(o, field << 3 | 2);
	put_varint(o, n);
	out_mem(o, p, n);
}

/* Makes a pprof profile: `count` locations without functions, in a file with a long name, and one
 * sample in the first `used` of them. */
static struct out long_locations(uint32_t count, uint32_t used)
{
	enum { LONG = 60000 };
	cleanup_free char *name = xmalloc(LONG);
	struct out o = { 0 }, ids = { 0 }, sample = { 0 };

	memset(name, 'f', LONG);
	put_message(&o, 1, "\x08\x01\x10\x02", 4);
	put_message(&o, 6, "", 0);
	put_message(&o, 6, "cpu", 3);
	put_message(&o, 6, "count", 5);
	put_message(&o, 6, name, LONG);
	put_message(&o, 3, "\x08\x01\x28\x03", 4);
	for (uint32_t i = 1; i <= count; i++) {
		struct out l = { 0 };

		put_varint(&l, 1 << 3);
		put_varint(&l, i);
		put_varint(&l, 2 << 3);
		put_varint(&l, 1);
		put_varint(&l, 3 << 3);
		put_varint(&l, 4096 + i);
		put_message(&o, 4, l.v, l.n);
		out_fini(&l);
		if (i <= used)
			put_varint(&ids, i);
	}
	put_message(&sample, 1, ids.v, ids.n);
	put_message(&sample, 2, "\x01", 1);
	put_message(&o, 2, sample.v, sample.n);
	out_fini(&ids);
	out_fini(&sample);
	return o;
}

/* Names of locations are made when a sample uses them, and have a budget: each address makes a new
 * one of a long name. */
static void test_pprof_names(void **state)
{
	enum { COUNT = 5000 };

	(void)state;
	for (int all = 0; all < 2; all++) {
		struct stackin_options addrs = { .addrs = true };
		struct out o = long_locations(COUNT, all ? COUNT : 2);
		struct stackin in;
		struct stacktree t;
		struct err *e;

		stacktree_init(&t);
		stackin_init(&in, &t, &addrs);
		stackin_feed(&in, o.v, o.n);
		e = stackin_end(&in);
		assert_int_equal(in.format, STACKIN_PPROF);
		assert_int_equal(e ? e->code : 0, all ? E2BIG : 0);
		assert_in_range(t.frames.n, 2, 1000);
		err_free(e);
		stackin_fini(&in);
		stacktree_fini(&t);
		out_fini(&o);
	}
}

/* An entry of a table is two bytes of a profile and 40 of memory: tables have a budget. */
static void test_pprof_tables(void **state)
{
	(void)state;
	for (int many = 0; many < 2; many++) {
		struct out o = long_locations(1, 1);
		struct stackin in;
		struct stacktree t;
		struct err *e;

		for (uint32_t i = 0; i < (many ? 4u << 20 : 1u << 20); i++)
			put_message(&o, 4, "", 0);
		stacktree_init(&t);
		stackin_init(&in, &t, NULL);
		stackin_feed(&in, o.v, o.n);
		e = stackin_end(&in);
		assert_int_equal(in.format, STACKIN_PPROF);
		assert_int_equal(e ? e->code : 0, many ? ENOMEM : 0);
		err_free(e);
		stackin_fini(&in);
		stacktree_fini(&t);
		out_fini(&o);
	}
}

/* Makes a pprof profile of one location, in a file with a long name: `samples` equal samples in
 * which it stands `frames` times. */
static struct out one_location(uint32_t frames, uint32_t samples)
{
	enum { LONG = 60000 };
	cleanup_free char *name = xmalloc(LONG), *ids = xmalloc(frames);
	struct out o = { 0 }, sample = { 0 };

	memset(name, 'f', LONG);
	memset(ids, 1, frames);
	put_message(&o, 1, "\x08\x01\x10\x02", 4);
	put_message(&o, 6, "", 0);
	put_message(&o, 6, "cpu", 3);
	put_message(&o, 6, "count", 5);
	put_message(&o, 6, name, LONG);
	put_message(&o, 3, "\x08\x01\x28\x03", 4);
	put_message(&o, 4, "\x08\x01\x10\x01\x18\x07", 6);
	put_message(&sample, 1, ids, frames);
	put_message(&sample, 2, "\x01", 1);
	for (uint32_t i = 0; i < samples; i++)
		put_message(&o, 2, sample.v, sample.n);
	out_fini(&sample);
	return o;
}

/* A byte of a sample is a frame, whose name may have 64 kB: the text of all stacks has a budget. */
static void test_pprof_text(void **state)
{
	static const struct {
		uint32_t frames, samples;
		int code;
	} cases[] = { { 1000, 1, 0 }, { 1000, 300, 0 }, { 5000, 1, E2BIG } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct out o = one_location(cases[i].frames, cases[i].samples);
		struct stackin in;
		struct stacktree t;
		struct err *e;

		stacktree_init(&t);
		stackin_init(&in, &t, NULL);
		stackin_feed(&in, o.v, o.n);
		e = stackin_end(&in);
		assert_int_equal(in.format, STACKIN_PPROF);
		assert_int_equal(e ? e->code : 0, cases[i].code);
		/* equal stacks are one of the text that is written */
		assert_in_range(in.text_bytes, cases[i].frames * 60000ull,
				cases[i].frames * 61000ull);
		assert_int_equal(in.stacks, cases[i].samples);
		err_free(e);
		stackin_fini(&in);
		stacktree_fini(&t);
		out_fini(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pprof_names),
		cmocka_unit_test(test_pprof_tables),
		cmocka_unit_test(test_pprof_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
