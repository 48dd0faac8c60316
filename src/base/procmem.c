/* Reads and writes another process's memory. Looks into /proc/PID/pagemap first, and leaves an
 * access that may wait for the process to a thread of its own. */
#define _GNU_SOURCE
#include "base/procmem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/procdir.h"
#include "base/starved.h"

enum { PAGE = 4096, ENTRIES = 64, SEEN_NS = 10000000, WATCH_MS = 1000, STARVED_MAX = 30 };

/* Of an entry of /proc/PID/pagemap. */
static const uint64_t PRESENT = 1ull << 63, WRITE_PROTECTED = 1ull << 57;

/* Of addresses with five levels of page tables. */
static const uint64_t USER_END = 1ull << 56;

/* --- an access that may wait: done by a thread of its own --- */

enum kind { READ, PREAD, PWRITE, READ_FILE };

/* An access that a worker thread does. The worker owns `buf`, because the access may end after the
 * caller has stopped waiting. */
struct job {
	enum kind kind;
	pid_t pid;
	int mem;
	uint64_t addr;
	size_t n;
	uint8_t *buf;
	char *path, *text; /* READ_FILE */
	struct err *err;
	ssize_t got;
	int error; /* errno */
};

struct worker {
	struct job job;
	sem_t asked, done;
	pid_t tid; /* its own number; 0: it has not begun */
	/* left: no thread waits for it, so it frees itself; both under `lock` */
	bool finished, left;
};

/* Of this process: a child of fork() has none of its parent's threads. */
static struct {
	pthread_mutex_t lock;
	struct worker *idle;
	struct {
		struct worker *worker; /* NULL: free */
		pid_t pid;
	} left[PROCMEM_LEFT];
	bool registered, watched;
	bool embedded; /* procmem_embed() */
	/* The direct access that is under way: its number, 0 none; whose memory. */
	uint64_t access, accesses;
	pid_t pid;
	/* The last look into a page table: pages [lo, hi) of the process, by a file that stays
	 * open. */
	struct {
		pid_t pid;
		int pagemap;
		uint64_t lo, hi, until;
		bool written;
	} seen;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER, .seen.pagemap = -1 };

static void forget_threads(void)
{
	pthread_mutex_init(&own.lock, NULL);
	own.idle = NULL;
	memset(own.left, 0, sizeof(own.left));
	own.watched = false;
	own.access = 0;
	/* it may close all descriptors, and give the number to another file */
	if (own.seen.pagemap >= 0)
		close(own.seen.pagemap);
	own.seen.pagemap = -1;
	own.seen.pid = 0;
}

static ssize_t read_now(pid_t pid, void *buf, size_t n, uint64_t addr)
{
	struct iovec to = { buf, n }, from = { (void *)(uintptr_t)addr, n };
	ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);

	return got >= 0 || errno != ESRCH
		       ? got
		       : process_vm_readv(procdir_living_thread(pid), &to, 1, &from, 1, 0);
}

static void do_job(struct job *j)
{
	errno = 0;
	switch (j->kind) {
	case READ: j->got = read_now(j->pid, j->buf, j->n, j->addr); break;
	case PREAD: j->got = pread(j->mem, j->buf, j->n, (off_t)j->addr); break;
	case PWRITE: j->got = pwrite(j->mem, j->buf, j->n, (off_t)j->addr); break;
	case READ_FILE: {
		size_t n = 0;

		j->err = io_read_most(j->path, PROCMEM_FILE_MAX, &j->text, &n);
		j->got = (ssize_t)n;
	}
	}
	j->error = errno;
}

static void drop_job(struct job *j)
{
	free(j->buf);
	free(j->path);
	free(j->text);
	err_free(j->err);
	if (j->mem >= 0)
		close(j->mem);
	*j = (struct job){ .mem = -1 };
}

static void free_worker(struct worker *w)
{
	drop_job(&w->job);
	sem_destroy(&w->asked);
	sem_destroy(&w->done);
	free(w);
}

