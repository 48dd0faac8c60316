/* Java's functions: name, file and lines. */
#include <string.h>

#include "program/runtime/jvm/jvm.h"
#include "wire/language.h"

enum {
	TEXT_MAX = 4096,     /* bytes of a name; longer ones are cut */
	LINES_MAX = 1 << 18, /* bytes of a table of lines */
	HAS_LINES = 1,       /* of const_flags */
	NATIVE = 0x100,      /* of method_access */
	HIDDEN_DIGITS = 16,
	FREE_TABLE = 1 << 14, /* bytes of a table that are read without a charge to `work` */
	FOUND_MAX = 1 << 16,  /* lines that are kept */
};

/* Returns the text of a Symbol. */
static char *symbol(struct jvm *j, uint64_t addr)
{
	uint64_t n = jvm_get(j, addr, j->layout.symbol_length);

	if (!n)
		return NULL;
	return jvm_text(j, addr + j->layout.symbol_text.at, n < TEXT_MAX ? (uint32_t)n : TEXT_MAX);
}

static char *constant(struct jvm *j, uint64_t constants, uint64_t index)
{
	uint64_t v;

	if (!index || index >= jvm_get(j, constants, j->layout.constants_length) ||
	    !jvm_word(j, constants + j->layout.size.constants + index * 8, &v))
		return NULL;
	return symbol(j, v);
}

/* Changes java/lang/Thread to java.lang.Thread. The name of a hidden class ends with + and its
 * address; Java writes a slash for the +. */
static void class_text(char *name)
{
	char *plus = strrchr(name, '+');

	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '.';
	if (plus && !strncmp(plus, "+0x", 3) && strlen(plus) == 3 + HIDDEN_DIGITS &&
	    strspn(plus + 3, "0123456789abcdef") == HIDDEN_DIGITS)
		*plus = '/';
}

static void read_names(struct jvm *j, struct jvm_method *m, uint64_t constant_method,
		       uint64_t constants, uint64_t class)
{
	const struct jvm_layout *l = &j->layout;
	char *holder = symbol(j, jvm_get(j, class, l->class_name));
	char *name = constant(j, constants, jvm_get(j, constant_method, l->const_name));
	uint64_t file = l->constants_file.width ? jvm_get(j, constants, l->constants_file)
						: jvm_get(j, class, l->class_file);

	m->file = constant(j, constants, file);
	if (!holder || !name)
		return;
	class_text(holder);
	if (jvm_afford(j, strlen(holder) + strlen(name) + 2))
		m->function = arena_printf(&j->names, "%s.%s", holder, name);
}

/* The table of lines follows the bytecodes. */
static void read_lines(struct jvm *j, struct jvm_method *m, uint64_t constant_method)
{
	uint64_t end = constant_method + jvm_get(j, constant_method, j->layout.const_words) * 8;
	uint64_t from = m->code + m->code_size;
	uint8_t *lines;

	if (!(jvm_get(j, constant_method, j->layout.const_flags) & HAS_LINES) || end <= from ||
	    end - from > LINES_MAX || !jvm_afford(j, end - from))
		return;
	lines = arena_alloc(&j->names, end - from);
	m->nlines = space_read_some(j->runtime.space, from, lines, (uint32_t)(end - from));
	m->lines = lines;
}

static struct jvm_method *method_read(struct jvm *j, uint64_t address)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t constant_method, constants, class;
	struct jvm_method *m;

	if (!address || address & 7)
		return NULL;
	constant_method = jvm_get(j, address, l->method_const);
	constants = jvm_get(j, constant_method, l->const_constants);
	class = jvm_get(j, constants, l->constants_class);
	if (!class || jvm_get(j, class, l->class_constants) != constants)
		return NULL;
	m = arena_new(&j->names, struct jvm_method);
	m->address = address;
	read_names(j, m, constant_method, constants, class);
	if (jvm_get(j, address, l->method_access) & NATIVE)
		return m;
	m->code = constant_method + l->size.const_method;
	m->code_size = (uint32_t)jvm_get(j, constant_method, l->const_code_size);
	read_lines(j, m, constant_method);
	return m;
}

