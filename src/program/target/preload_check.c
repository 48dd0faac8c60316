/* Checks that the dynamic linker will load a library into a command (LD_PRELOAD). */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "target_private.h"

enum { DEPTH = 4 };

struct search {
	const char *what;
	char **ret_path;
};

static struct err *cannot(const struct search *s, const char *path, const char *why)
{
	return err_new(ENOTSUP, "%s %s %s", path, s->what, why);
}

static struct err *check_elf(const struct search *s, const char *path, int fd)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || h.e_ident[EI_CLASS] != ELFCLASS64)
		return cannot(s, path, "it is not a 64-bit program");
	for (uint32_t i = 0; i < h.e_phnum; i++)
		if (pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + (uint64_t)i * h.e_phentsize)) ==
			    sizeof(p) &&
		    p.p_type == PT_INTERP) {
			if (s->ret_path)
				*s->ret_path = xstrdup(path);
			return NULL;
		}
	return cannot(s, path, "a static program has no dynamic linker that could load anything");
}

static bool is_file(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

static struct err *check_file(const struct search *s, const char *path, int depth)
{
	cleanup_close int fd = is_file(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char head[PATH_MAX + 4] = "", *name;
	struct stat st;
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head) - 1, 0);

	if (fd < 0 && is_file(path))
		return cannot(s, path, "its file cannot be read");
	if (n < 0 || fstat(fd, &st))
		return err_errno(access(path, X_OK) ? errno : EACCES, "cannot run %s", path);
	if (st.st_mode & (S_ISUID | S_ISGID) || fgetxattr(fd, "security.capability", NULL, 0) >= 0)
		return cannot(s, path, "nothing is loaded into a privileged (setuid) program");
	if (n >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG))
		return check_elf(s, path, fd);
	if (head[0] != '#' || head[1] != '!' ||
	    depth >= DEPTH) /* execvp(3) runs it with the shell */
		return depth >= DEPTH ? cannot(s, path, "its interpreters do not end")
				      : check_file(s, "/bin/sh", DEPTH);
	name = head + 2 + strspn(head + 2, " \t");
	name[strcspn(name, " \t\n")] = '\0';
	return check_file(s, name, depth + 1);
}

struct err *control_check_preload(const char *name, const char *path, const char *what,
				  char **ret_path)
{
	const struct search search = { what, ret_path }, *s = &search;

	path = path ?: getenv("PATH") ?: "/bin:/usr/bin";
	if (strchr(name, '/'))
		return check_file(s, name, 0);
	while (*path) {
		size_t n = strcspn(path, ":");
		cleanup_free char *at = xasprintf("%.*s%s%s", (int)n, path, n ? "/" : "", name);

		if (is_file(at))
			return check_file(s, at, 0);
		path += n + (path[n] == ':');
	}
	return err_errno(ENOENT, "cannot run %s", name);
}
