/* Reads the memory of the JVM. */

#include "program/runtime/jvm/jvm.h"

bool jvm_word(const struct jvm *j, uint64_t addr, uint64_t *ret)
{
	return space_word(j->runtime.space, addr, ret);
}

bool jvm_read(const struct jvm *j, uint64_t addr, struct jvm_member m, int64_t *ret)
{
	uint64_t v = 0;
	uint32_t shift = 64 - 8u * m.width;

	if (!m.width || !addr ||
	    space_read_some(j->runtime.space, addr + m.at, &v, m.width) != m.width)
		return false;
	*ret = (int64_t)(v << shift) >> shift;
	return true;
}

uint64_t jvm_get(const struct jvm *j, uint64_t addr, struct jvm_member m)
{
	int64_t v;

	if (!jvm_read(j, addr, m, &v))
		return 0;
	return m.width < 8 ? (uint64_t)v & ((1ull << 8 * m.width) - 1) : (uint64_t)v;
}

bool jvm_afford(struct jvm *j, size_t n)
{
	return runtime_afford(&j->runtime, &j->budget, n);
}

char *jvm_text(struct jvm *j, uint64_t addr, uint32_t n)
{
	char *text;

	if (!jvm_afford(j, n + 1))
		return NULL;
	text = arena_alloc(&j->names, n + 1);
	if (space_read_some(j->runtime.space, addr, text, n) != n)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
	return text;
}

/* Reads up to five bytes of six bits each, the lowest first. The first byte below the limit is the
 * last. */
uint32_t jvm_number(uint32_t excluded, const uint8_t *p, uint32_t n, uint32_t *i)
{
	const uint32_t limit = 256 - 64 - excluded;
	uint32_t sum = 0;

	for (uint32_t k = 0; k < 5 && *i < n; k++) {
		uint32_t digit = (uint32_t)p[(*i)++] - excluded;

		sum += digit << 6 * k;
		if (digit < limit)
			break;
	}
	return sum;
}
