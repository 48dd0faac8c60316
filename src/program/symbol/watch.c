/* Reads mappings as they are made, from the kernel's perf events. A process that lives for a
 * millisecond leaves addresses that only its mappings can name.
 *
 * One event and one ring a CPU, for every process, or for one of the user's own and its
 * descendants. The former needs CAP_PERFMON. Without it, names come from /proc alone. A full ring
 * loses records, and those addresses stay numbers. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "program/symbol/symbol_private.h"

enum { RING_PAGES = 32 };

struct watch_ring {
	int fd;
	struct perf_event_mmap_page *head; /* then RING_PAGES of records */
};

struct map_watch {
	const struct map_watch_ops *ops;
	void *arg;
	struct watch_ring *rings;
	uint32_t n;
	size_t page;
	bool wake, lost;
};

static int open_ring(struct map_watch *w, pid_t pid, int cpu, struct watch_ring *ret)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		.inherit = pid != 0,
		.mmap = 1,
		.mmap2 = 1,
		.task = 1,
		.comm = 1, /* exec() is a comm event */
		.comm_exec = 1,
		/* its time, by the clock of probes, behind each record */
		.sample_id_all = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1,
		.watermark = !w->wake,
		/* bytes, with watermark */
		.wakeup_events = w->wake ? 1 : (uint32_t)(RING_PAGES * w->page / 2),
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, pid ? pid : -1, cpu, -1,
			      PERF_FLAG_FD_CLOEXEC);
	void *p;

	if (fd < 0)
		return errno;
	p = mmap(NULL, (1 + RING_PAGES) * w->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		int error = errno;

		close(fd);
		return error;
	}
	*ret = (struct watch_ring){ fd, p };
	return 0;
}

struct map_watch *map_watch_new(const struct map_watch_ops *ops, void *arg, pid_t pid, bool wake)
{
	long ncpus = sysconf(_SC_NPROCESSORS_CONF);
	struct map_watch *w;

	if (ncpus <= 0)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->ops = ops;
	w->arg = arg;
	w->wake = wake;
	w->page = (size_t)sysconf(_SC_PAGESIZE);
	w->rings = xcalloc((size_t)ncpus, sizeof(*w->rings));
	for (int cpu = 0; cpu < ncpus; cpu++)
		if (!open_ring(w, pid, cpu, &w->rings[w->n]))
			w->n++;
	if (w->n)
		return w;
	map_watch_free(w);
	return NULL;
}

void map_watch_free(struct map_watch *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->n; i++) {
		munmap(w->rings[i].head, (1 + RING_PAGES) * w->page);
		close(w->rings[i].fd);
	}
	free(w->rings);
	free(w);
}

int map_watch_fd(const struct map_watch *w, uint32_t i)
{
	return w && i < w->n ? w->rings[i].fd : -1;
}

struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char path[];
};

struct fork_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

/* A record, copied from its ring. */
struct told {
	uint64_t time;
	uint32_t at, order;
};

static int by_time(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	return COMPARE(x->time, y->time) ?: COMPARE(x->order, y->order);
}

static void take_mapping(struct map_watch *w, const struct mmap2_record *r, size_t size,
			 uint64_t time)
{
	size_t max = size - offsetof(struct mmap2_record, path);
	cleanup_free char *path = NULL;
	struct mapping m = {
		.start = r->addr,
		.end = r->addr + r->len,
		.offset = r->pgoff,
		.exec = true,
		.dev_major = r->major,
		.dev_minor = r->minor,
		.inode = r->inode,
		.time = time,
	};

	if (m.end <= m.start)
		return;
	/* "//anon", "//toolong": no file. */
	if (!strncmp(r->path, "//", max < 2 ? max : 2))
		path = xstrdup("");
	else
		path = xstrndup(r->path, strnlen(r->path, max));
	m.path = path;
	w->ops->map(w->arg, (pid_t)r->pid, &m);
}

static void take_record(struct map_watch *w, const struct perf_event_header *h, uint64_t time)
{
	size_t size = h->size - sizeof(time);

	if (h->type == PERF_RECORD_LOST) {
		w->lost = true;
	} else if (h->type == PERF_RECORD_MMAP2 && size > sizeof(struct mmap2_record)) {
		take_mapping(w, (const struct mmap2_record *)h, size, time);
	} else if (h->type == PERF_RECORD_FORK && size >= sizeof(struct fork_record)) {
		const struct fork_record *r = (const struct fork_record *)h;

		if (r->pid != r->ppid && w->ops->forked)
			w->ops->forked(w->arg, (pid_t)r->ppid, (pid_t)r->pid);
	} else if (h->type == PERF_RECORD_COMM && h->misc & PERF_RECORD_MISC_COMM_EXEC &&
		   size >= sizeof(*h) + 8 && w->ops->exec) {
		uint32_t pid;

		memcpy(&pid, h + 1, sizeof(pid));
		w->ops->exec(w->arg, (pid_t)pid, time);
	}
}

typedef VEC(struct told) told_vec;
typedef VEC(uint64_t) word_vec;

static void read_ring(struct map_watch *w, struct watch_ring *r, told_vec *list, word_vec *text)
{
	size_t size = RING_PAGES * w->page;
	const uint8_t *data = (const uint8_t *)r->head + w->page;
	uint64_t head = __atomic_load_n(&r->head->data_head, __ATOMIC_ACQUIRE),
		 tail = r->head->data_tail;

	while (tail < head) {
		uint16_t n = ((const struct perf_event_header *)(data + tail % size))->size;
		struct told told = { .at = text->n, .order = list->n };

		if (n < sizeof(struct perf_event_header) + sizeof(told.time) || n % 8 ||
		    n > head - tail)
			break;
		for (uint16_t i = 0; i < n; i += 8) {
			uint64_t word;

			memcpy(&word, data + (tail + i) % size, 8);
			vec_push(text, word);
		}
		told.time = text->v[text->n - 1];
		vec_push(list, told);
		tail += n;
	}
	__atomic_store_n(&r->head->data_tail, head, __ATOMIC_RELEASE);
}

/* Reads all rings and sorts the records by time, because a process may have made a mapping on one
 * CPU and replaced it on another. */
void map_watch_drain(struct map_watch *w)
{
	told_vec list = { 0 };
	word_vec text = { 0 };

	for (uint32_t i = 0; w && i < w->n; i++)
		if (__atomic_load_n(&w->rings[i].head->data_head, __ATOMIC_RELAXED) !=
		    w->rings[i].head->data_tail)
			read_ring(w, &w->rings[i], &list, &text);
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_time);
	for (uint32_t i = 0; i < list.n; i++)
		take_record(w, (const struct perf_event_header *)&text.v[list.v[i].at],
			    list.v[i].time);
	vec_fini(&list);
	vec_fini(&text);
}

bool map_watch_lost(const struct map_watch *w)
{
	return w && w->lost;
}

static void symbols_map(void *arg, pid_t pid, const struct mapping *m)
{
	process_map(arg, pid, m);
}

static void symbols_forked(void *arg, pid_t parent, pid_t child)
{
	process_forked(arg, parent, child);
}

static void symbols_exec(void *arg, pid_t pid, uint64_t time)
{
	process_exec(arg, pid, time);
}

void symbols_watch(struct symbols *s, pid_t pid)
{
	static const struct map_watch_ops ops = { symbols_map, symbols_forked, symbols_exec };

	if (!s->watch)
		s->watch = map_watch_new(&ops, s, pid, false);
}

bool symbols_watching(const struct symbols *s)
{
	return s && s->watch;
}

void symbols_watch_drain(struct symbols *s)
{
	map_watch_drain(s->watch);
}
