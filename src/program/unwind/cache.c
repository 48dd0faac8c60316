/* Keeps unwind images on disk, by build-id and size:
 * $XDG_CACHE_HOME/descry/unwindVERSION-BUILDID-SIZE, for root /var/cache/descry. Behind the image
 * is the identity of the file that it was made from. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/changed.h"
#include "base/io.h"
#include "base/procdir.h"
#include "program/unwind/unwind.h"

enum {
	WORTH_KEEPING = 2000, /* rows: building fewer is faster than reading them */
	DAY = 24 * 60 * 60,   /* age at which an unfinished file is removed */
	KEPT = 30 * DAY,      /* age at which another version's image is removed */
};

/* The file of an image. A build-id proves nothing: root of a container may write any to a file that
 * has the same path outside. He cannot choose the time of the change. */
struct image_source {
	uint64_t dev, inode, size;
	int64_t mtime_ns, ctime_ns;
};

/* Returns true when only root can change which folder the path leads to. */
static bool is_of_root(const char *path)
{
	cleanup_free char *part = xstrdup(path);
	struct stat st;

	for (char *end = part + strlen(part);; end = strrchr(part, '/')) {
		if (!end)
			return true;
		*end = '\0';
		if (lstat(*part ? part : "/", &st))
			continue; /* it is made below one that is there */
		if (st.st_uid || (S_ISDIR(st.st_mode) && st.st_mode & (S_IWGRP | S_IWOTH) &&
				  !(st.st_mode & S_ISVTX)))
			return false;
	}
}

/* Returns the folder, malloc()ed, or NULL when there is none. Root may have the environment of
 * another user, who could give the folder's name to another one meanwhile. */
static char *cache_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (xdg && *xdg == '/' && (geteuid() || is_of_root(xdg)))
		return xasprintf("%s/descry", xdg);
	if (!geteuid())
		return xstrdup("/var/cache/descry");
	return home && *home == '/' ? xasprintf("%s/.cache/descry", home) : NULL;
}

static bool is_trusted(const struct stat *st)
{
	return (st->st_uid == geteuid() || !st->st_uid) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Returns true for a folder or file of this user or root. Another user's tables could steer the
 * walks. */
static bool is_ours(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && !S_ISLNK(st.st_mode) && is_trusted(&st);
}

/* Returns the image's path, or NULL when it must not be kept. A file's build-id is only trusted
 * when no other user can write the file, and when the file has a path of its own: root of a
 * container, whose files are reached through /proc/PID, is not root of the machine. */
static char *cache_path(const char *dir, const struct object *o)
{
	uint32_t n;
	const uint8_t *id = object_build_id(o, &n);
	char hex[65] = "";
	struct stat st;

	if (!id || n < 8 || n > 32 || !strncmp(object_path(o), "/proc/", 6) ||
	    !object_stat(o, &st) || !is_trusted(&st))
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	/* Versions of descry with different table layouts use different names. */
	return xasprintf("%s/unwind%d-%s-%llx", dir, (int)WIRE_UNWIND_VERSION, hex,
			 (unsigned long long)st.st_size);
}

static bool image_source_of(const struct object *o, struct image_source *ret)
{
	struct stat st;

	if (!object_stat(o, &st))
		return false;
	*ret = (struct image_source){
		.dev = st.st_dev,
		.inode = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
		.ctime_ns = st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
	};
	return true;
}

void unwind_cache_sweep(const char *dir, time_t now)
{
	cleanup_free char *own = xasprintf("unwind%d-", (int)WIRE_UNWIND_VERSION);
	cleanup_dir DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d))) {
		bool image = !strncmp(e->d_name, "unwind", 6) || !strncmp(e->d_name, "recent", 6);
		bool unfinished = image && strchr(e->d_name, '.');
		bool other = image && e->d_name[0] == 'u' && strncmp(e->d_name, own, strlen(own));

		if ((unfinished || other) &&
		    !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    now - st.st_mtime > (unfinished ? DAY : KEPT))
			unlinkat(dirfd(d), e->d_name, 0);
	}
}

static struct unwind_image *cache_read(const char *path, const struct object *o)
{
	struct unwind_image *u = NULL;
	cleanup_err struct err *e = NULL;
	cleanup_free char *text = NULL;
	uint32_t n;
	const uint8_t *id = object_build_id(o, &n);
	struct image_source source;
	size_t len;

