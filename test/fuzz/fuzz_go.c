/* Go's table of functions: any bytes as the section of an ELF file. The functions lie in the text,
 * in order, and their unwind image is valid.
 *
 * Layout: one byte of flags, the section. Flag 1: with a relocation for the text's start; 2:
 * position independent; 4: linked by the system's linker. */
#include <stdlib.h>

#include "go_make.h"
#include "program/object/go.h"
#include "program/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_table(const struct object *o)
{
	struct go_table t;
	uint64_t last = GO_TEXT;

	if (!go_table_read(o, &t))
		return;
	for (uint32_t i = 0; i < t.functions.n; i++) {
		const struct go_function *f = &t.functions.v[i];
		struct go_depth d = { 0 };
		uint64_t at = f->start;

		if (f->start < last || f->end <= f->start || f->end > GO_TEXT + GO_TEXT_SIZE ||
		    !f->name[0])
			abort();
		last = f->end;
		for (; go_depth_next(&t, f, &d); at = d.end)
			if (d.addr != at || d.end <= d.addr || d.end > f->end)
				abort();
	}
	go_table_fini(&t);
}

static void check_image(struct object *o)
{
	struct unwind_image *u, *again;

	if (unwind_image_build(o, &u) || unwind_image_parse("made", u->head, u->size, &again))
		abort();
	for (uint64_t at = GO_TEXT; at < GO_TEXT + GO_TEXT_SIZE; at += 0xff1)
		(void)unwind_image_rule(again, at);
	unwind_image_free(again);
	unwind_image_free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct go_making e;
	struct object *o;

	if (!size)
		return 0;
	e = go_make_elf(data + 1, size - 1,
			data[0] & 4   ? GO_SYSTEM
			: data[0] & 2 ? GO_PIE
				      : GO_FIXED,
			data[0] & 1 ? GO_TEXT : 0);
	if (object_open_memory("fuzz", e.p, e.n, &o))
		abort();
	check_table(o);
	check_image(o);
	for (uint64_t at = GO_TEXT; at < GO_TEXT + GO_TEXT_SIZE; at += 0x1ff1)
		(void)object_find_addr(o, at);
	object_free(o);
	free(e.p);
	return 0;
}
