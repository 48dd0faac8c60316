/* Unwind tables of processes in the chunks that the kernel searches: the same answers, and room. */
#define _GNU_SOURCE
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "program/unwind/cfi.h"
#include "program/unwind/room.h"

/* --- the store --- */

struct memory {
	VEC(uint32_t *) chunks;
	struct wire_unwind_process process;
	uint32_t pid, deleted;
};

static struct err *put_chunk(void *arg, uint32_t chunk, const uint32_t *words)
{
	struct memory *m = arg;

	while (m->chunks.n <= chunk)
		vec_push(&m->chunks, xcalloc(WIRE_UNWIND_CHUNK_WORDS, 4));
	memcpy(m->chunks.v[chunk], words, WIRE_UNWIND_CHUNK_WORDS * 4);
	return NULL;
}

static struct err *put_process(void *arg, uint32_t pid, const struct wire_unwind_process *p)
{
	struct memory *m = arg;

	m->pid = pid;
	m->process = *p;
	return NULL;
}

static void drop_chunk(void *arg, uint32_t chunk)
{
	struct memory *m = arg;

	assert_int_equal(chunk + 1, m->chunks.n);
	free(m->chunks.v[--m->chunks.n]);
}

static void del_process(void *arg, uint32_t pid)
{
	((struct memory *)arg)->deleted = pid;
}

static const uint32_t *at(const struct memory *m, uint32_t address)
{
	assert_true(address >> 16 < m->chunks.n);
	return m->chunks.v[address >> 16] + (address & 0xffff);
}

/* As bpf/unwind.bpf.h searches. */
static uint32_t chunk_rule(const struct memory *m, uint64_t addr)
{
	const struct wire_unwind_mapping *maps = (const void *)at(m, m->process.mappings);

	for (uint32_t i = 0; i < m->process.n; i++) {
		uint64_t link = addr - maps[i].bias, page = (link >> 16) - maps[i].first_page;
		const struct wire_unwind_page *p;
		uint32_t rule = 0;

		if (addr - maps[i].start >= (uint64_t)maps[i].size << 12)
			continue;
		if (!maps[i].pages || page >= maps[i].npages)
			return 0;
		p = (const struct wire_unwind_page *)at(m, maps[i].pages) + page;
		for (uint32_t r = 0; r < p->n; r++)
			if (WIRE_UNWIND_ROW_PC(at(m, p->rows)[r]) <= (link & 0xffff))
				rule = *at(m, WIRE_UNWIND_ROW_RULE(at(m, p->rows)[r]));
		return rule;
	}
	return 0;
}

/* By identity, as the walk does for a process it knows nothing of: the same tables, at the same
 * addresses. */
static void find_files(const struct memory *m, struct unwind_store *s)
{
	const struct wire_unwind_files *t = (const void *)m->chunks.v[1];
	const struct wire_unwind_mapping *maps = (const void *)at(m, m->process.mappings);
	struct mappings own;
	uint32_t found = 0;

	assert_int_equal(t->enabled, 0);
	assert_null(unwind_store_enable_files(s));
	assert_int_equal(t->enabled, 1);
	assert_null(mappings_read(getpid(), &own));
	for (uint32_t i = 0; i < own.n; i++) {
		struct stat st;
		uint64_t key;

		if (!own.v[i].exec || own.v[i].path[0] != '/' || stat(own.v[i].path, &st))
			continue;
		key = wire_unwind_file_key(own.v[i].dev_major << 20 | own.v[i].dev_minor,
					   own.v[i].inode, (uint64_t)st.st_mtim.tv_sec,
					   (uint32_t)st.st_mtim.tv_nsec);
		for (uint32_t k = 0; k < WIRE_UNWIND_PROBES; k++) {
			const struct wire_unwind_file *f =
				&t->files[(key + k) & (WIRE_UNWIND_FILES - 1)];

			if (f->key != key)
				continue;
			for (uint32_t j = 0; j < m->process.n; j++)
				if (maps[j].start == own.v[i].start) {
					assert_int_equal(f->pages, maps[j].pages);
					assert_int_equal(own.v[i].start - own.v[i].offset -
								 (uint64_t)f->delta,
							 maps[j].bias);
					found++;
				}
			break;
		}
	}
	assert_true(found >= 3); /* the program, libc, the dynamic linker */
	mappings_free(&own);
}

