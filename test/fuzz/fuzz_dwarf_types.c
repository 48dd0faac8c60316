/* Types in the DWARF of hostile files: of each function's parameters, of their targets, and of the
 * targets' members; and of all variables and structs of a process that has such a file mapped. */
#define _GNU_SOURCE
#include "ask_type.h"
#include "input_file.h"
#include "program/object/object.h"
#include "program/space/space.h"

enum { INPUT_MAX = 64 << 10, FUNCTIONS_MAX = 64, LEVELS = 3 };

static void ask(const struct ask_type *a, type_id t, uint32_t level)
{
	const struct type_member *m;
	uint32_t n;

	ask_type(a, t);
	if (level == LEVELS)
		return;
	ask(a, type_ref(a->g, type_strip(a->g, t)), level + 1);
	m = type_members(a->g, t, &n);
	for (uint32_t i = 0; i < n && i < ASK_TYPE_MEMBERS_MAX; i++)
		ask(a, m[i].type, level + 1);
}

static void ask_function(const struct ask_type *a, const char *path, uint64_t addr)
{
	const struct type_param *p;
	bool varargs;
	uint32_t n;
	type_id t;

	if (!type_user_func(a->g, path, addr, &t))
		return;
	ask(a, type_ref(a->g, t), 0);
	p = type_params(a->g, t, &n, &varargs);
	for (uint32_t i = 0; i < n && i < ASK_TYPE_MEMBERS_MAX; i++)
		ask(a, p[i].type, 0);
}

static const char *mapped_path;

static struct err *one_mapping(struct space *s, uint64_t time, const struct mappings **ret)
{
	static struct mapping m = { .start = 0x400000, .end = 0x401000, .exec = true, .path = "/a" };
	static const struct mappings one = { .v = &m, .n = 1 };

	(void)s;
	(void)time;
	*ret = &one;
	return NULL;
}

static char *input_path(struct space *s, const struct mapping *m)
{
	(void)s;
	(void)m;
	return strdup(mapped_path);
}

static void ask_item(void *arg, const struct type_user_item *item)
{
	const struct ask_type *a = arg;

	if (item->name[0] || item->addr)
		ask(a, item->type, LEVELS - 1);
}

static void ask_items(struct ask_type *a, const char *path)
{
	static const struct space_ops ops = { .mappings = one_mapping, .open_path = input_path };
	struct space s = { .ops = &ops, .name = "made up" };

	mapped_path = path;
	a->g = type_graph_new();
	type_use_space(a->g, &s);
	type_user_each(a->g, ask_item, a);
	type_graph_free(a->g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct object_symbol *s;
	struct ask_type a = { .input = data, .len = size };
	struct arena arena;
	struct object *o;
	struct err *e;
	char path[INPUT_PATH];
	uint32_t n;
	int fd;

	if (size > INPUT_MAX)
		return 0;
	e = object_open_memory("fuzz", data, size, &o);
	if (e) {
		err_free(e);
		return 0;
	}
	fd = input_file(data, size, path);
	arena_init(&arena);
	a.arena = &arena;
	a.g = type_graph_new();
	s = object_symbols(o, &n);
	for (uint32_t i = 0; i < n && i < FUNCTIONS_MAX; i++)
		ask_function(&a, path, s[i].addr);
	type_graph_free(a.g);
	ask_items(&a, path);
	arena_fini(&arena);
	object_free(o);
	close(fd);
	return 0;
}
