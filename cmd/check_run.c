/* Runs descry itself, for the trials and costs of descry check. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/mem.h"
#include "check.h"

const char *check_self(void)
{
	static char path[PATH_MAX];
	ssize_t n;

	if (*path)
		return path;
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	/* -c splits its words at spaces and quotes, so a path with other characters needs another
	 * name. */
	if (n <= 0 ||
	    path[strspn(path,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+")])
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)getpid());
	return path;
}

/* The child has its own process group and does not get the terminal's ^C, so it ends when this
 * process ends. */
static pid_t check_run_child(const char *const *args, int out, int errors)
{
	static const char *const plain[] = { "LC_ALL=C", "NO_COLOR=1" };
	cleanup_free char **env = child_env(NULL, plain, ARRAY_SIZE(plain));
	struct child c = { .file = "/proc/self/exe",
			   .env = env,
			   .in = CHILD_NULL,
			   .out = out,
			   .err = errors,
			   .session = CHILD_GROUP,
			   .at_end = SIGTERM };
	VEC(char *) argv = { 0 };
	pid_t pid;

	vec_push(&argv, (char *)"descry");
	for (; *args; args++)
		vec_push(&argv, (char *)*args);
	vec_push(&argv, NULL);
	c.argv = argv.v;
	pid = child_start(&c);
	if (pid < 0)
		dprintf(errors, "descry: starting %s: %s\n", check_self(), strerror(errno));
	vec_fini(&argv);
	return pid;
}

/* Reads both pipes until they end or time is up. */
static void gather(int fds[2], char **texts[2], uint64_t end)
{
	size_t n[2] = { 0 };

	for (int i = 0; i < 2; i++)
		*texts[i] = xcalloc(1, 1);
	while (fds[0] >= 0 || fds[1] >= 0) {
		struct pollfd p[2] = { { fds[0], POLLIN, 0 }, { fds[1], POLLIN, 0 } };
		uint64_t now = now_ns();

		if (now >= end || poll(p, 2, (int)((end - now) / 1000000) + 1) <= 0)
			return;
		for (int i = 0; i < 2; i++) {
			char buf[4096];
			ssize_t got;

			if (!p[i].revents)
				continue;
			got = read(fds[i], buf, sizeof(buf));
			if (got <= 0) {
				close(fds[i]);
				fds[i] = -1;
				continue;
			}
			*texts[i] = xrealloc(*texts[i], n[i] + (size_t)got + 1);
			memcpy(*texts[i] + n[i], buf, (size_t)got);
			n[i] += (size_t)got;
			(*texts[i])[n[i]] = '\0';
		}
	}
}

void check_run(const char *const *args, unsigned seconds, struct check_run *ret)
{
	int out[2], errors[2], fds[2], status = 0;
	uint64_t end = now_ns() + seconds * UINT64_C(1000000000);
	pid_t pid;

	*ret = (struct check_run){ .status = -1 };
	if (pipe2(out, O_CLOEXEC) < 0)
		return;
	if (pipe2(errors, O_CLOEXEC) < 0) {
		close(out[0]);
		close(out[1]);
		return;
	}
	check_self();
	pid = check_run_child(args, out[1], errors[1]);
	close(out[1]);
	close(errors[1]);
	fds[0] = out[0];
	fds[1] = errors[0];
	gather(fds, (char **[2]){ &ret->out, &ret->errors }, end);
	if (fds[0] >= 0 || fds[1] >= 0) {
		/* Time is up. SIGTERM comes before SIGKILL, because a tracer then removes its
		 * changes. */
		if (pid > 0)
			kill(pid, SIGTERM);
		free(ret->out);
		free(ret->errors);
		gather(fds, (char **[2]){ &ret->out, &ret->errors },
		       now_ns() + UINT64_C(3000000000));
		if (pid > 0)
			kill(-pid, SIGKILL);
		free(ret->errors);
		ret->errors = xasprintf("did not end within %u seconds", seconds);
		status = -1;
	}
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (pid > 0) {
		const int how = child_wait(pid);

		if (!status)
			ret->status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
	}
}

void check_run_fini(struct check_run *r)
{
	free(r->out);
	free(r->errors);
}

/* Returns the message in "descry: why" or "<command line>:1:1: note: why", or the whole text. */
static const char *without_place(const char *line)
{
	const char *p = strstr(line, ": error: ");

	if (p)
		return p + 9;
	p = strstr(line, ": note: ");
	if (p)
		return p + 8;
	return !strncmp(line, "descry: ", 8) ? line + 8 : line;
}

char *check_reason(const struct check_run *r)
{
	const char *text = r->errors ? r->errors : "", *note = strstr(text, ": note: "), *why;
	size_t n;

	/* A note has the reason why no probe matched; the message before it only reports that. */
	if (note)
		while (note > text && note[-1] != '\n')
			note--;
	why = without_place(note ? note : text);
	n = strcspn(why, "\n");
	return n ? xstrndup(why, n)
		 : xasprintf("it ended with status %d and without a message", r->status);
}
