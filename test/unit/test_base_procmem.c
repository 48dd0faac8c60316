/* Reads and writes of a process that holds pages back by userfaultfd(2). */
#define _GNU_SOURCE
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/procmem.h"

enum { PAGE = 4096, PAGES = 3 };

/* Another process with the same memory: pages [0] written, [1] never touched, [2] read-only. */
static uint8_t *pages;
/* The work of the child process for each byte that it reads; it writes the byte back. */
enum { HOLD = 'h', SERVE = 's' };

struct other {
	pid_t pid;
	int tell, told;
};

static int open_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && !ioctl(fd, UFFDIO_API, &api) ? fd : -1;
}

/* Holds back the first page, which has been there, and serves it. */
static void be_other(int in, int out)
{
	struct uffdio_register r = { { (uintptr_t)pages, PAGE }, UFFDIO_REGISTER_MODE_MISSING, 0 };
	struct uffdio_zeropage zero = { { (uintptr_t)pages, PAGE }, 0, 0 };
	const int fd = open_userfaultfd();
	char what;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd < 0 || ioctl(fd, UFFDIO_REGISTER, &r))
		_exit(1);
	while (read(in, &what, 1) == 1) {
		if (what == HOLD ? madvise(pages, PAGE, MADV_DONTNEED)
				 : ioctl(fd, UFFDIO_ZEROPAGE, &zero))
			_exit(1);
		if (write(out, &what, 1) != 1)
			break;
	}
	_exit(0);
}

static void tell(const struct other *o, char what)
{
	char back = 0;

	assert_int_equal(write(o->tell, &what, 1), 1);
	assert_int_equal(read(o->told, &back, 1), 1);
	assert_int_equal(back, what);
}

static struct other begin(void)
{
	int there[2], back[2];
	struct other o;

