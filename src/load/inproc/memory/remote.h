/* Maps the tracer's files in a traced process, at the addresses that they have here. */
#ifndef DESCRY_LOAD_INPROC_REMOTE_H
#define DESCRY_LOAD_INPROC_REMOTE_H

#include "program/target/target.h"

enum { REMOTE_FILES = 4 };

/* Opens the descriptors fds[n] (at most REMOTE_FILES) in the stopped process too. Makes a socket
 * pair there, takes one end over by pidfd_getfd(2), and sends the descriptors through it. Works
 * across users and namespaces. `mail` is the address of a free page there. The page is mapped as
 * long as the sockets are open, so that undo_strays() can recognise them. */
struct err *remote_send_files(struct control *c, uint64_t mail, const int *fds, uint32_t n,
			      int *ret_fds);
/* Calls mmap(2) at exactly addr. EEXIST: another mapping is there. fd -1: anonymous, private. */
struct err *remote_map(struct control *c, uint64_t addr, uint64_t size, int prot, int fd,
		       uint64_t offset);
struct err *remote_call(struct control *c, const char *what, long nr, uint64_t a, uint64_t b,
			uint64_t d, int64_t *ret);

#endif
