/* Memory put into a traced process: our files mapped at the addresses they have here. */
#ifndef DESCRY_LOAD_INPROC_REMOTE_H
#define DESCRY_LOAD_INPROC_REMOTE_H

#include "program/target/target.h"

enum { REMOTE_FILES = 4 };

/* Makes our descriptors fds[n] (at most REMOTE_FILES) open in the stopped process too: a socket
 * pair is made there, one end is taken over by pidfd_getfd(2), and the descriptors sent through it;
 * works across users and name spaces. `mail` is the address of a free page there: it is mapped as
 * long as the sockets are open, and tells undo_strays() which they are. */
struct err *remote_send_files(struct control *c, uint64_t mail, const int *fds, uint32_t n,
			      int *ret_fds);
/* mmap(2) at exactly addr; EEXIST when something is there. fd -1: anonymous, private. */
struct err *remote_map(struct control *c, uint64_t addr, uint64_t size, int prot, int fd,
		       uint64_t offset);
struct err *remote_call(struct control *c, const char *what, long nr, uint64_t a, uint64_t b,
			uint64_t d, int64_t *ret);

#endif
