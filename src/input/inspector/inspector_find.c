/* The port of a process's inspector, by what /proc says of its sockets. */
#define _GNU_SOURCE
#include "input/inspector/inspector.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/procdir.h"
#include "base/procmem.h"
#include "program/runtime/runtime.h"
#include "program/space/space.h"
#include "program/target/target.h"

enum {
	ESTABLISHED = 1,
	LISTEN = 10,
	STOPS_MS = 2000,
	DEFAULT_PORT = 9229,
	FD_NAME = 64,
	PORTS = 65536,
};

/* --- sockets --- */

static void add_inodes(pid_t pid, struct hash *ret)
{
	char path[FD_NAME];
	cleanup_dir DIR *d = NULL;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	for (int fd; procdir_next(d, &fd);) {
		char name[FD_NAME], link[FD_NAME] = "";
		uint64_t inode;

		snprintf(name, sizeof(name), "%d", fd);
		if (readlinkat(dirfd(d), name, link, sizeof(link) - 1) > 0 &&
		    sscanf(link, "socket:[%" SCNu64 "]", &inode) == 1)
			*hash_put(ret, &inode, sizeof(inode), NULL) = 1;
	}
}

/* An address is words of 32 bits in the machine's order. */
static bool read_address(const char *text, uint8_t *ret, uint8_t *ret_width)
{
	const size_t n = strspn(text, "0123456789ABCDEF");

	if (n != 8 && n != 32)
		return false;
	*ret_width = (uint8_t)(n / 2);
	for (size_t i = 0; i < n / 8; i++) {
		char word[9] = { 0 };
		uint32_t v;

		memcpy(word, text + i * 8, 8);
		v = (uint32_t)strtoul(word, NULL, 16);
		memcpy(ret + i * 4, &v, sizeof(v));
	}
	return true;
}

/*	0: 0100007F:240D 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 12345 1 ... */
static void add_sockets(pid_t pid, const char *table, const struct hash *inodes,
			inspector_sockets *ret)
{
	cleanup_free char *path = xasprintf("/proc/%d/net/%s", (int)pid, table);
	cleanup_free char *text = NULL;
	char *rest = NULL;
	size_t n;

	if (err_drop(io_read_file(path, &text, &n)))
		return;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct inspector_socket s = { 0 };
		unsigned int port, peer, state;
		char address[33];

		if (sscanf(line,
			   " %*u: %32[0-9A-F]:%x %*[0-9A-F]:%x %x %*s %*s %*s %*u %*u %" SCNu64,
			   address, &port, &peer, &state, &s.inode) != 5 ||
		    (state != LISTEN && state != ESTABLISHED) ||
		    !hash_get(inodes, &s.inode, sizeof(s.inode)) ||
		    !read_address(address, s.address, &s.width))
			continue;
		s.listens = state == LISTEN;
		s.port = (uint16_t)port;
		s.peer = (uint16_t)peer;
		vec_push(ret, s);
	}
}

void inspector_sockets_of(pid_t pid, inspector_sockets *ret)
{
	struct hash inodes = { 0 };

	ret->n = 0;
	add_inodes(pid, &inodes);
	if (inodes.n) {
		add_sockets(pid, "tcp", &inodes, ret);
		add_sockets(pid, "tcp6", &inodes, ret);
	}
	hash_fini(&inodes);
}

/* --- a connection --- */

static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A socket belongs to the network in which it was made. */
static struct err *socket_in(pid_t pid, int family, int *ret)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/net", (int)pid);
	cleanup_close int theirs = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_close int ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	const bool enters = theirs >= 0 && ours >= 0 && !is_same_file(theirs, ours);

	if (enters && setns(theirs, CLONE_NEWNET))
		return err_errno(errno, "setns");
	*ret = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (enters && setns(ours, CLONE_NEWNET)) {
		close(*ret);
		return err_errno(errno, "setns");
	}
	return *ret < 0 ? err_errno(errno, "socket") : NULL;
}

