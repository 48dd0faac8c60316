/* descry heap alloc: the lines that made the objects which are alive, of a process that runs on.
 *
 * A D program records where objects are made. For the answer the heap is copied at one moment, and
 * read as descry heap reads it. */
#define _GNU_SOURCE
#include "heap_options.h"

#include <errno.h>

#include "base/clock.h"
#include "memory/heap/heap.h"
#include "memory/sites/sites.h"
#include "program/space/space.h"
#include "program/target/target.h"
#include "render/writers.h"
#include "run.h"
#include "stack_file.h"
#include "tool.h"

struct watcher {
	struct heap_options *o;
	struct sites sites;
	struct run run;
	char *program;
	uint64_t moment; /* of the copy, CLOCK_MONOTONIC */
	uint64_t begun, next;
	bool over; /* --for has passed */
	bool shown;
};

enum { STACK_FRAMES = 64, SECOND = 1000000000 };

static struct watcher *watcher_of(struct run *r)
{
	return (struct watcher *)((char *)r - offsetof(struct watcher, run));
}

static struct err *prepare_sites(struct run *r, bool *ret_end)
{
	struct watcher *w = watcher_of(r);
	struct probe_set *ps = &r->session.probes;
	struct err *e;

	if (!ps->targets.n)
		return err_new(ESRCH, "there is no process");
	e = sites_program(&w->sites, ps, ps->targets.v[0].pid, &w->program);
	if (!e && w->sites.sampled && !w->sites.keeps && (w->o->sample || w->o->garbage))
		e = err_new(EINVAL,
			    "--sample and --garbage are for Ruby, Python and Java: here, the "
			    "samples are what the runtime lets see%s%s",
			    *w->sites.reason ? ", because " : "", w->sites.reason);
	if (e)
		return e;
	if (w->o->show_d) {
		fputs(w->program, stdout);
		tool_check_output();
		*ret_end = true;
		return NULL;
	}
	vec_push(&w->o->c.programs, ((struct cmd_program){ PDESC_NAME, false, w->program }));
	return NULL;
}

/* Takes the records of up to the moment. */
static struct err *catch_up(struct watcher *w)
{
	sites_hold(&w->sites, w->moment);
	return session_catch_up(&w->run.session, w->moment);
}

/* What is read in the copy of the memory: which samples of a JVM's objects live. */
struct look {
	struct watcher *w;
	const struct memory_stop *stop;
	struct err *error;
};

static void look_at_samples(void *arg, struct space *copied, struct graph *g)
{
	struct look *l = arg;

	l->w->moment = l->stop->moment;
	l->error = catch_up(l->w);
	if (!l->error)
		sites_kept_look(&l->w->sites, copied, g, l->w->o->garbage);
}

static struct err *read_heap(struct watcher *w, struct graph **ret)
{
	struct memory_stop stop = { 0 };
	struct look samples = { w, &stop, NULL };
	const struct heap_look look = { look_at_samples, &samples };
	const struct graph_wanted wanted = { 0 };
	const struct heap_source *source;
	struct control *c = NULL;
	struct space *space = NULL;
	struct err *e = control_open(w->sites.pid, &c);

	stop.control = c;
	e = e ?: control_space(c, &space);
	e = e
		    ?: heap_read_looking(space, &stop, &wanted, w->sites.keeps ? &look : NULL, ret,
					 &source);
	w->moment = stop.moment ?: w->moment;
	space_free(space);
	control_free(c);
	if (!samples.error)
		return e;
	err_free(e);
	return samples.error;
}

struct err *heap_write_tree(const char *page, const char *title, struct stacktree *tree)
{
	struct flame_options picture = { .title = title, .count_name = "bytes" };
	struct stack_output output = { .tree = tree, .picture = &picture };

	return stack_file_write(page, false, stack_writer_of(page), &output);
}

static struct err *write_picture(struct watcher *w, struct graph *g)
{
	struct stacktree tree;
	struct err *e;

	stacktree_init(&tree);
	if (w->sites.sampled)
		sites_samples_stacktree(&w->sites, &tree);
	else
		sites_stacktree(&w->sites, g, w->o->garbage, &tree);
	e = heap_write_tree(w->o->page,
			    w->sites.sampled && !w->sites.live
				    ? "Allocated, by the lines that did it, from samples"
				    : "Objects alive, by the lines that made them",
			    &tree);
	stacktree_fini(&tree);
	return e;
}

