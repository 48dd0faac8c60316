/* Bytes as /sys/kernel/btf/vmlinux: makes every query of the graph for each name in them, and
 * prints a value of its type, made of the same bytes. */
#define _GNU_SOURCE
#include "ask_type.h"
#include "input_file.h"
#include "program/type/btf.h"

enum { NAMES_MAX = 64, INPUT_MAX = 64 << 10 };

static void on_tracepoint(void *arg, const char *name, type_id func)
{
	uint32_t n;
	bool varargs;

	type_params(arg, func, &n, &varargs);
}

static void ask_name(const struct ask_type *a, const char *name)
{
	static const enum type_kind kinds[] = { TYPE_STRUCT, TYPE_UNION, TYPE_ENUM, TYPE_TYPEDEF };
	struct type_graph *g = a->g;
	int64_t v;
	type_id t;

	for (uint32_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (type_lookup(g, NULL, kinds[k], name, &t))
			ask_type(a, t);
	}
	if (type_kernel_func(g, name, &t))
		ask_type(a, t);
	if (type_kernel_var(g, name, &t))
		ask_type(a, t);
	type_enumerator(g, name, &v, &t);
	type_kernel_tracepoint(g, name, &t);
	type_parse_name(g, name, &t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;
	char path[INPUT_PATH];
	struct ask_type a = { .input = data, .len = size };
	struct btf_file f;
	struct err *note = NULL, *e;
	struct arena arena;

	if (size > INPUT_MAX)
		return 0;
	fd = input_file(data, size, path);
	arena_init(&arena);
	a.arena = &arena;
	a.g = type_graph_new();
	type_use_kernel(a.g, path);
	type_kernel_tracepoints(a.g, on_tracepoint, a.g);
	e = btf_open(&f, path, NULL, &note);
	if (!e) {
		for (uint32_t id = 1; id < btf_end(&f) && id <= NAMES_MAX; id++)
			ask_name(&a, btf_str(&f, btf_type(&f, id)->name_off));
		btf_close(&f);
	}
	err_free(e);
	err_free(note);
	type_graph_free(a.g);
	arena_fini(&arena);
	close(fd);
	return 0;
}
