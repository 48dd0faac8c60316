/* Starts programs. See child.h. */
#define _GNU_SOURCE
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/procdir.h"

enum {
	INHERITED_MAX = 256,
	CLOEXEC_RANGE = 4, /* CLOSE_RANGE_CLOEXEC, since Linux 5.11 */
};

/* --- descriptors --- */

static struct {
	bool known; /* else descry is a library, and its program's descriptors are not descry's */
	int fds[INHERITED_MAX];
	uint32_t n;
} inherited;

void child_begin(void)
{
	cleanup_dir DIR *d = opendir("/proc/self/fd");

	inherited.known = d != NULL;
	for (int fd; procdir_next(d, &fd);) {
		const int flags = fcntl(fd, F_GETFD);

		if (fd <= STDERR_FILENO || flags < 0 || flags & FD_CLOEXEC)
			continue;
		if (inherited.n == INHERITED_MAX) {
			inherited.known = false;
			return;
		}
		inherited.fds[inherited.n++] = fd;
	}
}

/* Returns the lowest of n descriptors from `from` on; UINT32_MAX: none. */
static uint32_t lowest(const int *fds, uint32_t n, uint32_t from)
{
	uint32_t low = UINT32_MAX;

	for (uint32_t i = 0; i < n; i++)
		if (fds[i] >= 0 && (uint32_t)fds[i] >= from && (uint32_t)fds[i] < low)
			low = (uint32_t)fds[i];
	return low;
}

/* Closes, by flags, all descriptors behind the standard ones but those of two lists. Where the
 * kernel cannot do this, each of descry's has O_CLOEXEC all the same. */
static void close_others(const int *a, uint32_t na, const int *b, uint32_t nb, unsigned flags)
{
	for (uint32_t from = STDERR_FILENO + 1, next; from < INT32_MAX; from = next + 1) {
		const uint32_t x = lowest(a, na, from), y = lowest(b, nb, from);

		next = x < y ? x : y;
		if (next > from)
			(void)syscall(SYS_close_range, from, next - 1, flags);
		if (next == UINT32_MAX)
			return;
	}
}

void child_close_files(const int *keep, uint32_t n)
{
	close_others(keep, n, NULL, 0, 0);
}

/* Makes `from` the descriptor `to`. */
static bool put_file(int from, int to)
{
	if (!from)
		return true;
	if (from == CHILD_NULL)
		from = open("/dev/null", O_RDWR | O_CLOEXEC);
	return from == to ? !fcntl(to, F_SETFD, 0) : dup2(from, to) == to;
}

static bool put_files(const struct child *c)
{
	if (inherited.known)
		close_others(inherited.fds, inherited.n, c->keep, c->nkeep, CLOEXEC_RANGE);
	for (uint32_t i = 0; i < c->nkeep; i++)
		if (fcntl(c->keep[i], F_SETFD, 0))
			return false;
	return put_file(c->in, STDIN_FILENO) && put_file(c->out, STDOUT_FILENO) &&
	       put_file(c->err, STDERR_FILENO);
}

/* --- limits, signals, the user --- */

static void limit(int kind, rlim_t most)
{
	struct rlimit l;

	if (!most || getrlimit(kind, &l))
		return;
	l.rlim_cur = l.rlim_cur < most ? l.rlim_cur : most;
	(void)setrlimit(kind, &l);
}

static void reset_signals(void)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	struct sigaction sa;

	for (int sig = 1; sig < NSIG; sig++)
		if (!sigaction(sig, NULL, &sa) && sa.sa_handler != SIG_IGN &&
		    sa.sa_handler != SIG_DFL)
			(void)sigaction(sig, &by_default, NULL);
}

/* By system calls: the C library would change the user of all threads of this process, whose
 * memory the child may have. */
static bool become(const struct child_user *u)
{
	return !syscall(SYS_setgroups, u->ngroups, u->groups) &&
	       !syscall(SYS_setresgid, u->gid, u->gid, u->gid) &&
	       !syscall(SYS_setresuid, u->uid, u->uid, u->uid);
}

/* Everything before the program, in the child. The child may have the memory of its parent, which
 * waits for it. */
