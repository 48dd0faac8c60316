/* Tests of the agent's blob, each in a process of its own. */
#ifndef DESCRY_TEST_AGENT_CHILD_H
#define DESCRY_TEST_AGENT_CHILD_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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
enum { PAGE = 4096 };

/* The agent handles signals, and reads are guarded by its handler. */
static inline void guarded(void)
{
	CHECK(CALL(guard, 7) == 0);
	CHECK(w.private->signals == 7);
	w.area->reads_guarded = 1;
	world_ranges(&w);
}

static inline uint8_t *pages(int n)
{
	uint8_t *p = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* open and process_vm_readv fail with EPERM. */
static inline void deny_open(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog p = { 5, f };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	      !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p));
}

#define TEST(name) \
	static void name##_child(void); \
	static void name(void **state) \
	{ \
		run(name##_child); \
	} \
	static void name##_child(void)

#endif
