/* All processes of a recorded command: answers their hellos, and gives each its file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/outfile.h"
#include "base/procmem.h"
#include "memory/alloc/shim.h"
#include "memory/alloc/trace_beside.h"
#include "program/symbol/symbol.h"

enum {
	SLEEP_NS = 10000000,  /* of a wait; the end of a process is seen after it */
	GRACE_NS = 300000000, /* after the last process, for children that have not said hello */
	HELLOS = 64,          /* of a pass */
	WORK_NS = 10000000,   /* of a pass, for each kind of work between two looks at the rings */
	LIVE_MAX = 1024,      /* processes at a time */
	FILES_MAX = 4096,     /* of a recording */
	LATE_NS = 1000000000, /* for stacks that are not written when a process ends */
	TIDY = 64,            /* processes that end, until what is known of them is dropped */
};

/* --- files --- */

static void put_infos(const struct alloc_shims *s, const struct alloc_shim *shim)
{
	const struct alloc_shim_sum *sum = &shim->sum;
	struct alloc_writer *w = shim->writer;
	char text[64];

	snprintf(text, sizeof(text), "%d", (int)sum->pid);
	alloc_writer_info(w, "pid", text);
	alloc_writer_info(w, "command", sum->command);
	alloc_writer_info(w, "attached", "no");
	snprintf(text, sizeof(text), "%llu,%llu,%d", (unsigned long long)s->clock.ticks,
		 (unsigned long long)s->clock.factor, WIRE_ALLOC_TICK);
	alloc_writer_info(w, "clock", text);
	if (s->sample) {
		snprintf(text, sizeof(text), "%u", s->sample);
		alloc_writer_info(w, "sample", text);
	}
	if (!sum->parent)
		return;
	beside_infos(w, sum->parent, sum->forked, s->path);
}

/* Writes the other processes to the file of the first. */
static void put_processes(const struct alloc_shims *s)
{
	for (uint32_t i = 0; i < s->sums.n; i++) {
		const struct alloc_shim_sum *sum = &s->sums.v[i];

		if (sum->parent)
			beside_list(s->writer,
				    &(struct beside){ sum->pid, sum->parent, sum->events, sum->lost,
						      sum->path, sum->command });
	}
}

/* --- a process's life --- */

/* Ends the file of a process, and keeps what there is to say of it. Behind the time `until`, little
 * of what it has not written yet is. */
static void finish_by(struct alloc_shims *s, uint32_t i, uint64_t until)
{
	struct alloc_shim *shim = s->live.v[i];
	struct alloc_shim_sum *sum;

	alloc_shim_end(shim, until);
	s->live.v[i] = s->live.v[--s->live.n];
	if (shim->writer != s->writer)
		shim->sum.error = alloc_writer_end(shim->writer);
	vec_push(&s->sums, shim->sum);
	sum = &s->sums.v[s->sums.n - 1];
	if (!sum->parent) {
		*sum = s->sums.v[0];
		s->sums.v[0] = shim->sum;
	} else if (!sum->runs) {   /* it was killed before it began */
		if (s->device < 0) /* else it is the user's own, of all processes */
			unlinkat(s->folder, outfile_name(sum->path), 0);
		free(sum->path);
		free(sum->command);
		err_free(sum->error);
		s->sums.n--;
	}
	alloc_shim_free(shim);
	if (s->sums.n % TIDY == 0)
		symbols_tidy(s->symbols);
}

static void finish(struct alloc_shims *s, uint32_t i)
{
	finish_by(s, i, UINT64_MAX);
}

static bool answer(const struct alloc_shims *s, const struct msghdr *to, int memory, size_t bytes)
{
	struct wire_alloc_answer a = { .magic = WIRE_ALLOC_MAGIC,
				       .bytes = bytes,
				       .proof = s->proof };
	const int fds[] = { memory, s->lobby_fd, s->life_fd };
	struct iovec part = { &a, sizeof(a) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct msghdr m = { .msg_name = to->msg_name,
			    .msg_namelen = to->msg_namelen,
			    .msg_iov = &part,
			    .msg_iovlen = 1 };

	if (bytes) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fds)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	}
	return sendmsg(s->socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(a);
}

static uint32_t user_of(struct alloc_shims *s, uid_t uid)
{
	uint32_t i = 0;

	while (i < s->nusers && s->users[i].uid != uid)
		i++;
	if (i == s->nusers && i < ALLOC_SHIM_USERS)
		s->users[s->nusers++].uid = uid;
	return i < ALLOC_SHIM_USERS ? i : ALLOC_SHIM_USERS - 1;
}

