/* Opens the inspector of a Node.js process, and talks to it. */
#define _GNU_SOURCE
#include "input/inspector/inspector.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/characters.h"
#include "base/clock.h"
#include "base/procdir.h"
#include "input/json_room.h"

static const uint64_t SECOND = 1000000000, MOMENT = 10000000;
enum {
	OPENS = 10,   /* seconds within which a port opens; for the search of an open one, too */
	ANSWERS = 10, /* and an HTTP request is answered */
	CALLS = 120,  /* and a method: the collector may have to go through a large heap */
	ID_MOST = 64,
	REASON_MOST = 200, /* characters of its text that a message shows */
};

/* --- the port --- */

static uint64_t in_seconds(uint64_t n)
{
	return now_ns() + n * SECOND;
}

/* Reads the path of the WebSocket: [{"webSocketDebuggerUrl": "ws://127.0.0.1:9229/ID", ...}] */
static struct err *path_of(const char *text, size_t n, char **ret)
{
	struct err *e = json_room(text, n);
	json_t *list = e ? NULL : json_loadb(text, n, 0, NULL);
	const json_t *first = json_array_get(list, 0);
	const char *id = json_string_value(json_object_get(first, "id"));
	const bool good = id && json_string_value(json_object_get(first, "webSocketDebuggerUrl"));
	const size_t k = good ? strlen(id) : 0;

	if (k && k <= ID_MOST && strspn(id, "0123456789abcdefABCDEF-") == k)
		*ret = xasprintf("/%s", id);
	else
		e = e ?: err_new(ENOTSUP, "no inspector listens there");
	json_decref(list);
	return e;
}

static char *host_of(const struct inspector_socket *port)
{
	return xasprintf("%s:%u", port->width == 4 ? "127.0.0.1" : "[::1]", port->port);
}

static struct err *ask_path(const struct inspector *i, const struct inspector_socket *port,
			    uint64_t until, char **ret)
{
	cleanup_free char *host = host_of(port), *text = NULL;
	cleanup_close int fd = -1;
	size_t n = 0;
	struct err *e = inspector_connect(i->pid, port, until, &fd);

	e = e ?: websocket_get(fd, host, "/json/list", until, i->ends, &text, &n);
	return e ?: path_of(text, n, ret);
}

static bool has_socket(const inspector_sockets *v, uint64_t inode)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->v[i].inode == inode)
			return true;
	return false;
}

/* Finds an open inspector among the ports of which `seen` has none, and adds the others to it: each
 * is asked once. The search ends at `until`, or when the user ends the command. `named`: asks only
 * ports that are likely to be one, because the others belong to the program. */
static bool find_port(struct inspector *i, inspector_sockets *seen, bool named, uint64_t until,
		      char **ret)
{
	inspector_sockets now = { 0 };
	uint64_t *ports = named ? inspector_named_ports(i->pid) : NULL;
	bool found = false;

	inspector_sockets_of(i->pid, &now);
	for (uint32_t k = 0; k < now.n && !found && !*i->ends && now_ns() < until; k++) {
		const struct inspector_socket *s = &now.v[k];

		if (!s->listens || (named && !(ports[s->port / 64] >> s->port % 64 & 1)) ||
		    has_socket(seen, s->inode))
			continue;
		found = !err_drop(ask_path(i, s, until, ret));
		if (found)
			i->port = *s;
		else
			vec_push(seen, *s);
	}
	vec_fini(&now);
	free(ports);
	return found;
}

static struct err *send_signal(pid_t pid)
{
	cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct err *e;

	if (pidfd < 0)
		return err_errno(errno, "pidfd_open");
	e = inspector_check_signal(pid);
	if (!e && syscall(SYS_pidfd_send_signal, pidfd, SIGUSR1, NULL, 0))
		e = err_errno(errno, "SIGUSR1");
	return e;
}

static struct err *open_port(struct inspector *i, char **ret_path)
{
	inspector_sockets seen = { 0 };
	struct err *e = NULL;
	bool found = find_port(i, &seen, true, in_seconds(OPENS), ret_path);
	uint64_t until;

	if (found)
		return NULL;
	inspector_sockets_of(i->pid, &seen);
	e = *i->ends ? err_new(EINTR, "interrupted") : send_signal(i->pid);
	i->opened = !e;
	until = in_seconds(OPENS);
	while (!e && !find_port(i, &seen, false, until, ret_path)) {
		if (*i->ends)
			e = err_new(EINTR, "interrupted");
		else if (procdir_ended(i->pid))
			e = err_new(ESRCH, "it has ended");
		else if (now_ns() > until)
			e = err_new(ENOTSUP,
				    "it has got SIGUSR1, and opens no port: another program "
				    "may have the port, or the program is busy (then the port "
				    "may open later, and stays open)");
		else
			nap_ns(MOMENT);
	}
	vec_fini(&seen);
	return e;
}

/* Returns true when the other side of the connection is a socket of the process. */
static bool is_theirs(const struct inspector *i)
{
	struct sockaddr_storage a = { 0 };
	socklen_t size = sizeof(a);
	inspector_sockets now = { 0 };
	uint16_t mine;
	bool found = false;

	if (getsockname(i->socket.fd, (struct sockaddr *)&a, &size))
		return false;
	mine = a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port
				      : ((struct sockaddr_in6 *)&a)->sin6_port;
	inspector_sockets_of(i->pid, &now);
	for (uint32_t k = 0; k < now.n; k++)
		found |= !now.v[k].listens && now.v[k].port == i->port.port &&
			 now.v[k].peer == ntohs(mine);
	vec_fini(&now);
	return found;
}

