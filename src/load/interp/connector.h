/* The kernel's process connector (netlink): who forks, execs and ends, told to whoever listens,
 * without BPF.
 *
 * In: netlink messages. Out: events in the order of arrival, with what is known of the threads they
 * speak of.
 * Always true: what a thread was called, and whose it was, is known of one that has gone, too, when
 * it was there at the start or its fork was seen; events that the kernel dropped are counted.
 */
#ifndef DESCRY_LOAD_INTERP_CONNECTOR_H
#define DESCRY_LOAD_INTERP_CONNECTOR_H

#include "base/err.h"
#include "load/task.h"

enum connector_kind { CONNECTOR_FORK, CONNECTOR_EXEC, CONNECTOR_EXIT };

/* A thread; the same address as long as it lives. */
struct connector_thread {
	struct task_facts facts;
	uint64_t known_at; /* CLOCK_MONOTONIC ns: older events are contained in facts */
	uint32_t version;  /* grows when facts change */
	void *owner;       /* the listener's; freed by it when the thread ends */
};

struct connector_event {
	enum connector_kind kind;
	uint64_t time;                   /* CLOCK_MONOTONIC ns */
	struct connector_thread *thread; /* which forks, execs, ends */
	struct connector_thread *child;  /* FORK */
	bool last;                       /* EXIT: the process's last thread */
};

struct connector;

/* buffer: bytes of events the kernel may hold for us. An error: this kernel, or this namespace of
 * processes, has none. */
struct err *connector_open(uint32_t buffer, struct connector **ret);
void connector_free(struct connector *c, void (*drop)(void *arg, void *owner), void *arg);
int connector_fd(const struct connector *c);
/* The next event that has arrived, valid until the next call, which forgets a thread that ended;
 * false: none is there. */
bool connector_next(struct connector *c, void (*drop)(void *arg, void *owner), void *arg,
		    struct connector_event *ret);
/* Whose child the thread's process is now: its parent may have ended, and nobody tells which
 * process took its place. NULL: nobody's. Valid until the next event. */
struct connector_thread *connector_parent(struct connector *c, struct connector_thread *t);
/* Events the kernel had no room for in the socket's buffer. */
uint64_t connector_lost(const struct connector *c);

#endif
