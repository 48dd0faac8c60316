/* The kernel's process connector (netlink): reports forks, execs and exits to its listeners,
 * without BPF.
 *
 * In: netlink messages. Out: events in the order of arrival, with the facts of their threads.
 * Always true: name and parent of an ended thread stay known until the next event, if the thread
 * existed at the start or its fork was seen. Events that the kernel dropped are counted.
 */
#ifndef DESCRY_LOAD_INTERP_CONNECTOR_H
#define DESCRY_LOAD_INTERP_CONNECTOR_H

#include "base/err.h"
#include "load/task.h"

enum connector_kind { CONNECTOR_FORK, CONNECTOR_EXEC, CONNECTOR_EXIT };

/* A thread; its address stays the same for its life. */
struct connector_thread {
	struct task_facts facts;
	uint64_t known_at; /* CLOCK_MONOTONIC ns: facts contain all older events */
	uint32_t version;  /* grows when facts change */
	void *owner;       /* data of the listener, which frees it when the thread ends */
};

struct connector_event {
	enum connector_kind kind;
	uint64_t time;                   /* CLOCK_MONOTONIC ns */
	struct connector_thread *thread; /* the thread that forks, execs or ends */
	struct connector_thread *child;  /* FORK */
	bool last;                       /* EXIT: the process's last thread */
};

struct connector;

/* Starts listening. buffer: bytes of events that the kernel may keep for this socket. Returns an
 * error when this kernel, or this namespace of processes, has no connector. */
struct err *connector_open(uint32_t buffer, struct connector **ret);
void connector_free(struct connector *c, void (*drop)(void *arg, void *owner), void *arg);
int connector_fd(const struct connector *c);
/* Returns the next event that has arrived, valid until the next call; then forgets the thread that
 * ended. False: there is none. */
bool connector_next(struct connector *c, void (*drop)(void *arg, void *owner), void *arg,
		    struct connector_event *ret);
/* Returns the present parent of the thread's process. Reads /proc when the known parent has ended,
 * because no event names the new one. NULL: no parent. Valid until the next event. */
struct connector_thread *connector_parent(struct connector *c, struct connector_thread *t);
/* Returns the number of events for which the socket's buffer had no room. */
uint64_t connector_lost(const struct connector *c);

#endif
