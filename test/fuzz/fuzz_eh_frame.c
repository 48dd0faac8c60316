/* Unwind tables from any bytes: as an ELF file, as .eh_frame, as .debug_frame, as an image of the
 * cache. The result must pass the check for images from disk, and be searchable. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "program/unwind/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void search(const struct unwind_image *u)
{
	uint64_t first = (uint64_t)u->head->first_page << WIRE_UNWIND_PAGE_SHIFT;
	char text[100];

	for (uint64_t i = 0; i < 64; i++)
		unwind_rule_format(unwind_image_rule(u, first + i * 0x3fff), text, sizeof(text));
}

static void as_file(const uint8_t *data, size_t size)
{
	struct unwind_image *u, *again;
	struct object *o;
	struct err *e = object_open_memory("fuzz", data, size, &o);

	if (e) {
		err_free(e);
		return;
	}
	e = unwind_image_build(o, &u);
	if (!e) {
		if (unwind_image_parse("made", u->head, u->size, &again))
			abort();
		search(again);
		unwind_image_free(again);
		unwind_image_free(u);
	}
	err_free(e);
	object_free(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_image *u;
	struct cfi c;
	struct err *e;

	as_file(data, size);
	for (int eh = 0; eh < 2; eh++) {
		cfi_read(&c, "fuzz", data, size, 0x1000, eh);
		for (uint32_t i = 0; i < c.funcs.n; i++) {
			const struct cfi_func *f = &c.funcs.v[i];

			if (f->end <= f->start || !f->n || f->first + f->n > c.rows.n ||
			    c.rows.v[f->first].addr != f->start)
				abort();
		}
		cfi_fini(&c);
	}
	e = unwind_image_parse("fuzz", data, size, &u);
	if (!e) {
		search(u);
		unwind_image_free(u);
	}
	err_free(e);
	return 0;
}
