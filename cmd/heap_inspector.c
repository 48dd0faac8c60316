/* descry heap alloc --inspector: the functions of a Node.js program that made what lives, by V8's
 * own sampling heap profiler. V8 keeps its samples by weak references. descry asks V8 by
 * the inspector's protocol. The collector runs before each answer. */
#define _GNU_SOURCE
#include "heap_options.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "input/inspector/inspector.h"
#include "memory/sites/sites_profile.h"
#include "tool.h"

static const uint64_t SECOND = 1000000000;
static const uint64_t ROUND = 200000000; /* a signal may come just before a wait */
enum { INTERVAL = 512 * 1024 };

static volatile sig_atomic_t ends;

static void on_end(int sig)
{
	(void)sig;
	ends = 1;
}

struct recorder {
	const struct heap_options *o;
	struct inspector *inspector;
	uint64_t interval;
	bool shown;
};

/* Another one that samples would be stopped by this one's end. */
static struct err *start_sampling(struct recorder *r)
{
	cleanup_free char *params = xasprintf("{\"samplingInterval\":%" PRIu64 "}", r->interval);
	struct err *e = inspector_ask(r->inspector, "HeapProfiler.getSamplingProfile", "{}");

	if (!e)
		return err_new(EBUSY, "another program samples the objects of process %d",
			       (int)r->inspector->pid);
	if (e->code != EPROTO)
		return e;
	err_free(e);
	return inspector_ask(r->inspector, "HeapProfiler.startSampling", params);
}

static struct err *show(struct recorder *r, const struct sites_profile *p)
{
	struct stacktree tree;
	struct err *e;
	struct out o;

	if (r->o->page) {
		stacktree_init(&tree);
		sites_profile_stacktree(p, &tree);
		e = heap_write_tree(r->o->page, "Objects alive, by the functions that made them",
				    &tree);
		stacktree_fini(&tree);
		return e;
	}
	out_init(&o, stdout);
	if (r->shown && !r->o->shown.json)
		out_char(&o, '\n');
	sites_profile_show(p, r->o->shown.most, r->o->shown.json, &o);
	e = out_flush(&o);
	out_fini(&o);
	fflush(stdout);
	r->shown = true;
	return e;
}

static struct err *answer_by(struct recorder *r, const char *method)
{
	struct sites_profile p;
	json_t *result = NULL;
	struct err *e = inspector_call(r->inspector, method, "{}", &result);

	e = e ?: sites_profile_read(result, r->interval, &p);
	json_decref(result);
	if (e)
		return e;
	e = show(r, &p);
	sites_profile_fini(&p);
	return e;
}

static uint64_t later(uint64_t from, double seconds)
{
	return seconds ? from + (uint64_t)(seconds * (double)SECOND) : UINT64_MAX;
}

static struct err *record(struct recorder *r)
{
	const uint64_t begun = now_ns(), end = later(begun, r->o->lasts);
	uint64_t next = later(begun, r->o->every);
	struct err *e = NULL;

	tool_wrong("recording");
	while (!e && !ends && !r->inspector->leaving && now_ns() < end) {
		const uint64_t soon = now_ns() + ROUND, first = next < end ? next : end;

		e = inspector_wait(r->inspector, soon < first ? soon : first);
		if (!e && now_ns() >= next && !ends) {
			next = later(now_ns(), r->o->every);
			e = answer_by(r, "HeapProfiler.getSamplingProfile");
		}
	}
	/* gives the samples, and stops */
	return e ?: answer_by(r, "HeapProfiler.stopSampling");
}

int heap_inspector(const struct heap_options *o)
{
	struct recorder r = { .o = o, .interval = o->sample > 1 ? o->sample : INTERVAL };
	const pid_t pid = o->c.pids.v[0];
	bool stays = false;
	uint16_t port = 0;
	cleanup_err struct err *e = NULL;

	if (o->garbage || o->show_d)
		return tool_wrong("--inspector goes with neither --garbage nor --show-d: V8 counts "
				  "what lives, and no D program runs");
	tool_catch_ends(on_end);
	e = inspector_open(pid, &ends, &r.inspector);
	if (r.inspector)
		port = r.inspector->port.port;
	e = e ?: start_sampling(&r);
	e = e ?: record(&r);
	inspector_close(r.inspector, &stays);
	if (stays)
		tool_wrong("the inspector of process %d could not be closed: port %u stays open",
			   (int)pid, port);
	if (e && e->code == ECONNRESET) {
		err_free(e);
		e = err_new(
			ESRCH,
			"process %d has ended its inspector, or has ended, and its samples with it",
			(int)pid);
	}
	return e ? tool_failed(e) : 0;
}