/* A new mapping conflicts with a list when it overlaps a listed one. */
static void find_conflicts(const struct unwind_store *s, const struct unwind_process *p)
{
	pid_t pid = getpid();

	for (uint32_t i = 0; i < p->ranges.n; i++) {
		const struct unwind_range *m = &p->ranges.v[i];
		bool tables = m->image && m->image->head->npages;

		assert_true(unwind_store_conflicts(s, pid, m->start, m->end, true));
		assert_true(unwind_store_conflicts(s, pid, m->start - 4096, m->start + 4096, true));
		assert_true(unwind_store_conflicts(s, pid, m->end - 4096, m->end + 4096, true));
		assert_int_equal(unwind_store_conflicts(s, pid, m->start, m->start + 4096, false),
				 tables);
		if (!i || p->ranges.v[i - 1].end < m->start)
			assert_false(
				unwind_store_conflicts(s, pid, m->start - 4096, m->start, true));
	}
	assert_false(unwind_store_conflicts(s, pid, 4096, 8192, true));
	assert_false(unwind_store_conflicts(s, 0x7ffffff0, p->ranges.v[0].start, p->ranges.v[0].end,
					    true));
}

/* The kernel and stat() may name different devices for a file that is on no disk. The kernel's
 * counts. */
static void find_inode(const struct memory *m, struct unwind_store *s)
{
	enum { DEV = 77 << 20 | 5 };
	const struct wire_unwind_files *t = (const void *)m->chunks.v[1];
	char path[] = "/dev/shm/descry-inode-XXXXXX";
	cleanup_free char *text = NULL;
	struct stat st;
	uint64_t key;
	bool found = false;
	size_t len;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_null(io_read_file("/proc/self/exe", &text, &len));
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(major(st.st_dev), 0);
	key = wire_unwind_file_key(DEV, st.st_ino, (uint64_t)st.st_mtim.tv_sec,
				   (uint32_t)st.st_mtim.tv_nsec);
	for (int again = 0; again < 2; again++)
		unwind_store_met_file(s, getpid(), path, DEV, st.st_ino);
	unlink(path);
	assert_null(unwind_store_flush(s));
	for (uint32_t k = 0; k < WIRE_UNWIND_PROBES; k++)
		found |= t->files[(key + k) & (WIRE_UNWIND_FILES - 1)].key == key &&
			 t->files[(key + k) & (WIRE_UNWIND_FILES - 1)].npages;
	assert_true(found);
}

static void test_store(void **state)
{
	static const struct unwind_store_ops ops = { put_chunk, put_process, del_process };
	struct memory m = { 0 };
	struct unwind_store *s = unwind_store_new(&ops, &m);
	struct unwind_images *images = unwind_images_new();
	struct unwind_process *p;
	uint32_t known = 0, version;
	uint64_t words;
	struct err *e;

	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	assert_null(unwind_store_add(s, getpid()));
	assert_false(unwind_store_full(s));
	assert_int_equal(m.pid, getpid());
	assert_null(unwind_process_live(images, getpid(), &p));
	assert_int_equal(m.process.n, p->ranges.n);
	for (uint32_t i = 0; i < p->ranges.n; i++) {
		const struct unwind_range *um = &p->ranges.v[i];

		for (uint32_t k = 0; k < 500; k++) {
			uint64_t addr = um->start + (uint64_t)random() % (um->end - um->start);
			uint32_t rule = um->image ? unwind_image_rule(um->image, addr - um->bias)
						  : 0;

			assert_int_equal(chunk_rule(&m, addr), rule);
			known += rule != 0;
		}
	}
	assert_true(known > 500);
	find_files(&m, s);
	find_conflicts(s, p);
	find_inode(&m, s);
	version = m.process.version;
	assert_null(unwind_store_add(s, getpid()));
	assert_int_not_equal(m.process.version, version);
	/* Again and again: the images stay, two lists take turns. */
	words = unwind_store_words(s);
	for (uint32_t i = 0; i < 50; i++)
		assert_null(unwind_store_add(s, getpid()));
	assert_true(unwind_store_words(s) - words < 4 * 64 * 8);
	unwind_store_del(s, getpid());
	assert_int_equal(m.deleted, getpid());
	e = unwind_store_add(s, 0x7ffffff0);
	assert_non_null(e);
	err_free(e);
	unwind_process_free(p);
	unwind_images_free(images);
	unwind_store_free(s);
	for (uint32_t i = 0; i < m.chunks.n; i++)
		free(m.chunks.v[i]);
	vec_fini(&m.chunks);
}

