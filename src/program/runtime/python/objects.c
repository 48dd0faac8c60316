/* Tells what an object of CPython is, by the name of its type. */
#include "program/runtime/python/python_objects.h"

enum { BASES_MAX = 64 };

/* coroutine_wrapper, async_generator_asend and _athrow, anext_awaitable, FutureIter and (to 3.11)
 * the holder of a thread's loop begin with the object that they stand for. */
static const struct {
	const char *name;
	enum python_is is;
} names[] = {
	{ "_asyncio.Task", PYTHON_IS_TASK },
	{ "_asyncio.Future", PYTHON_IS_FUTURE },
	{ "_asyncio.FutureIter", PYTHON_IS_LINK },
	{ "coroutine", PYTHON_IS_FRAMED },
	{ "generator", PYTHON_IS_FRAMED },
	{ "async_generator", PYTHON_IS_FRAMED },
	{ "coroutine_wrapper", PYTHON_IS_LINK },
	{ "async_generator_asend", PYTHON_IS_LINK },
	{ "async_generator_athrow", PYTHON_IS_LINK },
	{ "anext_awaitable", PYTHON_IS_LINK },
	{ "_RunningLoopHolder", PYTHON_IS_LINK },
	{ "method", PYTHON_IS_METHOD },
	{ "function", PYTHON_IS_FUNCTION },
	{ "functools.partial", PYTHON_IS_PARTIAL },
	{ "TaskGroup", PYTHON_IS_GROUP },
	{ "dict", PYTHON_IS_DICT },
	{ "set", PYTHON_IS_SET },
	{ "list", PYTHON_IS_LIST },
	{ "tuple", PYTHON_IS_TUPLE },
	{ "str", PYTHON_IS_STR },
	{ "int", PYTHON_IS_INT },
	{ "weakref", PYTHON_IS_WEAK },
	{ "weakref.ReferenceType", PYTHON_IS_WEAK },
};

static const struct python_part *part_at(struct python_objects *o, uint64_t addr)
{
	const uint64_t first = addr & ~(PYTHON_PART - 1ull);
	struct python_part *part;

	if (!o->parts)
		o->parts = xcalloc(PYTHON_PARTS, sizeof(*o->parts));
	part = &o->parts[first / PYTHON_PART % PYTHON_PARTS];
	if (part->addr != first || !part->n) {
		part->addr = first;
		part->n = space_read_some(o->p->runtime.space, first, part->bytes, PYTHON_PART);
	}
	return part;
}

/* Returns false when the walk is to end: looks at parts that were read before are work, too. */
static bool may_look(struct python_objects *o)
{
	struct space *s = o->p->runtime.space;

	return !space_is_spent(s) && (++o->looks % PYTHON_LOOKS || space_step(s));
}

bool python_bytes(struct python_objects *o, uint64_t addr, void *buf, uint32_t n)
{
	if (!may_look(o))
		return false;
	for (uint8_t *to = buf; n;) {
		const struct python_part *part = part_at(o, addr);
		const uint32_t at = (uint32_t)(addr - part->addr);
		const uint32_t here = PYTHON_PART - at < n ? PYTHON_PART - at : n;

		if (at + here > part->n)
			return false;
		memcpy(to, part->bytes + at, here);
		addr += here;
		to += here;
		n -= here;
	}
	return true;
}

bool python_word(struct python_objects *o, uint64_t addr, uint64_t *ret)
{
	return python_bytes(o, addr, ret, sizeof(*ret));
}

void python_reader_fini(struct python_objects *o)
{
	hash_fini(&o->kinds);
	free(o->parts);
}

/* Returns false when the text has PYTHON_NAME_MAX characters or more. */
static bool name_of_type(struct python_objects *o, uint64_t type, char ret[PYTHON_NAME_MAX])
{
	uint64_t name;
	uint32_t n;

	if (!python_word(o, type + PYTHON_TYPE_NAME, &name))
		return false;
	n = space_read_some(o->p->runtime.space, name, ret, PYTHON_NAME_MAX);
	return memchr(ret, 0, n);
}

static enum python_is is_of_type(struct python_objects *o, uint64_t type)
{
	for (uint32_t i = 0; type && i < BASES_MAX; i++) {
		char text[PYTHON_NAME_MAX];

		if (name_of_type(o, type, text))
			for (size_t k = 0; k < ARRAY_SIZE(names); k++)
				if (!strcmp(text, names[k].name))
					return names[k].is;
		if (!python_word(o, type + PYTHON_TYPE_BASE, &type))
			break;
	}
	return PYTHON_IS_OTHER;
}

enum python_is python_is(struct python_objects *o, uint64_t object)
{
	uint64_t type, *known;
	bool new;

	if (!object || object & 7 || !python_word(o, object + o->p->layout.object_type, &type) ||
	    !type || type & 7)
		return PYTHON_IS_OTHER;
	known = hash_get(&o->kinds, &type, sizeof(type));
	if (!known) {
		enum python_is is = is_of_type(o, type);

		if (!runtime_afford(&o->p->runtime, &o->p->budget, sizeof(type) * 4))
			return is;
		known = hash_put(&o->kinds, &type, sizeof(type), &new);
		*known = is;
	}
	return (enum python_is) * known;
}

bool python_type_name(struct python_objects *o, uint64_t object, char ret[PYTHON_NAME_MAX])
{
	uint64_t type;

	return python_word(o, object + o->p->layout.object_type, &type) &&
	       name_of_type(o, type, ret);
}
