/* Tests of the agent's blob, each in a process of its own. */
#ifndef DESCRY_TEST_AGENT_CHILD_H
#define DESCRY_TEST_AGENT_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

#include "agent_world.h"

static struct world w;

#define CALL(entry, ...) CALL_(entry, ##__VA_ARGS__, 0, 0, 0, 0)
#define CALL_(entry, a, b, c, d, ...) \
	world_call(&w, WIRE_AGENT_##entry, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), \
		   (uint64_t)(d))

/* Each test in a process of its own: handlers, slots and mappings are a process's. */
static void in_child(void (*fn)(void), int *ret_status)
{
	pid_t pid = fork();

	if (!pid) {
		world_make(&w);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, ret_status, 0), pid);
}
static void run(void (*fn)(void))
{
	int status;

	in_child(fn, &status);
	if (status)
		fail_msg("status 0x%x", status);
}
/* In the child: cmocka's own longjmp() would go on in the parent's place. */
#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			_exit(1); \
		} \
	} while (0)
#define TEST(name) \
	static void name##_child(void); \
	static void name(void **state) \
	{ \
		run(name##_child); \
	} \
	static void name##_child(void)

#endif
