/* SPDX-License-Identifier: GPL-2.0-only */
/* What a frame of Ruby says of its method, as addresses of texts in the process. */
#include "wire/language.h"

enum {
	RUBY_TYPE = 0x1f, /* of an object's flags */
	RUBY_CLASS = 2,
	RUBY_MODULE = 3,
	RUBY_STRING = 5,
	RUBY_ARRAY = 7,
	RUBY_ICLASS = 0x1c,
	RUBY_SINGLETON = 1 << 12,
	RUBY_TEXT_APART = 1 << 13,   /* a String: its text is not in the object */
	RUBY_ARRAY_INSIDE = 1 << 13, /* an Array: its values are in the object */
	RUBY_OBJECT_CLASS = 8,
	RUBY_INSIDE = 16,     /* text or values in the object */
	RUBY_INSIDE_3_3 = 24, /* text */
	RUBY_STRING_TEXT = 24,
	RUBY_ARRAY_VALUES = 32,
	RUBY_CLASS_EXTRA = 24,
	RUBY_EXTRA_VARIABLES = 8,
	/* of a class in 3.3: the object of a singleton class, the name, bits */
	RUBY_CLASS_ATTACHED = 128,
	RUBY_CLASS_FLAGS = 149,
	RUBY_CLASS_HAS_NAME = 1,
	RUBY_CLASS_NAME = 152,
	/* st_table and its entries */
	RUBY_TABLE_FIRST = 32,
	RUBY_TABLE_END = 40,
	RUBY_TABLE_ENTRIES = 48,
	RUBY_TABLE_MAX = 64, /* entries looked at */
	RUBY_ENTRY_SIZE = 24,
	/* IDs */
	RUBY_OPERATORS = 169, /* last of those that are their own numbers */
	RUBY_ID_KIND = 0xe,   /* 0: no @variable, @@variable or constant */
	RUBY_ID_SHIFT = 4,
	RUBY_SYMBOLS_ARRAY = 16,
	RUBY_SYMBOLS_UNIT = 512,
	/* method entry and definition */
	RUBY_ENTRY_DEFINITION = 16,
	RUBY_ENTRY_OWNER = 32,
	RUBY_DEFINITION_ID = 32,
	RUBY_FRAME_ISEQ = 16,
	/* of the body: the table of lines (address, unused, entries, index); of an entry */
	RUBY_BODY_LINES = 120,
	RUBY_BODY_LINES_3_3 = 112,
	RUBY_LINES_COUNT = 16,
	RUBY_LINES_INDEX = 24,
	RUBY_LINE_SIZE = 12,
	RUBY_LINE_EVENTS = 8,
	RUBY_EVENT_LINE = 1,
	/* the index: see program/runtime/ruby/lines.c */
	RUBY_INDEX_FIRST = 54,
	RUBY_INDEX_BLOCKS = 48,
	RUBY_INDEX_BLOCK = 80,
	/* 3.3: of the execution context; of a class; of a frame; frames of C looked at */
	RUBY_CONTEXT_EXCEPTION = 120,
	RUBY_CLASS_SUPER = 16,
	RUBY_FRAME_SIZE = 56,
	RUBY_FRAME_OF_C = 0x80,
	RUBY_FRAMES_MAX = 16,
	RUBY_CLASSES_MAX = 8,
	RUBY_BODY_FILE = 64,
	RUBY_BODY_FIRST_LINE = 88,
};

INLINE u64 ruby_word(u64 addr)
{
	u64 v = 0;

	bpf_probe_read_user(&v, sizeof(v), (const void *)addr);
	return v;
}

INLINE u64 ruby_type(u64 object)
{
	return object & 7 || !object ? 0 : ruby_word(object) & RUBY_TYPE;
}

