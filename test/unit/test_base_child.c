/* Programs that descry starts: their descriptors, limits, signals, sessions, users and
 * environment. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/limits.h"
#include "base/mem.h"

static int passed_on; /* a descriptor with which this program was started, as it were */

/* Returns what a shell command writes. */
static char *output_of(struct child c, const char *command)
{
	char *const argv[] = { "sh", "-c", (char *)command, NULL };
	char *text = xcalloc(1, 65536);
	size_t n = 0;
	ssize_t got;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	c.argv = argv;
	c.out = fds[1];
	pid = child_start(&c);
	assert_true(pid > 0);
	close(fds[1]);
	while ((got = read(fds[0], text + n, 65535 - n)) > 0)
		n += (size_t)got;
	close(fds[0]);
	assert_int_equal(child_wait(pid), 0);
	return text;
}

static bool has_file(const char *list, int fd)
{
	cleanup_free char *word = xasprintf(" %d ", fd);

	return strstr(list, word);
}

/* Opens a file under a number that no shell uses for its own ones. */
static int open_high(int how)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), high = fcntl(fd, how, 50);

	assert_true(fd >= 0 && high >= 0);
	close(fd);
	return high;
}

static void files(void **state)
{
	const int forgotten = open_high(F_DUPFD), kept = open_high(F_DUPFD_CLOEXEC),
		  other = open_high(F_DUPFD_CLOEXEC);
	cleanup_free char *list = output_of((struct child){ .keep = &kept, .nkeep = 1 },
					    "echo '' $(ls /proc/$$/fd) ''");

	assert_true(has_file(list, 0) && has_file(list, 1) && has_file(list, 2));
	assert_true(has_file(list, passed_on));
	assert_true(has_file(list, kept));
	assert_false(has_file(list, other));
	assert_false(has_file(list, forgotten));
	assert_true(fcntl(kept, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(forgotten, F_GETFD), 0);
	free(list);
	list = output_of((struct child){ .in = CHILD_NULL, .err = CHILD_NULL },
			 "readlink /proc/$$/fd/0 /proc/$$/fd/2");
	assert_string_equal(list, "/dev/null\n/dev/null\n");
	close(forgotten);
	close(kept);
	close(other);
}

/* A child that goes on as descry has no file but those that it needs. */
static void files_of_a_fork(void **state)
{
	const int kept = open("/dev/null", O_RDONLY | O_CLOEXEC),
		  other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		child_close_files(&kept, 1);
		_exit(fcntl(kept, F_GETFD) < 0 || fcntl(other, F_GETFD) >= 0 ||
		      fcntl(passed_on, F_GETFD) >= 0 || fcntl(2, F_GETFD) < 0);
	}
	assert_int_equal(child_wait(pid), 0);
	close(kept);
	close(other);
}

static void limits(void **state)
{
	struct rlimit given = { 64, 128 }, now;
	cleanup_free char *text = NULL;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &given), 0);
	limits_raise_files();
	text = output_of((struct child){ 0 }, "ulimit -n");
	assert_string_equal(text, "64\n");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(now.rlim_cur, 128);
	free(text);
	text = output_of((struct child){ .memory = 1 << 30, .cpu_seconds = 7 },
			 "ulimit -t; ulimit -d");
	assert_string_equal(text, "7\n1048576\n");
}

static void caught(int sig)
{
}

