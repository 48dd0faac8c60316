/* execve(2) and its like, system(3) and popen(3) of a recorded program: the program that is
 * executed gets the recorder, too, by variables in its environment.
 *
 * Always true: a child of vfork(2) may call these, so they change only the stack, the lobby and the
 * rooms of alloc_room.c. A
 * program is left alone when the tracer has ended, or its descriptor cannot be reached. What
 * another thread starts after the tracer's end must not have the variables, because another process
 * may have the tracer's number then. So system(3) hands them to the shell alone, and popen(3)
 * changes `environ`, but only until the shell has begun. What a
 * process executes itself gets a descriptor of the shared object, so that it is there although the
 * tracer is killed meanwhile. What it starts otherwise gets the object's path, because another
 * thread could start a program that would inherit the descriptor.
 */
#include <stdarg.h>

#include "agent/alloc_private.h"
#include "agent/environment.h"
#include "wire/linker.h"

#define EXPORT __attribute__((visibility("default")))
#define WEAK __attribute__((weak))
#define RTLD_NEXT_ ((void *)-1l)

void *dlsym(void *handle, const char *name) WEAK;
int *__errno_location(void) WEAK;
extern char **environ WEAK;

/* X(type, name, arguments) */
#define EXEC_NEXT(X) \
	X(int, execve, (const char *, char *const *, char *const *)) \
	X(int, execvpe, (const char *, char *const *, char *const *)) \
	X(int, fexecve, (int, char *const *, char *const *)) \
	X(int, execveat, (int, const char *, char *const *, char *const *, int)) \
	X(int, posix_spawn, \
	  (int *, const char *, const void *, const void *, char *const *, char *const *)) \
	X(int, posix_spawnp, \
	  (int *, const char *, const void *, const void *, char *const *, char *const *)) \
	X(void *, popen, (const char *, const char *))

#define X(type, name, arguments) type name arguments;
EXEC_NEXT(X)
#undef X

static struct {
#define X(type, name, arguments) type(*name) arguments;
	EXEC_NEXT(X)
#undef X
	int (*system)(const char *); /* of another preloaded object, else 0 */
} exec_next;

enum {
	NOSYS = 38,
	TOO_BIG = 7,           /* E2BIG */
	VARIABLES_MAX = 16384, /* of an environment that popen(3) changes */
	COPIED_MAX = 1 << 22,  /* variables of one that is copied: execve(2) takes no more */
	STACK_MAX = 1024,      /* bytes of a copy that lies on the stack */
	INT_MAX_ = 0x7fffffff,
	PRELOAD_MAX = 8192, /* bytes of an LD_PRELOAD that is there already */
	PATH_BYTES = 48,
	NUMBERS_BYTES = 192,
	O_NOCTTY_ = 0400,
	O_NONBLOCK_ = 04000,
	S_IFMT_ = 0170000,
	S_IFREG_ = 0100000,
	F_DUPFD_ = 0,
	FIRST_FD = 3,
	BY_PATH = 0,         /* in place of a descriptor */
	CURRENT_DIR = -100,  /* AT_FDCWD */
	EMPTY_PATH = 0x1000, /* AT_EMPTY_PATH */
	BY_NAME = -101,
	OF_FD = -102,
};

void alloc_find_exec(void)
{
#define X(type, name, arguments) *(void **)&exec_next.name = dlsym(RTLD_NEXT_, #name);
	EXEC_NEXT(X)
#undef X
	*(void **)&exec_next.system = alloc_next_unless_libc("system");
}

static int exec_missing(void)
{
	if (__errno_location)
		*__errno_location() = NOSYS;
	return -1;
}

static int too_many(void)
{
	if (__errno_location)
		*__errno_location() = TOO_BIG;
	return -1;
}

/* --- the environment --- */

static char *put_text(char *p, const char *text)
{
	while (*text)
		*p++ = *text++;
	*p = 0;
	return p;
}

static char *put_decimal(char *p, uint64_t v, char behind)
{
	char digits[20];
	uint32_t n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		*p++ = digits[--n];
	*p++ = behind;
	*p = 0;
	return p;
}