static const struct jvm_method *method_known(const struct jvm *j, uint64_t key)
{
	const uint64_t *known = hash_get(&j->methods, &key, sizeof(key));

	return known ? (const struct jvm_method *)(uintptr_t)*known : NULL;
}

const struct jvm_method *jvm_method(struct jvm *j, uint64_t address)
{
	const struct jvm_method *m = method_known(j, address);

	if (m)
		return m;
	m = method_read(j, address);
	if (m)
		*hash_put(&j->methods, &address, sizeof(address), NULL) = (uintptr_t)m;
	return m;
}

bool jvm_method_id(const struct jvm *j, uint64_t address, uint64_t *ret)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t constant[2], constants, class, name[2];

	if (!address || address & 7 || !jvm_word(j, address + l->method_const.at, &constant[0]) ||
	    !jvm_word(j, constant[0] + (l->const_name.at & ~7u), &constant[1]) ||
	    !jvm_word(j, constant[0] + l->const_constants.at, &constants) ||
	    !jvm_word(j, constants + l->constants_class.at, &class) ||
	    !jvm_word(j, class + l->class_name.at, &name[0]) || !jvm_word(j, name[0], &name[1]))
		return false;
	name[1] &= ~(0xffffull << jvm_symbol_count(l) * 8);
	*ret = wire_language_java_id((uint32_t)j->runtime.space->pid, address, constant, constants,
				     name);
	return true;
}

const struct jvm_method *jvm_method_now(struct jvm *j, uint64_t address)
{
	const struct jvm_method *m;
	uint64_t id, after, key;

	if (!jvm_method_id(j, address, &id))
		return NULL;
	key = JVM_NOW | id;
	m = method_known(j, key);
	if (m || !jvm_afford(j, sizeof(*m)))
		return m;
	m = method_read(j, address);
	/* The class may go, and another may take its place, while it is read. */
	if (!m || !jvm_method_id(j, address, &after) || after != id)
		return NULL;
	*hash_put(&j->methods, &key, sizeof(key), NULL) = (uintptr_t)m;
	return m;
}

/* Reads the entries. In a byte, five bits are the number of bytecodes and three bits the number of
 * lines to step forward. 255: two signed numbers follow. 0: the end.
 * (CompressedLineNumberReadStream) */
static uint32_t search_lines(struct jvm *j, const struct jvm_method *m, int64_t bci)
{
	int64_t at = 0, line = 0, best_at = 0, best = 0;
	uint32_t i = 0;

	if (m->nlines > j->work)
		return 0;
	j->work -= m->nlines > FREE_TABLE ? m->nlines : 0;
	while (i < m->nlines && m->lines[i]) {
		uint8_t first = m->lines[i++];

		if (first == 0xff) {
			uint32_t v = jvm_number(j->layout.excluded, m->lines, m->nlines, &i);
			uint32_t w = jvm_number(j->layout.excluded, m->lines, m->nlines, &i);

			at += (int32_t)(v >> 1 ^ -(v & 1));
			line += (int32_t)(w >> 1 ^ -(w & 1));
		} else {
			at += first >> 3;
			line += first & 7;
		}
		if (at == bci)
			return line > 0 ? (uint32_t)line : 0;
		if (at < bci && at >= best_at) {
			best_at = at;
			best = line;
		}
	}
	return best > 0 ? (uint32_t)best : 0;
}

/* A table may be long, and many frames may be at one place. */
uint32_t jvm_line(struct jvm *j, const struct jvm_method *m, int64_t bci)
{
	const uint64_t key[] = { (uintptr_t)m, bci < 0 ? 0 : (uint64_t)bci }; /* -1: the entry */
	uint64_t *known;
	bool is_new;

	if (j->lines.n >= FOUND_MAX)
		hash_fini(&j->lines);
	known = hash_put(&j->lines, key, sizeof(key), &is_new);
	if (is_new)
		*known = search_lines(j, m, (int64_t)key[1]);
	return (uint32_t)*known;
}