/* Returns true when no thread has waited for the worker; it is freed then. */
static bool was_left(struct worker *w)
{
	bool left;

	pthread_mutex_lock(&own.lock);
	left = w->left;
	w->finished = true;
	for (int i = 0; i < PROCMEM_LEFT && left; i++)
		if (own.left[i].worker == w)
			own.left[i].worker = NULL;
	if (!left)
		sem_post(&w->done);
	pthread_mutex_unlock(&own.lock);
	if (left)
		free_worker(w);
	return left;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	do {
		while (sem_wait(&w->asked))
			;
		do_job(&w->job);
	} while (!was_left(w));
	return NULL;
}

/* A thread that gets no signals. */
static bool start_thread(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t t;
	bool started;

	if (!own.registered)
		own.registered = !pthread_atfork(NULL, NULL, forget_threads);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 << 10);
	started = !pthread_create(&t, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

static struct worker *take_worker(void)
{
	struct worker *w = own.idle;

	own.idle = NULL;
	if (w)
		return w;
	w = xcalloc(1, sizeof(*w));
	w->job.mem = -1;
	sem_init(&w->asked, 0, 0);
	sem_init(&w->done, 0, 0);
	if (start_thread(work, w))
		return w;
	free_worker(w);
	return NULL;
}

/* The place of the process's thread that waits (pid), or a free one (0). PROCMEM_LEFT: none. */
static int find_place(pid_t pid)
{
	int i = 0;

	while (i < PROCMEM_LEFT &&
	       (pid ? !own.left[i].worker || own.left[i].pid != pid : own.left[i].worker != NULL))
		i++;
	return i;
}

/* Returns true when the worker could go on, if a processor were free for it. */
static bool is_starved(const struct worker *w)
{
	const pid_t tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);

	return !tid || starved_is_ready(tid); /* 0: it has not begun */
}

/* Waits until the worker is done. Returns false when that takes too long; the worker then frees
 * itself. On a machine that is too busy to run the worker, waits longer. */
static bool wait_for(struct worker *w, pid_t pid, int place)
{
	struct timespec until;
	bool late = false;
	int periods = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PROCMEM_MS / 1000;
	while (!late && sem_clockwait(&w->done, CLOCK_MONOTONIC, &until)) {
		if (errno == EINTR)
			continue;
		late = ++periods == STARVED_MAX || !is_starved(w);
		until.tv_sec += PROCMEM_MS / 1000;
	}
	pthread_mutex_lock(&own.lock);
	if (late && w->finished)
		late = sem_trywait(&w->done) != 0; /* just now */
	w->left = late;
	if (late) {
		own.left[place].worker = w;
		own.left[place].pid = pid;
	}
	pthread_mutex_unlock(&own.lock);
	return !late;
}

/* Does the job on another thread. Takes the job's memory; *ret is the finished job. Returns false
 * with errno when the job was not done. */
static bool do_apart(struct job *j, struct job *ret)
{
	const pid_t pid = j->pid;
	struct worker *w = NULL;
	bool slow;
	int place;

	pthread_mutex_lock(&own.lock);
	place = find_place(0);
	slow = place == PROCMEM_LEFT || find_place(pid) != PROCMEM_LEFT;
	if (!slow)
		w = take_worker();
	pthread_mutex_unlock(&own.lock);
	if (!w) {
		drop_job(j);
		errno = slow ? ETIMEDOUT : EAGAIN;
		return false;
	}
	w->job = *j;
	w->finished = false;
	sem_post(&w->asked);
	if (!wait_for(w, pid, place)) {
		errno = ETIMEDOUT;
		return false;
	}
	*ret = w->job;
	w->job = (struct job){ .mem = -1 };
	pthread_mutex_lock(&own.lock);
	if (!own.idle)
		own.idle = w;
	pthread_mutex_unlock(&own.lock);
	return true;
}

/* Does the job, and copies the bytes that it read to `to`; NULL: the job writes. */
static ssize_t access_apart(struct job j, void *to)
{
	struct job done;
	ssize_t got;
	int error;

	if (!do_apart(&j, &done))
		return -1;
	got = done.got;
	error = done.error;
	if (to && got > 0)
		memcpy(to, done.buf, (size_t)got);
	drop_job(&done);
	errno = error;
	return got;
}

