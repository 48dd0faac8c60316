/* ELF reader: headers, symbols, .gnu_debugdata, USDT notes and their operands, for any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/usdt.h"
#include "program/object/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct object *o;
	struct err *e = object_open_memory("fuzz", data, size, &o);
	const struct object_symbol *s;
	const struct object_usdt *u;
	uint32_t n, len;
	uint64_t v;

	if (e) {
		err_free(e);
		return 0;
	}
	s = object_symbols(o, &n);
	for (uint32_t i = 0; i < n && i < 1000; i++) {
		const struct object_symbol *found = object_find_addr(o, s[i].addr);
		const char *reason;
		uint8_t code[16];

		if (found && (s[i].addr < found->addr || s[i].addr - found->addr >= found->size))
			abort();
		uprobe_classify(code, object_read(o, s[i].addr, code, sizeof(code)), &len, &reason);
		if (object_addr_to_offset(o, s[i].addr, &v))
			object_offset_to_addr(o, v, &v);
		if (i < 10 && !object_find_name(o, s[i].name))
			abort();
	}
	u = object_usdts(o, &n);
	for (uint32_t i = 0; i < n && i < 100; i++) {
		const char *text = u[i].args, *start;
		size_t chars;

		while (usdt_next_operand(&text, &start, &chars)) {
			struct usdt_operand op;
			const char *reason;

			usdt_parse_operand(start, chars, o, u[i].addr, &op, &reason);
		}
	}
	object_symbol_value(o, "main", &v);
	object_build_id(o, &n);
	object_is_go(o);
	object_free(o);
	return 0;
}
