/* The rings of agent/ring.h: alone, between two processes, with a producer that is killed, with a
 * hostile one. */
#define _GNU_SOURCE
#include "unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/ring.h"

static struct wire_ring *ring_make(uint64_t size)
{
	void *p = mmap(NULL, sizeof(struct wire_ring) + size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static void test_order_and_full(void **state)
{
	struct wire_ring *r = ring_make(128);
	const void *data;
	uint64_t tail = 0;
	uint32_t n, *p;

	assert_null(ring_reserve(r, 128, 121));
	assert_null(ring_reserve(r, 128, ~0ull));
	for (uint32_t i = 0; i < 8; i++) {
		p = ring_reserve(r, 128, 4);
		assert_non_null(p);
		*p = i;
		assert_true(ring_finish(p, i == 3));
		assert_false(ring_finish(p, false));
	}
	assert_null(ring_reserve(r, 128, 0));
	for (uint32_t i = 0; i < 8; i++) {
		if (i == 3)
			continue;
		assert_int_equal(ring_next(r, 128, &tail, false, &data, &n), RING_RECORD);
		assert_int_equal(n, 4);
		assert_int_equal(*(const uint32_t *)data, i);
		ring_consume(r, &tail, n);
	}
	assert_int_equal(ring_next(r, 128, &tail, false, &data, &n), RING_EMPTY);
	p = ring_reserve(r, 128, 120); /* fits exactly */
	assert_non_null(p);
	assert_null(ring_reserve(r, 128, 0));
}

/* Other threads have written behind the ring's end: their bytes stay. */
static void test_forged_head(void **state)
{
	struct wire_ring *r = ring_make(4096 - sizeof(struct wire_ring)); /* the page's end */
	const uint64_t size = 2048;

	for (uint64_t head = 0; head < 2 * size; head++) {
		uint8_t *end = ring_data(r) + size;

		memset(end, 0x5a, 16);
		r->head = r->tail = head;
		for (uint64_t n = 0; n <= 16; n++)
			ring_reserve(r, size, n);
		for (int i = 0; i < 16; i++)
			assert_int_equal(end[i], 0x5a);
	}
}

/* A record does not wrap: the end is padded, and counts as used. */
static void test_no_wrap(void **state)
{
	struct wire_ring *r = ring_make(128);
	const void *data;
	uint64_t tail = 0;
	uint32_t n;
	uint8_t *p;

	p = ring_reserve(r, 128, 72);
	ring_finish(p, false);
	assert_null(ring_reserve(r, 128, 41));
	assert_int_equal(ring_next(r, 128, &tail, false, &data, &n), RING_RECORD);
	ring_consume(r, &tail, n);
	assert_null(ring_reserve(r, 128, 73)); /* 48 bytes of padding and 88 are more than 128 */
	p = ring_reserve(r, 128, 72);
	assert_ptr_equal(p, ring_data(r) + WIRE_RING_HEAD);
	memset(p, 7, 72);
	ring_finish(p, false);
	assert_int_equal(ring_next(r, 128, &tail, false, &data, &n), RING_RECORD);
	assert_int_equal(n, 72);
	assert_int_equal(((const uint8_t *)data)[71], 7);
	ring_consume(r, &tail, n);
	assert_int_equal(tail, r->head);
}

/* An open record holds up the consumer, until its thread has ended or has given the record up. */
static void test_open(void **state)
{
	struct wire_ring *r = ring_make(4096);
	const void *data;
	uint64_t tail = 0;
	uint32_t n;
	void *a = ring_reserve(r, 4096, 10), *b = ring_reserve(r, 4096, 20),
	     *c = ring_reserve(r, 4096, 30);

	ring_finish(b, false);
	assert_int_equal(ring_next(r, 4096, &tail, false, &data, &n), RING_EMPTY);
	assert_int_equal(ring_next(r, 4096, &tail, true, &data, &n), RING_RECORD);
	assert_int_equal(n, 20);
	ring_consume(r, &tail, n);
	assert_int_equal(ring_next(r, 4096, &tail, false, &data, &n), RING_EMPTY);
	assert_int_equal(ring_abandon(r, 4096), 1);
	assert_false(ring_finish(c, false));
	assert_int_equal(ring_next(r, 4096, &tail, false, &data, &n), RING_EMPTY);
	assert_int_equal(tail, r->head);
	assert_non_null(a);
}

static uint64_t random64(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* Each record: its number, then bytes that follow from it. */
static void fill(uint8_t *p, uint32_t n, uint64_t number)
{
	memcpy(p, &number, 8);
	for (uint32_t i = 8; i < n; i++)
		p[i] = (uint8_t)(number * 31 + i);
}
static bool is_filled(const uint8_t *p, uint32_t n, uint64_t *ret_number)
{
	memcpy(ret_number, p, 8);
	for (uint32_t i = 8; i < n; i++)
		if (p[i] != (uint8_t)(*ret_number * 31 + i))
			return false;
	return true;
}

/* Produces until `total` records are in the ring, or for ever. */
static void produce(struct wire_ring *r, uint64_t size, uint64_t total)
{
	uint64_t seed = 88172645463325252ull, number = 0;

	while (number < total) {
		uint32_t n = 8 + (uint32_t)(random64(&seed) % (size / 4));
		void *p = ring_reserve(r, size, n);

		if (!p) {
			usleep(1);
			continue;
		}
		if (random64(&seed) % 16 == 0) {
			memset(p, 0xff, n);
			ring_finish(p, true);
			continue;
		}
		fill(p, n, number++);
		ring_finish(p, false);
	}
}

static void test_two_processes(void **state)
{
	enum { SIZE = 4096, TOTAL = 50000 };
	struct wire_ring *r = ring_make(SIZE);
	uint64_t tail = 0, expect = 0, number;
	const void *data;
	pid_t pid = fork();
	uint32_t n;
	int status;

	if (!pid) {
		produce(r, SIZE, TOTAL);
		_exit(0);
	}
	while (expect < TOTAL) {
		enum ring_next next = ring_next(r, SIZE, &tail, false, &data, &n);

		assert_int_not_equal(next, RING_BROKEN);
		if (next == RING_EMPTY)
			continue;
		assert_true(is_filled(data, n, &number));
		assert_int_equal(number, expect++);
		ring_consume(r, &tail, n);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Killed at any place: all complete records are in the ring, in order and whole, and it can be
 * drained. */
static void test_killed_producer(void **state)
{
	enum { SIZE = 8192, ROUNDS = 60 };
	uint64_t records = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct wire_ring *r = ring_make(SIZE);
		uint64_t tail = 0, expect = 0, number;
		const void *data;
		pid_t pid = fork();
		bool dead = false;
		uint32_t n;

		if (!pid) {
			produce(r, SIZE, UINT64_MAX);
			_exit(0);
		}
		for (;;) {
			enum ring_next next = ring_next(r, SIZE, &tail, dead, &data, &n);

			assert_int_not_equal(next, RING_BROKEN);
			if (next == RING_EMPTY && dead)
				break;
			if (next == RING_RECORD) {
				assert_true(is_filled(data, n, &number));
				assert_int_equal(number, expect++);
				ring_consume(r, &tail, n);
			}
			if (!dead && expect >= 20 + (uint64_t)round * 97 % 500) {
				kill(pid, SIGKILL);
				assert_int_equal(waitpid(pid, NULL, 0), pid);
				dead = true;
			}
		}
		assert_int_equal(tail, r->head);
		records += expect;
		munmap(r, sizeof(*r) + SIZE);
	}
	assert_true(records > 100);
}

/* A ring full of nonsense: never a byte outside of it, and an end. ASan watches a heap copy. */
static void test_hostile(void **state)
{
	enum { SIZE = 256 };
	uint64_t seed = 42;
	struct wire_ring *r = malloc(sizeof(*r) + SIZE);
	const void *data;
	uint32_t n;

	for (int round = 0; round < 20000; round++) {
		uint64_t tail = random64(&seed) % 1024 & ~7ull;
		volatile uint8_t sum = 0;
		int steps = 0;

		r->tail = tail;
		r->head = round % 3 ? tail + random64(&seed) % (SIZE + 16) : random64(&seed);
		for (uint64_t i = 0; i < SIZE; i += 4)
			*(uint32_t *)(ring_data(r) + i) = random64(&seed) % 3
								  ? (uint32_t)random64(&seed) % 64
								  : (uint32_t)random64(&seed);
		for (;;) {
			enum ring_next next = ring_next(r, SIZE, &tail, round % 2, &data, &n);

			if (next == RING_EMPTY)
				break;
			assert_true(++steps < 100);
			for (uint32_t i = 0; next == RING_RECORD && i < n; i++)
				sum += ((const uint8_t *)data)[i];
			if (next == RING_RECORD)
				ring_consume(r, &tail, n);
		}
		assert_int_equal(r->tail, tail);
	}
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_full), cmocka_unit_test(test_no_wrap),
		cmocka_unit_test(test_forged_head),    cmocka_unit_test(test_open),
		cmocka_unit_test(test_two_processes),  cmocka_unit_test(test_killed_producer),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
