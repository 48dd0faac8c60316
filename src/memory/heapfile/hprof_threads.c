/* The second pass over an HPROF file in several threads: each reads a part, of whole records.
 *
 * A Java virtual machine writes a heap as segments of about 1 MB, and all classes in the first of
 * them. The first reader has the classes and the graph. The others have copies of the classes,
 * which they do not change, and graphs of their own. A file in which they meet a class is read once
 * more, in one thread.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parallel.h"
#include "memory/heapfile/hprof.h"

enum { RECORDS_MAX = 1 << 20 /* records of which the heads are read */ };
static uint64_t part_min = 4 << 20;     /* bytes that are worth a thread */
static uint64_t skimmed_max = 64 << 20; /* bytes of objects that the first pass reads, about */

struct reading {
	struct hprof *h;
	char path[32]; /* of the file that the first pass has read, whatever has its name now */
	struct hprof readers[PARALLEL_MAX]; /* [0] is not used: it is h */
	uint64_t begin[PARALLEL_MAX + 1];
	unsigned n;
};

/* Finds the records at which parts begin. Returns false when names or classes come behind what
 * the first pass has read, or when the records are too large to be shared out. */
static bool parts_find(struct reading *r, int fd, uint64_t size)
{
	uint64_t at = r->h->objects_segment;
	unsigned part = 1;

	r->begin[0] = r->h->records_at;
	for (uint32_t i = 0; i < RECORDS_MAX; i++) {
		uint8_t head[HPROF_RECORD];

		if (at == size) {
			r->begin[part] = size;
			r->n = part;
			return part > 1;
		}
		if (at > size || pread(fd, head, sizeof(head), (off_t)at) != sizeof(head))
			return false;
		if (part < r->n && at >= size / r->n * part)
			r->begin[part++] = at;
		at += HPROF_RECORD + hprof_u32(head + 5);
		if (head[0] < HPROF_HEAP_DUMP && at > r->h->skimmed)
			return false;
	}
	return false;
}

static struct hprof *reader_of(struct reading *r, unsigned part)
{
	return part ? &r->readers[part] : r->h;
}

static void reader_init(struct reading *r, unsigned part)
{
	const struct hprof *h = r->h;
	struct hprof *to = &r->readers[part];
	size_t places = (size_t)h->class_mask + 1;

	*to = (struct hprof){
		.graph = graph_new(graph_wanted(h->graph)),
		.id_size = h->id_size,
		.class_mask = h->class_mask,
		.class_class = h->class_class,
		.array_header = h->array_header,
		.ref_size = h->ref_size,
		.header = h->header,
		.skimmed = h->skimmed,
		.objects_at = h->objects_at,
		.reader = true,
	};
	for (uint32_t i = 0; i < h->classes.n; i++)
		vec_push(&to->classes, h->classes.v[i]);
	for (uint32_t i = 0; i < h->refs.n; i++)
		vec_push(&to->refs, h->refs.v[i]);
	if (h->class_hash) /* a dump may have no class */
		to->class_hash = xmemdup(h->class_hash, places * sizeof(*h->class_hash));
	memcpy(to->array_class, h->array_class, sizeof(to->array_class));
	to->error = unpack_open(&to->in, r->path, to->graph);
}

static void reader_fini(struct reading *r, unsigned part)
{
	struct hprof *h = &r->readers[part];

	unpack_close(&h->in);
	vec_fini(&h->classes);
	vec_fini(&h->refs);
	vec_fini(&h->locals);
	vec_fini(&h->threads);
	free(h->class_hash);
	graph_free(h->graph);
	err_free(h->error);
}

static void part_read(void *arg, unsigned part)
{
	struct reading *r = arg;
	struct hprof *h = reader_of(r, part);

	h->error = h->error ?: unpack_seek(&h->in, r->begin[part]);
	if (!h->error)
		hprof_records(h, r->begin[part + 1]);
}

/* Takes what a reader has found to the others. */
static void part_take(struct hprof *to, struct hprof *from)
{
	for (uint32_t i = 0; i < from->classes.n && i < to->classes.n; i++) {
		uint64_t least = from->classes.v[i].least;

		if (least && (!to->classes.v[i].least || least < to->classes.v[i].least))
			to->classes.v[i].least = least;
	}
	if (from->first_id) {
		hprof_size_note(to, from->first_id);
		to->last_id = from->last_id;
		to->last_number = from->last_number;
	}
	for (uint32_t i = 0; i < from->locals.n; i++)
		vec_push(&to->locals, from->locals.v[i]);
	for (uint32_t i = 0; i < from->threads.n; i++)
		vec_push(&to->threads, from->threads.v[i]);
	to->unread += from->unread;
	if (!to->error) {
		to->error = from->error;
		from->error = NULL;
	}
	graph_join(to->graph, from->graph);
	from->graph = NULL;
}

static bool parts_read(struct reading *r)
{
	bool stuck = false;

	for (unsigned i = 1; i < r->n; i++)
		reader_init(r, i);
	parallel_run(part_read, r, r->n);
	for (unsigned i = 1; i < r->n; i++)
		stuck |= r->readers[i].stuck;
	for (unsigned i = 1; i < r->n; i++) {
		if (!stuck)
			part_take(r->h, &r->readers[i]);
		reader_fini(r, i);
	}
	if (!stuck)
		return !r->h->error;
	graph_restart(r->h->graph);
	err_free(r->h->error);
	r->h->error = NULL;
	r->h->locals.n = r->h->threads.n = 0;
	r->h->unread = r->h->absent = 0;
	return false;
}

void hprof_limits(uint64_t part, uint64_t skimmed)
{
	part_min = part;
	skimmed_max = skimmed;
}

bool hprof_skimmed_enough(const struct hprof *h)
{
	return h->objects_at && !h->undescribed && h->record - h->objects_at > skimmed_max;
}

bool hprof_threads(struct hprof *h, const char *path)
{
	const struct graph_wanted *w = graph_wanted(h->graph);
	struct reading r = { .h = h, .n = parallel_threads() };
	struct stat s;
	cleanup_close int fd = -1;

	if (!unpack_plain(&h->in) || w->memory || w->contents || w->values || !h->objects_at)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &s) || !S_ISREG(s.st_mode))
		return false;
	snprintf(r.path, sizeof(r.path), "/proc/self/fd/%d", fd);
	if ((uint64_t)s.st_size / part_min < r.n)
		r.n = (unsigned)((uint64_t)s.st_size / part_min);
	return r.n > 1 && parts_find(&r, fd, (uint64_t)s.st_size) && hprof_classes_prepare(h) &&
	       parts_read(&r);
}