/* Gives a process memory and a file. first: it is the command. */
static struct err *admit(struct alloc_shims *s, const struct ucred *who, bool forked, bool first,
			 const struct msghdr *to)
{
	struct alloc_shim *shim;
	pid_t pid = who->pid;
	struct err *e;
	int pidfd;

	if (s->live.n >= LIVE_MAX || s->live.n + s->sums.n >= FILES_MAX)
		return err_new(EAGAIN, "too many processes");
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return err_errno(errno, "pidfd_open");
	symbols_refresh(s->symbols, pid); /* the process may have executed a program */
	e = alloc_shim_new(s, &shim);
	if (e) {
		close(pidfd);
		return e;
	}
	shim->pidfd = pidfd;
	shim->user = user_of(s, who->uid);
	if (shim->stacks)
		shim_stacks_of(shim->stacks, pid, who->uid);
	shim->sum.pid = pid;
	shim->sum.forked = forked;
	shim->sum.command = first ? xstrdup(s->command) : beside_command(pid);
	shim->sum.parent = first ? 0 : beside_parent(pid) ?: 1;
	shim->sum.path = first || s->device >= 0
				 ? xstrdup(s->path)
				 : beside_path(&s->numbers, s->folder, s->path, pid);
	if (first) {
		shim->writer = s->writer;
	} else if (s->device >= 0) {
		/* not by the path, which others may be able to change */
		int fd = fcntl(s->device, F_DUPFD_CLOEXEC, 0);

		e = fd < 0 ? err_errno(errno, "%s", s->path)
			   : alloc_writer_new_at(fd, s->path, &shim->writer);
	} else {
		e = beside_open(s->folder, shim->sum.path, &shim->writer);
	}
	if (e) {
		free(shim->sum.command);
		free(shim->sum.path);
		alloc_shim_free(shim);
		return e;
	}
	put_infos(s, shim);
	vec_push(&s->live, shim);
	if (!answer(s, to, shim->memory_fd, shim->bytes)) {
		e = err_new(ESRCH, "the process does not wait any more");
		finish(s, s->live.n - 1);
	}
	return e;
}

static void take_hello(struct alloc_shims *s, const struct ucred *who,
		       const struct wire_alloc_hello *h, const struct msghdr *to)
{
	pid_t pid = who->pid;
	bool begins = h->kind == WIRE_ALLOC_BEGINS, first = begins && !s->begun && pid == s->pid;
	struct err *e = NULL;

	/* The program before has ended, because the process has executed another. */
	for (uint32_t i = 0; i < s->live.n; i++)
		if (s->live.v[i]->sum.pid == pid)
			finish(s, i--);
	s->begun += begins;
	if (s->alone && !first)
		e = err_new(EPERM, "other processes are not recorded");
	e = e ?: admit(s, who, !begins, first, to);
	if (!e)
		return;
	answer(s, to, -1, 0);
	s->refused += begins; /* a child knows the lobby, and counts itself */
	err_free(e);
}

