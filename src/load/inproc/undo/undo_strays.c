/* Removes the descriptors and pages that an attach left when it was cut short. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "load/inproc/undo/undo_private.h"

/* Each costs several stops of the process, which can copy a descriptor 500,000 times. What remains
 * is its own. */
enum { STRAYS_MAX = 1024 };

struct strays {
	VEC(int) fds;
	VEC(uint64_t) pages;
};

/* Returns the link of a descriptor of the process, "" when it is not open. */
static void link_of(pid_t pid, int fd, char *ret, size_t size)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", pid, fd);
	ssize_t n = readlink(path, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
}

uint64_t undo_socket(pid_t pid, int fd)
{
	unsigned long long inode = 0;
	char text[64];

	link_of(pid, fd, text, sizeof(text));
	return sscanf(text, "socket:[%llu]", &inode) == 1 ? inode : 0;
}

/* Does not ask a filesystem's server. A file of another mount namespace can have the name of a
 * memfd, and FUSE would wait for its owner. */
static uint64_t inode_of(pid_t pid, int fd)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", pid, fd);
	struct statx st;

	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st) ? 0 : st.stx_ino;
}

/* Closes descry's files that are open in the process. The code's file is closed last: as long as it
 * is open, the other files are the same tracer's. */
static void find_files(pid_t pid, uint64_t code_inode, struct strays *s)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", pid);
	cleanup_dir DIR *d = opendir(path);
	bool all = !code_inode;
	char text[64];
	int code = -1;

	for (int fd; s->fds.n < STRAYS_MAX && procdir_next(d, &fd);) {
		link_of(pid, fd, text, sizeof(text));
		if (strncmp(text, "/memfd:" WIRE_MEMFD_PREFIX,
			    sizeof("/memfd:" WIRE_MEMFD_PREFIX) - 1))
			continue;
		if (code_inode && inode_of(pid, fd) == code_inode) {
			code = fd;
			all = true;
		} else {
			vec_push(&s->fds, fd);
		}
	}
	if (!all)
		s->fds.n = 0;
	if (code >= 0)
		vec_push(&s->fds, code);
}

/* Closes the sockets that a page at WIRE_MAIL names. */
static void find_sockets(struct control *c, uint64_t base, struct strays *s)
{
	const struct mappings *maps;
	struct err *e = control_maps(c, &maps);

	for (uint32_t i = 0; !e && i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		uint64_t at = undo_base_of(m->start);
		struct undo_mail mail;

		if (!at || m->start != at + WIRE_MAIL || (base && at != base) || m->inode)
			continue;
		e = control_read(c, m->start, &mail, sizeof(mail));
		if (e)
			break;
		vec_push(&s->pages, m->start);
		for (int k = 0; k < 2 && mail.magic == UNDO_MAIL_MAGIC; k++) {
			uint64_t have =
				mail.pair[k] < 0 ? 0 : undo_socket(control_pid(c), mail.pair[k]);

			if (have && (!mail.socket[k] || have == mail.socket[k]))
				vec_push(&s->fds, mail.pair[k]);
		}
	}
	err_free(e);
}

struct err *undo_strays(struct control *c, uint64_t code_inode, uint64_t base, int timeout_ms,
			struct undo_report *r)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
	struct strays s = { 0 };
	struct err *e = NULL;
	int64_t got;

	find_files(control_pid(c), code_inode, &s);
	find_sockets(c, base, &s);
	if (s.fds.n || s.pages.n) {
		e = control_stop_to_call(c, timeout_ms);
		if (e) {
			vec_fini(&s.fds);
			vec_fini(&s.pages);
			return e;
		}
		s.fds.n = s.pages.n = 0;
		find_files(control_pid(c), code_inode, &s);
		find_sockets(c, base, &s);
		/* A close() may take seconds, when the process itself serves the file (FUSE). */
		for (uint32_t i = 0; !e && i < s.fds.n && clock_ns(CLOCK_MONOTONIC) < until; i++) {
			e = control_syscall(c, SYS_close, (uint64_t[6]){ (uint64_t)s.fds.v[i] },
					    &got);
			r->closed += !e && !got;
		}
		for (uint32_t i = 0; !e && i < s.pages.n; i++) {
			e = control_syscall(c, SYS_munmap, (uint64_t[6]){ s.pages.v[i], UNDO_PAGE },
					    &got);
			r->unmapped += !e && !got;
		}
		if (e)
			err_free(control_resume(c));
		else
			e = control_resume(c);
	}
	vec_fini(&s.fds);
	vec_fini(&s.pages);
	return e;
}
