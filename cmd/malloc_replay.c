/* descry malloc replay: the calls of a recording with several allocators, each in a process of its
 * own, which is this program with the allocator preloaded. */
#define _GNU_SOURCE
#include "malloc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/limits.h"
#include "base/meminfo.h"
#include "base/outfile.h"
#include "base/procstatus.h"
#include "memory/alloc/replay.h"
#include "render/json.h"
#include "tool.h"

struct contestant {
	struct replay_allocator a;
	uint64_t ns[1000]; /* of each run; without the loop */
	uint64_t median;
	/* EACH: medians of the runs. */
	uint64_t half[1000], p99[1000], p999[1000], most;
	struct replay_result space;
};

struct replayer {
	struct replay_head head;
	int fd;
	uint32_t runs, flags;
	uint64_t memory; /* bytes that a process may keep; 0: any number */
	bool same_threads;
	uint64_t empty[1000], empty_median;
	VEC(struct contestant) v;
	struct arena arena;
};

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Reads a process's result, and waits for its end. Ends a process that keeps more memory than it
 * may: no limit can be set, because allocators reserve far more than they use. */
static struct err *take_result(int fd, pid_t pid, const char *name, uint64_t memory,
			       struct replay_result *ret)
{
	enum { LOOK_MS = 50 };
	const uint64_t most = memory ?: UINT64_MAX;
	bool too_large = false;
	ssize_t got = 1;
	size_t n = 0;
	int status = 0;

	while (n < sizeof(*ret) && got > 0 && !too_large) {
		if (poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, LOOK_MS) > 0) {
			got = read(fd, (char *)ret + n, sizeof(*ret) - n);
			n += got > 0 ? (size_t)got : 0;
		} else {
			too_large = procstatus_of(pid, "RssAnon", 0) > most >> 10;
		}
	}
	too_large |= n == sizeof(*ret) && ret->peak > most;
	if (too_large)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (too_large)
		return err_new(ENOMEM,
			       "%s: it keeps more than %llu MB, so its process was ended "
			       "(--memory MB allows more)",
			       name, (unsigned long long)(most >> 20));
	if (WIFSIGNALED(status))
		return err_new(0, "%s: its process was killed by SIG%s", name,
			       sigabbrev_np(WTERMSIG(status)));
	return status || n != sizeof(*ret) ? err_new(0, "%s: its process gave no result", name)
					   : NULL;
}

static struct err *check_library(const char *path, const char *allocator)
{
	cleanup_free char *is = realpath(allocator, NULL);
	cleanup_free char *wants = realpath(path, NULL);

	if (is && wants && !strcmp(is, wants))
		return NULL;
	return err_new(0,
		       "%s: malloc() came from %s: the library was not loaded, or does not define "
		       "it",
		       path, allocator);
}

/* Starts a process and takes its result. */
static struct err *play(struct replayer *r, const struct replay_allocator *a, enum replay_mode mode,
			struct replay_result *ret)
{
	char fd[16], kind[16], flags[16];
	char *argv[] = { "descry", "malloc", "play", fd, kind, flags, NULL };
	cleanup_free char *preload = xasprintf("LD_PRELOAD%s%s", a->path ? "=" : "", a->path ?: "");
	cleanup_free char **env = child_env(NULL, (const char *[]){ preload }, 1);
	struct child c = {
		.file = "/proc/self/exe", .argv = argv, .env = env, .keep = &r->fd, .nkeep = 1
	};
	struct err *e;
	int pipes[2];
	pid_t pid;

	snprintf(fd, sizeof(fd), "%d", r->fd);
	snprintf(kind, sizeof(kind), "%d", (int)mode);
	snprintf(flags, sizeof(flags), "%u", r->flags);
	if (pipe2(pipes, O_CLOEXEC))
		return err_errno(errno, "pipe");
	c.out = pipes[1];
	pid = child_start(&c);
	e = pid < 0 ? err_errno(errno, "%s: cannot start a process", a->name) : NULL;
	close(pipes[1]);
	e = e ?: take_result(pipes[0], pid, a->name, r->memory, ret);
	close(pipes[0]);
	ret->allocator[sizeof(ret->allocator) - 1] = '\0';
	if (!e && a->path)
		e = check_library(a->path, ret->allocator);
	return e;
}

