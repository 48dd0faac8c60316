/* The inspector of a Node.js process: V8's protocol for debuggers, on a port that the process opens
 * when it gets SIGUSR1.
 *
 * In: a process. Out: answers to methods of the protocol, as JSON.
 * Always true: the port and the connection belong to the process (its descriptors have their
 * inodes), and SIGUSR1 is sent only where Node.js itself waits for it. inspector_close() closes a
 * port that was closed before. What the process sends is bounded, and may be anything.
 */
#ifndef DESCRY_INPUT_INSPECTOR_INSPECTOR_H
#define DESCRY_INPUT_INSPECTOR_INSPECTOR_H

#include <jansson.h>
#include <signal.h>
#include <sys/types.h>

#include "input/inspector/websocket.h"

/* A socket of a process. */
struct inspector_socket {
	uint64_t inode;
	uint8_t address[16]; /* of `width` bytes */
	uint8_t width;       /* 4 or 16 */
	uint16_t port, peer; /* peer: the other side's port */
	bool listens;
};
typedef VEC(struct inspector_socket) inspector_sockets;

struct inspector {
	pid_t pid;
	struct websocket socket;
	struct inspector_socket port;
	bool opened; /* the port was closed before */
	/* The user's wish to end, which ends the search for the port. */
	const volatile sig_atomic_t *ends;
	bool leaving; /* the process wants to end, and waits for this connection's end */
	uint64_t calls;
};

/* Opens the inspector and connects to it. EINTR: *ends was set meanwhile. *ret is freed by
 * inspector_close(). */
struct err *inspector_open(pid_t pid, const volatile sig_atomic_t *ends, struct inspector **ret);
/* Calls a method. params: a JSON object. *ret: its result, which the caller decrefs; ret may be
 * NULL. EPROTO: the method has failed, for the reason in the error. */
struct err *inspector_call(struct inspector *i, const char *method, const char *params,
			   json_t **ret);
/* The same for a method without a result that answers at once: within seconds, and EINTR when *ends
 * is set meanwhile. All other calls go on, because the port is to be closed again. */
struct err *inspector_ask(struct inspector *i, const char *method, const char *params);
/* Takes events until a moment or a signal. */
struct err *inspector_wait(struct inspector *i, uint64_t until);
/* Disconnects, and closes the port if it was closed before. *ret_stays: it could not be closed.
 * NULL is fine. */
void inspector_close(struct inspector *i, bool *ret_stays);

/* inspector_find.c: the TCP sockets of a process. */
void inspector_sockets_of(pid_t pid, inspector_sockets *ret);
/* Connects to a port as a process of its network would. until: CLOCK_MONOTONIC */
struct err *inspector_connect(pid_t pid, const struct inspector_socket *port, uint64_t until,
			      int *ret);
/* Returns ENOTSUP with the reason when SIGUSR1 does not open an inspector in the process, or could
 * do anything else. */
struct err *inspector_check_signal(pid_t pid);
/* Returns a bit for each of the 65,536 ports: those of --inspect in the command line and the
 * environment, and the default one. The caller frees it. */
uint64_t *inspector_named_ports(pid_t pid);

#endif
