/* The readers of stacks: any bytes, in one piece and in many, as each format. The readers open no
 * file that the input names. */
#include <stdint.h>
#include <stdlib.h>

#include "input/stackin/stackin.h"
#include "render/folded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t read_as(enum stackin_format format, const uint8_t *data, size_t size, size_t piece)
{
	struct stackin_options o = {
		.format = format, .no_symbols = true, .kernel = true, .jit = true
	};
	struct stacktree t;
	struct stackin in;
	struct out out = { 0 };
	struct err *e;
	uint64_t total;

	stacktree_init(&t);
	stackin_init(&in, &t, &o);
	for (size_t i = 0; i < size; i += piece)
		stackin_feed(&in, (const char *)data + i, size - i < piece ? size - i : piece);
	e = stackin_end(&in);
	stackin_fini(&in);
	stacktree_finish(&t);
	total = e ? 0 : t.nodes.v[STACKTREE_ROOT].total;
	if (t.nodes.n < 10000)
		folded_write(&t, FOLDED_WHOLE, &out);
	out_fini(&out);
	stacktree_fini(&t);
	err_free(e);
	return total;
}

/* The first byte chooses the format; 0: as recognised. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum stackin_format format;
	uint64_t whole;

	if (!size)
		return 0;
	format = (enum stackin_format)(data[0] % STACKIN_NFORMATS);
	data++;
	size--;
	whole = read_as(format, data, size, size ? size : 1);
	if (size > 2 && whole != read_as(format, data, size, 2 + size % 61))
		abort(); /* the division into pieces changes nothing */
	return 0;
}