struct err *inspector_open(pid_t pid, const volatile sig_atomic_t *ends, struct inspector **ret)
{
	struct inspector *i = xcalloc(1, sizeof(*i));
	cleanup_free char *path = NULL, *host = NULL;
	struct err *e;
	bool stays = false;
	uint16_t port;
	int fd = -1;

	*i = (struct inspector){ .pid = pid, .socket = { .fd = -1 }, .ends = ends };
	e = open_port(i, &path);
	e = e ?: inspector_connect(pid, &i->port, in_seconds(ANSWERS), &fd);
	if (!e) {
		host = host_of(&i->port);
		e = websocket_init(&i->socket, fd, host, path, in_seconds(ANSWERS), ends);
		i->socket.ends = NULL;
	}
	if (!e && !is_theirs(i))
		e = err_new(ENOTSUP, "another process answers at its port");
	/* at its end, the process waits for the connection's end */
	e = e
		    ?: inspector_ask(i, "NodeRuntime.notifyWhenWaitingForDisconnect",
				     "{\"enabled\":true}");
	if (!e) {
		*ret = i;
		return NULL;
	}
	port = i->port.port;
	inspector_close(i, &stays);
	return stays ? err_wrap(e, "the inspector of process %d, whose port %u stays open",
				(int)pid, port)
		     : err_wrap(e, "the inspector of process %d", (int)pid);
}

/* --- calls --- */

/* Takes a text: the answer to the last call, or an event. */
static struct err *take(struct inspector *i, const char *text, size_t n, json_t **ret_answer)
{
	struct err *e = json_room(text, n);
	json_t *o = e ? NULL : json_loadb(text, n, 0, NULL);
	const char *method = json_string_value(json_object_get(o, "method"));
	const json_t *id = json_object_get(o, "id");

	*ret_answer = NULL;
	if (e)
		return e;
	if (!json_is_object(o)) {
		json_decref(o);
		return err_new(EPROTO, "it sends what is no JSON");
	}
	i->leaving |= method && !strcmp(method, "NodeRuntime.waitingForDisconnect");
	if (json_is_integer(id) && (uint64_t)json_integer_value(id) == i->calls)
		*ret_answer = o;
	else
		json_decref(o);
	return NULL;
}

static struct err *receive(struct inspector *i, uint64_t until, json_t **ret_answer)
{
	const char *text;
	size_t n;
	struct err *e = websocket_receive(&i->socket, until, &text, &n);

	*ret_answer = NULL;
	return e || !text ? e : take(i, text, n, ret_answer);
}

static struct err *refused(const char *method, const char *reason)
{
	cleanup_free char *shown = xstrndup(reason, REASON_MOST);

	characters_show(shown, strlen(shown));
	return err_new(EPROTO, "%s: %s", method, shown);
}

static struct err *call_until(struct inspector *i, uint64_t until, const char *method,
			      const char *params, json_t **ret)
{
	cleanup_free char *text = xasprintf("{\"id\":%llu,\"method\":\"%s\",\"params\":%s}",
					    (unsigned long long)++i->calls, method, params);
	struct err *e = websocket_send(&i->socket, text, until);
	json_t *answer = NULL, *result;
	const char *reason;

	while (!e && !answer) {
		e = receive(i, until, &answer);
		if (!e && !answer && i->socket.ends && *i->socket.ends)
			e = err_new(EINTR, "interrupted");
		if (!e && !answer && now_ns() >= until)
			e = err_new(ETIMEDOUT, "%s: it does not answer", method);
	}
	if (e)
		return e;
	result = json_object_get(answer, "result");
	reason = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
	if (!json_is_object(result))
		e = refused(method, reason ?: "an answer of another form");
	else if (ret)
		*ret = json_incref(result);
	json_decref(answer);
	return e;
}

struct err *inspector_call(struct inspector *i, const char *method, const char *params,
			   json_t **ret)
{
	return call_until(i, in_seconds(CALLS), method, params, ret);
}

struct err *inspector_ask(struct inspector *i, const char *method, const char *params)
{
	struct err *e;

	i->socket.ends = i->ends;
	e = call_until(i, in_seconds(ANSWERS), method, params, NULL);
	i->socket.ends = NULL;
	return e;
}

struct err *inspector_wait(struct inspector *i, uint64_t until)
{
	json_t *answer;
	struct err *e = receive(i, until, &answer);

	json_decref(answer);
	return e;
}

/* --- the end --- */

/* Closes the port when this connection has ended: Node.js waits for the end of all connections. */
static bool close_port(struct inspector *i)
{
	const uint64_t until = in_seconds(OPENS);
	inspector_sockets now = { 0 };
	bool open = true;

	if (i->socket.fd < 0 ||
	    err_drop(call_until(i, until, "Runtime.evaluate",
				"{\"expression\":\"void setImmediate(() => process._debugEnd())\","
				"\"silent\":true}",
				NULL)))
		return false;
	websocket_fini(&i->socket);
	while (open && now_ns() < until && !procdir_ended(i->pid)) {
		inspector_sockets_of(i->pid, &now);
		open = has_socket(&now, i->port.inode);
		if (open)
			nap_ns(MOMENT);
	}
	vec_fini(&now);
	return !open || procdir_ended(i->pid);
}

void inspector_close(struct inspector *i, bool *ret_stays)
{
	bool stays = false;

	if (!i)
		return;
	/* a process that is about to end closes it by itself */
	if (i->opened && i->port.port && !i->leaving && !procdir_ended(i->pid))
		stays = !close_port(i);
	websocket_fini(&i->socket);
	if (ret_stays)
		*ret_stays = stays;
	free(i);
}
