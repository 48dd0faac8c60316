/* Listens to the kernel's process connector and keeps the facts of every thread. */
#define _GNU_SOURCE
#include "load/interp/connector.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/connector.h>
#include <linux/cn_proc.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/procdir.h"

enum { ANSWER_MS = 1000, CPUS_MAX = 8192, ASKED = 0x64657363 };

struct connector {
	int fd;
	struct hash threads; /* tid -> struct connector_thread * */
	pid_t ended;         /* the thread to forget at the next event, 0: none */
	/* The kernel numbers the messages of each CPU. */
	uint32_t *next; /* [CPUS_MAX], valid where `seen` */
	bool *seen;
	uint64_t lost;
	bool overrun; /* the kernel reported a loss whose gap is not found yet */
	bool knocked; /* knock() was called since then */
};

/* --- threads --- */

static struct connector_thread *connector_find(const struct connector *c, pid_t tid)
{
	uint64_t *slot = hash_get(&c->threads, &tid, sizeof(tid));

	return slot ? (struct connector_thread *)(uintptr_t)*slot : NULL;
}

static struct connector_thread *connector_add(struct connector *c, const struct task_facts *f,
					      uint64_t when)
{
	pid_t tid = f->pid;
	bool fresh;
	uint64_t *slot = hash_put(&c->threads, &tid, sizeof(tid), &fresh);
	struct connector_thread *t = (struct connector_thread *)(uintptr_t)*slot;

	if (fresh) {
		t = xcalloc(1, sizeof(*t));
		*slot = (uintptr_t)t;
	}
	t->facts = *f;
	t->known_at = when;
	t->version++;
	return t;
}

/* Returns the thread; reads an unknown thread from /proc. A thread that has ended has only its
 * number. */
static struct connector_thread *get(struct connector *c, pid_t tid, pid_t tgid)
{
	struct connector_thread *t = connector_find(c, tid);
	struct task_facts f = { .pid = tid, .tgid = tgid, .uid = -1, .gid = -1 };

	if (t)
		return t;
	if (tid != tgid && connector_find(c, tgid)) {
		f = connector_find(c, tgid)->facts;
		f.pid = tid;
	}
	(void)task_facts_read(tid, &f);
	f.live = f.threads;
	return connector_add(c, &f, now_ns());
}

static void connector_forget(struct connector *c, pid_t tid, void (*drop)(void *arg, void *owner),
			     void *arg)
{
	struct connector_thread *t = connector_find(c, tid);

	if (!t)
		return;
	if (t->owner)
		drop(arg, t->owner);
	hash_del(&c->threads, &tid, sizeof(tid));
	free(t);
}

/* Reads all processes, so that their names are known when they end. */
static void scan(struct connector *c)
{
	cleanup_dir DIR *d = opendir("/proc");

	for (pid_t pid; procdir_next(d, &pid);) {
		struct task_facts f;
		uint64_t when = now_ns();

		if (!task_facts_read(pid, &f))
			continue;
		f.live = f.threads;
		connector_add(c, &f, when);
	}
}

/* --- messages --- */

static void count_gap(struct connector *c, uint32_t cpu, uint32_t seq)
{
	if (cpu >= CPUS_MAX)
		return;
	if (c->seen[cpu] && seq != c->next[cpu]) {
		c->lost += seq - c->next[cpu];
		c->overrun = false;
	}
	c->seen[cpu] = true;
	c->next[cpu] = seq + 1;
}

