/* The reader of one format, and functions that readers share. */
#ifndef DESCRY_INPUT_STACKIN_STACKIN_READER_H
#define DESCRY_INPUT_STACKIN_STACKIN_READER_H

#include <string.h>

#include "input/stackin/stackin.h"

struct stackin_reader {
	size_t state_size;
	/* Returns the number of lines of the text that have this format and no other. */
	uint32_t (*recognise)(const char *text, size_t len);
	/* Takes whole lines: text[len - 1] is '\n'. They are not valid after the call. Counts
	 * in->lines. */
	void (*lines)(struct stackin *in, const char *text, size_t len);
	void (*end)(struct stackin *in);  /* may be NULL */
	void (*fini)(struct stackin *in); /* may be NULL */

	/* In place of recognise, lines and end, for formats that are read as a whole: */
	/* returns true when a file with these first bytes has the format */
	bool (*begins)(const uint8_t *p, size_t n);
	struct err *(*document)(struct stackin *in, const uint8_t *p, size_t n);
};

#define FORMAT(id, reader, name) extern const struct stackin_reader stackin_##reader;
#include "input/stackin/formats.def"
#undef FORMAT

/* Adds a remark for the user. */
void stackin_note(struct stackin *in, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Notes that the line just counted is no stack. */
void stackin_skip(struct stackin *in);
/* Counts a stack of frame ids, LEAF FIRST. The text of all distinct stacks has a budget, by the
 * bytes of the input. Beyond it nothing more is counted, and the input's end is an error. */
void stackin_count(struct stackin *in, const uint32_t *ids, uint32_t n, uint64_t count);
uint64_t stackin_scale(const struct stackin *in, uint64_t count);

/* Returns the next line of [*text, end) without its newline, NULL at the end. */
static inline const char *stackin_line(const char **text, const char *end, size_t *ret_len)
{
	const char *line = *text, *nl;

	if (line == end)
		return NULL;
	nl = memchr(line, '\n', (size_t)(end - line));
	*ret_len = (size_t)((nl ? nl : end) - line);
	*text = nl ? nl + 1 : end;
	return line;
}

static inline bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

static inline bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* tidy.c */
/* Returns the length without a "+0x12" at the end (with `decimal`, also without "+12"). */
size_t tidy_offset(const char *s, size_t n, bool decimal);
/* Writes a function's name into ret (room for n): ';' becomes ':', quotes are dropped, and
 * arguments from the first '(' on are dropped (except those of a Go method and of "(anonymous
 * namespace)"). Returns the new length. */
size_t tidy_function(const char *s, size_t n, char *ret);
/* Reads all of s as an unsigned number. */
bool number_of(const char *s, size_t n, uint64_t *ret);

/* perfname.c: names frames as stackcollapse-perf.pl does. */
struct text {
	const char *s;
	size_t n;
};
struct perf_names {
	VEC(char) scratch, comm_text;
	VEC(uint32_t) comm; /* the command's name, in several parts when it has a ';' */
	bool java;
};
void perf_names_fini(struct perf_names *p);
/* func is "[unknown]" when there is no name; pc is the address as hexadecimal text. */
uint32_t perf_function(struct stackin *in, struct perf_names *p, struct text func, struct text pc,
		       struct text mod, bool inlined);
void perf_comm(struct stackin *in, struct perf_names *p, struct text comm, struct text pid,
	       struct text tid);

/* Readers of "frames, then a count" formats collect a stack in stackin.frames. */
/* A function as a tracer prints it: offset and arguments go. */
void frames_push(struct stackin *in, const char *s, size_t n, bool decimal_offset);
/* A key beside the stack. */
void frames_push_base(struct stackin *in, const char *s, size_t n);
/* Counts the stack and begins anew. */
void frames_add(struct stackin *in, uint64_t count);
void frames_drop(struct stackin *in);

#endif
