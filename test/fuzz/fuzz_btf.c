/* Bytes as /sys/kernel/btf/vmlinux: every name in them is asked everything the graph answers, and a
 * value of its type, made of the same bytes, is printed. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program/type/btf.h"
#include "program/type/type.h"
#include "render/value.h"

enum { NAMES_MAX = 64, INPUT_MAX = 64 << 10, VALUE_MAX = 256 };

static const uint8_t *input;
static size_t input_len;

static void on_tracepoint(void *arg, const char *name, type_id func)
{
	uint32_t n;
	bool varargs;

	type_params(arg, func, &n, &varargs);
}

/* Printed exactly as long as it is: a read past the end is seen. */
static void print(struct type_graph *g, type_id t)
{
	struct value_style style = { .zeros = input_len % 2, .dtrace = input_len % 3 == 0 };
	size_t n = input_len < VALUE_MAX ? input_len : VALUE_MAX;
	uint8_t *bytes = xmemdup(input, n);
	struct out o;

	out_init(&o, NULL);
	value_print(&o, g, t, bytes, n, &style);
	value_json(&o, g, t, bytes, n, &style);
	out_fini(&o);
	free(bytes);
}

static void ask(struct type_graph *g, struct arena *a, type_id t)
{
	struct type_member m;
	uint32_t n;
	bool varargs;
	const struct type_member *members = type_members(g, t, &n);

	for (uint32_t i = 0; i < n && i < 8; i++) {
		type_size(g, members[i].type);
		type_name(g, a, members[i].type, members[i].name);
	}
	type_find_member(g, t, "a", &m);
	type_enumerators(g, t, &n);
	type_params(g, t, &n, &varargs);
	type_size(g, t);
	type_align(g, t);
	type_name(g, a, t, "x");
	type_same(g, t, type_ref(g, t));
	type_is_complete(g, t);
	type_is_char_array(g, t);
	type_is_char_pointer(g, t);
	print(g, t);
}

static void ask_name(struct type_graph *g, struct arena *a, const char *name)
{
	static const enum type_kind kinds[] = { TYPE_STRUCT, TYPE_UNION, TYPE_ENUM, TYPE_TYPEDEF };
	int64_t v;
	type_id t;

	for (uint32_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (type_lookup(g, NULL, kinds[k], name, &t))
			ask(g, a, t);
	}
	if (type_kernel_func(g, name, &t))
		ask(g, a, t);
	if (type_kernel_var(g, name, &t))
		ask(g, a, t);
	type_enumerator(g, name, &v, &t);
	type_kernel_tracepoint(g, name, &t);
	type_parse_name(g, name, &t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;
	char path[32];
	struct type_graph *g;
	struct btf_file f;
	struct err *note = NULL, *e;
	struct arena a;

	if (size > INPUT_MAX)
		return 0;
	input = data;
	input_len = size;
	fd = memfd_create("btf", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	g = type_graph_new();
	arena_init(&a);
	type_use_kernel(g, path);
	type_kernel_tracepoints(g, on_tracepoint, g);
	e = btf_open(&f, path, NULL, &note);
	if (!e) {
		for (uint32_t id = 1; id < btf_end(&f) && id <= NAMES_MAX; id++)
			ask_name(g, &a, btf_str(&f, btf_type(&f, id)->name_off));
		btf_close(&f);
	}
	err_free(e);
	err_free(note);
	arena_fini(&a);
	type_graph_free(g);
	close(fd);
	return 0;
}