/* Parses nlmsghdr, cn_msg, proc_event. Returns false when data is no such message. */
static bool parse(const void *data, size_t n, struct cn_msg *ret_msg, struct proc_event *ret)
{
	struct bytes b = bytes_of(data, n, "process connector");
	const void *msg, *event;
	size_t rest;

	bytes_skip(&b, NLMSG_HDRLEN);
	msg = bytes_take(&b, sizeof(*ret_msg));
	/* Newer kernels send longer messages; missing bytes are 0. */
	rest = bytes_left(&b) < sizeof(*ret) ? bytes_left(&b) : sizeof(*ret);
	event = bytes_take(&b, rest);
	if (!msg || !event || rest < offsetof(struct proc_event, event_data) + 4)
		return false;
	memcpy(ret_msg, msg, sizeof(*ret_msg));
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, event, rest);
	return ret_msg->id.idx == CN_IDX_PROC && ret_msg->id.val == CN_VAL_PROC;
}

/* Receives a message of the kernel. Returns 1 with *ret_msg and *ret, 0 when there is none, else
 * -errno. */
static int receive(struct connector *c, struct cn_msg *ret_msg, struct proc_event *ret)
{
	for (;;) {
		uint8_t buf[4096] __attribute__((aligned(8)));
		struct sockaddr_nl from = { 0 };
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(c->fd, buf, sizeof(buf), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &len);

		if (n < 0 && errno == ENOBUFS) {
			c->overrun = true;
			c->knocked = false;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		/* Any process may send to this socket, so only messages of the kernel count. */
		if (!from.nl_pid && parse(buf, (size_t)n, ret_msg, ret))
			return 1;
	}
}

static struct err *ask(struct connector *c, enum proc_cn_mcast_op op)
{
	struct {
		struct nlmsghdr head;
		struct cn_msg msg;
		uint32_t op;
	} __attribute__((packed)) m = {
		.head = { .nlmsg_len = sizeof(m), .nlmsg_type = NLMSG_DONE },
		.msg = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .ack = ASKED, .len = sizeof(m.op) },
		.op = op,
	};

	if (send(c->fd, &m, sizeof(m), 0) != sizeof(m))
		return err_errno(errno, "asking the process connector");
	return NULL;
}

/* Makes the kernel send a message on each CPU, by giving this thread its own name again. A gap in
 * the numbers then shows lost messages even on a quiet CPU. */
static void knock(struct connector *c)
{
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *own = CPU_ALLOC(CPUS_MAX), *one = CPU_ALLOC(CPUS_MAX);
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	char name[16] = "";

	c->knocked = true;
	if (own && one && !sched_getaffinity(0, size, own) && !prctl(PR_GET_NAME, name)) {
		for (long cpu = 0; cpu < cpus && cpu < CPUS_MAX; cpu++) {
			CPU_ZERO_S(size, one);
			CPU_SET_S((size_t)cpu, size, one);
			if (!sched_setaffinity(0, size, one))
				prctl(PR_SET_NAME, name);
		}
		(void)sched_setaffinity(0, size, own);
	}
	CPU_FREE(own);
	CPU_FREE(one);
}

/* Waits for the kernel's answer to the request. The kernel answers only in the first namespaces of
 * processes and users. */
static struct err *wait_answer(struct connector *c)
{
	uint64_t end = now_ns() + (uint64_t)ANSWER_MS * 1000000, now;
	struct proc_event ev;
	struct cn_msg m;
	int got;

	while ((now = now_ns()) < end) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };

		(void)poll(&p, 1, (int)((end - now) / 1000000) + 1);
		while ((got = receive(c, &m, &ev)) > 0) {
			count_gap(c, ev.cpu, m.seq);
			if (ev.what != PROC_EVENT_NONE || m.ack != ASKED + 1)
				continue;
			if (ev.event_data.ack.err)
				return err_errno((int)ev.event_data.ack.err,
						 "listening to the process connector");
			return NULL;
		}
		if (got < 0)
			return err_errno(-got, "listening to the process connector");
	}
	return err_new(
		ENOTSUP,
		"the process connector does not answer: it works only in the machine's first namespaces of processes and users, not in a container");
}

struct err *connector_open(uint32_t buffer, struct connector **ret)
{
	struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	struct connector *c = xcalloc(1, sizeof(*c));
	int size = buffer < INT32_MAX ? (int)buffer : INT32_MAX;
	struct err *e = NULL;

