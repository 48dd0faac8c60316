/* HPROF files, the heap dumps of Java: the records of the file, and both passes. */
#include "memory/heapfile/hprof.h"

#include <errno.h>
#include <stdarg.h>

#include "memory/graph/source.h"

enum {
	MAGIC_MAX = 32,
	NAME_MAX_BYTES = 4 << 10, /* kept of a text, because each field may have it as its label */
	TAG_UTF8 = 0x01,
	TAG_LOAD_CLASS = 0x02,
	TAG_LAST = 0x2c,
};
static const char hprof_magic[] = "JAVA PROFILE 1.0.";

bool hprof_bad(struct hprof *h, const char *fmt, ...)
{
	va_list ap;
	char *text;

	if (h->error)
		return false;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	h->error = err_new(EBADMSG, "byte %llu: %s", (unsigned long long)h->record, text);
	free(text);
	return false;
}

static bool truncated(struct hprof *h)
{
	if (!h->error)
		h->error = unpack_err(&h->in);
	return hprof_bad(h, "the file ends within this record, at byte %llu: it is truncated",
			 (unsigned long long)h->in.at);
}

bool hprof_need(struct hprof *h, size_t n)
{
	return unpack_need(&h->in, n) || truncated(h);
}

bool hprof_skip(struct hprof *h, uint64_t n)
{
	return unpack_skip(&h->in, n) || truncated(h);
}

uint32_t hprof_name(const struct hprof *h, uint64_t id)
{
	uint64_t *name = hash_get(&h->name_ids, &id, sizeof(id));

	return name ? (uint32_t)*name : 0;
}

static bool name_read(struct hprof *h, uint32_t length)
{
	uint64_t id;
	uint32_t n;

	if (length < h->id_size)
		return hprof_bad(h, "a text of %u bytes", length);
	n = length - h->id_size;
	if (n > NAME_MAX_BYTES)
		n = NAME_MAX_BYTES;
	if (!hprof_need(h, h->id_size + n))
		return false;
	id = hprof_id(h, h->in.pos);
	*hash_put(&h->name_ids, &id, sizeof(id), NULL) =
		intern_strn(&h->names, (const char *)h->in.pos + h->id_size, n);
	return hprof_skip(h, length);
}

static bool class_loaded(struct hprof *h, uint32_t length)
{
	struct hprof_class *c;

	if (length < 8 + 2 * h->id_size)
		return hprof_bad(h, "a class of %u bytes", length);
	if (!hprof_need(h, 8 + 2 * h->id_size))
		return false;
	c = hprof_class(h, hprof_id(h, h->in.pos + 4));
	c->name = hprof_name(h, hprof_id(h, h->in.pos + 8 + h->id_size));
	if (!strcmp(intern_text(&h->names, c->name), "java/lang/Class"))
		h->class_class = c->id;
	return hprof_skip(h, length);
}

static bool header_read(struct hprof *h)
{
	const uint8_t *nul;
	size_t n = sizeof(hprof_magic) - 1;

	h->record = 0;
	if (!hprof_need(h, MAGIC_MAX))
		return false;
	nul = memchr(h->in.pos, 0, MAGIC_MAX - 12);
	if (memcmp(h->in.pos, hprof_magic, n) || !nul)
		return hprof_bad(h, "no header of an HPROF file");
	h->id_size = hprof_u32(nul + 1);
	if (h->id_size != 4 && h->id_size != 8)
		return hprof_bad(h, "identifiers of %u bytes; 4 or 8 are possible", h->id_size);
	h->in.pos = nul + 1 + 4 + 8;
	h->records_at = unpack_offset(&h->in);
	return true;
}

