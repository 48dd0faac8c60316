/* The protocol of the tracer and agent/preload.c, over a SOCK_SEQPACKET socket: a hello with the
 * descriptor of /proc/self/mem, then requests (struct preload_request). The answer to a request is
 * an int64_t, the system call's result.
 *
 * The command gets three descriptors by the variable PRELOAD_ENV: "service,files,self,pid". They
 * are the socket, a second socket over which the tracer sends files, and the shared object itself.
 * pid is the command's, because a child that inherits the variable must ignore it.
 */
#ifndef DESCRY_WIRE_PRELOAD_H
#define DESCRY_WIRE_PRELOAD_H

#include <stdint.h>

#define PRELOAD_ENV "DESCRY_PRELOAD"

struct preload_numbers {
	uint32_t service, files, self, pid;
};
struct preload_hello {
	uint64_t fs_base, stack;
};
enum { PRELOAD_GO = -1 }; /* the program begins; has no answer */
struct preload_request {
	int64_t nr; /* number of the system call */
	uint64_t arg[6];
};

/* struct iovec, struct msghdr and a struct cmsghdr with one descriptor, in the kernel's layout
 * (sendmsg(2), cmsg(3)). */
struct preload_iov {
	uint64_t base, size;
};
struct preload_message {
	uint64_t name, name_size, iov, niov, control, control_size;
	uint64_t flags;
};
struct preload_rights {
	uint64_t size;
	int32_t level, type;
	int32_t fd, pad;
};

#endif
