/* Keeps the journal of changed settings, and undoes them. */
#define _GNU_SOURCE
#include "check/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/outfile.h"
#include "base/regular.h"
#include "check/small.h"

struct change {
	char *line; /* as it is in the file; the others point into a copy */
	char *copy, *boot, *name, *before, *after;
	bool undone;
};

struct journal {
	int dir; /* its folder */
	int fd;  /* locked */
	VEC(struct change) v;
};

static struct err *parse(struct journal *j, const char *path, char *text)
{
	char *save;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct change c = { .line = xstrdup(line), .copy = xstrdup(line) };
		char *rest = c.copy;

		c.boot = strsep(&rest, "\t");
		c.name = strsep(&rest, "\t");
		c.before = strsep(&rest, "\t");
		c.after = strsep(&rest, "\t");
		vec_push(&j->v, c);
		if (!c.after || rest)
			return err_new(EINVAL, "%s: line %u is not a change: \"%s\"", path, j->v.n,
				       line);
	}
	return NULL;
}

static void journal_close(struct journal *j)
{
	for (uint32_t i = 0; i < j->v.n; i++) {
		free(j->v.v[i].line);
		free(j->v.v[i].copy);
	}
	vec_fini(&j->v);
	if (j->fd >= 0)
		close(j->fd);
	if (j->dir >= 0)
		close(j->dir);
}

/* Locks the file. Reports on out when another command has it, and waits. */
static struct err *journal_lock(int fd, const char *path, FILE *out)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return NULL;
	if (errno == EWOULDBLOCK) {
		fprintf(out, "waiting for another command that has locked %s\n", path);
		fflush(out);
	}
	return flock(fd, LOCK_EX) < 0 ? err_errno(errno, "%s: lock", path) : NULL;
}

/* Opens and locks the file. *ret_gone: another command has removed or replaced it meanwhile, so the
 * lock is that of a file without a name. */
static struct err *open_locked(struct journal *j, const char *path, bool make, FILE *out,
			       bool *ret_gone)
{
	struct stat is, at;
	struct err *e;

	j->fd = outfile_update(j->dir, outfile_name(path), OUTFILE_PRIVATE, make);
	if (j->fd < 0)
		return err_errno(errno, "%s: open", path);
	e = journal_lock(j->fd, path, out);
	if (e)
		return e;
	if (fstat(j->fd, &is) < 0)
		return err_errno(errno, "%s: stat", path);
	*ret_gone = fstatat(j->dir, outfile_name(path), &at, AT_SYMLINK_NOFOLLOW) < 0 ||
		    at.st_dev != is.st_dev || at.st_ino != is.st_ino;
	if (*ret_gone) {
		close(j->fd);
		j->fd = -1;
	}
	return NULL;
}

static struct err *journal_open(struct journal *j, const char *path, bool make, FILE *out)
{
	cleanup_free char *copy = xstrdup(path), *text = NULL;
	bool gone = true;
	struct err *e;
	struct stat st;
	size_t n;

	*j = (struct journal){ .dir = -1, .fd = -1 };
	if (make && mkdir(dirname(copy), 0755) < 0 && errno != EEXIST)
		return err_errno(errno, "%s: making the directory of the journal", path);
	j->dir = outfile_folder(path);
	if (j->dir < 0)
		return err_errno(errno, "%s: open", path);
	while (gone) {
		e = open_locked(j, path, make, out, &gone);
		if (e)
			return e;
	}
	if (fstat(j->fd, &st) < 0)
		return err_errno(errno, "%s: stat", path);
	text = regular_read(j->fd, (size_t)st.st_size, &n);
	e = parse(j, path, text);
	/* Anybody who can open the file can lock it, so a journal is its owner's alone (an earlier
	 * version let all users read it). */
	if (!e && fchmod(j->fd, OUTFILE_PRIVATE) < 0)
		e = err_errno(errno, "%s: chmod", path);
	return e;
}

static struct err *write_all(int fd, const char *path, const char *text)
{
	if (!io_write(fd, text, strlen(text)))
		return err_errno(errno, "%s: write", path);
	return fsync(fd) < 0 ? err_errno(errno, "%s: fsync", path) : NULL;
}