static uint64_t median(uint64_t *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Measures in turn, so that a slow moment of the machine does not fall on one allocator. */
static struct err *measure(struct replayer *r)
{
	const struct replay_allocator none = { .name = "the empty loop" };
	struct replay_result result;
	struct err *e = NULL;

	for (uint32_t run = 0; run < r->runs && !e; run++) {
		e = play(r, &none, REPLAY_EMPTY, &result);
		r->empty[run] = result.ns;
		for (uint32_t i = 0; i < r->v.n && !e; i++) {
			e = play(r, &r->v.v[i].a, REPLAY_TIME, &result);
			r->v.v[i].ns[run] = result.ns;
		}
	}
	for (uint32_t run = 0; run < r->runs && !e; run++) {
		for (uint32_t i = 0; i < r->v.n && !e; i++) {
			struct contestant *c = &r->v.v[i];

			e = play(r, &c->a, REPLAY_EACH, &result);
			c->half[run] = result.half;
			c->p99[run] = result.p99;
			c->p999[run] = result.p999;
			c->most = result.most > c->most ? result.most : c->most;
		}
	}
	for (uint32_t i = 0; i < r->v.n && !e; i++)
		e = play(r, &r->v.v[i].a, REPLAY_SPACE, &r->v.v[i].space);
	if (e)
		return e;
	r->empty_median = median(r->empty, r->runs);
	for (uint32_t i = 0; i < r->v.n; i++) {
		struct contestant *c = &r->v.v[i];

		for (uint32_t k = 0; k < r->runs; k++)
			c->ns[k] -= c->ns[k] < r->empty_median ? c->ns[k] : r->empty_median;
		c->median = median(c->ns, r->runs);
		median(c->half, r->runs);
		median(c->p99, r->runs);
		median(c->p999, r->runs);
	}
	return NULL;
}

static double each(const struct replayer *r, uint64_t ns)
{
	return r->head.ncalls ? (double)ns / (double)r->head.ncalls : 0;
}

static double over(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static uint64_t mean(const struct contestant *c)
{
	return c->space.looks ? c->space.sum / c->space.looks : 0;
}

static unsigned long long ull(uint64_t v)
{
	return v;
}

static void malloc_replay_print(const struct replayer *r, const char *name, struct out *o)
{
	out_printf(o, "%s: %llu calls, %llu thread%s, %u runs; at most %.1f MB live\n", name,
		   ull(r->head.ncalls), ull(r->head.nlanes), r->head.nlanes == 1 ? "" : "s",
		   r->runs, (double)r->head.peak_bytes / 1e6);
	if (r->head.skipped)
		out_printf(o,
			   "%llu events were left out: blocks that the recording does not know, "
			   "or lost records\n",
			   ull(r->head.skipped));
	out_str(o, "\nALLOCATOR         NS/CALL   FROM     TO    P50    P99  P99.9"
		   "  PEAK RSS MB  MEAN RSS MB  PEAK/LIVE  MEAN/LIVE\n");
	for (uint32_t i = 0; i < r->v.n; i++) {
		const struct contestant *c = &r->v.v[i];

		out_printf(o,
			   "%-16s %8.1f %6.1f %6.1f %6llu %6llu %6llu %12.1f %12.1f %10.2f %10.2f",
			   c->a.name, each(r, c->median), each(r, c->ns[0]),
			   each(r, c->ns[r->runs - 1]), ull(c->half[r->runs / 2]),
			   ull(c->p99[r->runs / 2]), ull(c->p999[r->runs / 2]),
			   (double)c->space.peak / 1e6, (double)mean(c) / 1e6,
			   over(c->space.peak, r->head.peak_bytes),
			   over(c->space.sum, c->space.live_sum));
		if (c->space.failed)
			out_printf(o, "  %llu calls failed", ull(c->space.failed));
		out_char(o, '\n');
	}
	out_printf(o, "(the loop itself, which is subtracted: %.1f ns a call)\n",
		   each(r, r->empty_median));
}

static void json_course(const struct contestant *c, struct out *o)
{
	out_str(o, ",\"course\":[");
	for (uint64_t i = 0; i < c->space.npoints; i++) {
		const struct replay_point *p = &c->space.points[i];

		out_printf(o, "%s{\"ns\":%llu,\"rss_bytes\":%llu,\"live_bytes\":%llu}",
			   i ? "," : "", ull(p->time), ull(p->resident), ull(p->live));
	}
	out_char(o, ']');
}

static void print_json(const struct replayer *r, const char *name, struct out *o)
{
	out_str(o, "{\"type\":\"replay\",\"file\":");
	json_string(o, name, strlen(name));
	out_printf(o, ",\"calls\":%llu,\"threads\":%llu,\"skipped\":%llu,\"live_peak_bytes\":%llu",
		   ull(r->head.ncalls), ull(r->head.nlanes), ull(r->head.skipped),
		   ull(r->head.peak_bytes));
	out_printf(o,
		   ",\"runs\":%u,\"speed\":\"%s\",\"touch\":%s,\"loop_ns\":%llu,\"allocators\":[",
		   r->runs, r->flags & REPLAY_RECORDED ? "recorded" : "max",
		   r->flags & REPLAY_TOUCH ? "true" : "false", ull(r->empty_median));
	for (uint32_t i = 0; i < r->v.n; i++) {
		const struct contestant *c = &r->v.v[i];

		out_str(o, i ? ",{\"name\":" : "{\"name\":");
		json_string(o, c->a.name, strlen(c->a.name));
		out_str(o, ",\"library\":");
		json_string(o, c->space.allocator, strlen(c->space.allocator));
		out_str(o, ",\"ns\":[");
		for (uint32_t k = 0; k < r->runs; k++)
			out_printf(o, "%s%llu", k ? "," : "", ull(c->ns[k]));
		out_printf(o, "],\"p50_ns\":%llu,\"p99_ns\":%llu,\"p999_ns\":%llu,\"most_ns\":%llu",
			   ull(c->half[r->runs / 2]), ull(c->p99[r->runs / 2]),
			   ull(c->p999[r->runs / 2]), ull(c->most));
		out_printf(o, ",\"rss_peak_bytes\":%llu,\"rss_mean_bytes\":%llu,\"failed\":%llu",
			   ull(c->space.peak), ull(mean(c)), ull(c->space.failed));
		out_printf(o, ",\"live_peak_bytes\":%llu,\"rss_over_live\":%.3f",
			   ull(c->space.live_peak), over(c->space.sum, c->space.live_sum));
		json_course(c, o);
		out_char(o, '}');
	}
	out_str(o, "]}\n");
}

static struct err *draw(const struct replayer *r, const char *name, const char *path)
{
	cleanup_free char *title = xasprintf("Resident memory: %s", name);
	VEC(struct replay_curve) v = { 0 };
	FILE *file = NULL;
	struct out out;
	struct err *e = tool_out_begin(&out, path, &file);

	if (e)
		return e;
	for (uint32_t i = 0; i < r->v.n; i++) {
		const struct contestant *c = &r->v.v[i];

		vec_push(&v, (struct replay_curve){ c->a.name, c->space.points, c->space.npoints });
	}
	replay_picture(v.v, v.n, title, &out);
	vec_fini(&v);
	return tool_out_end(&out, path, file);
}

/* Takes the allocators that are installed, and names the packages of the others. */
static void find_installed(struct replayer *r)
{
	for (uint32_t i = 0; replay_names[i]; i++) {
		struct contestant *c = vec_add(&r->v);
		struct err *e = replay_find(replay_names[i], &c->a, &r->arena);

		if (e) {
			r->v.n--;
			tool_wrong("%s", e->text);
		}
		err_free(e);
	}
}

/* Finds the allocators of a list. All that are missing are named at once. */
static int find_all(struct replayer *r, const char *list)
{
	cleanup_free char *names = xstrdup(list);
	int status = 0;

	for (char *save, *name = strtok_r(names, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		struct contestant *c = vec_add(&r->v);
		struct err *e = replay_find(name, &c->a, &r->arena);

		if (e)
			status = e->code == EINVAL ? tool_wrong("%s", e->text) : tool_failed(e);
		err_free(e);
	}
	if (!status && !r->v.n)
		status = tool_wrong("--with names no allocator");
	return status;
}

static struct err *replay(struct malloc_options *o, struct replayer *r)
{
	struct alloc_trace *t = NULL;
	struct err *e = alloc_open(o->words[0], o->salvage, &t);
	struct out out;

	e = e ?: replay_make(t, r->same_threads, &r->head, &r->fd);
	if (!e && t->cut)
		tool_wrong("%s", t->cut);
	alloc_close(t);
	e = e ?: measure(r);
	if (e)
		return e;
	out_init(&out, stdout);
	if (o->json)
		print_json(r, o->words[0], &out);
	else
		malloc_replay_print(r, o->words[0], &out);
	e = out_flush(&out);
	out_fini(&out);
	return e ?: o->picture ? draw(r, o->words[0], o->picture) : NULL;
}

/* Returns 0, or the status after a message, when an option's value is wrong. */
static int check_replay(const struct malloc_options *o)
{
	if (o->threads && strcmp(o->threads, "same") && strcmp(o->threads, "1"))
		return tool_wrong("--threads wants same or 1, not %s", o->threads);
	if (o->speed && strcmp(o->speed, "max") && strcmp(o->speed, "recorded"))
		return tool_wrong("--speed wants max or recorded, not %s", o->speed);
	return 0;
}

int malloc_replay(struct malloc_options *o)
{
	struct replayer r = {
		.fd = -1,
		.runs = o->runs,
		.memory = o->memory ? (uint64_t)o->memory << 20 : meminfo_available() / 8 * 7,
	};
	struct err *e;
	int status;

	if (o->nwords != 1)
		return tool_wrong("which recording? one FILE of descry malloc record");
	status = check_replay(o);
	if (status)
		return status;
	r.same_threads = o->threads && !strcmp(o->threads, "same");
	r.flags = (o->speed && !strcmp(o->speed, "recorded") ? REPLAY_RECORDED : 0) |
		  (o->touch ? REPLAY_TOUCH : 0);
	arena_init(&r.arena);
	if (o->with)
		status = find_all(&r, o->with);
	else
		find_installed(&r);
	if (!status) {
		e = replay(o, &r);
		if (e)
			status = tool_failed(e);
		err_free(e);
	}
	if (r.fd >= 0)
		close(r.fd);
	vec_fini(&r.v);
	arena_fini(&r.arena);
	return status;
}

/* record and replay; without -o the recording is removed. */
int malloc_compare(struct malloc_options *o)
{
	const char *dir = getenv("TMPDIR") ?: "/tmp";
	char made[32];
	bool temporary = !o->path;
	int status = check_replay(o), fd = -1;

	if (status)
		return status;
	if (temporary) {
		fd = outfile_unnamed(dir);
		if (fd < 0)
			return tool_wrong("a file in %s: %s", dir, strerror(errno)) - 1;
		snprintf(made, sizeof(made), "/proc/self/fd/%d", fd);
		o->path = made;
	}
	o->alone = true; /* one recording is replayed */
	status = malloc_record(o);
	if (!status) {
		char *words[] = { (char *)o->path, NULL };

		o->words = words;
		o->nwords = 1;
		status = malloc_replay(o);
	} else {
		tool_wrong("the command ended with status %d: nothing is replayed", status);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

int malloc_play(struct malloc_options *o)
{
	static struct replay_result result;
	struct pollfd reader = { .fd = STDOUT_FILENO };
	int64_t fd, mode, flags;
	struct err *e;

	if (o->nwords != 3 || tool_integer("play", o->words[0], 3, INT32_MAX, &fd) ||
	    tool_integer("play", o->words[1], REPLAY_TIME, REPLAY_EACH, &mode) ||
	    tool_integer("play", o->words[2], 0, REPLAY_TOUCH | REPLAY_RECORDED, &flags))
		return tool_wrong("play is a part of replay");
	/* it ends with the process that waits for it, also when this one has ended before */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) ||
	    (poll(&reader, 1, 0) == 1 && reader.revents & POLLERR))
		return 1;
	limits_restore(); /* allocators reserve far more memory than they use */
	e = replay_play((int)fd, (enum replay_mode)mode, (uint32_t)flags, &result);
	if (e) {
		tool_failed(e);
		err_free(e);
		return 1;
	}
	return write(1, &result, sizeof(result)) == sizeof(result) ? 0 : 1;
}
