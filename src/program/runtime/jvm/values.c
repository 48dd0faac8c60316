/* What programs need to read Java's values: the parameters of methods, and the structure of a
 * String. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "program/runtime/jvm/jvm.h"

enum {
	CLASSES_MAX = 1 << 18,
	LOADERS_MAX = 1 << 16,
	METHODS_MAX = 1 << 16, /* of a class */
	NAME_SIZE = 4096,
	POINTERS_AT = 8, /* of Array<Method*> */
	/* FieldInfo: numbers of 2 bytes, behind the length of an Array<u2> */
	FIELDS_AT = 4,
	FIELDS_MAX = 64,
	FIELD_NAME = 1,
	FIELD_OFFSET = 4,
	FIELD_WORDS = 6,
	FIELD_TAG_BITS = 2,
	/* the same from Java 21 on: an Array<u1> of compressed numbers; flags of a field there */
	STREAM_AT = 4,
	STREAM_MAX = 4096,
	STREAM_VALUE = 1,
	STREAM_GENERIC = 4,
	STREAM_CONTENDED = 16,
	/* arrayOopDesc */
	LENGTH_AT = 16,
	LENGTH_AT_NARROW = 12,
	LENGTH_AT_COMPACT = 8, /* from Java 24 on */
	UNALIGNED = 23,        /* from this version on, bytes are behind the length */
};

/* X(name, required, type, member) */
#define VALUE_MEMBERS(X) \
	X(const_signature, 1, "ConstMethod", "_signature_index") \
	X(class_methods, 1, "InstanceKlass", "_methods") \
	X(class_next, 1, "Klass", "_next_link") \
	X(class_layout, 1, "Klass", "_layout_helper") \
	X(class_fields, 0, "InstanceKlass", "_fields") \
	X(class_nfields, 0, "InstanceKlass", "_java_fields_count") \
	X(class_stream, 0, "InstanceKlass", "_fieldinfo_stream") \
	X(loader_next, 1, "ClassLoaderData", "_next") \
	X(loader_classes, 1, "ClassLoaderData", "_klasses") \
	X(z_offset_mask, 0, "ZGlobalsForVMStructs", "_ZAddressOffsetMask") \
	X(z_heap, 0, "ZCollectedHeap", "_heap") \
	X(z_good, 0, "ZGlobalsForVMStructs", "_ZPointerLoadGoodMask") \
	X(z_pages, 0, "ZHeap", "_page_table") \
	X(z_moving, 0, "ZHeap", "_forwarding_table") \
	X(z_map, 0, "ZForwardingTable", "_map") \
	X(z_table, 0, "ZGranuleMapForForwarding", "_map") \
	X(z_part, 0, "ZForwarding", "_virtual") \
	X(z_part_shift, 0, "ZForwarding", "_object_alignment_shift") \
	X(z_part_entries, 0, "ZForwarding", "_entries") \
	X(z_start, 0, "ZVirtualMemory", "_start") \
	X(z_length, 0, "ZAttachedArrayForForwarding", "_length")

#define VALUE_VARIABLES(X) \
	X(loaders, 1, "ClassLoaderDataGraph", "_head") \
	X(oop_base, 0, "CompressedOops", "_narrow_oop._base") \
	X(oop_shift, 0, "CompressedOops", "_narrow_oop._shift") \
	X(string, 0, "vmClasses", "_klasses[static_cast<int>(vmClassID::String_klass_knum)]") \
	/* from Java 25 on */ \
	X(new_base, 0, "CompressedOops", "_base") \
	X(new_shift, 0, "CompressedOops", "_shift") \
	/* in Java 11 */ \
	X(old_base, 0, "Universe", "_narrow_oop._base") \
	X(old_shift, 0, "Universe", "_narrow_oop._shift") \
	X(old_string, 0, "SystemDictionary", \
	  "_well_known_klasses[SystemDictionary::String_klass_knum]") \
	X(heap, 1, "Universe", "_collectedHeap") \
	X(z_globals, 0, "ZGlobalsForVMStructs", "_instance_p")

#define VALUE_SIZES(X) X(z_part_size, "ZForwarding")

struct jvm_values_layout {
#define X(name, ...) struct jvm_member name;
	VALUE_MEMBERS(X)
#undef X
#define X(name, ...) uint64_t name;
	VALUE_VARIABLES(X)
#undef X
#define X(name, ...) uint64_t name;
	VALUE_SIZES(X)
#undef X
};

