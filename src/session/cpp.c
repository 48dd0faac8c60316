/* -C: runs the C preprocessor, the user's cpp(1). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "base/io.h"
#include "session/session.h"

/* A few lines can include /dev/zero, or name a macro that is twice another one, forty times. */
enum { MEMORY_MAX = 1 << 30, CPU_SECONDS = 60, OUTPUT_MAX = 64 << 20 };

/* Writes the program to a file of memory, without a #! line. The file's first line gives the
 * script's name for messages. */
static struct err *temporary(const char *name, const char *text, size_t len, int fd)
{
	cleanup_free char *head = xmalloc(2 * strlen(name) + 16);
	char *to = stpcpy(head, "#line 1 \"");

	for (const char *s = name; *s; s++) {
		if (*s == '"' || *s == '\\')
			*to++ = '\\';
		*to++ = *s;
	}
	strcpy(to, "\"\n");
	if (len >= 2 && text[0] == '#' && text[1] == '!') {
		const char *end = memchr(text, '\n', len);

		len -= end ? (size_t)(end - text) : len;
		text = end;
	}
	if (fd < 0 || !io_write(fd, head, strlen(head)) || !io_write(fd, text, len))
		return err_errno(errno, "cannot write the program for the preprocessor");
	return NULL;
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
	} while ((n > 0 && out.n <= OUTPUT_MAX) || (n < 0 && errno == EINTR));
	vec_push(&out, '\0');
	*ret_text = out.v;
	*ret_len = out.n - 1;
	return out.n <= OUTPUT_MAX ? NULL
				   : err_new(E2BIG, "the preprocessed program has more than %d MB",
					     OUTPUT_MAX >> 20);
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
	cleanup_close int input = memfd_create("descry-cpp", MFD_CLOEXEC);
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", input);
	cleanup_free char *dir = xstrdup(name);
	VEC(const char *) argv = { 0 };
	struct err *e = temporary(name, text, len, input);
	struct child c = {
		.keep = &input, .nkeep = 1, .memory = MEMORY_MAX, .cpu_seconds = CPU_SECONDS
	};
	int fds[2], status;
	bool none;
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
		vec_fini(&argv);
		return err_errno(errno, "pipe");
	}
	c.argv = (char *const *)argv.v;
	c.out = fds[1];
	pid = child_start(&c);
	none = pid < 0;
	close(fds[1]);
	e = collect(fds[0], ret_text, ret_len);
	close(fds[0]);
	status = none ? -1 : child_wait(pid);
	vec_fini(&argv);
	if (!e && status)
		e = none ? err_new(ENOENT, "cannot run %s, which -C needs: install the package cpp",
				   cpp)
		    : s->o.dtrace
			    ? err_new(EINVAL,
				      "failed to compile script %s: Preprocessor failed to process input program",
				      name)
			    : err_new(EINVAL, "%s failed on %s", cpp, name);
	if (e) {
		free(*ret_text);
		*ret_text = NULL;
	}
	return e;
}
