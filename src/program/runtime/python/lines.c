/* Reads the line tables of code objects: finds an instruction's line. */
#include "program/runtime/python/python.h"

#include "base/sorted.h"

/* Reads an entry of a table of byte pairs: bytes of code, and lines, to step forward
 * (Objects/lnotab_notes.txt); or bytes of code, and the distance of their line from the line before
 * (PEP 626), where -128 says that the bytes have no line. */
static bool pair(enum python_lines how, const uint8_t *t, uint32_t n, struct python_line_mark *m,
		 bool *ret_none)
{
	uint8_t lines;

	if (m->at + 1 >= n)
		return false;
	m->end += t[m->at];
	lines = t[m->at + 1];
	m->at += 2;
	*ret_none = how == PYTHON_LINETABLE && (int8_t)lines == -128;
	if (!*ret_none)
		m->line += how == PYTHON_LNOTAB_UNSIGNED ? lines : (uint32_t)(int8_t)lines;
	return true;
}

enum { GROUPS = 6 }; /* of a number; what stands behind them belongs to none */

/* Reads a number in groups of six bits, the lowest first. Bit 6 is set when a group follows. */
static uint32_t varint(const uint8_t *t, uint32_t n, uint32_t *i)
{
	uint32_t v = 0;

	for (uint32_t k = 0; k < GROUPS && *i < n; k++) {
		uint8_t b = t[(*i)++];

		v |= (uint32_t)(b & 63) << k * 6;
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

/* Goes on to the beginning of the next entry: a byte that has bit 7 set. */
static void skip_columns(const uint8_t *t, uint32_t n, struct python_line_mark *m)
{
	while (m->at && m->at < n && !(t[m->at] & 0x80))
		m->at++;
}

/* Reads an entry of a location table. Its first byte holds the kind and the number of
 * instructions - 1. */
static bool location(const uint8_t *t, uint32_t n, struct python_line_mark *m, bool *ret_none)
{
	uint8_t first, kind;

	skip_columns(t, n, m);
	if (m->at >= n)
		return false;
	first = t[m->at++];
	kind = first >> 3 & 15;
	if (kind == NO_COLUMNS || kind == LONG)
		m->line += (uint32_t)signed_varint(t, n, &m->at);
	else if (kind > SHORT_END && kind <= ONE_LINE_END)
		m->line += kind - SHORT_END - 1u;
	m->end += ((first & 7) + 1u) * 2;
	*ret_none = kind == NONE;
	return true;
}

/* Reads the entry at *m, and moves *m behind it. Returns false at the end of the table. */
static bool next_entry(enum python_lines how, const uint8_t *t, uint32_t n,
		       struct python_line_mark *m, bool *ret_none)
{
	return how == PYTHON_LOCATIONS ? location(t, n, m, ret_none) : pair(how, t, n, m, ret_none);
}

uint32_t python_lines_marks(enum python_lines how, const uint8_t *table, uint32_t n,
			    uint32_t first_line, struct python_line_mark *ret)
{
	struct python_line_mark m = { .line = first_line };
	uint32_t k = 0;
	bool none;

	ret[k++] = m;
	while (next_entry(how, table, n, &m, &none)) {
		if (how == PYTHON_LOCATIONS)
			skip_columns(table, n, &m);
		if (m.at - ret[k - 1].at >= PYTHON_LINE_MARK)
			ret[k++] = m;
	}
	return k;
}

uint32_t python_lines_find(enum python_lines how, const uint8_t *table, uint32_t n,
			   const struct python_line_mark *marks, uint32_t nmarks, uint32_t at)
{
	const uint32_t k = partition_point(nmarks, i, marks[i].end <= at);
	const bool notes = how == PYTHON_LNOTAB || how == PYTHON_LNOTAB_UNSIGNED;
	struct python_line_mark m = marks[k - 1]; /* the first one ends at 0 */
	uint32_t before = m.line;
	bool none;

	for (; next_entry(how, table, n, &m, &none); before = m.line)
		if (at < m.end)
			return notes ? before : none ? 0 : m.line;
	return notes ? m.line : 0;
}
