/* Address spaces of recordings: mappings, forks, and the limits of their memory and work. */
#include "unit.h"

#include "program/space/space.h"

static void test_record(void **state)
{
	const struct mapping a = { .start = 0x1000, .end = 0x5000, .file = 1, .path = "/a" },
			     b = { .start = 0x2000, .end = 0x3000, .file = 2, .path = "/b" };
	struct space_record_room room = { 0 };
	struct space *parent = space_record(7, &room), *child;
	const struct mappings *m, *n;

	space_record_map(parent, &a, 1);
	child = space_record_fork(parent, 8);
	assert_int_equal(space_record_state(child), 1);
	assert_null(space_mappings(parent, 0, &m));
	assert_null(space_mappings(child, 0, &n));
	assert_ptr_equal(m, n);
	space_record_map(child, &b, 2);
	assert_null(space_mappings(child, 0, &n));
	assert_int_equal(n->n, 3);
	assert_int_equal(mappings_find(n, 0x2fff)->file, 2);
	assert_int_equal(mappings_find(n, 0x3000)->offset, 0x2000);
	assert_null(space_mappings(parent, 0, &m));
	assert_int_equal(m->n, 1);
	assert_int_equal(space_record_state(parent), 1);
	space_free(parent);
	assert_int_equal(mappings_find(n, 0x1000)->file, 1);
	assert_int_equal(space_read_some(child, 0x1000, &(char){ 0 }, 1), 0);
	assert_null(space_open_path(child, &a));
	space_free(child);
	assert_int_equal(room.n, 0);
	assert_int_equal(room.left_out, 0);
}

/* Each forked process that has a mapping of its own has a copy of all. */
static void test_record_room(void **state)
{
	struct space_record_room room = { .most = 100 };
	struct space *child[20], *parent = space_record(7, &room);
	const struct mappings *m;

	for (uint32_t i = 0; i < 10; i++)
		space_record_map(parent,
				 &(struct mapping){ .start = i, .end = i + 1, .path = "/a" }, 1);
	for (uint32_t i = 0; i < 20; i++) {
		child[i] = space_record_fork(parent, 8);
		space_record_map(child[i],
				 &(struct mapping){ .start = 20, .end = 21, .path = "/b" }, 2);
		assert_null(space_mappings(child[i], 0, &m));
		assert_int_equal(m->n, i < 8 ? 11 : 10);
	}
	assert_int_equal(room.n, 10 + 8 * 11);
	assert_int_equal(room.left_out, 12);
	for (uint32_t i = 0; i < 20; i++)
		space_free(child[i]);
	assert_int_equal(room.n, 10);
	space_free(parent);
	assert_int_equal(room.n, 0);
}

/* Mappings that come from the highest to the lowest move all others, and so does the copy of a
 * forked process's list. Those behind all others are still taken at the limit. */
static void test_record_moves(void **state)
{
	struct space_record_room room = { .most_moved = 1000 };
	struct space *child, *s = space_record(7, &room);
	const struct mappings *m;

	for (uint64_t at = 1000; at; at--)
		space_record_map(s, &(struct mapping){ .start = at, .end = at + 1, .path = "/a" },
				 1);
	assert_null(space_mappings(s, 0, &m));
	assert_int_equal(m->n, 45); /* 0 + 1 + ... + 44 moves */
	assert_int_equal(room.moved, 45 * 44 / 2);
	assert_int_equal(room.left_out, 1000 - 45);
	for (uint64_t at = 2000; at < 3000; at++)
		space_record_map(s, &(struct mapping){ .start = at, .end = at + 1, .path = "/a" },
				 2);
	assert_null(space_mappings(s, 0, &m));
	assert_int_equal(m->n, 1045);
	child = space_record_fork(s, 8);
	space_record_map(child, &(struct mapping){ .start = 4000, .end = 4001, .path = "/b" }, 3);
	assert_null(space_mappings(child, 0, &m));
	assert_int_equal(m->n, 1045);
	assert_int_equal(room.left_out, 1000 - 45 + 1);
	space_free(child);
	space_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_record_room),
		cmocka_unit_test(test_record_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