/* --- an access that does not wait --- */

void procmem_embed(void)
{
	__atomic_store_n(&own.embedded, true, __ATOMIC_RELAXED);
}

static bool is_embedded(void)
{
	return __atomic_load_n(&own.embedded, __ATOMIC_RELAXED);
}

/* Ends descry when a direct access does not end. It counts its own looks, because descry may have
 * been stopped (SIGSTOP) in the middle of an access. */
static void *procmem_watch(void *arg)
{
	uint64_t access, before = 0;
	int n, looks = 0;
	char text[160];

	(void)arg;
	for (;;) {
		nanosleep(&(struct timespec){ .tv_sec = WATCH_MS / 1000 }, NULL);
		access = __atomic_load_n(&own.access, __ATOMIC_ACQUIRE);
		looks = access && access == before ? looks + 1 : 0;
		before = access;
		if (looks < PROCMEM_STUCK_MS / WATCH_MS)
			continue;
		n = snprintf(
			text, sizeof(text),
			"descry: process %d holds back a page of its memory (userfaultfd, FUSE) "
			"that descry reads: descry ends\n",
			(int)own.pid);
		(void)!write(STDERR_FILENO, text, (size_t)n);
		_exit(1);
	}
	return NULL;
}

static void procmem_begin(pid_t pid)
{
	if (!own.watched && !is_embedded()) {
		pthread_mutex_lock(&own.lock);
		if (!own.watched)
			own.watched = start_thread(procmem_watch, NULL);
		pthread_mutex_unlock(&own.lock);
	}
	own.pid = pid;
	__atomic_store_n(&own.access, ++own.accesses, __ATOMIC_RELEASE);
}

static void procmem_end(void)
{
	__atomic_store_n(&own.access, 0, __ATOMIC_RELEASE);
}

static void open_pagemap(pid_t pid)
{
	char path[64];

	if (own.seen.pagemap >= 0)
		close(own.seen.pagemap);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)procdir_living_thread(pid));
	own.seen.pagemap = open(path, O_RDONLY | O_CLOEXEC);
	own.seen.pid = pid;
	own.seen.lo = own.seen.hi = 0;
}

/* Reads entries of pages from `page` on; 0: the memory that the file is of has gone. */
static ssize_t read_entries(uint64_t *entries, uint64_t n, uint64_t page)
{
	const ssize_t got = own.seen.pagemap < 0
				    ? -1
				    : pread(own.seen.pagemap, entries, n * 8, (off_t)(page * 8));

	return got < 0 ? 0 : got / 8;
}

/* Returns true when no process can have memory there: the kernel refuses such an access at once. */
static bool is_outside(uint64_t addr, size_t n)
{
	return addr + n < addr || addr + n > USER_END;
}

/* Returns true when all pages are in the process's page table and, if `writes`, may be written. */
static bool procmem_look(pid_t pid, uint64_t lo, uint64_t hi, bool writes)
{
	uint64_t entries[ENTRIES];
	bool anew = own.seen.pid != pid;

	if (anew)
		open_pagemap(pid);
	for (uint64_t page = lo, n; page < hi; page += n) {
		n = hi - page < ENTRIES ? hi - page : ENTRIES;
		if (read_entries(entries, n, page) != (ssize_t)n) {
			if (anew)
				return false;
			/* it executes another program by now */
			open_pagemap(pid);
			anew = true;
			n = 0;
			continue;
		}
		for (uint64_t i = 0; i < n; i++)
			if (!(entries[i] & PRESENT) || (writes && entries[i] & WRITE_PROTECTED))
				return false;
	}
	own.seen.lo = lo;
	own.seen.hi = hi;
	own.seen.written = writes;
	own.seen.until = now_ns() + SEEN_NS;
	return true;
}

/* Returns true when an access to these bytes does not wait, as far as the page table shows. A look
 * into it is believed for SEEN_NS. */
