/* Reads the heap of the served process by `descry heap`, in a process of its own: a large heap then
 * takes no memory from the server, and the server goes on meanwhile. */
#define _GNU_SOURCE
#include "serve_heap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/out.h"
#include "base/procdir.h"

enum { PRINTED_MAX = 1 << 18 /* bytes that are kept */ };

static int reader_spawn(struct serve_heap *h, int to, pid_t *ret)
{
	char program[] = "descry", command[] = "heap", rows[] = "-n", number[] = "20",
	     option[] = "-p", pid[16];
	char *const argv[] = { program, command, rows, number, option, pid, NULL };
	const struct child c = {
		.file = "/proc/self/exe", .argv = argv, .in = CHILD_NULL, .out = to, .err = to
	};

	snprintf(pid, sizeof(pid), "%d", (int)h->pid);
	*ret = child_start(&c);
	return *ret < 0 ? errno : 0;
}

static void printed_take(int from, struct out *o)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && o->n < PRINTED_MAX)
			out_mem(o, bytes, (size_t)n);
}

/* Another process may have the number when the served one has ended. */
static bool is_there(const struct serve_heap *h)
{
	return procdir_start(h->pid) == h->start;
}

static void *heap_thread(void *arg)
{
	struct serve_heap *h = arg;
	struct out o = { 0 };
	int ends[2], failed = 0;
	pid_t reader = 0;

	if (!is_there(h)) {
		/* said below */
	} else if (pipe2(ends, O_CLOEXEC)) {
		failed = errno;
	} else {
		pthread_mutex_lock(&h->lock);
		failed = reader_spawn(h, ends[1], &reader);
		h->reader = failed ? 0 : reader;
		pthread_mutex_unlock(&h->lock);
		close(ends[1]);
		if (!failed)
			printed_take(ends[0], &o);
		close(ends[0]);
	}
	if (failed)
		out_printf(&o, "descry heap cannot be started: %s\n", strerror(failed));
	if (!is_there(h)) {
		o.n = 0;
		out_printf(&o, "process %d has ended\n", (int)h->pid);
	}
	pthread_mutex_lock(&h->lock);
	if (reader) /* under the lock, so that no other process with this number is killed */
		waitpid(reader, NULL, 0);
	h->reader = 0;
	h->running = false;
	free(h->text);
	h->text = out_take(&o);
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

void serve_heap_init(struct serve_heap *h, pid_t pid, uint64_t start)
{
	*h = (struct serve_heap){ .pid = pid, .start = start, .text = xstrdup("") };
	pthread_mutex_init(&h->lock, NULL);
}

void serve_heap_fini(struct serve_heap *h)
{
	pthread_mutex_lock(&h->lock);
	if (h->reader)
		kill(h->reader, SIGKILL);
	pthread_mutex_unlock(&h->lock);
	if (h->joinable)
		pthread_join(h->thread, NULL);
	pthread_mutex_destroy(&h->lock);
	free(h->text);
}

void serve_heap_read(struct serve_heap *h)
{
	pthread_mutex_lock(&h->lock);
	if (!h->running) {
		if (h->joinable) /* it has nothing left to do */
			pthread_join(h->thread, NULL);
		h->running = h->joinable = !pthread_create(&h->thread, NULL, heap_thread, h);
	}
	pthread_mutex_unlock(&h->lock);
}

char *serve_heap_text(struct serve_heap *h)
{
	char *text;

	pthread_mutex_lock(&h->lock);
	text = h->running ? NULL : xstrdup(h->text);
	pthread_mutex_unlock(&h->lock);
	return text;
}