static bool prepare(const struct child *c)
{
	reset_signals();
	if (c->session == CHILD_GROUP && setpgid(0, 0))
		return false;
	limits_restore();
	limit(RLIMIT_DATA, c->memory);
	limit(RLIMIT_CPU, c->cpu_seconds);
	if (!put_files(c) || (c->user && !become(c->user)))
		return false;
	/* Another user's program must not type into this terminal, so it gets a session without
	 * one. It may still read from and write to it. */
	if ((c->session == CHILD_SESSION || c->user) && setsid() < 0)
		return false;
	return !c->at_end || !prctl(PR_SET_PDEATHSIG, c->at_end);
}

static char *const *env_of(const struct child *c)
{
	return c->env ? c->env : c->user ? c->user->env : environ;
}

static const char *file_of(const struct child *c)
{
	return c->file ? c->file : c->argv[0];
}

void child_exec(const struct child *c)
{
	if (!prepare(c))
		return;
	environ = (char **)env_of(c);
	execvp(file_of(c), c->argv);
}

/* The child has the memory of this process until it executes the program, and this thread waits
 * meanwhile: a copy of all page tables, as fork(2) makes, would take milliseconds. */
pid_t child_start(const struct child *c)
{
	const pid_t parent = getpid();
	volatile int error = 0;
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (pid == 0) {
		if (prepare(c) && (!c->at_end || getppid() == parent) &&
		    !sigprocmask(SIG_SETMASK, &before, NULL))
			execvpe(file_of(c), c->argv, env_of(c));
		error = errno;
		_exit(127);
	}
	if (pid < 0)
		error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid > 0 && error)
		child_wait(pid);
	errno = error;
	return error ? -1 : pid;
}

int child_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* --- environments --- */

static bool has_name(const char *variable, const char *name, size_t n)
{
	return !strncmp(variable, name, n) && variable[n] == '=';
}

char **child_env(char *const *base, const char *const *set, uint32_t n)
{
	VEC(char *) env = { 0 };

	for (char *const *e = base ? base : environ; e && *e; e++) {
		uint32_t i = 0;

		while (i < n && !has_name(*e, set[i], strcspn(set[i], "=")))
			i++;
		if (i == n)
			vec_push(&env, *e);
	}
	for (uint32_t i = 0; i < n; i++)
		if (strchr(set[i], '='))
			vec_push(&env, (char *)set[i]);
	vec_push(&env, NULL);
	return env.v;
}

const char *child_env_get(char *const *env, const char *name)
{
	const size_t n = strlen(name);

	for (; env && *env; env++)
		if (has_name(*env, name, n))
			return *env + n + 1;
	return NULL;
}

static char **login_env(const struct passwd *pw)
{
	VEC(char *) env = { 0 };

	vec_push(&env, xasprintf("HOME=%s", pw->pw_dir));
	vec_push(&env, xasprintf("USER=%s", pw->pw_name));
	vec_push(&env, xasprintf("LOGNAME=%s", pw->pw_name));
	vec_push(&env, xasprintf("SHELL=%s", *pw->pw_shell ? pw->pw_shell : "/bin/sh"));
	vec_push(&env, xasprintf("PATH=%s/usr/local/bin:/usr/bin:/bin",
				 pw->pw_uid ? "" : "/usr/local/sbin:/usr/sbin:/sbin:"));
	for (char **e = environ; e && *e; e++)
		if (has_name(*e, "TERM", 4) || has_name(*e, "LANG", 4) || !strncmp(*e, "LC_", 3))
			vec_push(&env, xstrdup(*e));
	vec_push(&env, NULL);
	return env.v;
}

struct child_user *child_user_new(const char *name)
{
	const struct passwd *pw = getpwnam(name);
	struct child_user *u;

	if (!pw)
		return NULL;
	u = xcalloc(1, sizeof(*u));
	u->name = xstrdup(name);
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	u->env = login_env(pw);
	getgrouplist(name, u->gid, NULL, &u->ngroups);
	u->groups = xcalloc((size_t)u->ngroups + 1, sizeof(*u->groups));
	if (getgrouplist(name, u->gid, u->groups, &u->ngroups) < 0)
		u->ngroups = 0; /* it was changed meanwhile */
	return u;
}

void child_user_free(struct child_user *u)
{
	if (!u)
		return;
	for (char **e = u->env; *e; e++)
		free(*e);
	free(u->env);
	free(u->name);
	free(u->groups);
	free(u);
}
