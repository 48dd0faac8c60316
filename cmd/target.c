#define _GNU_SOURCE
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/mem.h"

/* Words of a command line: blanks separate, '...' and "..." keep blanks, a backslash takes the next character as it is. */
static char **split(const char *s, char **ret_buf)
{
	char *out = xmalloc(strlen(s) + 1), *w = out;
	VEC(char *) words = { 0 };

	*ret_buf = out;
	while (*s) {
		char quote = 0;

		while (*s == ' ' || *s == '\t' || *s == '\n')
			s++;
		if (!*s)
			break;
		vec_push(&words, w);
		for (; *s && (quote || !strchr(" \t\n", *s)); s++) {
			if (quote ? *s == quote : *s == '\'' || *s == '"')
				quote = quote ? 0 : *s;
			else if (*s == '\\' && s[1] && quote != '\'')
				*w++ = *++s;
			else
				*w++ = *s;
		}
		*w++ = '\0';
	}
	vec_push(&words, NULL);
	return words.v;
}

static void child(char **words, int report)
{
	int code;

	signal(SIGINT, SIG_DFL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
		execvp(words[0], words);
	code = errno;
	if (write(report, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

struct err *target_start(const char *command, struct target *ret)
{
	cleanup_free char *buf = NULL;
	cleanup_free char **words = split(command, &buf);
	int fds[2], status, code;
	pid_t pid;
	ssize_t n;

	if (!words[0])
		return err_new(EINVAL, "-c wants a command");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(errno, "pipe");
	pid = fork();
	if (pid == 0)
		child(words, fds[1]);
	code = errno;
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return err_errno(code, "cannot start %s", words[0]);
	}
	/* The exec closes the pipe; a failed one sends its errno. */
	n = read(fds[0], &code, sizeof(code));
	close(fds[0]);
	if (waitpid(pid, &status, 0) < 0)
		return err_errno(errno, "cannot wait for %s", words[0]);
	if (n == sizeof(code))
		return err_errno(code, "cannot run %s", words[0]);
	if (!WIFSTOPPED(status))
		return err_new(ECHILD, "%s ended before it could be traced", words[0]);
	*ret = (struct target){ .pid = pid, .command = true, .stopped = true, .pidfd = -1 };
	return NULL;
}

struct err *target_grab(pid_t pid, struct target *ret)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 && errno == ESRCH)
		return err_new(ESRCH, "there is no process %d", (int)pid);
	if (fd < 0 && kill(pid, 0) < 0 && errno == ESRCH)
		return err_new(ESRCH, "there is no process %d", (int)pid);
	*ret = (struct target){ .pid = pid, .pidfd = fd };
	return NULL;
}

void target_release(struct target *t)
{
	if (!t->stopped)
		return;
	ptrace(PTRACE_DETACH, t->pid, NULL, NULL);
	t->stopped = false;
}

bool target_gone(struct target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

	if (t->gone)
		return true;
	if (t->command)
		t->gone = waitpid(t->pid, NULL, WNOHANG) == t->pid;
	else if (t->pidfd >= 0)
		t->gone = poll(&p, 1, 0) > 0;
	else
		t->gone = kill(t->pid, 0) < 0 && errno == ESRCH;
	return t->gone;
}

void target_drop(struct target *t, bool end)
{
	if (t->command && !t->gone && (t->stopped || end)) {
		kill(t->pid, t->stopped ? SIGKILL : SIGTERM);
		if (t->stopped)
			waitpid(t->pid, NULL, 0);
	}
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
}
