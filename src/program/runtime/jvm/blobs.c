/* The code cache: pieces of code, and the sizes of their frames. */
#include <string.h>

#include "program/runtime/jvm/jvm.h"

enum { SHIFT_MAX = 16, HOPS_MAX = 4096, FREE = 0xff, NAME_MAX_ = 64, FRAME_MAX = 1 << 20 };

static bool read_heap(const struct jvm *j, uint64_t heap, struct jvm_heap *ret)
{
	const struct jvm_layout *l = &j->layout;
	uint64_t memory = heap + l->heap_memory.at, segments = heap + l->heap_segments.at;

	ret->low = jvm_get(j, memory, l->memory_low);
	/* The part grows, so the end of its room counts. */
	ret->high = jvm_get(j, memory, l->memory_end.width ? l->memory_end : l->memory_high);
	ret->segments = jvm_get(j, segments, l->memory_low);
	ret->shift = (uint32_t)jvm_get(j, heap, l->heap_shift);
	return ret->low && ret->high > ret->low && ret->segments && ret->shift <= SHIFT_MAX;
}

void jvm_heaps_read(struct jvm *j)
{
	uint64_t heaps, data, heap, n;

	j->nheaps = 0;
	if (!jvm_word(j, j->layout.variable.heaps, &heaps) || !heaps)
		return;
	n = jvm_get(j, heaps, j->layout.array_length);
	data = jvm_get(j, heaps, j->layout.array_data);
	for (uint64_t i = 0; i < n && i < JVM_HEAPS_MAX; i++)
		if (jvm_word(j, data + i * 8, &heap) && heap &&
		    read_heap(j, heap, &j->heaps[j->nheaps]))
			j->nheaps++;
}

static const struct jvm_heap *find_heap(struct jvm *j, uint64_t addr)
{
	if (!j->nheaps)
		jvm_heaps_read(j);
	for (uint32_t i = 0; i < j->nheaps; i++)
		if (addr >= j->heaps[i].low && addr < j->heaps[i].high)
			return &j->heaps[i];
	return NULL;
}

bool jvm_is_code(struct jvm *j, uint64_t addr)
{
	return find_heap(j, addr);
}

/* Finds the block that a segment belongs to. For each segment, the map has the distance to an
 * earlier segment of the same block; 0 marks the first. */
static bool find_block(const struct jvm *j, const struct jvm_heap *h, uint64_t addr, uint64_t *ret)
{
	uint64_t i = (addr - h->low) >> h->shift;
	uint8_t hop;

	for (uint32_t n = 0; n < HOPS_MAX; n++) {
		if (space_read_some(j->runtime.space, h->segments + i, &hop, 1) != 1 ||
		    hop == FREE || hop > i)
			return false;
		if (!hop) {
			*ret = h->low + (i << h->shift);
			return true;
		}
		i -= hop;
	}
	return false;
}

static const char *blob_name(struct jvm *j, uint64_t addr)
{
	char name[NAME_MAX_] = "";
	uint64_t *known;
	bool new;

	known = hash_put(&j->texts, &addr, sizeof(addr), &new);
	if (new) {
		uint32_t n = addr ? space_read_some(j->runtime.space, addr, name, NAME_MAX_ - 1)
				  : 0;

		name[n] = 0;
		for (char *c = name; *c; c++)
			if ((unsigned char)*c < ' ' || *c == 0x7f)
				*c = '?';
		*known = (uintptr_t)(jvm_afford(j, strlen(name) + 1) ? arena_strdup(&j->names, name)
								     : "");
	}
	return (const char *)(uintptr_t)*known;
}

static enum jvm_kind kind_of(const struct jvm_blob *b)
{
	if (!strcmp(b->name, "nmethod") || !strcmp(b->name, "native nmethod"))
		return JVM_COMPILED;
	if (!strcmp(b->name, "Interpreter"))
		return JVM_INTERPRETER;
	return b->frame ? JVM_ROUTINE : JVM_STUBS;
}

bool jvm_blob_find(struct jvm *j, uint64_t addr, struct jvm_blob *ret)
{
	const struct jvm_layout *l = &j->layout;
	const struct jvm_heap *h = find_heap(j, addr);
	struct jvm_blob b = { 0 };
	int64_t size, words, complete;
	uint64_t block;

	if (!h || !find_block(j, h, addr, &block) || !jvm_get(j, block, l->block_used))
		return false;
	b.address = block + l->size.block;
	if (!jvm_read(j, b.address, l->blob_size, &size) || size <= 0 ||
	    !jvm_read(j, b.address, l->blob_frame_words, &words) ||
	    !jvm_read(j, b.address, l->blob_complete, &complete))
		return false;
	b.end = b.address + (uint64_t)size;
	b.code = l->blob_code.width ? jvm_get(j, b.address, l->blob_code)
				    : b.address + jvm_get(j, b.address, l->blob_code_offset);
	b.frame = words > 0 && words < FRAME_MAX / 8 ? (uint64_t)words * 8 : 0;
	b.complete = complete > 0 && complete < size ? b.code + (uint64_t)complete : b.code;
	b.name = blob_name(j, jvm_get(j, b.address, l->blob_name));
	b.kind = kind_of(&b);
	if (addr < b.code || addr >= b.end)
		return false;
	*ret = b;
	return true;
}
