/* Loads a library into a running JVM. A child with the rights of the JVM's user does the work, and
 * sends the answer and the FIFO to its parent. */
#define _GNU_SOURCE
#include "load/java_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "base/procstatus.h"
#include "base/regular.h"
#include "program/runtime/jvm/jvm.h"
#include "program/space/mapping.h"
#include "program/target/target.h"
#include "wire/jvm_text.h"

extern const uint8_t descry_jvm[], descry_jvm_end[];

enum {
	LISTENS_S = 15, /* a JVM that does not listen by then does not answer */
	ANSWERS_S = 30,
	ENDS_S = 60, /* the child is ended then */
	LOOKS_MS = 20,
	ENDED_MS = 2000,
	STOPS_MS = 2000,
	OPENS_MAX = 20,
	ANSWER_SIZE = 2048,
	NAME_SIZE = JAVA_LIBRARY_SIZE,
};

/* A process's rights and numbers, from /proc/PID/status. */
struct java_owner {
	uid_t uid;
	gid_t gid;
	VEC(gid_t) groups;
	int number;        /* its pid in its own namespace */
	char unasked[160]; /* the reason why it is sent no SIGQUIT; "": it is */
};

/* The child's answer; with `ok`, the descriptor of the FIFO comes with it. */
struct java_answer {
	bool ok;
	char text[256];
};

/* The work of the child. */
struct java_child {
	pid_t pid;
	int root, pidfd, socket;
	const struct java_owner *owner;
	const char *addresses;
	uint64_t end; /* CLOCK_MONOTONIC */
	int tmp, dir; /* the folder for temporary files, and descry's own in it */
	char tmp_path[16], dir_name[NAME_SIZE];
	char name[NAME_SIZE];   /* of the library; other bytes have another name */
	char before[NAME_SIZE]; /* folder's name when the JVM seems to have loaded it; "": not so */
	struct java_answer answer;
};

/* --- the owner --- */

static struct err *read_owner(pid_t pid, struct java_owner *ret)
{
	cleanup_free char *status = procstatus_read(pid);
	const char *p, *end;

	*ret = (struct java_owner){ 0 };
	if (!status)
		return err_errno(errno, "/proc/%d/status", (int)pid);
	ret->uid = (uid_t)procstatus_number(status, "Uid", 1);
	ret->gid = (gid_t)procstatus_number(status, "Gid", 1);
	if (!(procstatus_mask(status, "SigCgt") & 1ull << (SIGQUIT - 1)))
		snprintf(ret->unasked, sizeof(ret->unasked),
			 "it does not handle SIGQUIT, by which a JVM is asked to listen: it runs "
			 "with -Xrs, or has not begun");
	ret->number = (int)procstatus_number(status, "NSpid", PROCSTATUS_LAST);
	if (ret->number <= 0)
		ret->number = pid;
	p = procstatus_field(status, "Groups");
	for (end = p + strcspn(p, "\n"); p < end; p += strspn(p, " \t")) {
		char *next;
		unsigned long group = strtoul(p, &next, 10);

		if (next == p)
			break;
		vec_push(&ret->groups, (gid_t)group);
		p = next;
	}
	return NULL;
}

static bool is_jvms(const struct mappings *maps, uint64_t addr)
{
	const struct mapping *m = mappings_find(maps, addr);
	const char *name = m && m->exec && m->path ? strrchr(m->path, '/') : NULL;

	return name && (!strncmp(name, "/libjvm.so", 10) || !strncmp(name, "/libjsig.so", 11));
}

/* A program with a JVM in it may handle SIGQUIT itself: it ends servers. */
static void check_handler(pid_t pid, struct java_owner *ret)
{
	const struct mappings *maps = NULL;
	struct control *c = NULL;
	uint64_t handler = 0;
	struct err *e = control_open(pid, &c);

	e = e ?: control_stop_to_call(c, STOPS_MS);
	e = e ?: control_signal_handler(c, SIGQUIT, &handler, NULL);
	e = e ?: control_maps(c, &maps);
	if (e)
		snprintf(ret->unasked, sizeof(ret->unasked),
			 "the handler of SIGQUIT, by which it is asked to listen, cannot be read "
			 "(%s); `jcmd %d VM.version` makes it listen",
			 e->text, (int)pid);
	else if (!is_jvms(maps, handler))
		snprintf(
			ret->unasked, sizeof(ret->unasked),
			"the program handles SIGQUIT itself, by which a JVM is asked to listen: start "
			"it with -XX:+StartAttachListener");
	err_free(e);
	control_free(c);
}

