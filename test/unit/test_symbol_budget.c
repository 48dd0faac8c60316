/* The limits for all processes and files together: descriptors, symbols, perf maps, source lines,
 * ended processes and their mappings. Dropped data is read again, or counted when it cannot be. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "elf_make.h"
#include "program/symbol/symbol_private.h"
#include "unit.h"

/* Numbers of no process: above the default limit of pids, or not in use yet. */
enum { GONE = 4100000, PAGE = 4096, LIBRARIES = 40 };
#define HERE 0x7f0000000000ull

static char folder[] = "/tmp/test_symbol_budget.XXXXXX";

static char *library_path(int i)
{
	return xasprintf("%s/lib%d.so", folder, i);
}

/* With one function, f<i>. */
static void make_library(int i)
{
	cleanup_free char *name = xasprintf("f%d", i), *path = library_path(i);
	struct elf_symbol f = { name, ELF_TEXT_ADDR, 0x20, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
	struct elf_make e = elf_make(&f, 1, 0);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_true(fd >= 0);
	assert_true(write(fd, e.image, e.size) == (ssize_t)e.size);
	close(fd);
	free(e.image);
}

static void remove_library(int i)
{
	cleanup_free char *path = library_path(i);

	unlink(path);
}

static void map_path(struct symbols *s, pid_t pid, const char *path, uint64_t start)
{
	struct mapping m = { .start = start, .end = start + PAGE, .exec = true, .time = 100 };
	struct stat st = { 0 };

	(void)stat(path, &st);
	m.dev_major = major(st.st_dev);
	m.dev_minor = minor(st.st_dev);
	m.inode = st.st_ino;
	m.path = path;
	process_map(s, pid, &m);
}

static void map_library(struct symbols *s, pid_t pid, int i)
{
	cleanup_free char *path = library_path(i);

	map_path(s, pid, path, HERE + (uint64_t)i * PAGE);
}

/* Is the i-th library's function named? */
static bool is_named(struct symbols *s, pid_t pid, int i)
{
	cleanup_free char *want = xasprintf("f%d", i);
	struct place p;

	(void)symbols_user(s, pid, 0, HERE + (uint64_t)i * PAGE + ELF_TEXT_OFF + 4, &p);
	return p.function && !strcmp(p.function, want);
}

static uint32_t descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static uint64_t limited(const struct symbols *s)
{
	struct symbols_losses l;

	symbols_losses(s, &l);
	assert_int_equal(l.changed, 0);
	return l.limited;
}

/* Makes a library that the process GONE maps and remembers. Every second one is deleted then. */
static void remember_library(struct symbols *s, int i)
{
	make_library(i);
	map_library(s, GONE, i);
	symbols_remember(s, GONE);
	if (i % 2)
		remove_library(i);
}

/* Existing files are opened again. Symbols of deleted files are read before the files are
 * closed. */
static void test_descriptors(void **state)
{
	struct symbols *s = symbols_new();
	uint32_t before = descriptors();

	symbols_limit(s, &(struct symbols_limits){ .open_files = 8 });
	for (int i = 0; i < LIBRARIES; i++) {
		remember_library(s, i);
		assert_true(descriptors() <= before + 8);
	}
	for (int again = 0; again < 2; again++)
		for (int i = 0; i < LIBRARIES; i++) {
			assert_true(is_named(s, GONE, i));
			assert_true(descriptors() <= before + 8);
		}
	assert_int_equal(limited(s), 0);
	symbols_free(s);
	assert_int_equal(descriptors(), before);
	for (int i = 0; i < LIBRARIES; i++)
		remove_library(i);
}

/* Files that no query uses are closed, and are there again for the next query. */
static void test_idle(void **state)
{
	struct symbols *s = symbols_new();
	uint32_t before = descriptors();
	uint64_t now = 1000000000;

	symbols_limit(s, &(struct symbols_limits){ .open_files = 100 });
	for (int i = 0; i < LIBRARIES; i++)
		remember_library(s, i);
	assert_true(descriptors() >= before + LIBRARIES);
	for (int k = 0; k < 4; k++, now += 1000000000)
		symbols_close_idle(s, now);
	assert_true(descriptors() >= before + LIBRARIES);
	for (int k = 0; k < 12 + LIBRARIES; k++, now += 1000000000)
		symbols_close_idle(s, now);
	assert_int_equal(descriptors(), before);
	for (int i = 0; i < LIBRARIES; i++)
		assert_true(is_named(s, GONE, i));
	symbols_free(s);
	for (int i = 0; i < LIBRARIES; i++)
		remove_library(i);
}

/* An object that was returned is not closed or freed. */
static void test_pinned(void **state)
{
	struct symbols *s = symbols_new();
	cleanup_free char *first = library_path(0);
	struct object *o;

	symbols_limit(s, &(struct symbols_limits){ .open_files = 2, .object_bytes = 1 });
	for (int i = 0; i < LIBRARIES; i++)
		make_library(i);
	o = symbols_object_at(s, first);
	assert_non_null(o);
	for (int i = 0; i < LIBRARIES; i++) {
		map_library(s, GONE, i);
		assert_true(is_named(s, GONE, i));
	}
	assert_true(symbols_object_at(s, first) == o);
	assert_true(object_is_open(o));
	assert_non_null(object_find_name(o, "f0"));
	symbols_free(s);
	for (int i = 0; i < LIBRARIES; i++)
		remove_library(i);
}

static void test_symbols(void **state)
{
	struct symbols *s = symbols_new();
	size_t one;

	for (int i = 0; i < LIBRARIES; i++)
		make_library(i);
	map_library(s, GONE, 0);
	assert_true(is_named(s, GONE, 0));
	one = s->object_bytes;
	assert_true(one > 0);
	symbols_limit(s, &(struct symbols_limits){ .object_bytes = 10 * one });
	for (int again = 0; again < 2; again++)
		for (int i = 0; i < LIBRARIES; i++) {
			map_library(s, GONE, i);
			assert_true(is_named(s, GONE, i));
			assert_true(s->object_bytes <= 11 * one);
			assert_true(s->known.n <= 11);
		}
	assert_int_equal(limited(s), 0);
	/* The last objects stay. Dropped objects cannot be read again. */
	for (int i = 0; i < LIBRARIES; i++)
		remove_library(i);
	assert_true(is_named(s, GONE, LIBRARIES - 1));
	assert_int_equal(limited(s), 0);
	assert_false(is_named(s, GONE, 0));
	assert_int_equal(limited(s), 1);
	assert_false(is_named(s, GONE, 0));
	assert_int_equal(limited(s), 2);
	symbols_free(s);
}

/* --- perf maps --- */

static char *perf_map(uint64_t at, size_t lines)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	for (size_t i = 0; i < lines; i++)
		fprintf(f, "%llx 10 made_%zu\n", (unsigned long long)at + i * 16, i);
	fclose(f);
	return text;
}

