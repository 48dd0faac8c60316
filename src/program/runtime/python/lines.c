/* Reads the line tables of code objects: finds an instruction's line. */
#include "program/runtime/python/python.h"

/* Reads a table of byte pairs: bytes of code, and lines, to step forward
 * (Objects/lnotab_notes.txt). */
static uint32_t lnotab(const uint8_t *t, uint32_t n, uint32_t line, uint32_t at, bool backwards)
{
	uint32_t addr = 0;

	for (uint32_t i = 0; i + 1 < n; i += 2) {
		addr += t[i];
		if (addr > at)
			break;
		line += backwards ? (uint32_t)(int8_t)t[i + 1] : t[i + 1];
	}
	return line;
}

/* Reads a table of byte pairs (PEP 626): bytes of code, and the distance of their line from the
 * line before; -128: the bytes have no line. */
static uint32_t linetable(const uint8_t *t, uint32_t n, uint32_t line, uint32_t at)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i + 1 < n; i += 2) {
		int8_t delta = (int8_t)t[i + 1];

		end += t[i];
		if (delta != -128)
			line += (uint32_t)delta;
		if (at < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/* Reads a number in groups of six bits, the lowest first. Bit 6 is set when a group follows. */
static uint32_t varint(const uint8_t *t, uint32_t n, uint32_t *i)
{
	uint32_t v = 0, shift = 0;

	while (*i < n) {
		uint8_t b = t[(*i)++];

		if (shift < 32)
			v |= (uint32_t)(b & 63) << shift;
		shift += 6;
		if (!(b & 64))
			break;
	}
	return v;
}

static int32_t signed_varint(const uint8_t *t, uint32_t n, uint32_t *i)
{
	uint32_t v = varint(t, n, i);

	return v & 1 ? -(int32_t)(v >> 1) : (int32_t)(v >> 1);
}

/* Kinds of entries of a location table (Objects/locations.md). */
enum { SHORT_END = 9, ONE_LINE_END = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };

/* Reads a location table. An entry begins with a byte that has bit 7 set; the byte holds the kind
 * and the number of instructions - 1. */
static uint32_t locations(const uint8_t *t, uint32_t n, uint32_t line, uint32_t at)
{
	uint32_t end = 0, i = 0;

	while (i < n) {
		uint8_t first = t[i++], kind = first >> 3 & 15;

		if (kind == NO_COLUMNS || kind == LONG)
			line += (uint32_t)signed_varint(t, n, &i);
		else if (kind > SHORT_END && kind <= ONE_LINE_END)
			line += kind - SHORT_END - 1u;
		end += ((first & 7) + 1u) * 2;
		if (at < end)
			return kind == NONE ? 0 : line;
		while (i < n && !(t[i] & 0x80))
			i++;
	}
	return 0;
}

uint32_t python_lines_find(enum python_lines how, const uint8_t *table, uint32_t n,
			   uint32_t first_line, uint32_t at)
{
	switch (how) {
	case PYTHON_LNOTAB_UNSIGNED: return lnotab(table, n, first_line, at, false);
	case PYTHON_LNOTAB: return lnotab(table, n, first_line, at, true);
	case PYTHON_LINETABLE: return linetable(table, n, first_line, at);
	case PYTHON_LOCATIONS: return locations(table, n, first_line, at);
	}
	return 0;
}
