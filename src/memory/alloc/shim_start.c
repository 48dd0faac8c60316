/* Starts a command with the recorder of allocations preloaded, and makes the memory of its
 * processes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/meminfo.h"
#include "base/outfile.h"
#include "base/sealed.h"
#include "memory/alloc/shim.h"
#include "program/object/object.h"
#include "program/runtime/languages.h"
#include "program/symbol/symbol.h"
#include "program/target/target.h"
#include "wire/linker.h"

extern const uint8_t descry_alloc[], descry_alloc_end[];

enum { TRIES = 16 };

/* The kernel goes through this list when the thread that has set it ends, however it ends, and
 * marks the futex of each entry (robust futexes, set_robust_list(2)). The futex of an entry lies at
 * the same distance from each, so an entry is in a page of this process alone, right before the
 * memory that it shares with a process. */
static struct {
	struct robust_list_head head;
	struct robust_list_head *before; /* the C library's */
	size_t size;
	uint32_t n;
} robust;

enum { OWN_PAGE = 4096 };

/* memory: a struct wire_alloc, or a struct wire_alloc_life. */
static void watch_end(void *memory)
{
	struct robust_list *entry = (void *)((uint8_t *)memory - OWN_PAGE);
	const size_t at = offsetof(struct wire_alloc, tracer);

	if (!robust.n++) {
		if (syscall(SYS_get_robust_list, 0, &robust.before, &robust.size))
			robust.before = NULL;
		robust.head.list.next = &robust.head.list;
		robust.head.futex_offset = (long)(OWN_PAGE + at);
		syscall(SYS_set_robust_list, &robust.head, sizeof(robust.head));
	}
	*(uint32_t *)(void *)((uint8_t *)memory + at) = (uint32_t)syscall(SYS_gettid);
	entry->next = robust.head.list.next;
	robust.head.list.next = entry;
}

static void unwatch_end(void *memory)
{
	struct robust_list *entry = (void *)((uint8_t *)memory - OWN_PAGE),
			   **at = &robust.head.list.next;

	while (*at != entry && *at != &robust.head.list)
		at = &(*at)->next;
	if (*at != entry)
		return;
	*at = entry->next;
	if (!--robust.n && robust.before)
		syscall(SYS_set_robust_list, robust.before, robust.size);
}

static const char HOW[] = "cannot be recorded by a preloaded library:";

/* AddressSanitizer's library ends a program in which another one comes before it. */
static bool needs_asan(const struct object *o)
{
	static const char asan[] = "\0libasan.so";
	uint64_t addr;
	size_t n = 0;
	cleanup_free uint8_t *names = object_section(o, ".dynstr", &addr, &n);
	const char *others = getenv("LD_PRELOAD");

	return (names && memmem(names, n, asan, sizeof(asan) - 1)) ||
	       (others && strstr(others, asan + 1));
}

static struct err *check_program(const char *path)
{
	const struct object_symbol *own;
	struct object *o;
	struct err *e = object_open(path, &o);

	if (e)
		return e;
	own = object_find_name(o, "malloc");
	if (own && own->is_func)
		e = err_new(ENOTSUP, "%s %s the program has an allocator of its own", path, HOW);
	else if (needs_asan(o))
		e = err_new(ENOTSUP, "%s %s AddressSanitizer has an allocator of its own", path,
			    HOW);
	object_free(o);
	return e;
}

struct err *alloc_shim_check(char *const argv[])
{
	cleanup_free char *path = NULL;
	struct ticks_clock clock;
	bool linker = wire_is_linker(argv[0]);
	struct err *e = linker ? NULL : control_check_preload(argv[0], NULL, HOW, &path);

	if (e)
		return e;
	if (linker && wire_linker_lists(argv))
		return err_new(EINVAL, "%s only lists libraries then, and runs no program",
			       argv[0]);
	if (!ticks_clock(&clock))
		return err_new(ENOTSUP, "%s %s this machine's counter (TSC) is no clock", argv[0],
			       HOW);
	return linker ? NULL : check_program(path);
}