/* To SIGQUIT, such a JVM prints the stacks of its threads. */
static void check_option(pid_t pid, struct java_owner *ret)
{
	struct space *space = NULL;
	struct runtime *r = NULL;
	struct err *e = space_live(pid, &space);

	e = e ?: runtime_find(space, &r);
	if (r && r->type == &runtime_jvm && jvm_option((struct jvm *)r, "DisableAttachMechanism"))
		snprintf(ret->unasked, sizeof(ret->unasked),
			 "it was started with -XX:+DisableAttachMechanism");
	err_free(e);
	runtime_free(r);
	space_free(space);
}

/* --- the child: system calls only, because the parent may have threads --- */

static volatile sig_atomic_t gives_up;

static void give_up(int signal)
{
	(void)signal;
	gives_up = 1;
}

/* Returns true until the time is over, or the parent wants no answer any more. */
static bool has_time(uint64_t end)
{
	return !gives_up && now_ns() < end;
}

static void refuse(struct java_child *c, int errno_value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void refuse(struct java_child *c, int errno_value, const char *fmt, ...)
{
	char *text = c->answer.text;
	va_list ap;
	size_t n;

	if (*text)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(c->answer.text), fmt, ap);
	va_end(ap);
	n = strlen(text);
	if (errno_value)
		snprintf(text + n, sizeof(c->answer.text) - n, ": %s", strerror(errno_value));
}

/* Takes the rights of the JVM's user, and no more. */
static bool become(struct java_child *c)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	const struct java_owner *o = c->owner;
	bool same = o->uid == geteuid() && o->uid == getuid() && o->gid == getegid();

	prctl(PR_SET_DUMPABLE, 0); /* so that the JVM's user cannot follow the child */
	if (!same || geteuid() == 0) {
		if (setgroups(o->groups.n, o->groups.v) || setresgid(o->gid, o->gid, o->gid) ||
		    setresuid(o->uid, o->uid, o->uid)) {
			refuse(c, errno, "it belongs to another user");
			return false;
		}
		prctl(PR_SET_DUMPABLE, 0);
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_capset, &head, none)) {
		refuse(c, errno, "capset");
		return false;
	}
	return true;
}

/* Opens a folder as the JVM sees it: links lead to places in its own file system. */
static int open_inside(const struct java_child *c, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = -1, tries = 0;

	/* EAGAIN: somebody renamed or mounted meanwhile */
	do
		fd = (int)syscall(SYS_openat2, c->root, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && ++tries < OPENS_MAX);
	return fd;
}

static bool write_library(const struct java_child *c)
{
	const size_t size = (size_t)(descry_jvm_end - descry_jvm);
	int fd = outfile_new(c->dir, c->name, 0500);
	bool ok = fd >= 0 && write(fd, descry_jvm, size) == (ssize_t)size;

	if (fd >= 0)
		close(fd);
	return ok;
}

static void remove_files(struct java_child *c)
{
	if (c->dir < 0)
		return;
	unlinkat(c->dir, c->name, 0);
	unlinkat(c->dir, "end", 0);
	close(c->dir);
	unlinkat(c->tmp, c->dir_name, AT_REMOVEDIR);
	c->dir = -1;
}

/* Makes a folder that only the JVM's user can change. Its name is the earlier one where that is
 * free: the C library does not load a library again that has the same path. */
static bool make_folder(struct java_child *c)
{
	uint64_t random;

	memcpy(c->dir_name, c->before, sizeof(c->dir_name));
	if (*c->dir_name && !mkdirat(c->tmp, c->dir_name, 0700))
		return true;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return false;
	snprintf(c->dir_name, sizeof(c->dir_name), "%s%016llx", &JAVA_SWITCH_FOLDER[1],
		 (unsigned long long)random);
	return !mkdirat(c->tmp, c->dir_name, 0700);
}

/* Makes the folder with the library and the FIFO, below `path`. */
static bool make_files_in(struct java_child *c, const char *path)
{
	struct statvfs fs;

	c->tmp = open_inside(c, path);
	if (c->tmp < 0 || fstatvfs(c->tmp, &fs) || fs.f_flag & ST_NOEXEC || !make_folder(c))
		goto failed;
	snprintf(c->tmp_path, sizeof(c->tmp_path), "%s", path);
	c->dir = openat(c->tmp, c->dir_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->dir >= 0 && write_library(c) && !mkfifoat(c->dir, "end", 0600))
		return true;
	remove_files(c);
failed:
	if (c->tmp >= 0)
		close(c->tmp);
	c->tmp = -1;
	return false;
}

