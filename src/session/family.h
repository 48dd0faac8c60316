/* A family of sessions: one for each program that traced processes execute.
 *
 * In: a first session, which hands its processes over (session_setting.hands_over), and functions
 * that give further sessions their D programs and their sinks. Out: the records of all sessions in
 * one order. Order of calls: family_new() when the first session has its targets, family_beside()
 * at most once before session_start() of the first session, family_poll() instead of
 * session_poll(), family_end() before session_stop() of the first session, family_free() before its
 * session_fini().
 * Always true: a program whose session fails runs untraced, and a message says so; a process that
 * executes a program that has a session goes to that session.
 */
#ifndef DESCRY_SESSION_FAMILY_H
#define DESCRY_SESSION_FAMILY_H

#include "session/session.h"

struct family_setting {
	struct session *first;
	/* Binds the D program of a further session, whose target is there. Sets *ret_own to the
	 * caller's data of this session, also on failure. */
	struct err *(*prepare)(void *arg, struct session *s, void **ret_own);
	/* Returns the session's sink. */
	struct sink *(*sink)(void *arg, void *own);
	/* A process has executed another program. All records of before have run. */
	void (*executed)(void *arg, pid_t pid);
	/* The session is over: frees the caller's data, which may be NULL. */
	void (*drop)(void *arg, void *own);
	void *arg;
};

struct family *family_new(const struct family_setting *o);
void family_free(struct family *f);
/* Begins a session of another engine, without targets, before the first session starts. prepare()
 * gives its program, as family_setting.prepare does. On failure there is no such session. */
struct err *family_beside(struct family *f, const struct engine_type *engine,
			  struct err *(*prepare)(void *arg, struct session *s, void **ret_own));
/* As session_poll() of the first session, for all; then takes the processes that have executed
 * another program. */
bool family_poll(struct family *f, int timeout_ms, struct err **ret_err);
/* Ends all sessions but the first. */
void family_end(struct family *f);

#endif
