/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects of V8 that a walk examines: from a function's object to the id of the function, as
 * program/runtime/v8/functions.c and names.c do it. */
#ifndef DESCRY_BPF_JAVASCRIPT_FUNCTION_H
#define DESCRY_BPF_JAVASCRIPT_FUNCTION_H

#include "bpf/machine.bpf.h"

INLINE const struct wire_v8 *js_data(struct unwind_walk *w)
{
	const struct wire_language *l = machine_data(w);

	return l && l->frames == WIRE_LANGUAGE_V8 ? &l->v8 : NULL;
}

INLINE bool js_is_pointer(u64 word)
{
	return (word & (~0ull << 47 | 7)) == 1 && word > 4096;
}

INLINE bool js_is_small(u64 word)
{
	return !(u32)word;
}

/* The word of the object read last that has a member. */
INLINE u64 js_member(const struct javascript_state *v, u32 at)
{
	return v->object[at >> 3 & (WIRE_V8_MEMBERS - 1)];
}

/* Reads the type in a Map, if it is a Map, to s->word. */
INLINE bool js_type(struct unwind_walk *w, const struct wire_v8 *j, u64 map)
{
	struct unwind_state *s = w->s;

	return js_is_pointer(map) && machine_user(w, &s->word, map - 1) && js_is_pointer(s->word) &&
	       machine_user(w, &s->word, s->word - 1 + j->map_type) &&
	       (s->word & 0xffff) == j->type_map &&
	       machine_user(w, &s->word, map - 1 + j->map_type);
}

/* Reads an object of a kind to js.object; follows it where the collector has just moved it. Returns
 * its address, 0: there is none. A function's Map is not checked: js_own() does that. size: bytes
 * that are read. */
SUBROUTINE js_object(struct unwind_walk *w, const struct wire_v8 *j, u64 object, u32 kind, u32 size)
{
	struct javascript_state *v = &w->s->js;

	kind &= WIRE_V8_KINDS - 1;
	if (size > sizeof(v->object) || !js_is_pointer(object) ||
	    MACHINE_READ(w, v->object, size, object - 1))
		return 0;
	if (v->object[0] && !(v->object[0] & 3)) {
		object = v->object[0] + 1;
		if (!js_is_pointer(object) || MACHINE_READ(w, v->object, size, object - 1))
			return 0;
	}
	if (kind == WIRE_V8_FUNCTION || (v->object[0] == v->maps[kind] && v->maps[kind]))
		return (long)object;
	if (!js_type(w, j, v->object[0]) || (w->s->word & 0xffff) != j->types[kind])
		return 0;
	v->maps[kind] = v->object[0];
	return (long)object;
}

/* --- a name that only the function's object has --- */

/* A member of js.map. */
#define JS_MAP(v, type, at) (*(const type *)((const char *)(v)->map + ((at) & (64 - sizeof(type)))))

/* Returns true for the key "name". */
INLINE bool js_is_name(struct unwind_walk *w, u64 key)
{
	struct javascript_state *v = &w->s->js;

	if (key == v->name && key)
		return true;
	if (!js_is_pointer(key) || MACHINE_READ(w, w->s->pair, 16, key - 1 + WIRE_V8_NAME) ||
	    w->s->pair[0] >> 32 != 4 || (u32)w->s->pair[1] != WIRE_V8_NAME_TEXT)
		return false;
	v->name = key;
	return true;
}

/* Looks at an entry of the dictionary at js.table. Returns 1 when it is the name: js.value. */
SUBROUTINE js_entry(u32 i, struct unwind_walk *w)
{
	struct unwind_state *s = w->s;

	if (MACHINE_READ(w, s->pair, 16, s->js.table + i * WIRE_V8_PROPERTY))
		return 1;
	s->js.other = s->pair[1];
	if (!js_is_name(w, s->pair[0]))
		return 0;
	s->js.value = s->js.other;
	return 1;
}

/* Sets js.value to the property of a dictionary. */
INLINE void js_in_dictionary(struct unwind_walk *w, const struct wire_v8 *j, u64 dictionary)
{
	const u64 prefix = WIRE_V8_DICTIONARY + (j->names_prefix & 15);
	struct unwind_state *s = w->s;
	u64 entries;

	if (!js_is_pointer(dictionary) ||
	    !machine_user(w, &s->word, dictionary - 1 + j->bytecodes_length) ||
	    s->word >> 32 < prefix)
		return;
	s->js.table = dictionary - 1 + j->array_data + prefix * 8;
	entries = ((s->word >> 32) - prefix) * 8 / WIRE_V8_PROPERTY;
	bpf_loop(entries < WIRE_V8_ENTRIES_MAX ? entries : WIRE_V8_ENTRIES_MAX, js_entry, w, 0);
}