struct err *journal_apply(const char *path, const struct tunables *t, const char *name,
			  const char *value, FILE *out)
{
	cleanup_free char *boot = small_read("/proc/sys/kernel/random/boot_id");
	cleanup_free char *was = NULL, *line = NULL;
	struct tunable *k;
	struct journal j = { .dir = -1, .fd = -1 };
	struct err *e = tunables_get(t, name, &k);
	off_t end;

	if (e)
		return e;
	if (k->fixed)
		return tunable_write(k, value);
	if (strpbrk(value, "\t\n"))
		return err_new(EINVAL, "%s: a value must not contain tabs or line feeds", name);
	e = tunable_read(k, &was);
	if (e)
		return e;
	if (tunable_same(was, value)) {
		fprintf(out, "%s is %s already\n", name, was);
		return NULL;
	}
	e = journal_open(&j, path, true, out);
	if (!e) { /* another command, which had the lock, may have changed it */
		free(was);
		e = tunable_read(k, &was);
	}
	if (!e) {
		end = lseek(j.fd, 0, SEEK_END);
		line = xasprintf("%s\t%s\t%s\t%s\n", boot ? boot : "", name, was, value);
		e = write_all(j.fd, path, line);
		if (!e) {
			e = tunable_write(k, value);
			if (!e)
				fprintf(out, "%s: %s -> %s; descry check --undo puts it back\n",
					name, was, value);
		}
		/* The value was not changed: remove the line. */
		if (e && ftruncate(j.fd, end) < 0)
			e = err_wrap(e, "%s records a change that was not made", path);
	}
	journal_close(&j);
	return e;
}

/* Puts one change back. An error leaves it in the journal. */
static struct err *undo(const struct tunables *t, const struct change *c, const char *boot,
			FILE *out)
{
	cleanup_free char *is = NULL;
	struct tunable *k;
	struct err *e;

	if (boot && *c->boot && strcmp(c->boot, boot) != 0) {
		fprintf(out, "%s: the machine was started again since, which has undone it\n",
			c->name);
		return NULL;
	}
	e = tunables_get(t, c->name, &k);
	e = e ?: tunable_read(k, &is);
	if (e)
		return e;
	if (tunable_same(is, c->before)) {
		fprintf(out, "%s is %s already\n", c->name, c->before);
		return NULL;
	}
	if (!tunable_same(is, c->after))
		return err_new(
			0,
			"%s is %s and not the %s that was set, because another program has changed it. It keeps its value; --apply %s=%s sets the old one",
			c->name, is, c->after, c->name, c->before);
	e = tunable_write(k, c->before);
	if (!e)
		fprintf(out, "%s: %s -> %s\n", c->name, is, c->before);
	return e;
}

/* Replaces the journal atomically by the changes that are left. Removes it when none is left. */
static struct err *journal_keep(struct journal *j, const char *path)
{
	const char *name = outfile_name(path);
	struct err *e = NULL;
	struct outfile f;
	unsigned left = 0;

	for (uint32_t i = 0; i < j->v.n; i++)
		left += !j->v.v[i].undone;
	if (!left)
		return unlinkat(j->dir, name, 0) < 0 ? err_errno(errno, "%s: remove", path) : NULL;
	if (!outfile_begin(&f, j->dir, name, OUTFILE_PRIVATE))
		return err_errno(errno, "cannot write beside %s", path);
	for (uint32_t i = 0; i < j->v.n && !e; i++) {
		cleanup_free char *line = xasprintf("%s\n", j->v.v[i].line);

		e = j->v.v[i].undone ? NULL : write_all(f.fd, path, line);
	}
	if (!outfile_end(&f, name, !e) && !e)
		e = err_errno(errno, "%s: rename", path);
	return e;
}

struct err *journal_undo(const char *path, const struct tunables *t, FILE *out, FILE *errors,
			 unsigned *ret_left)
{
	cleanup_free char *boot = small_read("/proc/sys/kernel/random/boot_id");
	struct journal j;
	struct err *e = journal_open(&j, path, false, out);

	*ret_left = 0;
	if (e && e->code == ENOENT) {
		err_free(e);
		fprintf(out, "nothing to undo: %s does not exist\n", path);
		e = NULL;
	} else if (!e) {
		for (uint32_t i = j.v.n; i-- > 0;) {
			struct err *failed = undo(t, &j.v.v[i], boot, out);

			j.v.v[i].undone = !failed;
			if (failed)
				fprintf(errors, "descry check: %s\n", failed->text);
			*ret_left += failed != NULL;
			err_free(failed);
		}
		e = journal_keep(&j, path);
	}
	journal_close(&j);
	return e;
}
