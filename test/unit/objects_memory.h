/* Makes a process's memory with a heap of Ruby or Python in it for tests: a few objects that refer
 * to each other, in the parts of heap_memory.h. */
#ifndef DESCRY_TEST_OBJECTS_MEMORY_H
#define DESCRY_TEST_OBJECTS_MEMORY_H

#include "heap_memory.h"
#include "memory/heaplive/python_heap.h"
#include "memory/heaplive/ruby_heap.h"

/* Addresses. */
enum {
	OM_VM_WORD = HM_VAR,
	OM_VM = HM_VAR + 0x100,
	OM_COLLECTOR = HM_VAR + 0x200,
	OM_LIST = HM_VAR + 0x300,
	OM_PAGE = HM_VAR + 0x400,
	OM_ROOT = HM_VAR + 0x800, /* a variable of the program */
	OM_SLOTS = HM_MAPPED + 0x28,
	OM_SLOT = 40,
	OM_NSLOTS = 150,
	/* numbers of slots */
	OM_CLASS = 0,
	OM_OBJECT,
	OM_TEXT,
	OM_ARRAY,
	OM_HASH,
	OM_DATA,
	OM_LOST,
	OM_ITEM = 10, /* and 11, 12: what the Array has */
};

static inline uint64_t om_slot(uint32_t i)
{
	return OM_SLOTS + (uint64_t)i * OM_SLOT;
}

static inline void om_object(struct heap_memory *m, uint32_t i, uint64_t flags, uint64_t class,
			     uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t words[] = { flags, class, a, b, c };

	for (uint32_t k = 0; k < 5; k++)
		heap_memory_put(m, om_slot(i) + k * 8, words[k]);
}

/* A class; an object with a String, an Array and a Hash; data with memory of its own that leads to
 * an Array's item; one object that nothing refers to. */
static inline void om_make_ruby(struct heap_memory *m)
{
	uint64_t text, items, table, entries, data, more;

	heap_memory_init(m);
	heap_memory_chunk(m, 0x290, false);
	text = heap_memory_chunk(m, 0x70, false);
	items = heap_memory_chunk(m, 0x50, false);
	table = heap_memory_chunk(m, 0x50, false);
	entries = heap_memory_chunk(m, 0xd0, true);
	data = heap_memory_chunk(m, 0x40, true);
	more = heap_memory_chunk(m, 0x40, false);
	heap_memory_put(m, OM_VM_WORD, OM_VM);
	heap_memory_put(m, OM_VM + 8, OM_COLLECTOR);
	heap_memory_put(m, OM_COLLECTOR + 16, OM_LIST);
	heap_memory_put(m, OM_COLLECTOR + 24, 1);
	heap_memory_put(m, OM_LIST, OM_PAGE);
	heap_memory_put(m, OM_PAGE, OM_SLOT | OM_NSLOTS << 16);
	heap_memory_put(m, OM_PAGE + 32, OM_SLOTS);
	heap_memory_put(m, HM_MAPPED, OM_PAGE);
	om_object(m, OM_CLASS, RUBY_CLASS, om_slot(OM_CLASS), 0, 0, 0);
	om_object(m, OM_OBJECT, RUBY_OBJECT | RUBY_USER(1), om_slot(OM_CLASS), om_slot(OM_TEXT),
		  om_slot(OM_ARRAY), om_slot(OM_HASH));
	om_object(m, OM_TEXT, RUBY_STRING | RUBY_USER(1), om_slot(OM_CLASS), 90, text, 95);
	om_object(m, OM_ARRAY, RUBY_ARRAY, om_slot(OM_CLASS), 3, 8, items);
	om_object(m, OM_HASH, RUBY_HASH | RUBY_USER(3), om_slot(OM_CLASS), table, 8, 0);
	om_object(m, OM_DATA, RUBY_DATA, om_slot(OM_CLASS), 0x123456, 1, data);
	om_object(m, OM_LOST, RUBY_FLOAT, om_slot(OM_CLASS), 0, 0, 0);
	for (uint32_t i = 0; i < 3; i++) {
		om_object(m, OM_ITEM + i, RUBY_FLOAT, om_slot(OM_CLASS), om_slot(OM_LOST), 0, 0);
		heap_memory_put(m, items + i * 8, om_slot(OM_ITEM + i));
	}
	heap_memory_put(m, table, 3); /* 8 entries */
	heap_memory_put(m, table + 40, 2);
	heap_memory_put(m, table + 48, entries);
	heap_memory_put(m, entries, UINT64_MAX); /* deleted */
	heap_memory_put(m, entries + 8, om_slot(OM_LOST));
	heap_memory_put(m, entries + 32, om_slot(OM_DATA));
	heap_memory_put(m, entries + 40, 1);
	heap_memory_put(m, data + 8, more);
	heap_memory_put(m, more + 8, om_slot(OM_ITEM));
	heap_memory_put(m, OM_ROOT, om_slot(OM_OBJECT));
}

