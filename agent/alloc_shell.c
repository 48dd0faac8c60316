/* system(3) with an environment of its own. The C library's hands `environ` to the shell, so that
 * all threads would have descry's variables there for as long as the command runs.
 *
 * It does what the C library's does: SIGINT and SIGQUIT are ignored while any thread is in here,
 * the thread blocks SIGCHLD, and when it is cancelled, the shell is killed. */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "agent/alloc_private.h"

/* The limit is for code that runs in probes. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="
#pragma weak posix_spawnattr_init
#pragma weak posix_spawnattr_setflags
#pragma weak posix_spawnattr_setsigdefault
#pragma weak posix_spawnattr_setsigmask
#pragma weak waitpid
int *__errno_location(void) __attribute__((weak));

/* A function that the C library calls when the thread is cancelled. */
struct on_cancel {
	void (*call)(void *arg);
	void *arg;
	int type;
	void *previous;
};
void _pthread_cleanup_push(struct on_cancel *c, void (*call)(void *arg), void *arg)
	__attribute__((weak));
void _pthread_cleanup_pop(struct on_cancel *c, int calls) __attribute__((weak));

enum {
	MASK_BYTES = 8, /* of the kernel's signal set */
	NOT_STARTED = 127,
	INTERRUPTED = 4,
};

/* The kernel's struct sigaction. */
struct handling {
	void *handler;
	uint64_t flags;
	void *restorer;
	uint64_t mask;
};

/* How the process handles SIGINT and SIGQUIT, while PAGE_SHELLS > 0. */
static struct handling interrupt, quit;

struct shell_call {
	int pid;
	uint64_t mask; /* the thread's own */
};

/* The process's page, in place of which one that is not recorded has words of its own. */
static uint32_t *shell_words(void)
{
	static uint32_t words[PAGE_SHELLS + 1];

	return state.page ?: words;
}

static void lock_shells(void)
{
	while (__atomic_exchange_n(&shell_words()[PAGE_SHELL_LOCK], 1, __ATOMIC_ACQUIRE))
		if (!alloc_quiet)
			sys2(SYS_SCHED_YIELD, 0, 0);
}

static void unlock_shells(void)
{
	__atomic_store_n(&shell_words()[PAGE_SHELL_LOCK], 0, __ATOMIC_RELEASE);
}

static void set_handling(int signal, const struct handling *to, struct handling *ret_old)
{
	sys4(SYS_RT_SIGACTION, (uint64_t)signal, (uintptr_t)to, (uintptr_t)ret_old, MASK_BYTES);
}

static void set_mask(int how, const uint64_t *to, uint64_t *ret_old)
{
	sys4(SYS_RT_SIGPROCMASK, (uint64_t)how, (uintptr_t)to, (uintptr_t)ret_old, MASK_BYTES);
}

static void enter_shell(struct shell_call *c, struct handling ret_old[2])
{
	const struct handling ignored = { .handler = (void *)SIG_IGN };
	const uint64_t child = 1ull << (SIGCHLD - 1);

	lock_shells();
	if (!shell_words()[PAGE_SHELLS]++) {
		set_handling(SIGINT, &ignored, &interrupt);
		set_handling(SIGQUIT, &ignored, &quit);
	}
	ret_old[0] = interrupt;
	ret_old[1] = quit;
	unlock_shells();
	set_mask(SIG_BLOCK, &child, &c->mask);
}

static void leave_shell(const struct shell_call *c)
{
	lock_shells();
	/* 0: a signal handler has forked, and this is the child */
	if (shell_words()[PAGE_SHELLS] && !--shell_words()[PAGE_SHELLS]) {
		set_handling(SIGINT, &interrupt, 0);
		set_handling(SIGQUIT, &quit, 0);
	}
	unlock_shells();
	set_mask(SIG_SETMASK, &c->mask, 0);
}

static void cancel_shell(void *arg)
{
	const struct shell_call *c = arg;

	sys2(SYS_KILL, (uint64_t)c->pid, SIGKILL);
	while (sys4(SYS_WAIT4, (uint64_t)c->pid, 0, 0, 0) == -INTERRUPTED)
		;
	leave_shell(c);
}

/* Returns the status of the shell that was started. */
static int wait_for_shell(struct shell_call *c)
{
	struct on_cancel cancel;
	int status, pid;

	if (_pthread_cleanup_push)
		_pthread_cleanup_push(&cancel, cancel_shell, c);
	do
		pid = waitpid(c->pid, &status, 0); /* a thread may be cancelled here */
	while (pid < 0 && *__errno_location() == INTERRUPTED);
	if (_pthread_cleanup_push)
		_pthread_cleanup_pop(&cancel, 0);
	return pid == c->pid ? status : -1;
}

int alloc_run_shell(alloc_spawn *spawn, const char *command, char *const *env, void *room,
		    uint64_t room_bytes, int *ret_status)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)(uintptr_t)command, 0 };
	struct handling old[2];
	struct shell_call call;
	posix_spawnattr_t how;
	sigset_t set = { 0 };
	int failed;

	enter_shell(&call, old);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	set.__val[0] = call.mask;
	posix_spawnattr_setsigmask(&how, &set);
	set.__val[0] = (old[0].handler != SIG_IGN ? 1ull << (SIGINT - 1) : 0) |
		       (old[1].handler != SIG_IGN ? 1ull << (SIGQUIT - 1) : 0);
	posix_spawnattr_setsigdefault(&how, &set);
	failed = spawn(&call.pid, "/bin/sh", 0, &how, argv, env);
	if (room)
		alloc_leave_room(room, room_bytes);
	*ret_status = failed ? W_EXITCODE(NOT_STARTED, 0) : wait_for_shell(&call);
	leave_shell(&call);
	if (failed)
		*__errno_location() = failed;
	return !failed;
}
