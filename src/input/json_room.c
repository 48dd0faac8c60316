/* Estimates the memory of a JSON document before jansson reads it, and refuses one that takes too
 * much. */
#include "input/json_room.h"

#include <errno.h>
#include <string.h>

#include "base/meminfo.h"

/* Bytes that jansson 2.14 and malloc(3) take, about: an object with its table, an array with its
 * first eight places, and any other value with its place; a text has its bytes besides. */
enum { OBJECT = 240, ARRAY = 136, VALUE = 48, TEXT = 44 };
/* A document of n bytes may take ROOM_FREE + n * ROOM_PER_BYTE. A profile takes up to 43 times its
 * size, for stacks of two frames. */
enum { ROOM_FREE = 256 << 20, ROOM_PER_BYTE = 48 };

/* Returns the position of a text's last quote, from that of its first. */
static size_t skip_text(const char *text, size_t n, size_t at)
{
	for (at++; at < n && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at;
}

static uint64_t memory_of(const char *text, size_t n)
{
	uint64_t ret = VALUE;

	for (size_t i = 0; i < n; i++)
		switch (text[i]) {
		case '{': ret += OBJECT; break;
		case '[': ret += ARRAY; break;
		case ',':
		case ':': ret += VALUE; break;
		case '"': {
			const size_t end = skip_text(text, n, i);

			ret += TEXT + (end - i);
			i = end;
			break;
		}
		default: break;
		}
	return ret;
}

struct err *json_room(const char *text, size_t n)
{
	const uint64_t needs = memory_of(text, n), free = meminfo_available();

	if (needs <= ROOM_FREE + (uint64_t)n * ROOM_PER_BYTE && (!free || needs <= free / 2))
		return NULL;
	return err_new(ENOMEM,
		       "the JSON document would take %llu MB of memory, which is too much for one "
		       "of %zu MB",
		       (unsigned long long)(needs >> 20), n >> 20);
}