static inline void om_ruby_init(struct ruby *r, struct space *s)
{
	memset(r, 0, sizeof(*r));
	r->runtime.space = s;
	r->layout = *ruby_layout(3, 1);
	r->vm = OM_VM_WORD;
	r->symbols = HM_VAR + 0xf00; /* has none */
	r->budget = 1 << 20;
	arena_init(&r->names);
}

/* Python: addresses. */
enum {
	OM_PY_HEAD = HM_VAR, /* the pointer to the interpreter */
	OM_PY_INTERPRETER = HM_VAR + 0x100,
	OM_PY_LISTS = HM_VAR + 0x180, /* of the collector */
	OM_PY_NAMES = HM_VAR + 0x600,
	OM_PY_TYPES = HM_MAPPED,            /* 0x200 for each */
	OM_PY_OBJECTS = HM_MAPPED + 0x1000, /* 0x80 for each; the collector's head in front */
};
/* Numbers of types and of objects. */
enum { OM_TYPE_TYPE, OM_TYPE_LIST, OM_TYPE_DICT, OM_TYPE_FLOAT, OM_TYPE_OTHER, OM_TYPES };
enum { OM_PY_LIST, OM_PY_DICT, OM_PY_FLOAT, OM_PY_OTHER, OM_PY_LOST, OM_PY_KEYS, OM_PY_ITEMS };

static inline uint64_t om_type(uint32_t i)
{
	return OM_PY_TYPES + i * 0x200ull;
}

static inline uint64_t om_python(uint32_t i)
{
	return OM_PY_OBJECTS + i * 0x80ull + 16;
}

static inline void om_make_type(struct heap_memory *m, uint32_t i, const char *name, uint64_t flags,
				uint64_t basic)
{
	uint64_t at = OM_PY_NAMES + i * 16ull;

	memcpy(heap_memory_at(m, at, 16), name, strlen(name) + 1);
	heap_memory_put(m, om_type(i), 100);
	heap_memory_put(m, om_type(i) + 8, om_type(OM_TYPE_TYPE));
	heap_memory_put(m, om_type(i) + PYTHON_TYPE_NAME, at);
	heap_memory_put(m, om_type(i) + PYTHON_TYPE_BASIC, basic);
	heap_memory_put(m, om_type(i) + PYTHON_TYPE_FLAGS, flags);
}

static inline void om_make_object(struct heap_memory *m, uint32_t i, uint32_t type, uint64_t count)
{
	heap_memory_put(m, om_python(i), count);
	heap_memory_put(m, om_python(i) + 8, om_type(type));
}

/* Puts an object at the end of the first list. */
static inline void om_track(struct heap_memory *m, uint32_t i)
{
	uint64_t head = om_python(i) - 16, last;

	memcpy(&last, heap_memory_at(m, OM_PY_LISTS + 8, 8), 8);
	heap_memory_put(m, last, head);
	heap_memory_put(m, head, OM_PY_LISTS);
	heap_memory_put(m, head + 8, last);
	heap_memory_put(m, OM_PY_LISTS + 8, head);
}

