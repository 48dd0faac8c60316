/* The object that the dynamic linker loads into a command where ptrace(2) is forbidden
 * (LD_PRELOAD). Before the program begins, it makes the system calls that the tracer requests. It
 * is a shared object without a C library, and only its constructor ever runs. The other side is
 * src/program/target/served.c. */
#include "agent/environment.h"
#include "wire/preload.h"

enum {
	O_RDWR_CLOEXEC = 02000002,
	GET_FS = 0x1003,
	SIGKILL_ = 9,
};

/* Removes descry's variables from the environment. Returns false when there were none. */
static int take_numbers(char **env, struct preload_numbers *ret)
{
	char **to = env, *numbers = 0;

	for (; *env; env++) {
		char *preload = value_of(*env, "LD_PRELOAD="),
		     *ours = value_of(*env, PRELOAD_ENV "=");

		if (ours)
			numbers = ours;
		else if (!preload || restore(preload))
			*to++ = *env;
	}
	*to = 0;
	if (!numbers)
		return 0;
	ret->service = (uint32_t)number(&numbers);
	ret->files = (uint32_t)number(&numbers);
	ret->self = (uint32_t)number(&numbers);
	ret->pid = (uint32_t)number(&numbers);
	return 1;
}

static int say_hello(uint32_t service)
{
	struct preload_hello hello = { .stack = (uintptr_t)__builtin_frame_address(0) };
	int64_t mem = sys4(SYS_OPENAT, (uint64_t)AT_FDCWD_, (uintptr_t) "/proc/self/mem",
			   O_RDWR_CLOEXEC, 0);
	struct preload_iov iov = { (uintptr_t)&hello, sizeof(hello) };
	struct preload_rights rights = { sizeof(uint64_t) * 2 + sizeof(int32_t), 1, 1, (int32_t)mem,
					 0 };
	struct preload_message m = { .iov = (uintptr_t)&iov,
				     .niov = 1,
				     .control = (uintptr_t)&rights,
				     .control_size = sizeof(rights) };
	int64_t sent;

	if (mem < 0)
		return 0;
	sys2(SYS_ARCH_PRCTL, GET_FS, (uintptr_t)&hello.fs_base);
	sent = sys4(SYS_SENDMSG, service, (uintptr_t)&m, 0, 0);
	sys2(SYS_CLOSE, (uint64_t)mem, 0);
	return sent == sizeof(hello);
}

static void leave(const struct preload_numbers *n)
{
	sys2(SYS_CLOSE, n->service, 0);
	sys2(SYS_CLOSE, n->files, 0);
	sys2(SYS_CLOSE, n->self, 0);
}

/* Runs as the first of all constructors, where the dynamic linker knows DF_1_INITFIRST. */
__attribute__((constructor)) static void preload_serve(void)
{
	uint64_t *stack = start_of_stack();
	struct preload_numbers n;
	struct preload_request r;

	if (!stack || !take_numbers((char **)(stack + 1 + *stack + 1), &n))
		return;
	if (sys2(SYS_GETPID, 0, 0) != n.pid) {
		/* a child of code that runs before this constructor */
		leave(&n);
		return;
	}
	if (!say_hello(n.service))
		sys2(SYS_KILL, (uint64_t)sys2(SYS_GETPID, 0, 0), SIGKILL_);
	for (;;) {
		int64_t got = sys4(SYS_READ, n.service, (uintptr_t)&r, sizeof(r), 0), value;

		if (got == E_INTR)
			continue;
		/* The tracer has ended: ends the process, as PTRACE_O_EXITKILL would. */
		if (got != sizeof(r))
			sys2(SYS_KILL, (uint64_t)sys2(SYS_GETPID, 0, 0), SIGKILL_);
		if (r.nr == PRELOAD_GO)
			break;
		value = sys6((long)r.nr, r.arg[0], r.arg[1], r.arg[2], r.arg[3], r.arg[4],
			     r.arg[5]);
		sys4(SYS_WRITE, n.service, (uintptr_t)&value, sizeof(value), 0);
	}
	leave(&n);
}
