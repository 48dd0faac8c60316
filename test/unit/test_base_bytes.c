#include "unit.h"

#include "base/bytes.h"

static void test_fixed(void **state)
{
	const uint8_t d[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	struct bytes b = bytes_of(d, sizeof(d), "d");

	assert_int_equal(bytes_u8(&b), 0x01);
	assert_int_equal(bytes_u16(&b), 0x0302);
	assert_int_equal(bytes_u32(&b), 0x07060504);
	assert_int_equal(bytes_u64(&b), 0x0f0e0d0c0b0a0908);
	assert_true(bytes_ok(&b));
	assert_int_equal(bytes_left(&b), 0);
	assert_null(bytes_err(&b));
}

static void test_sticky(void **state)
{
	struct bytes b = bytes_of("abc", 3, "file");
	struct err *e;

	assert_true(bytes_skip(&b, 1));
	assert_int_equal(bytes_u32(&b), 0);
	assert_false(bytes_ok(&b));
	assert_int_equal(bytes_u8(&b), 0);
	assert_false(bytes_skip(&b, 0));
	assert_false(bytes_seek(&b, 0));
	e = bytes_err(&b);
	assert_string_equal(e->text, "file: truncated at byte 1");
	err_free(e);
}

static void test_leb(void **state)
{
	const uint8_t d[] = { 0xe5, 0x8e, 0x26, 0x7f, 0x80, 0x7f, 0xc0, 0xbb, 0x78, 0xff,
			      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x80 };
	struct bytes b = bytes_of(d, sizeof(d), "leb");

	assert_int_equal(bytes_uleb(&b), 624485);
	assert_int_equal(bytes_sleb(&b), -1);
	assert_int_equal(bytes_sleb(&b), -128);
	assert_int_equal(bytes_sleb(&b), -123456);
	assert_true(bytes_uleb(&b) == UINT64_MAX);
	assert_true(bytes_ok(&b));
	assert_int_equal(bytes_uleb(&b), 0);
	assert_false(bytes_ok(&b));
}

static void test_strings_and_slices(void **state)
{
	struct bytes b = bytes_of("ab\0cd\0ef", 8, "s"), w;

	assert_string_equal(bytes_cstr(&b), "ab");
	assert_string_equal(bytes_cstr_at(&b, 3, SIZE_MAX), "cd");
	assert_string_equal(bytes_cstr_at(&b, 3, 3), "cd");
	assert_null(bytes_cstr_at(&b, 3, 2));
	assert_null(bytes_cstr_at(&b, 6, SIZE_MAX));
	assert_null(bytes_cstr_at(&b, 8, SIZE_MAX));
	assert_null(bytes_cstr_at(&b, SIZE_MAX, SIZE_MAX));
	w = bytes_slice(&b, 3, 3);
	assert_string_equal(bytes_cstr(&w), "cd");
	assert_int_equal(bytes_left(&w), 0);
	w = bytes_slice(&b, 3, SIZE_MAX);
	assert_false(bytes_ok(&w));
	assert_int_equal(bytes_u8(&w), 0);
	w = bytes_slice(&b, SIZE_MAX, 1);
	assert_false(bytes_ok(&w));
	w = bytes_slice(&b, 8, 0);
	assert_true(bytes_ok(&w));
	assert_true(bytes_ok(&b));
	assert_string_equal(bytes_cstr(&b), "cd");
	assert_null(bytes_cstr(&b));
	assert_false(bytes_ok(&b));
	b = bytes_of(NULL, 0, "none");
	assert_int_equal(bytes_u8(&b), 0);
	assert_false(bytes_ok(&b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_sticky),
		cmocka_unit_test(test_leb),
		cmocka_unit_test(test_strings_and_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
