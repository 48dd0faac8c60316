/* SPDX-License-Identifier: GPL-2.0-only */
/* Arguments of methods of Java in frames of HotSpot's interpreter, and the text of a String. */
#include "wire/java_value.h"

enum {
	JAVA_SIGNATURE_MAX = 4096, /* characters looked at */
	JAVA_REPLACEMENT = 0xfffd,
	JAVA_MOVED_MAX = 256, /* entries looked at */
};

INLINE u64 java_value_word(u64 addr)
{
	u64 v = 0;

	bpf_probe_read_user(&v, sizeof(v), (const void *)addr);
	return v;
}

/* --- signatures: "(ILjava/lang/String;[J)V" --- */

struct java_parameter {
	u64 text;
	u64 wanted; /* the parameters up to it */
	u64 words;  /* in front of it */
	u64 in_class, is_array;
	u64 kind; /* 0: not found */
	u64 at;   /* its place in the text */
};

CALLBACK java_signature_char(u32 index, struct java_parameter *p)
{
	u64 at = (u64)index + 1;
	u8 c = 0;

	if (bpf_probe_read_user(&c, 1, (const void *)(p->text + at)) || c == ')')
		return 1;
	if (p->in_class) {
		p->in_class = c != ';';
		return 0;
	}
	if (c == '[') {
		p->is_array = 1;
		return 0;
	}
	p->wanted--;
	if (!p->wanted) {
		p->kind = p->is_array ? '[' : c;
		p->at = at;
		return 1;
	}
	p->words += !p->is_array && (c == 'J' || c == 'D') ? 2 : 1;
	p->is_array = 0;
	p->in_class = c == 'L';
	return 0;
}

/* Compares with "Ljava/lang/String;". */
INLINE bool java_is_string(u64 text)
{
	return java_value_word(text) == 0x616c2f6176616a4cull &&
	       java_value_word(text + 8) == 0x6e697274532f676eull &&
	       (java_value_word(text + 10) >> 48) == 0x3b67;
}

INLINE u64 java_signature(u64 method, u64 members)
{
	u64 constant = java_value_word(method + WIRE_JAVA_BYTE(members, WIRE_JAVA_METHOD_CONST));
	u64 constants =
		java_value_word(constant + WIRE_JAVA_BYTE(members, WIRE_JAVA_CONST_CONSTANTS));
	u64 index =
		(u16)java_value_word(constant + WIRE_JAVA_BYTE(members, WIRE_JAVA_CONST_SIGNATURE));

	return java_value_word(constants + WIRE_JAVA_BYTE(members, WIRE_JAVA_CONSTANTS_SIZE) +
			       index * 8) +
	       WIRE_JAVA_BYTE(members, WIRE_JAVA_SYMBOL_TEXT);
}

/* Finds the word of the wanted parameter in the frame of a method. */
INLINE u64 java_parameter_at(u64 frame, u64 members)
{
	u64 method = java_value_word(frame - WIRE_JAVA_METHOD_AT);
	u64 first = java_value_word(frame - WIRE_JAVA_LOCALS_AT);
	u64 flags = java_value_word(method + WIRE_JAVA_BYTE(members, WIRE_JAVA_METHOD_ACCESS));
	u64 kind = WIRE_JAVA_BYTE(members, WIRE_JAVA_KIND);
	struct java_parameter p = {
		.wanted = hidden(WIRE_JAVA_BYTE(members, WIRE_JAVA_WANTED)),
		.words = hidden(0),
		.in_class = hidden(0),
		.is_array = hidden(0),
		.kind = hidden(0),
		.at = hidden(0),
	};

	if (first < WIRE_JAVA_LOCALS_NEAR)
		first = frame + first * 8;
	if (!WIRE_JAVA_BYTE(members, WIRE_JAVA_WANTED))
		return flags & WIRE_JAVA_STATIC ? 0 : first;
	p.text = hidden(java_signature(method, members));
	bpf_loop(JAVA_SIGNATURE_MAX, java_signature_char, &p, 0);
	if (!p.kind || (kind == WIRE_JAVA_STRING ? p.kind != 'L' || !java_is_string(p.text + p.at)
						 : kind != WIRE_JAVA_ANY && kind != p.kind))
		return 0;
	if (!(flags & WIRE_JAVA_STATIC))
		p.words++;
	if (p.kind == 'J' || p.kind == 'D')
		p.words++;
	first -= p.words * 8;
	return p.kind == 'J' || p.kind == 'D' || p.kind == 'L' || p.kind == '[' ? first : first | 1;
}

ROUTINE u64 d_java_arg(u64 rbp, u64 interpreter, u64 size, u64 members)
{
	u64 v = 0;

	/* the JVM's function that has the probe has a frame, too */
	u64 frame = java_value_word(rbp);

	if (java_value_word(frame - WIRE_JAVA_ENTERING_AT) == WIRE_JAVA_ENTERING)
		v = java_parameter_at(java_value_word(frame), members);
	else if (java_value_word(rbp + 8) - interpreter < size)
		v = java_parameter_at(frame, members);
	RESULT(v);
}