static const struct jvm_wanted_member value_members[] = {
#define X(name, required, type, member) \
	{ { type, "" }, { member, "" }, offsetof(struct jvm_values_layout, name), required },
	VALUE_MEMBERS(X)
#undef X
};

static const struct jvm_wanted_value value_variables[] = {
#define X(name, required, type, member) \
	{ type, member, offsetof(struct jvm_values_layout, name), required },
	VALUE_VARIABLES(X)
#undef X
};

static const struct jvm_wanted_value value_sizes[] = {
#define X(name, type) { type, NULL, offsetof(struct jvm_values_layout, name), false },
	VALUE_SIZES(X)
#undef X
};

static const struct jvm_member whole_word = { 0, 8 }, half_word = { 0, 4 };

/* Copies the text of a Symbol. Returns false when it is too long. */
static bool symbol_copy(const struct jvm *j, uint64_t symbol, char ret[NAME_SIZE])
{
	uint64_t n = jvm_get(j, symbol, j->layout.symbol_length);

	if (!n || n >= NAME_SIZE ||
	    space_read_some(j->runtime.space, symbol + j->layout.symbol_text.at, ret,
			    (uint32_t)n) != n)
		return false;
	ret[n] = 0;
	return true;
}

static bool constant_copy(const struct jvm *j, uint64_t constants, uint64_t index,
			  char ret[NAME_SIZE])
{
	uint64_t v;

	return index && index < jvm_get(j, constants, j->layout.constants_length) &&
	       jvm_word(j, constants + j->layout.size.constants + index * 8, &v) &&
	       symbol_copy(j, v, ret);
}

/* --- parameters --- */

/* Takes the next parameter of a signature. Returns its kind, 0: there is none. */
static char next_parameter(const char **at)
{
	static const char string[] = "Ljava/lang/String;";
	const char *p = *at + strspn(*at, "[");
	char kind = p > *at ? '[' : strncmp(p, string, sizeof(string) - 1) ? *p : JVM_STRING;

	if (!*p || *p == ')')
		return 0;
	p = *p == 'L' ? strchr(p, ';') : p;
	if (!p)
		return 0;
	*at = p + 1;
	return kind;
}

/* Adds the parameters of a method to those that were found before. */
static void parameters_add(const char *signature, char ret[JVM_PARAMETERS_MAX])
{
	const char *at = signature + (*signature == '(');

	for (uint32_t i = 0; i < JVM_PARAMETERS_MAX; i++) {
		char kind = next_parameter(&at);

		if (!kind)
			return;
		ret[i] = !ret[i] || ret[i] == kind ? kind : JVM_DIFFERENT;
	}
}

static void class_parameters(struct jvm *j, uint64_t class, const char *method,
			     char ret[JVM_PARAMETERS_MAX])
{
	const struct jvm_values_layout *l = j->values;
	uint64_t methods = jvm_get(j, class, l->class_methods), n;
	char text[NAME_SIZE];

	n = methods ? jvm_get(j, methods, half_word) : 0;
	for (uint64_t i = 0; i < n && i < METHODS_MAX && jvm_afford(j, 64); i++) {
		uint64_t at = jvm_get(j, methods + POINTERS_AT + i * 8, whole_word);
		uint64_t constant = jvm_get(j, at, j->layout.method_const);
		uint64_t constants = jvm_get(j, constant, j->layout.const_constants);

		if (!constant_copy(j, constants, jvm_get(j, constant, j->layout.const_name),
				   text) ||
		    !glob_match(method, text))
			continue;
		if (constant_copy(j, constants, jvm_get(j, constant, l->const_signature), text))
			parameters_add(text, ret);
	}
}

/* Interfaces and arrays have no layout of instances: an interface's methods may have code, too. */
static bool has_methods(struct jvm *j, uint64_t class)
{
	int64_t layout;

	return jvm_read(j, class, j->values->class_layout, &layout) && layout >= 0;
}