/* Writes the path of the shared object in the tracer. Returns its end. */
static char *put_path(char *p)
{
	const struct recording *r = &state.recording;

	p = put_decimal(put_text(p, "/proc/"), r->tracer, '/');
	return put_decimal(put_text(p, "fd/"), r->object, 0) - 1;
}

/* Returns true when the tracer lives and its number is that of its own directory in /proc: another
 * pid namespace has its own /proc, in which another process may have the number. */
static NOINLINE int is_reachable(const struct recording *r)
{
	char path[PATH_BYTES];
	uint64_t status[32];

	put_decimal(put_text(path, "/proc/"), r->tracer, 0);
	/* struct stat: st_dev. The number was the tracer's if it lives afterwards. */
	return !sys2(SYS_STAT, (uintptr_t)path, (uintptr_t)status) && status[0] == r->life->proc &&
	       alloc_is_open();
}

/* st_dev of memory files is that of the kernel's own tmpfs. */
static int is_object(int64_t failed, const uint64_t *status)
{
	/* struct stat: st_dev, st_ino, st_nlink, st_mode */
	return !failed && status[0] == state.recording.device &&
	       status[1] == state.recording.inode && (status[3] & S_IFMT_) == S_IFREG_;
}

/* Opens the shared object. Returns its descriptor, or -1. */
static int open_object(const char *path)
{
	/* the open of a FIFO does not wait */
	int64_t fd = sys4(SYS_OPEN, (uintptr_t)path, O_NONBLOCK_ | O_NOCTTY_, 0, 0), other;
	uint64_t status[32];

	if (fd >= 0 && fd < FIRST_FD) {
		other = sys4(SYS_FCNTL, (uint64_t)fd, F_DUPFD_, FIRST_FD, 0);
		sys2(SYS_CLOSE, (uint64_t)fd, 0);
		fd = other;
	}
	if (fd < 0)
		return -1;
	if (is_object(sys2(SYS_FSTAT, (uint64_t)fd, (uintptr_t)status), status))
		return (int)fd;
	sys2(SYS_CLOSE, (uint64_t)fd, 0);
	return -1;
}

/* A program that is executed. */
struct program {
	int dir; /* of a relative path; BY_NAME: the path is a name to look for, OF_FD: of this fd */
	const char *path;
	int fd;
	char *const *argv; /* null pointer: a shell's */
};

/* Returns true when the dynamic linker only lists the program's libraries: nothing runs. */
static int only_lists(const struct program *p, char *const *env)
{
	return wire_environment_lists(env) ||
	       (wire_is_linker(p->path) && wire_linker_lists(p->argv));
}

/* The library of AddressSanitizer ends a program in which another one comes before it. */
static int preloads_asan(char *const *env)
{
	for (; env && *env; env++)
		for (const char *p = wire_behind(*env, "LD_PRELOAD="); p && *p; p++)
			if (wire_behind(p, ALLOC_ASAN))
				return 1;
	return 0;
}

static int program_loads(const struct program *p, int by_path)
{
	char path[PATH_BYTES];

	if (p->dir == BY_NAME)
		return alloc_loads_name(p->path);
	/* posix_spawn(3) may go to another directory first */
	if (by_path && p->path && *p->path != '/' && sys2(SYS_ACCESS, (uintptr_t)p->path, 0))
		return 0;
	if (p->dir != OF_FD)
		return alloc_loads(p->dir, p->path);
	if (p->fd < 0)
		return 1; /* it cannot be executed */
	put_decimal(put_text(path, "/proc/self/fd/"), (uint32_t)p->fd, 0);
	return alloc_loads(CURRENT_DIR, path);
}

/* Returns a descriptor of the shared object or BY_PATH, when a program that is executed now with
 * this environment can be recorded, else -1. */
