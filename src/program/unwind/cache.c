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
#include "base/outfile.h"
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

/* Opens the folder below $XDG_CACHE_HOME, $HOME/.cache, or /var/cache for root. Returns -1 when
 * there is none. Root may have the environment of another user, who could give the folder's name to
 * another one meanwhile. Another user's tables could steer the walks. */
static int cache_dir(bool make)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	cleanup_free char *path = NULL;
	int fd = -1;

	if (xdg && *xdg == '/')
		path = xasprintf("%s/descry", xdg);
	else if (home && *home == '/' && geteuid())
		path = xasprintf("%s/.cache/descry", home);
	if (path)
		fd = outfile_own_folder(path, make);
	if (geteuid() || (path && (fd >= 0 || errno != EPERM)))
		return fd;
	return outfile_own_folder("/var/cache/descry", make);
}

static bool is_trusted(const struct stat *st)
{
	return (st->st_uid == geteuid() || !st->st_uid) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Reads a file of the cache. Returns NULL when there is none that can be trusted. */
static char *read_cached(int dir, const char *name, size_t *ret_len)
{
	cleanup_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	char *text;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_trusted(&st))
		return NULL;
	return err_drop(io_read_fd(fd, name, SIZE_MAX / 2, &text, ret_len)) ? NULL : text;
}

/* Returns the name of an image, or NULL when it must not be kept. A file's build-id is only trusted
 * when no other user can write the file, and when the file has a path of its own: root of a
 * container, whose files are reached through /proc/PID, is not root of the machine. */
static char *cache_name(const struct object *o)
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
	return xasprintf("unwind%d-%s-%llx", (int)WIRE_UNWIND_VERSION, hex,
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

void unwind_cache_sweep(int dir, time_t now)
{
	cleanup_free char *own = xasprintf("unwind%d-", (int)WIRE_UNWIND_VERSION);
	const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d))) {
		bool image = !strncmp(e->d_name, "unwind", 6) || !strncmp(e->d_name, "recent", 6);
		bool unfinished = image && strchr(e->d_name, '.');
		bool other = image && e->d_name[0] == 'u' && strncmp(e->d_name, own, strlen(own));

		if ((unfinished || other) && !fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    now - st.st_mtime > (unfinished ? DAY : KEPT))
			unlinkat(dir, e->d_name, 0);
	}
}

static struct unwind_image *cache_read(int dir, const char *name, const struct object *o)
{
	struct unwind_image *u = NULL;
	cleanup_err struct err *e = NULL;
	cleanup_free char *text = NULL;
	uint32_t n;
	const uint8_t *id = object_build_id(o, &n);
	struct image_source source;
	size_t len;

	if (!image_source_of(o, &source))
		return NULL;
	text = read_cached(dir, name, &len);
	if (!text || len < sizeof(source))
		return NULL;
	len -= sizeof(source);
	if (memcmp(text + len, &source, sizeof(source)))
		return NULL; /* of another file, which may be made to look like this one */
	e = unwind_image_parse(name, text, len, &u);
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
static void cache_write(const char *name, const struct object *o, const struct unwind_image *u)
{
	cleanup_close int dir = cache_dir(true);
	struct image_source source;
	static bool swept;
	struct outfile f;

	if (dir < 0 || !image_source_of(o, &source))
		return;
	if (!swept) {
		swept = true;
		unwind_cache_sweep(dir, time(NULL));
	}
	if (outfile_begin(&f, dir, name, 0644))
		outfile_end(&f, name,
			    io_write(f.fd, u->head, u->size) &&
				    io_write(f.fd, &source, sizeof(source)));
}

struct err *unwind_image_open(struct object *o, struct unwind_image **ret)
{
	cleanup_free char *name = cache_name(o);
	cleanup_close int dir = name ? cache_dir(false) : -1;
	struct err *e;

	if (dir >= 0) {
		struct unwind_image *u = cache_read(dir, name, o);

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
	if (!e && name && (*ret)->head->nrows >= WORTH_KEEPING)
		cache_write(name, o, *ret);
	return e;
}

/* --- files with tables that runs have met: $CACHE/recent, one path a line, the latest first --- */

enum { RECENT_MAX = 128 };

static const char RECENT[] = "recent";

uint32_t unwind_recent_read(char ***ret)
{
	cleanup_close int dir = cache_dir(false);
	cleanup_free char *text = NULL;
	VEC(char *) paths = { 0 };
	size_t len;

	*ret = NULL;
	if (dir >= 0)
		text = read_cached(dir, RECENT, &len);
	for (char *line, *save, *at = text;
	     text && paths.n < RECENT_MAX && (line = strtok_r(at, "\n", &save)); at = NULL)
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
	cleanup_close int dir = cache_dir(false);
	char **before, *all[RECENT_MAX];
	uint32_t nbefore = unwind_recent_read(&before), n = 0;
	struct outfile f;

	for (uint32_t i = 0; i < nmet && n < RECENT_MAX; i++)
		if (!strchr(met[i], '\n') && !listed(all, n, met[i]))
			all[n++] = (char *)met[i];
	for (uint32_t i = 0; i < nbefore && n < RECENT_MAX; i++)
		if (!listed(all, n, before[i]))
			all[n++] = before[i];
	if (dir >= 0 && n && outfile_begin(&f, dir, RECENT, OUTFILE_PRIVATE)) {
		bool good = true;

		for (uint32_t i = 0; i < n; i++)
			good = good && dprintf(f.fd, "%s\n", all[i]) > 0;
		outfile_end(&f, RECENT, good);
	}
	for (uint32_t i = 0; i < nbefore; i++)
		free(before[i]);
	free(before);
}