/* Returns the address of a String's text, 0: it is none. */
INLINE u64 ruby_text(u64 string, bool is_3_3)
{
	u64 flags = string & 7 ? 0 : ruby_word(string);

	if ((flags & RUBY_TYPE) != RUBY_STRING)
		return 0;
	return flags & RUBY_TEXT_APART ? ruby_word(string + RUBY_STRING_TEXT)
				       : string + (is_3_3 ? RUBY_INSIDE_3_3 : RUBY_INSIDE);
}

INLINE u64 ruby_item(u64 array, u64 i)
{
	u64 flags = array & 7 ? 0 : ruby_word(array);

	if ((flags & RUBY_TYPE) != RUBY_ARRAY)
		return 0;
	return ruby_word((flags & RUBY_ARRAY_INSIDE ? array + RUBY_INSIDE
						    : ruby_word(array + RUBY_ARRAY_VALUES)) +
			 i * 8);
}

struct ruby_search {
	u64 at, end; /* entries of the class's variables */
	u64 class;   /* wanted: the object that this singleton class belongs to; 0: the name */
	u64 found;
	u64 v[3]; /* hash, ID, value */
};

CALLBACK ruby_variable(u32 i, struct ruby_search *s)
{
	if (s->at >= s->end || bpf_probe_read_user(s->v, sizeof(s->v), (const void *)s->at))
		return 1;
	s->at += RUBY_ENTRY_SIZE;
	/* removed; not one of Ruby's own */
	if (s->v[0] == ~0ull || (s->v[1] > RUBY_OPERATORS && s->v[1] & RUBY_ID_KIND))
		return 0;
	if (s->class) {
		u64 type = ruby_type(s->v[2]);

		if ((type == RUBY_CLASS || type == RUBY_MODULE) &&
		    ruby_word(s->v[2] + RUBY_OBJECT_CLASS) == s->class)
			s->found = s->v[2];
	} else {
		s->found = ruby_text(s->v[2], false);
	}
	return s->found != 0;
}

INLINE u64 ruby_search(u64 class, bool attached)
{
	u64 table = ruby_word(ruby_word(class + RUBY_CLASS_EXTRA) + RUBY_EXTRA_VARIABLES);
	u64 entries = ruby_word(table + RUBY_TABLE_ENTRIES);
	struct ruby_search s = { .class = attached ? class : 0 };

	s.at = entries + ruby_word(table + RUBY_TABLE_FIRST) * RUBY_ENTRY_SIZE;
	s.end = entries + ruby_word(table + RUBY_TABLE_END) * RUBY_ENTRY_SIZE;
	bpf_loop(RUBY_TABLE_MAX, ruby_variable, &s, 0);
	return s.found;
}

INLINE u64 ruby_attached(u64 class, bool is_3_3)
{
	u64 object, type;

	if (!is_3_3)
		return ruby_search(class, true);
	object = ruby_word(class + RUBY_CLASS_ATTACHED);
	type = ruby_type(object);
	return type == RUBY_CLASS || type == RUBY_MODULE ? object : 0;
}

INLINE u64 ruby_own_name(u64 class, bool is_3_3)
{
	if (!is_3_3)
		return ruby_search(class, false);
	return ruby_word(class + RUBY_CLASS_FLAGS) & RUBY_CLASS_HAS_NAME
		       ? ruby_text(ruby_word(class + RUBY_CLASS_NAME), true)
		       : 0;
}

/* Returns the name of a method's owner; for a singleton class, of the class it belongs to. */
INLINE u64 ruby_class_name(u64 class, bool is_3_3)
{
	u64 flags = ruby_word(class);

	if ((flags & RUBY_TYPE) == RUBY_ICLASS) {
		class = ruby_word(class + RUBY_OBJECT_CLASS);
	} else if ((flags & RUBY_TYPE) == RUBY_CLASS && flags & RUBY_SINGLETON) {
		class = ruby_attached(class, is_3_3);
		if (!class)
			return 0;
	}
	return ruby_own_name(class, is_3_3);
}

