/* Maps the tracer's files in a stopped process by system calls that the process makes. */
#define _GNU_SOURCE
#include "load/inproc/memory/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "load/inproc/undo/undo.h"

enum { PAGE = 4096 };

/* One page in the target's memory: the arguments of system calls, and the data that undo_strays()
 * needs. */
struct mail {
	struct undo_mail who;
	struct msghdr head;
	struct iovec iov;
	char byte;
	_Alignas(8) uint8_t control[CMSG_SPACE(sizeof(int) * REMOTE_FILES)];
};

struct err *remote_call(struct control *c, const char *what, long nr, uint64_t a, uint64_t b,
			uint64_t d, int64_t *ret)
{
	const uint64_t args[6] = { a, b, d };
	int64_t value = 0;
	struct err *err = control_syscall(c, nr, args, &value);

	if (!err && value < 0 && value > -PAGE)
		err = err_errno((int)-value, "%s in process %d", what, (int)control_pid(c));
	if (!err && ret)
		*ret = value;
	return err;
}

struct err *remote_map(struct control *c, uint64_t addr, uint64_t size, int prot, int fd,
		       uint64_t offset)
{
	const uint64_t args[6] = {
		addr,
		size,
		(uint64_t)prot,
		MAP_FIXED_NOREPLACE | MAP_NORESERVE |
			(fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED),
		(uint64_t)(int64_t)fd,
		offset,
	};
	int64_t at = 0;
	struct err *err = control_syscall(c, SYS_mmap, args, &at);

	if (err)
		return err;
	if (at < 0 && at > -PAGE)
		return err_errno((int)-at, "process %d cannot map %llu bytes at 0x%llx",
				 (int)control_pid(c), (unsigned long long)size,
				 (unsigned long long)addr);
	if ((uint64_t)at == addr)
		return NULL;
	/* kernels before 4.17 use the address as a hint only */
	err_free(remote_call(c, "munmap", SYS_munmap, (uint64_t)at, size, 0, NULL));
	return err_errno(EEXIST, "0x%llx in process %d", (unsigned long long)addr,
			 (int)control_pid(c));
}

static struct err *send_files(int socket, const int *fds, uint32_t n)
{
	struct mail m = { .byte = 'd' };
	struct cmsghdr *h;

	m.iov = (struct iovec){ &m.byte, 1 };
	m.head = (struct msghdr){ .msg_iov = &m.iov,
				  .msg_iovlen = 1,
				  .msg_control = m.control,
				  .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
	h = CMSG_FIRSTHDR(&m.head);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(h), fds, sizeof(int) * n);
	return sendmsg(socket, &m.head, MSG_NOSIGNAL | MSG_DONTWAIT) == 1
		       ? NULL
		       : err_errno(errno, "sending files");
}

/* from: a descriptor of the process. */
static struct err *receive(struct control *c, uint64_t page, const struct undo_mail *who, int from,
			   uint32_t n, int *ret_fds)
{
	struct mail m = { .who = *who };
	struct cmsghdr *h;
	struct err *err;
	int64_t got;

	m.iov = (struct iovec){ (void *)(page + offsetof(struct mail, byte)), 1 };
	m.head = (struct msghdr){ .msg_iov = (void *)(page + offsetof(struct mail, iov)),
				  .msg_iovlen = 1,
				  .msg_control = (void *)(page + offsetof(struct mail, control)),
				  .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
	err = control_write(c, page, &m, sizeof(m));
	if (!err)
		err = remote_call(c, "recvmsg", SYS_recvmsg, (uint64_t)from,
				  page + offsetof(struct mail, head),
				  MSG_CMSG_CLOEXEC | MSG_DONTWAIT, &got);
	err = err ?: control_read(c, page, &m, sizeof(m));
	if (err)
		return err;
	m.head.msg_control = m.control;
	h = (struct cmsghdr *)(void *)m.control;
	if (m.head.msg_controllen < CMSG_LEN(sizeof(int) * n) || h->cmsg_type != SCM_RIGHTS ||
	    h->cmsg_len != CMSG_LEN(sizeof(int) * n))
		return err_new(EPROTO, "process %d did not receive descry's memory files",
			       (int)control_pid(c));
	memcpy(ret_fds, CMSG_DATA(h), sizeof(int) * n);
	return NULL;
}

/* Returns true when this is the UNIX datagram socket of the process's link in /proc. The pair's
 * numbers stand in the process's memory, and another process that shares this memory or its
 * descriptors may have changed them. */
static bool is_socket(int fd, uint64_t inode)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(int);
	struct stat st;

	return inode && !fstat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_ino == inode &&
	       !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_DGRAM;
}

/* Takes over this end of the process's pair `fd`. */
static struct err *take_over(struct control *c, int fd, int *ret)
{
	cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, control_pid(c), 0);

	*ret = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	return *ret < 0 ? err_errno(errno, "taking a descriptor of process %d", (int)control_pid(c))
			: NULL;
}

/* Makes a pair of sockets in the process, and takes one end over. */
static struct err *make_pair(struct control *c, uint64_t page, struct undo_mail *who,
			     int *ret_socket)
{
	const uint64_t make[6] = { AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0,
				   page + offsetof(struct undo_mail, pair) };
	int64_t made = 0;
	struct err *err = control_write(c, page, who, sizeof(*who));

	err = err ?: control_syscall(c, SYS_socketpair, make, &made);
	if (!err && made < 0)
		err = err_errno((int)-made, "socketpair in process %d", (int)control_pid(c));
	err = err ?: control_read(c, page, who, sizeof(*who));
	for (int i = 0; i < 2 && !err; i++)
		who->socket[i] = undo_socket(control_pid(c), who->pair[i]);
	/* Closing a file of FUSE waits for its server. */
	if (!err && !who->socket[1])
		*ret_socket = -1;
	else
		err = err ?: take_over(c, who->pair[1], ret_socket);
	if (!err && !is_socket(*ret_socket, who->socket[1]))
		err = err_new(
			EPROTO,
			"process %d replaced the socket over which descry sends its memory files",
			(int)control_pid(c));
	return err;
}

struct err *remote_send_files(struct control *c, uint64_t page, const int *fds, uint32_t n,
			      int *ret_fds)
{
	struct undo_mail who = { .magic = UNDO_MAIL_MAGIC, .pair = { -1, -1 } };
	int socket = -1, from = -1;
	bool served = control_is_served(c, &socket, &from);
	struct err *err = remote_map(c, page, PAGE, PROT_READ | PROT_WRITE, -1, 0);

	_Static_assert(sizeof(struct mail) <= PAGE, "mail");
	if (err)
		return err;
	if (!served) {
		err = make_pair(c, page, &who, &socket);
		from = who.pair[0];
	}
	err = err ?: send_files(socket, fds, n);
	if (!err) /* writes the inodes first */
		err = receive(c, page, &who, from, n, ret_fds);
	for (int i = 0; i < 2; i++)
		if (who.pair[i] >= 0)
			err_free(remote_call(c, "close", SYS_close, (uint64_t)who.pair[i], 0, 0,
					     NULL));
	err_free(remote_call(c, "munmap", SYS_munmap, page, PAGE, 0, NULL));
	if (!served && socket >= 0)
		close(socket);
	return err;
}