static bool procmem_is_there(pid_t pid, uint64_t addr, size_t n, bool writes)
{
	const uint64_t lo = addr / PAGE, hi = (addr + n + PAGE - 1) / PAGE;
	bool there;

	if (!n || is_outside(addr, n))
		return true;
	pthread_mutex_lock(&own.lock);
	there = (own.seen.pid == pid && lo >= own.seen.lo && hi <= own.seen.hi &&
		 (!writes || own.seen.written) && now_ns() < own.seen.until) ||
		procmem_look(pid, lo, hi, writes);
	pthread_mutex_unlock(&own.lock);
	return there;
}

/* --- both --- */

ssize_t procmem_read(pid_t pid, void *buf, size_t n, uint64_t addr)
{
	ssize_t got;

	if (is_embedded() || !procmem_is_there(pid, addr, n, false))
		return access_apart((struct job){ .kind = READ,
						  .pid = pid,
						  .mem = -1,
						  .addr = addr,
						  .n = n,
						  .buf = xcalloc(1, n) },
				    buf);
	procmem_begin(pid);
	got = read_now(pid, buf, n, addr);
	procmem_end();
	return got;
}

ssize_t procmem_pread(pid_t pid, int mem, void *buf, size_t n, uint64_t addr)
{
	ssize_t got;

	if (pid && (is_embedded() || !procmem_is_there(pid, addr, n, false)))
		return access_apart((struct job){ .kind = PREAD,
						  .pid = pid,
						  .mem = fcntl(mem, F_DUPFD_CLOEXEC, 0),
						  .addr = addr,
						  .n = n,
						  .buf = xcalloc(1, n) },
				    buf);
	procmem_begin(pid);
	got = pread(mem, buf, n, (off_t)addr);
	procmem_end();
	return got;
}

/* Some kernels permit a write where the process itself cannot write only to the thread that traces
 * the process (proc_mem.force_override=ptrace). So the other thread reads the page, which makes it
 * present, and this thread writes it. Only when the page still cannot be written does the other
 * thread write it. */
ssize_t procmem_pwrite(pid_t pid, int mem, const void *buf, size_t n, uint64_t addr)
{
	uint8_t *copy;
	ssize_t got;

	if (pid && is_embedded()) {
		got = access_apart((struct job){ .kind = PWRITE,
						 .pid = pid,
						 .mem = fcntl(mem, F_DUPFD_CLOEXEC, 0),
						 .addr = addr,
						 .n = n,
						 .buf = xmemdup(buf, n) },
				   NULL);
		if (got >= 0 || errno == ETIMEDOUT || errno == EAGAIN)
			return got;
	}
	if (pid && !procmem_is_there(pid, addr, n, true)) {
		copy = xcalloc(1, n);
		if (procmem_pread(pid, mem, copy, n, addr) != (ssize_t)n) {
			free(copy);
			return -1;
		}
		memcpy(copy, buf, n);
		if (!procmem_is_there(pid, addr, n, true))
			return access_apart((struct job){ .kind = PWRITE,
							  .pid = pid,
							  .mem = fcntl(mem, F_DUPFD_CLOEXEC, 0),
							  .addr = addr,
							  .n = n,
							  .buf = copy },
					    NULL);
		free(copy);
	}
	procmem_begin(pid);
	got = pwrite(mem, buf, n, (off_t)addr);
	procmem_end();
	return got;
}

struct err *procmem_file(pid_t pid, const char *path, char **ret_text, size_t *ret_len)
{
	struct job j = { .kind = READ_FILE, .pid = pid, .mem = -1, .path = xstrdup(path) }, done;

	if (!do_apart(&j, &done))
		return err_errno(errno, "%s", path);
	if (!done.err) {
		*ret_text = done.text;
		if (ret_len)
			*ret_len = (size_t)done.got;
	}
	j.err = done.err;
	done.text = NULL;
	done.err = NULL;
	drop_job(&done);
	return j.err;
}

/* --- waits for a processor --- */

uint64_t procmem_starved_ns(void)
{
	pid_t other = 0;

	pthread_mutex_lock(&own.lock);
	if (own.idle)
		other = __atomic_load_n(&own.idle->tid, __ATOMIC_ACQUIRE);
	pthread_mutex_unlock(&own.lock);
	return starved_ns(gettid()) + (other ? starved_ns(other) : 0);
}