/* Maps shared memory behind a page of this process alone. */
static void *map_memory(int fd, size_t bytes)
{
	/* PROT_NONE: does not count in the limit of memory */
	uint8_t *p = mmap(NULL, OWN_PAGE + bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (!mprotect(p, OWN_PAGE, PROT_READ | PROT_WRITE) &&
	    mmap(p + OWN_PAGE, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
		    MAP_FAILED)
		return p + OWN_PAGE;
	munmap(p, OWN_PAGE + bytes);
	return NULL;
}

/* A file in memory that nobody can make smaller, which would end this process by SIGBUS. ENOTSUP,
 * because probes may do without it (ulimit -f). */
static struct err *make_shared(const char *name, size_t bytes, int *ret_fd)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct err *e;

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		*ret_fd = fd;
		return NULL;
	}
	e = err_new(ENOTSUP, "no memory for the recording: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return e;
}

/* Makes what processes believe, and what only this process may write. ENOTSUP before Linux 5.1. */
static struct err *make_life(struct alloc_shims *s, bool follow)
{
	const int seals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct stat st;

	s->life_fd = memfd_create("descry-malloc-life", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->life_fd >= 0 && !ftruncate(s->life_fd, sizeof(*s->life)))
		s->life = map_memory(s->life_fd, sizeof(*s->life));
	if (s->life)
		watch_end(s->life);
	/* the mapping is older than the seals, and so can be written */
	if (!s->life || fcntl(s->life_fd, F_ADD_SEALS, seals) || fchmod(s->life_fd, 0) ||
	    stat("/proc/self/.", &st))
		return err_new(ENOTSUP, "no memory for the recording: %s", strerror(errno));
	s->life->proc = st.st_dev;
	s->life->follow = follow;
	return NULL;
}

struct err *alloc_shim_new(struct alloc_shims *of, struct alloc_shim **ret)
{
	size_t bytes = WIRE_ALLOC_BYTES + (of->depth ? (size_t)WIRE_ALLOC_STACK_BYTES : 0);
	struct wire_alloc *m = NULL;
	struct alloc_shim *s;
	struct err *e;
	int fd = -1;

	e = make_shared("descry-malloc", bytes, &fd);
	if (!e && !(m = map_memory(fd, bytes))) {
		e = err_new(ENOTSUP, "no memory for the recording: %s", strerror(errno));
		close(fd);
	}
	if (e)
		return e;
	s = xcalloc(1, sizeof(*s));
	s->pidfd = -1;
	s->bytes = bytes;
	s->memory = m;
	s->memory_fd = fd;
	s->clock = of->clock;
	m->magic = WIRE_ALLOC_MAGIC;
	m->version = WIRE_ALLOC_VERSION;
	m->ticks_per_ms = (uint64_t)(((unsigned __int128)1000000 << 64) / of->clock.factor) >>
			  WIRE_ALLOC_TICK;
	m->depth = of->depth;
	m->sample = of->sample;
	if (of->depth)
		s->stacks = shim_stacks_new(m, of->symbols, of->languages, &of->budget);
	s->sync = (ticks_now() >> WIRE_ALLOC_TICK) - 1;
	s->passed = s->reviewed = s->flushed = now_ns();
	watch_end(m);
	*ret = s;
	return NULL;
}

void alloc_shim_free(struct alloc_shim *s)
{
	if (!s)
		return;
	shim_stacks_free(s->stacks);
	unwatch_end(s->memory);
	munmap((uint8_t *)s->memory - OWN_PAGE, OWN_PAGE + s->bytes);
	if (s->pidfd >= 0)
		close(s->pidfd);
	close(s->memory_fd);
	free(s);
}

/* SIGIO comes with each hello. It ends the sleep, or keeps the tracer from sleeping. */
static uint32_t *bell;

static void ring(int sig)
{
	if (bell)
		__atomic_fetch_add(bell, 1, __ATOMIC_SEQ_CST);
}

/* Lets the kernel drop messages that are no hello with the secret: anybody may send to the name,
 * and could keep the queue full. The filter loads words in network order. */
static bool drop_strangers(const struct alloc_shims *s)
{
	enum { HELLO = sizeof(struct wire_alloc_hello) };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HELLO, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct wire_alloc_hello, magic)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(WIRE_ALLOC_MAGIC), 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct wire_alloc_hello, secret)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl((uint32_t)s->secret), 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct wire_alloc_hello, secret) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl((uint32_t)(s->secret >> 32)), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, HELLO),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { ARRAY_SIZE(code), code };

	return !setsockopt(s->socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* Binds the socket for hellos to an abstract address that is free. */
static struct err *make_socket(struct alloc_shims *s)
{
	const struct sigaction action = { .sa_handler = ring };
	const int yes = 1;

	s->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	for (int i = 0; s->socket >= 0 && i < TRIES; i++) {
		struct sockaddr_un a = { .sun_family = AF_UNIX };
		int n;

		if (getrandom(&s->name, sizeof(s->name), 0) != sizeof(s->name) ||
		    getrandom(&s->secret, sizeof(s->secret), 0) != sizeof(s->secret) ||
		    getrandom(&s->proof, sizeof(s->proof), 0) != sizeof(s->proof))
			break;
		if (!drop_strangers(s))
			break;
		n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, WIRE_ALLOC_SOCKET "%u",
			     s->name);
		if (bind(s->socket, (void *)&a,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
			continue;
		if (setsockopt(s->socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)))
			break;
		bell = &s->lobby->bell;
		sigaction(SIGIO, &action, NULL);
		fcntl(s->socket, F_SETOWN, getpid());
		fcntl(s->socket, F_SETFL, fcntl(s->socket, F_GETFL) | O_ASYNC);
		return NULL;
	}
	return err_new(ENOTSUP, "no socket for the recording: %s", strerror(errno));
}

static void shim_child(const struct alloc_shims *s, char *const argv[], int report)
{
	const char *before = getenv("LD_PRELOAD");
	cleanup_free char *preload = xasprintf("LD_PRELOAD=/proc/self/fd/%d%s%s", s->object,
					       before ? ":" : "", before ? before : "");
	cleanup_free char *numbers = NULL;
	cleanup_free char **env = NULL;
	struct child c = { .argv = argv, .keep = &s->object, .nkeep = 1 };
	struct stat st;
	int code;

	if (fstat(s->object, &st))
		st.st_dev = st.st_ino = 0;
	numbers = xasprintf(WIRE_ALLOC_ENV "=%d,%d,%d,%u,%llu,%llu,%llu,%llu", s->object,
			    (int)getppid(), s->object, s->name, (unsigned long long)st.st_dev,
			    (unsigned long long)st.st_ino, (unsigned long long)s->secret,
			    (unsigned long long)s->proof);
	c.env = env = child_env(NULL, (const char *[]){ preload, numbers }, 2);
	signal(SIGINT, SIG_DFL);
	child_exec(&c);
	code = errno;
	if (write(report, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

static struct err *start(struct alloc_shims *s, char *const argv[])
{
	int report[2], code = 0;
	struct err *e = NULL;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC))
		return err_errno(errno, "pipe");
	pid = fork();
	if (pid == 0)
		shim_child(s, argv, report[1]);
	close(report[1]);
	if (pid < 0)
		e = err_errno(errno, "cannot start %s", argv[0]);
	else
		while (read(report[0], &code, sizeof(code)) < 0 && errno == EINTR)
			;
	if (code)
		e = err_errno(code, "cannot run %s", argv[0]);
	close(report[0]);
	if (e && pid > 0)
		waitpid(pid, NULL, 0);
	s->pid = pid;
	return e;
}

struct err *alloc_shims_start(char *const argv[], const struct alloc_shims_options *o,
			      struct alloc_shims **ret)
{
	struct alloc_shims *s = xcalloc(1, sizeof(*s));
	const uint64_t available = meminfo_available();
	struct err *e = ticks_clock(&s->clock) ? NULL : err_new(ENOTSUP, "no clock");

	s->lobby_fd = s->life_fd = s->object = s->socket = s->folder = s->device = -1;
	s->depth = o->depth;
	s->sample = o->sample;
	s->path = o->path;
	s->command = o->command;
	s->alone = o->alone;
	s->symbols = symbols_new();
	s->languages = languages_new();
	s->budget.room = ALLOC_DEFINED_MAX;
	s->budget.tables = available ? available / 2 : UINT64_MAX;
	e = e ?: make_shared("descry-malloc-lobby", sizeof(*s->lobby), &s->lobby_fd);
	if (!e && !(s->lobby = map_memory(s->lobby_fd, sizeof(*s->lobby))))
		e = err_new(ENOTSUP, "no memory for the recording: %s", strerror(errno));
	e = e ?: make_life(s, !o->alone);
	e = e ?: make_socket(s);
	e = e
		    ?: sealed_file("descry-malloc-library", descry_alloc,
				   (size_t)(descry_alloc_end - descry_alloc), &s->object);
	s->folder = outfile_folder(o->path);
	e = e ?: alloc_writer_new(o->path, &s->writer);
	s->device = e ? -1 : alloc_writer_device(s->writer);
	e = e ?: start(s, argv);
	if (e) {
		alloc_shims_free(s);
		return e;
	}
	*ret = s;
	return NULL;
}

void alloc_shims_free(struct alloc_shims *s)
{
	if (!s)
		return;
	bell = NULL;
	for (uint32_t i = 0; i < s->live.n; i++)
		alloc_shim_free(s->live.v[i]);
	for (uint32_t i = 0; i < s->sums.n; i++) {
		free(s->sums.v[i].command);
		free(s->sums.v[i].path);
		err_free(s->sums.v[i].error);
	}
	vec_fini(&s->live);
	vec_fini(&s->sums);
	hash_fini(&s->numbers);
	symbols_free(s->symbols);
	languages_free(s->languages);
	if (s->writer)
		err_free(alloc_writer_end(s->writer));
	if (s->lobby)
		munmap((uint8_t *)s->lobby - OWN_PAGE, OWN_PAGE + sizeof(*s->lobby));
	if (s->life) {
		unwatch_end(s->life);
		munmap((uint8_t *)s->life - OWN_PAGE, OWN_PAGE + sizeof(*s->life));
	}
	for (int i = 0; i < 6; i++) {
		const int fds[] = { s->lobby_fd, s->life_fd, s->object,
				    s->socket,   s->folder,  s->device };

		if (fds[i] >= 0)
			close(fds[i]);
	}
	free(s);
}
