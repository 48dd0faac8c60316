/* Mappings of processes over time: libraries that come and go at one address, files replaced,
 * fork(), exec(), late events. The processes are made up; the files are real. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "elf_make.h"
#include "program/symbol/symbol_private.h"
#include "unit.h"

enum { PID = 0x7ffffff0, CHILD = 0x7ffffff1, PAGE = 4096 };
#define HERE 0x7f0000000000ull /* where text is mapped */
#define THERE 0x7f0000100000ull

static char folder[] = "/tmp/test_symbol_history.XXXXXX";

/* A library with one function, at ELF_TEXT_OFF of the file. */
static char *library(const char *name, const char *function)
{
	struct elf_symbol f = { function, ELF_TEXT_ADDR, 0x20,
				ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
	struct elf_make e = elf_make(&f, 1, 0);
	char *path = xasprintf("%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_true(fd >= 0);
	assert_true(write(fd, e.image, e.size) == (ssize_t)e.size);
	close(fd);
	free(e.image);
	return path;
}

static struct mapping mapping_of(const char *path, uint64_t start)
{
	struct mapping m = { .start = start, .end = start + PAGE, .exec = true };
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	m.dev_major = major(st.st_dev);
	m.dev_minor = minor(st.st_dev);
	m.inode = st.st_ino;
	m.path = path;
	return m;
}

static void map(struct symbols *s, pid_t pid, const char *path, uint64_t start, uint64_t time)
{
	struct mapping m = mapping_of(path, start);

	m.time = time;
	process_map(s, pid, &m);
}

/* The function at a mapping's text at a time; "" none, though something is mapped; NULL nothing
 * is. */
static const char *name_at(struct symbols *s, pid_t pid, uint64_t start, uint64_t time)
{
	struct place p;
	bool known;

	known = symbols_user(s, pid, time, start + ELF_TEXT_OFF + 4, &p);
	if (known && p.function)
		assert_int_equal(p.offset, 4);
	return !known ? NULL : p.function ? p.function : "";
}

static void test_over_time(void **state)
{
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green"),
			  *blue = library("blue.so", "blue");
	struct symbols *s = symbols_new();

	map(s, PID, red, HERE, 100);
	assert_string_equal(name_at(s, PID, HERE, 0), "red");
	map(s, PID, green, HERE, 200);
	map(s, PID, red, THERE, 250);
	map(s, PID, blue, HERE, 300);
	assert_string_equal(name_at(s, PID, HERE, 150), "red");
	assert_string_equal(name_at(s, PID, HERE, 200), "green");
	assert_string_equal(name_at(s, PID, HERE, 299), "green");
	assert_string_equal(name_at(s, PID, HERE, 300), "blue");
	assert_string_equal(name_at(s, PID, HERE, 0), "blue");
	assert_string_equal(name_at(s, PID, THERE, 260), "red");
	assert_null(name_at(s, PID, THERE + PAGE, 260));
	/* Mapped again where it is: it has been there all the time. */
	map(s, PID, blue, HERE, 400);
	assert_string_equal(name_at(s, PID, HERE, 350), "blue");
	assert_string_equal(name_at(s, PID, HERE, 250), "green");
	symbols_free(s);
	unlink(red);
	unlink(green);
	unlink(blue);
}

/* A library over the second half of another one, and one over several. */
static void test_overlaps(void **state)
{
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();
	struct mapping m = mapping_of(red, HERE);

	m.end += PAGE;
	m.time = 100;
	process_map(s, PID, &m);
	map(s, PID, green, HERE + PAGE, 200);
	assert_string_equal(name_at(s, PID, HERE + PAGE, 250), "green");
	assert_string_equal(name_at(s, PID, HERE, 150), "red");
	for (uint32_t i = 2; i < 6; i++)
		map(s, PID, green, HERE + i * PAGE, 200 + i);
	m = mapping_of(red, HERE);
	m.end += 16 * PAGE;
	m.time = 300;
	process_map(s, PID, &m);
	assert_string_equal(name_at(s, PID, HERE, 350), "red");
	for (uint32_t i = 2; i < 6; i++) {
		assert_string_equal(name_at(s, PID, HERE + i * PAGE, 250), "green");
		assert_string_not_equal(name_at(s, PID, HERE + i * PAGE, 350), "green");
	}
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* Text from the middle of a file: the part in front of it is not known, and may be other files'
 * text. */
static void test_offset(void **state)
{
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();
	struct mapping m = mapping_of(green, THERE);
	struct place p;

	map(s, PID, red, HERE, 100);
	map(s, PID, red, THERE - PAGE, 100);
	m.offset = THERE - HERE + PAGE;
	m.time = 200;
	process_map(s, PID, &m);
	assert_string_equal(name_at(s, PID, HERE, 250), "red");
	assert_string_equal(name_at(s, PID, HERE, 0), "red");
	assert_string_equal(name_at(s, PID, THERE - PAGE, 0), "red");
	assert_string_equal(symbols_user_path(s, PID, 0, THERE), green);
	/* An address without a name is counted from where the file would begin. */
	m = mapping_of(green, HERE + 16 * PAGE);
	m.offset = 4 * PAGE;
	process_map(s, PID, &m);
	assert_true(symbols_user(s, PID, 0, HERE + 16 * PAGE + 8, &p));
	assert_null(p.function);
	assert_true(p.module_base == HERE + 12 * PAGE && p.offset == 4 * PAGE + 8);
	/* Where it begins stands for it in keys. */
	assert_true(symbols_user(s, PID, 0, HERE + 12 * PAGE, &p));
	assert_string_equal(p.module, "green.so");
	assert_false(symbols_user(s, PID, 0, HERE + 13 * PAGE, &p));
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* Of a file that another has replaced, only functions of an object opened before get names, and
 * never those of the other file. */
static void test_replaced(void **state)
{
	cleanup_free char *red = library("lib.so", "red"), *away = xasprintf("%s/away", folder),
			  *blue;
	struct symbols *s = symbols_new(), *late = symbols_new();

	map(s, PID, red, HERE, 100);
	map(late, PID, red, HERE, 100);
	assert_string_equal(name_at(s, PID, HERE, 150), "red");
	/* kept, so that its inode number is not used again */
	assert_int_equal(rename(red, away), 0);
	blue = library("lib.so", "blue");
	map(s, PID, blue, HERE, 200);
	assert_string_equal(name_at(s, PID, HERE, 150), "red");
	assert_string_equal(name_at(s, PID, HERE, 250), "blue");
	assert_string_equal(name_at(late, PID, HERE, 150), "");
	map(late, PID, blue, HERE, 200);
	assert_string_equal(name_at(late, PID, HERE, 250), "blue");
	assert_string_equal(name_at(late, PID, HERE, 150), "");
	symbols_free(s);
	symbols_free(late);
	unlink(away);
	unlink(blue);
}

static void test_fork_and_exec(void **state)
{
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();

	map(s, PID, red, HERE, 100);
	process_forked(s, PID, CHILD);
	assert_string_equal(name_at(s, CHILD, HERE, 150), "red");
	/* Later changes of one process do not affect the other. */
	map(s, PID, green, HERE, 200);
	assert_string_equal(name_at(s, CHILD, HERE, 250), "red");
	assert_string_equal(name_at(s, PID, HERE, 250), "green");
	process_exec(s, CHILD, 300);
	map(s, CHILD, green, THERE, 310);
	assert_string_equal(name_at(s, CHILD, HERE, 250), "red");
	assert_null(name_at(s, CHILD, HERE, 350));
	assert_string_equal(name_at(s, CHILD, THERE, 350), "green");
	/* Without a time, the last mapping counts. */
	assert_string_equal(name_at(s, CHILD, HERE, 0), "red");
	assert_string_equal(name_at(s, PID, HERE, 0), "green");
	/* The number is used again, by a process of another parent. */
	map(s, PID, red, THERE, 400);
	process_forked(s, PID, CHILD);
	assert_string_equal(name_at(s, CHILD, HERE, 450), "green");
	assert_string_equal(name_at(s, CHILD, THERE, 0), "red");
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* Memory without a file, with code that a perf map names. */
static struct process *made(struct symbols *s, pid_t pid)
{
	struct process *p = process_of(s, pid, NULL);
	struct mapping m = {
		.start = HERE, .end = HERE + PAGE, .exec = true, .time = 100, .path = ""
	};
	cleanup_free char *text = xasprintf("%llx 1000 made\n", HERE);

	process_map(s, pid, &m);
	jit_parse(s, p, xstrdup(text), strlen(text));
	return p;
}

/* The number is used again: nothing of the first process's is the second's. */
static void test_number_again(void **state)
{
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();
	struct process *p = made(s, CHILD);
	struct mapping m = {
		.start = HERE, .end = HERE + PAGE, .exec = true, .time = 100, .path = ""
	};
	struct place place;

	assert_true(symbols_user(s, CHILD, 0, HERE + 8, &place));
	assert_string_equal(place.function, "made");
	p->home.inode = 1;
	process_map(s, PID, &m);
	process_forked(s, PID, CHILD);
	assert_false(symbols_user(s, CHILD, 0, HERE + 8, &place));
	assert_int_equal(p->home.inode, 0);

	/* No event reports this fork. /proc has the mappings. */
	p = made(s, getpid());
	map(s, getpid(), red, THERE, 100);
	map(s, getpid(), green, THERE, 200);
	assert_string_equal(name_at(s, getpid(), THERE, 150), "red");
	p->start_time = 1;
	p->read_ns = 0;
	p->home.noted_ns = 0;
	symbols_remember(s, getpid());
	assert_int_not_equal(p->start_time, 1);
	assert_null(name_at(s, getpid(), THERE, 150));
	assert_null(name_at(s, getpid(), THERE, 0));
	assert_false(symbols_user(s, getpid(), 0, HERE + 8, &place));
	assert_int_equal(p->jit.n, 0);
	assert_int_equal(p->past.n, 0);
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* A file of the same inode number on another disk is another file. */
static void test_other_device(void **state)
{
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();
	struct mapping m = mapping_of(red, HERE);

	if (!m.dev_major)
		print_message("[  note  ] %s is on no disk: any device passes\n", folder);
	m.dev_minor++;
	m.time = 100;
	const char *want = m.dev_major ? "" : "red";

	process_map(s, PID, &m);
	map(s, PID, green, HERE, 200);
	assert_string_equal(name_at(s, PID, HERE, 250), "green");
	assert_string_equal(name_at(s, PID, HERE, 150), want);
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* Another CPU's ring was read first. */
static void test_late_news(void **state)
{
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();

	map(s, PID, green, HERE, 200);
	map(s, PID, red, HERE, 100);
	assert_string_equal(name_at(s, PID, HERE, 150), "red");
	assert_string_equal(name_at(s, PID, HERE, 250), "green");
	assert_string_equal(name_at(s, PID, HERE, 0), "green");
	/* An exec() reported later removes mappings made before it. Mappings made after it stay. */
	map(s, PID, red, THERE, 500);
	process_exec(s, PID, 400);
	assert_null(name_at(s, PID, HERE, 450));
	assert_string_equal(name_at(s, PID, THERE, 550), "red");
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* Endless changes: the list is bounded, and keeps the last mappings. */
static void test_many(void **state)
{
	enum { TIMES = 3000 };
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();
	const pid_t pid = PID;

	for (uint64_t i = 1; i <= TIMES; i++)
		map(s, PID, i & 1 ? red : green, HERE, i * 10);
	for (uint64_t i = TIMES - 100; i <= TIMES; i++)
		assert_string_equal(name_at(s, PID, HERE, i * 10 + 5), i & 1 ? "red" : "green");
	struct process *p =
		(struct process *)(uintptr_t)*hash_get(&s->processes, &pid, sizeof(pid));

	assert_int_equal(p->maps.n, 1);
	assert_true(p->past.n <= 256);
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* Maps a file in many pieces, with a page between two. step: how far their offsets are apart. */
static void map_pieces(struct symbols *s, const char *path, uint32_t n, uint64_t offset,
		       uint64_t step)
{
	for (uint32_t i = 0; i < n; i++) {
		struct mapping m = mapping_of(path, HERE + (8 + 2 * (uint64_t)i) * PAGE);

		m.offset = offset + i * step;
		m.time = 100;
		process_map(s, PID, &m);
	}
}

/* A process may have 65,000 mappings, and each address of its stacks is looked up in them. */
static void test_long_list(void **state)
{
	enum { PIECES = 4000, LOOKS = 2 * 64 * PIECES + 2 * PIECES };
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();
	struct place p;

	map(s, PID, red, HERE, 100);
	map_pieces(s, green, PIECES, 4 * PAGE, 2 * PAGE); /* it would begin at HERE + 4 PAGE */
	for (uint32_t i = 0; i < PIECES; i++) {
		const uint64_t piece = HERE + (8 + 2 * (uint64_t)i) * PAGE;

		assert_true(symbols_user(s, PID, 0, piece + 8, &p));
		assert_string_equal(p.module, "green.so");
		assert_true(p.module_base == HERE + 4 * PAGE);
		assert_false(symbols_user(s, PID, 0, piece + PAGE, &p)); /* nothing is there */
	}
	assert_true(symbols_user(s, PID, 0, HERE + 4 * PAGE + 8, &p));
	assert_string_equal(p.module, "green.so");
	assert_false(symbols_user(s, PID, 0, HERE + 5 * PAGE, &p));
	assert_in_range(s->looks, 1, LOOKS);
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* The tables of a long list follow its changes. */
static void test_long_list_changes(void **state)
{
	enum { PIECES = 1000, PARTS = 4, PART = PIECES / PARTS };
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();
	struct place p;

	map_pieces(s, green, PIECES, 0, 0); /* each begins the file */
	for (uint32_t parts = 1; parts <= PARTS; parts++) {
		for (uint32_t i = 0; i < PIECES; i++) {
			const uint32_t part = i / PART < parts ? i / PART : parts - 1;
			const uint64_t piece = HERE + (8 + 2 * (uint64_t)i) * PAGE;

			assert_true(symbols_user(s, PID, 0, piece + 8, &p));
			assert_string_equal(p.module, "green.so");
			assert_true(p.module_base == HERE + (8 + 2 * (uint64_t)part * PART) * PAGE);
			assert_int_equal(symbols_user(s, PID, 0, piece + PAGE, &p),
					 i % PART == PART - 1 && i / PART + 1 < parts);
		}
		/* in front of the first piece of the next part */
		map(s, PID, red, HERE + (7 + 2 * (uint64_t)parts * PART) * PAGE, 200);
	}
	symbols_free(s);
	unlink(red);
	unlink(green);
}

/* A live process. Its list is read once, and events report its later mappings. The text that it
 * maps is in a file that is then deleted, in place of another file. */
static void test_live(void **state)
{
	cleanup_free char *red = library("red.so", "red"), *green = library("green.so", "green");
	struct symbols *s = symbols_new();
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			open(red, O_RDONLY | O_CLOEXEC), 0);
	uint64_t first, second;
	const char *want;

	assert_true(at != MAP_FAILED);
	symbols_remember(s, getpid());
	first = now_ns();
	assert_string_equal(name_at(s, getpid(), (uintptr_t)at, first), "red");
	unlink(red);
	assert_true(mmap(at, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			 open(green, O_RDONLY | O_CLOEXEC), 0) == at);
	second = now_ns();
	map(s, getpid(), green, (uintptr_t)at, second);
	unlink(green);
	second++;
	assert_string_equal(name_at(s, getpid(), (uintptr_t)at, first), "red");
	/* only root may open a deleted file by /proc/PID/map_files (CAP_CHECKPOINT_RESTORE) */
	want = geteuid() ? "" : "green";
	assert_string_equal(name_at(s, getpid(), (uintptr_t)at, second), want);
	assert_string_equal(name_at(s, getpid(), (uintptr_t)at, 0), want);
	munmap(at, PAGE);
	symbols_free(s);
}

/* A file of an overlayfs: /proc/PID/maps and stat() may speak of different inodes. */
static void test_overlay(void **state)
{
	cleanup_free char *lower = xasprintf("%s/lower", folder),
			  *upper = xasprintf("%s/upper", folder),
			  *work = xasprintf("%s/work", folder),
			  *merged = xasprintf("%s/merged", folder),
			  *options = xasprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper,
					       work),
			  *path = xasprintf("%s/red.so", merged), *below = NULL,
			  *inside = xasprintf("%s/work", work);
	struct symbols *s = symbols_new();
	struct mappings maps;
	bool found = false;

	mkdir(lower, 0755);
	mkdir(upper, 0755);
	mkdir(work, 0755);
	mkdir(merged, 0755);
	below = library("lower/red.so", "red");
	if (mount("overlay", merged, "overlay", 0, options)) {
		print_message("[  note  ] no overlayfs can be mounted here: not tested\n");
	} else {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		assert_true(at != MAP_FAILED);
		close(fd);
		assert_string_equal(name_at(s, getpid(), (uintptr_t)at, 0), "red");
		assert_null(mappings_read(getpid(), &maps));
		for (uint32_t i = 0; i < maps.n; i++) {
			cleanup_free char *open_path = NULL;

			if (maps.v[i].start != (uintptr_t)at)
				continue;
			found = true;
			open_path = mapping_open_path(getpid(), &maps.v[i]);
			assert_non_null(open_path);
		}
		assert_true(found);
		mappings_free(&maps);
		munmap(at, PAGE);
	}
	symbols_free(s);
	umount2(merged, MNT_DETACH);
	unlink(below);
	rmdir(merged);
	rmdir(upper);
	rmdir(lower);
	rmdir(inside);
	rmdir(work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over_time),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_number_again),
		cmocka_unit_test(test_other_device),
		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_fork_and_exec),
		cmocka_unit_test(test_late_news),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_overlay),
		cmocka_unit_test(test_long_list),
		cmocka_unit_test(test_long_list_changes),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
