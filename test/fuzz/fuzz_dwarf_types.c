/* Types in the DWARF of hostile files: of each function's parameters, of their targets, and of the
 * targets' members. */
#define _GNU_SOURCE
#include "ask_type.h"
#include "input_file.h"
#include "program/object/object.h"

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
	arena_fini(&arena);
	object_free(o);
	close(fd);
	return 0;
}
