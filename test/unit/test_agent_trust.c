/* The agent's trust: which data it uses when others write to the shared memory, and when another
 * process has a recorded pid. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_child.h"

/* A slot's number where others can write it: it would become a key's reach. */
TEST(test_map_forged_slot)
{
	uint64_t *key = (uint64_t *)w.room, *value = key + 8;

	CHECK(world_thread(&w, 1));
	w.t->slot = 0x12345678;
	CHECK(!CALL(map_update, world_map(&w, WORLD_HASH), key, value, BPF_ANY));
	for (uint32_t i = 0; i < w.maps[WORLD_HASH].buckets; i++)
		CHECK(((struct wire_hash_entry *)(w.maps[WORLD_HASH].base +
						  i * w.maps[WORLD_HASH].stride))
			      ->owner >>
		      16 <= 1);
	CHECK(!CALL(map_delete, world_map(&w, WORLD_HASH), key));
}

static volatile sig_atomic_t caught;
static void catch (int sig)
{
	caught = sig;
}
/* The signal comes when the firing has ended, and once. */
TEST(test_send_signal)
{
	CHECK(world_thread(&w, 1));
	signal(SIGUSR1, catch);
	caught = 0;
	CHECK(!CALL(send_signal, SIGUSR1) && !CALL(send_signal, 0) && !caught);
	CALL(signals);
	CHECK(caught == SIGUSR1);
	caught = 0;
	CALL(signals);
	CHECK(!caught);
	CHECK((int64_t)CALL(send_signal, 65) == -EINVAL);
	signal(SIGUSR1, catch);
	caught = 0;
	CHECK(!CALL(send_signal_thread, SIGUSR1) && caught == SIGUSR1);
	CHECK((int64_t)CALL(send_signal, 1000) == -EINVAL);
}
/* The tracer fires an event of a process whose number now belongs to another process, here this
 * process. */
TEST(test_send_signal_other)
{
	struct wire_thread *t = (struct wire_thread *)w.area->threads;
	struct wire_own *o = world_own(&w, t);
	pid_t child = fork();
	int status, fd;

	if (!child)
		for (;;)
			pause();
	fd = (int)syscall(SYS_pidfd_open, child, 0);
	CHECK(child > 0 && fd >= 0);
	signal(SIGUSR1, catch);
	caught = 0;
	w.t = t;
	o->pid = (uint32_t)getpid();
	o->holder = (uint32_t)gettid();
	o->other = 1;
	o->pidfd = -1;
	CHECK((int64_t)CALL(send_signal, SIGUSR1) == -ESRCH && !caught);
	CHECK((int64_t)CALL(send_signal_thread, SIGUSR1) == -ESRCH && !caught);
	o->pidfd = fd;
	CHECK(!CALL(send_signal_thread, SIGCONT) && !CALL(send_signal, SIGTERM) && !caught);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
	      WTERMSIG(status) == SIGTERM);
	CHECK((int64_t)CALL(send_signal, SIGUSR1) == -ESRCH && !caught);
	o->other = 0;
	CHECK(!CALL(send_signal, SIGUSR1) && caught == SIGUSR1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_forged_slot),
		cmocka_unit_test(test_send_signal),
		cmocka_unit_test(test_send_signal_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