struct err *inspector_connect(pid_t pid, const struct inspector_socket *port, uint64_t until,
			      int *ret)
{
	static const uint8_t any[16];
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port->port) };
	const bool is_v4 = port->width == sizeof(v4.sin_addr);
	const struct sockaddr *to = is_v4 ? (const struct sockaddr *)&v4
					  : (const struct sockaddr *)&v6;
	/* the process may be stopped, and its queue full; 0 would be for ever */
	const uint64_t now = now_ns(), us = until > now ? (until - now) / 1000 + 1 : 1;
	const struct timeval most = { (time_t)(us / 1000000), (suseconds_t)(us % 1000000) };
	struct err *e;
	int fd = -1;

	memcpy(is_v4 ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr, port->address, port->width);
	if (!memcmp(port->address, any, port->width)) { /* of all interfaces */
		v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		v6.sin6_addr = in6addr_loopback;
	}
	e = socket_in(pid, to->sa_family, &fd);
	if (!e)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (!e && connect(fd, to, is_v4 ? sizeof(v4) : sizeof(v6))) {
		e = err_errno(errno, "connect to port %u", port->port);
		close(fd);
	}
	if (!e)
		*ret = fd;
	return e;
}

/* --- SIGUSR1 --- */

/* Node.js sets its handler without SA_RESTART, libuv that of the program's listeners with it. */
static struct err *check_handler(pid_t pid)
{
	struct control *c = NULL;
	uint64_t handler = 0, flags = 0;
	struct err *e = control_open(pid, &c);

	e = e ?: control_stop_to_call(c, STOPS_MS);
	e = e ?: control_signal_handler(c, SIGUSR1, &handler, &flags);
	control_free(c);
	if (e)
		return err_wrap(
			e, "the handler of SIGUSR1, which opens the inspector, cannot be read");
	if (handler == (uint64_t)SIG_DFL || handler == (uint64_t)SIG_IGN)
		return err_new(ENOTSUP, "it does not wait for SIGUSR1, which opens the inspector");
	if (flags & SA_RESTART)
		return err_new(ENOTSUP, "the program handles SIGUSR1 itself, which would open the "
					"inspector: start it with --inspect");
	return NULL;
}

struct err *inspector_check_signal(pid_t pid)
{
	struct space *space = NULL;
	struct runtime *r = NULL;
	struct err *e = space_live(pid, &space);
	bool is_v8;

	e = e ?: runtime_find(space, &r);
	is_v8 = !e && r && r->type == &runtime_v8;
	runtime_free(r);
	space_free(space);
	if (e)
		return e;
	return is_v8 ? check_handler(pid) : err_new(ENOTSUP, "it does not run Node.js");
}

/* --- the port of the command line --- */

static void add_port(uint64_t *ports, uint64_t port)
{
	if (port < PORTS)
		ports[port / 64] |= 1ull << port % 64;
}

/* "--inspect=127.0.0.1:9300 --inspect-port=9301" */
static void add_named(uint64_t *ports, const char *text)
{
	for (const char *at = text; (at = strstr(at, "--inspect"));) {
		const char *end = at + strcspn(at, " "), *digits = end;

		while (digits > at && digits[-1] >= '0' && digits[-1] <= '9')
			digits--;
		if (digits < end && end - digits < 6 && strchr("=:", digits[-1]))
			add_port(ports, strtoul(digits, NULL, 10));
		at = end;
	}
}

uint64_t *inspector_named_ports(pid_t pid)
{
	static const char *const files[] = { "cmdline", "environ" };
	uint64_t *ports = xcalloc(PORTS / 64, sizeof(*ports));

	add_port(ports, DEFAULT_PORT);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		cleanup_free char *path = xasprintf("/proc/%d/%s", (int)pid, files[i]);
		cleanup_free char *text = NULL;
		size_t n = 0;

		if (err_drop(procmem_file(pid, path, &text, &n)))
			continue;
		for (size_t at = 0; at < n; at += strlen(text + at) + 1)
			if (!i || !strncmp(text + at, "NODE_OPTIONS=", 13))
				add_named(ports, text + at);
	}
	return ports;
}