void jvm_parameters(struct jvm *j, const char *class, const char *method,
		    char ret[JVM_PARAMETERS_MAX])
{
	const struct jvm_values_layout *l = j->values;
	uint64_t loader = jvm_get(j, l->loaders, whole_word);
	uint32_t classes = 0;
	char text[NAME_SIZE];

	memset(ret, 0, JVM_PARAMETERS_MAX);
	for (uint32_t i = 0; loader && i < LOADERS_MAX; i++) {
		uint64_t at = jvm_get(j, loader, l->loader_classes);

		for (; at && !(at & 7) && classes < CLASSES_MAX && jvm_afford(j, 16); classes++) {
			if (symbol_copy(j, jvm_get(j, at, j->layout.class_name), text) &&
			    glob_match(class, text) && has_methods(j, at))
				class_parameters(j, at, method, ret);
			at = jvm_get(j, at, l->class_next);
		}
		loader = jvm_get(j, loader, l->loader_next);
	}
}

/* --- String --- */

/* Numbers of a compressed table. */
struct numbers {
	uint8_t bytes[STREAM_MAX];
	uint32_t n, at, excluded;
};

static uint32_t next_number(struct numbers *s)
{
	return jvm_number(s->excluded, s->bytes, s->n, &s->at);
}

/* The table: how many fields there are, and how many of the JVM's own are behind them; then for
 * each its name, signature, offset, access and flags, and what the flags say. */
static uint32_t field_in_stream(const struct jvm *j, uint64_t class, const char *name)
{
	uint64_t constants = jvm_get(j, class, j->layout.class_constants),
		 at = jvm_get(j, class, j->values->class_stream),
		 length = at ? jvm_get(j, at, half_word) : 0;
	struct numbers s = { .excluded = j->layout.excluded };
	char text[NAME_SIZE];
	uint32_t fields;

	s.n = space_read_some(j->runtime.space, at + STREAM_AT, s.bytes,
			      length < STREAM_MAX ? (uint32_t)length : STREAM_MAX);
	fields = next_number(&s);
	(void)next_number(&s);
	while (fields-- && s.at < s.n) {
		uint32_t index = next_number(&s), offset, flags;

		(void)next_number(&s);
		offset = next_number(&s);
		(void)next_number(&s);
		flags = next_number(&s);
		flags &= STREAM_VALUE | STREAM_GENERIC | STREAM_CONTENDED;
		for (uint32_t bit = 1; bit <= STREAM_CONTENDED; bit <<= 1)
			if (flags & bit)
				(void)next_number(&s);
		if (constant_copy(j, constants, index, text) && !strcmp(text, name))
			return offset;
	}
	return 0;
}

/* Returns the place of a field, 0: there is none. */
static uint32_t field_at(const struct jvm *j, uint64_t class, const char *name)
{
	const struct jvm_values_layout *l = j->values;
	uint64_t constants = jvm_get(j, class, j->layout.class_constants),
		 fields = jvm_get(j, class, l->class_fields),
		 n = jvm_get(j, class, l->class_nfields);
	char text[NAME_SIZE];

	if (l->class_stream.width)
		return field_in_stream(j, class, name);
	for (uint64_t i = 0; fields && i < n && i < FIELDS_MAX; i++) {
		uint16_t w[FIELD_WORDS];

		if (space_read_some(j->runtime.space, fields + FIELDS_AT + i * sizeof(w), w,
				    sizeof(w)) != sizeof(w))
			return 0;
		if (constant_copy(j, constants, w[FIELD_NAME], text) && !strcmp(text, name))
			return (w[FIELD_OFFSET] | (uint32_t)w[FIELD_OFFSET + 1] << 16) >>
			       FIELD_TAG_BITS;
	}
	return 0;
}

/* Takes what is common to both kinds of ZGC: the bits of an offset in the heap, and the parts from
 * which objects are moved. */
static bool parts(const struct jvm *j, struct jvm_string *s)
{
	const struct jvm_values_layout *l = j->values;
	uint64_t globals = jvm_get(j, l->z_globals, whole_word),
		 mask = jvm_get(j, jvm_get(j, globals, l->z_offset_mask), whole_word);

	if (!mask || mask & (mask + 1) || !l->z_heap.width || !l->z_map.width ||
	    !l->z_table.width || !l->z_part_entries.width || !l->z_part.width ||
	    l->z_part.at + l->z_start.at || l->z_part_shift.at + 8 != l->z_part_entries.at ||
	    l->z_part_size > UINT8_MAX)
		return false;
	s->part_entries = (uint8_t)(l->z_part_entries.at + l->z_length.at);
	s->part_size = (uint8_t)((l->z_part_size + 7) & ~7ull);
	s->shift = (uint8_t)__builtin_popcountll(mask);
	return true;
}

