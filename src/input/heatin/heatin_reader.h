/* The reader of one format, and functions that readers share. */
#ifndef DESCRY_INPUT_HEATIN_HEATIN_READER_H
#define DESCRY_INPUT_HEATIN_HEATIN_READER_H

#include <string.h>

#include "input/heatin/heatin.h"

struct heatin_reader {
	/* Returns true when an input with this beginning has the format. */
	bool (*recognise)(const char *text, size_t len);
	size_t state_size;
	/* Takes whole lines: text[len - 1] is '\n'. They are not valid after the call. Counts
	 * in->lines. */
	void (*lines)(struct heatin *in, const char *text, size_t len);
	void (*end)(struct heatin *in);  /* may be NULL */
	void (*fini)(struct heatin *in); /* may be NULL */
};

#define FORMAT(id, reader, name, of) extern const struct heatin_reader heatin_##reader;
#include "input/heatin/formats.def"
#undef FORMAT

/* Notes that the line just counted is no event. */
void heatin_skip(struct heatin *in);
/* Reads a line without its newline as an event. Returns false when it is none. */
bool heatin_event_line(struct heatin *in, const char *line, size_t len);
/* Returns the matrix, which is made at the first event or bucket. */
struct matrix *heatin_matrix(struct heatin *in, bool buckets);
/* Returns the series of this name, or that of events without a name. */
uint32_t heatin_series(struct matrix *m, const char *name, size_t len);

/* The keys of a row of an aggregation, divided into time, series and who. */
struct heatin_keys {
	bool has_time;
	uint64_t time; /* nanoseconds */
	uint32_t n;    /* keys but the time */
	VEC(char) series;
	VEC(char) who;
};
void keys_begin(struct heatin_keys *k);
/* number: the key is a number, and text is its printed form. */
void keys_add(struct heatin *in, struct heatin_keys *k, const char *text, size_t len, bool number);
/* Returns the party. Its series is the aggregation's name when no key gives one. */
struct heatin_party keys_party(const struct heatin_keys *k, const char *agg, size_t agg_len);
void keys_fini(struct heatin_keys *k);

static inline bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads the decimal digits at p. Returns their end, or NULL when there are none or more than 19.
 * Reads on to `limit`, where the bytes end, eight bytes at a time, and shifts out the bytes from
 * the first on that is no digit. */
static inline const char *scan_digits(const char *p, const char *limit, uint64_t *ret)
{
	static const uint32_t tens[] = { 1,      10,      100,      1000,     10000,
					 100000, 1000000, 10000000, 100000000 };
	const char *start = p;
	uint64_t v = 0;

	while (limit - p >= 8) {
		uint64_t x, other;
		unsigned n;

		memcpy(&x, p, 8);
		x ^= 0x3030303030303030u;
		other = (((x & 0x7f7f7f7f7f7f7f7fu) + 0x7676767676767676u) | x) &
			0x8080808080808080u;
		n = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
		if (!n || p - start + n > 19)
			break;
		x <<= (8 - n) * 8;
		x = x * 10 + (x >> 8);
		x = ((x & 0x000000ff000000ffu) * 0x000f424000000064u +
		     (x >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u) >>
		    32;
		v = v * tens[n] + x;
		p += n;
		if (n < 8) {
			*ret = v;
			return p;
		}
	}
	while (p < limit && *p >= '0' && *p <= '9') {
		if (p - start >= 19)
			return NULL;
		v = v * 10 + (uint64_t)(*p++ - '0');
	}
	if (p == start)
		return NULL;
	*ret = v;
	return p;
}

/* Reads all of s as a number, with or without a sign. */
bool heatin_integer(const char *s, size_t n, int64_t *ret);

#endif