/* --- texts --- */

struct java_chars {
	char *dst;
	u64 size, pos;
	u64 from, wide;
	u64 high; /* the first half of a character in two; 0: none */
	u64 failed;
};

INLINE void java_put(struct java_chars *j, u64 c)
{
	u64 pos = j->pos;

	OPAQUE(pos);
	if (pos < j->size)
		j->dst[pos] = (char)c;
	j->pos = pos + 1;
}

/* Writes a character in UTF-8. Returns 1 when there is no room. */
INLINE long java_put_char(struct java_chars *j, u64 c)
{
	u64 more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	if (j->pos + more + 1 >= j->size)
		return 1;
	if (!more) {
		java_put(j, c);
		return 0;
	}
	java_put(j, (more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | c >> more * 6);
	if (more > 2)
		java_put(j, 0x80 | (c >> 12 & 0x3f));
	if (more > 1)
		java_put(j, 0x80 | (c >> 6 & 0x3f));
	java_put(j, 0x80 | (c & 0x3f));
	return 0;
}

CALLBACK java_char(u32 index, struct java_chars *j)
{
	u64 half = 0, c;
	u16 v = 0;

	if (bpf_probe_read_user(&v, j->wide ? 2 : 1,
				(const void *)(j->from + ((u64)index << j->wide)))) {
		j->failed = 1;
		return 1;
	}
	c = v;
	if (j->wide && (c & 0xf800) == 0xd800) {
		half = c;
		c = JAVA_REPLACEMENT;
	}
	if (j->high && half >= 0xdc00) {
		c = 0x10000 + ((j->high & 0x3ff) << 10) + (half & 0x3ff);
		j->high = 0;
		return java_put_char(j, c);
	}
	if (j->high && java_put_char(j, JAVA_REPLACEMENT))
		return 1;
	j->high = half && half < 0xdc00 ? half : 0;
	return j->high ? 0 : java_put_char(j, c);
}

/* --- objects that ZGC moves (zForwarding.inline.hpp, zForwardingEntry.hpp) --- */

struct java_moved {
	u64 entries, mask, cursor;
	u64 from;  /* number of the object in its part of the heap */
	u64 entry; /* 0: it was not moved yet */
};

CALLBACK java_moved_entry(u32 index, struct java_moved *m)
{
	u64 entry = java_value_word(m->entries + (m->cursor & m->mask) * 8);

	m->cursor++;
	if (!(entry & 1))
		return 1;
	if (entry >> WIRE_JAVA_ENTRY_FROM != m->from)
		return 0;
	m->entry = entry;
	return 1;
}

INLINE u32 java_moved_hash(u32 key)
{
	key = ~key + (key << 15);
	key ^= key >> 12;
	key += key << 2;
	key ^= key >> 4;
	key *= 2057;
	return key ^ key >> 16;
}

/* Returns the offset that an object has now, by a table of the parts from which objects are moved.
 * ret_found: the object's part is in the table. */
INLINE u64 java_forwarded(u64 table, u64 offset, u64 form, bool *ret_found)
{
	u64 part = java_value_word(table + (offset >> WIRE_JAVA_GRANULE) * 8), length;
	struct java_moved m = { .cursor = hidden(0), .entry = hidden(0) };

	*ret_found = part != 0;
	if (!part)
		return offset;
	length = WIRE_JAVA_BYTE(form, WIRE_JAVA_PART_ENTRIES);
	m.from = (offset - java_value_word(part)) >> (java_value_word(part + length - 8) & 63);
	m.mask = java_value_word(part + length) - 1;
	m.entries = part + WIRE_JAVA_BYTE(form, WIRE_JAVA_PART_SIZE);
	m.cursor = hidden(java_moved_hash((u32)m.from));
	bpf_loop(JAVA_MOVED_MAX, java_moved_entry, &m, 0);
	return m.entry ? m.entry >> 1 & ((1ull << (WIRE_JAVA_ENTRY_FROM - 1)) - 1) : offset;
}

/* Returns the address that an object has now, of a reference with its colour in the lowest bits
 * (ZBarrier::remap_generation()). */
SUBROUTINE java_generation_now(u64 v, u64 form, u64 base)
{
	u64 shift = WIRE_JAVA_BYTE(form, WIRE_JAVA_SHIFT) & 63, offsets = (1ull << shift) - 1;
	u64 good = WIRE_JAVA_BYTE(form, WIRE_JAVA_REFERENCES) >> 4;
	u64 bit = v >> WIRE_JAVA_COLOUR_AT & 15, differs, young, old, addr, offset, now;
	/* the number of the bit: its lower half is the young generation's */
	u64 number = bit >> 3   ? 3
		     : bit >> 2 ? 2
				: bit >> 1,
	    right = good >> 3   ? 3
		    : good >> 2 ? 2
				: good >> 1;
	bool found;

	addr = v >> (WIRE_JAVA_COLOUR_AT + 1 + number);
	differs = number ^ right;
	if (!differs)
		RESULT(addr);
	offset = addr & offsets;
	old = (base & 0xfff) | base >> WIRE_JAVA_ADDRESS << 12;
	/* of 28 bits, with a sign */
	old = (u64)((s64)(old << 36) >> 36) << WIRE_JAVA_PAGE;
	young = base << (64 - WIRE_JAVA_ADDRESS) >> (64 - WIRE_JAVA_ADDRESS) & ~0xfffull;
	old += young;
	if (differs == 2 || (differs == 3 && (v & WIRE_JAVA_OLD_TO_OLD) == WIRE_JAVA_OLD_TO_OLD))
		young = old;
	now = java_forwarded(young, offset, form, &found);
	if (!found && differs == 3 && young != old)
		now = java_forwarded(old, offset, form, &found);
	RESULT((addr & ~offsets) | now);
}

/* Returns the address that an object has now. The colour of an argument is the one of now. Another
 * colour is right, too, unless the object was in a part of the heap from which objects are moved;
 * then a table has those that were moved. */
INLINE u64 java_now(u64 v, u64 argument, u64 form, u64 base)
{
	u64 shift = WIRE_JAVA_BYTE(form, WIRE_JAVA_SHIFT) & 63, offsets = (1ull << shift) - 1;
	u64 colour = v >> shift & ((1 << WIRE_JAVA_COLOURS) - 1), now;
	bool found;

	if (colour == (argument >> shift & ((1 << WIRE_JAVA_COLOURS) - 1)) ||
	    colour & WIRE_JAVA_REMAPPED)
		return v;
	now = java_forwarded(base, v & offsets, form, &found);
	return now == (v & offsets) ? v : (argument & ~offsets) | now;
}

/* ZGC maps its heap once for each colour. A page that the JVM has not touched yet in one of these
 * views cannot be read there. */
INLINE u64 java_view(u64 v, u64 form)
{
	u64 shift = WIRE_JAVA_BYTE(form, WIRE_JAVA_SHIFT) & 63, word;

#pragma unroll
	for (int i = 0; i < WIRE_JAVA_VIEWS; i++) {
		if (!bpf_probe_read_user(&word, sizeof(word), (const void *)v))
			break;
		v = (v & ((1ull << shift) - 1)) | 1ull << ((shift + i) & 63);
	}
	return v;
}

/* Returns the address of the array of a String, 0: it cannot be read. The argument has the colour
 * of now. */
SUBROUTINE java_array(u64 string, u64 argument, u64 form, u64 base)
{
	u64 kind = WIRE_JAVA_BYTE(form, WIRE_JAVA_REFERENCES) & 15;
	u64 v = java_value_word(string + WIRE_JAVA_BYTE(form, WIRE_JAVA_STRING_VALUE));

	if (kind == WIRE_JAVA_NARROW)
		v = (u32)v ? base + ((u64)(u32)v << (WIRE_JAVA_BYTE(form, WIRE_JAVA_SHIFT) & 63))
			   : 0;
	else if (kind == WIRE_JAVA_COLOURED && v)
		v = java_view(java_now(v, argument, form, base), form);
	else if (kind == WIRE_JAVA_GENERATIONS && v)
		v = (u64)java_generation_now(v, form, base);
	RESULT(v);
}

/* Copies the characters of an array. */
SUBROUTINE java_copy(char *dst, u64 size, u64 array, u64 wide, u64 form)
{
	u64 n = (u32)java_value_word(array + WIRE_JAVA_BYTE(form, WIRE_JAVA_ARRAY_LENGTH)) >> wide;
	struct java_chars j = {
		.dst = dst,
		.size = size,
		.pos = hidden(0),
		.high = hidden(0),
		.failed = hidden(0),
		.wide = hidden(wide),
		.from = hidden(array + WIRE_JAVA_BYTE(form, WIRE_JAVA_ARRAY_DATA)),
	};

	bpf_loop(n < size ? (u32)n : (u32)size, java_char, &j, 0);
	if (j.high)
		(void)java_put_char(&j, JAVA_REPLACEMENT);
	java_put(&j, 0);
	RESULT(j.failed);
}

ROUTINE long d_java_text(char *dst, u64 size, u64 argument, u64 form, u64 base)
{
	u64 string = argument, array, after;
	long failed;
	u8 coder = 0;

	*(u64 *)dst = 0x6c6c756e; /* "null" */
	if (!string)
		RESULT(0);
	if (WIRE_JAVA_BYTE(form, WIRE_JAVA_REFERENCES) == WIRE_JAVA_COLOURED)
		string = java_view(string, form);
	array = (u64)java_array(string, argument, form, base);
	if (!array ||
	    bpf_probe_read_user(
		    &coder, 1,
		    (const void *)(string + WIRE_JAVA_BYTE(form, WIRE_JAVA_STRING_CODER)))) {
		dst[0] = 0;
		RESULT(E_FAULT);
	}
	failed = java_copy(dst, size, array, coder & 1, form);
	/* if the array was moved meanwhile, the text may be that of another object */
	after = (u64)java_array(string, argument, form, base);
	if (after != array)
		failed = java_copy(dst, size, after, coder & 1, form);
	dst[size - 1] = 0;
	RESULT(failed ? E_FAULT : 0);
}
