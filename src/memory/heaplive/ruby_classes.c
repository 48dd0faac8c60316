/* The classes of Ruby's objects, and the names of their variables. */
#include "memory/heaplive/ruby_heap.h"

enum {
	SUPER = 16,
	STEPS_MAX = 1 << 16, /* classes between an object and the class that Ruby code sees */
	CLASSES_MAX = 1 << 24,
	LABELS_MAX = 1 << 16, /* variables of a class that get names */
	LABEL_COST = 8,       /* words that the search for a name takes from the budget */
	RUBY_3_4 = 0x0304,
	ST_SIZE = 56,
	ST_ENTRY = 24,
};

static bool is_singleton(const struct ruby_reader *x, uint64_t flags)
{
	return flags & RUBY_USER(x->ruby->layout.version >= RUBY_3_4 ? 1 : 0);
}

/* Skips singleton classes and those that stand for included modules. */
static uint64_t real_class(struct ruby_reader *x, uint64_t class)
{
	for (uint32_t i = 0; i < STEPS_MAX && x->budget; i++, x->budget--) {
		const uint8_t *slot = ruby_slot(&x->heap, class, NULL);
		uint64_t flags = slot ? ruby_slot_word(slot, 0) : 0;

		if (ruby_type(flags) == RUBY_ICLASS ||
		    (ruby_type(flags) == RUBY_CLASS && is_singleton(x, flags))) {
			class = ruby_slot_word(slot, SUPER);
			continue;
		}
		return ruby_type(flags) == RUBY_CLASS ? class : 0;
	}
	return 0;
}

static void grow_slots(struct ruby_reader *x)
{
	uint32_t n = x->class_mask ? (x->class_mask + 1) * 2 : 1024;

	free(x->class_slots);
	x->class_slots = xcalloc(n, sizeof(*x->class_slots));
	x->class_mask = n - 1;
	for (uint32_t i = 0; i < x->classes.n; i++) {
		uint32_t k = (uint32_t)hash_word(x->classes.v[i].address);

		while (x->class_slots[k & x->class_mask])
			k++;
		x->class_slots[k & x->class_mask] = i + 1;
	}
}

/* Returns the entry of a class, made at the first call. */
static struct ruby_class *class_at(struct ruby_reader *x, uint64_t address)
{
	uint32_t k = (uint32_t)hash_word(address), i;
	struct ruby_class *c;

	if (x->classes.n * 2ull >= x->class_mask)
		grow_slots(x);
	for (; (i = x->class_slots[k & x->class_mask]); k++)
		if (x->classes.v[i - 1].address == address)
			return &x->classes.v[i - 1];
	c = vec_add(&x->classes);
	x->class_slots[k & x->class_mask] = x->classes.n;
	c->address = address;
	return c;
}

static const char *const type_names[RUBY_TYPES] = {
	[RUBY_NONE] = "none",
	[RUBY_OBJECT] = "Object",
	[RUBY_CLASS] = "Class",
	[RUBY_MODULE] = "Module",
	[RUBY_FLOAT] = "Float",
	[RUBY_STRING] = "String",
	[RUBY_REGEXP] = "Regexp",
	[RUBY_ARRAY] = "Array",
	[RUBY_HASH] = "Hash",
	[RUBY_STRUCT] = "Struct",
	[RUBY_BIGNUM] = "Integer",
	[RUBY_FILE] = "File",
	[RUBY_DATA] = "data",
	[RUBY_MATCH] = "MatchData",
	[RUBY_COMPLEX] = "Complex",
	[RUBY_RATIONAL] = "Rational",
	[RUBY_SYMBOL] = "Symbol",
	[RUBY_NODE] = "syntax tree",
	[RUBY_ICLASS] = "included module",
	[RUBY_ZOMBIE] = "waits for its finalizer",
	[RUBY_MOVED] = "moved",
};
static const char *const imemo_names[16] = {
	"environment", "cref",           "special variables",
	"throw",       "function",       "memo",
	"method",      "iseq",           "buffer",
	"syntax",      "parser",         "call info",
	"call cache",  "constant cache",
};

/* The graph's class of objects that Ruby code cannot see, by type. */
static uint32_t hidden(struct ruby_reader *x, uint64_t flags, const char *what)
{
	const uint32_t type = ruby_type(flags), kind = ruby_imemo_kind(flags);
	const bool imemo = type == RUBY_IMEMO;
	struct ruby_class *c = class_at(x, 1 + type + (imemo ? 32 * (1 + kind) : what ? 1024 : 0));
	const char *name = imemo ? imemo_names[kind] : type_names[type];
	char text[64];
	int n;

	if (!c->number) {
		n = snprintf(text, sizeof(text), "(%s)", what ?: name ?: "unknown");
		c->number = graph_class(x->graph, c->address) + 1;
		graph_class_name(x->graph, c->number - 1, text, (size_t)n);
	}
	return c->number - 1;
}

static bool is_name_of_vm(const char *name)
{
	return !strcmp(name, "RubyVM") || !strcmp(name, "Ractor") || !strcmp(name, "Thread") ||
	       !strcmp(name, "Fiber");
}

