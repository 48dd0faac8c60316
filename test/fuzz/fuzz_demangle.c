/* Mangled names in hostile symbol tables: demangling ends soon, and its result can be shown. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "program/symbol/symbol_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols *s = symbols_new();
	char *name = xstrndup((const char *)data, size), *text;

	assert(*symbols_demangle(s, name) || !*name);
	/* Without the check of the name's beginning. */
	text = symbol_demangle(name);
	assert(!text || strlen(text) < 1 << 20);
	free(text);
	text = symbol_demangle_short(name);
	assert(!text || strlen(text) < 1 << 20);
	free(text);
	free(name);
	symbols_free(s);
	return 0;
}
