#define _GNU_SOURCE
#include "load/kernel/unwind.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/hash.h"
#include "load/kernel/kernel.h"
#include "program/unwind/unwind.h"

enum {
	WANTED_SIZE = 4096,
	AGAIN_NS = 20 * 1000 * 1000, /* a process's mappings are read at most this often */
	RUNNING_NS = 500 * 1000 * 1000,
	PRELOAD_NS = 50 * 1000 * 1000, /* of CPU time */
	PRELOAD_STEP = 16,             /* files that go into the kernel together */
	MAPPED_MAX = 4096,             /* between two refreshes; what is behind is met by a walk */
	SCAN_NS = 1000 * 1000 * 1000,  /* every process is looked at: gone, or asked for in vain */
};

struct unwind_tables {
	struct unwind_store *store;
	int chunks, processes;
	VEC(int) chunk_fds;
	int inner; /* what the array of maps takes as its pattern */
	struct ring wanted;
	struct hash read_ns; /* pid -> when its mappings were read */
	VEC(uint32_t) later; /* asked for too soon after the last time */
	uint64_t scan_ns;
	uint32_t mm; /* of the process that is being put */
	struct map_watch *watch;
	VEC(char *) mapped; /* files that were mapped since the last refresh */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int map_update(int fd, const void *key, const void *value)
{
	union bpf_attr a = { .map_fd = (uint32_t)fd,
			     .key = (uintptr_t)key,
			     .value = (uintptr_t)value };

	return sys_bpf(BPF_MAP_UPDATE_ELEM, &a, sizeof(a));
}

static int map_create(const char *name, enum bpf_map_type type, uint32_t key, uint32_t value,
		      uint32_t entries, int inner)
{
	union bpf_attr a = { .map_type = type,
			     .key_size = key,
			     .value_size = value,
			     .max_entries = entries,
			     .inner_map_fd = inner >= 0 ? (uint32_t)inner : 0 };

	sys_object_name(a.map_name, name);
	return sys_bpf(BPF_MAP_CREATE, &a, sizeof(a));
}

static int chunk_create(void)
{
	return map_create("unwind_chunk", BPF_MAP_TYPE_ARRAY, 4, WIRE_UNWIND_CHUNK_WORDS * 4, 1,
			  -1);
}

static struct err *put_chunk(void *arg, uint32_t chunk, const uint32_t *words)
{
	struct unwind_tables *t = arg;
	uint32_t zero = 0;

	while (t->chunk_fds.n <= chunk) {
		int fd = chunk_create();
		uint32_t index = t->chunk_fds.n;

		if (fd < 0)
			return sys_err(errno, "creating a map for unwind tables");
		vec_push(&t->chunk_fds, fd);
		/* Filled before it can be seen. */
		if (index == chunk && map_update(fd, &zero, words))
			return err_errno(errno, "filling unwind tables");
		if (map_update(t->chunks, &index, &fd))
			return err_errno(errno, "adding unwind tables");
	}
	if (map_update(t->chunk_fds.v[chunk], &zero, words))
		return err_errno(errno, "filling unwind tables");
	return NULL;
}

static struct err *put_process(void *arg, uint32_t pid, const struct wire_unwind_process *p)
{
	struct unwind_tables *t = arg;
	struct wire_unwind_process known = *p;

	known.mm = t->mm;
	if (map_update(t->processes, &pid, &known))
		return err_errno(errno, "adding process %u to the unwind tables", pid);
	return NULL;
}

static void del_process(void *arg, uint32_t pid)
{
	struct unwind_tables *t = arg;
	union bpf_attr a = { .map_fd = (uint32_t)t->processes, .key = (uintptr_t)&pid };

	sys_bpf(BPF_MAP_DELETE_ELEM, &a, sizeof(a));
}

static const struct unwind_store_ops store_ops = { put_chunk, put_process, del_process };

struct err *unwind_tables_new(struct unwind_tables **ret)
{
	struct unwind_tables *t = xcalloc(1, sizeof(*t));
	struct err *e = NULL;
	int wanted;

