/* Ruby's objects: flags, Strings, Arrays. */

#include "base/characters.h"
#include "program/runtime/ruby/ruby.h"

enum {
	TEXT_MAX = 4096, /* bytes of a name; longer ones are cut */
	TYPE_MASK = 0x1f,
	IMEMO_SHIFT = 12,
	/* of a String: bit 13 is set when its bytes are elsewhere; of an Array: bit 13 is clear
	 * when its items are elsewhere */
	USER1 = 1 << 13,
	STRING_LENGTH_SHIFT = 14,
	STRING_LENGTH_MASK = 31,
	ARRAY_LENGTH_SHIFT = 15,
	/* offsets in String and Array */
	LENGTH = 16,
	STRING_POINTER = 24,
	ARRAY_POINTER = 32,
	EMBEDDED = 16,
	EMBEDDED_BEHIND_LENGTH = 24,
};

bool ruby_word(const struct ruby *r, uint64_t addr, uint64_t *ret)
{
	return space_word(r->runtime.space, addr, ret);
}

bool ruby_afford(struct ruby *r, size_t n)
{
	return runtime_afford(&r->runtime, &r->budget, n);
}

bool ruby_object(const struct ruby *r, uint64_t value, uint64_t *ret_flags)
{
	/* nil, true, numbers and symbols are no addresses */
	return value > 16 && !(value & 7) && ruby_word(r, value, ret_flags);
}

bool ruby_is(const struct ruby *r, uint64_t value, uint32_t type)
{
	uint64_t flags;

	return ruby_object(r, value, &flags) && (flags & TYPE_MASK) == type;
}

int ruby_imemo(const struct ruby *r, uint64_t value)
{
	uint64_t flags;

	if (!ruby_object(r, value, &flags) || (flags & TYPE_MASK) != RUBY_IMEMO)
		return -1;
	return flags >> IMEMO_SHIFT & 15;
}

bool ruby_string_bytes(const struct ruby *r, uint64_t string, uint64_t *ret_addr, uint64_t *ret_n)
{
	uint64_t flags;

	if (!ruby_object(r, string, &flags) || (flags & TYPE_MASK) != RUBY_STRING)
		return false;
	if (r->layout.length_in_flags && !(flags & USER1)) {
		*ret_n = flags >> STRING_LENGTH_SHIFT & STRING_LENGTH_MASK;
		*ret_addr = string + EMBEDDED;
		return true;
	}
	if (!ruby_word(r, string + LENGTH, ret_n))
		return false;
	*ret_addr = string + EMBEDDED_BEHIND_LENGTH;
	return !(flags & USER1) || ruby_word(r, string + STRING_POINTER, ret_addr);
}

const char *ruby_text(struct ruby *r, uint64_t string)
{
	uint64_t addr, n;
	char *text;

	if (!ruby_string_bytes(r, string, &addr, &n))
		return NULL;
	n = n < TEXT_MAX ? n : TEXT_MAX;
	if (!ruby_afford(r, n + 1))
		return NULL;
	text = arena_alloc(&r->names, n + 1); /* is zeroed */
	if (space_read_some(r->runtime.space, addr, text, (uint32_t)n) != n)
		return NULL;
	characters_show(text, n);
	return text;
}

/* Finds the items of an Array. */
static bool array_items(const struct ruby *r, uint64_t array, uint64_t *ret_addr, uint64_t *ret_n)
{
	uint64_t flags;

	if (!ruby_object(r, array, &flags) || (flags & TYPE_MASK) != RUBY_ARRAY)
		return false;
	if (flags & USER1) {
		*ret_n = flags >> ARRAY_LENGTH_SHIFT & r->layout.array_embedded;
		*ret_addr = array + EMBEDDED;
		return true;
	}
	return ruby_word(r, array + LENGTH, ret_n) && ruby_word(r, array + ARRAY_POINTER, ret_addr);
}

uint32_t ruby_array_length(const struct ruby *r, uint64_t array)
{
	uint64_t addr, n;

	return array_items(r, array, &addr, &n) && n <= UINT32_MAX ? (uint32_t)n : 0;
}

bool ruby_array_item(const struct ruby *r, uint64_t array, uint32_t i, uint64_t *ret)
{
	uint64_t addr, n;

	return array_items(r, array, &addr, &n) && i < n &&
	       ruby_word(r, addr + (uint64_t)i * 8, ret);
}