/* Files may have more rules than there are numbers. Those beyond have none, and the store says that
 * it is full. */
static void test_rules(void **state)
{
	static const struct unwind_store_ops ops = { put_chunk, put_process, del_process };
	struct memory m = { 0 };
	struct unwind_store *s = unwind_store_new(&ops, &m);
	const uint32_t more = WIRE_UNWIND_CHUNK_WORDS;

	assert_int_equal(unwind_store_rule(s, 0), 0);
	for (uint32_t i = 1; i < WIRE_UNWIND_CHUNK_WORDS; i++)
		assert_int_equal(unwind_store_rule(s, i), i);
	assert_false(unwind_store_full(s));
	assert_int_equal(unwind_store_rule(s, 7), 7);
	assert_int_equal(unwind_store_rule(s, more), 0);
	assert_true(unwind_store_full(s));
	assert_int_equal(unwind_store_rule(s, more), 0);
	assert_int_equal(unwind_store_rule(s, more - 1), more - 1);
	assert_null(unwind_store_tidy(s, NULL, 1));
	assert_true(unwind_store_full(s));
	unwind_store_free(s);
	for (uint32_t i = 0; i < m.chunks.n; i++)
		free(m.chunks.v[i]);
	vec_fini(&m.chunks);
}

/* --- what goes --- */

static void test_space(void **state)
{
	struct room s = { 0 };

	room_give(&s, 0x20010, 16, 100);
	room_give(&s, 0x20000, 16, 200);
	assert_int_equal(room_take(&s, 4, 1), 0); /* not settled yet */
	room_settle(&s, 150);
	assert_int_equal(room_take(&s, 17, 1), 0);
	room_settle(&s, 200);
	assert_int_equal(s.free.n, 1); /* they touch */
	assert_int_equal(room_take(&s, 30, 1), 0x20000);
	assert_int_equal(room_take(&s, 3, 1), 0);
	assert_int_equal(room_take(&s, 2, 1), 0x2001e);
	assert_int_equal(s.free.n, 0);
	/* No range crosses the end of a chunk. The words before an aligned address stay free. */
	room_give(&s, 0x2fff3, 13, 300);
	room_give(&s, 0x30000, 16, 300);
	room_settle(&s, 300);
	assert_int_equal(s.free.n, 2);
	assert_int_equal(room_take(&s, 8, 8), 0x2fff8);
	assert_int_equal(room_take(&s, 5, 1), 0x2fff3);
	assert_int_equal(room_take(&s, 16, 8), 0x30000);
	assert_int_equal(s.free.n, 0);
	room_fini(&s);
}

/* Is the i-th copy of a small library in chunk 1, with tables? map: after it was met as a process
 * maps it. */
static bool meet_copy(const struct memory *m, struct unwind_store *s, const char *folder, int i,
		      bool map)
{
	const struct wire_unwind_files *t = (const void *)m->chunks.v[1];
	cleanup_free char *path = xasprintf("%s/lib%d.so", folder, i);
	struct stat st;
	uint64_t key;
	uint32_t dev;

	assert_int_equal(stat(path, &st), 0);
	dev = major(st.st_dev) << 20 | minor(st.st_dev);
	key = wire_unwind_file_key(dev, st.st_ino, (uint64_t)st.st_mtim.tv_sec,
				   (uint32_t)st.st_mtim.tv_nsec);
	if (map) {
		unwind_store_met_file(s, getpid(), path, dev, st.st_ino);
		assert_null(unwind_store_flush(s));
	}
	for (uint32_t k = 0; k < WIRE_UNWIND_PROBES; k++)
		if (t->files[(key + k) & (WIRE_UNWIND_FILES - 1)].key == key)
			return t->files[(key + k) & (WIRE_UNWIND_FILES - 1)].npages;
	return false;
}

