/* Programs that descry starts. No other file of descry starts one (test/sh/one_place.sh).
 *
 * A program gets its three standard descriptors, those that descry itself was started with, and
 * those that the caller names: no other descriptor of descry's. Its limits are those with which
 * descry was started, the signals that descry catches have their defaults, and its environment is
 * descry's or one that the caller has made. */
#ifndef DESCRY_BASE_CHILD_H
#define DESCRY_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* A user as whom a program runs, and the environment of his logins: HOME, USER, LOGNAME, SHELL and
 * PATH; of descry's own only TERM, LANG and LC_*. */
struct child_user {
	char *name;
	uid_t uid;
	gid_t gid, *groups;
	int ngroups;
	char **env;
};

/* Returns NULL when there is no user of this name. */
struct child_user *child_user_new(const char *name);
void child_user_free(struct child_user *u);

enum child_session {
	CHILD_SHARES,  /* descry's process group: ^C reaches it */
	CHILD_GROUP,   /* a process group of its own */
	CHILD_SESSION, /* a session of its own: it cannot type into descry's terminal (TIOCSTI) */
};

enum { CHILD_NULL = -1 /* /dev/null in place of a descriptor */ };

struct child {
	const char *file;  /* NULL: argv[0], which is searched for in $PATH */
	char *const *argv; /* ends with NULL */
	char *const *env;  /* NULL: the user's, or descry's own */
	int in, out, err;  /* what becomes its 0, 1 and 2. 0: descry's own; CHILD_NULL */
	const int *keep;   /* other descriptors that it gets, under their numbers */
	uint32_t nkeep;
	enum child_session session;    /* another user's has its own */
	const struct child_user *user; /* NULL: this one */
	int at_end;                    /* signal that it gets when descry ends; 0: none */
	rlim_t memory, cpu_seconds;    /* limits besides; 0: none */
};

/* Remembers the descriptors that descry was started with. Call it before any file is opened. */
void child_begin(void);
/* Starts a program. Returns -1 with errno when it cannot be started or run. */
pid_t child_start(const struct child *c);
/* Becomes the program, in a child of fork(2). Returns only on failure, with errno. */
void child_exec(const struct child *c);
/* In a child of fork(2) that goes on as descry: closes all descriptors but the standard ones and
 * the n that are named. */
void child_close_files(const int *keep, uint32_t n);
/* Waits for the end of a child. Returns its status as waitpid(2) gives it, -1: there is none. */
int child_wait(pid_t pid);

/* Returns an environment with n more variables ("NAME=VALUE"), which replace those of base with
 * the same name; "NAME" without a value removes it. base NULL: descry's own. The texts stay the
 * caller's, and the caller frees the array. */
char **child_env(char *const *base, const char *const *set, uint32_t n);
/* Returns a variable's value, or NULL. */
const char *child_env_get(char *const *env, const char *name);

#endif
