/* Keeps the kernel's unwind tables up to date: reads the mappings of processes that walks meet. */
#define _GNU_SOURCE
#include "load/kernel/unwind_tables.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/procdir.h"
#include "load/kernel/kernel_private.h"
#include "program/runtime/languages.h"
#include "program/unwind/unwind.h"

enum {
	WANTED_SIZE = 4 * 4096,
	AGAIN_NS = 20 * 1000 * 1000,   /* between two readings of a process's mappings, at least */
	AGAIN_SHARE = 5,               /* ... and as many times what the last one took */
	REFRESH_NS = 20 * 1000 * 1000, /* after which a refresh begins no other reading */
	LAZY_NS = 1000 * 1000 * 1000,  /* when a process gets a list; before, walks do without */
	RUNNING_NS = 500 * 1000 * 1000,
	PRELOAD_NS = 50 * 1000 * 1000, /* CPU time, ns */
	PRELOAD_FEW_NS = 10 * 1000 * 1000,
	PRELOAD_STEP = 16,            /* files that are written to the kernel together */
	MAPPED_MAX = 4096,            /* between two refreshes; walks report the files beyond */
	SCAN_NS = 2000 * 1000 * 1000, /* between two checks of all processes */
};

/* A process whose mappings will be read at at_ns. */
struct later {
	uint32_t pid;
	uint64_t at_ns;
};
typedef VEC(struct later) later_vec;

/* A file that a process has mapped. */
struct mapped_file {
	pid_t pid;
	char *path;
	uint32_t dev; /* major << 20 | minor */
	uint64_t inode;
};

struct unwind_tables {
	struct unwind_store *store;
	struct languages *languages;
	struct hash named;        /* pids of targets and of their children */
	struct hash interpreters; /* pid -> address of its struct wire_language */
	int chunks, processes;
	VEC(int) chunk_fds;
	int inner;       /* the pattern map that the array of maps requires */
	uint32_t nknown; /* number of chunks for remembered rules */
	struct ring wanted;
	struct hash again_ns; /* pid -> when its mappings may be read again */
	later_vec later;      /* each process once, after tidy_later() */
	VEC(uint32_t) met;    /* processes whose first stack was taken */
	uint64_t scan_ns;
	bool preloaded, parent, overflowed; /* parent: a target has forked */
	uint32_t mm, asked, language;       /* of the process that is being written to the map */
	struct map_watch *watch;
	bool targets;     /* only mappings of processes in `ours` count */
	struct hash ours; /* pids of targets, of their children and of processes met */
	VEC(struct mapped_file) mapped; /* since the last refresh */
};

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
		/* Fills the chunk before programs can see it. */
		if ((index == chunk && map_update(fd, &zero, words)) ||
		    map_update(t->chunks, &index, &fd)) {
			struct err *e = err_errno(errno, "adding unwind tables");

			close(fd);
			t->chunk_fds.n--;
			return e;
		}
	}
	if (map_update(t->chunk_fds.v[chunk], &zero, words))
		return err_errno(errno, "filling unwind tables");
	return NULL;
}

static void drop_chunk(void *arg, uint32_t chunk)
{
	struct unwind_tables *t = arg;
	union bpf_attr a = { .map_fd = (uint32_t)t->chunks, .key = (uintptr_t)&chunk };

	if (chunk + 1 != t->chunk_fds.n)
		return; /* it was never written */
	sys_bpf(BPF_MAP_DELETE_ELEM, &a, sizeof(a));
	close(t->chunk_fds.v[--t->chunk_fds.n]);
}

static struct err *put_process(void *arg, uint32_t pid, const struct wire_unwind_process *p)
{
	struct unwind_tables *t = arg;
	struct wire_unwind_process known = *p;

	known.mm = t->mm;
	known.asked = t->asked & WIRE_UNWIND_ASK_MET;
	known.language = t->language;
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

static bool add_chunk_at(struct unwind_tables *t, uint32_t index)
{
	int fd = chunk_create();
	bool ok = fd >= 0 && !map_update(t->chunks, &index, &fd);

	if (fd >= 0)
		close(fd); /* the array keeps it */
	return ok;
}

/* Adds the chunks for remembered rules and for code objects. Walks also work without these
 * chunks. */
static void add_known_chunks(struct unwind_tables *t)
{
	long ncpus = sysconf(_SC_NPROCESSORS_CONF);

	for (; t->nknown < WIRE_UNWIND_KNOWN_CHUNKS && t->nknown < ncpus; t->nknown++)
		if (!add_chunk_at(t, WIRE_UNWIND_CHUNKS - 1 - t->nknown))
			return;
	(void)(t->languages && add_chunk_at(t, WIRE_UNWIND_CODES));
}

static const struct unwind_store_ops store_ops = { put_chunk, put_process, del_process,
						   drop_chunk };

struct err *unwind_tables_new(struct languages *languages, struct unwind_tables **ret)
{
	struct unwind_tables *t = xcalloc(1, sizeof(*t));
	struct err *e = NULL;
	int wanted;