/* Sets js.value to a property whose descriptor is in js.around. js.map has the Map. */
INLINE void js_in_descriptors(struct unwind_walk *w, const struct wire_v8 *j, u64 function)
{
	struct javascript_state *v = &w->s->js;
	const u32 details = v->around[1] >> 32;
	const u32 first = JS_MAP(v, u8, j->map_first), words = JS_MAP(v, u8, j->map_words);
	u32 index = details >> WIRE_V8_INDEX_SHIFT & WIRE_V8_OWN_MASK;
	u64 at = function + first * 8;

	if (details & WIRE_V8_IN_DESCRIPTOR) {
		v->value = v->around[2];
		return;
	}
	if (first + index >= words) {
		index -= words > first ? words - first : 0;
		at = js_member(v, j->function_properties) + j->array_data;
	}
	if (!machine_user(w, &v->value, at - 1 + index * 8))
		v->value = 0;
}

/* Adds the next piece of a string to what stands for it in an id, js.value; js.around has the
 * js.left pieces that are left. Returns 1 when none is left. When a piece cannot be read or is of a
 * rare kind, js.value becomes 0. */
SUBROUTINE js_piece(u32 i, struct unwind_walk *w)
{
	const struct wire_v8 *j = js_data(w);
	struct unwind_state *s = w->s;
	struct javascript_state *v = &s->js;
	const u64 before = v->value, left = v->left - 1;
	const u64 string = v->around[left & (WIRE_V8_PIECES - 1)];
	u32 length, type;

	v->value = v->left = 0;
	if (!j || !js_is_pointer(string) || MACHINE_READ(w, s->pair, 16, string - 1) ||
	    !js_is_pointer(s->pair[0]) || !machine_user(w, &s->word, s->pair[0] - 1 + j->map_type))
		return 1;
	type = s->word & 0xffff;
	length = s->pair[1] >> 32;
	if (type >= j->type_no_string)
		return 1;
	if ((s->pair[1] & WIRE_V8_HASH_FORM) == WIRE_V8_HASH_WHOLE) {
		v->value = wire_language_v8_piece(before, s->pair[1]);
	} else if ((type & j->text_form) == j->text_cons) {
		if (left + 2 > WIRE_V8_PIECES ||
		    MACHINE_READ(w, s->pair, 16, string - 1 + j->text_first))
			return 1;
		v->around[(left + 1) & (WIRE_V8_PIECES - 1)] = s->pair[0];
		v->around[left & (WIRE_V8_PIECES - 1)] = s->pair[1];
		v->value = before;
		v->left = left + 2;
		return 0;
	} else {
		for (int k = 0; k < WIRE_V8_TEXT_WORDS; k++)
			v->map[k] = 0;
		if ((type & j->text_bits) != j->text_flat || length > WIRE_V8_TEXT_WORDS * 8 ||
		    MACHINE_READ(w, v->map, length, string - 1 + j->text_bytes))
			return 1;
		v->value = wire_language_v8_text(before, length, v->map);
	}
	v->left = left;
	return !left;
}

/* Replaces the string js.value by what stands for it in an id. 0: it is none, or not known. */
INLINE void js_text(struct unwind_walk *w)
{
	struct javascript_state *v = &w->s->js;

	v->around[0] = v->value;
	v->left = 1;
	v->value = 1;
	bpf_loop(WIRE_V8_STEPS, js_piece, w, 0);
	if (v->left)
		v->value = 0;
}

/* Checks that an object, in js.object, is a function, and sets js.value to the name that only the
 * object has; 0: it has none. A Map by which no function has one is kept in js.plain. */