INLINE u64 ruby_id_name(u64 id, u64 symbols, bool is_3_3)
{
	u64 number = id > RUBY_OPERATORS ? id >> RUBY_ID_SHIFT : id;
	u64 unit = ruby_item(ruby_word(symbols + RUBY_SYMBOLS_ARRAY), number / RUBY_SYMBOLS_UNIT);

	return ruby_text(ruby_item(unit, number % RUBY_SYMBOLS_UNIT * 2), is_3_3);
}

/* The method entry that a frame's scope has, 0: none. */
INLINE u64 ruby_method_of(u64 frame)
{
	u64 entry = ruby_word(ruby_word(frame + WIRE_RUBY_FRAME_SCOPE) - 16);
	u64 kind = ruby_word(entry) & WIRE_RUBY_KIND_MASK;

	if (kind == WIRE_RUBY_SVAR) {
		entry = ruby_word(entry + WIRE_RUBY_SVAR_METHOD);
		kind = ruby_word(entry) & WIRE_RUBY_KIND_MASK;
	}
	return kind == WIRE_RUBY_METHOD ? entry : 0;
}

/* Returns how many entries of the table of lines begin at an instruction or before it. */
INLINE u64 ruby_rank(u64 index, u64 at)
{
	u64 block, word, counts, bits, rank;

	if (at < RUBY_INDEX_FIRST)
		return ruby_word(index + at / 9 * 8) >> at % 9 * 7 & 0x7f;
	at -= RUBY_INDEX_FIRST;
	block = index + RUBY_INDEX_BLOCKS + at / 512 * RUBY_INDEX_BLOCK;
	word = at % 512 / 64;
	counts = ruby_word(block + 8);
	bits = ruby_word(block + 16 + word * 8) << (63 - at % 64);
	/* counts the bits, by pairs, by fours, by eights */
	bits -= bits >> 1 & 0x5555555555555555ull;
	bits = (bits & 0x3333333333333333ull) + (bits >> 2 & 0x3333333333333333ull);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
	rank = (u32)ruby_word(block) + (bits * 0x0101010101010101ull >> 56);
	return word ? rank + (counts >> (word - 1) * 9 & 0x1ff) : rank;
}

/* Returns the entry of the table of lines for an instruction, 0: none. */
INLINE u64 ruby_line_entry(u64 body, u64 lines, u64 at)
{
	u32 n = (u32)ruby_word(lines + RUBY_LINES_COUNT);
	u64 rank = 1;

	if (n > 1)
		rank = ruby_rank(ruby_word(lines + RUBY_LINES_INDEX), at);
	if (!rank || rank > n)
		return 0;
	return ruby_word(lines) + (rank - 1) * RUBY_LINE_SIZE;
}

INLINE u64 ruby_here(u64 frame, bool is_3_3)
{
	u64 body = ruby_word(ruby_word(frame + RUBY_FRAME_ISEQ) + WIRE_RUBY_ISEQ_BODY);
	u64 lines = body + (is_3_3 ? RUBY_BODY_LINES_3_3 : RUBY_BODY_LINES);
	u64 at = (ruby_word(frame) - ruby_word(body + WIRE_RUBY_BODY_INSTRUCTIONS)) >> 3;
	u64 entry = ruby_line_entry(body, lines, at);

	if (!entry)
		return 0;
	return ruby_word(entry + RUBY_LINE_EVENTS) & RUBY_EVENT_LINE ? (u32)ruby_word(entry) : 0;
}

/* Returns the name of the class of the context's exception, 0: it has none. */
INLINE u64 ruby_raised(u64 context)
{
	u64 object = ruby_word(context + RUBY_CONTEXT_EXCEPTION);
	u64 class = object & 7 || !object ? 0 : ruby_word(object + RUBY_OBJECT_CLASS);

	for (u32 i = 0; i < RUBY_CLASSES_MAX; i++) {
		u64 flags = ruby_word(class);

		if ((flags & RUBY_TYPE) == RUBY_CLASS && !(flags & RUBY_SINGLETON))
			return ruby_own_name(class, true);
		class = ruby_word(class + RUBY_CLASS_SUPER);
	}
	return 0;
}