static int exec_follows(const struct program *program, char *const *env, int by_path)
{
	const struct recording *r = &state.recording;
	char path[PATH_BYTES];
	uint64_t status[32];
	int fd = -1;

	if (!r->lobby || !alloc_is_open() || only_lists(program, env))
		return -1;
	put_path(path);
	if (alloc_quiet || preloads_asan(env) || !program_loads(program, by_path))
		fd = -1;
	else if (!by_path)
		fd = open_object(path);
	else if (is_object(sys2(SYS_STAT, (uintptr_t)path, (uintptr_t)status), status))
		fd = BY_PATH;
	if (fd >= 0 && !is_reachable(r)) {
		if (fd > BY_PATH)
			sys2(SYS_CLOSE, (uint64_t)fd, 0);
		fd = -1;
	}
	if (fd < 0)
		__atomic_fetch_add(&r->lobby->refused, 1, __ATOMIC_RELAXED);
	return fd;
}

/* --- descry's variables --- */

/* Returns what is behind the library's path in a value of LD_PRELOAD. 0: it does not begin so. */
static const char *behind_ours(const char *preload)
{
	char path[PATH_BYTES];
	const char *behind;

	put_path(path);
	behind = wire_behind(preload, path);
	return behind && (!*behind || *behind == ':') ? behind : 0;
}

/* Returns the program's own value of LD_PRELOAD. 0: it has none, or this is another variable. */
static const char *preload_of(const char *variable)
{
	const char *value = wire_behind(variable, "LD_PRELOAD=");
	const char *behind = value ? behind_ours(value) : 0;

	if (!behind)
		return value;
	return *behind ? behind + 1 : 0;
}

static int is_our_preload(const char *variable)
{
	const char *value = wire_behind(variable, "LD_PRELOAD=");

	return value && behind_ours(value);
}

static int is_our_numbers(const char *variable)
{
	const char *p = wire_behind(variable, WIRE_ALLOC_ENV "=");
	char tracer[PATH_BYTES];

	while (p && *p >= '0' && *p <= '9')
		p++;
	put_decimal(put_text(tracer, ","), state.recording.tracer, ',');
	return p && wire_behind(p, tracer);
}

/* Compares texts, because another thread may have copied `environ` during popen(3). */
static int is_ours(const char *variable)
{
	return is_our_preload(variable) || is_our_numbers(variable);
}

static int has_ours(char *const *env)
{
	for (; env && *env; env++)
		if (is_ours(*env))
			return 1;
	return 0;
}

static uint32_t count_words(char *const *v, uint32_t most)
{
	uint32_t n = 0;

	while (v && n <= most && v[n])
		n++;
	return n;
}

static uint32_t preload_bytes(char *const *env, uint32_t n)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < n && env[i]; i++) {
		const char *p = preload_of(env[i]);

		bytes += p != 0; /* the colon in front of it */
		for (; p && *p && bytes <= PRELOAD_MAX; p++)
			bytes++;
	}
	return bytes;
}

/* Writes descry's number and those of the recording. Returns the end. */
static char *put_numbers(char *p, int fd)
{
	const struct recording *r = &state.recording;

	p = put_text(p, WIRE_ALLOC_ENV "=");
	p = put_decimal(p, (uint32_t)fd, ',');
	p = put_decimal(p, r->tracer, ',');
	p = put_decimal(p, r->object, ',');
	p = put_decimal(p, r->name, ',');
	p = put_decimal(p, r->device, ',');
	p = put_decimal(p, r->inode, ',');
	p = put_decimal(p, r->secret, ',');
	return put_decimal(p, r->proof, 0);
}

/* Writes the environment env[n] to `to` and texts of it to `text`: with descry's variables, or
 * without them when fd, of exec_follows(), is -1. */
static void put_environment(char **to, char *text, int fd, char *const *env, uint32_t n)
{
	char *numbers = text, *preload = fd < 0 ? text : put_numbers(text, fd), *p;
	int has_preload = fd >= 0;

	p = put_text(preload, "LD_PRELOAD=");
	if (fd == BY_PATH)
		p = put_path(p);
	else if (fd > BY_PATH)
		p = put_decimal(put_text(p, "/proc/self/fd/"), (uint32_t)fd, 0) - 1;
	*p = 0;
	for (uint32_t i = 0; i < n && env[i]; i++) {
		const char *others = preload_of(env[i]);

		if (others)
			p = put_text(has_preload ? put_text(p, ":") : p, others);
		else if (!is_ours(env[i]))
			*to++ = env[i];
		has_preload |= others != 0;
	}
	if (has_preload)
		*to++ = preload;
	if (fd >= 0)
		*to++ = numbers;
	*to = 0;
}

