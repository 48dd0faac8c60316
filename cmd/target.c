#define _GNU_SOURCE
#include "target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "program/object/object.h"

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

static struct err *entry_point(pid_t pid, uint64_t *ret)
{
	cleanup_free char *path = xasprintf("/proc/%d/auxv", (int)pid);
	FILE *f = fopen(path, "re");
	uint64_t pair[2];

	*ret = 0;
	while (f && fread(pair, sizeof(pair), 1, f) == 1)
		if (pair[0] == AT_ENTRY)
			*ret = pair[1];
	if (f)
		fclose(f);
	return *ret ? NULL : err_new(ENOENT, "%s: no entry point", path);
}

/* Lets it run until it stops for SIGTRAP; other signals are its own. */
static struct err *run_to_trap(pid_t pid)
{
	int status, sig = 0;

	for (;;) {
		if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)sig) < 0 ||
		    waitpid(pid, &status, 0) < 0)
			return err_errno(errno, "running process %d to its entry point", (int)pid);
		if (!WIFSTOPPED(status))
			return err_new(ECHILD, "process %d ended before it reached its entry point",
				       (int)pid);
		sig = WSTOPSIG(status);
		if (sig == SIGTRAP)
			return NULL;
	}
}

/* Where main() lies: its symbol's value, moved as the entry point is. */
static struct err *main_function(pid_t pid, uint64_t *ret)
{
	cleanup_free char *path = xasprintf("/proc/%d/exe", (int)pid);
	struct object *o = NULL;
	uint64_t entry, value = 0;
	Elf64_Ehdr head;
	struct err *e = entry_point(pid, &entry);
	FILE *f;

	if (e)
		return e;
	f = fopen(path, "re");
	if (!f || fread(&head, sizeof(head), 1, f) != 1)
		e = err_errno(errno, "%s", path);
	if (f)
		fclose(f);
	if (e)
		return e;
	e = object_open(path, &o);
	if (e)
		return e;
	if (!object_symbol_value(o, "main", &value))
		e = err_new(ENOENT, "evaltime: the program has no symbol \"main\"; evaltime=preinit "
				    "stops at its entry point");
	object_free(o);
	*ret = entry - head.e_entry + value;
	return e;
}

static struct err *run_to(struct target *t, uint64_t entry)
{
	struct user_regs_struct regs;
	struct err *e;
	long word;
	int status;

	/* With a breakpoint in it the process must not outlive us. */
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, t->pid, (void *)entry, NULL);
	if (errno || ptrace(PTRACE_SETOPTIONS, t->pid, NULL, (void *)PTRACE_O_EXITKILL) < 0 ||
	    ptrace(PTRACE_POKETEXT, t->pid, (void *)entry, (void *)((word & ~0xffl) | 0xcc)) < 0)
		return err_errno(errno, "stopping process %d at its entry point", (int)t->pid);
	e = run_to_trap(t->pid);
	if (e)
		return e;
	if (ptrace(PTRACE_GETREGS, t->pid, NULL, &regs) < 0)
		return err_errno(errno, "registers of process %d", (int)t->pid);
	regs.rip = entry;
	/* It stays stopped as by kill -STOP, so that others can take hold of it. */
	if (ptrace(PTRACE_POKETEXT, t->pid, (void *)entry, (void *)word) < 0 ||
	    ptrace(PTRACE_SETREGS, t->pid, NULL, &regs) < 0 ||
	    ptrace(PTRACE_DETACH, t->pid, NULL, (void *)SIGSTOP) < 0 ||
	    waitpid(t->pid, &status, WUNTRACED) < 0)
		return err_errno(errno, "stopping process %d at its entry point", (int)t->pid);
	t->at_entry = true;
	return NULL;
}

struct err *target_to_entry(struct target *t)
{
	struct err *e;
	uint64_t entry;

	if (!t->command || !t->stopped || t->at_entry)
		return NULL;
	e = entry_point(t->pid, &entry);
	return e ? e : run_to(t, entry);
}

struct err *target_to_main(struct target *t)
{
	struct err *e;
	uint64_t address;

	if (!t->command || !t->stopped || t->at_entry)
		return NULL;
	e = main_function(t->pid, &address);
	return e ? e : run_to(t, address);
}

void target_release(struct target *t)
{
	if (!t->stopped)
		return;
	if (t->at_entry)
		kill(t->pid, SIGCONT);
	else
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