	c->next = xcalloc(CPUS_MAX, sizeof(*c->next));
	c->seen = xcalloc(CPUS_MAX, sizeof(*c->seen));
	c->fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
	if (c->fd < 0)
		e = errno == EPROTONOSUPPORT
			    ? err_new(errno,
				      "this kernel has no process connector (CONFIG_PROC_EVENTS)")
			    : err_errno(errno, "opening the process connector");
	if (!e && setsockopt(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		(void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (!e && bind(c->fd, (struct sockaddr *)&group, sizeof(group)))
		e = errno == EPERM
			    ? err_new(errno,
				      "this kernel permits only processes with CAP_NET_ADMIN to listen to the process connector")
			    : err_errno(errno, "listening to the process connector");
	e = e ?: ask(c, PROC_CN_MCAST_LISTEN);
	e = e ?: wait_answer(c);
	if (e) {
		connector_free(c, NULL, NULL);
		return e;
	}
	knock(c);
	scan(c);
	*ret = c;
	return NULL;
}

void connector_free(struct connector *c, void (*drop)(void *arg, void *owner), void *arg)
{
	uint32_t pos = 0;
	uint64_t *slot;
	const void *key;
	size_t len;

	if (!c)
		return;
	while (hash_next(&c->threads, &pos, &key, &len, &slot)) {
		struct connector_thread *t = (struct connector_thread *)(uintptr_t)*slot;

		if (t->owner)
			drop(arg, t->owner);
		free(t);
	}
	hash_fini(&c->threads);
	if (c->fd >= 0) {
		/* Unsubscribes, because kernels before 6.6 count their listeners and do not notice
		 * a closed one. */
		err_free(ask(c, PROC_CN_MCAST_IGNORE));
		close(c->fd);
	}
	free(c->next);
	free(c->seen);
	free(c);
}

int connector_fd(const struct connector *c)
{
	return c->fd;
}

uint64_t connector_lost(const struct connector *c)
{
	return c->lost + c->overrun;
}

/* --- events --- */

static void forked(struct connector *c, const struct proc_event *ev, struct connector_event *ret)
{
	const struct fork_proc_event *f = &ev->event_data.fork;
	bool process = f->child_pid == f->child_tgid;
	/* For a new thread the kernel names the process's parent and not the thread that made it.
	 * The thread's leader takes its place. */
	struct connector_thread *parent = process ? get(c, f->parent_pid, f->parent_tgid)
						  : get(c, f->child_tgid, f->child_tgid);
	struct task_facts child;

	ret->kind = CONNECTOR_FORK;
	ret->thread = parent;
	/* A child begins with its parent's memory and name. /proc may already show a later
	 * state. */
	child = parent->facts;
	child.pid = f->child_pid;
	child.tgid = f->child_tgid;
	child.exit_code = 0;
	child.dead = false;
	if (process) {
		child.ppid = f->parent_tgid;
		child.threads = child.live = 1;
	} else if (parent->known_at < ev->timestamp_ns) {
		child.threads = ++parent->facts.threads;
		child.live = ++parent->facts.live;
		parent->version++;
	}
	ret->child = connector_add(c, &child, ev->timestamp_ns);
}

static void execed(struct connector *c, const struct proc_event *ev, struct connector_event *ret)
{
	const struct exec_proc_event *x = &ev->event_data.exec;
	struct connector_thread *t = get(c, x->process_pid, x->process_tgid);

	ret->kind = CONNECTOR_EXEC;
	ret->thread = t;
	/* The old name is wrong now. /proc has the new name as long as the process or its zombie
	 * exists. */
	if (!task_facts_read(t->facts.pid, &t->facts))
		snprintf(t->facts.comm, sizeof(t->facts.comm), "<gone>");
	t->facts.threads = t->facts.live = 1;
	t->known_at = ev->timestamp_ns;
	t->version++;
}

static void ended(struct connector *c, const struct proc_event *ev, struct connector_event *ret)
{
	const struct exit_proc_event *x = &ev->event_data.exit;
	struct connector_thread *t = get(c, x->process_pid, x->process_tgid), *leader;

	leader = get(c, x->process_tgid, x->process_tgid);
	ret->kind = CONNECTOR_EXIT;
	ret->thread = t;
	if (leader->known_at < ev->timestamp_ns && leader->facts.live > 0)
		leader->facts.live--;
	if (x->parent_tgid)
		t->facts.ppid = x->parent_tgid;
	ret->last = leader->facts.live <= 0 || (leader == t && leader->facts.threads <= 1);
	t->facts.exit_code = (int)x->exit_code;
	t->facts.live = leader->facts.live;
	t->facts.dead = ret->last;
	t->version++;
	/* A leader that ends before its threads still stands for their process. */
	c->ended = t == leader && !ret->last ? 0 : t->facts.pid;
}

static void identified(struct connector *c, const struct proc_event *ev)
{
	const struct id_proc_event *id = &ev->event_data.id;
	struct connector_thread *t = connector_find(c, id->process_pid);

	if (!t)
		return;
	if (ev->what == PROC_EVENT_UID) {
		t->facts.uid = (int)id->r.ruid;
		t->facts.euid = (int)id->e.euid;
	} else if (ev->what == PROC_EVENT_GID) {
		t->facts.gid = (int)id->r.rgid;
		t->facts.egid = (int)id->e.egid;
	} else {
		t->facts.sid = t->facts.pgid = t->facts.tgid;
	}
	t->version++;
}

static void renamed(struct connector *c, const struct proc_event *ev)
{
	struct connector_thread *t = connector_find(c, ev->event_data.comm.process_pid);

	if (!t)
		return;
	memcpy(t->facts.comm, ev->event_data.comm.comm, sizeof(t->facts.comm) - 1);
	t->version++;
}

struct connector_thread *connector_parent(struct connector *c, struct connector_thread *t)
{
	struct connector_thread *p = connector_find(c, t->facts.ppid);
	struct task_facts f;

	if (!p && t->facts.ppid && task_facts_read(t->facts.tgid, &f) && f.ppid != t->facts.ppid) {
		t->facts.ppid = f.ppid;
		t->version++;
	}
	return t->facts.ppid ? get(c, t->facts.ppid, t->facts.ppid) : NULL;
}

bool connector_next(struct connector *c, void (*drop)(void *arg, void *owner), void *arg,
		    struct connector_event *ret)
{
	struct proc_event ev;
	struct cn_msg m;

	if (c->ended) {
		struct connector_thread *t = connector_find(c, c->ended), *leader;

		/* A leader that ended before its threads is forgotten with the last of them. */
		leader = t && t->facts.dead ? connector_find(c, t->facts.tgid) : NULL;
		if (leader && leader != t)
			connector_forget(c, leader->facts.pid, drop, arg);
		connector_forget(c, c->ended, drop, arg);
	}
	c->ended = 0;
	for (;;) {
		struct connector_event out;
		int got = receive(c, &m, &ev);

		if (!got && c->overrun && !c->knocked) {
			knock(c);
			continue;
		}
		if (got <= 0)
			return false;
		out = (struct connector_event){ .time = ev.timestamp_ns };
		count_gap(c, ev.cpu, m.seq);
		switch ((uint32_t)ev.what) {
		case PROC_EVENT_FORK: forked(c, &ev, &out); break;
		case PROC_EVENT_EXEC: execed(c, &ev, &out); break;
		case PROC_EVENT_EXIT: ended(c, &ev, &out); break;
		case PROC_EVENT_UID:
		case PROC_EVENT_GID:
		case PROC_EVENT_SID: identified(c, &ev); continue;
		case PROC_EVENT_COMM: renamed(c, &ev); continue;
		default: continue;
		}
		*ret = out;
		return true;
	}
}
