/* Memory files in the form that traced processes get (src/load/inproc/memory/inproc_files.h):
 * no process can write to a sealed file in any way, not even the holder of its descriptor. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load/inproc/memory/inproc_files.h"

enum { SIZE = 1 << 16, SHARED = 3 << 12, NOBODY = 65534 };

static struct inproc_files f;
static uint8_t *code, *facts; /* the tracer's mappings */

static int make(void **state)
{
	assert_null(files_create(&f, SIZE, SIZE, 1 << 20));
	code = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f.code.fd, 0);
	facts = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f.facts.fd, 0);
	assert_true(code != MAP_FAILED && facts != MAP_FAILED);
	assert_null(files_seal(&f, SHARED));
	return 0;
}

static int drop(void **state)
{
	munmap(code, SIZE);
	munmap(facts, SIZE);
	files_close(&f);
	assert_int_equal(f.shared.fd, -1);
	return 0;
}

/* The way that let it write, by number; 0: none. */
static int ways_in(int fd)
{
	const int flags[] = { O_RDWR, O_WRONLY, O_RDWR | O_TRUNC };
	char path[96];
	void *p;
	int again;

	if (pwrite(fd, "x", 1, 0) >= 0)
		return 1;
	if (mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		return 2;
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return 3;
	if (!mprotect(p, SIZE, PROT_READ | PROT_WRITE))
		return 4;
	if (!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) ||
	    !fallocate(fd, 0, 0, 2 * SIZE) || !ftruncate(fd, 0))
		return 5;
	if (fcntl(fd, F_ADD_SEALS, 0) == 0 || fcntl(fd, F_SETFL, O_RDWR) > 0)
		return 6;
	again = open("/proc/self/mem", O_RDWR);
	if (again >= 0 && pwrite(again, "x", 1, (off_t)(uintptr_t)p) > 0)
		return 7;
	for (int i = 0; i < 6; i++) {
		if (i < 3)
			snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		else
			snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx",
				 (unsigned long)p, (unsigned long)p + SIZE);
		again = open(path, flags[i % 3]);
		if (again >= 0 &&
		    (pwrite(again, "x", 1, 0) > 0 ||
		     mmap(NULL, SIZE, PROT_WRITE, MAP_SHARED, again, 0) != MAP_FAILED))
			return 10 + i;
	}
	return 0;
}

static int try_as(bool stranger, int fd)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (stranger && !getuid() && (setgid(NOBODY) || setuid(NOBODY)))
			_exit(99);
		_exit(ways_in(fd));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_sealed(void **state)
{
	if (f.unsealed)
		skip(); /* before Linux 5.1 */
	memset(code, 'c', SIZE);
	memset(facts, 'f', SIZE);
	/* seals hold against the tracer's own user, too */
	assert_int_equal(try_as(true, f.code.fd), 0);
	assert_int_equal(try_as(true, f.facts.fd), 0);
	assert_int_equal(try_as(false, f.code.fd), 0);
	assert_int_equal(try_as(false, f.facts.fd), 0);
	for (int i = 0; i < SIZE; i++)
		assert_true(code[i] == 'c' && facts[i] == 'f');
}

/* Later writes of the tracer are visible. */
static void test_tracer_writes(void **state)
{
	const uint8_t *view = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, f.facts.fd, 0);

	assert_true(view != MAP_FAILED);
	facts[SIZE - 1] = 77;
	assert_int_equal(view[SIZE - 1], 77);
	munmap((void *)view, SIZE);
}

/* All processes write to shared memory, but its size is fixed, and no process can open it. */
static void test_shared(void **state)
{
	struct stat st;
	char *p = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, f.shared.fd, 0);

	assert_true(p != MAP_FAILED);
	p[SHARED - 1] = 'x';
	assert_true(ftruncate(f.shared.fd, 0) && errno == EPERM);
	assert_true(ftruncate(f.shared.fd, 2 * SHARED) && errno == EPERM);
	assert_int_equal(p[SHARED - 1], 'x');
	assert_int_equal(fstat(f.shared.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0);
	assert_int_equal(st.st_size, SHARED);
	assert_int_equal(st.st_ino, f.shared.inode);
	munmap(p, SHARED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_tracer_writes),
		cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
