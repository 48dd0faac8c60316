/* The names of classes. */
#include <string.h>

#include "program/runtime/ruby/ruby.h"

/* st_table: a table of variables by ID. */
enum {
	TABLE_FIRST = 32,
	TABLE_END = 40,
	TABLE_ENTRIES = 48,
	ENTRY_SIZE = 24,
	VARIABLES_MAX = 4096
};
enum { OBJECT_CLASS = 8 };

/* rb_shape: the last variable of a class and the index of its value, then the shape with one
 * variable less. The class has the number of its shape above bit 32 of its flags. */
enum {
	SHAPE_SIZE = 32,
	SHAPE_SHIFT = 32,
	SHAPES_MAX = 1 << 24,
	SHAPE_ROOT = 0,
	SHAPE_VARIABLE = 1
};

struct shape {
	uint64_t edges, id;
	uint32_t count, capacity;
	uint8_t kind, pool;
	uint32_t parent;
};
_Static_assert(sizeof(struct shape) == SHAPE_SIZE, "as in 3.2");

struct variables {
	uint64_t entries; /* in 3.2: values */
	uint32_t next, end;
	uint64_t shapes; /* 3.2: all shapes; next is the number of one, end limits the steps */
};
struct variable {
	uint64_t hash, id, value;
};

static bool variables_by_shape(const struct ruby *r, uint64_t class, struct variables *ret)
{
	uint64_t vm, flags;

	if (!ruby_word(r, r->vm, &vm) || !ruby_word(r, vm + r->layout.vm_shapes, &ret->shapes) ||
	    !ret->shapes || !ruby_object(r, class, &flags) ||
	    !ruby_word(r, class + r->layout.class_values, &ret->entries))
		return false;
	ret->next = (uint32_t)(flags >> SHAPE_SHIFT);
	ret->end = VARIABLES_MAX;
	return true;
}

/* The variables of a class, up to 3.2. */
static bool variables(struct ruby *r, uint64_t class, struct variables *ret)
{
	uint64_t extra, table, first, end;

	ret->shapes = 0;
	if (r->layout.class_values)
		return variables_by_shape(r, class, ret);
	if (!ruby_word(r, class + r->layout.class_extra, &extra) || !extra ||
	    !ruby_word(r, extra + r->layout.extra_variables, &table) || !table ||
	    !ruby_word(r, table + TABLE_FIRST, &first) || !ruby_word(r, table + TABLE_END, &end) ||
	    !ruby_word(r, table + TABLE_ENTRIES, &ret->entries))
		return false;
	if (first > end || end - first > VARIABLES_MAX || end > UINT32_MAX ||
	    !ruby_afford(r, (end - first) * ENTRY_SIZE))
		return false;
	ret->next = (uint32_t)first;
	ret->end = (uint32_t)end;
	return true;
}

static bool next_by_shape(struct ruby *r, struct variables *v, struct variable *ret)
{
	struct shape s = { .kind = SHAPE_VARIABLE };

	while (v->end-- && v->next < SHAPES_MAX && ruby_afford(r, sizeof(s)) &&
	       space_read_some(r->runtime.space, v->shapes + (uint64_t)v->next * SHAPE_SIZE, &s,
			       sizeof(s)) == sizeof(s) &&
	       s.kind != SHAPE_ROOT) {
		v->next = s.parent;
		if (s.kind != SHAPE_VARIABLE || !s.count)
			continue;
		ret->id = s.id;
		return ruby_word(r, v->entries + (s.count - 1ull) * 8, &ret->value);
	}
	return false;
}

static bool next(struct ruby *r, struct variables *v, struct variable *ret)
{
	uint64_t at = v->entries + (uint64_t)v->next * ENTRY_SIZE;

	if (v->shapes)
		return next_by_shape(r, v, ret);
	return v->next++ < v->end &&
	       space_read_some(r->runtime.space, at, ret, sizeof(*ret)) == sizeof(*ret);
}

/* Finds in class String the variable that has the names of classes. */
static void find_path_variable(struct ruby *r)
{
	struct variables v;
	struct variable x;
	uint64_t class;

	if (r->path_variable || !r->string_class || !ruby_word(r, r->string_class, &class) ||
	    !ruby_is(r, class, RUBY_CLASS) || !variables(r, class, &v))
		return;
	while (next(r, &v, &x)) {
		const char *name = ruby_is(r, x.value, RUBY_STRING) ? ruby_text(r, x.value) : NULL;

		if (name && !strcmp(name, "String")) {
			r->path_variable = x.id;
			return;
		}
	}
}

static const char *name_by_variable(struct ruby *r, uint64_t class)
{
	struct variables v;
	struct variable x;

	find_path_variable(r);
	if (!r->path_variable || !variables(r, class, &v))
		return NULL;
	while (next(r, &v, &x))
		if (x.id == r->path_variable)
			return ruby_text(r, x.value);
	return NULL;
}

static const char *own_name(struct ruby *r, uint64_t class)
{
	const struct ruby_layout *l = &r->layout;
	uint64_t path;
	uint8_t flags;

	if (!l->class_path)
		return name_by_variable(r, class);
	if (space_read_some(r->runtime.space, class + l->class_flags, &flags, 1) != 1 ||
	    !(flags & l->permanent) || !ruby_word(r, class + l->class_path, &path))
		return NULL;
	return ruby_text(r, path);
}

static bool is_class_of(const struct ruby *r, uint64_t class, uint64_t value)
{
	uint64_t own;

	return (ruby_is(r, value, RUBY_CLASS) || ruby_is(r, value, RUBY_MODULE)) &&
	       ruby_word(r, value + OBJECT_CLASS, &own) && own == class;
}

/* Returns the class or module of a singleton class, which names it as its own. */
static bool attached(struct ruby *r, uint64_t class, uint64_t *ret)
{
	struct variables v;
	struct variable x;

	if (r->layout.class_attached)
		return ruby_word(r, class + r->layout.class_attached, ret) &&
		       is_class_of(r, class, *ret);
	if (!variables(r, class, &v))
		return false;
	while (next(r, &v, &x))
		if (is_class_of(r, class, x.value)) {
			*ret = x.value;
			return true;
		}
	return false;
}

const char *ruby_class_name(struct ruby *r, uint64_t class, bool *ret_singleton)
{
	uint64_t of;

	*ret_singleton = false;
	if (ruby_is(r, class, RUBY_MODULE))
		return own_name(r, class);
	if (!ruby_is(r, class, RUBY_CLASS))
		return NULL;
	if (!attached(r, class, &of))
		return own_name(r, class);
	*ret_singleton = true;
	return own_name(r, of);
}