SUBROUTINE js_own(struct unwind_walk *w, const struct wire_v8 *j, u64 function)
{
	struct unwind_state *s = w->s;
	struct javascript_state *v = &s->js;
	const u64 map = v->object[0];
	u64 *plain = &v->plain[map >> 4 & (WIRE_V8_PLAIN - 1)];
	u32 bits;

	v->value = 0;
	if (*plain == map)
		return true;
	if (!js_is_pointer(map) || MACHINE_READ(w, v->map, sizeof(v->map), map - 1))
		return false;
	if (v->map[0] != v->meta || !v->meta) {
		if (!js_is_pointer(v->map[0]) ||
		    !machine_user(w, &s->word, v->map[0] - 1 + j->map_type) ||
		    (s->word & 0xffff) != j->type_map)
			return false;
		v->meta = v->map[0];
	}
	if (JS_MAP(v, u16, j->map_type) - j->types[WIRE_V8_FUNCTION] > WIRE_V8_FUNCTIONS)
		return false;
	bits = JS_MAP(v, u32, j->map_bits3);
	if (j->map_dictionary && bits >> (j->map_dictionary & 31) & 1) {
		js_in_dictionary(w, j, js_member(v, j->function_properties));
	} else {
		if (j->map_dictionary &&
		    (bits >> WIRE_V8_OWN_SHIFT & WIRE_V8_OWN_MASK) > WIRE_V8_NAMED &&
		    !MACHINE_READ(w, v->around, WIRE_V8_PROPERTY,
				  JS_MAP(v, u64, j->map_descriptors) - 1 + WIRE_V8_DESCRIPTORS +
					  WIRE_V8_NAMED * WIRE_V8_PROPERTY) &&
		    js_is_name(w, v->around[0]) && !(v->around[1] >> 32 & WIRE_V8_ACCESSOR))
			js_in_descriptors(w, j, function);
		else
			*plain = map;
	}
	return true;
}

/* --- its id --- */

/* Sets s->id by the two facts of wire_language_v8_id(). */
SUBROUTINE js_id(struct unwind_state *s, u64 script, u64 function)
{
	s->id = wire_language_v8_id(s->tgid, script, function);
	return true;
}

/* Sets s->id and s->code to the id and the address of a SharedFunctionInfo. */
SUBROUTINE js_shared(struct unwind_walk *w, const struct wire_v8 *j, u64 shared)
{
	struct unwind_state *s = w->s;
	struct javascript_state *v = &s->js;
	u64 script, source, name, number;

	shared = js_object(w, j, shared, WIRE_V8_SHARED, WIRE_V8_SHARED_WORDS * 8);
	if (!shared)
		return false;
	s->code = shared;
	script = js_member(v, j->shared_script);
	name = js_member(v, j->shared_name);
	number = js_member(v, j->shared_flags) >> 32;
	if (script != v->script &&
	    js_object(w, j, script, WIRE_V8_SCRIPT, WIRE_V8_OBJECT_WORDS * 8)) {
		if (!js_is_small(js_member(v, j->script_number)))
			return false;
		v->script = script;
		v->number = js_member(v, j->script_number) >> 32;
		source = js_member(v, j->script_source);
		if (!js_is_pointer(source) || !machine_user(w, &s->word, source - 1 + WIRE_V8_NAME))
			s->word = 0;
		v->number = wire_language_v8_script((u32)v->number, (u32)(s->word >> 32));
	}
	if (script && script == v->script)
		return js_id(s, v->number, number);
	number = name;
	script = shared & ~1ull;
	if (js_is_pointer(name) && !MACHINE_READ(w, s->pair, 16, name - 1) &&
	    (s->pair[1] & WIRE_V8_HASH_FORM) == WIRE_V8_HASH_WHOLE && js_type(w, j, s->pair[0]) &&
	    (s->word & 0xffff) < j->type_no_string) {
		number = s->pair[1];
		script = 0;
	}
	return js_id(s, script, number);
}

/* Sets s->id to that of a function's object, and s->code to its SharedFunctionInfo, or to the
 * object if it has a name of its own. */
SUBROUTINE js_function(struct unwind_walk *w, const struct wire_v8 *j, u64 function)
{
	struct unwind_state *s = w->s;
	struct javascript_state *v = &s->js;
	u64 own;

	function = js_object(w, j, function, WIRE_V8_FUNCTION, WIRE_V8_FUNCTION_WORDS * 8);
	if (!function || !js_own(w, j, function))
		return false;
	if (v->value)
		js_text(w);
	own = v->value;
	if (!js_shared(w, j, js_member(v, j->function_shared)))
		return false;
	if (own) {
		js_id(s, s->id, own);
		s->code = function;
	}
	return true;
}

#endif