	t->chunks = t->processes = -1;
	t->wanted.fd = -1;
	t->store = unwind_store_new(&store_ops, t);
	t->inner = chunk_create();
	if (t->inner >= 0)
		t->chunks = map_create("unwind", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4,
				       WIRE_UNWIND_CHUNKS, t->inner);
	t->processes = map_create("unwind_procs", BPF_MAP_TYPE_HASH, 4,
				  sizeof(struct wire_unwind_process), WIRE_UNWIND_PROCESSES, -1);
	wanted = map_create("unwind_wanted", BPF_MAP_TYPE_RINGBUF, 0, 0, WANTED_SIZE, -1);
	if (t->chunks < 0 || t->processes < 0 || wanted < 0)
		e = sys_err(errno, "creating maps for unwind tables");
	if (!e)
		e = ring_open(&t->wanted, wanted, WANTED_SIZE);
	t->wanted.fd = wanted;
	/* The chunks of rules and of files must be there for any walk. */
	if (!e)
		e = unwind_store_enable_files(t->store);
	if (e) {
		unwind_tables_free(t);
		return e;
	}
	t->scan_ns = now_ns();
	*ret = t;
	return NULL;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void unwind_tables_free(struct unwind_tables *t)
{
	if (!t)
		return;
	int wanted = t->wanted.fd;

	ring_close(&t->wanted);
	close_fd(wanted);
	close_fd(t->chunks);
	close_fd(t->processes);
	close_fd(t->inner);
	for (uint32_t i = 0; i < t->chunk_fds.n; i++)
		close(t->chunk_fds.v[i]);
	unwind_store_remember(t->store);
	unwind_store_free(t->store);
	map_watch_free(t->watch);
	for (uint32_t i = 0; i < t->mapped.n; i++)
		free(t->mapped.v[i]);
	vec_fini(&t->mapped);
	vec_fini(&t->chunk_fds);
	vec_fini(&t->later);
	hash_fini(&t->read_ns);
	free(t);
}

int unwind_tables_chunks(const struct unwind_tables *t)
{
	return t->chunks;
}

int unwind_tables_processes(const struct unwind_tables *t)
{
	return t->processes;
}

int unwind_tables_wanted(const struct unwind_tables *t)
{
	return t->wanted.fd;
}

uint64_t unwind_tables_bytes(const struct unwind_tables *t)
{
	return (uint64_t)t->chunk_fds.n * WIRE_UNWIND_CHUNK_WORDS * 4;
}

static bool lookup(const struct unwind_tables *t, uint32_t pid, struct wire_unwind_process *ret)
{
	union bpf_attr a = { .map_fd = (uint32_t)t->processes,
			     .key = (uintptr_t)&pid,
			     .value = (uintptr_t)ret };

	return !sys_bpf(BPF_MAP_LOOKUP_ELEM, &a, sizeof(a));
}

struct err *unwind_tables_add(struct unwind_tables *t, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	struct wire_unwind_process p;

	/* Looked at before its mappings are: should it run another program by then, the walk sees that the list is not
	 * of the address space it is in. */
	t->mm = lookup(t, key, &p) ? p.mm : 0;
	*hash_put(&t->read_ns, &key, sizeof(key), NULL) = now_ns();
	return unwind_store_add(t->store, pid);
}

static int newest_first(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

void unwind_tables_add_running(struct unwind_tables *t)
{
	uint64_t until = now_ns() + RUNNING_NS;
	DIR *proc = opendir("/proc");
	VEC(pid_t) pids = { 0 };
	struct dirent *d;

	while (proc && (d = readdir(proc))) {
		char *end;
		long pid = strtol(d->d_name, &end, 10);

		if (pid > 0 && !*end)
			vec_push(&pids, (pid_t)pid);
	}
	if (proc)
		closedir(proc);
	if (pids.n)
		qsort(pids.v, pids.n, sizeof(*pids.v), newest_first);
	unwind_store_guess(t->store, true);
	for (uint32_t i = 0; i < pids.n && now_ns() < until; i++)
		err_free(unwind_tables_add(t, pids.v[i]));
	unwind_store_guess(t->store, false);
	vec_fini(&pids);
}

/* A process that has gone, or whose tables do not fit, is walked by frame pointer: no error. */
static void want(struct unwind_tables *t, uint32_t pid, uint64_t now)
{
	uint64_t *last = hash_get(&t->read_ns, &pid, sizeof(pid));

	if (last && now - *last < AGAIN_NS) {
		vec_push(&t->later, pid);
		return;
	}
	err_free(unwind_tables_add(t, (pid_t)pid));
}

static void forget(struct unwind_tables *t, uint32_t pid)
{
	unwind_store_del(t->store, (pid_t)pid);
	hash_del(&t->read_ns, &pid, sizeof(pid));
}

static void scan(struct unwind_tables *t, uint64_t now)
{
	VEC(uint32_t) pids = { 0 };
	uint32_t pid;
	union bpf_attr a = { .map_fd = (uint32_t)t->processes, .next_key = (uintptr_t)&pid };

	while (!sys_bpf(BPF_MAP_GET_NEXT_KEY, &a, sizeof(a)) && pids.n < WIRE_UNWIND_PROCESSES) {
		vec_push(&pids, pid);
		a.key = (uintptr_t)&pid;
	}
	for (uint32_t i = 0; i < pids.n; i++) {
		struct wire_unwind_process p;

		if (kill((pid_t)pids.v[i], 0) && errno == ESRCH)
			forget(t, pids.v[i]);
		else if (lookup(t, pids.v[i], &p) && p.missed)
			want(t, pids.v[i], now);
	}
	vec_fini(&pids);
}

static void wanted_record(void *arg, const struct wire_record *r, uint32_t size, bool control)
{
	struct unwind_tables *t = arg;
	uint32_t pid;

	if (size >= sizeof(pid)) {
		memcpy(&pid, r, sizeof(pid));
		vec_push(&t->later, pid);
	}
}

/* --- what is mapped while tracing --- */

/* A process whose list is loaded has another mapping: in place of an old one it would be taken for that. */
static void mapped(void *arg, pid_t pid, struct mapping *m)
{
	struct unwind_tables *t = arg;
	uint32_t key = (uint32_t)pid;

	if (hash_get(&t->read_ns, &key, sizeof(key)))
		vec_push(&t->later, key);
	if (m->path[0] == '/' && t->mapped.n < MAPPED_MAX)
		vec_push(&t->mapped, m->path);
	else
		free(m->path);
}

void unwind_tables_watch(struct unwind_tables *t, bool wake)
{
	static const struct map_watch_ops ops = { mapped, NULL };

	if (!t->watch)
		t->watch = map_watch_new(&ops, t, wake);
}

int unwind_tables_watch_fd(const struct unwind_tables *t, uint32_t i)
{
	return map_watch_fd(t->watch, i);
}

/* Most are known: then this is a stat(). */
static void add_mapped(struct unwind_tables *t)
{
	if (!t->mapped.n)
		return;
	err_free(unwind_store_add_files(t->store, (const char *const *)t->mapped.v, t->mapped.n));
	for (uint32_t i = 0; i < t->mapped.n; i++)
		free(t->mapped.v[i]);
	t->mapped.n = 0;
}

void unwind_tables_preload(struct unwind_tables *t)
{
	uint64_t until = cpu_ns() + PRELOAD_NS;
	char **paths;
	uint32_t n = unwind_recent_read(&paths);

	unwind_store_guess(t->store, true);
	for (uint32_t i = 0; i < n && cpu_ns() < until; i += PRELOAD_STEP)
		err_free(unwind_store_add_files(t->store, (const char *const *)&paths[i],
						n - i < PRELOAD_STEP ? n - i : PRELOAD_STEP));
	for (uint32_t i = 0; i < n; i++)
		free(paths[i]);
	unwind_store_guess(t->store, false);
	free(paths);
}

static int by_pid(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The processes asked for, once each. */
static void tidy_later(struct unwind_tables *t)
{
	uint32_t n = 0;

	if (t->later.n)
		qsort(t->later.v, t->later.n, sizeof(*t->later.v), by_pid);
	for (uint32_t i = 0; i < t->later.n; i++)
		if (!n || t->later.v[n - 1] != t->later.v[i])
			t->later.v[n++] = t->later.v[i];
	t->later.n = n;
}

void unwind_tables_refresh(struct unwind_tables *t)
{
	uint64_t now;
	uint32_t n;

	map_watch_drain(t->watch);
	ring_drain(&t->wanted, wanted_record, t, true);
	add_mapped(t);
	tidy_later(t);
	now = now_ns();
	n = t->later.n;
	/* What is still too soon is put behind the others. */
	for (uint32_t i = 0; i < n; i++)
		want(t, t->later.v[i], now);
	if (n) {
		t->later.n -= n;
		memmove(t->later.v, t->later.v + n, t->later.n * sizeof(*t->later.v));
	}
	if (now - t->scan_ns >= SCAN_NS) {
		t->scan_ns = now;
		scan(t, now);
	}
}