/* Returns the address of the innermost control frame that runs Ruby code. Returns 0 when the first
 * frames all run C functions. */
INLINE u64 ruby_source(u64 context)
{
	u64 frame = ruby_word(context + WIRE_RUBY_CONTEXT_FRAME);

	for (u32 i = 0; i < RUBY_FRAMES_MAX; i++, frame += RUBY_FRAME_SIZE)
		if (ruby_word(frame + RUBY_FRAME_ISEQ) &&
		    !(ruby_word(ruby_word(frame + WIRE_RUBY_FRAME_SCOPE)) & RUBY_FRAME_OF_C))
			return frame;
	return 0;
}

/* Returns the line that a frame is in: its instruction pointer is behind the instruction. */
INLINE u64 ruby_source_line(u64 frame)
{
	u64 body = ruby_word(ruby_word(frame + RUBY_FRAME_ISEQ) + WIRE_RUBY_ISEQ_BODY);
	u64 at = (ruby_word(frame) - ruby_word(body + WIRE_RUBY_BODY_INSTRUCTIONS)) >> 3;
	u64 entry = ruby_line_entry(body, body + RUBY_BODY_LINES_3_3, at ? at - 1 : 0);

	return entry ? (u32)ruby_word(entry) : 0;
}

INLINE u64 ruby_part(u64 frame, u64 entry, u64 what, u64 symbols, bool is_3_3)
{
	u64 body, file, line;

	if (what == WIRE_RUBY_IS_HERE)
		return ruby_here(frame, is_3_3);
	if (what == WIRE_RUBY_IS_RAISED)
		return ruby_raised(frame);
	if (what == WIRE_RUBY_IS_SOURCE || what == WIRE_RUBY_IS_SOURCE_LINE)
		frame = ruby_source(frame);
	if (what == WIRE_RUBY_IS_SOURCE_LINE)
		return frame ? ruby_source_line(frame) : 0;
	if (!frame)
		return 0;
	if (what == WIRE_RUBY_IS_CLASS || what == WIRE_RUBY_IS_METHOD) {
		if (!entry)
			entry = ruby_method_of(frame);
		if (what == WIRE_RUBY_IS_CLASS)
			return entry ? ruby_class_name(ruby_word(entry + RUBY_ENTRY_OWNER), is_3_3)
				     : 0;
		entry = entry ? ruby_word(entry + RUBY_ENTRY_DEFINITION) : 0;
		return entry ? ruby_id_name(ruby_word(entry + RUBY_DEFINITION_ID), symbols, is_3_3)
			     : 0;
	}
	body = ruby_word((entry ? frame : ruby_word(frame + RUBY_FRAME_ISEQ)) +
			 WIRE_RUBY_ISEQ_BODY);
	if (what == WIRE_RUBY_IS_LINE) {
		line = ruby_word(body + RUBY_BODY_FIRST_LINE);
		return is_3_3 ? (u32)line : line >> 1; /* a Fixnum */
	}
	file = ruby_word(body + RUBY_BODY_FILE);
	if (ruby_type(file) == RUBY_ARRAY)
		file = ruby_item(file, 0);
	return ruby_text(file, is_3_3);
}

ROUTINE long d_ruby(u64 frame, u64 entry, u64 what, u64 symbols, u64 unknown)
{
	u64 part = what & WIRE_RUBY_PARTS;
	u64 v = ruby_part(frame, entry, part, symbols, what & WIRE_RUBY_3_3);

	RESULT(v || (part >= WIRE_RUBY_IS_LINE && part != WIRE_RUBY_IS_RAISED) ? v : unknown);
}