static void map_memory(struct symbols *s, pid_t pid)
{
	struct mapping m = {
		.start = HERE, .end = HERE + 16 * PAGE, .exec = true, .time = 100, .path = ""
	};

	process_map(s, pid, &m);
}

/* Names that were given out stay until symbols_tidy(), so a process gets a quarter of the budget
 * for them. */
static void test_perf_map_names(void **state)
{
	enum { LINES = 100, NAME = sizeof("made_0") - 1 };
	struct symbols *s = symbols_new();
	cleanup_free char *text = perf_map(HERE, LINES);
	struct process *p;
	struct place place;
	uint32_t named = 0;

	symbols_limit(s, &(struct symbols_limits){ .jit_names = 4 * 5 * NAME });
	for (int i = 0; i < 3; i++) {
		map_memory(s, GONE + i);
		p = process_of(s, GONE + i, NULL);
		jit_parse(s, p, xstrdup(text), strlen(text));
	}
	for (uint64_t i = 0; i < 10; i++)
		named += symbols_user(s, GONE, 0, HERE + 16 * i + 5, &place);
	assert_int_equal(named, 5);
	assert_int_equal(limited(s), 5);
	/* names that are known need no room */
	assert_true(symbols_user(s, GONE + 1, 0, HERE + 5, &place));
	assert_string_equal(place.function, "made_0");
	/* other processes have their own share */
	assert_true(symbols_user(s, GONE + 1, 0, HERE + 16 * 6 + 5, &place));
	assert_string_equal(place.function, "made_6");
	assert_int_equal(limited(s), 5);
	/* A small table stays. */
	symbols_tidy(s);
	assert_false(symbols_user(s, GONE, 0, HERE + 16 * 8 + 5, &place));
	symbols_limit(s, &(struct symbols_limits){ .names = 1, .jit_names = 4 * 5 * NAME });
	symbols_tidy(s);
	assert_int_equal(s->names.n, 1);
	for (uint64_t i = named = 0; i < 5; i++)
		named += symbols_user(s, GONE, 0, HERE + 16 * (i + 5) + 5, &place);
	assert_int_equal(named, 5);
	assert_string_equal(place.function, "made_9");
	symbols_free(s);
}

