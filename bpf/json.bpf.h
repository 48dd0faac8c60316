/* SPDX-License-Identifier: GPL-2.0-only */
/* json(text, "a.b[2].c"): walks over the text once, character by character, and enters the
 * containers that the path names. */

enum {
	JSON_IN_STRING = 1,
	JSON_ESCAPED = 2,
	JSON_KEY = 4,  /* the string is a key of the present container */
	JSON_SAME = 8, /* ... and equals the path's part so far */
	JSON_KEY_NEXT = 16,
	JSON_WANTED = 32, /* the next value is on the path */
	JSON_ARRAY = 64,  /* the present container is an array */
	JSON_TAKE = 128,  /* the answer, a number or a word, begins at `from` */
	JSON_TAKE_TEXT = 256,
	JSON_TAKE_ALL = 512, /* object or array, to the bracket at depth `level` */
};

struct json {
	u64 src, path, size;
	u64 part, at; /* offsets in path: the wanted part, the next character to compare */
	u64 depth, level;
	u64 index, want; /* elements of the array: the present one, the wanted one */
	u64 from, end;   /* end 0: not found yet */
	u64 state;
};

INLINE u64 json_path_char(struct json *j, u64 at)
{
	u8 c = 0;

	if (at >= WIRE_STRING_MAX || bpf_probe_read_kernel(&c, 1, KERNEL(j->path + at)))
		return 0;
	return c;
}

INLINE bool json_ends_part(u64 c)
{
	return c == 0 || c == '.' || c == '[';
}

/* Enters a container. Returns false when the path requires another kind of container. */
INLINE bool json_enter(struct json *j, u8 c)
{
	u64 first = json_path_char(j, j->part), digits, n = 0, len = 0;

	j->level = ++j->depth;
	j->state = 0;
	if ((c == '[') != (first == '['))
		return false;
	if (c == '{') {
		j->state = JSON_KEY_NEXT;
		return true;
	}
	if (j->part >= WIRE_STRING_MAX || read_word(j->path + j->part + 1, &digits))
		return false;
#pragma clang loop unroll(full)
	for (int i = 0; i < 7; i++) {
		u64 d = (digits >> (8 * i)) & 0xff;

		if (d < '0' || d > '9')
			break;
		n = n * 10 + d - '0';
		len = (u64)i + 1;
	}
	if (!len || ((digits >> (8 * len)) & 0xff) != ']')
		return false;
	j->part += len + 2;
	if (json_path_char(j, j->part) == '.')
		j->part++;
	j->want = n;
	j->index = 0;
	j->state = JSON_ARRAY | (n ? 0 : JSON_WANTED);
	return true;
}

INLINE long json_in_string(struct json *j, u64 i, u8 c)
{
	u64 closes = c == '"' && !(j->state & JSON_ESCAPED);

	if (closes) {
		j->state &= ~(u64)JSON_IN_STRING;
		if (j->state & JSON_TAKE_TEXT) {
			j->end = i;
			return 1;
		}
		if (!(j->state & JSON_KEY))
			return 0;
		j->state &= ~(u64)JSON_KEY;
		if ((j->state & JSON_SAME) && !json_ends_part(json_path_char(j, j->at)))
			j->state &= ~(u64)JSON_SAME;
		return 0;
	}
	if (c == '\\' && !(j->state & JSON_ESCAPED))
		j->state |= JSON_ESCAPED;
	else
		j->state &= ~(u64)JSON_ESCAPED;
	if ((j->state & JSON_KEY) && (j->state & JSON_SAME)) {
		if (json_path_char(j, j->at) != c)
			j->state &= ~(u64)JSON_SAME;
		j->at++;
	}
	return 0;
}

/* Handles the beginning of a value. */
INLINE long json_value(struct json *j, u64 i, u8 c)
{
	bool whole = json_path_char(j, j->part) == 0, container = c == '{' || c == '[';

	if (!(j->state & JSON_WANTED)) {
		j->depth += container;
		if (c == '"')
			j->state |= JSON_IN_STRING;
		return 0;
	}
	j->state &= ~(u64)JSON_WANTED;
	if (!whole)
		return !container || !json_enter(j, c);
	j->from = i;
	if (container) {
		j->level = ++j->depth;
		j->state = JSON_TAKE_ALL;
	} else if (c == '"') {
		j->from = i + 1;
		j->state = JSON_TAKE_TEXT | JSON_IN_STRING;
	} else {
		j->state = JSON_TAKE;
	}
	return 0;
}

INLINE long json_close(struct json *j, u64 i)
{
	if (j->depth == j->level) {
		if (j->state & JSON_TAKE_ALL)
			j->end = i + 1;
		return 1;
	}
	j->depth--;
	return 0;
}

CALLBACK json_char(u32 index, struct json *j)
{
	u64 i = index;
	u8 c;

	if (i >= WIRE_STRING_MAX || bpf_probe_read_kernel(&c, 1, KERNEL(j->src + i)) || !c) {
		if (j->state & JSON_TAKE)
			j->end = i;
		return 1;
	}
	if (j->state & JSON_IN_STRING)
		return json_in_string(j, i, c);
	if (j->state & JSON_TAKE) {
		if (c != ',' && c != '}' && c != ']' && c > ' ')
			return 0;
		j->end = i;
		return 1;
	}
	if (c <= ' ')
		return 0;
	if (c == '}' || c == ']')
		return json_close(j, i);
	if (c == ',' || c == ':') {
		if (j->depth != j->level || (j->state & JSON_TAKE_ALL))
			return 0;
		if (c == ':') {
			if (j->state & JSON_SAME) {
				j->part = j->at + (json_path_char(j, j->at) == '.');
				j->state = JSON_WANTED;
			}
		} else if (!(j->state & JSON_ARRAY)) {
			j->state = JSON_KEY_NEXT;
		} else if (++j->index == j->want) {
			j->state |= JSON_WANTED;
		}
		return 0;
	}
	if (c == '"' && j->depth == j->level && (j->state & JSON_KEY_NEXT)) {
		j->state = JSON_IN_STRING | JSON_KEY | JSON_SAME;
		j->at = j->part;
		return 0;
	}
	return json_value(j, i, c);
}

ROUTINE long d_json(char *dst, u64 size, u64 src, u64 path)
{
	struct json j = { .src = src, .path = path, .size = size };
	u64 from, end;
	char c;

	dst[0] = 0;
	if (bpf_probe_read_kernel(&c, 1, KERNEL(src)) || bpf_probe_read_kernel(&c, 1, KERNEL(path)))
		return E_FAULT;
	j.part = hidden(0);
	j.at = hidden(0);
	j.depth = hidden(0);
	j.level = hidden(0);
	j.index = hidden(0);
	j.want = hidden(0);
	j.from = hidden(0);
	j.end = hidden(0);
	j.state = hidden(JSON_WANTED);
	bpf_loop((u32)size, json_char, &j, 0);
	from = j.from;
	end = j.end;
	OPAQUE(from);
	if (!end || from >= WIRE_STRING_MAX || end < from)
		return NOT_FOUND;
	end -= from;
	OPAQUE(end);
	return copy_text(dst, size, src + from, end);
}