/* Files that come and go: the tables of files on no list are dropped, and their room is used again.
 * Lists keep their tables. */
static void test_churn(void **state)
{
	enum { COPIES = 300 };
	static const struct unwind_store_ops ops = { put_chunk, put_process, del_process,
						     drop_chunk };
	char folder[] = "/tmp/test_unwind_churn.XXXXXX";
	cleanup_free char *bytes = NULL;
	struct memory m = { 0 };
	struct unwind_store *s = unwind_store_new(&ops, &m);
	uint64_t own = (uintptr_t)test_space + 4, words, now = 1ull << 40;
	struct unwind_store_limits limits = { .idle_words = 1 << 30, .idle_files = 20 };
	uint32_t rule, met = 0, most;
	Dl_info library;
	size_t n;

	setenv("XDG_CACHE_HOME", "/dev/null", 1);
	assert_non_null(mkdtemp(folder));
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests"), &library));
	assert_null(io_read_file(library.dli_fname, &bytes, &n));
	for (int i = 0; i < COPIES; i++) {
		cleanup_free char *path = xasprintf("%s/lib%d.so", folder, i);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

		assert_true(write(fd, bytes, n) == (ssize_t)n);
		close(fd);
	}
	assert_null(unwind_store_add(s, getpid()));
	assert_null(unwind_store_enable_files(s));
	rule = chunk_rule(&m, own);
	assert_int_not_equal(rule, 0);
	for (int i = 0; i < 40; i++)
		met += meet_copy(&m, s, folder, i, true);
	assert_int_equal(met, 40);
	assert_null(unwind_store_tidy(s, &limits, now));
	/* The files that were met last are still there. */
	assert_true(meet_copy(&m, s, folder, 39, false));
	assert_false(meet_copy(&m, s, folder, 0, false));
	words = unwind_store_words(s);
	for (int i = 40; i < COPIES; i++) {
		assert_true(meet_copy(&m, s, folder, i, true));
		now += 2000000000;
		assert_null(unwind_store_tidy(s, &limits, now));
	}
	assert_true(unwind_store_words(s) <= words + WIRE_UNWIND_CHUNK_WORDS);
	/* The chunks of a burst of files are given back when the files are gone. */
	most = m.chunks.n;
	for (int i = 0; i < COPIES; i++)
		(void)meet_copy(&m, s, folder, i, true);
	assert_true(m.chunks.n > most + 1);
	for (int i = 0; i < 3; i++) {
		now += 2000000000;
		assert_null(unwind_store_tidy(s, &limits, now));
	}
	assert_true(m.chunks.n <= most + 1);
	assert_int_equal(chunk_rule(&m, own), rule);
	/* A dropped file is added again. */
	assert_false(meet_copy(&m, s, folder, 0, false));
	assert_true(meet_copy(&m, s, folder, 0, true));
	/* Words count, too; this process's list is as it was. */
	limits = (struct unwind_store_limits){ .idle_words = 1, .idle_files = 1 << 20 };
	assert_null(unwind_store_tidy(s, &limits, now));
	assert_false(meet_copy(&m, s, folder, 0, false));
	assert_int_equal(chunk_rule(&m, own), rule);
	assert_null(unwind_store_add(s, getpid()));
	assert_int_equal(chunk_rule(&m, own), rule);
	assert_false(unwind_store_full(s));
	unwind_store_free(s);
	for (uint32_t i = 0; i < m.chunks.n; i++)
		free(m.chunks.v[i]);
	vec_fini(&m.chunks);
	for (int i = 0; i < COPIES; i++) {
		cleanup_free char *path = xasprintf("%s/lib%d.so", folder, i);

		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_space),
		cmocka_unit_test(test_churn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
