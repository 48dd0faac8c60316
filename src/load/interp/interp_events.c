/* Fires probes for events of the process connector. Runs the programs made for the kernel's
 * tracepoints, with contexts like those of the tracepoints. */
#include "base/clock.h"
#include "load/interp/interp_private.h"

#include <string.h>

/* The most events handled before the consumer can take records. */
enum { EVENTS_AT_ONCE = 256, BUFFER = 4 << 20 };

bool interp_listens(const struct probe *p, enum connector_kind *ret_kind)
{
	if ((p->kind != ATTACH_RAW_TP && p->kind != ATTACH_TP_BTF) || !p->object ||
	    strcmp(p->prov, "proc"))
		return false;
	if (!strcmp(p->object, "sched_process_exec"))
		*ret_kind = CONNECTOR_EXEC;
	else if (!strcmp(p->object, "sched_process_exit"))
		*ret_kind = CONNECTOR_EXIT;
	else if (!strcmp(p->object, "sched_process_fork") || !strcmp(p->object, "sched_switch"))
		*ret_kind = CONNECTOR_FORK;
	else
		return false;
	return true;
}

struct err *interp_ready(struct engine *en, const struct image *img)
{
	struct connector *c = NULL;
	enum connector_kind kind;
	bool any = false;
	struct err *err;

	for (uint32_t i = 0; i < img->nprobes; i++)
		any |= img->probes[i].probe && interp_listens(img->probes[i].probe, &kind);
	err = any && ((struct interp_engine *)en)->named ? connector_open(0, &c) : NULL;
	connector_free(c, NULL, NULL);
	return err;
}

struct err *interp_events_open(struct interp_engine *e)
{
	const struct options *o = e->base.image->options;
	int64_t size = o ? opt_num(o, OPT_BUFSIZE) : BUFFER;
	struct err *err = NULL;

	if (e->listeners.n)
		err = connector_open(size < INT32_MAX ? (uint32_t)size : INT32_MAX, &e->connector);

	return err ? err_wrap(err, "proc probes of the interpreter") : NULL;
}

/* Writes the tracepoint's arguments: sched_process_fork(parent, child), sched_process_exec(task,
 * old_pid, bprm), sched_process_exit(task, group_dead), sched_switch(preempt, prev, next). */
static void set_context(struct interp_engine *e, const struct connector_event *ev,
			const struct interp_listener *l)
{
	uint64_t words[4] = { interp_task_of(e, ev->thread) };
	uint64_t child = ev->child ? interp_task_of(e, ev->child) : 0;

	switch (ev->kind) {
	case CONNECTOR_FORK: words[1] = child; break;
	case CONNECTOR_EXEC: words[1] = (uint32_t)ev->thread->facts.pid; break;
	case CONNECTOR_EXIT: words[1] = ev->last; break;
	}
	if (l->by_child) {
		words[1] = words[0];
		words[0] = 0;
		words[2] = child;
	}
	memset(e->context, 0, sizeof(e->context));
	memcpy(e->context, words, sizeof(words));
}

static void fire(struct interp_engine *e, const struct connector_event *ev)
{
	e->event = ev;
	for (uint32_t i = 0; i < e->listeners.n && !e->failed; i++) {
		const struct interp_listener *l = &e->listeners.v[i];

		if (l->kind != ev->kind)
			continue;
		set_context(e, ev, l);
		e->failed = interp_run_prog(e, l->prog, l->probe);
	}
	e->event = NULL;
	memset(e->context, 0, sizeof(e->context));
}

void interp_events_run(struct interp_engine *e)
{
	struct connector_event ev;
	int n = 0;

	while (e->connector && n < EVENTS_AT_ONCE && !e->failed &&
	       connector_next(e->connector, interp_task_free, e, &ev)) {
		n++;
		e->events_until = ev.time;
		fire(e, &ev);
	}
	if (n < EVENTS_AT_ONCE)
		e->events_until = 0;
}

/* Returns the number of events that came before the end and are still unread. Their probes would
 * have fired, unless exit() was called. */
static uint64_t left_over(struct interp_engine *e)
{
	struct connector_event ev;
	uint64_t n = 0, stopped = now_ns();

	while (connector_next(e->connector, interp_task_free, e, &ev) && ev.time < stopped)
		for (uint32_t i = 0; i < e->listeners.n; i++)
			if (e->listeners.v[i].kind == ev.kind) {
				n++;
				break;
			}
	return e->base.state->exiting ? 0 : n;
}

void interp_events_close(struct interp_engine *e)
{
	if (e->connector) {
		e->lost = left_over(e);
		e->lost += connector_lost(e->connector);
	}
	connector_free(e->connector, interp_task_free, e);
	e->connector = NULL;
	vec_fini(&e->listeners);
}
