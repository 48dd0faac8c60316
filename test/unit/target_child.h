/* Child processes that tests stop, change and resume. */
#ifndef DESCRY_TEST_TARGET_CHILD_H
#define DESCRY_TEST_TARGET_CHILD_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program/target/target.h"
#include "unit.h"

static inline pid_t child_of(void (*run)(void *), void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(arg);
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static inline void sleeps(void *arg)
{
	for (;;)
		pause();
}

static inline void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static inline void ok(struct err *e)
{
	if (e)
		print_error("%s\n", e->text);
	assert_null(e);
}

static inline struct control *stopped(pid_t pid)
{
	struct control *c;

	ok(control_open(pid, &c));
	ok(control_stop(c, 5000));
	return c;
}

static inline int64_t call(struct control *c, long nr, uint64_t a, uint64_t b, uint64_t d,
			   uint64_t f)
{
	int64_t got = -1;

	ok(control_syscall(c, nr, (uint64_t[6]){ a, b, d, f, (uint64_t)-1, 0 }, &got));
	return got;
}

#endif