	assert_int_equal(pipe2(there, O_CLOEXEC), 0);
	assert_int_equal(pipe2(back, O_CLOEXEC), 0);
	memset(pages, 7, PAGE);
	o = (struct other){ fork(), there[1], back[0] };
	if (!o.pid) {
		close(there[1]);
		be_other(there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	return o;
}

static void end(const struct other *o)
{
	int status;

	kill(o->pid, SIGKILL);
	assert_int_equal(waitpid(o->pid, &status, 0), o->pid);
	close(o->tell);
	close(o->told);
}

static int set_up(void **state)
{
	pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	return pages == MAP_FAILED || mprotect(pages + 2 * PAGE, PAGE, PROT_READ);
}

static int open_mem(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/mem", (int)pid);

	return open(path, O_RDWR | O_CLOEXEC);
}

/* Same results as the system calls, for pages that are present and for others. */
static void test_as_calls(void **state)
{
	const uint64_t at = (uintptr_t)pages;
	uint8_t buf[2 * PAGE] = { 1 };
	const pid_t pid = fork();
	cleanup_close int mem = -1;
	size_t n = 0;
	cleanup_free char *path = NULL, *text = NULL;

	memset(pages, 7, PAGE);
	if (!pid) {
		memset(pages, 9, PAGE);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	while (procmem_read(pid, buf, 1, at + PAGE - 1) == 1 && buf[0] != 9)
		usleep(1000);
	assert_int_equal(procmem_read(pid, buf, sizeof(buf), at), sizeof(buf));
	assert_true(buf[0] == 9 && buf[PAGE - 1] == 9 && !buf[PAGE] && !buf[2 * PAGE - 1]);
	mem = open_mem(pid);
	assert_true(mem >= 0);
	memset(buf, 5, sizeof(buf));
	assert_int_equal(procmem_pwrite(pid, mem, buf, PAGE + 8, at + PAGE), PAGE + 8);
	assert_int_equal(procmem_pread(pid, mem, buf + PAGE, PAGE, at + PAGE), PAGE);
	assert_true(buf[PAGE] == 5 && buf[2 * PAGE - 1] == 5);
	assert_int_equal(procmem_read(pid, buf, 16, at + 2 * PAGE), 16);
	assert_true(buf[7] == 5 && !buf[8]);
	assert_int_equal(procmem_read(pid, buf, 8, 8), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(procmem_pread(pid, mem, buf, 8, 8), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(procmem_pwrite(pid, mem, buf, 8, 8), -1);
	path = xasprintf("/proc/%d/cmdline", (int)pid);
	assert_null(procmem_file(pid, path, &text, &n));
	assert_true(n && strstr(text, "base_procmem"));

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(procmem_read(pid, buf, 8, at), -1);
	assert_int_equal(errno, ESRCH);
}

/* A page that is held back is not waited for long, and no second time; other processes are read
 * meanwhile, and this one again when the page has come. */
static void test_held_back(void **state)
{
	const uint64_t at = (uintptr_t)pages;
	uint8_t buf[8];
	struct other o, p;

	if (open_userfaultfd() < 0)
		skip();
	o = begin();
	p = begin();
	assert_int_equal(procmem_read(o.pid, buf, 8, at), 8);
	assert_int_equal(buf[0], 7);
	tell(&o, HOLD);
	usleep(20000); /* the last look is valid for 10 ms */
	assert_int_equal(procmem_read(o.pid, buf, 8, at), -1);
	assert_int_equal(errno, ETIMEDOUT);
	for (int i = 0; i < 2 * PROCMEM_LEFT; i++) { /* none of these has a thread */
		assert_int_equal(procmem_read(o.pid, buf, 8, at), -1);
		assert_int_equal(errno, ETIMEDOUT);
	}
	assert_int_equal(procmem_read(p.pid, buf, 8, at + PAGE), 8);
	assert_int_equal(procmem_read(p.pid, buf, 8, at), 8);
	assert_int_equal(buf[0], 7);
	tell(&o, SERVE);
	while (procmem_read(o.pid, buf, 8, at + PAGE) != 8) /* the thread comes back */
		usleep(1000);
	assert_int_equal(procmem_read(o.pid, buf, 8, at), 8);
	assert_int_equal(buf[0], 0);
	end(&o);
	end(&p);
}

/* One that is taken away just before it is read, directly, ends the reader. */
static void test_taken_away(void **state)
{
	const uint64_t at = (uintptr_t)pages;
	bool stuck = false;

	if (open_userfaultfd() < 0)
		skip();
	for (int i = 0; i < 100 && !stuck; i++) {
		struct other o = begin();
		int status = 0;
		pid_t reader = fork();

		if (!reader) {
			uint8_t buf[8];

			if (procmem_read(o.pid, buf, 8, at) != 8)
				_exit(3);
			tell(&o, HOLD);
			_exit(procmem_read(o.pid, buf, 8, at) == -1 && errno == ETIMEDOUT ? 2 : 3);
		}
		assert_int_equal(waitpid(reader, &status, 0), reader);
		assert_true(WIFEXITED(status));
		stuck = WEXITSTATUS(status) == 1;
		assert_true(stuck || WEXITSTATUS(status) == 2); /* it was slow, and saw it */
		end(&o);
	}
	assert_true(stuck);
}

/* In a program that embeds the library, such an access fails, and the program goes on. */
static void test_embedded(void **state)
{
	const uint64_t at = (uintptr_t)pages;
	int status = 0;
	struct other o;
	pid_t reader;

	if (open_userfaultfd() < 0)
		skip();
	o = begin();
	reader = fork();
	if (!reader) {
		cleanup_close int mem = open_mem(o.pid);
		uint8_t buf[8] = { 1 };

		procmem_embed();
		if (procmem_read(o.pid, buf, 8, at) != 8 || buf[0] != 7 ||
		    procmem_pread(o.pid, mem, buf, 8, at) != 8 ||
		    procmem_pwrite(o.pid, mem, buf, 8, at + PAGE) != 8)
			_exit(2);
		tell(&o, HOLD);
		/* no look at the page table comes first */
		if (procmem_read(o.pid, buf, 8, at) != -1 || errno != ETIMEDOUT)
			_exit(3);
		if (procmem_pread(o.pid, mem, buf, 8, at) != -1 || errno != ETIMEDOUT ||
		    procmem_pwrite(o.pid, mem, buf, 8, at) != -1 || errno != ETIMEDOUT)
			_exit(4);
		tell(&o, SERVE);
		while (procmem_read(o.pid, buf, 8, at) != 8)
			usleep(1000);
		_exit(buf[0] ? 5 : 0);
	}
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
	end(&o);
}

static int count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 2; /* "." and ".." */
}

/* Where no process can have memory, the kernel refuses a read at once: no other thread makes it. */
static void test_outside(void **state)
{
	static const uint64_t places[] = { 1ull << 56, 0x8000000000000000, -(uint64_t)PAGE, -8ull };
	const pid_t pid = fork();
	uint8_t buf[8];
	int status, bad = 0;

	if (!pid) { /* has no threads yet */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(pages, 7, PAGE);
		bad += procmem_read(getpid(), buf, 8, (uintptr_t)pages) != 8;
		for (size_t i = 0; i < ARRAY_SIZE(places); i++)
			bad += procmem_read(getpid(), buf, 8, places[i]) != -1 || errno != EFAULT;
		_exit(bad + 16 * (count_threads() != 2)); /* the other one watches this one */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A process can say that its arguments are terabytes: no more than a part of them is read. */
static void test_long_file(void **state)
{
	char path[64];
	char *text = NULL;
	size_t n = 0;
	int fd = memfd_create("long", 0);

	assert_int_equal(ftruncate(fd, 4l << 30), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_null(procmem_file(getpid(), path, &text, &n));
	assert_int_equal(n, PROCMEM_FILE_MAX);
	free(text);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_calls),   cmocka_unit_test(test_held_back),
		cmocka_unit_test(test_taken_away), cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_outside),    cmocka_unit_test(test_long_file),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
