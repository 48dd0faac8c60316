#include "unit.h"

#include "base/hash.h"
#include "base/mem.h"

static void test_put_get_del(void **state)
{
	struct hash h = { 0 };
	bool made;

	assert_null(hash_get(&h, "a", 1));
	assert_false(hash_del(&h, "a", 1));
	for (uint32_t i = 0; i < 5000; i++) {
		*hash_put(&h, &i, sizeof(i), &made) = i * 3;
		assert_true(made);
	}
	for (uint32_t i = 0; i < 5000; i += 2)
		assert_true(hash_del(&h, &i, sizeof(i)));
	assert_int_equal(h.n, 2500);
	for (uint32_t i = 0; i < 5000; i++) {
		uint64_t *v = hash_get(&h, &i, sizeof(i));

		if (i % 2 == 0) {
			assert_null(v);
			continue;
		}
		assert_non_null(v);
		assert_int_equal(*v, i * 3);
		assert_ptr_equal(hash_put(&h, &i, sizeof(i), &made), v);
		assert_false(made);
	}
	hash_fini(&h);
	assert_int_equal(h.n, 0);
}

/* Keys of every length, also longer than a slot, some of them prefixes of others. */
static void test_key_lengths(void **state)
{
	struct hash h = { 0 };
	char key[100];
	const void *k;
	size_t len, total = 0;
	uint32_t pos = 0, seen = 0;
	uint64_t *v;

	memset(key, 'k', sizeof(key));
	for (size_t n = 0; n < sizeof(key); n++)
		*hash_put(&h, key, n, NULL) = n;
	while (hash_next(&h, &pos, &k, &len, &v)) {
		assert_int_equal(*v, len);
		assert_memory_equal(k, key, len);
		total += len;
		seen++;
	}
	assert_int_equal(seen, 100);
	assert_int_equal(total, 99 * 100 / 2);
	for (size_t n = 0; n < sizeof(key); n += 3)
		assert_true(hash_del(&h, key, n));
	for (size_t n = 0; n < sizeof(key); n++)
		assert_int_equal(hash_get(&h, key, n) != NULL, n % 3 != 0);
	hash_fini(&h);
}

/* Against a plain array, with a small key space so that every shift-back case comes up. */
static void test_random(void **state)
{
	struct hash h = { 0 };
	uint64_t model[64] = { 0 };
	uint32_t x = 1, n = 0;

	for (int i = 0; i < 200000; i++) {
		uint32_t k;

		x = x * 1664525 + 1013904223;
		k = x >> 26;
		if (x & 0x1000) {
			n += !model[k];
			model[k] = x | 1;
			*hash_put(&h, &k, sizeof(k), NULL) = x | 1;
		} else {
			assert_int_equal(hash_del(&h, &k, sizeof(k)), model[k] != 0);
			n -= model[k] != 0;
			model[k] = 0;
		}
		assert_int_equal(h.n, n);
		k = (x >> 8) % 64;
		assert_int_equal(hash_get(&h, &k, sizeof(k)) ? *hash_get(&h, &k, sizeof(k)) : 0,
				 model[k]);
	}
	hash_fini(&h);
}

static void test_intern(void **state)
{
	struct intern t;
	uint32_t a, b;

	intern_init(&t);
	assert_int_equal(intern_str(&t, ""), 0);
	a = intern_str(&t, "alpha");
	b = intern_strn(&t, "beta-and-more", 4);
	assert_int_not_equal(a, b);
	assert_int_equal(intern_strn(&t, "alphabet", 5), a);
	assert_int_equal(intern_str(&t, "beta"), b);
	assert_string_equal(intern_text(&t, a), "alpha");
	assert_string_equal(intern_text(&t, 0), "");
	for (int i = 0; i < 1000; i++) {
		char s[40];

		snprintf(s, sizeof(s), "a-rather-long-name-%d", i);
		assert_string_equal(intern_text(&t, intern_str(&t, s)), s);
	}
	assert_string_equal(intern_text(&t, b), "beta");
	intern_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_get_del),
		cmocka_unit_test(test_key_lengths),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_intern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
