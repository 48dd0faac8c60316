/* What undoing finds in a process (src/load/inproc/undo/). */
#include "unit.h"

#include "load/inproc/undo/undo_private.h"

/* Adds a line of a /proc/PID/maps. */
static size_t put_line(char *text, size_t at, size_t size, uint64_t start, const char *name)
{
	return at + (size_t)snprintf(text + at, size - at,
				     "%llx-%llx r-xp 00000000 00:01 9   /memfd:%s (deleted)\n",
				     (unsigned long long)start, (unsigned long long)start + 0x1000,
				     name);
}

/* A hostile process's list has the bases many times, in no order: each counts once. */
static void test_bases_again(void **state)
{
	/* the words behind the array must stay */
	uint64_t bases[4 * WIRE_BASES];
	char text[16384];
	size_t n = 0;
	struct mappings m;

	memset(bases, 0xa5, sizeof(bases));
	for (uint64_t k = 0; k < WIRE_BASES; k++) {
		const uint64_t base = WIRE_BASE + k * WIRE_BASE_STEP;

		n = put_line(text, n, sizeof(text), WIRE_BASE, WIRE_MEMFD_CODE);
		n = put_line(text, n, sizeof(text), base, WIRE_MEMFD_CODE);
		n = put_line(text, n, sizeof(text), base + WIRE_FACTS, WIRE_MEMFD_FACTS);
		n = put_line(text, n, sizeof(text), base + 0x1000, WIRE_MEMFD_CODE); /* no base */
		n = put_line(text, n, sizeof(text), base, "other");
	}
	n = put_line(text, n, sizeof(text), WIRE_BASE + WIRE_BASES * WIRE_BASE_STEP,
		     WIRE_MEMFD_CODE);
	assert_true(n < sizeof(text) - 1);
	mappings_parse(xstrdup(text), n, &m);
	assert_int_equal(m.n, 5 * WIRE_BASES + 1);
	assert_int_equal(undo_bases(&m, bases), WIRE_BASES);
	for (uint32_t k = 0; k < WIRE_BASES; k++)
		assert_int_equal(bases[k], WIRE_BASE + k * WIRE_BASE_STEP);
	for (uint32_t k = WIRE_BASES; k < 4 * WIRE_BASES; k++)
		assert_int_equal(bases[k], 0xa5a5a5a5a5a5a5a5);
	mappings_order(&m);
	assert_int_equal(undo_bases(&m, bases), WIRE_BASES);
	mappings_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bases_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