static bool make_files(struct java_child *c)
{
	if (make_files_in(c, "/tmp") || make_files_in(c, "/var/tmp") ||
	    make_files_in(c, "/dev/shm"))
		return true;
	refuse(c, 0,
	       "neither /tmp nor /var/tmp nor /dev/shm takes a library for it: they are full, "
	       "read-only, or mounted without permission to execute");
	return false;
}

/* Returns true when the JVM's socket is there, in its /tmp. Refuses when the file there is not the
 * JVM's: one that was killed leaves its socket, and another JVM may have its number later. */
static bool listens(struct java_child *c, int tmp)
{
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), ".java_pid%d", c->owner->number);
	if (fstatat(tmp, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	if (S_ISSOCK(st.st_mode) && st.st_uid == c->owner->uid)
		return true;
	refuse(c, 0, "/tmp/%s, where it would listen, is another user's file", name);
	return false;
}

/* Makes the JVM listen. */
static bool wake(struct java_child *c, int tmp)
{
	uint64_t end = now_ns() + LISTENS_S * 1000000000ull;
	bool made, there = listens(c, tmp);
	char name[32];
	int fd;

	if (there || *c->answer.text)
		return there;
	if (*c->owner->unasked) {
		refuse(c, 0, "%s", c->owner->unasked);
		return false;
	}
	snprintf(name, sizeof(name), ".attach_pid%d", c->owner->number);
	fd = outfile_new(tmp, name, OUTFILE_PRIVATE);
	made = fd >= 0;
	if (made)
		close(fd);
	if (!made && errno != EEXIST) {
		refuse(c, errno, "its /tmp cannot be written");
		return false;
	}
	if (syscall(SYS_pidfd_send_signal, c->pidfd, SIGQUIT, NULL, 0))
		refuse(c, errno, "kill");
	while (!*c->answer.text && !(there = listens(c, tmp)) && has_time(end))
		nap_ns(LOOKS_MS * 1000000ull);
	if (made)
		unlinkat(tmp, name, 0);
	if (!there) /* unless refused before */
		refuse(c, 0, "it does not answer to SIGQUIT within %d seconds", LISTENS_S);
	return there;
}

/* Connects to the JVM's socket. A link there leads anywhere, so this checks who listens. */
static int connect_jvm(struct java_child *c, int tmp)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), failed;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct ucred who;
	socklen_t n = sizeof(who);

	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/.java_pid%d", tmp,
		 c->owner->number);
	while ((failed = connect(fd, (struct sockaddr *)&at, sizeof(at))) && errno == EAGAIN &&
	       has_time(c->end))
		nap_ns(LOOKS_MS * 1000000ull);
	if (failed) {
		refuse(c, errno, "its attach socket");
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) || who.pid != c->pid) {
		refuse(c, 0, "another process listens at its attach socket");
		failed = 1;
	}
	if (!failed)
		return fd;
	close(fd);
	return -1;
}

/* Sends a request in the JVM's form: texts that end with a NUL. */
static bool send_request(struct java_child *c, int fd)
{
	char text[JAVA_SWITCH_TEXT * 2];
	const int n = snprintf(text, sizeof(text), "1%cload%c%s/%s/%s%ctrue%c%s/%s/end %s", 0, 0,
			       c->tmp_path, c->dir_name, c->name, 0, 0, c->tmp_path, c->dir_name,
			       c->addresses);

	if (n < 0 || (size_t)n >= sizeof(text) ||
	    send(fd, text, (size_t)n + 1, MSG_NOSIGNAL) != n + 1) {
		refuse(c, errno, "its attach socket");
		return false;
	}
	return true;
}

/* Reads the JVM's answer to the end, without its NULs. */
static bool read_answer(struct java_child *c, int fd, char *ret, size_t size)
{
	size_t have = 0;

	while (has_time(c->end)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, LOOKS_MS) < 1)
			continue;
		n = recv(fd, ret + have, size - 1 - have, 0);
		if (n > 0)
			have += (size_t)n;
		if (n <= 0 || have == size - 1) {
			ret[have] = 0;
			return true;
		}
	}
	refuse(c, 0, "it does not answer within %d seconds", ANSWERS_S);
	return false;
}

