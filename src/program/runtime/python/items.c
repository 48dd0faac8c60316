/* Reads the items of CPython's dicts and sets, and the variables of objects. */
#include "program/runtime/python/python_objects.h"

enum {
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	KEYS_OLD_SLOTS = 8, /* to 3.10 */
	KEYS_OLD_N = 32,
	KEYS_OLD_HEAD = 40,
	KEYS_LOG2_INDEX = 9, /* from 3.11 on */
	KEYS_KIND = 10,      /* 0: its entries have hashes */
	KEYS_N = 24,
	KEYS_HEAD = 32,
	LOG2_MAX = 35,
	ENTRY = 24,
	ENTRY_WITHOUT_HASH = 16,
	ITEMS_MAX = 1 << 24,
	SET_MASK = 32,
	SET_TABLE = 40,
	SET_ENTRY = 16,
	SET_PART = 128,     /* entries read at once */
	VALUES_HEAD = 8,    /* 3.13: four numbers of a byte each */
	VALUES_VALID = 3,   /* the last of them: the variables are in use */
	MANAGED_DICT = 24,  /* in front of an object: its dict; 3.12: or its values */
	MANAGED_VALUES = 32 /* 3.11: its values */
};

static uint64_t at_word(const uint8_t *p, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, p + offset, sizeof(v));
	return v;
}

/* Up to 3.10 the number of slots is a word, and an index has as many bytes as it needs. */
static bool old_keys(struct python_objects *o, uint64_t keys, struct python_items *ret)
{
	uint8_t p[KEYS_OLD_HEAD];
	uint64_t slots, n;
	uint32_t index;

	if (!python_bytes(o, keys, p, sizeof(p)))
		return false;
	slots = at_word(p, KEYS_OLD_SLOTS);
	n = at_word(p, KEYS_OLD_N);
	index = slots <= 0xff ? 1 : slots <= 0xffff ? 2 : slots <= 0xffffffff ? 4 : 8;
	if (slots > 1ull << LOG2_MAX || n > ITEMS_MAX || n > slots)
		return false;
	ret->entries = keys + KEYS_OLD_HEAD + slots * index;
	ret->n = (uint32_t)n;
	ret->size = ENTRY;
	return true;
}

static bool new_keys(struct python_objects *o, uint64_t keys, struct python_items *ret)
{
	uint8_t p[KEYS_HEAD];

	if (!python_bytes(o, keys, p, sizeof(p)) || p[KEYS_LOG2_INDEX] > LOG2_MAX ||
	    at_word(p, KEYS_N) > ITEMS_MAX)
		return false;
	ret->entries = keys + KEYS_HEAD + (1ull << p[KEYS_LOG2_INDEX]);
	ret->n = (uint32_t)at_word(p, KEYS_N);
	ret->size = p[KEYS_KIND] ? ENTRY_WITHOUT_HASH : ENTRY;
	return true;
}

static bool with_keys(struct python_objects *o, uint64_t keys, uint64_t values,
		      struct python_items *ret)
{
	*ret = (struct python_items){ .values = values };
	if (!keys)
		return false;
	return o->l->version < PYTHON_3_11 ? old_keys(o, keys, ret) : new_keys(o, keys, ret);
}

bool python_dict(struct python_objects *o, uint64_t dict, struct python_items *ret)
{
	uint64_t keys, values;

	if (python_is(o, dict) != PYTHON_IS_DICT || !python_word(o, dict + DICT_KEYS, &keys) ||
	    !python_word(o, dict + DICT_VALUES, &values))
		return false;
	if (values && o->l->version >= PYTHON_3_13)
		values += VALUES_HEAD;
	return with_keys(o, keys, values, ret);
}

/* Variables without a dict: their names are the type's. */
static bool without_dict(struct python_objects *o, uint64_t type, uint64_t values,
			 struct python_items *ret)
{
	uint64_t keys;

	return python_word(o, type + o->l->type_keys, &keys) && with_keys(o, keys, values, ret);
}

/* 3.13: the values are behind the object, unless it has a dict. */
static bool inline_variables(struct python_objects *o, uint64_t object, uint64_t type,
			     struct python_items *ret)
{
	uint64_t size, head;

