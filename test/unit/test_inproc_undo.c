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

/* A forged log has any number of records in pages that are not mapped: the records of a window are
 * looked at once, not again for each that cannot be read. */
static void test_unmapped(void **state)
{
	enum { RECORDS = 3000 };
	struct undo_window *w = xcalloc(1, sizeof(*w));
	struct undo_log log = { 0 };

	for (uint64_t i = 0; i < RECORDS; i++)
		vec_push(&log.sites, ((struct wire_undo){ .site = 0x400000 + i * 8, .len = 5 }));
	for (uint32_t i = 0; i < RECORDS; i++) {
		undo_window_place(w, &log, i);
		assert_true(log.sites.v[i].site >= w->lo);
		assert_true(log.sites.v[i].site + 5 <= w->lo + w->n);
		assert_true(w->n <= sizeof(w->bytes));
		undo_window_failed(w);
	}
	assert_true(w->looks <= RECORDS);
	/* behind the unmapped pages, windows are large again */
	vec_push(&log.sites, ((struct wire_undo){ .site = 0x500000, .len = 5 }));
	vec_push(&log.sites, ((struct wire_undo){ .site = 0x503000, .len = 5 }));
	undo_window_place(w, &log, RECORDS);
	assert_int_equal(w->n, 0x4000);
	undo_log_fini(&log);
	free(w);
}

/* Which islands stay: a process may have 65,000 of them, and as many jumps to them. */
static void test_kept(void **state)
{
	const uint64_t stubs[] = { 0x1000, 0x1fff, 0x5000, 0x5000 };
	undo_ranges kept = { 0 };

	assert_true(undo_any_in(stubs, 4, 0x1000, 0x1001));
	assert_true(undo_any_in(stubs, 4, 0x1800, 0x2000));
	assert_false(undo_any_in(stubs, 4, 0x2000, 0x5000));
	assert_true(undo_any_in(stubs, 4, 0x4000, 0x6000));
	assert_false(undo_any_in(stubs, 4, 0x5001, UINT64_MAX));
	assert_false(undo_any_in(stubs, 0, 0, UINT64_MAX));
	assert_false(undo_is_kept(&kept, 0));
	vec_push(&kept, ((struct control_range){ 0x1000, 0x2000 }));
	vec_push(&kept, ((struct control_range){ 0x5000, 0x9000 }));
	assert_true(undo_is_kept(&kept, 0x1000));
	assert_true(undo_is_kept(&kept, 0x5000));
	assert_false(undo_is_kept(&kept, 0x2000));
	assert_false(undo_is_kept(&kept, 0x9000));
	vec_fini(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bases_again),
		cmocka_unit_test(test_unmapped),
		cmocka_unit_test(test_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
