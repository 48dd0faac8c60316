/* The JVM's lists of handles (OopStorage): what JNI and the JVM itself hold. They are published
 * nowhere, and are found in libjvm.so's variables by their structure: each block of a list leads
 * back to it. */
#include "memory/heaplive/java_heap.h"

enum {
	SEARCHED = 64 << 20, /* bytes of variables */
	NAME_BYTES = 64,
	/* OopStorage: its name, and its array of blocks */
	STORAGE_ARRAY = 8,
	/* ActiveArray: its room, the number of blocks, and behind a header the blocks */
	ARRAY_COUNT = 8,
	ARRAY_BLOCKS = 24,
	BLOCKS_MAX = 1 << 20,
	/* Block: 64 references, a bit for each that is used, and its list */
	BLOCK_SLOTS = 64,
	BLOCK_USED = BLOCK_SLOTS * 8,
	BLOCK_OWNER = BLOCK_USED + 8,
};

uint64_t java_handle(struct java_reader *x, uint64_t at)
{
	uint64_t handle, object;

	/* the low bits of a handle of JNI are its kind */
	return jvm_word(x->jvm, at, &handle) && handle && jvm_word(x->jvm, handle & ~7ull, &object)
		       ? java_wide(x, object)
		       : 0;
}

/* kind: NULL: the references are weak. */
static void block_add(struct java_reader *x, uint64_t block, uint64_t used, const char *kind)
{
	for (uint32_t i = 0; i < BLOCK_SLOTS; i++) {
		uint64_t reference, object;

		if (!(used >> i & 1) || !jvm_word(x->jvm, block + i * 8, &reference))
			continue;
		object = java_wide(x, reference);
		if (kind)
			java_root(x, object, kind);
		else
			java_alias(x, reference, object);
	}
}

/* Is this a list of handles with a block? */
static bool is_storage(struct java_reader *x, uint64_t storage, char *name)
{
	uint64_t text, array, block, owner;
	uint32_t n;

	if (storage & 7 || storage < 4096 || !memory_at(x->copy, storage, 16) ||
	    !jvm_word(x->jvm, storage, &text) ||
	    !jvm_word(x->jvm, storage + STORAGE_ARRAY, &array) || array & 7 || array < 4096 ||
	    !memory_at(x->copy, array, ARRAY_BLOCKS + 8) ||
	    !jvm_word(x->jvm, array + ARRAY_BLOCKS, &block) || block & 7 || block < 4096 ||
	    !memory_at(x->copy, block, BLOCK_OWNER + 8) ||
	    !jvm_word(x->jvm, block + BLOCK_OWNER, &owner) || owner != storage)
		return false;
	n = space_read_some(x->jvm->runtime.space, text, name, NAME_BYTES);
	return n && memchr(name, 0, n);
}

static void storage_add(struct java_reader *x, uint64_t storage)
{
	char name[NAME_BYTES];
	uint64_t array, n;
	const char *kind;

	if (!is_storage(x, storage, name))
		return;
	kind = strstr(name, "Weak")          ? NULL
	       : !strncmp(name, "JNI", 3)    ? "JNI global"
	       : !strncmp(name, "Thread", 6) ? "thread"
					     : "VM";
	jvm_word(x->jvm, storage + STORAGE_ARRAY, &array);
	n = jvm_get(x->jvm, array, (struct jvm_member){ ARRAY_COUNT, 8 });
	for (uint64_t i = 0; i < n && i < BLOCKS_MAX && java_afford(x, BLOCK_SLOTS); i++) {
		uint64_t block, used, owner;

		if (!jvm_word(x->jvm, array + ARRAY_BLOCKS + i * 8, &block) ||
		    !jvm_word(x->jvm, block + BLOCK_USED, &used) ||
		    !jvm_word(x->jvm, block + BLOCK_OWNER, &owner) || owner != storage)
			return;
		block_add(x, block, used, kind);
	}
}

void java_storages_add(struct java_reader *x)
{
	/* a variable of libjvm.so */
	const struct jvm_layout *l = &x->jvm->layout;
	uint64_t variable = l->variable.threads ?: l->variable.threads_linked;
	const struct memory_region *r = memory_region_at(x->copy, variable);
	uint64_t from, end;
	struct hash seen = { 0 };

	if (!r)
		return;
	from = variable - r->start > SEARCHED ? variable - SEARCHED : r->start;
	end = r->end - variable > SEARCHED ? variable + SEARCHED : r->end;
	for (uint64_t at = (from + 7) & ~7ull; at + 8 <= end && java_afford(x, 1); at += 8) {
		uint64_t storage = memory_word(r, at);
		bool fresh = false;
		char name[NAME_BYTES];

		if (!is_storage(x, storage, name))
			continue;
		hash_put(&seen, &storage, sizeof(storage), &fresh);
		if (fresh)
			storage_add(x, storage);
	}
	hash_fini(&seen);
}