/* A copy of an environment: first its words, then descry's texts. */
struct copy {
	uint32_t n;     /* variables of the program's own */
	uint64_t bytes; /* of the copy; 0: none is made */
	void *room;     /* 0: on the stack */
	int fd;         /* of exec_follows() */
};

/* by_path: as for exec_follows(); such calls return. */
static struct copy copy_begin(const struct program *program, char *const *env, int by_path)
{
	struct copy c = { count_words(env, COPIED_MAX), 0, 0, -1 };
	uint32_t preload = c.n <= COPIED_MAX ? preload_bytes(env, c.n) : 0;

	if (c.n > COPIED_MAX || preload > PRELOAD_MAX)
		return c;
	c.fd = exec_follows(program, env, by_path);
	if (c.fd < 0 && (!state.recording.lobby || !has_ours(env)))
		return c;
	c.bytes = (c.n + 3ull) * sizeof(char *) + NUMBERS_BYTES + 2 * PATH_BYTES + preload;
	if (c.bytes <= STACK_MAX)
		return c;
	c.room = alloc_take_room(c.bytes, by_path);
	if (c.room)
		return c;
	if (c.fd > BY_PATH)
		sys2(SYS_CLOSE, (uint64_t)c.fd, 0);
	if (c.fd >= 0)
		__atomic_fetch_add(&state.recording.lobby->refused, 1, __ATOMIC_RELAXED);
	c.bytes = 0;
	c.fd = -1;
	return c;
}

static void copy_end(const struct copy *c)
{
	if (c->room)
		alloc_leave_room(c->room, c->bytes);
}

/* Writes the copy to `to`. */
static char *const *copy_put(const struct copy *c, void *to, int fd, char *const *env)
{
	char **words = to;

	put_environment(words, (char *)(words + c->n + 3), fd, env, c->n);
	return words;
}

/* Declares `with`: env, or a copy that has descry's variables when the program is recorded, and
 * else does not have them. */
#define WITH_VARIABLES(program, env, by_path) \
	const struct copy copy_ = copy_begin(program, env, by_path); \
	int follows = copy_.fd >= 0; \
	char *on_stack_[!copy_.room && copy_.bytes ? copy_.bytes / sizeof(char *) + 1 : 1]; \
	void *to_ = copy_.room ? copy_.room : on_stack_; \
	char *const *with = copy_.bytes ? copy_put(&copy_, to_, copy_.fd, env) : (env)

/* Takes back what a program that could not be executed would have had. */
static void exec_failed(int fd)
{
	if (fd >= 0)
		__atomic_fetch_sub(&state.recording.lobby->executed, 1, __ATOMIC_RELAXED);
	if (fd > BY_PATH)
		sys2(SYS_CLOSE, (uint64_t)fd, 0);
}

/* Counts the program before it begins; it may never come back from there. */
static void count_executed(int follows)
{
	if (follows)
		__atomic_fetch_add(&state.recording.lobby->executed, 1, __ATOMIC_RELAXED);
}

/* Returns true when the arguments and the environment have more bytes than a program may get. r:
 * what a function returned, which is an error's number for posix_spawn(3). */
static int is_too_big(int r)
{
	return r == TOO_BIG || (r < 0 && __errno_location && *__errno_location() == TOO_BIG);
}

/* A program that has no room for descry's variables gets the environment without them. */
#define EXEC(next, call, by_path, env, ...) \
	const struct program program_ = { __VA_ARGS__ }; \
	int r_; \
\
	if (!exec_next.next) \
		return exec_missing(); \
	WITH_VARIABLES(&program_, env, by_path); \
	count_executed(follows); \
	r_ = call; \
	if (r_) \
		exec_failed(copy_.fd); \
	if (follows && is_too_big(r_)) { \
		copy_put(&copy_, to_, -1, env); \
		__atomic_fetch_add(&state.recording.lobby->refused, 1, __ATOMIC_RELAXED); \
		r_ = call; \
	} \
	copy_end(&copy_); \
	return r_