	if (!python_word(o, type + PYTHON_TYPE_BASIC, &size) || size > ITEMS_MAX ||
	    !python_word(o, object + size, &head) || !(head >> VALUES_VALID * 8 & 255))
		return false;
	return without_dict(o, type, object + size + VALUES_HEAD, ret);
}

static bool managed_variables(struct python_objects *o, uint64_t object, uint64_t type,
			      uint64_t flags, struct python_items *ret)
{
	uint64_t dict, values;

	if (!python_word(o, object - MANAGED_DICT, &dict))
		return false;
	if (o->l->version == PYTHON_3_12 && dict & 1)
		return without_dict(o, type, dict + 1, ret);
	if (dict)
		return python_dict(o, dict, ret);
	if (o->l->version == PYTHON_3_11)
		return python_word(o, object - MANAGED_VALUES, &values) && values &&
		       without_dict(o, type, values, ret);
	return flags & PYTHON_FLAG_INLINE && inline_variables(o, object, type, ret);
}

bool python_variables(struct python_objects *o, uint64_t object, struct python_items *ret)
{
	uint64_t type, flags, at, dict;

	if (!object || !python_word(o, object + o->p->layout.object_type, &type) ||
	    !python_word(o, type + PYTHON_TYPE_FLAGS, &flags))
		return false;
	if (o->l->version >= PYTHON_3_11 && flags & PYTHON_FLAG_VALUES)
		return managed_variables(o, object, type, flags, ret);
	return python_word(o, type + PYTHON_TYPE_DICT_OFFSET, &at) && at && at < ITEMS_MAX &&
	       python_word(o, object + at, &dict) && python_dict(o, dict, ret);
}

bool python_item(struct python_objects *o, const struct python_items *items, uint32_t i,
		 uint64_t *ret_key, uint64_t *ret_value)
{
	uint64_t pair[2];

	if (!python_bytes(o,
			  items->entries + (uint64_t)i * items->size + items->size - sizeof(pair),
			  pair, sizeof(pair)) ||
	    (items->values && !python_word(o, items->values + i * 8ull, &pair[1])))
		return false;
	*ret_key = pair[0];
	*ret_value = pair[0] ? pair[1] : 0;
	return true;
}

/* Returns true when an object is a str with this text in ASCII. */
static bool is_text(struct python_objects *o, uint64_t object, const char *text)
{
	const struct python_layout *l = &o->p->layout;
	const size_t n = strlen(text);
	char found[PYTHON_NAME_MAX];
	uint64_t length;

	return n <= sizeof(found) && python_word(o, object + l->text_length, &length) &&
	       length == n && python_is(o, object) == PYTHON_IS_STR &&
	       python_bytes(o, object + l->text_ascii, found, (uint32_t)n) &&
	       !memcmp(found, text, n);
}

bool python_value(struct python_objects *o, const struct python_items *items, const char *name,
		  uint64_t *ret)
{
	uint64_t key, value;

	for (uint32_t i = 0; i < items->n && python_item(o, items, i, &key, &value); i++)
		if (value && is_text(o, key, name)) {
			*ret = value;
			return true;
		}
	return false;
}

void python_each_in_set(struct python_objects *o, uint64_t set,
			void (*fn)(void *arg, uint64_t object), void *arg)
{
	uint64_t mask, table, part[SET_PART][SET_ENTRY / 8];

	if (python_is(o, set) != PYTHON_IS_SET || !python_word(o, set + SET_MASK, &mask) ||
	    !python_word(o, set + SET_TABLE, &table) || mask >= ITEMS_MAX)
		return;
	for (uint64_t i = 0; i <= mask; i += SET_PART) {
		const uint64_t n = mask + 1 - i < SET_PART ? mask + 1 - i : SET_PART;

		if (!python_bytes(o, table + i * SET_ENTRY, part, (uint32_t)(n * SET_ENTRY)))
			return;
		for (uint64_t k = 0; k < n; k++)
			if (part[k][0])
				fn(arg, part[k][0]);
	}
}
