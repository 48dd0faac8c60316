/* Starts a command with the recorder of allocations preloaded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/nofile.h"
#include "memory/alloc/shim.h"
#include "program/object/object.h"
#include "program/target/target.h"

extern const uint8_t descry_alloc[], descry_alloc_end[];

/* The kernel goes through this list when the thread that has set it ends, however it ends, and
 * marks the futex of each entry (robust futexes, set_robust_list(2)). The list is in this process's
 * own memory. */
static struct {
	struct robust_list entry;
	struct robust_list_head head;
	struct robust_list_head *before; /* the C library's */
	size_t size;
} robust;

static void watch_end(struct wire_alloc *m)
{
	if (syscall(SYS_get_robust_list, 0, &robust.before, &robust.size))
		robust.before = NULL;
	robust.entry.next = &robust.head.list;
	robust.head.list.next = &robust.entry;
	robust.head.futex_offset = (long)((uintptr_t)&m->tracer - (uintptr_t)&robust.entry);
	m->tracer = (uint32_t)syscall(SYS_gettid);
	syscall(SYS_set_robust_list, &robust.head, sizeof(robust.head));
}

static void unwatch_end(void)
{
	if (robust.before)
		syscall(SYS_set_robust_list, robust.before, robust.size);
}

static const char HOW[] = "cannot be recorded by a preloaded library:";

/* By the names of files, as src/program/runtime/ recognises them. */
const char *alloc_shim_language(const char *command)
{
	static const struct {
		const char *prefix, *language;
	} known[] = { { "python", "Python" }, { "ruby", "Ruby" } };
	cleanup_free char *path = NULL;
	cleanup_free char *file = NULL;
	const char *ret = NULL, *name;
	struct err *e = control_check_preload(command, HOW, &path);

	err_free(e);
	if (!path)
		return NULL;
	file = realpath(path, NULL); /* /usr/bin/python3 is a link */
	name = strrchr(file ?: path, '/') ? strrchr(file ?: path, '/') + 1 : path;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strncmp(name, known[i].prefix, strlen(known[i].prefix)))
			ret = known[i].language;
	return ret;
}

struct err *alloc_shim_check(const char *command)
{
	cleanup_free char *path = NULL;
	const struct object_symbol *own;
	struct ticks_clock clock;
	struct object *o;
	struct err *e = control_check_preload(command, HOW, &path);

	if (e)
		return e;
	if (!ticks_clock(&clock))
		return err_new(ENOTSUP, "%s %s this machine's counter (TSC) is no clock", path,
			       HOW);
	e = object_open(path, &o);
	if (e)
		return e;
	own = object_find_name(o, "malloc");
	if (own && own->is_func)
		e = err_new(ENOTSUP, "%s %s the program has an allocator of its own", path, HOW);
	object_free(o);
	return e;
}

static struct err *make_memory(struct alloc_shim *s, uint32_t depth, int *ret_fd)
{
	int fd = memfd_create("descry-malloc", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct err *e = NULL;
	void *p;

	/* ENOTSUP, because probes may do without it (ulimit -f). The command cannot make it
	 * smaller, which would end this process by SIGBUS. */
	s->bytes = WIRE_ALLOC_BYTES + (depth ? (size_t)WIRE_ALLOC_STACK_BYTES : 0);
	if (fd < 0 || ftruncate(fd, (off_t)s->bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		e = err_new(ENOTSUP, "no memory for the recording: %s", strerror(errno));
	p = e ? MAP_FAILED : mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!e && p == MAP_FAILED)
		e = err_new(ENOTSUP, "no memory for the recording: %s", strerror(errno));
	if (e) {
		if (fd >= 0)
			close(fd);
		return e;
	}
	s->memory = p;
	s->data = (const uint8_t *)p + WIRE_ALLOC_HEAD;
	s->memory->magic = WIRE_ALLOC_MAGIC;
	s->memory->version = WIRE_ALLOC_VERSION;
	s->memory->ticks_per_ms = (uint64_t)(((unsigned __int128)1000000 << 64) / s->clock.factor);
	s->memory->depth = depth;
	if (depth)
		s->stacks = shim_stacks_new(s->memory);
	*ret_fd = fd;
	return NULL;
}

static struct err *make_object(int *ret_fd)
{
	const size_t size = (size_t)(descry_alloc_end - descry_alloc);
	int fd = memfd_create("descry-malloc-library", MFD_CLOEXEC);
	struct err *e;

	if (fd >= 0 && write(fd, descry_alloc, size) == (ssize_t)size) {
		*ret_fd = fd;
		return NULL;
	}
	e = err_errno(errno, "a file in memory for the library");
	if (fd >= 0)
		close(fd);
	return e;
}

static void child(char *const argv[], int memory, size_t bytes, int object, int report)
{
	const char *before = getenv("LD_PRELOAD");
	cleanup_free char *preload =
		xasprintf("/proc/self/fd/%d%s%s", object, before ? ":" : "", before ? before : "");
	cleanup_free char *numbers =
		xasprintf("%d,%d,%d,%zu", (int)getpid(), object, memory, bytes);
	int code;

	signal(SIGINT, SIG_DFL);
	nofile_restore();
	setenv("LD_PRELOAD", preload, 1);
	setenv(WIRE_ALLOC_ENV, numbers, 1);
	fcntl(memory, F_SETFD, 0);
	fcntl(object, F_SETFD, 0);
	execvp(argv[0], argv);
	code = errno;
	if (write(report, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

static struct err *start(struct alloc_shim *s, char *const argv[], int memory, int object)
{
	int report[2], code = 0;
	struct err *e = NULL;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC))
		return err_errno(errno, "pipe");
	pid = fork();
	if (pid == 0)
		child(argv, memory, s->bytes, object, report[1]);
	close(report[1]);
	if (pid < 0)
		e = err_errno(errno, "cannot start %s", argv[0]);
	else if (read(report[0], &code, sizeof(code)) == sizeof(code))
		e = err_errno(code, "cannot run %s", argv[0]);
	close(report[0]);
	if (e && pid > 0)
		waitpid(pid, NULL, 0);
	s->pid = pid;
	return e;
}

struct err *alloc_shim_start(char *const argv[], uint32_t depth, struct alloc_shim **ret)
{
	struct alloc_shim *s = xcalloc(1, sizeof(*s));
	int memory = -1, object = -1;
	struct err *e = ticks_clock(&s->clock) ? NULL : err_new(ENOTSUP, "no clock");

	e = e ?: make_memory(s, depth, &memory);
	e = e ?: make_object(&object);
	s->sync = s->clock.ticks;
	s->passed = s->reviewed = s->flushed = now_ns();
	if (!e) {
		watch_end(s->memory);
		e = start(s, argv, memory, object);
	}
	if (memory >= 0)
		close(memory);
	if (object >= 0)
		close(object);
	if (e)
		alloc_shim_free(s);
	else
		*ret = s;
	return e;
}

void alloc_shim_free(struct alloc_shim *s)
{
	if (!s)
		return;
	shim_stacks_free(s->stacks);
	if (s->memory) {
		unwatch_end();
		munmap(s->memory, s->bytes);
	}
	free(s);
}
