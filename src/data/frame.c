/* Holds the names of frame kinds, and their marks in folded text. */
#include "data/frame.h"

#include <string.h>

#include "base/mem.h"

enum { MARK_LEN = 4 };

static const char *const marks[] = {
	[FRAME_NATIVE] = "",  [FRAME_KERNEL] = "_[k]", [FRAME_INLINED] = "_[i]",
	[FRAME_JIT] = "_[j]", [FRAME_PYTHON] = "_[p]", [FRAME_RUBY] = "_[r]",
	[FRAME_JAVA] = "",    [FRAME_JAVASCRIPT] = "", [FRAME_WAKER] = "_[w]",
	[FRAME_END] = "",
};

static const char *const names[] = {
	[FRAME_NATIVE] = "native", [FRAME_KERNEL] = "kernel",         [FRAME_INLINED] = "inlined",
	[FRAME_JIT] = "jit",       [FRAME_PYTHON] = "python",         [FRAME_RUBY] = "ruby",
	[FRAME_JAVA] = "java",     [FRAME_JAVASCRIPT] = "javascript", [FRAME_WAKER] = "waker",
	[FRAME_END] = "end",
};

const char *frame_kind_name(enum frame_kind kind)
{
	return names[kind];
}

bool frame_is_language(enum frame_kind kind)
{
	return kind == FRAME_PYTHON || kind == FRAME_RUBY || kind == FRAME_JAVA ||
	       kind == FRAME_JAVASCRIPT;
}

enum frame_kind frame_kind_of_language(const char *language)
{
	for (enum frame_kind k = 0; k < ARRAY_SIZE(names); k++)
		if (frame_is_language(k) && !strcmp(names[k], language))
			return k;
	return FRAME_NATIVE;
}

const char *frame_mark(enum frame_kind kind)
{
	return marks[kind];
}

enum frame_kind frame_kind_of_text(const char *text, size_t *len)
{
	if (*len < MARK_LEN || text[*len - 1] != ']')
		return FRAME_NATIVE;
	for (enum frame_kind k = 0; k < ARRAY_SIZE(marks); k++)
		if (*marks[k] && !memcmp(text + *len - MARK_LEN, marks[k], MARK_LEN)) {
			*len -= MARK_LEN;
			return k;
		}
	return FRAME_NATIVE;
}
