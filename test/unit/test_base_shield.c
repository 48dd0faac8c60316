#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/shield.h"

static void test_result(void **state)
{
	int fd = (int)shield_syscall(SYS_openat, AT_FDCWD, (intptr_t) "/dev/null", O_RDONLY, 0, 0);

	assert_true(fd >= 0); /* the child's descriptors are this process's */
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	shield_close(&fd, 1);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	errno = 0;
	assert_int_equal(shield_syscall(SYS_close, fd, 0, 0, 0, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1); /* no child is left */
	assert_int_equal(errno, ECHILD);
}

static bool has_child(pid_t pid)
{
	char path[64];
	FILE *f;
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "r");
	assert_non_null(f);
	if (fscanf(f, "%d", &child) != 1)
		child = 0;
	fclose(f);
	return child;
}

/* A process is killed while a shielded tee(2) waits. The call still copies the byte that comes
 * later, and then the pipe's end is closed. */
static void test_killed(void **state)
{
	int in[2], out[2], ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(in) | pipe(out) | pipe(ready), 0);
	pid = fork();
	if (!pid) {
		close(in[1]);
		close(out[0]);
		if (write(ready[1], "r", 1) == 1)
			shield_syscall(SYS_tee, in[0], out[1], 1, 0, 0);
		_exit(1);
	}
	assert_true(pid > 0);
	close(in[0]);
	close(out[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	while (!has_child(pid))
		usleep(1000);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(write(in[1], "x", 1), 1);
	assert_int_equal(read(out[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(read(out[0], &byte, 1), 0);
	close(in[1]);
	close(out[0]);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