	if (!is_ours(path) || !image_source_of(o, &source))
		return NULL;
	e = io_read_file(path, &text, &len);
	if (e || len < sizeof(source))
		return NULL;
	len -= sizeof(source);
	if (memcmp(text + len, &source, sizeof(source)))
		return NULL; /* of another file, which may be made to look like this one */
	e = unwind_image_parse(path, text, len, &u);
	if (e)
		return NULL;
	if (u->head->build_id_len != n || memcmp(u->head->build_id, id, n)) {
		unwind_image_free(u);
		return NULL;
	}
	return u;
}

/* Writes an image. A cache that cannot be written is no error: the next run builds the image
 * again. */
static void cache_write(const char *dir, const char *path, const struct object *o,
			const struct unwind_image *u)
{
	cleanup_free char *tmp = xasprintf("%s.XXXXXX", path);
	struct image_source source;
	static bool swept;
	bool good;
	int fd;

	if (!image_source_of(o, &source))
		return;

	if (mkdir(dir, 0755) && errno == ENOENT) {
		/* $HOME/.cache or $XDG_CACHE_HOME itself. */
		cleanup_free char *up = xstrndup(dir, (size_t)(strrchr(dir, '/') - dir));

		if (mkdir(up, 0700) || mkdir(dir, 0755))
			return;
	}
	if (!is_ours(dir))
		return;
	if (!swept) {
		swept = true;
		unwind_cache_sweep(dir, time(NULL));
	}
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return;
	good = io_write(fd, u->head, u->size) && io_write(fd, &source, sizeof(source)) &&
	       !fchmod(fd, 0644);
	if (close(fd) || !good || rename(tmp, path))
		unlink(tmp);
}

struct err *unwind_image_open(struct object *o, struct unwind_image **ret)
{
	cleanup_free char *dir = cache_dir();
	cleanup_free char *path = dir ? cache_path(dir, o) : NULL;
	struct err *e;

	if (path && is_ours(dir)) {
		struct unwind_image *u = cache_read(path, o);

		if (u) {
			*ret = u;
			return NULL;
		}
	}
	e = unwind_image_build(o, ret);
	if (!e && object_was_written(o)) {
		unwind_image_free(*ret);
		*ret = NULL;
		changed_add(object_path(o));
		return err_new(ESTALE, "%s: the file was changed while it was read",
			       object_path(o));
	}
	if (!e && path && (*ret)->head->nrows >= WORTH_KEEPING)
		cache_write(dir, path, o, *ret);
	return e;
}

/* --- files with tables that runs have met: $CACHE/recent, one path a line, the latest first --- */

enum { RECENT_MAX = 128 };

uint32_t unwind_recent_read(char ***ret)
{
	cleanup_free char *dir = cache_dir(), *text = NULL;
	cleanup_free char *path = dir ? xasprintf("%s/recent", dir) : NULL;
	VEC(char *) paths = { 0 };
	size_t len;

	*ret = NULL;
	if (!path || !is_ours(dir) || !is_ours(path))
		return 0;
	if (err_drop(io_read_file(path, &text, &len)))
		return 0;
	for (char *line = text, *save; paths.n < RECENT_MAX && (line = strtok_r(line, "\n", &save));
	     line = NULL)
		if (*line == '/')
			vec_push(&paths, xstrdup(line));
	*ret = paths.v;
	return paths.n;
}

static bool listed(char *const *paths, uint32_t n, const char *path)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(paths[i], path))
			return true;
	return false;
}

void unwind_recent_write(const char *const *met, uint32_t nmet)
{
	cleanup_free char *dir = cache_dir();
	cleanup_free char *path = dir ? xasprintf("%s/recent", dir) : NULL;
	cleanup_free char *tmp = path ? xasprintf("%s.XXXXXX", path) : NULL;
	char **before, *all[RECENT_MAX];
	uint32_t nbefore = unwind_recent_read(&before), n = 0;
	FILE *f = NULL;
	int fd = -1;

	for (uint32_t i = 0; i < nmet && n < RECENT_MAX; i++)
		if (!strchr(met[i], '\n') && !listed(all, n, met[i]))
			all[n++] = (char *)met[i];
	for (uint32_t i = 0; i < nbefore && n < RECENT_MAX; i++)
		if (!listed(all, n, before[i]))
			all[n++] = before[i];
	if (path && n && is_ours(dir))
		fd = mkostemp(tmp, O_CLOEXEC);
	if (fd >= 0)
		f = fdopen(fd, "w");
	if (fd >= 0 && !f)
		close(fd);
	for (uint32_t i = 0; f && i < n; i++)
		fprintf(f, "%s\n", all[i]);
	if (fd >= 0 && (!f || fclose(f) || rename(tmp, path)))
		unlink(tmp);
	for (uint32_t i = 0; i < nbefore; i++)
		free(before[i]);
	free(before);
}