static void signals(void **state)
{
	static const char status[] = "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status";
	const struct sigaction sa = { .sa_handler = caught };
	cleanup_free char *plain = output_of((struct child){ 0 }, status), *text = NULL;
	sigset_t none, now;

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	text = output_of((struct child){ 0 }, status);
	assert_string_equal(text, plain);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, NULL, &now);
	for (int sig = 1; sig < 32; sig++)
		assert_int_equal(sigismember(&now, sig), sigismember(&none, sig));
	signal(SIGUSR1, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

static void sessions(void **state)
{
	static const char numbers[] = "set -- $(cat /proc/$$/stat); echo $1 $5 $6";
	int pid, group, session;

	for (enum child_session s = CHILD_SHARES; s <= CHILD_SESSION; s++) {
		cleanup_free char *text = output_of((struct child){ .session = s }, numbers);

		assert_int_equal(sscanf(text, "%d %d %d", &pid, &group, &session), 3);
		assert_int_equal(group, s == CHILD_SHARES ? getpgrp() : pid);
		assert_int_equal(session, s == CHILD_SESSION ? pid : getsid(0));
	}
}

static void failures(void **state)
{
	char *const argv[] = { "no-such-program-of-descry", NULL };

	assert_int_equal(child_start(&(struct child){ .argv = argv }), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(child_start(&(struct child){ .file = "/", .argv = argv }), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(
		child_start(&(struct child){ .file = "/bin/true", .argv = argv, .out = 999 }), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	assert_int_equal(errno, ECHILD);
}

/* It ends with the process that started it. */
static void ends(void **state)
{
	char *const argv[] = { "sleep", "1000", NULL };
	int fds[2], start[2];
	char c;

	assert_int_equal(pipe2(fds, O_CLOEXEC) | pipe2(start, O_CLOEXEC), 0);
	const pid_t pid = fork();

	if (!pid) {
		const struct child sleeper = {
			.argv = argv, .keep = &fds[1], .nkeep = 1, .at_end = SIGKILL
		};

		if (child_start(&sleeper) < 0 || write(start[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(start[0], &c, 1), 1);
	close(fds[1]);
	kill(pid, SIGKILL);
	child_wait(pid);
	assert_int_equal(read(fds[0], &c, 1), 0); /* the last that had the other end has ended */
	close(fds[0]);
	close(start[0]);
	close(start[1]);
}

static void environments(void **state)
{
	char *const base[] = { "A=1", "AB=2", "C=", "NOT", NULL };
	static const char *const set[] = { "A=3", "C", "D=4", "E" };
	cleanup_free char **env = child_env(base, set, ARRAY_SIZE(set));

	assert_string_equal(env[0], "AB=2");
	assert_string_equal(env[1], "NOT");
	assert_string_equal(env[2], "A=3");
	assert_string_equal(env[3], "D=4");
	assert_null(env[4]);
	assert_string_equal(child_env_get(env, "A"), "3");
	assert_null(child_env_get(env, "C"));
	assert_null(child_env_get(env, "NOT"));
}

static void users(void **state)
{
	struct child_user *u;
	cleanup_free char *text = NULL;

	assert_null(child_user_new("no_such_user"));
	if (geteuid())
		skip();
	setenv("SECRET", "root's", 1);
	setenv("LC_DESCRY", "x", 1);
	setenv("LD_PRELOAD_", "x", 1);
	u = child_user_new("nobody");
	if (!u)
		skip();
	text = output_of((struct child){ .user = u },
			 "id -u; id -G; env | sort; cut -d' ' -f1,6 /proc/self/stat; echo $$");
	assert_non_null(strstr(text, "65534\n65534\n"));
	assert_non_null(strstr(text, "\nUSER=nobody\n"));
	assert_non_null(strstr(text, "\nLOGNAME=nobody\n"));
	assert_non_null(strstr(text, "\nHOME=/"));
	assert_non_null(strstr(text, "\nLC_DESCRY=x\n"));
	assert_non_null(strstr(text, "\nPATH=/usr/local/bin:/usr/bin:/bin\n"));
	assert_null(strstr(text, "SECRET"));
	assert_null(strstr(text, "LD_PRELOAD_"));
	unsetenv("SECRET");
	unsetenv("LC_DESCRY");
	unsetenv("LD_PRELOAD_");
	child_user_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),    cmocka_unit_test(files_of_a_fork),
		cmocka_unit_test(limits),   cmocka_unit_test(signals),
		cmocka_unit_test(sessions), cmocka_unit_test(failures),
		cmocka_unit_test(ends),     cmocka_unit_test(environments),
		cmocka_unit_test(users),
	};

	passed_on = open("/dev/null", O_RDONLY);
	child_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
