/* The layout of the JVM's structures, from the tables that libjvm.so publishes for debuggers. */
#include <stddef.h>
#include <string.h>

#include "program/runtime/jvm/jvm.h"

enum { ENTRIES_MAX = 1 << 14, FLAGS_MAX = 1 << 13, NAME_SIZE = 128 };

/* A table: an array of entries that ends at one without a name. */
struct table {
	struct jvm *j;
	uint64_t at, stride;
	uint32_t left;
	uint64_t type_at; /* of `type` */
	char type[NAME_SIZE];
};

static const struct jvm_wanted_member members[] = {
#define X(name, required, type, member, type2, member2) \
	{ { type, type2 }, { member, member2 }, offsetof(struct jvm_layout, name), required },
	JVM_MEMBERS(X)
#undef X
};

static const struct jvm_wanted_value variables[] = {
#define X(name, required, type, member) \
	{ type, member, offsetof(struct jvm_layout, variable.name), required },
	JVM_VARIABLES(X)
#undef X
};

static const struct jvm_wanted_value sizes[] = {
#define X(name, required, type) { type, NULL, offsetof(struct jvm_layout, size.name), required },
	JVM_SIZES(X)
#undef X
};

static const struct jvm_wanted wanted = {
	.members = members,
	.nmembers = ARRAY_SIZE(members),
	.variables = variables,
	.nvariables = ARRAY_SIZE(variables),
	.sizes = sizes,
	.nsizes = ARRAY_SIZE(sizes),
};

/* Reads the word in an exported variable: gHotSpotVM and so on. */
static bool published(const struct jvm *j, const char *name, uint64_t *ret)
{
	uint64_t addr;
	char full[NAME_SIZE];

	snprintf(full, sizeof(full), "gHotSpotVM%s", name);
	return object_symbol_value(j->object, full, &addr) && jvm_word(j, addr + j->bias, ret);
}

static bool name_at(const struct jvm *j, uint64_t addr, char *ret)
{
	uint32_t n = space_read_some(j->runtime.space, addr, ret, NAME_SIZE);

	return n && memchr(ret, 0, n);
}

static bool table_open(struct table *t, struct jvm *j, const char *name, const char *stride)
{
	*t = (struct table){ .j = j, .left = ENTRIES_MAX };
	return published(j, name, &t->at) && published(j, stride, &t->stride);
}

/* Reads the type's name of the next entry, and its address. */
static bool table_next(struct table *t, uint64_t type_offset, uint64_t *ret)
{
	uint64_t type;

	if (!t->left-- || !jvm_word(t->j, t->at + type_offset, &type) || !type)
		return false;
	if (type != t->type_at && !name_at(t->j, type, t->type))
		return false;
	t->type_at = type;
	*ret = t->at;
	t->at += t->stride;
	return true;
}

