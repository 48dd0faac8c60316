/* Types from DWARF: this program's own. */
#include "unit.h"

#include <stddef.h>
#include <unistd.h>

#include "program/type/type.h"

enum user_mood { USER_SAD = -2, USER_GLAD = 7 };

struct user_point {
	int x, y;
};

typedef struct user_thing {
	char name[12];
	struct user_thing *next;
	unsigned int low : 3, high : 7;
	union {
		long as_long;
		unsigned char as_bytes[8];
	};
	const struct user_point *const corner;
	struct user_point grid[3][2];
	enum user_mood mood;
	int (*call)(int);
	_Bool set;
	double number;
} user_thing_t;

static volatile user_thing_t thing = { .mood = USER_GLAD };

static struct type_graph *graph(void)
{
	struct type_graph *g = type_graph_new();

	type_use_process(g, getpid());
	return g;
}

static struct type_member member(struct type_graph *g, type_id t, const char *name)
{
	struct type_member m;

	if (!type_find_member(g, t, name, &m))
		fail_msg("no member %s", name);
	return m;
}

static void test_struct(void **state)
{
	struct type_graph *g = graph();
	struct type_member m;
	type_id t;

	assert_true(type_lookup(g, NULL, TYPE_STRUCT, "user_thing", &t));
	assert_int_equal(type_size(g, t), sizeof(thing));
	assert_int_equal(member(g, t, "next").bit_offset, 8 * offsetof(struct user_thing, next));
	assert_true(type_same(g, type_ref(g, type_strip(g, member(g, t, "next").type)), t));
	m = member(g, t, "high");
	assert_int_equal(m.bit_size, 7);
	assert_int_equal(m.bit_offset, 8 * offsetof(struct user_thing, next) + 64 + 3);
	assert_int_equal(member(g, t, "as_bytes").bit_offset,
			 8 * offsetof(struct user_thing, as_bytes));
	m = member(g, t, "grid");
	assert_int_equal(type_size(g, m.type), sizeof(thing.grid));
	assert_int_equal(type_nelems(g, m.type), 3);
	assert_int_equal(type_kind(g, type_strip(g, member(g, t, "set").type)), TYPE_INT);
	assert_int_equal(type_kind(g, type_strip(g, member(g, t, "number").type)), TYPE_FLOAT);
	assert_true(type_is_pointer(g, member(g, t, "call").type));
	assert_true(type_is_char_array(g, member(g, t, "name").type));
	m = member(g, type_ref(g, type_strip(g, member(g, t, "corner").type)), "y");
	assert_int_equal(m.bit_offset, 32);
	type_graph_free(g);
}

static void test_names(void **state)
{
	struct type_graph *g = graph();
	int64_t value;
	type_id t, u;

	assert_true(type_lookup(g, "", TYPE_TYPEDEF, "user_thing_t", &t));
	assert_true(type_lookup(g, "user", TYPE_STRUCT, "user_thing", &u));
	assert_int_equal(type_strip(g, t), u);
	assert_true(type_lookup(g, "test_type_user", TYPE_STRUCT, "user_point", &t));
	assert_false(type_lookup(g, "libnowhere", TYPE_STRUCT, "user_point", &t));
	assert_false(type_lookup(g, NULL, TYPE_STRUCT, "user_nothing", &t));
	assert_false(type_lookup(g, "D", TYPE_STRUCT, "user_point", &t));
	assert_true(type_enumerator(g, "USER_SAD", &value, &t));
	assert_int_equal(value, -2);
	assert_int_equal(type_kind(g, t), TYPE_ENUM);
	assert_false(type_enumerator(g, "USER_BAD", &value, &t));
	type_graph_free(g);
}

static void test_no_process(void **state)
{
	struct type_graph *g = type_graph_new();
	type_id t;

	type_use_process(g, 999999999);
	assert_false(type_lookup(g, NULL, TYPE_STRUCT, "user_point", &t));
	type_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_struct),
					    cmocka_unit_test(test_names),
					    cmocka_unit_test(test_no_process) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
