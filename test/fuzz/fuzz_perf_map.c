/* Perf maps of JITs, of any text: a function that is found covers the address. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "program/symbol/symbol_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As long as it says, so that a read behind it is seen. */
static char *copy(const uint8_t *data, size_t size)
{
	char *text = xmalloc(size ? size : 1);

	if (size)
		memcpy(text, data, size);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols s = { 0 };
	struct process p = { 0 };
	uint32_t n;

	jit_parse(&s, &p, copy(data, size), size);
	n = p.jit.n;
	for (uint32_t i = 0; i < n && i < 64; i++) {
		const struct jit_symbol *j = jit_search(&p, p.jit.v[i].start + p.jit.v[i].size / 2);

		assert(!i || p.jit.v[i - 1].start <= p.jit.v[i].start);
		assert(p.jit.v[i].name >= p.jit_text &&
		       p.jit.v[i].name + p.jit.v[i].len <= p.jit_text + size);
		assert(!j || p.jit.v[i].start + p.jit.v[i].size / 2 - j->start < j->size);
	}
	jit_search(&p, 0);
	jit_search(&p, UINT64_MAX);
	/* A second map replaces the first. */
	jit_parse(&s, &p, copy(data, size), size);
	assert(p.jit.n == n);
	jit_drop(&s, &p);
	return 0;
}
