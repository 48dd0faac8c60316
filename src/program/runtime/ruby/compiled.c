/* Recognises memory with code that Ruby's own compilers (YJIT, RJIT) have made. */
#include "program/runtime/ruby/ruby.h"

/* libffi has pages of code. YJIT of 3.1 maps 256 MB of it at once. Later ones reserve memory that
 * nobody may touch, and make code of its beginning, page by page. */
enum { CODE_MIN = 1 << 20, RESERVED_MIN = 8 << 20 /* bytes */ };

static bool is_anonymous(const struct mapping *m)
{
	return !m->inode && !*m->path;
}

bool ruby_compiled_is(const struct mapping *m)
{
	return m->exec && is_anonymous(m) && m->end - m->start >= CODE_MIN;
}

/* Returns true when m is the rest of a reservation that begins with the code of `code`. */
static bool is_reserved(const struct mapping *code, const struct mapping *m)
{
	return code->exec && is_anonymous(code) && is_anonymous(m) && code->end == m->start &&
	       !m->read && !m->write && !m->exec && m->end - m->start >= RESERVED_MIN;
}

bool ruby_compiled_in(const struct mappings *maps)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		if (m->exec && is_anonymous(m))
			n += m->end - m->start;
		if (i && is_reserved(m - 1, m))
			return true;
	}
	return n >= CODE_MIN;
}