/* Names of a process that lives long take no more memory than the budget, and are given out again
 * after it was used up. */
static void test_names_tidied(void **state)
{
	enum { LINES = 1000, LIMIT = 20000 };
	struct symbols *s = symbols_new();
	cleanup_free char *text = perf_map(HERE, LINES);
	struct process *p;
	struct place place;
	size_t most = 0;

	symbols_limit(s, &(struct symbols_limits){ .names = LIMIT });
	map_memory(s, GONE);
	p = process_of(s, GONE, NULL);
	jit_parse(s, p, xstrdup(text), strlen(text));
	for (uint64_t i = 0; i < 4 * LINES; i++) {
		uint64_t line = i % LINES;
		cleanup_free char *name = xasprintf("made_%d", (int)line);

		assert_true(symbols_user(s, GONE, 0, HERE + 16 * line + 5, &place));
		assert_string_equal(place.function, name);
		most = most < s->names.bytes ? s->names.bytes : most;
		symbols_tidy(s);
	}
	assert_true(most > LIMIT && most < LIMIT + 1000);
	assert_int_equal(limited(s), 0);
	symbols_free(s);
}

static void test_perf_maps(void **state)
{
	enum { LINES = 1000, PROCESSES = 20 };
	struct symbols *s = symbols_new();
	cleanup_free char *path = xasprintf("/tmp/perf-%d.map", (int)getpid());
	cleanup_free char *text = perf_map(HERE, LINES);
	struct place p;
	size_t one;
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	map_memory(s, getpid());
	assert_true(symbols_user(s, getpid(), 0, HERE + 5, &p));
	assert_string_equal(p.function, "made_0");
	one = s->jit_bytes;
	assert_true(one > strlen(text));
	symbols_limit(s, &(struct symbols_limits){ .jit_bytes = 4 * one });
	for (int i = 0; i < PROCESSES; i++) {
		struct process *q;

		map_memory(s, GONE + i);
		q = process_of(s, GONE + i, NULL);
		q->jit_used_ns = now_ns();
		jit_make_room(s, q, one);
		jit_parse(s, q, xstrdup(text), strlen(text));
		assert_true(s->jit_bytes <= 4 * one);
	}
	assert_int_equal(limited(s), 0);
	assert_true(symbols_user(s, GONE + PROCESSES - 1, 0, HERE + 21, &p));
	assert_string_equal(p.function, "made_1");
	/* An ended process has no file to read again. */
	assert_false(symbols_user(s, GONE, 0, HERE + 5, &p));
	assert_int_equal(limited(s), 1);
	/* This process has one. */
	process_of(s, getpid(), NULL)->jit_next_ns = 0;
	assert_true(symbols_user(s, getpid(), 0, HERE + 5, &p));
	assert_string_equal(p.function, "made_0");
	assert_int_equal(limited(s), 1);
	assert_true(s->jit_bytes <= 4 * one);
	unlink(path);
	symbols_free(s);
}

/* --- source lines --- */

__attribute__((noinline)) int budget_test_function(int x)
{
	return x + getpid();
}