/* --- the functions --- */

EXPORT int execve(const char *path, char *const *argv, char *const *env)
{
	EXEC(execve, exec_next.execve(path, argv, with), 0, env, CURRENT_DIR, path, 0, argv);
}

EXPORT int execvpe(const char *file, char *const *argv, char *const *env)
{
	EXEC(execvpe, exec_next.execvpe(file, argv, with), 0, env, BY_NAME, file, 0, argv);
}

EXPORT int fexecve(int fd, char *const *argv, char *const *env)
{
	EXEC(fexecve, exec_next.fexecve(fd, argv, with), 0, env, OF_FD, 0, fd, argv);
}

EXPORT int execveat(int fd, const char *path, char *const *argv, char *const *env, int flags)
{
	int of_fd = flags & EMPTY_PATH && path && !*path;

	EXEC(execveat, exec_next.execveat(fd, path, argv, with, flags), 0, env, of_fd ? OF_FD : fd,
	     path, fd, argv);
}

EXPORT int execv(const char *path, char *const *argv)
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const *argv)
{
	return execvpe(file, argv, environ);
}

EXPORT int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
		       char *const *argv, char *const *env)
{
	EXEC(posix_spawn, exec_next.posix_spawn(pid, path, actions, attributes, argv, with), 1, env,
	     CURRENT_DIR, path, 0, argv);
}

EXPORT int posix_spawnp(int *pid, const char *file, const void *actions, const void *attributes,
			char *const *argv, char *const *env)
{
	EXEC(posix_spawnp, exec_next.posix_spawnp(pid, file, actions, attributes, argv, with), 1,
	     env, BY_NAME, file, 0, argv);
}

/* Declares argv: `first` and the arguments behind it, up to a null pointer; on the stack, as in the
 * C library. */
#define COLLECT(first) \
	va_list list_; \
	uint32_t n_args_ = 1; \
\
	va_start(list_, first); \
	while (n_args_ < INT_MAX_ && va_arg(list_, char *)) \
		n_args_++; \
	va_end(list_); \
	if (n_args_ == INT_MAX_) \
		return too_many(); \
	char *argv[n_args_ + 1]; \
\
	va_start(list_, first); \
	argv[0] = (char *)(uintptr_t)first; \
	for (uint32_t i_ = 1; i_ <= n_args_; i_++) \
		argv[i_] = va_arg(list_, char *);

EXPORT int execl(const char *path, const char *first, ...)
{
	COLLECT(first)
	va_end(list_);
	return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	COLLECT(first)
	va_end(list_);
	return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	COLLECT(first)
	char *const *env = va_arg(list_, char *const *);

	va_end(list_);
	return execve(path, argv, env);
}

/* --- the shell --- */

static const struct program shell = { CURRENT_DIR, "/bin/sh" };

EXPORT int system(const char *command)
{
	int status;

	if (exec_next.system)
		return exec_next.system(command);
	if (!exec_next.posix_spawn)
		return exec_missing();
	/* as the C library finds out whether there is a shell */
	if (!command)
		return system("exit 0") == 0;
	WITH_VARIABLES(&shell, environ, 1);
	count_executed(follows);
	if (!alloc_run_shell(exec_next.posix_spawn, command, with, copy_.room, copy_.bytes,
			     &status))
		exec_failed(copy_.fd);
	return status;
}

/* What popen(3) puts into `environ`. The texts stay, because another thread may copy it. */
static struct {
	char *variables[VARIABLES_MAX + 3];
	char text[NUMBERS_BYTES + 2 * PATH_BYTES + PRELOAD_MAX];
	char **own;    /* the program's own environment, 0: nobody is in popen(3), */
	uint32_t n;    /* its variables, */
	char *preload; /* and its LD_PRELOAD, 0: it has none */
} lasting;

/* `environ` has the variables while any thread starts a shell in popen(3). The first puts them
 * there, and the last takes them out again. The words are zero in a forked child, whose other
 * threads are gone. */