/* A list that has a dict and a float; the dict's value is an object of another type, which has the
 * list. A second list that only a pointer out of use leads to, but for the first. */
static inline void om_make_python(struct heap_memory *m)
{
	uint64_t items = om_python(OM_PY_ITEMS), keys = om_python(OM_PY_KEYS);

	heap_memory_init(m);
	heap_memory_chunk(m, 0x290, false);
	heap_memory_put(m, OM_PY_HEAD, OM_PY_INTERPRETER);
	for (uint32_t i = 0; i < 3; i++) {
		heap_memory_put(m, OM_PY_LISTS + i * 24, OM_PY_LISTS + i * 24);
		heap_memory_put(m, OM_PY_LISTS + i * 24 + 8, OM_PY_LISTS + i * 24);
	}
	heap_memory_put(m, OM_PY_LISTS + 72, OM_PY_LISTS);
	heap_memory_put(m, OM_PY_LISTS + 80, OM_PY_LISTS + 80);
	heap_memory_put(m, OM_PY_LISTS + 88, OM_PY_LISTS + 80);
	om_make_type(m, OM_TYPE_TYPE, "type", PYTHON_FLAG_TYPE | PYTHON_FLAG_GC, 408);
	om_make_type(m, OM_TYPE_LIST, "list", PYTHON_FLAG_LIST | PYTHON_FLAG_GC, 40);
	om_make_type(m, OM_TYPE_DICT, "dict", PYTHON_FLAG_DICT | PYTHON_FLAG_GC, 48);
	om_make_type(m, OM_TYPE_FLOAT, "float", 0, 24);
	om_make_type(m, OM_TYPE_OTHER, "Other", PYTHON_FLAG_HEAP | PYTHON_FLAG_GC, 40);
	om_make_object(m, OM_PY_LIST, OM_TYPE_LIST, 2);
	om_make_object(m, OM_PY_DICT, OM_TYPE_DICT, 1);
	om_make_object(m, OM_PY_FLOAT, OM_TYPE_FLOAT, 1);
	om_make_object(m, OM_PY_OTHER, OM_TYPE_OTHER, 1);
	om_make_object(m, OM_PY_LOST, OM_TYPE_LIST, 1);
	heap_memory_put(m, om_python(OM_PY_LIST) + 16, 3);
	heap_memory_put(m, om_python(OM_PY_LIST) + 24, items);
	heap_memory_put(m, om_python(OM_PY_LIST) + 32, 4);
	heap_memory_put(m, items, om_python(OM_PY_DICT));
	heap_memory_put(m, items + 8, om_python(OM_PY_FLOAT));
	heap_memory_put(m, items + 16, om_python(OM_PY_LOST));
	heap_memory_put(m, om_python(OM_PY_DICT) + 32, keys);
	heap_memory_put(m, keys, 1);              /* references */
	heap_memory_put(m, keys + 8, 3 | 3 << 8); /* 8 slots, with an index of a byte each */
	heap_memory_put(m, keys + 16, 4);
	heap_memory_put(m, keys + 24, 1);
	heap_memory_put(m, keys + 40 + 16, om_python(OM_PY_OTHER));
	heap_memory_put(m, om_python(OM_PY_OTHER) + 32, om_python(OM_PY_LIST));
	heap_memory_put(m, OM_ROOT, om_python(OM_PY_LIST));
	heap_memory_put(m, OM_ROOT + 8, om_python(OM_PY_LOST));
	om_track(m, OM_PY_LIST);
	om_track(m, OM_PY_DICT);
	om_track(m, OM_PY_OTHER);
	om_track(m, OM_PY_LOST);
}

static inline void om_python_init(struct python *p, struct space *s)
{
	memset(p, 0, sizeof(*p));
	p->runtime.space = s;
	p->layout = *python_layout(3, 11);
	p->interpreters = OM_PY_HEAD;
	arena_init(&p->names);
}

#endif