static void test_sources(void **state)
{
	enum { COPIES = 6 };
	struct symbols *s = symbols_new();
	cleanup_free char *bytes = NULL;
	const struct source_place *places;
	uint32_t before = descriptors();
	uint64_t addr = 0;
	size_t n;

	assert_null(io_read_file("/proc/self/exe", &bytes, &n));
	symbols_limit(s, &(struct symbols_limits){ .sources = 2 });
	for (int i = 0; i < COPIES; i++) {
		cleanup_free char *path = xasprintf("%s/copy%d", folder, i);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
		struct object *o;

		assert_true(write(fd, bytes, n) == (ssize_t)n);
		close(fd);
		o = symbols_object_at(s, path);
		if (!addr)
			addr = object_find_name(o, "budget_test_function")->addr + 4;
		if (!object_source(s, o, addr, &places))
			skip();
		assert_string_equal(places->file, "test_symbol_budget.c");
		assert_true(s->sources.n <= 2);
		/* those given out, and libdw's */
		assert_true(descriptors() <= before + (uint32_t)i + 1 + 2 * 2);
	}
	symbols_free(s);
	for (int i = 0; i < COPIES; i++) {
		cleanup_free char *path = xasprintf("%s/copy%d", folder, i);

		unlink(path);
	}
}

/* --- processes --- */

/* Lets time pass. */
static void age(struct symbols *s)
{
	uint32_t pos = 0;
	uint64_t *val;

	while (hash_next(&s->processes, &pos, NULL, NULL, &val))
		((struct process *)(uintptr_t)*val)->used_ns -= 60000000000ull;
}

static void test_processes(void **state)
{
	enum { PROCESSES = 400, KEPT = 100 };
	struct symbols *s = symbols_new();

	make_library(0);
	symbols_limit(s, &(struct symbols_limits){ .processes = KEPT });
	for (int i = 0; i < PROCESSES; i++) {
		map_library(s, GONE + i, 0);
		/* Half of them are queried: these stay longer than all others. */
		if (i < KEPT / 2)
			assert_true(is_named(s, GONE + i, 0));
		age(s);
	}
	s->asked = NULL;
	s->told_of = 0;
	process_tidy(s);
	assert_true(s->processes.n <= KEPT);
	for (int i = 0; i < KEPT / 2; i++)
		assert_true(is_named(s, GONE + i, 0));
	assert_int_equal(limited(s), 0);
	assert_true(process_was_dropped(s, GONE + KEPT));
	assert_false(is_named(s, GONE + KEPT, 0));
	assert_int_equal(limited(s), 1);
	/* Another one with its number. */
	map_library(s, GONE + KEPT, 0);
	assert_false(process_was_dropped(s, GONE + KEPT));
	assert_true(is_named(s, GONE + KEPT, 0));
	assert_int_equal(limited(s), 1);
	/* A living process is kept. */
	process_of(s, getpid(), NULL);
	symbols_limit(s, &(struct symbols_limits){ .processes = 1 });
	s->asked = NULL;
	s->told_of = 0;
	process_tidy(s);
	assert_int_equal(s->processes.n, 1);
	assert_false(process_was_dropped(s, getpid()));
	symbols_free(s);
	remove_library(0);
}

/* An event keeps both its processes, whatever the limits. */
static void test_forks(void **state)
{
	enum { PROCESSES = 2000 };
	struct symbols *s = symbols_new();

	make_library(0);
	symbols_limit(s, &(struct symbols_limits){ .processes = 1, .mappings = 1 });
	map_library(s, GONE, 0);
	for (int i = 1; i < PROCESSES; i++) {
		process_forked(s, GONE + i - 1, GONE + i);
		assert_true(is_named(s, GONE + i, 0));
		process_exec(s, GONE + i, 200);
		map_library(s, GONE + i, 0);
		assert_true(s->processes.n <= 8);
	}
	symbols_free(s);
	remove_library(0);
}

/* Libraries with names of their own, one after the other at one address of a process that lives
 * on. */
static void test_paths(void **state)
{
	enum { PATHS = 40000 };
	struct symbols *s = symbols_new();

	for (int i = 0; i < PATHS; i++) {
		cleanup_free char *path = xasprintf("/nowhere/%d.so", i);

		map_path(s, getpid(), path, HERE);
		assert_true(s->paths.n < 10000);
	}
	symbols_free(s);
}

