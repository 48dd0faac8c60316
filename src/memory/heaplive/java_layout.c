/* The layout of HotSpot's heap, from the tables that libjvm.so publishes for debuggers. */
#include <stddef.h>
#include <stdlib.h>

#include "memory/heaplive/java_heap.h"

/* The bits of a mark that are 0 without a lock: beside the hash and the age. */
#define MARK_UNUSED 0xffffff8000000080ull
#define MARK_UNUSED_MOVED 0xfffffc0000000780ull
enum { MARK_MOVED = 24 /* from this version on */ };

static const struct jvm_wanted_member java_members[] = {
#define X(name, required, type, member) \
	{ { type, "" }, { member, "" }, offsetof(struct java_layout, name), required },
	JAVA_MEMBERS(X)
#undef X
#define X(name, type, member) \
	{ { type, "" }, { member, "" }, offsetof(struct java_layout, name), false },
		JAVA_OTHER_MEMBERS(X)
#undef X
};

static const struct jvm_wanted_value java_variables[] = {
#define X(name, required, type, member) \
	{ type, member, offsetof(struct java_layout, variable.name), required },
	JAVA_VARIABLES(X)
#undef X
#define X(name, type, member) { type, member, offsetof(struct java_layout, variable.name), false },
		JAVA_OTHER_VARIABLES(X)
#undef X
};

static const struct jvm_wanted_value java_sizes[] = {
#define X(name, required, type) { type, NULL, offsetof(struct java_layout, size.name), required },
	JAVA_SIZES(X)
#undef X
};

static uint64_t value_at(const struct java_reader *x, uint64_t variable, uint8_t width)
{
	return jvm_get(x->jvm, variable, (struct jvm_member){ 0, width });
}

static struct err *find_collector(struct java_reader *x)
{
	static const struct {
		const char *option;
		enum java_collector collector;
	} known[] = { { "UseG1GC", JAVA_G1 },
		      { "UseZGC", JAVA_ZGC },
		      { "UseParallelGC", JAVA_PARALLEL },
		      { "UseSerialGC", JAVA_SERIAL } };
	static const char *const others[] = { "ShenandoahGC", "EpsilonGC" };
	char option[32];

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (jvm_option(x->jvm, known[i].option)) {
			x->collector = known[i].collector;
			return x->collector == JAVA_ZGC ? java_zgc_find(x) : NULL;
		}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		snprintf(option, sizeof(option), "Use%s", others[i]);
		if (jvm_option(x->jvm, option))
			return err_new(
				0,
				"the heap of Java's collector %s is not known to descry: "
				"it reads those of G1, Parallel, Serial and ZGC. A heap dump "
				"(jcmd PID GC.heap_dump FILE) can be read",
				others[i]);
	}
	return err_new(0, "Java's collector is not found");
}

struct err *java_layout_read(struct java_reader *x)
{
	static const struct jvm_wanted wanted = {
		.members = java_members,
		.nmembers = ARRAY_SIZE(java_members),
		.variables = java_variables,
		.nvariables = ARRAY_SIZE(java_variables),
		.sizes = java_sizes,
		.nsizes = ARRAY_SIZE(java_sizes),
	};
	struct java_layout *l = &x->layout;
	uint64_t align;

	if (!jvm_tables_read(x->jvm, &wanted, l) ||
	    (!l->class_stream.width && (!l->class_fields.width || !l->class_nfields.width)))
		return err_new(0,
			       "the heap of Java %s is not known to descry: it reads those of 11, "
			       "17 and 25. A heap dump (jcmd PID GC.heap_dump FILE) can be read",
			       x->jvm->runtime.version);
	if (jvm_option(x->jvm, "UseCompactObjectHeaders"))
		return err_new(0,
			       "compact headers of Java's objects (-XX:+UseCompactObjectHeaders) "
			       "are not known to descry. A heap dump (jcmd PID GC.heap_dump "
			       "FILE) can be read");
	if (!l->region_bottom.width)
		l->region_bottom = l->space_bottom; /* of 11, in which regions are spaces */
	x->major = (unsigned)atoi(x->jvm->runtime.version);
	x->mark_unused = x->major >= MARK_MOVED ? MARK_UNUSED_MOVED : MARK_UNUSED;
	align = jvm_option_number(x->jvm, "ObjectAlignmentInBytes");
	x->align = align >= 8 && align <= 256 && !(align & (align - 1)) ? (uint32_t)align : 8;
	x->narrow = jvm_option(x->jvm, "UseCompressedOops");
	x->narrow_class = jvm_option(x->jvm, "UseCompressedClassPointers");
	x->oop_base = value_at(x, l->variable.oop_base, 8);
	x->oop_shift = (uint32_t)value_at(x, l->variable.oop_shift, 4) & 31;
	x->class_base = value_at(x, l->variable.class_base, 8);
	x->class_shift = (uint32_t)value_at(x, l->variable.class_shift, 4) & 31;
	x->mirror_class = (uint32_t)value_at(x, l->variable.mirror_class, 4);
	x->mirror_words = (uint32_t)value_at(x, l->variable.mirror_words, 4);
	return find_collector(x);
}
