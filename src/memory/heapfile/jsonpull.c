/* Reads JSON from front to end. */
#include "memory/heapfile/jsonpull.h"

#include <errno.h>
#include <string.h>

bool jsonpull_bad(struct jsonpull *j, const char *expected)
{
	if (!j->error)
		j->error = unpack_err(j->in);
	if (!j->error && unpack_need(j->in, 1))
		j->error = err_new(EBADMSG, "byte %llu: %s was expected",
				   (unsigned long long)unpack_offset(j->in), expected);
	if (!j->error)
		j->error = err_new(
			EBADMSG,
			"the file ends at byte %llu, where %s was expected: it is truncated",
			(unsigned long long)unpack_offset(j->in), expected);
	return false;
}

char jsonpull_peek(struct jsonpull *j)
{
	struct unpack *u = j->in;

	while (!j->error && unpack_need(u, 1)) {
		char c = (char)*u->pos;

		if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
			return c;
		u->pos++;
	}
	return 0;
}

bool jsonpull_take(struct jsonpull *j, char c)
{
	char text[4] = { '\'', c, '\'', 0 };

	if (jsonpull_peek(j) != c || !c)
		return jsonpull_bad(j, text);
	j->in->pos++;
	return true;
}

static void text_add(struct jsonpull *j, uint32_t c)
{
	if (j->n + 4 > JSONPULL_TEXT)
		return;
	if (c < 0x80) {
		j->text[j->n++] = (char)c;
	} else if (c < 0x800) {
		j->text[j->n++] = (char)(0xc0 | c >> 6);
		j->text[j->n++] = (char)(0x80 | (c & 63));
	} else {
		j->text[j->n++] = (char)(0xe0 | c >> 12);
		j->text[j->n++] = (char)(0x80 | (c >> 6 & 63));
		j->text[j->n++] = (char)(0x80 | (c & 63));
	}
}

/* What stands behind a backslash. */
static bool escape_read(struct jsonpull *j)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	struct unpack *u = j->in;
	const char *at;
	uint32_t c = 0;

	if (!unpack_need(u, 1))
		return jsonpull_bad(j, "the rest of a string");
	at = *u->pos ? strchr(from, (char)*u->pos) : NULL;
	if (*u->pos != 'u') {
		text_add(j, at ? (uint8_t)to[at - from] : *u->pos);
		u->pos++;
		return true;
	}
	if (!unpack_need(u, 5)) {
		u->pos = u->end;
		return jsonpull_bad(j, "the rest of a string");
	}
	for (int i = 1; i < 5; i++) {
		uint8_t d = u->pos[i];

		if (!((d >= '0' && d <= '9') || ((d | 32) >= 'a' && (d | 32) <= 'f')))
			return jsonpull_bad(j, "four hexadecimal digits");
		c = c << 4 | (d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
	}
	text_add(j, c);
	u->pos += 5;
	return true;
}

bool jsonpull_string(struct jsonpull *j)
{
	struct unpack *u = j->in;

	if (!jsonpull_take(j, '"'))
		return false;
	for (j->n = 0; unpack_need(u, 1);) {
		uint8_t c = *u->pos++;

		if (c == '"') {
			j->text[j->n] = 0;
			return true;
		}
		if (c == '\\') {
			if (!escape_read(j))
				return false;
		} else if (j->n < JSONPULL_TEXT) {
			j->text[j->n++] = (char)c;
		}
	}
	return jsonpull_bad(j, "the end of a string");
}

bool jsonpull_number(struct jsonpull *j, uint64_t *ret)
{
	struct unpack *u = j->in;
	char c = jsonpull_peek(j);
	uint64_t v = 0;

	if (c == '-')
		u->pos++;
	else if (c < '0' || c > '9')
		return jsonpull_bad(j, "a number");
	while (unpack_need(u, 1) && *u->pos >= '0' && *u->pos <= '9')
		v = v * 10 + (*u->pos++ - '0');
	while (unpack_need(u, 1) && *u->pos && strchr("+-.eE0123456789", *u->pos))
		u->pos++;
	*ret = v;
	return true;
}

bool jsonpull_skip(struct jsonpull *j)
{
	struct unpack *u = j->in;
	uint64_t depth = 0;

	do {
		char c = jsonpull_peek(j);

		if (c == '"') {
			if (!jsonpull_string(j))
				return false;
		} else if (c == '{' || c == '[') {
			depth++;
			u->pos++;
		} else if (c == '}' || c == ']') {
			if (!depth--)
				return jsonpull_bad(j, "a value");
			u->pos++;
		} else if (!c || !strchr(",:+-.0123456789truefalsnE", c)) {
			return jsonpull_bad(j, "a value");
		} else {
			while (unpack_need(u, 1) && *u->pos &&
			       strchr(",:+-.0123456789truefalsnE \n", *u->pos)) {
				if (!depth && (*u->pos == ',' || *u->pos == ':'))
					break;
				u->pos++;
			}
			if (!depth)
				return true;
		}
	} while (depth);
	return true;
}

bool jsonpull_next(struct jsonpull *j, char end, bool *first)
{
	char c = jsonpull_peek(j);

	if (c == end && c) {
		j->in->pos++;
		return false;
	}
	if (!*first && !jsonpull_take(j, ','))
		return false;
	*first = false;
	return !j->error;
}

bool jsonpull_member(struct jsonpull *j, bool *first)
{
	return jsonpull_next(j, '}', first) && jsonpull_string(j) && jsonpull_take(j, ':');
}
