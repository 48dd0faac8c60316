/* The agent's blob in a process that is laid out as a traced one: forked children. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent_handlers.h"

/* --- forked children --- */

static uint8_t *text;

static void patch(uint32_t n, uint64_t off, const char *before, const char *after, uint32_t len)
{
	struct wire_undo *u = (struct wire_undo *)w.area->undo + n;

	u->site = (uintptr_t)text + off;
	u->pid = (uint32_t)getpid();
	memcpy(u->before, before, len);
	memcpy(u->after, after, len);
	memcpy(text + off, after, len);
	u->len = (uint8_t)len;
}
static bool is_text(uint64_t off, const char *bytes, size_t n)
{
	return !memcmp(text + off, bytes, n);
}
static void patched(void)
{
	text = pages(6);
	for (int i = 0; i < 6 * PAGE; i++)
		text[i] = 0x90;
	patch(0, 100, "12345", "abcde", 5);
	patch(1, PAGE - 2, "12345", "abcde", 5);
	patch(2, PAGE + 50, "1", "\xcc", 1);
	patch(3, 2 * PAGE - 3, "123456", "ABCDEF", 6);
	memcpy(text + 2 * PAGE - 3, "\xeb\xfe",
	       2); /* held; the other side of the boundary is patched */
	text[2 * PAGE - 1] = 'C';
	patch(4, 300, "12345", "abcde", 5);
	memcpy(text + 300, "other", 5); /* not descry's any more */
	patch(5, 4 * PAGE, "12345", "abcde", 5);
	((struct wire_undo *)w.area->undo)[5].pid ^= 1; /* another process's */
	patch(6, 5 * PAGE, "12345", "abcde", 5);
	mprotect(text, 5 * PAGE, PROT_READ | PROT_EXEC);
	munmap(text + 5 * PAGE, PAGE);
}
static void check_healed(void)
{
	CHECK(is_text(100, "12345", 5) && is_text(PAGE - 2, "12345", 5) &&
	      is_text(PAGE + 50, "1", 1));
	CHECK(is_text(2 * PAGE, "456", 3));
	CHECK(is_text(300, "other", 5) && is_text(4 * PAGE, "abcde", 5));
	CHECK(is_text(99, "\x90", 1) && is_text(105, "\x90", 1));
}
/* A child's first firing; the parent's text stays as it is. */
TEST(test_fork_heal)
{
	struct sigaction sa = { .sa_sigaction = handler3, .sa_flags = SA_SIGINFO }, now;
	int status;
	pid_t pid;

	sigaction(SIGSEGV, &sa, NULL);
	patched();
	guarded();
	CHECK(world_thread(&w, 1));
	world_share_nothing(&w);
	pid = fork();
	if (!pid) {
		CHECK(!w.private->ready);
		if (!sigsetjmp(back, 1)) /* before it is healed */
			die_of_fault();
		CHECK(got_signal == SIGSEGV);
		CHECK(!CALL(thread, 1));
		check_healed();
		CHECK(w.private->off && w.private->ready && !w.private->process);
		sigaction(SIGSEGV, NULL, &now);
		CHECK(now.sa_sigaction == handler3);
		CHECK(!CALL(thread, 1));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(is_text(100, "abcde", 5));
	CHECK(world_thread(&w, 1));
}

/* Without /proc: the pages are made writable for a moment. */
TEST(test_fork_heal_sandboxed)
{
	int status;
	pid_t pid;

	patched();
	guarded();
	CHECK(world_thread(&w, 1));
	world_share_nothing(&w);
	pid = fork();
	if (!pid) {
		deny_open();
		CHECK(!CALL(thread, 1));
		check_healed();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/* A child of a process whose system calls are filtered passes through its probes, and makes
 * none. */
TEST(test_fork_quiet)
{
	int status;
	pid_t pid;

	patched();
	guarded();
	CHECK(world_thread(&w, 1));
	world_share_nothing(&w);
	w.kept->quiet = 1;
	pid = fork();
	if (!pid) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			_exit(1);
		for (int i = 0; i < 3; i++)
			if (CALL(thread, 1) || !w.private->off || w.private->process)
				syscall(SYS_exit, 2);
		syscall(SYS_exit, is_text(100, "abcde", 5) ? 0 : 3);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/* The child that a signal handler forks in the middle of a firing comes back to it, without the
 * memory of its parent: it goes on in its own, which is empty, and which its parent does not
 * see. */
TEST(test_fork_in_firing)
{
	int status;
	pid_t pid;

	guarded();
	CHECK(world_thread(&w, 1));
	world_share_nothing(&w);
	w.t->random = 1234;
	pid = fork();
	if (!pid) {
		uint64_t key = 1, value = 2;

		CALL(prandom, 0);
		CHECK(w.t->random && w.t->random != 1234 && !w.t->owner);
		CHECK((int64_t)CALL(map_update, world_map(&w, WORLD_HASH), &key, &value, BPF_ANY) ==
		      -EFAULT); /* not on the stack of the firing */
		CHECK(!CALL(map_lookup, world_map(&w, WORLD_HASH), w.room));
		CHECK(!CALL(map_update, world_map(&w, WORLD_HASH), w.room, w.room, BPF_ANY));
		CHECK(CALL(map_lookup, world_map(&w, WORLD_HASH), w.room));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(w.t->random == 1234 && w.t->owner == 2);
	CHECK(!CALL(map_lookup, world_map(&w, WORLD_HASH), w.room));
}

/* Where children are followed, and where the memory is the process's own, a fault is a fault. */
TEST(test_no_memory_for_others)
{
	int status;
	pid_t pid;

	signal(SIGSEGV, SIG_DFL); /* cmocka has one */
	guarded();
	CHECK(world_thread(&w, 1));
	world_share_nothing(&w);
	w.area->follow = 1;
	pid = fork();
	if (!pid) {
		CALL(prandom, 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	      WTERMSIG(status) == SIGSEGV);
}

TEST(test_fork_follow)
{
	int status;
	pid_t pid;

	patched();
	guarded();
	w.area->follow = 1;
	CHECK(world_thread(&w, 1));
	pid = fork();
	if (!pid) {
		struct wire_thread *t = (struct wire_thread *)CALL(thread, 1);
		const struct wire_said *p;

		CHECK(t && t != w.t && t->pid == (uint32_t)getpid());
		CHECK(w.private->process == WIRE_PROCESSES_MAX - 1 && w.common->child_count == 1);
		p = (struct wire_said *)w.area->said + w.private->process;
		CHECK(p->own_pid == (uint32_t)getpid() && t->uid == getuid());
		CHECK(p->ppid == (uint32_t)getppid() && t->owner == w.private->process + 1);
		CHECK(is_text(100, "abcde", 5) && w.private->signals == 7);
		w.t = t;
		world_entry(&w, t)->rsp = (uintptr_t)__builtin_frame_address(0);
		CHECK(!CALL(probe_read, w.room, 8, &status));
		CHECK((int64_t)CALL(probe_read, w.room, 8, 8) == -EFAULT);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/* While the tracer detaches, it follows no more children: they restore themselves. */
TEST(test_fork_closing)
{
	int status;
	pid_t pid;

	patched();
	guarded();
	w.area->follow = w.area->closing = 1;
	CHECK(world_thread(&w, 1));
	pid = fork();
	if (!pid) {
		CHECK(!CALL(thread, 1) && w.private->off && !w.private->process);
		check_healed();
		CHECK(!w.common->child_count);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(is_text(100, "abcde", 5));
}

/* In vfork(), the child has its parent's memory: its handler must not become the parent's. */
TEST(test_vfork_sigaction)
{
	struct kernel_action a = action(handler1, 0, 0), now;
	volatile int64_t r = 1;
	int status;
	pid_t pid;

	guarded();
	CHECK(!program_action(SIGSEGV, &a, NULL));
	pid = vfork();
	if (!pid) {
		struct kernel_action dfl = { 0 }, old;

		r = program_action(SIGSEGV, &dfl, &old);
		_exit(r || old.handler != (uintptr_t)handler1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!program_action(SIGSEGV, NULL, &now) && now.handler == (uintptr_t)handler1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork_heal),
		cmocka_unit_test(test_fork_heal_sandboxed),
		cmocka_unit_test(test_fork_quiet),
		cmocka_unit_test(test_fork_in_firing),
		cmocka_unit_test(test_no_memory_for_others),
		cmocka_unit_test(test_fork_follow),
		cmocka_unit_test(test_fork_closing),
		cmocka_unit_test(test_vfork_sigaction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