/* "0\nreturn code: 0\n" */
static void understand(struct java_child *c, const char *answer)
{
	static const char *const reasons[] = {
		[JAVA_SWITCH_BAD_TEXT] = "descry's library does not understand its text",
		[JAVA_SWITCH_NO_ROOM] = "too many other tracers have switched its probes on",
		[JAVA_SWITCH_NO_FIFO] = "descry's library cannot open its FIFO",
		[JAVA_SWITCH_NO_JVMTI] = "it has no JVM TI",
		[JAVA_SWITCH_NO_INTERNALS] =
			"it does not have the function that gives compiled code up",
		[JAVA_SWITCH_NO_THREAD] = "it cannot start a thread",
		[JAVA_SWITCH_NO_SAMPLES] =
			"it gives no samples: it is older than Java 11, or another agent has them",
		[JAVA_SWITCH_SAMPLED] = "another tracer samples its objects",
	};
	const char *line = strchr(answer, '\n'), *code = strstr(answer, "return code: ");
	unsigned long n = 0;

	if (answer[0] == '0' && code) {
		n = strtoul(code + strlen("return code: "), NULL, 10);
		c->answer.ok = n == JAVA_SWITCH_ON;
		if (n && n < ARRAY_SIZE(reasons))
			refuse(c, 0, "%s", reasons[n]);
	}
	if (!c->answer.ok)
		refuse(c, 0, "it refuses to load descry's library: %s", line ? line + 1 : answer);
}

/* Makes the JVM load the library and call it. */
static void request(struct java_child *c, int tmp)
{
	char answer[ANSWER_SIZE];
	int fd;

	c->end = now_ns() + ANSWERS_S * 1000000000ull;
	fd = connect_jvm(c, tmp);
	if (fd < 0)
		return;
	if (send_request(c, fd) && read_answer(c, fd, answer, sizeof(answer)))
		understand(c, answer);
	close(fd);
}

static void attach_child(struct java_child *c, int *ret_fifo)
{
	int tmp;

	*ret_fifo = -1;
	if (!become(c) || !make_files(c))
		return;
	tmp = open_inside(c, "/tmp");
	*ret_fifo = regular_open_fifo(c->dir, "end", c->owner->uid);
	if (tmp < 0 || *ret_fifo < 0)
		refuse(c, errno, "its /tmp");
	else if (wake(c, tmp))
		request(c, tmp);
	remove_files(c);
}

static void send_result(const struct java_child *c, int fifo)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)&c->answer, sizeof(c->answer) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (c->answer.ok) {
		m.msg_control = control.space;
		m.msg_controllen = sizeof(control.space);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fifo, sizeof(int));
	}
	sendmsg(c->socket, &m, MSG_NOSIGNAL);
}

/* --- the parent --- */

static bool take_result(int socket, struct java_answer *ret, int *ret_fifo)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	bool got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) == sizeof(*ret);
	struct statx st;

	*ret_fifo = -1;
	if (got && m.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    control.head.cmsg_type == SCM_RIGHTS)
		memcpy(ret_fifo, CMSG_DATA(&control.head), sizeof(int));
	/* a server of a file system is not asked */
	if (*ret_fifo >= 0 &&
	    (statx(*ret_fifo, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) ||
	     !S_ISFIFO(st.stx_mode))) {
		close(*ret_fifo);
		*ret_fifo = -1;
		got = false;
	}
	ret->text[sizeof(ret->text) - 1] = 0;
	return got;
}

