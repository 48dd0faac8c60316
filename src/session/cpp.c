/* -C: runs the C preprocessor, the user's cpp(1). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/io.h"
#include "session/session.h"

static struct err *write_all(int fd, const char *path, const char *text, size_t len)
{
	return io_write(fd, text, len) ? NULL : err_errno(errno, "cannot write %s", path);
}

/* Writes the program to a file of its own, without a #! line. The file's first line gives the
 * script's name for messages. */
static struct err *temporary(const char *name, const char *text, size_t len, char *path)
{
	cleanup_close int fd = mkstemp(path);
	cleanup_free char *head = xmalloc(2 * strlen(name) + 16);
	char *to = stpcpy(head, "#line 1 \"");
	struct err *e;

	if (fd < 0)
		return err_errno(errno, "cannot make a temporary file for the preprocessor");
	for (const char *s = name; *s; s++) {
		if (*s == '"' || *s == '\\')
			*to++ = '\\';
		*to++ = *s;
	}
	strcpy(to, "\"\n");
	e = write_all(fd, path, head, strlen(head));
	if (len >= 2 && text[0] == '#' && text[1] == '!') {
		const char *end = memchr(text, '\n', len);

		len -= end ? (size_t)(end - text) : len;
		text = end;
	}
	return e ?: write_all(fd, path, text, len);
}

static struct err *collect(int fd, char **ret_text, size_t *ret_len)
{
	VEC(char) out = { 0 };
	ssize_t n;

	do {
		vec_reserve(&out, 65536);
		n = read(fd, out.v + out.n, 65535);
		if (n > 0)
			out.n += (uint32_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	vec_push(&out, '\0');
	*ret_text = out.v;
	*ret_len = out.n - 1;
	return NULL;
}

struct err *session_preprocess(const struct session *s, const char *name, const char *text,
			       size_t len, char **ret_text, size_t *ret_len)
{
	const struct options *o = &s->options;
	const char *cpp = o->v[OPT_CPPPATH].text && *o->v[OPT_CPPPATH].text ? o->v[OPT_CPPPATH].text
									    : "cpp";
	/* stdc=a|c|s|t. The preprocessor of strict ISO C predefines no names in the user's name
	 * space, such as unix or linux. It warns of __STDC__ however that is defined. */
	static const char *const dialects[4][2] = {
		{ NULL },
		{ "-std=c17" },
		{ "-traditional-cpp" },
		{ "-w", "-D__STDC__=0" },
	};
	int64_t dialect = opt_num(o, OPT_STDC);
	char path[] = "/tmp/descry-cpp-XXXXXX";
	cleanup_free char *dir = xstrdup(name);
	VEC(const char *) argv = { 0 };
	struct err *e = temporary(name, text, len, path);
	int fds[2], status;
	pid_t pid;

	if (e)
		return e;
	vec_push(&argv, cpp);
	/* Every DTrace defines these macros. GNU's extensions of C are not D. */
	vec_push(&argv, "-D__linux");
	vec_push(&argv, "-D__unix");
	vec_push(&argv, "-D__SVR4");
	vec_push(&argv, "-U__GNUC__");
	vec_push(&argv, "-D__SUNW_D=1");
	vec_push(&argv, "-D__SUNW_D_VERSION=0x02000000");
	vec_push(&argv, "-D__DESCRY__=1");
	for (uint32_t i = 0; i < ARRAY_SIZE(dialects[0]) && dialects[dialect][i]; i++)
		vec_push(&argv, dialects[dialect][i]);
	for (uint32_t i = 0; i < s->o.ncpp_args; i++)
		vec_push(&argv, s->o.cpp_args[i]);
	/* "file.h" is searched beside the script, or in the working directory. */
	if (strrchr(dir, '/')) {
		strrchr(dir, '/')[1] = 0;
		vec_push(&argv, "-iquote");
		vec_push(&argv, dir);
	}
	vec_push(&argv, "-iquote");
	vec_push(&argv, ".");
	vec_push(&argv, path);
	vec_push(&argv, NULL);
	if (pipe2(fds, O_CLOEXEC) < 0) {
		unlink(path);
		vec_fini(&argv);
		return err_errno(errno, "pipe");
	}
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		execvp(cpp, (char *const *)argv.v);
		_exit(127);
	}
	close(fds[1]);
	e = collect(fds[0], ret_text, ret_len);
	close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		status = -1;
	unlink(path);
	vec_fini(&argv);
	if (!e && status) {
		free(*ret_text);
		*ret_text = NULL;
		e = WIFEXITED(status) && WEXITSTATUS(status) == 127
			    ? err_new(ENOENT,
				      "cannot run %s, which -C needs: install the package cpp", cpp)
		    : s->o.dtrace
			    ? err_new(EINVAL,
				      "failed to compile script %s: Preprocessor failed to process input program",
				      name)
			    : err_new(EINVAL, "%s failed on %s", cpp, name);
	}
	return e;
}