	t->chunks = t->processes = -1;
	t->wanted.fd = -1;
	t->languages = languages;
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
	e = e ?: ring_open(&t->wanted, wanted, WANTED_SIZE);
	t->wanted.fd = wanted;
	if (!e)
		add_known_chunks(t);
	/* The chunks of rules and of files must exist for every walk. */
	e = e ?: unwind_store_enable_files(t->store);
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
		free(t->mapped.v[i].path);
	vec_fini(&t->mapped);
	vec_fini(&t->chunk_fds);
	vec_fini(&t->later);
	vec_fini(&t->met);
	hash_fini(&t->again_ns);
	hash_fini(&t->ours);
	hash_fini(&t->interpreters);
	hash_fini(&t->named);
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

bool unwind_tables_overflowed(struct unwind_tables *t)
{
	if (t->overflowed || !unwind_store_full(t->store))
		return false;
	t->overflowed = true;
	return true;
}

uint64_t unwind_tables_bytes(const struct unwind_tables *t)
{
	return (uint64_t)(t->chunk_fds.n + t->nknown) * WIRE_UNWIND_CHUNK_WORDS * 4;
}

static bool lookup(const struct unwind_tables *t, uint32_t pid, struct wire_unwind_process *ret)
{
	union bpf_attr a = { .map_fd = (uint32_t)t->processes,
			     .key = (uintptr_t)&pid,
			     .value = (uintptr_t)ret };

	return !sys_bpf(BPF_MAP_LOOKUP_ELEM, &a, sizeof(a));
}

static bool is_gone(uint32_t pid)
{
	return kill((pid_t)pid, 0) && errno == ESRCH;
}

static void forget(struct unwind_tables *t, uint32_t pid)
{
	const uint64_t *language = hash_get(&t->interpreters, &pid, sizeof(pid));

	unwind_store_del(t->store, (pid_t)pid);
	if (language && *language)
		unwind_store_drop_words(t->store, (uint32_t)*language, WIRE_LANGUAGE_WORDS);
	hash_del(&t->again_ns, &pid, sizeof(pid));
	hash_del(&t->ours, &pid, sizeof(pid));
	hash_del(&t->interpreters, &pid, sizeof(pid));
	hash_del(&t->named, &pid, sizeof(pid));
}

/* descry reads an interpreter in the memory of its process. The process can make the reader wait
 * (pages of userfaultfd(2) or FUSE), and can make it read much. So only processes of this user and
 * targets are examined, and another user's process cannot do this to a system-wide run. */
static bool may_read(const struct unwind_tables *t, uint32_t pid)
{
	char path[32];
	struct stat st;

	if (hash_get(&t->named, &pid, sizeof(pid)))
		return true;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	return !stat(path, &st) && st.st_uid == geteuid();
}

/* Looks for an interpreter in the process, for the next put_process(). */
static void find_language(struct unwind_tables *t, uint32_t pid)
{
	struct wire_language l;
	uint64_t *at;
	uint32_t ms;

	t->language = 0;
	if (!t->languages || !may_read(t, pid))
		return;
	if (!languages_find(t->languages, (pid_t)pid, t->mm, &l, &ms)) {
		if (ms)
			vec_push(&t->later, (struct later){ pid, now_ns() + ms * 1000000ull });
		return;
	}
	at = hash_put(&t->interpreters, &pid, sizeof(pid), NULL);
	*at = unwind_store_words_at(t->store, (uint32_t)*at, &l, WIRE_LANGUAGE_WORDS,
				    WIRE_LANGUAGE_WORDS);
	t->language = (uint32_t)*at;
}

static struct err *add_process(struct unwind_tables *t, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	struct wire_unwind_process p;
	const uint64_t begun = now_ns();
	uint64_t *again, wait = AGAIN_NS;
	bool first;
	struct err *e;

	/* Reads mm before the mappings. When the process executes another program in between, a
	 * walk sees that the list belongs to another address space. */
	t->mm = t->asked = 0;
	if (lookup(t, key, &p)) {
		t->mm = p.mm;
		t->asked = p.asked;
	}
	*hash_put(&t->ours, &key, sizeof(key), NULL) = 1;
	find_language(t, key);
	e = unwind_store_add(t->store, pid);
	again = hash_put(&t->again_ns, &key, sizeof(key), &first);
	/* The first one makes the tables of the process's files, which may take long. */
	if (!first && (now_ns() - begun) * AGAIN_SHARE > wait)
		wait = (now_ns() - begun) * AGAIN_SHARE;
	*again = begun + wait;
	if (e && is_gone(key))
		forget(t, key);
	return e;
}

struct err *unwind_tables_add(struct unwind_tables *t, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	*hash_put(&t->named, &key, sizeof(key), NULL) = 1;
	return add_process(t, pid);
}

static int newest_first(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

void unwind_tables_add_running(struct unwind_tables *t)
{
	uint64_t until = now_ns() + RUNNING_NS;
	cleanup_dir DIR *proc = opendir("/proc");
	VEC(pid_t) pids = { 0 };

	for (pid_t pid; procdir_next(proc, &pid);)
		vec_push(&pids, pid);
	if (pids.n)
		qsort(pids.v, pids.n, sizeof(*pids.v), newest_first);
	unwind_store_guess(t->store, true);
	for (uint32_t i = 0; i < pids.n && now_ns() < until; i++)
		err_free(add_process(t, pids.v[i]));
	unwind_store_guess(t->store, false);
	vec_fini(&pids);
}

/* Plans the reading of pid's mappings: soon (but not before again_ns), or after LAZY_NS of life. */
static void want(struct unwind_tables *t, uint32_t pid, bool soon, uint64_t now)
{
	uint64_t *again = hash_get(&t->again_ns, &pid, sizeof(pid));
	uint64_t at = !soon ? now + LAZY_NS : again ? *again : now;

	vec_push(&t->later, (struct later){ pid, at });
}

/* Forgets ended processes of `ours`. Some are in no other list, because no walk requested them. */
static void forget_gone(struct unwind_tables *t)
{
	VEC(uint32_t) gone = { 0 };
	uint32_t pos = 0;
	const void *key;
	uint64_t *val;
	size_t len;

	while (hash_next(&t->ours, &pos, &key, &len, &val)) {
		uint32_t pid;

		memcpy(&pid, key, sizeof(pid));
		if (is_gone(pid))
			vec_push(&gone, pid);
	}
	for (uint32_t i = 0; i < gone.n; i++)
		forget(t, gone.v[i]);
	vec_fini(&gone);
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

		if (is_gone(pids.v[i]))
			forget(t, pids.v[i]);
		else if (lookup(t, pids.v[i], &p) && p.asked & WIRE_UNWIND_ASK_LIST)
			want(t, pids.v[i], p.asked & WIRE_UNWIND_ASK_NOW, now);
	}
	vec_fini(&pids);
	forget_gone(t);
	err_free(unwind_store_tidy(t->store, NULL, now));
}

static void wanted_record(void *arg, const struct wire_record *r, uint32_t size, bool control)
{
	struct unwind_tables *t = arg;
	struct wire_unwind_ask ask;

	if (size < sizeof(ask))
		return;
	memcpy(&ask, r, sizeof(ask));
	if (ask.what & WIRE_UNWIND_ASK_MET) {
		vec_push(&t->met, ask.pid);
		*hash_put(&t->ours, &ask.pid, sizeof(ask.pid), NULL) = 1;
	}
	if (ask.what & WIRE_UNWIND_ASK_LIST)
		want(t, ask.pid, ask.what & WIRE_UNWIND_ASK_NOW, now_ns());
	if (ask.what & WIRE_UNWIND_ASK_CODE && t->languages && may_read(t, ask.pid))
		languages_learn(t->languages, (pid_t)ask.pid, &ask);
}

void unwind_tables_met(struct unwind_tables *t, void (*fn)(void *arg, int pid), void *arg)
{
	for (uint32_t i = 0; i < t->met.n; i++)
		fn(arg, (int)t->met.v[i]);
	t->met.n = 0;
}

/* --- mappings made while tracing --- */

/* Notes a new mapping. When it lies where the process's list has another mapping, the list must be
 * read again. */
static void mapped(void *arg, pid_t pid, const struct mapping *m)
{
	struct unwind_tables *t = arg;
	uint32_t key = (uint32_t)pid;

	if (t->targets && !hash_get(&t->ours, &key, sizeof(key)))
		return;
	if (unwind_store_conflicts(t->store, pid, m->start, m->end, m->path[0] == '/') ||
	    (t->languages && runtime_is_library(m->path)))
		want(t, key, true, now_ns());
	if (m->path[0] == '/' && t->mapped.n < MAPPED_MAX)
		vec_push(&t->mapped,
			 (struct mapped_file){ pid, xstrdup(m->path),
					       m->dev_major << 20 | m->dev_minor, m->inode });
}

static void forked(void *arg, pid_t parent, pid_t child)
{
	struct unwind_tables *t = arg;
	uint32_t from = (uint32_t)parent, to = (uint32_t)child;

	if (!hash_get(&t->ours, &from, sizeof(from)))
		return;
	*hash_put(&t->ours, &to, sizeof(to), NULL) = 1;
	if (hash_get(&t->named, &from, sizeof(from)))
		*hash_put(&t->named, &to, sizeof(to), NULL) = 1;
	t->parent = true;
}

void unwind_tables_watch(struct unwind_tables *t, bool targets)
{
	static const struct map_watch_ops ops = { .map = mapped, .forked = forked };

	t->targets = targets;
	if (!t->watch)
		t->watch = map_watch_new(&ops, t, 0, targets);
}

int unwind_tables_watch_fd(const struct unwind_tables *t, uint32_t i)
{
	return map_watch_fd(t->watch, i);
}

/* Adds the tables of newly mapped files. Most are known by device and inode, so that no file is
 * opened. After REFRESH_NS leaves the others for the next refresh. */
static void add_mapped(struct unwind_tables *t)
{
	const uint64_t begun = now_ns();
	uint32_t n = 0;

	for (; n < t->mapped.n && (!n || now_ns() - begun < REFRESH_NS); n++) {
		struct mapped_file *f = &t->mapped.v[n];

		unwind_store_met_file(t->store, f->pid, f->path, f->dev, f->inode);
		free(f->path);
	}
	if (!n)
		return;
	err_free(unwind_store_flush(t->store));
	t->mapped.n -= n;
	memmove(t->mapped.v, t->mapped.v + n, t->mapped.n * sizeof(*t->mapped.v));
}

void unwind_tables_preload(struct unwind_tables *t, bool few)
{
	uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (few ? PRELOAD_FEW_NS : PRELOAD_NS);
	char **paths;
	uint32_t n;

	if (t->preloaded)
		return;
	t->preloaded = true;
	n = unwind_recent_read(&paths);
	unwind_store_guess(t->store, true);
	for (uint32_t i = 0; i < n && clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until; i += PRELOAD_STEP)
		err_free(unwind_store_add_files(t->store, (const char *const *)&paths[i],
						n - i < PRELOAD_STEP ? n - i : PRELOAD_STEP));
	for (uint32_t i = 0; i < n; i++)
		free(paths[i]);
	unwind_store_guess(t->store, false);
	free(paths);
}

static int by_pid(const void *a, const void *b)
{
	const struct later *x = a, *y = b;

	return COMPARE(x->pid, y->pid) ?: COMPARE(x->at_ns, y->at_ns);
}

/* Keeps each process once, at the earliest of its times. */
static void tidy_later(struct unwind_tables *t)
{
	uint32_t n = 0;

	if (t->later.n)
		qsort(t->later.v, t->later.n, sizeof(*t->later.v), by_pid);
	for (uint32_t i = 0; i < t->later.n; i++)
		if (!n || t->later.v[n - 1].pid != t->later.v[i].pid)
			t->later.v[n++] = t->later.v[i];
	t->later.n = n;
}

static int by_time(const void *a, const void *b)
{
	const struct later *x = a, *y = b;

	return COMPARE(x->at_ns, y->at_ns);
}

/* Reads mappings that are due, the longest due first. A process can make its list long, so after
 * REFRESH_NS the others are left for the next refresh, and the caller reads records meanwhile. */
static void read_planned(struct unwind_tables *t, uint64_t now)
{
	later_vec planned = t->later;

	t->later = (later_vec){ 0 }; /* add_process() may plan again */
	if (planned.n)
		qsort(planned.v, planned.n, sizeof(*planned.v), by_time);
	for (uint32_t i = 0; i < planned.n; i++) {
		/* Ignores errors: walks of a process that has ended or whose tables do not fit use
		 * frame pointers. */
		if (planned.v[i].at_ns <= now && now_ns() - now < REFRESH_NS)
			err_free(add_process(t, (pid_t)planned.v[i].pid));
		else
			vec_push(&t->later, planned.v[i]);
	}
	vec_fini(&planned);
}

void unwind_tables_learn(struct unwind_tables *t)
{
	ring_drain(&t->wanted, wanted_record, t, true);
}

void unwind_tables_refresh(struct unwind_tables *t)
{
	uint64_t now;

	map_watch_drain(t->watch);
	ring_drain(&t->wanted, wanted_record, t, true);
	add_mapped(t);
	if (t->parent)
		unwind_tables_preload(t, true);
	now = now_ns();
	if (t->later.n)
		tidy_later(t);
	read_planned(t, now);
	/* An empty chunk takes the place of the one with what was requested. */
	if (t->languages && languages_ask_again(t->languages, now))
		(void)add_chunk_at(t, WIRE_UNWIND_CODES);
	if (now - t->scan_ns >= SCAN_NS) {
		t->scan_ns = now;
		scan(t, now);
	}
}
