/* The names of functions: methods by their entries, with the class in front. */
#include <string.h>

#include "program/runtime/ruby/ruby.h"
#include "wire/language.h"

enum {
	/* rb_method_entry_t, rb_method_definition_t */
	METHOD_DEFINITION = 16,
	METHOD_OWNER = 32,
	DEFINITION_ISEQ = 8,
	DEFINITION_ID = 32,
	DEFINITION_KIND_MASK = 15,
	KIND_ISEQ = 0,
};

uint64_t ruby_method(const struct ruby *r, uint64_t value, bool svar)
{
	switch (ruby_imemo(r, value)) {
	case RUBY_IMEMO_METHOD: return value;
	case RUBY_IMEMO_SVAR:
		return svar && ruby_word(r, value + WIRE_RUBY_SVAR_METHOD, &value)
			       ? ruby_method(r, value, false)
			       : 0;
	}
	return 0;
}

/* "Order#save", "Order.find"; the method's name alone when its class has none. */
static const char *method_name(struct ruby *r, uint64_t entry, const char *prefix, const char *name)
{
	const char *class;
	uint64_t owner;
	bool singleton;

	if (!ruby_word(r, entry + METHOD_OWNER, &owner))
		return name;
	class = ruby_class_name(r, owner, &singleton);
	if (!class || !ruby_afford(r, strlen(prefix) + strlen(class) + strlen(name) + 2))
		return NULL;
	return arena_printf(&r->names, "%s%s%c%s", prefix, class, singleton ? '.' : '#', name);
}

/* Is the code a part of the method that an entry has? */
static bool is_method_of(struct ruby *r, const struct ruby_code *c, uint64_t entry)
{
	uint64_t definition, kind, iseq;

	return ruby_code_is(r, c->local, RUBY_ISEQ_METHOD) &&
	       ruby_word(r, entry + METHOD_DEFINITION, &definition) &&
	       ruby_word(r, definition, &kind) && (kind & DEFINITION_KIND_MASK) == KIND_ISEQ &&
	       ruby_word(r, definition + DEFINITION_ISEQ, &iseq) && iseq == c->local;
}

/* The label with the class in front of the method's name: "block in Order#save". */
static const char *label(struct ruby *r, const struct ruby_code *c, uint64_t entry)
{
	size_t n, base;
	const char *name;
	char *prefix;

	if (!c->label || !c->base || !entry || !is_method_of(r, c, entry))
		return c->label;
	n = strlen(c->label);
	base = strlen(c->base);
	if (n < base || strcmp(c->label + n - base, c->base) || !ruby_afford(r, n - base + 1))
		return c->label;
	prefix = arena_strndup(&r->names, c->label, n - base);
	name = method_name(r, entry, prefix, c->base);
	return name == c->base || !name ? c->label : name;
}

/* The name of a function of C that is a method. */
static const char *c_name(struct ruby *r, uint64_t entry)
{
	uint64_t definition, id;
	const char *name, *full;

	if (!ruby_word(r, entry + METHOD_DEFINITION, &definition) ||
	    !ruby_word(r, definition + DEFINITION_ID, &id))
		return NULL;
	name = ruby_id_name(r, id);
	full = name ? method_name(r, entry, "", name) : NULL;
	return full ?: name;
}

const char *ruby_function_name(struct ruby *r, const struct ruby_code *c, uint64_t entry)
{
	return c ? label(r, c, entry) : c_name(r, entry);
}
