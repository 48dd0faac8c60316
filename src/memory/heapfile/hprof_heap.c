/* The records of a heap dump: roots, classes, objects. */
#include "memory/heapfile/hprof.h"

enum {
	INSTANCE_MAX = 512 << 10, /* bytes of an instance that may have references */
	ELEMENTS = 4096,          /* of an array, read at a time */
};

/* Kinds of roots: a byte, the object, and numbers of 4 bytes behind it. */
static const struct {
	uint8_t tag;
	uint8_t ids, numbers; /* behind the object */
	const char *kind;
} hprof_roots[] = {
	{ 0xff, 0, 0, "unknown" },
	{ 0x01, 1, 0, "JNI global" },
	{ 0x02, 0, 2, "JNI local" },
	{ 0x03, 0, 2, "local variable" },
	{ 0x04, 0, 1, "native stack" },
	{ 0x05, 0, 0, "system class" },
	{ 0x06, 0, 1, "thread block" },
	{ 0x07, 0, 0, "monitor" },
	{ 0x08, 0, 2, "thread" },
	{ 0x89, 0, 0, "interned string" },
	{ 0x8a, 0, 0, "finalizing" },
	{ 0x8b, 0, 0, "debugger" },
	{ 0x8c, 0, 0, "reference cleanup" },
	{ 0x8d, 0, 0, "VM" },
	{ 0x8e, 0, 2, "JNI monitor" },
	{ 0x90, 0, 0, NULL }, /* "unreachable" */
};

static bool root_read(struct hprof *h, uint8_t tag)
{
	for (size_t i = 0; i < ARRAY_SIZE(hprof_roots); i++) {
		size_t ids = 1u + hprof_roots[i].ids,
		       n = ids * h->id_size + 4u * hprof_roots[i].numbers;
		uint64_t id;
		uint32_t thread;

		if (hprof_roots[i].tag != tag)
			continue;
		if (!hprof_need(h, n))
			return false;
		id = hprof_id(h, h->in.pos);
		thread = hprof_roots[i].numbers ? hprof_u32(h->in.pos + ids * h->id_size) : 0;
		h->in.pos += n;
		if (h->skim || !hprof_roots[i].kind)
			return true;
		if (tag == 0x02 || tag == 0x03) {
			vec_push(&h->locals,
				 (struct hprof_local){ id, thread, hprof_roots[i].kind });
			return true;
		}
		if (tag == 0x08)
			vec_push(&h->threads, (struct hprof_thread){ id, thread });
		graph_root(h->graph, id, hprof_roots[i].kind);
		return true;
	}
	return hprof_bad(h, "a record of kind 0x%02x in a heap dump, which there is not", tag);
}

static void references(struct hprof *h, const struct hprof_class *c, uint32_t n)
{
	const struct hprof_ref *r = c->nrefs ? h->refs.v + c->ref : NULL;

	/* In the order of `at`: an instance with fewer bytes than its class has no more. */
	for (uint32_t i = 0; i < c->nrefs && r[i].at + h->id_size <= n; i++)
		graph_edge(h->graph, hprof_id(h, h->in.pos + r[i].at), r[i].label, r[i].strength);
}

/* An instance with fewer bytes than its class has no more numbers than these. */
static void numbers(struct hprof *h, const struct hprof_class *c, uint32_t n)
{
	const struct hprof_number *f = c->nnumbers ? h->numbers.v + c->number : NULL;
	uint32_t bytes = 0, k = 0;
	uint8_t *to;

	while (k < c->nnumbers && f[k].at + (uint64_t)f[k].size <= n)
		bytes += f[k++].size;
	to = bytes ? graph_values(h->graph, bytes) : NULL;
	for (uint32_t i = 0; to && i < k; to += f[i++].size)
		hprof_turn(to, h->in.pos + f[i].at, f[i].size);
}

/* Reads the elements of an array of numbers. Returns false at the end of the file. */
static bool elements_read(struct hprof *h, uint32_t n, unsigned element)
{
	while (n) {
		uint32_t some = n < ELEMENTS ? n : ELEMENTS;
		uint8_t *to;

		if (!hprof_need(h, (size_t)some * element))
			return false;
		to = graph_values(h->graph, (size_t)some * element);
		if (!to)
			break;
		for (uint32_t i = 0; i < some; i++, to += element, h->in.pos += element)
			hprof_turn(to, h->in.pos, element);
		n -= some;
	}
	return hprof_skip(h, (uint64_t)n * element);
}

/* Arrays without elements, and instances without bytes, may take so many bytes together, and more
 * for each byte of the dump. A heap that is written has them: a few bytes here would fill a
 * disc. */
enum { ABSENT_FREE = 1 << 30, ABSENT_PER_BYTE = 16 };

static bool absent_note(struct hprof *h, uint64_t bytes)
{
	h->absent += bytes;
	return h->absent <= ABSENT_FREE + h->record * ABSENT_PER_BYTE ||
	       hprof_bad(
		       h,
		       "arrays without their elements, or instances without their bytes, that take %llu MB",
		       (unsigned long long)(h->absent >> 20));
}