static void name_class(struct ruby_reader *x, uint32_t number, uint64_t class)
{
	char text[40];
	bool singleton;
	const char *name = ruby_class_name(x->ruby, class, &singleton);
	int n;

	if (name) {
		graph_class_name(x->graph, number, name, strlen(name));
		class_at(x, class)->of_vm = is_name_of_vm(name);
	} else {
		n = snprintf(text, sizeof(text), "#<Class:0x%016llx>", (unsigned long long)class);
		graph_class_name(x->graph, number, text, (size_t)n);
	}
	graph_class_object(x->graph, number, class);
}

uint32_t ruby_class_number(struct ruby_reader *x, const uint8_t *slot, uint64_t *ret_real)
{
	const uint64_t flags = ruby_slot_word(slot, 0), class = ruby_slot_word(slot, 8);
	const uint32_t type = ruby_type(flags);
	struct ruby_class *c;
	uint32_t number;
	uint64_t real;

	*ret_real = 0;
	if (type == RUBY_CLASS && is_singleton(x, flags))
		return hidden(x, flags, "singleton class");
	if (!class || type == RUBY_IMEMO || type == RUBY_ICLASS || type == RUBY_NODE ||
	    type == RUBY_ZOMBIE || type == RUBY_MOVED || ruby_is_immediate(class))
		return hidden(x, flags, NULL);
	c = class_at(x, class);
	if (!c->number) {
		real = c->unreal || x->classes.n > CLASSES_MAX ? 0 : real_class(x, class);
		if (!real) {
			c->unreal = true; /* so that no other object of it walks again */
			return hidden(x, flags, NULL);
		}
		number = graph_class(x->graph, real);
		if (class_at(x, real)->number == 0) {
			name_class(x, number, real);
			class_at(x, real)->number = number + 1;
			class_at(x, real)->real = real;
		}
		c = class_at(x, class); /* the table may have grown */
		c->number = number + 1;
		c->real = real;
	}
	*ret_real = c->real;
	return c->number - 1;
}

bool ruby_class_of_vm(struct ruby_reader *x, uint64_t real)
{
	return class_at(x, real)->of_vm;
}

/* Takes n words from the budget. Returns false when they exceed what is left. The reader then
 * leaves things out, and reports this at its end. */
static bool ruby_spend(struct ruby_reader *x, uint64_t n)
{
	if (x->budget < n) {
		x->budget = 0;
		return false;
	}
	x->budget -= n;
	return true;
}

/* Reads the table ID -> index of a class, where an index is a number or a structure's first
 * member. */
static void read_labels(struct ruby_reader *x, struct ruby_class *c)
{
	const uint8_t *slot = ruby_slot(&x->heap, c->address, NULL), *t, *entries;
	uint64_t extra, table, start, bound;

	c->labelled = true;
	if (!slot || !x->ruby->layout.class_extra || x->ruby->layout.class_path)
		return;
	extra = ruby_slot_word(slot, x->ruby->layout.class_extra);
	t = extra & 7 ? NULL : ruby_memory(x, extra, 8);
	table = t ? ruby_slot_word(t, 0) : 0;
	t = !table || table & 7 ? NULL : ruby_memory(x, table, ST_SIZE);
	if (!t)
		return;
	start = ruby_slot_word(t, 32);
	bound = ruby_slot_word(t, 40);
	if (start > bound || bound - start > LABELS_MAX || start > UINT32_MAX)
		return;
	if (!ruby_spend(x, (bound - start) * LABEL_COST))
		return;
	entries = ruby_memory(x, ruby_slot_word(t, 48) + start * ST_ENTRY,
			      (bound - start) * ST_ENTRY);
	for (uint64_t i = 0; entries && i < bound - start; i++) {
		const uint8_t *e = entries + i * ST_ENTRY, *to;
		uint64_t index = ruby_slot_word(e, 16);
		const char *name;

		if (index >= LABELS_MAX) {
			to = ruby_memory(x, index, 4);
			if (!to)
				continue;
			index = 0;
			memcpy(&index, to, 4);
		}
		name = index < LABELS_MAX ? ruby_id_name(x->ruby, ruby_slot_word(e, 8)) : NULL;
		if (!name)
			continue;
		if (index >= c->nlabels) {
			const uint64_t n = index + 1 > c->nlabels * 2ull ? index + 1
									 : c->nlabels * 2ull;

			/* Any number of classes may have one table with a large index. */
			if (!ruby_spend(x, n - c->nlabels))
				return;
			c->labels = xrealloc(c->labels, n * sizeof(*c->labels));
			memset(c->labels + c->nlabels, 0, (n - c->nlabels) * sizeof(*c->labels));
			c->nlabels = (uint32_t)n;
		}
		c->labels[index] = graph_label(x->graph, name, strlen(name));
	}
}

uint32_t ruby_ivar_label(struct ruby_reader *x, uint64_t class, uint32_t index)
{
	struct ruby_class *c;

	if (!class || !graph_wanted(x->graph)->labels)
		return GRAPH_LABEL_NONE;
	c = class_at(x, class);
	if (!c->labelled)
		read_labels(x, c);
	return index < c->nlabels ? c->labels[index] : GRAPH_LABEL_NONE;
}

void ruby_classes_fini(struct ruby_reader *x)
{
	for (uint32_t i = 0; i < x->classes.n; i++)
		free(x->classes.v[i].labels);
	vec_fini(&x->classes);
	free(x->class_slots);
}
