#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/procdir.h"

static void test_numbers(void **state)
{
	static const char *const names[] = { "0",  "12", "2147483647", "x",
					     "7a", "-3", "self",       "2147483648" };
	char dir[] = "/tmp/descry-procdir-XXXXXX";
	long long sum = 0;
	uint32_t n = 0;

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dir, names[i]);
		cleanup_close int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
	}
	{
		cleanup_dir DIR *d = opendir(dir);

		for (int k; procdir_next(d, &k); n++)
			sum += k;
	}
	assert_int_equal(n, 3);
	assert_int_equal(sum, 2147483647ll + 12);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dir, names[i]);

		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void test_own_thread(void **state)
{
	cleanup_dir DIR *d = opendir("/proc/self/task");
	bool found = false;

	for (pid_t tid; procdir_next(d, &tid);)
		found |= tid == getpid();
	assert_true(found);
}

static void test_what_cannot_be_opened(void **state)
{
	cleanup_dir DIR *d = opendir("/nonexistent/descry");
	int n = 5;

	assert_false(procdir_next(d, &n));
	assert_int_equal(n, 5);
}

static void test_hides(void **state)
{
	const char *proc = "22 27 0:20 / /proc rw,nosuid shared:5 - proc proc rw",
		   *other = "23 27 0:21 / /jail/proc rw - proc proc rw,hidepid=2\n";
	const struct {
		const char *how;
		bool hides;
	} cases[] = {
		{ "", false },
		{ ",hidepid=0", false },
		{ ",hidepid=off", false },
		{ ",gid=7", false },
		{ ",hidepid=1", true },
		{ ",hidepid=2", true },
		{ ",gid=7,hidepid=invisible", true },
		{ ",hidepid=ptraceable,subset=pid", true },
	};

	assert_false(procdir_hides_in(""));
	assert_false(procdir_hides_in(other));
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		snprintf(text, sizeof(text), "%s%s%s\n", other, proc, cases[i].how);
		assert_int_equal(procdir_hides_in(text), cases[i].hides);
		/* another one over it */
		snprintf(text, sizeof(text), "%s,hidepid=2\n%s%s", proc, proc, cases[i].how);
		assert_int_equal(procdir_hides_in(text), cases[i].hides);
	}
}

static void test_ended_in(void **state)
{
	assert_false(procdir_ended_in(""));
	assert_false(procdir_ended_in("7 (x"));
	assert_false(procdir_ended_in("7 (x) "));
	assert_false(procdir_ended_in("7 (x) S 1 7 7 0 -1 4194304 99"));
	assert_false(procdir_ended_in("7 (Z) R 1 (x) S 1 7 7 0 -1 4194304 99"));
	assert_true(procdir_ended_in("7 (x) S 1 7 7 0 -1 4194308 99"));
	assert_true(procdir_ended_in("7 (a) S 1) Z 1 7 7 0 -1 4194304 99"));
	assert_true(procdir_ended_in("7 (x) X 1 7 7 0 -1 0 99"));
}

/* A process is killed, stays a zombie, and is gone. */
static void test_ended(void **state)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	assert_true(pid > 0);
	assert_false(procdir_ended(getpid()));
	assert_false(procdir_ended(pid));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(kill(pid, 0), 0);
	assert_true(procdir_ended(pid));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(procdir_ended(pid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ended),      cmocka_unit_test(test_ended_in),
		cmocka_unit_test(test_hides),      cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_own_thread), cmocka_unit_test(test_what_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