/* The text of an error is the JVM's, so only plain characters of its first line are shown. */
static void make_plain(char *s)
{
	s[strcspn(s, "\n")] = 0;
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

/* A server of a file system that does not answer keeps a killed process too. */
static bool child_ends(pid_t child)
{
	const uint64_t end = now_ns() + ENDED_MS * 1000000ull;
	pid_t got;

	while ((got = waitpid(child, NULL, WNOHANG)) != child && now_ns() < end) {
		if (got < 0 && errno != EINTR)
			return true;
		nap_ns(1000000);
	}
	return got == child;
}

/* Waits for the child's answer; a signal to this process ends the wait. */
static struct err *await_child(pid_t child, int socket, int *ret_fifo)
{
	struct pollfd p = { .fd = socket, .events = POLLIN };
	int ready = poll(&p, 1, ENDS_S * 1000), at = errno;
	struct java_answer a = { 0 };
	bool got = ready > 0 && take_result(socket, &a, ret_fifo);

	/* It removes its files first. */
	if (!got && !kill(child, SIGTERM) && poll(&p, 1, ENDED_MS) <= 0)
		kill(child, SIGKILL);
	if (!child_ends(child))
		return err_new(ETIMEDOUT,
			       "process %d, which speaks to it, waits for a file system that does "
			       "not answer",
			       (int)child);
	if (!got)
		return ready < 0    ? err_errno(at, "waiting for its answer")
		       : ready == 0 ? err_new(ETIMEDOUT, "it does not answer")
				    : err_new(0, "the process that speaks to it has ended");
	if (a.ok && *ret_fifo >= 0)
		return NULL;
	make_plain(a.text);
	return err_new(0, "%s", a.text);
}

static struct err *attach_as(struct java_child *c, int *ret_fifo)
{
	int pair[2], fifo;
	struct err *e;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(errno, "socketpair");
	child = fork();
	if (child < 0) {
		e = err_errno(errno, "fork");
	} else if (!child) {
		signal(SIGINT, SIG_IGN); /* the parent tells it */
		signal(SIGTERM, give_up);
		c->socket = pair[1];
		child_close_files((const int[]){ c->socket, c->root, c->pidfd }, 3);
		attach_child(c, &fifo);
		send_result(c, fifo);
		_exit(0);
	}
	close(pair[1]);
	if (child > 0)
		e = await_child(child, pair[0], ret_fifo);
	close(pair[0]);
	return e;
}

void java_library_name(char ret[JAVA_LIBRARY_SIZE])
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	for (const uint8_t *p = descry_jvm; p < descry_jvm_end; p++)
		hash = (hash ^ *p) * 0x100000001b3;
	snprintf(ret, JAVA_LIBRARY_SIZE, "%s%016llx.so", &JAVA_SWITCH_FILE[1],
		 (unsigned long long)hash);
}

/* Names the library, and finds the folder from which the JVM has loaded it before. Another user may
 * have made the name up, by a file that the JVM maps. So the path is never used as it stands: it
 * names the folder that the child makes, with the library in it. */
static void find_before(struct java_child *c)
{
	static const char gone[] = " (deleted)";
	struct mappings maps = { 0 };
	java_library_name(c->name);
	err_free(mappings_read(c->pid, &maps));
	for (uint32_t i = 0; i < maps.n && !*c->before; i++) {
		const char *dir = maps.v[i].exec ? strstr(maps.v[i].path, JAVA_SWITCH_FOLDER)
						 : NULL;
		const char *digits = dir ? dir + sizeof(JAVA_SWITCH_FOLDER) - 1 : "", *end;

		end = digits + strspn(digits, "0123456789abcdef");
		if (end - digits == 16 && *end == '/' &&
		    !strncmp(end + 1, c->name, strlen(c->name)) &&
		    !strcmp(end + 1 + strlen(c->name), gone))
			snprintf(c->before, sizeof(c->before), "%.*s", (int)(end - dir - 1),
				 dir + 1);
	}
	mappings_free(&maps);
}

struct err *java_attach(pid_t pid, const char *addresses, int *ret_fifo)
{
	cleanup_free char *root = xasprintf("/proc/%d/root", (int)pid);
	struct java_child c = { .pid = pid, .addresses = addresses, .tmp = -1, .dir = -1 };
	struct java_owner owner;
	struct err *e;

	c.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	c.root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	e = c.pidfd < 0 ? err_errno(errno, "pidfd_open") : read_owner(pid, &owner);
	c.owner = &owner;
	if (!e && c.root < 0)
		e = err_errno(errno, "%s", root);
	if (!e) {
		if (!*owner.unasked)
			check_handler(pid, &owner);
		if (!*owner.unasked)
			check_option(pid, &owner);
		find_before(&c);
	}
	e = e ?: attach_as(&c, ret_fifo);
	if (c.pidfd >= 0) {
		vec_fini(&owner.groups);
		close(c.pidfd);
	}
	if (c.root >= 0)
		close(c.root);
	return e;
}

void java_let_go(int fifo)
{
	if (write(fifo, "", 1) != 1) {
		/* the JVM has ended, or the FIFO is full: closing it is enough */
	}
	close(fifo);
}
