/* Drives the consumer: drains the rings, orders the records, runs their actions. */
#include "base/child.h"
#include "base/clock.h"
#include "consume/consume_private.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

enum {
	HOLD_NS = 100 * 1000,        /* ns; a CPU's older record may come this late */
	LATE_NS = 100 * 1000 * 1000, /* how long a record waits for its late strings, ns */
	HELD_MAX =
		1 << 28, /* bytes of records that may wait for older records or for their own time */
	CONTROL_MAX = 1 << 23, /* bytes of control records that may wait for the end of the run,
				* where they are run before it ends */
};

uint64_t cpu_now(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static uint32_t resolve_stack(void *arg, int64_t id, uint64_t *frames, uint32_t max)
{
	struct consumer *c = arg;

	return c->engine->ops->stack(c->engine, id, frames, max);
}

static uint32_t resolve_end(void *arg, int64_t id)
{
	struct consumer *c = arg;

	return c->engine->ops->stack_end ? c->engine->ops->stack_end(c->engine, id) : 0;
}

/* Returns true when the segment opens a line. DTrace prints a line for every clause with a
 * data-recording action. exit(), clear() and the other actions of the consumer are such actions;
 * commit() and discard() are not. */
static bool opens_line(const struct segment *seg)
{
	for (uint32_t i = 0; i < seg->nactions; i++)
		if (seg->actions[i].kind != ACT_COMMIT && seg->actions[i].kind != ACT_DISCARD)
			return true;
	return false;
}

struct consumer *consumer_new(struct engine *e, struct sink *s, struct options *o)
{
	struct consumer *c = xcalloc(1, sizeof(*c));

	c->engine = e;
	c->sink = s;
	c->options = o;
	c->image = e->image;
	s->image = e->image;
	s->stack = resolve_stack;
	s->stack_end = resolve_end;
	s->stack_arg = c;
	c->aggs = aggs_new(e, e->image, o, s);
	c->traits = xcalloc(c->image->nsegments + 1, sizeof(*c->traits));
	c->opens_line = xcalloc(c->image->nsegments + 1, sizeof(*c->opens_line));
	for (uint32_t i = 0; i < c->image->nsegments; i++)
		c->opens_line[i] = opens_line(&c->image->segments[i]);
	c->held_max = HELD_MAX;
	c->dtrace = s->dtrace;
	c->start = now_ns();
	c->start_cpu = cpu_now();
	return c;
}

void consumer_free(struct consumer *c)
{
	if (!c)
		return;
	batch_fini(&c->batch);
	spec_fini(c);
	drops_fini(&c->drops);
	aggs_free(c->aggs);
	for (uint32_t i = 0; i < c->image->nsegments; i++)
		free(c->traits[i]);
	free(c->traits);
	free(c->opens_line);
	free(c->report_probes);
	free(c->report_progs);
	free(c->engine_progs);
	free(c);
}

struct err *consumer_begin(struct consumer *c)
{
	return sink_do(c->sink, begin);
}

bool consumer_exited(const struct consumer *c, int *ret_status)
{
	if (c->exited)
		*ret_status = c->exit_status;
	return c->exited;
}

uint64_t consumer_interval(const struct consumer *c)
{
	int64_t switchrate = opt_num(c->options, OPT_SWITCHRATE),
		status = opt_num(c->options, OPT_STATUSRATE);
	int64_t ns = switchrate > 0 ? switchrate : 20 * 1000 * 1000;

	return (uint64_t)(status > 0 && status < ns ? status : ns);
}

/* --- actions --- */

static const uint8_t *traits_of(struct consumer *c, uint32_t segment)
{
	const struct segment *seg = &c->image->segments[segment];

	if (!c->traits[segment]) {
		c->traits[segment] = xcalloc(seg->nfields + 1, 1);
		for (uint32_t i = 0; i < seg->nfields; i++)
			c->traits[segment][i] =
				(uint8_t)field_traits(c->sink->types, &seg->fields[i]);
	}
	return c->traits[segment];
}

/* Returns the action's first field as a number; `without` when there is no field. */
static int64_t number_arg(const struct record_view *r, const struct action *a, int64_t without)
{
	const struct field *f;

	if (!a->nfields)
		return without;
	f = &r->segment->fields[a->fields[0]];
	return field_int(f, r->data, (r->traits[a->fields[0]] & TRAIT_SIGNED) || f->size < 8);
}

static struct err *say(struct consumer *c, const struct record_view *r, const char *what)
{
	struct err *e = sink_do(c->sink, flush);
	uint32_t clause = r->segment->clause;
	bool dtrace = c->sink->dtrace;
	cleanup_free char *text = NULL;

	if (dtrace && clause < c->image->nclauses)
		clause = c->image->clauses[clause].number;
	text = xasprintf("%s: error %s%u %s%u%s%s:%s:%s:%s): %s\n", c->sink->progname,
			 dtrace ? "in dt_clause_" : "on enabled probe ID ",
			 dtrace ? clause : clause + 1, dtrace ? "for probe ID " : "(ID ",
			 r->probe->id, dtrace ? " (" : ": ", r->probe->prov, r->probe->mod,
			 r->probe->func, r->probe->name, what);
	sink_message(c->sink, text, strlen(text));
	return e;
}

/* Runs a command, with a standard output of its own when it is not 0, and waits for its end.
 * system(3) would ignore ^C meanwhile. */
static bool run_shell(const char *command, int output)
{
	char *const argv[] = { "sh", "-c", (char *)command, NULL };
	const pid_t pid =
		child_start(&(struct child){ .file = "/bin/sh", .argv = argv, .out = output });

	return pid > 0 && child_wait(pid) >= 0;
}

static struct err *do_system(struct consumer *c, const struct record_view *r,
			     const struct action *a)
{
	struct err *e = sink_do(c->sink, flush);
	char *command;

	if (e)
		return e;
	command = c->sink->ops->format(c->sink, r, a);
	if (!run_shell(command, c->sink->output))
		e = say(c, r, "system(): cannot run /bin/sh");
	free(command);
	return e;
}

static struct err *do_freopen(struct consumer *c, const struct record_view *r,
			      const struct action *a)
{
	char *path = c->sink->ops->format(c->sink, r, a);
	struct err *e = sink_do(c->sink, reopen, path), *e2 = NULL;

	free(path);
	if (e) /* the output stays unchanged */
		e2 = say(c, r, e->text);
	err_free(e);
	return e2;
}

static struct err *do_setopt(struct consumer *c, const struct record_view *r,
			     const struct action *a)
{
	const char *why = NULL, *text;
	cleanup_free char *value = a->text2 ? xstrdup(a->text2) : NULL, *what = NULL;
	uint32_t n;

	if (a->nfields &&
	    field_text(c->image, &r->segment->fields[a->fields[0]], r->data, &text, &n))
		value = xstrndup(text, n);
	if (options_set(c->options, a->text, value, WHEN_DYNAMIC, &why))
		return NULL;
	/* DTrace's reasons end before the colon or parenthesis of descry's, with an empty line */
	what = xasprintf("couldn't set option \"%s\" to \"%s\": %.*s%s", a->text,
			 value ? value : "1",
			 (int)(c->sink->dtrace ? strcspn(why, ":(") - (strchr(why, '(') != NULL)
					       : strlen(why)),
			 why, c->sink->dtrace ? "\n" : "");
	return say(c, r, what);
}

static struct err *do_exit(struct consumer *c, const struct record_view *r, const struct action *a)
{
	/* the last exit() sets the status, because END may call exit() too */
	c->exited = true;
	c->exit_status = (int)number_arg(r, a, 0);
	return NULL;
}

/* Prints with time 0, because the keys are older than the record: addresses get the names of the
 * present mappings or the last known ones. */
static struct err *do_printa(struct consumer *c, const struct record_view *r,
			     const struct action *a)
{
	struct err *e;

	c->sink->time = 0;
	e = aggs_printa(c->aggs, c->sink, r, a);
	c->sink->time = r->head->time;
	return e;
}

static struct err *act(struct consumer *c, const struct record_view *r, const struct action *a)
{
	struct firing f = { r->head->time, r->head->cpu, r->head->probe };
	struct err *e = NULL;

	switch (a->kind) {
	case ACT_TRACE:
	case ACT_TRACEMEM:
	case ACT_PRINTF:
	case ACT_PRINT:
	case ACT_STACK:
	case ACT_USTACK:
	case ACT_SYM:
	case ACT_PCAP:
	case ACT_DEFAULT: return sink_do(c->sink, action, r, a);
	case ACT_PRINTA: return do_printa(c, r, a);
	case ACT_EXIT: return do_exit(c, r, a);
	case ACT_CLEAR:
		for (uint32_t i = 0; i < a->naggs && !e; i++)
			e = aggs_clear(c->aggs, &f, a->aggs[i]);
		return e;
	case ACT_TRUNC:
		for (uint32_t i = 0; i < a->naggs && !e; i++)
			e = aggs_trunc(c->aggs, &f, a->aggs[i], number_arg(r, a, 0));
		return e;
	case ACT_NORMALIZE:
	case ACT_DENORMALIZE:
		for (uint32_t i = 0; i < a->naggs; i++)
			aggs_normalize(c->aggs, a->aggs[i],
				       a->kind == ACT_NORMALIZE ? number_arg(r, a, 1) : 1);
		return NULL;
	case ACT_COMMIT:
	case ACT_DISCARD: return spec_end(c, (uint64_t)number_arg(r, a, 0), a->kind == ACT_COMMIT);
	case ACT_FREOPEN: return do_freopen(c, r, a);
	case ACT_FTRUNCATE: return sink_do(c->sink, truncate);
	case ACT_SYSTEM: return do_system(c, r, a);
	case ACT_SETOPT: return do_setopt(c, r, a);
	}
	return NULL;
}

struct err *record_run(struct consumer *c, const struct wire_record *r, uint32_t size, bool more)
{
	const struct segment *seg = &c->image->segments[r->segment];
	struct record_view view = {
		.image = c->image,
		.segment = seg,
		.probe = &c->image->probes[r->probe],
		.head = r,
		.data = (const uint8_t *)r,
		.size = size,
		.traits = traits_of(c, r->segment),
		.more = more,
	};
	bool line = c->opens_line[r->segment];
	struct err *e = line ? sink_do(c->sink, record_begin, &view) : NULL;

	c->sink->time = r->time;
	for (uint32_t i = 0; i < seg->nactions && !e; i++)
		e = act(c, &view, &seg->actions[i]);
	if (line && !e)
		e = sink_do(c->sink, record_end, &view);
	c->sink->time = 0;
	return e;
}

/* --- passes --- */

/* Returns true when the record matches the image. A record that does not is an engine's mistake or
 * a forgery of a traced process. The caller drops and counts it. */
static bool is_good(const struct consumer *c, const struct wire_record *r, uint32_t size)
{
	if (r->segment == WIRE_SEG_FAULT)
		return size >= sizeof(struct wire_fault);
	return r->segment < c->image->nsegments && r->probe < c->image->nprobes &&
	       r->spec <= ARRAY_SIZE(c->specs) && size >= c->image->segments[r->segment].size;
}

/* Returns true when a data record may be kept. bufpolicy=fill keeps the first bufsize bytes of
 * records; tracing ends at the first record beyond. */
static bool consume_keep(struct consumer *c, uint32_t size)
{
	if (c->finishing || opt_num(c->options, OPT_BUFPOLICY) == POLICY_SWITCH)
		return true;
	if (opt_num(c->options, OPT_BUFPOLICY) == POLICY_FILL &&
	    c->held + size > (uint64_t)opt_num(c->options, OPT_BUFSIZE)) {
		c->full = true;
		return false;
	}
	c->held += size;
	return true;
}

/* Returns true when a control record may be kept. With fill and ring these records wait for the end
 * too. The limit held_max stops a traced process that makes them without end. */
static bool keep_control(struct consumer *c, uint32_t size)
{
	if (c->finishing || opt_num(c->options, OPT_BUFPOLICY) == POLICY_SWITCH)
		return true;
	if (c->held_control + size > (c->held_max < CONTROL_MAX ? c->held_max : CONTROL_MAX)) {
		c->bad_records++;
		return false;
	}
	c->held_control += size;
	return true;
}

/* bufpolicy=ring: drops the oldest records beyond bufsize bytes. */
static void forget_oldest(struct consumer *c)
{
	struct batch *b = &c->batch;

	while (c->held > (uint64_t)opt_num(c->options, OPT_BUFSIZE) && b->at[0] < b->ring[0].n)
		c->held -= b->ring[0].v[b->at[0]++].size;
}

static void consume_take(void *arg, const struct wire_record *r, uint32_t size, bool control)
{
	struct consumer *c = arg;

	if (size < sizeof(*r)) {
		c->bad_records++;
		return;
	}
	if (r->segment != WIRE_SEG_LATE) {
		c->records++;
		c->bytes += size;
		if (control ? !keep_control(c, size) : !consume_keep(c, size))
			return;
	}
	c->late_drops += !batch_add(&c->batch, r, size, control);
}

static bool same_firing(const struct wire_record *a, const struct wire_record *b)
{
	return a->time == b->time && a->cpu == b->cpu && a->probe == b->probe;
}

/* Runs every record older than `before`, in order. Stops at a record that still waits for a
 * string. */
static struct err *run_batch(struct consumer *c, uint64_t before, uint64_t now)
{
	struct batch *b = &c->batch;
	struct wire_record *r;
	struct err *e = NULL;
	uint32_t size, next_size;
	int ring, next_ring;

	while (!e && (r = batch_peek(b, c->image, &size, &ring)) && r->time < before) {
		const struct wire_record *next;

		if (!is_good(c, r, size)) {
			c->bad_records++;
			batch_take(b, ring);
			continue;
		}
		if (r->late && r->segment != WIRE_SEG_FAULT &&
		    !batch_late(b, &c->image->segments[r->segment], r, before)) {
			if (before != UINT64_MAX && now < r->time + LATE_NS)
				break;
			c->late_drops++;
		}
		batch_take(b, ring);
		if (r->segment == WIRE_SEG_FAULT) {
			/* DTrace prints the fault even when the program has an ERROR clause. */
			if (!c->image->uses_error || c->dtrace)
				e = sink_do(c->sink, fault, c->image, (const struct wire_fault *)r);
			continue;
		}
		if (r->spec) {
			spec_add(c, r, size);
			continue;
		}
		next = batch_peek(b, c->image, &next_size, &next_ring);
		e = record_run(c, r, size, next && same_firing(r, next));
	}
	return e;
}

/* Drains the rings. Returns the time before which records may run now; UINT64_MAX: all may. */
static uint64_t take_all(struct consumer *c, bool last)
{
	const uint64_t now = now_ns();
	uint64_t before = UINT64_MAX;

	c->finishing = last;
	c->taken_at = now;
	if (c->engine->state)
		c->sink->target_pid = (int)c->engine->state->target_pid;
	c->engine->ops->drain(c->engine, consume_take, c);
	if (!last && opt_on(c->options, OPT_TEMPORAL))
		before = now > HOLD_NS ? now - HOLD_NS : 0;
	batch_sort(&c->batch);
	if (opt_num(c->options, OPT_BUFPOLICY) == POLICY_RING)
		forget_oldest(c);
	if (c->full && c->engine->state && !last)
		engine_exit(c->engine);
	return before;
}

/* Returns true when records wait for the end of the run. */
static bool waits_for_end(const struct consumer *c)
{
	return !c->finishing && opt_num(c->options, OPT_BUFPOLICY) != POLICY_SWITCH;
}

uint64_t consumer_take(struct consumer *c)
{
	return take_all(c, false);
}

uint64_t consumer_next(struct consumer *c)
{
	const struct wire_record *r;
	uint32_t size;
	int ring;

	r = waits_for_end(c) ? NULL : batch_peek(&c->batch, c->image, &size, &ring);
	return r ? r->time : UINT64_MAX;
}

struct err *consumer_run(struct consumer *c, uint64_t before)
{
	return waits_for_end(c) ? NULL : run_batch(c, before, c->taken_at);
}

/* Frees the records that have run, and runs those that are held for too long. */
static struct err *tidy_batch(struct consumer *c)
{
	struct err *e = NULL;

	if (!waits_for_end(c) && batch_held(&c->batch) > c->held_max)
		e = run_batch(c, UINT64_MAX, c->taken_at);
	batch_compact(&c->batch, waits_for_end(c) ? 0 : c->taken_at);
	return e;
}

struct err *consumer_end_pass(struct consumer *c)
{
	uint64_t now = c->taken_at;
	struct err *e = tidy_batch(c);
	bool met = aggs_meet(c->aggs);

	if (!e && now >= c->next_status) {
		int64_t rate = opt_num(c->options, OPT_STATUSRATE);

		c->next_status = now + (uint64_t)(rate > 0 ? rate : 1000000000);
		e = drops_poll(c);
	}
	if (!e && now >= c->next_aggs) {
		int64_t rate = opt_num(c->options, OPT_AGGRATE);

		c->next_aggs = now + (uint64_t)(rate > 0 ? rate : 1000000000);
		e = aggs_remember(c->aggs, met);
	}
	e = e ?: sink_do(c->sink, flush);
	if (!e && c->sink->ops->due && c->sink->ops->due(c->sink, false)) {
		e = aggs_show(c->aggs, c->sink);
		(void)c->sink->ops->due(c->sink, true);
	}
	return e;
}

struct err *consumer_pass(struct consumer *c)
{
	const uint64_t before = consumer_take(c);
	struct err *e = consumer_run(c, before);

	return e ?: consumer_end_pass(c);
}

/* Runs the remaining records. */
static struct err *last_pass(struct consumer *c)
{
	const uint64_t before = take_all(c, true);
	struct err *e = consumer_run(c, before);

	e = e ?: tidy_batch(c);
	/* the exit()'s record did not fit */
	if (!c->exited && engine_exiting(c->engine)) {
		c->exited = true;
		c->exit_status = engine_exit_status(c->engine);
	}
	return e;
}

struct err *consumer_show(struct consumer *c)
{
	struct err *e = aggs_show(c->aggs, c->sink);

	return e ? e : sink_do(c->sink, flush);
}

struct err *consumer_finish(struct consumer *c, bool report, bool interrupted)
{
	struct err *e = last_pass(c);

	if (!e && c->sink->ops->due)
		e = aggs_show(c->aggs, c->sink);
	if (!e && !interrupted)
		e = aggs_final(c->aggs, c->sink);
	e = e ?: sink_do(c->sink, flush);
	e = e ?: drops_poll(c);
	if (!e && report && c->sink->ops->report) {
		struct run_report r;

		consumer_report(c, &r);
		c->sink->ops->report(c->sink, &r);
	}
	return e ? e : sink_do(c->sink, end);
}
