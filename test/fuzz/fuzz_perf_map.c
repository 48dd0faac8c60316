/* Perf maps of JITs: any text; what is found covers the address. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "program/symbol/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols *s = symbols_new();
	struct process p = { 0 };
	char *text = xstrndup((const char *)data, size);
	uint32_t n;

	jit_parse(s, &p, text);
	n = p.jit.n;
	for (uint32_t i = 0; i < n && i < 64; i++) {
		const struct jit_symbol *j = jit_search(&p, p.jit.v[i].start + p.jit.v[i].size / 2);

		assert(!i || p.jit.v[i - 1].start <= p.jit.v[i].start);
		assert(!j || p.jit.v[i].start + p.jit.v[i].size / 2 - j->start < j->size);
	}
	jit_search(&p, 0);
	jit_search(&p, UINT64_MAX);
	/* A second map takes the place of the first. */
	jit_parse(s, &p, text);
	assert(p.jit.n == n);
	vec_fini(&p.jit);
	free(text);
	symbols_free(s);
	return 0;
}