/* The mapping of an anonymous page, as a process can report them without end. */
static void map_page(struct symbols *s, pid_t pid, uint32_t i)
{
	struct mapping m = { .start = HERE + (uint64_t)i * 2 * PAGE, .exec = true, .path = "" };

	m.end = m.start + PAGE;
	m.time = now_ns();
	process_map(s, pid, &m);
}

static struct process *process_known(struct symbols *s, pid_t pid)
{
	uint64_t *slot = hash_get(&s->processes, &pid, sizeof(pid));

	return slot ? (struct process *)(uintptr_t)*slot : NULL;
}

static bool names_itself(struct symbols *s, pid_t pid)
{
	struct place p;

	return symbols_user(s, pid, 0, (uintptr_t)names_itself, &p) && p.module;
}

/* A process maps and unmaps pages without end. The kernel reports no munmap(). */
static void test_mapped_and_unmapped(void **state)
{
	enum { PAGES = 60000, SOME = 20000 };
	struct symbols *s = symbols_new();
	const pid_t pid = getpid();
	const struct process *p;

	for (uint32_t i = 0; i < PAGES; i++) {
		map_page(s, pid, i);
		assert_true(process_known(s, pid)->maps.n < SOME);
	}
	/* What it has was read, so it is followed on. */
	p = process_known(s, pid);
	assert_false(p->crowded || p->cut);
	assert_true(names_itself(s, pid));
	assert_int_equal(limited(s), 0);
	/* One that has ended cannot be read. Its addresses without names are counted. */
	for (uint32_t i = 0; i < PAGES; i++)
		map_page(s, GONE, i);
	p = process_known(s, GONE);
	assert_true(p->crowded && p->maps.n < SOME);
	assert_false(names_itself(s, GONE));
	assert_int_equal(limited(s), 1);
	process_forked(s, GONE, GONE + 1);
	assert_int_equal(process_known(s, GONE + 1)->maps.n, 0);
	assert_false(names_itself(s, GONE + 1));
	assert_int_equal(limited(s), 2);
	/* The program that it executes is followed again. */
	process_exec(s, GONE, now_ns());
	assert_false(p->crowded);
	symbols_free(s);
}

/* Children that live, each with a copy of the list. */
static void test_live_mappings(void **state)
{
	enum { CHILDREN = 40, PAGES = 3000, LIMIT = 30000 };
	struct symbols *s = symbols_new();
	pid_t children[CHILDREN];

	symbols_limit(s, &(struct symbols_limits){ .live_mappings = LIMIT });
	for (uint32_t i = 0; i < PAGES; i++)
		map_page(s, getpid(), i);
	for (int i = 0; i < CHILDREN; i++) {
		uint32_t pos = 0, n = 0;
		uint64_t *val;

		children[i] = fork();
		if (!children[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
		process_forked(s, getpid(), children[i]);
		while (hash_next(&s->processes, &pos, NULL, NULL, &val))
			n += ((struct process *)(uintptr_t)*val)->maps.n;
		assert_true(n < 2 * LIMIT);
	}
	/* The list of one that was dropped is read again. */
	for (int i = 0; i < CHILDREN; i++)
		assert_true(names_itself(s, children[i]));
	assert_int_equal(limited(s), 0);
	/* Not when that has taken too much time. */
	s->dropped_ns = now_ns() + 3600ull * 1000000000;
	for (int i = 0; i < CHILDREN; i++) {
		struct process *p = process_known(s, children[i]);

		p->dropped = p->cut = true;
		p->maps.n = 0;
		assert_false(names_itself(s, children[i]));
	}
	assert_int_equal(limited(s), CHILDREN);
	for (int i = 0; i < CHILDREN; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	symbols_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped_and_unmapped),
		cmocka_unit_test(test_live_mappings),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_perf_maps),
		cmocka_unit_test(test_perf_map_names),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_names_tidied),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_forks),
		cmocka_unit_test(test_paths),
	};
	int status;

	if (!mkdtemp(folder))
		return 1;
	status = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return status;
}