/* Anyone can send to the socket. The kernel names the sender. */
static void take_hellos(struct alloc_shims *s)
{
	const uint64_t began = now_ns();

	for (int i = 0; i < HELLOS && now_ns() - began < WORK_NS; i++) {
		struct wire_alloc_hello h = { 0 };
		struct iovec part = { &h, sizeof(h) };
		struct sockaddr_un from;
		union {
			struct cmsghdr head;
			char room[CMSG_SPACE(sizeof(struct ucred))];
		} control = { 0 };
		struct msghdr m = { .msg_name = &from,
				    .msg_namelen = sizeof(from),
				    .msg_iov = &part,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };
		struct ucred who;

		if (recvmsg(s->socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
			return;
		if (m.msg_controllen < sizeof(control) || control.head.cmsg_level != SOL_SOCKET ||
		    control.head.cmsg_type != SCM_CREDENTIALS || h.magic != WIRE_ALLOC_MAGIC ||
		    h.secret != s->secret || h.kind > WIRE_ALLOC_FORKED)
			continue;
		memcpy(&who, CMSG_DATA(&control.head), sizeof(who));
		if (who.pid > 0)
			take_hello(s, &who, &h, &m);
	}
}

static bool has_ended(const struct alloc_shim *shim)
{
	struct pollfd p = { .fd = shim->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Returns the process whose request for tables is next. The users take turns, because a user can
 * make any number of processes. Requests of one user are served in the order in which they came. */
static struct alloc_shim *next_request(struct alloc_shims *s)
{
	const uint64_t now = now_ns();
	struct alloc_shim *next = NULL;
	uint64_t first = 0;

	for (uint32_t i = 0; i < s->live.n && s->depth; i++) {
		struct alloc_shim *shim = s->live.v[i];
		uint64_t asked = shim_stacks_asked(shim->stacks, now),
			 turn = s->users[shim->user].served_ns,
			 best = next ? s->users[next->user].served_ns : 0;

		if (asked && (!next || turn < best || (turn == best && asked < first))) {
			next = shim;
			first = asked;
		}
	}
	return next;
}

/* Gives processes tables. Returns true when more of them wait. The rings are drained before it goes
 * on, because a table can take 10 ms, which is longer than a ring lasts. */
static bool serve(struct alloc_shims *s)
{
	const uint64_t began = now_ns();
	struct alloc_shim *next;

	while ((next = next_request(s)) && now_ns() - began < WORK_NS) {
		shim_stacks_serve(next->stacks, next->sum.pid, next->writer);
		s->users[next->user].served_ns = now_ns();
	}
	return next != NULL;
}

/* Returns true when a child may be on its way to a hello. */
static bool expects_more(const struct alloc_shims *s)
{
	uint32_t executed = __atomic_load_n(&s->lobby->executed, __ATOMIC_RELAXED);
	uint32_t forks = __atomic_load_n(&s->lobby->forks, __ATOMIC_RELAXED);

	return !s->alone && (executed + 1 > s->begun || forks + 1 > s->sums.n);
}

static void sleep_until_bell(struct alloc_shims *s)
{
	const struct timespec timeout = { .tv_nsec = SLEEP_NS };

	__atomic_store_n(&s->lobby->sleeping, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &s->lobby->bell, FUTEX_WAIT, s->bell, &timeout, NULL, 0);
	__atomic_store_n(&s->lobby->sleeping, 0, __ATOMIC_SEQ_CST);
}

bool alloc_shims_pass(struct alloc_shims *s)
{
	uint32_t bell = __atomic_load_n(&s->lobby->bell, __ATOMIC_SEQ_CST);
	bool rung = bell != s->bell || s->behind;
	const uint64_t began = now_ns();
	bool more = false;

	s->bell = bell;
	if (!s->ended && waitpid(s->pid, &s->status, WNOHANG) == s->pid)
		s->ended = true;
	take_hellos(s);
	for (uint32_t i = 0; i < s->live.n; i++) {
		struct alloc_shim *shim = s->live.v[i];
		bool ended = has_ended(shim), all;

		if (s->depth && !shim_stacks_names(shim->stacks))
			more = true;
		if (ended && now_ns() - began >= 2 * WORK_NS)
			continue;
		all = alloc_shim_pass(shim, rung || ended);
		more |= !all;
		if (ended && !shim->ended_ns)
			shim->ended_ns = now_ns();
		if (ended && (all || now_ns() - shim->ended_ns > LATE_NS))
			finish(s, i--);
	}
	s->behind = serve(s) || more;
	if (!s->ended || s->live.n)
		s->quiet = 0;
	else if (!expects_more(s))
		return false;
	else if (!s->quiet)
		s->quiet = now_ns();
	else if (now_ns() - s->quiet > GRACE_NS)
		return false;
	if (!s->behind)
		sleep_until_bell(s);
	return true;
}

uint32_t alloc_shims_refused(const struct alloc_shims *s)
{
	uint32_t executed = __atomic_load_n(&s->lobby->executed, __ATOMIC_RELAXED);
	uint32_t begun = s->begun ? s->begun - 1 : 0;

	return s->refused + __atomic_load_n(&s->lobby->refused, __ATOMIC_RELAXED) +
	       (executed > begun ? executed - begun : 0);
}

void alloc_shims_end(struct alloc_shims *s)
{
	const uint64_t until = now_ns() + LATE_NS;
	struct err *e;

	/* from now on no process looks for this one, whose number another may get */
	__atomic_store_n(&s->life->follow, 0, __ATOMIC_RELEASE);
	while (s->live.n) {
		struct alloc_shim *shim = s->live.v[s->live.n - 1];

		while (now_ns() < until && !alloc_shim_pass(shim, true))
			;
		finish_by(s, s->live.n - 1, until);
	}
	put_processes(s);
	e = alloc_writer_end(s->writer);
	s->writer = NULL;
	if (s->sums.n && !s->sums.v[0].parent)
		s->sums.v[0].error = e;
	else
		err_free(e);
}
