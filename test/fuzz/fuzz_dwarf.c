/* Source lines and inlined functions of hostile files: libdw ends with any result, and names can be
 * read. */
#define _GNU_SOURCE
#include <string.h>

#include "base/mem.h"
#include "input_file.h"
#include "program/symbol/symbol_private.h"

static volatile size_t sink;

static void look(struct symbols *s, struct object *o, uint64_t addr)
{
	const struct source_place *at;
	uint32_t n = object_source(s, o, addr, &at);

	for (uint32_t i = 0; i < n; i++)
		sink += (at[i].function ? strlen(at[i].function) : 0) +
			(at[i].file ? strlen(at[i].file) : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[INPUT_PATH];
	int fd = input_file(data, size, path);
	struct object *o;
	uint64_t off, n, addr;
	struct err *e;

	e = object_open(path, &o);
	if (!e) {
		struct symbols *s = symbols_new();

		for (uint32_t i = 0; i < 2 && object_text_segment(o, i, &off, &n, &addr); i++)
			for (uint32_t k = 0; k < 24; k++)
				look(s, o, addr + n / 24 * k + k);
		object_find_addr(o, 0x1000); /* symbols: debuglink, .gnu_debugdata */
		symbols_free(s);
		object_free(o);
	}
	err_free(e);
	close(fd);
	return 0;
}