bool hprof_records(struct hprof *h, uint64_t end)
{
	h->last_id = 0;
	while (unpack_offset(&h->in) < end && unpack_need(&h->in, 1)) {
		uint8_t tag;
		uint32_t length;
		bool ok;

		h->record = unpack_offset(&h->in);
		if (!hprof_need(h, HPROF_RECORD))
			return false;
		tag = h->in.pos[0];
		length = hprof_u32(h->in.pos + 5);
		h->in.pos += HPROF_RECORD;
		if (!tag || tag > TAG_LAST)
			return hprof_bad(h, "a record of kind 0x%02x, which there is not", tag);
		if (tag == HPROF_HEAP_DUMP || tag == HPROF_HEAP_DUMP_SEGMENT)
			ok = hprof_heap(h, length);
		else if (h->reader && tag < HPROF_HEAP_DUMP && h->record >= h->skimmed)
			ok = !(h->stuck = true); /* the file has changed since parts_find() */
		else if (tag == TAG_UTF8 && h->record >= h->skimmed)
			ok = name_read(h, length);
		else if (tag == TAG_LOAD_CLASS && h->record >= h->skimmed)
			ok = class_loaded(h, length);
		else
			ok = hprof_skip(h, length);
		if (!ok)
			return false;
		if (h->skim && h->skimmed)
			return true;
	}
	h->error = h->error ?: unpack_err(&h->in);
	return !h->error;
}

/* Reads all records. */
static bool pass(struct hprof *h)
{
	if (!header_read(h) || !hprof_records(h, UINT64_MAX))
		return false;
	if (h->skim && !h->skimmed)
		h->skimmed = unpack_offset(&h->in);
	return true;
}

static int compare_threads(const void *x, const void *y)
{
	const struct hprof_thread *a = x, *b = y;

	return COMPARE(a->serial, b->serial);
}

/* Local variables belong to their threads. */
static void locals_add(struct hprof *h)
{
	if (h->threads.n)
		qsort(h->threads.v, h->threads.n, sizeof(*h->threads.v), compare_threads);
	for (uint32_t i = 0; i < h->locals.n; i++) {
		const struct hprof_local *l = &h->locals.v[i];
		uint32_t k = partition_point(h->threads.n, j, h->threads.v[j].serial < l->thread);

		if (k < h->threads.n && h->threads.v[k].serial == l->thread && h->threads.v[k].id)
			graph_edge_from(h->graph, h->threads.v[k].id, l->id,
					graph_label(h->graph, "<local>", 7), GRAPH_STRONG);
		else
			graph_root(h->graph, l->id, l->kind);
	}
}

static bool second_pass(struct hprof *h)
{
	h->error = unpack_rewind(&h->in);
	return !h->error && pass(h);
}

static struct err *hprof_read_file(const char *path, struct graph *g)
{
	struct hprof h = { .graph = g, .skim = true };
	struct err *e = unpack_open(&h.in, path, g);

	if (e)
		return e;
	intern_init(&h.names);
	if (pass(&h)) {
		hprof_size_decide(&h);
		h.skim = false;
		if (hprof_threads(&h, path) || (!h.error && second_pass(&h))) {
			locals_add(&h);
			hprof_classes_finish(&h);
		}
	}
	if (h.unread)
		graph_remark(g,
			     "%llu objects are of classes that the dump does not describe: their "
			     "references are missing",
			     (unsigned long long)h.unread);
	if (!h.error && !h.objects_at)
		graph_remark(g, "the dump has no objects");
	unpack_close(&h.in);
	intern_fini(&h.names);
	hash_fini(&h.name_ids);
	vec_fini(&h.of_names);
	vec_fini(&h.classes);
	vec_fini(&h.fields);
	vec_fini(&h.refs);
	vec_fini(&h.numbers);
	vec_fini(&h.locals);
	vec_fini(&h.threads);
	free(h.class_hash);
	return h.error;
}

static bool is_hprof(const void *head, size_t n)
{
	return n >= sizeof(hprof_magic) && !memcmp(head, hprof_magic, sizeof(hprof_magic) - 1);
}

const struct heap_source heap_source_hprof = {
	.name = "hprof",
	.what = "Java heap dump",
	.is_file = is_hprof,
	.read_file = hprof_read_file,
};
