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

enum { CHOSEN = 1500, MOST = 4 /* slots that a search may visit, on average */ };

/* Gives keys that collide when a table takes hash_fixed() instead of a secret. */
static uint64_t next_chosen(uint64_t after)
{
	do {
		after++;
	} while (hash_fixed(&after, sizeof(after)) & 0xfff);
	return after;
}

static void test_chosen_keys(void **state)
{
	struct hash h = { 0 };
	uint64_t key = 0;

	for (int i = 0; i < CHOSEN; i++) {
		key = next_chosen(key);
		*hash_put(&h, &key, sizeof(key), NULL) = key;
	}
	assert_int_equal(h.n, CHOSEN);
	assert_in_range(hash_visits(&h), CHOSEN, (uint64_t)MOST * CHOSEN);
	hash_fini(&h);
}

/* Puts n keys into a table like those of class numbers and pages, and returns the visits of a
 * search for each. */
static uint64_t visits_of(uint32_t n, uint64_t (*key)(uint32_t i), bool paired)
{
	uint32_t cap = 16, at;
	uint64_t visits = 0;
	bool *used;

	while (cap < 2 * n)
		cap *= 2;
	used = xcalloc(cap, sizeof(*used));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t k = key(i), h = paired ? hash_pair(k >> 32, (uint32_t)k) : hash_word(k);

		for (at = (uint32_t)h & (cap - 1); used[at]; at = (at + 1) & (cap - 1))
			visits++;
		used[at] = true;
		visits++;
	}
	free(used);
	return visits;
}

/* The multiplier that these tables had, by which each of these keys becomes i: the bits from 32 on,
 * of which the place was made, are 0. */
static uint64_t colliding(uint32_t i)
{
	const uint64_t multiplier = 0x9e3779b97f4a7c15;
	uint64_t inverse = multiplier; /* three bits of it are right; each step doubles them */

	for (int step = 0; step < 5; step++)
		inverse *= 2 - multiplier * inverse;
	assert_int_equal(inverse * multiplier, 1);
	return inverse * i;
}

static uint64_t in_a_row(uint32_t i)
{
	return i;
}

static uint64_t pages(uint32_t i)
{
	return (uint64_t)i << 12;
}

static uint64_t high_halves(uint32_t i)
{
	return (uint64_t)i << 32 | i;
}

static void test_chosen_words(void **state)
{
	static uint64_t (*const keys[])(uint32_t) = { colliding, in_a_row, pages, high_halves };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_in_range(visits_of(100000, keys[i], false), 100000, MOST * 100000);
		assert_in_range(visits_of(100000, keys[i], true), 100000, MOST * 100000);
	}
}

/* Values of files stay as they are; those of tables are another process's secret. */
static void test_secret(void **state)
{
	const struct hash_secret other = { { 1, 2 }, { 3, 5, 7, 9, 11 } };
	uint64_t here = hash_bytes("key", 3), word = hash_word(7), pair = hash_pair(7, 8);
	struct hash_secret was = hash_secret_set(&other);

	assert_int_not_equal(hash_bytes("key", 3), here);
	assert_int_not_equal(hash_word(7), word);
	assert_int_not_equal(hash_pair(7, 8), pair);
	assert_int_equal(hash_fixed("key", 3), 0xacfcee82c9200d10);
	hash_secret_set(&was);
	assert_int_equal(hash_bytes("key", 3), here);
	assert_int_equal(hash_fixed("key", 3), 0xacfcee82c9200d10);
	for (size_t i = 0; i < ARRAY_SIZE(was.word); i++)
		assert_true(was.word[i] & 1 && was.word[i] != other.word[i]);
}

/* SipHash-1-3 of the message 00 01 .. 0e by the key 00 01 .. 0f. */
static void test_sip(void **state)
{
	const struct hash_secret key = { .sip = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	struct hash_secret was = hash_secret_set(&key);
	uint8_t message[15];

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	assert_int_equal(hash_bytes(message, sizeof(message)), 0xd320d86d2a519956);
	hash_secret_set(&was);
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

/* Control characters of names do not reach those who read them. */
static void test_shown(void **state)
{
	struct intern t;
	uint32_t id;

	(void)state;
	intern_init(&t);
	id = intern_shown(&t, "a\nb\x1b[31m\x7f\xc3\xa4", 11);
	assert_string_equal(intern_text(&t, id), "a?b?[31m?\xc3\xa4");
	assert_int_equal(intern_shown(&t, "a\tb?[31m\0\xc3\xa4", 11), id);
	assert_int_equal(intern_shown(&t, "plain", 5), intern_str(&t, "plain"));
	assert_int_equal(intern_shown(&t, "", 0), 0);
	intern_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown),       cmocka_unit_test(test_put_get_del),
		cmocka_unit_test(test_key_lengths), cmocka_unit_test(test_random),
		cmocka_unit_test(test_chosen_keys), cmocka_unit_test(test_chosen_words),
		cmocka_unit_test(test_secret),      cmocka_unit_test(test_sip),
		cmocka_unit_test(test_intern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