static struct err *show_sites(struct watcher *w, struct graph *g)
{
	const struct sites_shown how = { .most = w->o->shown.most,
					 .garbage = w->o->garbage,
					 .json = w->o->shown.json };
	struct err *e;
	struct out o;

	if (w->o->page)
		return write_picture(w, g);
	out_init(&o, stdout);
	if (w->shown && !how.json)
		out_char(&o, '\n');
	if (w->sites.sampled)
		sites_samples_show(&w->sites, &how, &o);
	else
		sites_show(&w->sites, g, &how, &o);
	e = out_flush(&o);
	out_fini(&o);
	fflush(stdout);
	return e;
}

static struct err *has_ended(const struct watcher *w, struct err *e)
{
	if (!e || e->code != ESRCH)
		return e;
	err_free(e);
	return err_new(ESRCH, "process %d has ended, and its heap with it", (int)w->sites.pid);
}

/* Samples are shown also when the heap cannot be read. */
static struct err *read_heap_of_samples(struct watcher *w, struct graph **ret)
{
	struct err *e;

	w->sites.live = SITES_UNKNOWN;
	w->sites.reason[0] = '\0';
	e = has_ended(w, read_heap(w, ret));
	if (e)
		snprintf(w->sites.reason, sizeof(w->sites.reason), "%s", e->text);
	err_free(e);
	return w->sites.live ? NULL : catch_up(w);
}

/* Copies the heap, takes the records of up to that moment, and shows what they have in common. Of
 * samples that nothing keeps, shows those of up to now. */
static struct err *take_stock(struct watcher *w)
{
	struct graph *g = NULL;
	struct err *e = NULL;

	w->moment = now_ns();
	if (w->sites.keeps) {
		e = read_heap_of_samples(w, &g);
	} else {
		if (!w->sites.sampled)
			e = has_ended(w, read_heap(w, &g));
		e = e ?: catch_up(w);
	}
	e = e ?: show_sites(w, g);
	sites_go_on(&w->sites);
	w->shown = true;
	graph_free(g);
	return e;
}

static struct err *after_round(struct run *r, bool ends)
{
	struct watcher *w = watcher_of(r);
	const uint64_t now = now_ns();

	if (!w->begun) {
		tool_wrong("recording");
		w->begun = now;
		w->next = now + (uint64_t)(w->o->every * SECOND);
	}
	if (ends)
		return take_stock(w);
	if (w->o->lasts && now - w->begun >= (uint64_t)(w->o->lasts * SECOND)) {
		w->over = true;
	} else if (w->o->every && now >= w->next) {
		w->next = now + (uint64_t)(w->o->every * SECOND);
		return take_stock(w);
	}
	return NULL;
}

static void set_sites_options(struct watcher *w)
{
	struct options *o = &w->run.session.options;

	options_put(o, OPT_QUIET, true);
	options_put(o, OPT_BUFSIZE, 32 << 20);
}

static void say_losses(const struct watcher *w)
{
	const struct sites *s = &w->sites;

	if (s->lost)
		tool_wrong(
			"%llu records were lost, so that objects are missing or have the line of "
			"an older one: --sample N makes fewer, -X bufsize=SIZE the buffers larger",
			(unsigned long long)s->lost);
	if (s->faults)
		tool_wrong("%llu objects were left out: their records could not be made",
			   (unsigned long long)s->faults);
	if (s->left_out)
		tool_wrong("%llu objects were left out: there are more than descry keeps",
			   (unsigned long long)s->left_out);
}

int heap_alloc(struct heap_options *o)
{
	struct watcher w = { .o = o };
	int status;

	if (!o->c.pids.n)
		return tool_wrong("whose objects? -p PID");
	if (o->c.pids.n > 1)
		return tool_wrong("one process at a time");
	if (o->page && !stack_writer_of(o->page))
		return tool_wrong("%s: the name ends in none of .html, .svg, .folded and .json",
				  o->page);
	if (o->inspector)
		return heap_inspector(o);
	sites_init(&w.sites);
	w.sites.sample = o->sample ?: 1;
	w.sites.shows = o->show_d;
	w.sites.depth = o->page ? STACK_FRAMES : 1;
	w.run.c = &o->c;
	w.run.to = stderr;
	w.run.prepare = prepare_sites;
	w.run.round = after_round;
	w.run.stop = &w.over;
	run_init(&w.run);
	set_sites_options(&w);
	status = run_all(&w.run, sites_sink(&w.sites));
	say_losses(&w);
	sites_fini(&w.sites);
	free(w.program);
	return status;
}