/* Returns the table of a generation (zGeneration.hpp), 0: it is not where it is known to be. */
static uint64_t generation(const struct jvm *j, const char *symbol)
{
	enum { PAGES_AT = 24, TABLE_AT = 32 };
	const struct jvm_values_layout *l = j->values;
	uint64_t addr, at, pages,
		heap = jvm_get(j, l->heap, whole_word) + l->z_heap.at + l->z_pages.at;

	if (!object_symbol_value(j->object, symbol, &addr) || !l->z_pages.width ||
	    !jvm_word(j, j->bias + addr, &at) || !jvm_word(j, at + PAGES_AT, &pages) ||
	    pages != heap)
		return 0;
	return jvm_get(j, at + TABLE_AT + l->z_map.at, l->z_table);
}

/* From Java 21 on, references of ZGC may have their colour in the lowest bits. */
static bool coloured_below(const struct jvm *j, struct jvm_string *s)
{
	const struct jvm_values_layout *l = j->values;
	uint64_t globals = jvm_get(j, l->z_globals, whole_word);

	s->base = generation(j, "_ZN11ZGeneration6_youngE");
	s->old = (int64_t)(generation(j, "_ZN11ZGeneration4_oldE") - s->base);
	s->good = l->z_good.width ? jvm_get(j, globals, l->z_good) : 0;
	s->references = JVM_GENERATIONS;
	return s->good && s->base && s->old != -(int64_t)s->base && parts(j, s);
}

/* References of ZGC without generations are coloured above the bits of an offset in the heap. */
static bool coloured(const struct jvm *j, struct jvm_string *s)
{
	const struct jvm_values_layout *l = j->values;
	uint64_t heap = jvm_get(j, l->heap, whole_word);

	if (!l->z_moving.width || !parts(j, s))
		return false;
	s->base = jvm_get(j, heap + l->z_heap.at + l->z_moving.at + l->z_map.at, l->z_table);
	s->references = JVM_COLOURED;
	return s->base != 0;
}

static bool read_string(const struct jvm *j, struct jvm_string *ret)
{
	const struct jvm_values_layout *l = j->values;
	uint64_t class = jvm_get(j, l->string, whole_word);
	struct jvm_string s = { 0 };

	s.value = (uint8_t)field_at(j, class, "value");
	s.coder = (uint8_t)field_at(j, class, "coder");
	s.length = jvm_option(j, "UseCompactObjectHeaders")      ? LENGTH_AT_COMPACT
		   : jvm_option(j, "UseCompressedClassPointers") ? LENGTH_AT_NARROW
								 : LENGTH_AT;
	s.data = (uint8_t)(s.length + 4);
	if (strtoul(j->runtime.version, NULL, 10) < UNALIGNED)
		s.data = (s.data + 7u) & ~7u;
	if (!s.value || !s.coder)
		return false;
	if (jvm_option(j, "UseZGC")) {
		if (!coloured(j, &s) && !coloured_below(j, &s))
			return false;
	} else if (jvm_option(j, "UseCompressedOops")) {
		s.references = JVM_NARROW;
		s.base = jvm_get(j, l->oop_base, whole_word);
		s.shift = (uint8_t)(jvm_get(j, l->oop_shift, half_word) & 31);
	}
	*ret = s;
	return true;
}

static bool known_variables(struct jvm_values_layout *l)
{
	if (!l->string) {
		l->string = l->old_string;
		l->oop_base = l->old_base;
		l->oop_shift = l->old_shift;
	}
	if (!l->oop_base) {
		l->oop_base = l->new_base;
		l->oop_shift = l->new_shift;
	}
	return l->string && l->oop_base && l->oop_shift;
}

bool jvm_values_read(struct jvm *j, struct jvm_string *ret_string, uint32_t *ret_signature)
{
	static const struct jvm_wanted wanted = {
		.members = value_members,
		.nmembers = ARRAY_SIZE(value_members),
		.variables = value_variables,
		.nvariables = ARRAY_SIZE(value_variables),
		.sizes = value_sizes,
		.nsizes = ARRAY_SIZE(value_sizes),
	};
	struct jvm_values_layout *l = arena_new(&j->names, struct jvm_values_layout);

	j->values = l;
	if (!jvm_tables_read(j, &wanted, l) || !known_variables(l) || !read_string(j, ret_string)) {
		j->values = NULL;
		return false;
	}
	*ret_signature = l->const_signature.at;
	return true;
}
