/* Interpreters of processes that come and go: files are closed, and there is room for others. */
#include "unit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "program/runtime/languages.h"

static uint32_t descriptors(void)
{
	cleanup_dir DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	for (int fd; procdir_next(d, &fd);)
		n++;
	return n;
}

static pid_t begin(char *const argv[])
{
	pid_t pid = fork();

	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Returns false when the machine has no such interpreter. */
static bool find_in(struct languages *l, pid_t pid)
{
	struct wire_language w;
	uint32_t ms;

	/* the interpreter begins; it ends itself at the latest after a minute */
	while (!languages_find(l, pid, 0, &w, &ms)) {
		if (waitpid(pid, NULL, WNOHANG))
			return false;
		nap_ns(5000000);
		if (languages_left_out(l))
			return false;
	}
	return true;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_files(void **state)
{
	enum { N = 4 };
	char *const ruby[] = { "ruby", "-e", "sleep 60", NULL };
	struct languages *l = languages_new();
	const uint32_t before = descriptors();
	uint64_t now = now_ns();
	pid_t pids[N];
	uint32_t n = 0;

	while (n < N && find_in(l, pids[n] = begin(ruby)))
		n++;
	languages_tidy(l, now += 2000000000); /* they live */
	assert_true(descriptors() >= before + n);
	for (uint32_t i = 0; i < n; i++)
		end(pids[i]);
	languages_tidy(l, now += 2000000000);
	/* procmem has one of its own, of the process that was read last */
	assert_true(descriptors() <= before + 1);
	languages_free(l);
	if (n < N)
		skip();
}

static void test_others(void **state)
{
	enum { MOST = 4 };
	char *const python[] = { "python3", "-c", "import time; time.sleep(60)", NULL };
	struct languages *l = languages_new();
	uint64_t now = now_ns();
	bool any = true;

	languages_limit(l, 64 << 20, MOST);
	for (int i = 0; i < 3 * MOST && any; i++) {
		pid_t pid = begin(python);

		any = find_in(l, pid);
		if (!any && !i)
			break;
		assert_true(any);
		end(pid);
		languages_tidy(l, now += 2000000000);
	}
	assert_int_equal(languages_left_out(l), 0);
	languages_free(l);
	if (!any)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
