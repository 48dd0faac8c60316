/* Files that descry makes. No other file of descry makes one, but for sealed memory files
 * (base/sealed.h); test/sh/one_place.sh checks this.
 *
 * A name is the user's (`-o FILE`), or descry's own choice. The user's may be a link, a FIFO or a
 * terminal, and an old file of this name is written anew and keeps its mode. A name of descry's own
 * choice is that of a new file, and no link is followed. A folder that another user may own is
 * opened once, and its files are then named by its descriptor: the owner can give the folder's path
 * to another one at any moment.
 *
 * All functions return -1, or false, with errno. All descriptors are closed by execve(2). */
#ifndef DESCRY_BASE_OUTFILE_H
#define DESCRY_BASE_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

enum {
	OUTFILE_SHARED = 0666,  /* others read it as far as the umask permits */
	OUTFILE_PRIVATE = 0600, /* it holds contents of a process's memory */
};

/* Opens the user's file for writing, from its beginning or behind its end. */
int outfile_open(const char *path, mode_t mode);
int outfile_append(const char *path, mode_t mode);
/* Makes a new file in a folder. EEXIST: there is one, or a link, of this name. */
int outfile_new(int dir, const char *name, mode_t mode);
/* Opens a file in a folder for reading and for writing behind its end. make: it may be new. */
int outfile_update(int dir, const char *name, mode_t mode, bool make);
/* Makes a file that has no name, for reading and writing. Nobody else can open it. */
int outfile_unnamed(const char *dir);

/* Opens the folder of a file, to name files in it. */
int outfile_folder(const char *path);
/* Returns the last part of a path. */
const char *outfile_name(const char *path);
/* Opens a folder that this user or root owns and nobody else can write to, for reading. For root,
 * nobody else can change which folder the absolute path leads to. make: the folder and the one
 * above are made when they are not there. EPERM: a part above the folder is another user's. */
int outfile_own_folder(const char *path, bool make);

/* A file that replaces another one as a whole: it is written under a name beside that one. */
struct outfile {
	int dir, fd; /* dir: the caller's */
	char name[NAME_MAX + 1];
};

/* Begins the file that will have a name in a folder. Its mode is `mode` without the umask. */
bool outfile_begin(struct outfile *f, int dir, const char *name, mode_t mode);
/* Gives the file the owner of another one, and its permissions. Those of a group that it cannot be
 * given are left out. */
bool outfile_like(const struct outfile *f, const struct stat *other);
/* Closes the file. good: gives it its name; else removes it. */
bool outfile_end(struct outfile *f, const char *name, bool good);

#endif