static bool instance_read(struct hprof *h)
{
	unsigned s = h->id_size;
	struct hprof_class *c;
	uint64_t id, class;
	uint32_t n;

	if (!hprof_need(h, 2 * s + 8))
		return false;
	id = hprof_id(h, h->in.pos);
	class = hprof_id(h, h->in.pos + s + 4);
	n = hprof_u32(h->in.pos + 2 * s + 4);
	h->in.pos += 2 * s + 8;
	hprof_size_note(h, id);
	c = hprof_class_laid_out(h, class);
	if (h->error)
		return false;
	h->last_number = c ? h->last_class : 0;
	h->last_length = UINT32_MAX;
	if (h->skim) {
		h->undescribed |= !c;
		return hprof_skip(h, n);
	}
	if (!c) {
		h->unread++;
		graph_object(h->graph, id, hprof_graph_class(h, hprof_class(h, class)),
			     h->header + n);
		return hprof_skip(h, n);
	}
	graph_object(h->graph, id, hprof_graph_class(h, c), GRAPH_SIZE_OF_CLASS);
	if (n < c->bytes && !absent_note(h, c->bytes - n))
		return false;
	if (n <= INSTANCE_MAX) {
		if (!hprof_need(h, n))
			return false;
		references(h, c, n);
		numbers(h, c, n);
	} else if (c->nrefs) {
		return hprof_bad(h, "an instance of %u bytes", n);
	}
	return hprof_skip(h, n);
}

static bool objects_read(struct hprof *h)
{
	unsigned s = h->id_size;
	uint64_t id, class;
	uint32_t n;

	if (!hprof_need(h, 2 * s + 8))
		return false;
	id = hprof_id(h, h->in.pos);
	n = hprof_u32(h->in.pos + s + 4);
	class = hprof_id(h, h->in.pos + s + 8);
	h->in.pos += 2 * s + 8;
	hprof_size_note(h, id);
	h->last_number = 0;
	h->last_length = n;
	h->last_element = 0;
	if (h->skim)
		return hprof_skip(h, (uint64_t)n * s);
	graph_object(h->graph, id, hprof_graph_class(h, hprof_class(h, class)),
		     hprof_array_size(h, n, h->ref_size));
	for (uint32_t i = 0; i < n;) {
		uint32_t step = n - i < ELEMENTS ? n - i : ELEMENTS;

		if (!hprof_need(h, (size_t)step * s))
			return false;
		for (uint32_t end = i + step; i < end; i++, h->in.pos += s)
			graph_edge(h->graph, hprof_id(h, h->in.pos),
				   GRAPH_LABEL_INDEX | (i & ~GRAPH_LABEL_INDEX), GRAPH_STRONG);
	}
	return true;
}

static bool numbers_read(struct hprof *h, bool contents)
{
	unsigned s = h->id_size, type, element;
	uint64_t id, bytes;
	uint32_t n;

	if (!hprof_need(h, s + 9))
		return false;
	id = hprof_id(h, h->in.pos);
	n = hprof_u32(h->in.pos + s + 4);
	type = h->in.pos[s + 8];
	h->in.pos += s + 9;
	element = type == HPROF_OBJECT ? 0 : hprof_type_size(h, type);
	if (!element)
		return hprof_bad(h, "an array of type %u, which there is not", type);
	bytes = contents ? (uint64_t)n * element : 0;
	if (!contents && !h->skim && !absent_note(h, (uint64_t)n * element))
		return false;
	hprof_size_note(h, id);
	h->last_number = 0;
	h->last_length = n;
	h->last_element = element;
	if (!h->skim) {
		graph_object(h->graph, id, hprof_array_class(h, type),
			     hprof_array_size(h, n, element));
		if (bytes && bytes <= UNPACK_PIECE && graph_wanted(h->graph)->contents) {
			if (!hprof_need(h, bytes))
				return false;
			graph_content(h->graph, h->in.pos, bytes);
		}
		if (bytes && graph_wanted(h->graph)->values)
			return elements_read(h, n, element);
	}
	return hprof_skip(h, bytes);
}

static bool record_read(struct hprof *h, uint8_t tag)
{
	switch (tag) {
	case 0x20: return hprof_class_dump(h);
	case 0x21: return instance_read(h);
	case 0x22: return objects_read(h);
	case 0x23: return numbers_read(h, true);
	case 0xc3: /* Android: without the elements */ return numbers_read(h, false);
	case 0xfe: /* Android: the name of a part of the heap */
		return hprof_skip(h, 4 + h->id_size);
	}
	return root_read(h, tag);
}

bool hprof_heap(struct hprof *h, uint64_t length)
{
	uint64_t end = unpack_offset(&h->in) + length, segment = h->record;

	while (unpack_offset(&h->in) < end) {
		uint8_t tag;

		h->record = unpack_offset(&h->in);
		if (!hprof_need(h, 1))
			return false;
		tag = *h->in.pos++;
		if (h->skim && !h->objects_at && ((tag >= 0x21 && tag <= 0x23) || tag == 0xc3)) {
			h->objects_at = h->record;
			h->objects_segment = segment;
		}
		if (!record_read(h, tag) || h->stuck)
			return false;
		/* All classes of the first objects are known; so are those of the others. */
		if (h->skim && hprof_skimmed_enough(h)) {
			h->skimmed = h->record;
			return true;
		}
	}
	if (unpack_offset(&h->in) == end)
		return true;
	return hprof_bad(h, "a record that ends %llu bytes behind its heap dump",
			 (unsigned long long)(unpack_offset(&h->in) - end));
}