static uint8_t width_of(const char *type)
{
	static const struct {
		const char *name;
		uint8_t width;
	} widths[] = {
		{ "bool", 1 },         { "u1", 1 },
		{ "u2", 2 },           { "int16_t", 2 },
		{ "u4", 4 },           { "int", 4 },
		{ "jint", 4 },         { "unsigned short", 2 },
		{ "const uint", 4 },   { "pid_t", 4 },
		{ "uint", 4 },         { "OSThread::thread_id_t", 4 },
		{ "unsigned int", 4 }, { "ushort", 2 },
		{ "short", 2 },        { "jushort", 2 },
		{ "AccessFlags", 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (!strcmp(widths[i].name, type))
			return widths[i].width;
	return 8;
}

static struct jvm_member *member_of(void *layout, uint32_t to)
{
	return (struct jvm_member *)(void *)((char *)layout + to);
}

static uint64_t *value_of(void *layout, uint32_t to)
{
	return (uint64_t *)(void *)((char *)layout + to);
}

static void take_member(const struct jvm_wanted *w, void *l, const char *type, const char *member,
			const char *of_type, uint64_t offset)
{
	for (size_t i = 0; i < w->nmembers; i++)
		for (uint32_t k = 0; k < 2; k++)
			if (!strcmp(w->members[i].type[k], type) &&
			    !strcmp(w->members[i].member[k], member))
				*member_of(l, w->members[i].to) =
					(struct jvm_member){ (uint32_t)offset, width_of(of_type) };
}

static void take_variable(const struct jvm_wanted *w, void *l, const char *type, const char *member,
			  uint64_t addr)
{
	for (size_t i = 0; i < w->nvariables; i++)
		if (!strcmp(w->variables[i].type, type) && !strcmp(w->variables[i].member, member))
			*value_of(l, w->variables[i].to) = addr;
}

static bool read_members(struct jvm *j, const struct jvm_wanted *w, void *l)
{
	uint64_t type, member, of_type, is_static, offset, address, at, v[5];
	char name[NAME_SIZE], of_name[NAME_SIZE];
	struct table t;

	if (!table_open(&t, j, "Structs", "StructEntryArrayStride") ||
	    !published(j, "StructEntryTypeNameOffset", &type) ||
	    !published(j, "StructEntryFieldNameOffset", &member) ||
	    !published(j, "StructEntryTypeStringOffset", &of_type) ||
	    !published(j, "StructEntryIsStaticOffset", &is_static) ||
	    !published(j, "StructEntryOffsetOffset", &offset) ||
	    !published(j, "StructEntryAddressOffset", &address))
		return false;
	while (table_next(&t, type, &at)) {
		if (!jvm_word(j, at + member, &v[0]) || !jvm_word(j, at + of_type, &v[1]) ||
		    !jvm_word(j, at + is_static, &v[2]) || !jvm_word(j, at + offset, &v[3]) ||
		    !jvm_word(j, at + address, &v[4]) || !name_at(j, v[0], name))
			return false;
		if ((uint32_t)v[2])
			take_variable(w, l, t.type, name, v[4]);
		else
			take_member(w, l, t.type, name, name_at(j, v[1], of_name) ? of_name : "",
				    v[3]);
	}
	return true;
}

static bool read_sizes(struct jvm *j, const struct jvm_wanted *w, void *l)
{
	uint64_t type, size, at, v;
	struct table t;

	if (!table_open(&t, j, "Types", "TypeEntryArrayStride") ||
	    !published(j, "TypeEntryTypeNameOffset", &type) ||
	    !published(j, "TypeEntrySizeOffset", &size))
		return false;
	while (table_next(&t, type, &at))
		for (size_t i = 0; i < w->nsizes; i++)
			if (!strcmp(w->sizes[i].type, t.type) && jvm_word(j, at + size, &v))
				*value_of(l, w->sizes[i].to) = v;
	return true;
}

static bool has_required(const struct jvm_wanted *w, void *l)
{
	for (size_t i = 0; i < w->nmembers; i++)
		if (w->members[i].required && !member_of(l, w->members[i].to)->width)
			return false;
	for (size_t i = 0; i < w->nvariables; i++)
		if (w->variables[i].required && !*value_of(l, w->variables[i].to))
			return false;
	for (size_t i = 0; i < w->nsizes; i++)
		if (w->sizes[i].required && !*value_of(l, w->sizes[i].to))
			return false;
	return true;
}

bool jvm_tables_read(struct jvm *j, const struct jvm_wanted *w, void *layout)
{
	return read_members(j, w, layout) && read_sizes(j, w, layout) && has_required(w, layout);
}

/* Java 11 has its threads in a linked list, later versions in an array. */
static bool has_threads(const struct jvm_layout *l)
{
	return (l->variable.threads && l->threads_length.width && l->threads_first.width) ||
	       (l->variable.threads_linked && l->thread_next.width);
}

bool jvm_layout_read(struct jvm *j, struct jvm_layout *ret)
{
	struct jvm_layout l = { 0 };

	if (!jvm_tables_read(j, &wanted, &l) || l.size.pc != 16 ||
	    !(l.blob_code.width || l.blob_code_offset.width) ||
	    !(l.compiled_scopes.width || l.compiled_scopes_offset.width) ||
	    !(l.compiled_metadata.width || l.blob_mutable.width) || !has_threads(&l))
		return false;
	*ret = l;
	return true;
}

/* Finds an option of the JVM: its JVMFlag. Returns 0 when there is no such option. */
static uint64_t option_find(const struct jvm *j, const char *name)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t at, n, text;
	char option[NAME_SIZE];

	if (!l->variable.flags || !l->variable.nflags || !l->size.flag ||
	    !jvm_word(j, l->variable.flags, &at) || !jvm_word(j, l->variable.nflags, &n))
		return 0;
	for (uint64_t i = 0; i < n && i < FLAGS_MAX; i++, at += l->size.flag) {
		text = jvm_get(j, at, l->flag_name);
		if (text && name_at(j, text, option) && !strcmp(option, name))
			return at;
	}
	return 0;
}

static uint64_t option_value(const struct jvm *j, const char *name)
{
	uint64_t at = option_find(j, name);

	return at ? jvm_get(j, at, j->layout.flag_value) : 0;
}

bool jvm_option_is_default(const struct jvm *j, const char *name)
{
	enum { ORIGIN = 0xf }; /* JVMFlag::VALUE_ORIGIN_MASK; DEFAULT is 0 */
	uint64_t at = j->layout.flag_origin.width ? option_find(j, name) : 0;

	return at && !(jvm_get(j, at, j->layout.flag_origin) & ORIGIN);
}

bool jvm_option(const struct jvm *j, const char *name)
{
	uint64_t value = option_value(j, name);

	return value && jvm_get(j, value, (struct jvm_member){ 0, 1 }) == 1;
}

uint64_t jvm_option_number(const struct jvm *j, const char *name)
{
	uint64_t value = option_value(j, name);

	return value ? jvm_get(j, value, (struct jvm_member){ 0, 4 }) : 0;
}
