/* The owner of a process (src/load/inproc/memory/owner.h): children of this process, as they
 * change and end. */
#include "unit.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/procdir.h"
#include "load/inproc/memory/owner.h"

struct child {
	pid_t pid;
	uint64_t started;
	int ready, go;
};

/* Starts a child that runs until child_end(). limited: without new privileges. */
static struct child child_new(bool limited)
{
	struct child c = { 0 };
	int up[2], down[2];
	char byte;

	assert_int_equal(pipe(up) | pipe(down), 0);
	c.pid = fork();
	if (!c.pid) {
		close(up[0]);
		close(down[1]);
		if (limited && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			_exit(1);
		if (write(up[1], "", 1) == 1 && read(down[0], &byte, 1) == 0)
			_exit(0);
		_exit(1);
	}
	assert_true(c.pid > 0);
	close(up[1]);
	close(down[0]);
	assert_int_equal(read(up[0], &byte, 1), 1);
	close(up[0]);
	c.go = down[1];
	c.started = procdir_start(c.pid);
	assert_true(c.started);
	return c;
}

/* A zombie. */
static void child_end(struct child *c)
{
	siginfo_t info;

	close(c->go);
	assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT), 0);
}

static void child_reap(struct child *c)
{
	int status;

	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
}

/* An ended child stays this process's own, reaped or not. */
static void test_end(void **state)
{
	struct child c = child_new(false);

	assert_true(owner_is_us(c.pid));
	assert_false(owner_has_left(c.pid, c.started));
	child_end(&c);
	assert_false(owner_has_left(c.pid, c.started));
	child_reap(&c);
	assert_false(owner_has_left(c.pid, c.started));
}

static void test_limits(void **state)
{
	struct child c;

	if (owner_of(getpid()).limits.no_new_privs)
		skip(); /* there is nothing that a child could give up */
	c = child_new(true);
	assert_false(owner_is_us(c.pid));
	assert_true(owner_has_left(c.pid, c.started));
	/* another process, which had this number */
	assert_false(owner_has_left(c.pid, c.started - 1));
	/* the engine is chosen by users, not by limits */
	assert_false(owner_is_stranger(c.pid));
	child_end(&c);
	assert_true(owner_has_left(c.pid, c.started));
	child_reap(&c);
	assert_false(owner_has_left(c.pid, c.started));
}

/* A process with fewer rights may get the memory of one with more rights, but not the reverse. */
static void test_sharing(void **state)
{
	const struct owner own = owner_of(getpid());
	struct owner less = own, other = own;

	assert_true(own.known && !own.ended);
	assert_true(owner_may_share(&own, &own));
	less.limits.no_new_privs = 1;
	less.limits.seccomp = 2;
	less.limits.filters++;
	assert_true(owner_may_share(&own, &less));
	assert_false(owner_may_share(&less, &own));
	snprintf(other.limits.label, sizeof(other.limits.label), "another label");
	assert_false(owner_may_share(&own, &other));
	other = own;
	other.mounts++;
	assert_false(owner_may_share(&own, &other));
	other = own;
	other.pids++;
	assert_false(owner_may_share(&own, &other));
	other = own;
	other.caps ^= 1;
	assert_false(owner_may_share(&own, &other));
}

/* A process without a supplementary group, or with a smaller bounding set, is not like one with
 * it. */
static void gives_up(int what)
{
	const struct owner own = owner_of(getpid());
	struct owner its;
	int status;
	pid_t pid = fork();

	if (!pid) {
		gid_t groups[] = { 4, 6 };
		struct owner now;

		if (what ? prctl(PR_CAPBSET_DROP, 0, 0, 0, 0) : setgroups(2, groups))
			_exit(77);
		now = owner_of(getpid());
		_exit(owner_is_us(getppid()) || owner_may_share(&own, &now) ||
		      owner_may_share(&now, &own) || !owner_may_share(&now, &now));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	its = owner_of(getpid());
	assert_true(owner_may_share(&own, &its));
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* not root */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_groups(void **state)
{
	gives_up(0);
}

static void test_bounding_set(void **state)
{
	gives_up(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end),          cmocka_unit_test(test_limits),
		cmocka_unit_test(test_sharing),      cmocka_unit_test(test_groups),
		cmocka_unit_test(test_bounding_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
