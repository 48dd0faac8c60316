/* Scripts: their names, and the lines of their sources. */
#include <string.h>

#include "program/runtime/v8/v8.h"
#include "wire/language.h"

enum { CHUNK = 1 << 15, ENDS_MAX = 1 << 22 };

/* Reads the source and notes the ends of its lines. As in V8's own line numbers, \r\n is one
 * end. */
struct reader {
	struct v8 *v;
	VEC(uint32_t) ends;
	bool cr; /* the previous character was \r */
};

static void scripts_take(struct reader *r, uint32_t c, uint32_t position)
{
	if (r->cr && c != '\n')
		vec_push(&r->ends, position - 1);
	r->cr = c == '\r';
	if (c == '\n' || c == 0x2028 || c == 0x2029)
		vec_push(&r->ends, position);
}

static bool read_source(struct reader *r, const struct v8_string *s)
{
	uint32_t width = s->wide ? 2 : 1, n;
	uint8_t *bytes = xmalloc(CHUNK);
	bool ok = true;

	for (uint32_t at = 0; ok && at < s->length; at += n) {
		n = s->length - at < CHUNK / width ? s->length - at : CHUNK / width;
		ok = r->ends.n < ENDS_MAX && r->v->work >= n * width &&
		     space_read_some(r->v->runtime.space, s->address + (uint64_t)at * width, bytes,
				     n * width) == n * width;
		if (!ok)
			break;
		r->v->work -= n * width;
		for (uint32_t i = 0; i < n; i++)
			scripts_take(r,
				     s->wide ? (uint32_t)(bytes[i * 2] | bytes[i * 2 + 1] << 8)
					     : bytes[i],
				     at + i);
	}
	free(bytes);
	return ok;
}

static void read_lines(struct v8 *v, uint64_t address, struct v8_script *ret)
{
	struct reader r = { .v = v };
	struct v8_string s;

	if (v8_string_open(v, v8_get(v, address, (uint32_t)v->n.script_source), &s) &&
	    read_source(&r, &s) && v8_afford(v, (r.ends.n + 1) * sizeof(uint32_t))) {
		uint32_t *ends = arena_array(&v->names, uint32_t, r.ends.n + 1);

		if (r.ends.n)
			memcpy(ends, r.ends.v, r.ends.n * sizeof(uint32_t));
		ends[r.ends.n] = s.length;
		ret->ends = ends;
		ret->n = r.ends.n + 1;
	}
	vec_fini(&r.ends);
}

/* A module's name is a URL. */
static const char *without_scheme(const char *name)
{
	return name && !strncmp(name, "file://", 7) ? name + 7 : name;
}

uint64_t v8_script_number(const struct v8 *v, uint64_t address)
{
	uint64_t source = v8_get(v, address, (uint32_t)v->n.script_source);
	uint64_t about = v8_is_pointer(source) ? v8_get(v, source, WIRE_V8_NAME) : 0;
	int32_t number;

	/* behind the ends of its lines */
	if (!v8_small(v8_get(v, address, (uint32_t)v->n.script_ends + 8), &number))
		return 0;
	return wire_language_v8_script((uint32_t)number, (uint32_t)(about >> 32));
}

const struct v8_script *v8_script(struct v8 *v, uint64_t address)
{
	const struct v8_key key = { address, v8_script_number(v, address) };
	const uint64_t *known = hash_get(&v->scripts, &key, sizeof(key));
	uint32_t at = (uint32_t)v->n.script_name;
	struct v8_script *s;

	if (known)
		return (const struct v8_script *)(uintptr_t)*known;
	if (!v8_afford(v, sizeof(*s)))
		return NULL;
	s = arena_new(&v->names, struct v8_script);
	*hash_put(&v->scripts, &key, sizeof(key), NULL) = (uintptr_t)s;
	s->file = without_scheme(v8_text(v, v8_get(v, address, at)));
	if (!v8_small(v8_get(v, address, at + 8), &s->line) || s->line < 0)
		s->line = 0;
	read_lines(v, address, s);
	return s;
}

uint32_t v8_script_line(const struct v8_script *s, uint32_t position)
{
	uint32_t lo = 0, hi = s->n;

	if (!s->n || position > s->ends[s->n - 1])
		return 0;
	while (lo < hi) { /* the first line that ends at or behind the position */
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->ends[mid] < position)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo + 1 + (uint32_t)s->line;
}
