/* Prototype files of any bytes. Checks: prototypes that were read can be printed, and reading the
 * print gives the same prototypes. A value of any type prints from any bytes, within bounds.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <string.h>

#include "program/prototype/prototype.h"

/* Calls of the function's values: registers and memory are the input's own bytes. */
static void print_values(const struct prototype *f, const uint8_t *data, size_t size)
{
	const uint64_t args[] = { 3, 1, UINT64_MAX, 2 };
	struct prototype_memory m = { data, (uint32_t)(size > 300 ? 300 : size), size > 300 };
	struct out o;

	out_init(&o, NULL);
	for (uint32_t i = 0; i < f->nparams; i++) {
		const struct prototype_values v = { .args = args,
						    .nargs = 4,
						    .result = size,
						    .returned = size & 1,
						    .max_elements = 4 };
		uint8_t *own = xmemdup(data, m.n + 1); /* its end is watched */

		m.bytes = own;
		o.n = 0;
		prototype_value(&o, f->params[i].type, 0x1234, &m, &v);
		prototype_value(&o, f->params[i].type, 0, NULL, &v);
		(void)prototype_pointed(f->params[i].type, &v);
		assert(o.n < 1 << 20);
		free(own);
	}
	out_fini(&o);
}

static void print_again(const struct prototype *f)
{
	struct prototypes p;
	const struct prototype *again;
	struct out a, b;

	out_init(&a, NULL);
	out_init(&b, NULL);
	prototypes_init(&p);
	prototype_print(&a, f);
	if (a.n < 4096 && !memmem(a.v, a.n, "...", 3)) {
		prototypes_read(&p, "again", a.v, a.n, NULL, NULL);
		again = prototypes_find(&p, f->name);
		if (again) { /* names of types may be nested deeper than text may */
			prototype_print(&b, again);
			assert(a.n == b.n && !memcmp(a.v, b.v, a.n));
		}
	}
	prototypes_fini(&p);
	out_fini(&a);
	out_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prototypes p;
	uint32_t at = 0;
	const void *key;
	size_t len;
	uint64_t *v;

	if (!size || size > 4096)
		return 0;
	prototypes_init(&p);
	prototypes_read(&p, "fuzz", (const char *)data, size, NULL, NULL);
	while (hash_next(&p.functions, &at, &key, &len, &v)) {
		const struct prototype *f = (const struct prototype *)(uintptr_t)*v;

		print_again(f);
		print_values(f, data, size - 1);
	}
	prototypes_fini(&p);
	return 0;
}
