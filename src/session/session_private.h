/* Shared by the files of session/. */
#ifndef DESCRY_SESSION_SESSION_PRIVATE_H
#define DESCRY_SESSION_SESSION_PRIVATE_H

#include "session/session.h"

/* together.c */
/* Waits for records of n sessions, at most timeout_ms. */
void sessions_wait(struct session *const *s, uint32_t n, int timeout_ms);
/* Takes the records of all sessions, and runs those whose time has come. */
struct err *sessions_pass(struct session *const *s, uint32_t n);

/* handover.c: keeps a process for session_executed(). As engine_setting.executed. */
void session_take_executed(void *session, int pid, struct control *c);

#endif
