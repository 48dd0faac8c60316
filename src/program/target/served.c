/* Starts a command where ptrace(2) is forbidden. The command serves itself: the dynamic linker
 * loads agent/preload.c into it (LD_PRELOAD), whose constructor passes /proc/self/mem to this
 * process, and makes the system calls that this process requests over a socket. So this process can
 * do to it, before its program begins, all that it does to a stopped process. Afterwards the
 * command cannot be stopped again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/procstatus.h"
#include "base/sealed.h"
#include "target_private.h"
#include "wire/preload.h"

extern const uint8_t descry_preload[], descry_preload_end[];

enum { HELLO_MS = 10000 };

/* Both ends of the two sockets for the command; -1: closed. */
struct channel {
	int service[2], files[2], self;
};

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct channel *ch)
{
	for (int i = 0; i < 2; i++) {
		close_one(&ch->service[i]);
		close_one(&ch->files[i]);
	}
	close_one(&ch->self);
}

static const char HELD[] = "cannot be held at its start: ptrace(2) is forbidden here, and";

/* --- its start --- */

static struct err *open_channel(struct channel *ch)
{
	struct err *e;

	*ch = (struct channel){ { -1, -1 }, { -1, -1 }, -1 };
	e = sealed_file("descry-preload", descry_preload,
			(size_t)(descry_preload_end - descry_preload), &ch->self);
	if (e)
		return e;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ch->service) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ch->files) < 0)
		return err_errno(errno, "socketpair");
	return NULL;
}

static void served_child(char *const argv[], const struct control_as *as, const struct channel *ch,
			 int report)
{
	char *const *base = as && as->user ? as->user->env : environ;
	const char *before = child_env_get(base, "LD_PRELOAD");
	cleanup_free char *preload = xasprintf("LD_PRELOAD=/proc/self/fd/%d%s%s", ch->self,
					       before ? ":" : "", before ? before : "");
	cleanup_free char *numbers = xasprintf("%s=%d,%d,%d,%d", PRELOAD_ENV, ch->service[1],
					       ch->files[1], ch->self, (int)getpid());
	cleanup_free char **env = child_env(base, (const char *[]){ preload, numbers }, 2);
	const int keep[] = { ch->service[1], ch->files[1], ch->self };
	const struct child c = { .argv = argv,
				 .env = env,
				 .out = as ? as->output : 0,
				 .keep = keep,
				 .nkeep = ARRAY_SIZE(keep),
				 .user = as ? as->user : NULL };
	int code;

	signal(SIGINT, SIG_DFL);
	child_exec(&c);
	code = errno;
	if (write(report, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

static bool has_threads(const struct control *c)
{
	cleanup_free char *status = NULL;

	err_free(control_read_status(c->pid, &status));
	return !status || procstatus_number(status, "Threads", 0) != 1;
}

/* Receives the first message: the command's stack address and its memory. */
static struct err *take_hello(struct control *c, const char *name)
{
	_Alignas(8) uint8_t control[CMSG_SPACE(sizeof(int))];
	struct preload_hello h;
	struct iovec iov = { &h, sizeof(h) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct pollfd p = { .fd = c->service, .events = POLLIN };
	struct control_thread *t;
	struct cmsghdr *head;

	if (poll(&p, 1, HELLO_MS) <= 0)
		return err_new(
			ETIMEDOUT,
			"%s did not load descry's library that holds a program at its start (ptrace(2) is "
			"forbidden here)",
			name);
	if (recvmsg(c->service, &m, MSG_CMSG_CLOEXEC) != sizeof(h) || !(head = CMSG_FIRSTHDR(&m)) ||
	    head->cmsg_type != SCM_RIGHTS)
		return err_new(ECHILD, "%s ended before it could be traced", name);
	memcpy(&c->mem, CMSG_DATA(head), sizeof(c->mem));
	if (has_threads(c))
		return err_new(ENOTSUP,
			       "%s %s its libraries have started threads before it could be held",
			       name, HELD);
	t = control_add_thread(c, c->pid);
	t->regs.rip = t->regs.rsp =
		h.stack; /* in code that is never patched: any such address will do */
	t->regs.fs_base = h.fs_base;
	t->regs.orig_rax = (uint64_t)-1;
	c->stopped = true;
	return NULL;
}

struct err *control_start_served(char *const argv[], const struct control_as *as,
				 struct control **ret)
{
	const char *path = as && as->user ? child_env_get(as->user->env, "PATH") : NULL;
	struct err *e = control_check_preload(argv[0], path, HELD, NULL);
	struct control *c = NULL;
	int report[2], code = 0;
	struct channel ch;
	pid_t pid;

	if (e)
		return e;
	e = open_channel(&ch);
	if (!e && pipe2(report, O_CLOEXEC) < 0)
		e = err_errno(errno, "pipe");
	if (e) {
		close_all(&ch);
		return e;
	}
	pid = fork();
	if (pid == 0)
		served_child(argv, as, &ch, report[1]);
	close(report[1]);
	if (pid < 0)
		e = err_errno(errno, "cannot start %s", argv[0]);
	else if (read(report[0], &code, sizeof(code)) == sizeof(code))
		e = control_cannot_run(argv[0], as, code);
	close(report[0]);
	e = e ?: control_new(pid, &c);
	if (c) {
		c->own = true;
		c->service = ch.service[0];
		c->files = ch.files[0];
		c->their_files = ch.files[1];
		ch.service[0] = ch.files[0] = -1;
	}
	close_all(&ch); /* closes the command's ends, so that its end is noticed */
	e = e ?: take_hello(c, argv[0]);
	if (e) {
		control_free(c);
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		return e;
	}
	control_adopt(pid);
	*ret = c;
	return NULL;
}

/* --- while it is held --- */

bool control_is_served(const struct control *c, int *ret_socket, int *ret_theirs)
{
	*ret_socket = c->files;
	*ret_theirs = c->their_files;
	return c->service >= 0;
}

struct err *control_serve(struct control *c, long nr, const uint64_t args[6], int64_t *ret_value)
{
	struct preload_request r = { .nr = nr };
	struct pollfd p = { .fd = c->service, .events = POLLIN };

	memcpy(r.arg, args, sizeof(r.arg));
	if (send(c->service, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
		return control_gone(c);
	if (poll(&p, 1, HELLO_MS) <= 0) { /* an answer that comes later would be another call's */
		control_serve_end(c);
		return err_new(ETIMEDOUT,
			       "process %d (%s) does not answer: no system call can be made in it",
			       c->pid, c->name);
	}
	if (recv(c->service, ret_value, sizeof(*ret_value), 0) != sizeof(*ret_value))
		return control_gone(c);
	return NULL;
}

void control_serve_go(struct control *c)
{
	const struct preload_request r = { .nr = PRELOAD_GO };

	if (send(c->service, &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r))
		control_serve_end(c);
}

void control_serve_end(struct control *c)
{
	close_one(&c->service);
	close_one(&c->files);
}
