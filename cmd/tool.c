/* Functions that several commands share: messages, numbers, output files, signals. */
#define _GNU_SOURCE
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sys/wait.h>

#include "base/changed.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/outfile.h"
#include "base/term.h"

static const char *tool_name = "descry";
static bool reader_gone;
static int output_error; /* errno value */

void tool_begin(const char *name)
{
	tool_name = name;
}

int tool_wrong(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", tool_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\n", stderr);
	return 2;
}

int tool_hint(void)
{
	fprintf(stderr, "try %s --help\n", tool_name);
	return 2;
}

int tool_failed(const struct err *e)
{
	if (!tool_reader_gone(e))
		tool_wrong("%s", e->text);
	return 1;
}

int tool_pid(const char *what, const char *text, pid_t *ret)
{
	int64_t pid;

	if (!number_parse(text, 1, INT32_MAX, &pid))
		return tool_wrong("%s wants a process id, not %s", what, text);
	*ret = (pid_t)pid;
	return 0;
}

int tool_integer(const char *option, const char *text, int64_t min, int64_t max, int64_t *ret)
{
	if (!number_parse(text, min, max, ret))
		return tool_wrong("%s wants a whole number from %lld to %lld, not %s", option,
				  (long long)min, (long long)max, text);
	return 0;
}

int tool_number(const char *option, const char *text, double min, double max, double *ret)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= min && v <= max))
		return tool_wrong("%s wants a number from %g to %g, not %s", option, min, max,
				  text);
	*ret = v;
	return 0;
}

struct err *tool_can_write(const char *path)
{
	cleanup_free char *copy = path ? xstrdup(path) : NULL;
	struct stat st;

	if (path && !stat(path, &st) && S_ISDIR(st.st_mode))
		return err_errno(EISDIR, "%s: open", path);
	if (!path || !faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		return NULL;
	if (errno == ENOENT && !faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS))
		return NULL;
	return err_errno(errno, "%s: open", path);
}

static struct err *out_begin(struct out *o, const char *path, mode_t mode, FILE **ret)
{
	*ret = path ? term_file(outfile_open(path, mode)) : NULL;
	if (path && !*ret)
		return err_errno(errno, "%s: open", path);
	out_init(o, *ret ? *ret : stdout);
	return NULL;
}

struct err *tool_out_begin(struct out *o, const char *path, FILE **ret)
{
	return out_begin(o, path, OUTFILE_SHARED, ret);
}

struct err *tool_out_begin_private(struct out *o, const char *path, FILE **ret)
{
	return out_begin(o, path, OUTFILE_PRIVATE, ret);
}

struct err *tool_out_end(struct out *o, const char *path, FILE *file)
{
	struct err *e = out_flush(o);

	out_fini(o);
	if (file && fclose(file) && !e)
		return err_errno(errno, "%s: close", path);
	return e && file ? err_wrap(e, "%s", path) : e;
}

bool tool_reader_gone(const struct err *e)
{
	if (e->code == EPIPE)
		reader_gone = true;
	return e->code == EPIPE;
}

static void ignore(int sig)
{
}

void tool_ignore(int sig)
{
	/* Sets a handler and not SIG_IGN, because exec(2) removes a handler but passes SIG_IGN on
	 * to the started program. */
	struct sigaction sa = { .sa_handler = ignore, .sa_flags = SA_RESTART };

	sigaction(sig, &sa, NULL);
}

static void (*end_handler)(int);

/* A signal that comes with another one does not count, because timeout(1) signals both this process
 * and its process group. The third signal ends descry as any other program, whatever it does: it
 * may wait for a reader of its output, or look at a large file. */
static void on_end(int sig)
{
	enum { APART_NS = 200000000, AT_ONCE = 3 };
	static volatile sig_atomic_t n;
	static uint64_t last;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const bool apart = !n || now - last >= APART_NS;
	const int before = errno;

	if (apart) {
		last = now;
		if (++n == AT_ONCE) {
			signal(sig, SIG_DFL);
			raise(sig);
		}
		end_handler(sig);
	}
	errno = before;
}

void tool_catch_ends(void (*fn)(int))
{
	struct sigaction sa = { .sa_handler = on_end },
			 before; /* no SA_RESTART: signals end waits */

	end_handler = fn;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* nohup(1): neither descry nor the command ends with the terminal */
	if (sigaction(SIGHUP, NULL, &before) || before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	tool_ignore(SIGPIPE);
}

void tool_catch(void (*fn)(int))
{
	struct sigaction sa = { .sa_handler = fn };

	tool_catch_ends(fn);
	sigaction(SIGCHLD, &sa, NULL);
}

/* Opens closed standard descriptors. Otherwise the next opened file, map or ring would get such a
 * descriptor, and output would be written there. The replacement cannot be written (0) or read (1,
 * 2), so users of the descriptor still get EBADF. Started programs find it closed. */
static void hold_closed(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) != fd)
			return;
}

void tool_start(void)
{
	child_begin();
	hold_closed();
	tool_ignore(SIGXFSZ);
	limits_hold_memory();
	term_begin();
}

void tool_check_output(void)
{
	if (!output_error && ferror(stdout))
		output_error = errno;
}

/* Reports files that changed while they were read. Their data is missing from the output, and
 * counted. */
static void say_changed(void)
{
	for (uint32_t i = 0; changed_path(i); i++)
		if (changed_untold(i))
			tool_wrong(
				"%s: the file was changed while it was read: names, lines, types or unwind tables of it are missing",
				changed_path(i));
}

int tool_end(int status)
{
	struct err *e = reader_gone ? NULL : io_flush(stdout, "standard output");

	if (e && output_error) {
		err_free(e);
		e = err_errno(output_error, "standard output: write");
	}
	if (e) {
		status = tool_failed(e);
		err_free(e);
	}
	say_changed();
	if (reader_gone) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	return status;
}

int tool_command_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

char *tool_quote(char *const *words)
{
	struct out o;
	char *text;

	out_init(&o, NULL);
	for (; *words; words++) {
		out_char(&o, '\'');
		for (const char *s = *words; *s; s++)
			if (*s == '\'')
				out_str(&o, "'\\''");
			else
				out_char(&o, *s);
		out_str(&o, words[1] ? "' " : "'");
	}
	out_char(&o, '\0');
	text = xstrdup(o.v);
	out_fini(&o);
	return text;
}
