/* Makes files, and opens the folders in which they are made. See outfile.h. */
#define _GNU_SOURCE
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	LINKS_MAX = 40,  /* of a path */
	NAMES_MAX = 100, /* tries to find a free name */
	SUFFIX = 7,      /* ".abcdef" */
};

int outfile_open(const char *path, mode_t mode)
{
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, mode);
}

int outfile_append(const char *path, mode_t mode)
{
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, mode);
}

int outfile_new(int dir, const char *name, mode_t mode)
{
	return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

int outfile_update(int dir, const char *name, mode_t mode, bool make)
{
	return openat(dir, name,
		      O_RDWR | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC | (make ? O_CREAT : 0),
		      mode);
}

int outfile_unnamed(const char *dir)
{
	cleanup_free char *path = NULL;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, OUTFILE_PRIVATE);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	/* this filesystem has no files without a name */
	path = xasprintf("%s/descry-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* --- folders --- */

const char *outfile_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int outfile_folder(const char *path)
{
	const size_t n = (size_t)(outfile_name(path) - path);
	cleanup_free char *dir = n ? xstrndup(path, n) : xstrdup(".");

	return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_own(const struct stat *st)
{
	return !st->st_uid || st->st_uid == geteuid();
}

static bool is_writable_by_others(const struct stat *st)
{
	return st->st_mode & (S_IWGRP | S_IWOTH);
}

/* A way down a path, part by part. */
struct walk {
	int dir;     /* where it is */
	char *rest;  /* of the path */
	int links;   /* that were followed */
	bool strict; /* not past what another user can replace */
	bool make;   /* the last two parts, if they are not there */
};

/* Opens an entry of a folder, whatever it is. */
static int open_part(const struct walk *w, const char *name, mode_t made)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(w->dir, name, flags);

	if (fd < 0 && errno == ENOENT && made && (!mkdirat(w->dir, name, made) || errno == EEXIST))
		fd = openat(w->dir, name, flags);
	return fd;
}

/* Goes on with what a link says. Returns an errno value. */
static int walk_link(struct walk *w, int link, const char *rest)
{
	char to[PATH_MAX];
	const ssize_t n = readlinkat(link, "", to, sizeof(to) - 1);
	char *path;

	if (n < 0)
		return errno;
	if (w->links++ == LINKS_MAX)
		return ELOOP;
	to[n] = '\0';
	path = xasprintf("%s/%s", to, rest);
	free(w->rest);
	w->rest = path;
	if (*to == '/') {
		close(w->dir);
		w->dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	return w->dir < 0 ? errno : 0;
}

/* Goes to the next part. Returns an errno value. */
static int walk_part(struct walk *w)
{
	const char *name = w->rest + strspn(w->rest, "/"), *end = strchrnul(name, '/'),
		   *rest = end + strspn(end, "/");
	cleanup_free char *part = xstrndup(name, (size_t)(end - name));
	const bool last = !*rest, makes = w->make && !strchr(rest, '/');
	cleanup_close int fd = open_part(w, part, !makes ? 0 : last ? 0755 : 0700);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return errno;
	if (w->strict && !is_own(&st))
		return last ? EACCES : EPERM;
	if (S_ISLNK(st.st_mode) && !last)
		return walk_link(w, fd, rest);
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	/* where the sticky bit is, others cannot replace what is not theirs */
	if (w->strict && !last && is_writable_by_others(&st) && !(st.st_mode & S_ISVTX))
		return EPERM;
	memmove(w->rest, rest, strlen(rest) + 1);
	close(w->dir);
	w->dir = fd;
	fd = -1;
	return 0;
}

int outfile_own_folder(const char *path, bool make)
{
	struct walk w = { .dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
			  .rest = xstrdup(path),
			  .strict = !geteuid(),
			  .make = make };
	int error = w.dir < 0 ? errno : 0, fd = -1;
	struct stat st;

	while (!error && w.rest[strspn(w.rest, "/")])
		error = walk_part(&w);
	if (!error) {
		fd = openat(w.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st))
			error = errno;
		else if (!is_own(&st) || is_writable_by_others(&st))
			error = EACCES;
	}
	free(w.rest);
	if (w.dir >= 0)
		close(w.dir);
	if (error && fd >= 0)
		close(fd);
	errno = error;
	return error ? -1 : fd;
}

/* --- files that replace others --- */

bool outfile_begin(struct outfile *f, int dir, const char *name, mode_t mode)
{
	*f = (struct outfile){ .dir = dir, .fd = -1 };
	for (int i = 0; f->fd < 0 && i < NAMES_MAX && (!i || errno == EEXIST); i++) {
		uint32_t random;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return false;
		snprintf(f->name, sizeof(f->name), "%.*s.%06x", NAME_MAX - SUFFIX, name,
			 random & 0xffffff);
		f->fd = outfile_new(dir, f->name, OUTFILE_PRIVATE);
	}
	if (f->fd < 0)
		return false;
	return !fchmod(f->fd, mode) || outfile_end(f, name, false);
}

bool outfile_like(const struct outfile *f, const struct stat *other)
{
	mode_t mode = other->st_mode & 0777; /* nothing is to be executed as its owner */
	struct stat st;

	if (fstat(f->fd, &st))
		return false;
	if ((other->st_uid != st.st_uid || other->st_gid != st.st_gid) &&
	    fchown(f->fd, other->st_uid, other->st_gid))
		mode &= 0755;
	return !fchmod(f->fd, mode);
}

bool outfile_end(struct outfile *f, const char *name, bool good)
{
	int error = good ? 0 : errno;

	if (f->fd >= 0 && close(f->fd) && !error)
		error = errno;
	if (f->fd >= 0 && !error && renameat(f->dir, f->name, f->dir, name))
		error = errno;
	if (f->fd >= 0 && error)
		unlinkat(f->dir, f->name, 0);
	good = good && f->fd >= 0 && !error;
	f->fd = -1;
	errno = error;
	return good;
}