static void lock_environ(void)
{
	while (__atomic_exchange_n(&state.page[PAGE_LOCK], 1, __ATOMIC_ACQUIRE))
		if (!alloc_quiet)
			sys2(SYS_SCHED_YIELD, 0, 0);
}

static void unlock_environ(void)
{
	__atomic_store_n(&state.page[PAGE_LOCK], 0, __ATOMIC_RELEASE);
}

/* Returns true when the shell that is started now gets the variables. */
static int enter_environ(void)
{
	uint32_t n = count_words(environ, VARIABLES_MAX);
	int follows = 0;

	if (!state.page || n > VARIABLES_MAX || preload_bytes(environ, n) > PRELOAD_MAX ||
	    exec_follows(&shell, environ, 1) != BY_PATH)
		return 0;
	lock_environ();
	n = count_words(environ, VARIABLES_MAX);
	/* by another thread, or in a copy that setenv(3) has made meanwhile */
	follows = n <= VARIABLES_MAX + 2 && has_ours(environ);
	if (!follows && !state.page[PAGE_CALLERS] && n <= VARIABLES_MAX &&
	    preload_bytes(environ, n) <= PRELOAD_MAX) {
		lasting.preload = 0;
		for (uint32_t i = 0; i < n; i++)
			if (preload_of(environ[i]))
				lasting.preload = environ[i];
		lasting.own = environ;
		lasting.n = n;
		put_environment(lasting.variables, lasting.text, BY_PATH, environ, n);
		__atomic_store_n(&environ, lasting.variables, __ATOMIC_RELEASE);
		follows = 1;
	}
	state.page[PAGE_CALLERS] += (uint32_t)follows;
	unlock_environ();
	count_executed(follows);
	/* another thread has put an environment of its own there meanwhile */
	if (!follows)
		__atomic_fetch_add(&state.recording.lobby->refused, 1, __ATOMIC_RELAXED);
	return follows;
}

/* Puts changes that other threads made meanwhile into the program's own environment. */
static void take_back(char **own, uint32_t n, char **during)
{
	char **to = own;

	for (uint32_t i = 0; i < n; i++) {
		char *variable = own[i];

		if (!preload_of(variable)) {
			while (*during && is_ours(*during))
				during++;
			if (!*during)
				continue;
			variable = *during++;
		}
		if (*to != variable)
			*to = variable;
		to++;
	}
	if (to != own + n)
		*to = 0;
}

/* Takes the variables out of a copy of lasting.variables. */
static void take_out(char **env)
{
	char **to = env;

	for (; *env; env++) {
		char *stays = !is_ours(*env)                            ? *env
			      : lasting.preload && is_our_preload(*env) ? lasting.preload
									: 0;

		if (!stays)
			continue;
		if (*to != stays) /* a program's own array may be in memory that nobody writes */
			*to = stays;
		to++;
	}
	if (*to)
		*to = 0;
}

void alloc_restore_environ(void)
{
	char **own = lasting.own;

	if (own && environ == lasting.variables) {
		__atomic_store_n(&environ, own, __ATOMIC_RELEASE);
		take_back(own, lasting.n, lasting.variables);
	} else if (own && environ) { /* 0: clearenv(3) */
		take_out(environ);
	}
	/* last: a child may be forked meanwhile, in which this runs again */
	__atomic_store_n(&lasting.own, 0, __ATOMIC_RELEASE);
}

static void leave_environ(void)
{
	lock_environ();
	/* 0: a signal handler has forked, and this is the child */
	if (state.page[PAGE_CALLERS])
		state.page[PAGE_CALLERS]--;
	if (!state.page[PAGE_CALLERS])
		alloc_restore_environ();
	unlock_environ();
}

EXPORT void *popen(const char *command, const char *mode)
{
	int follows;
	void *r;

	if (!exec_next.popen) {
		exec_missing();
		return 0;
	}
	follows = enter_environ();
	r = exec_next.popen(command, mode);
	if (follows)
		leave_environ();
	if (follows && !r)
		exec_failed(BY_PATH);
	return r;
}
