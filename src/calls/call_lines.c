#define _GNU_SOURCE
/* A line for each call, in ltrace's form:
 *
 *	malloc(24)                                       = 0x55d0c0
 *	qsort(0x7ffd, 3, 8, 0x55d1 <unfinished ...>
 *	strcmp("a", "b")                                 = -1
 *	<... qsort resumed> )                            = <void>
 *
 * With --min-time and --json a call is held until it returns, and is then printed whole, or not at
 * all.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/term.h"
#include "calls/lines_private.h"
#include "data/record.h"
#include "render/render.h"

static const struct sink_ops lines_ops;

static struct lines *lines_of(struct sink *s)
{
	return (struct lines *)s;
}

enum {
	LOOK_AT_FIRST = 256,   /* threads */
	ENDED_NS = 1000000000, /* a thread that has ended may still have records */
};

static void end_call(struct lines *l, struct call *call)
{
	free(call->text);
	free(call->stack);
	free(call->later);
	call->text = call->stack = call->later = NULL;
	l->p->bytes -= call->bytes;
	call->bytes = 0;
}

static void end_calls(struct lines *l, struct thread *t)
{
	lines_forget_texts(t);
	while (t->calls.n)
		end_call(l, &t->calls.v[--t->calls.n]);
}

/* Ends the calls that the sink has seen. */
static void end_own_calls(struct lines *l, struct thread *t)
{
	uint32_t kept = 0;

	lines_forget_texts(t);
	for (uint32_t i = 0; i < t->calls.n; i++) {
		if (t->calls.v[i].of == l)
			end_call(l, &t->calls.v[i]);
		else
			t->calls.v[kept++] = t->calls.v[i];
	}
	t->calls.n = kept;
}

static void free_thread(struct lines *l, struct thread *t)
{
	end_calls(l, t);
	vec_fini(&t->calls);
	free(t);
}

static bool has_ended(const struct lines *l, const struct thread *t, uint64_t now)
{
	char path[32];

	if (t->tid == l->p->open || t->last + ENDED_NS >= now)
		return false;
	snprintf(path, sizeof(path), "/proc/%u", t->tid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* Forgets threads that ended within calls. A process can have any number of them. */
static void forget_ended(struct lines *l, uint64_t now)
{
	VEC(struct thread *) ended = { 0 };
	uint32_t at = 0;
	const void *key;
	size_t len;
	uint64_t *v;

	while (hash_next(&l->p->threads, &at, &key, &len, &v))
		if (has_ended(l, (struct thread *)(uintptr_t)*v, now))
			vec_push(&ended, (struct thread *)(uintptr_t)*v);
	for (uint32_t i = 0; i < ended.n; i++) {
		hash_del(&l->p->threads, &ended.v[i]->tid, sizeof(ended.v[i]->tid));
		free_thread(l, ended.v[i]);
	}
	vec_fini(&ended);
	l->p->look_at = l->p->threads.n < LOOK_AT_FIRST / 2 ? LOOK_AT_FIRST : 2 * l->p->threads.n;
}

static struct thread *thread_of(struct lines *l, uint32_t tid, uint64_t time)
{
	uint64_t *v = hash_get(&l->p->threads, &tid, sizeof(tid));
	struct thread *t;

	if (!v) {
		if (l->p->threads.n >= l->p->look_at)
			forget_ended(l, time);
		t = xcalloc(1, sizeof(*t));
		t->tid = tid;
		v = hash_put(&l->p->threads, &tid, sizeof(tid), NULL);
		*v = (uintptr_t)t;
	}
	t = (struct thread *)(uintptr_t)*v;
	t->last = time;
	return t;
}

/* Writes one of the terminal's sequences, which are not counted as columns. */
static void colour(struct lines *l, const char *sequence)
{
	if (!l->c->o->coloured)
		return;
	l->p->column -= l->p->o.n;
	out_flush(&l->p->o);
	term_raw(l->s.out, sequence, strlen(sequence));
}

static void put_name(struct lines *l, const struct call *call)
{
	colour(l, "\033[1m");
	out_str(&l->p->o, calls_shown(l->c, &l->s, call->function->name));
	colour(l, "\033[0m");
}

static void put_clock(struct lines *l, uint64_t time)
{
	uint64_t wall = time + l->p->offset;
	time_t seconds = (time_t)(wall / 1000000000);
	char text[32];
	struct tm tm;

	if (l->c->o->clock == 3) {
		out_printf(&l->p->o, "%llu.%06llu ", (unsigned long long)seconds,
			   (unsigned long long)(wall % 1000000000 / 1000));
		return;
	}
	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	out_str(&l->p->o, text);
	if (l->c->o->clock == 2)
		out_printf(&l->p->o, ".%06llu", (unsigned long long)(wall % 1000000000 / 1000));
	out_char(&l->p->o, ' ');
}

static void unfinished(struct lines *l)
{
	if (l->p->open)
		out_str(&l->p->o, " <unfinished ...>\n");
	l->p->open = 0;
}

/* Begins a line of a thread at that depth. */
static void begin_line(struct lines *l, uint32_t tid, uint64_t time, uint32_t depth)
{
	const struct calls_options *o = l->c->o;

	unfinished(l);
	l->p->column = l->p->o.n;
	if (o->threads || o->numbered || tid != l->c->main_thread)
		out_printf(&l->p->o, o->to_file ? "%u " : "[pid %u] ", tid);
	if (o->clock)
		put_clock(l, time);
	if (o->relative) {
		uint64_t ns = l->p->previous && time > l->p->previous ? time - l->p->previous : 0;

		out_printf(&l->p->o, "%3llu.%06llu ", (unsigned long long)(ns / 1000000000),
			   (unsigned long long)(ns % 1000000000 / 1000));
		l->p->previous = time;
	}
	out_fill(&l->p->o, ' ', (size_t)o->indent * depth);
}

static bool has_out(const struct prototype *f)
{
	for (uint32_t i = 0; i < f->nparams; i++)
		if (f->params[i].out)
			return true;
	return false;
}

static void put_stack(struct lines *l, const struct call *call)
{
	if (!call->stack)
		return;
	colour(l, "\033[2m");
	out_str(&l->p->o, call->stack);
	colour(l, "\033[0m");
}

/* ")", and the column of the result. */
static void put_end(struct lines *l)
{
	size_t n;

	out_str(&l->p->o, ") ");
	n = l->p->o.n - l->p->column;
	/* Bytes within a character of UTF-8 take no column. */
	for (size_t i = l->p->column < l->p->o.n ? l->p->column : 0; i < l->p->o.n; i++)
		n -= ((uint8_t)l->p->o.v[i] & 0xc0) == 0x80;
	if (n < l->c->o->align)
		out_fill(&l->p->o, ' ', l->c->o->align - 1 - n);
	out_str(&l->p->o, "= ");
}

/* A call that stands below the place of a new one has returned, or was left by longjmp(3), unseen.
 * So has a call at the same place, unless it led to the new one by a jump (its own, or that of a
 * linkage table): both return together then. */
static bool was_left(const struct call *call, const struct calls_function *f, uint64_t sp)
{
	const bool leads_on = call->function != f &&
			      (call->function->jumps || (call->function->linkage && !f->linkage));

	return call->sp < sp || (call->sp == sp && (!leads_on || call->function->blind));
}

static void drop_left(struct lines *l, struct thread *t, const struct calls_function *f,
		      uint64_t sp)
{
	while (t->calls.n && was_left(vec_last(&t->calls), f, sp)) {
		if (l->c->o->json && !l->c->o->min_ns)
			lines_json(vec_last(&t->calls)->of, t, vec_last(&t->calls), t->calls.n - 1,
				   false, 0);
		if (l->p->open == t->tid) {
			if (has_out(vec_last(&t->calls)->function->prototype))
				out_str(&l->p->o, " ...");
			put_end(l);
			out_str(&l->p->o, "?\n");
			l->p->open = 0;
		}
		end_call(l, vec_last(&t->calls));
		t->calls.n--;
	}
}

/* The thread has executed another program: its calls do not return. */
static void leave_calls(struct lines *l, struct thread *t)
{
	while (t->calls.n && l->c->o->json && !l->c->o->min_ns) {
		lines_json(vec_last(&t->calls)->of, t, vec_last(&t->calls), t->calls.n - 1, false,
			   0);
		end_call(l, &t->calls.v[--t->calls.n]);
	}
	end_calls(l, t);
	t->of = NULL;
	if (l->p->open == t->tid) {
		out_str(&l->p->o, " <no return ...>\n");
		l->p->open = 0;
	}
}

/* Returns the thread of a record. Its library calls are this sink's from now on, if the sink has
 * any. */
static struct thread *own_thread(struct lines *l, const struct record_view *r)
{
	struct thread *t = thread_of(l, r->head->tid, r->head->time);

	if (l->c->around)
		return t;
	if (t->of && t->of != l)
		leave_calls(l, t);
	t->of = l;
	return t;
}

void calls_executed(struct sink *s, uint32_t pid)
{
	uint64_t *v = s->ops == &lines_ops ? hash_get(&lines_of(s)->p->threads, &pid, sizeof(pid))
					   : NULL;
	struct lines *l = lines_of(s);

	if (v)
		leave_calls(l, (struct thread *)(uintptr_t)*v);
	if (s->ops != &lines_ops || calls_held(l->c->o))
		return;
	begin_line(l, pid, clock_ns(CLOCK_MONOTONIC), 0);
	out_str(&l->p->o, "--- Called exec() ---\n");
}

static void put_return_address(struct lines *l, const struct call *call)
{
	if (l->c->o->addresses)
		out_printf(&l->p->o, "[0x%llx] ", (unsigned long long)call->address);
}

/* Writes the line of a call up to its last parameter that is known at the entry. */
static void put_entered(struct lines *l, struct call *call, bool whole)
{
	if (!l->c->o->json) {
		const char *caller = calls_caller(call->probe),
			   *library = calls_library(l->c, call->probe);

		put_return_address(l, call);
		if (caller && l->c->o->callers)
			out_printf(&l->p->o, "%s->", caller);
		put_name(l, call);
		if (library)
			out_printf(&l->p->o, "@%s", library);
		out_char(&l->p->o, '(');
	}
	lines_params(l, call, whole, false);
}

/* Keeps the line of a call until it returns. */
static void hold(struct lines *l, struct call *call, bool whole)
{
	struct out o = l->p->o;

	l->p->o = l->p->held;
	l->p->o.n = 0;
	if (l->p->bytes < LINES_HELD_MAX)
		put_entered(l, call, whole);
	else
		out_str(&l->p->o, l->c->o->json ? "" : "...(");
	out_char(&l->p->o, '\0');
	call->text = xstrdup(l->p->o.v);
	call->bytes += l->p->o.n;
	l->p->bytes += l->p->o.n;
	l->p->held = l->p->o;
	l->p->o = o;
}

static void entered(struct lines *l, const struct calls_clause *k, const struct record_view *r)
{
	struct thread *t = own_thread(l, r);
	uint32_t nbefore = l->c->o->addresses ? 2 : 1;
	struct call *call;

	if (l->event.nnumbers < nbefore)
		return;
	drop_left(l, t, k->function, l->event.numbers[0]);
	if (t->calls.n == MAX_DEPTH) {
		end_call(l, &t->calls.v[0]);
		memmove(t->calls.v, t->calls.v + 1, --t->calls.n * sizeof(*t->calls.v));
	}
	if (!calls_held(l->c->o))
		begin_line(l, t->tid, r->head->time, t->calls.n);
	call = vec_add(&t->calls);
	memset(call, 0, sizeof(*call));
	call->function = k->function;
	call->probe = r->probe;
	call->thread = t;
	call->of = l;
	call->began = r->head->time;
	call->sp = l->event.numbers[0];
	call->nvectors = calls_nvectors(k->function->prototype);
	if (call->nvectors > l->event.nnumbers - nbefore)
		call->nvectors = 0;
	call->nregs = l->event.nnumbers - nbefore - call->nvectors;
	if (call->nregs > MAX_ARGS)
		call->nregs = MAX_ARGS;
	memcpy(call->regs, l->event.numbers + nbefore, call->nregs * sizeof(*call->regs));
	memcpy(call->vectors, l->event.numbers + nbefore + call->nregs,
	       call->nvectors * sizeof(*call->vectors));
	call->address = l->c->o->addresses ? l->event.numbers[1] : 0;
	if (l->event.stack.n && l->p->bytes < LINES_HELD_MAX) {
		out_char(&l->event.stack, '\0');
		call->stack = xstrdup(l->event.stack.v);
		call->bytes += l->event.stack.n;
		l->p->bytes += l->event.stack.n;
	}
	if (calls_held(l->c->o)) {
		hold(l, call, k->whole);
	} else {
		put_entered(l, call, k->whole);
		l->p->open = t->tid;
	}
	lines_forget_texts(t);
	if (k->function->returns.n || k->function->rets.n)
		return;
	/* No return will be seen. */
	t->calls.n--;
	if (l->c->o->json && !l->c->o->min_ns)
		lines_json(l, t, call, t->calls.n, false, 0);
	if (calls_held(l->c->o)) {
		end_call(l, call);
		return;
	}
	if (has_out(k->function->prototype))
		out_str(&l->p->o, " ...");
	if (k->function->blind) {
		put_end(l);
		out_char(&l->p->o, '?');
	} else {
		out_char(&l->p->o, ')');
	}
	out_char(&l->p->o, '\n');
	put_stack(l, call);
	end_call(l, call);
	l->p->open = 0;
}

static void put_duration(struct lines *l, uint64_t ns)
{
	out_printf(&l->p->o, "%llu.%06llu", (unsigned long long)(ns / 1000000000),
		   (unsigned long long)(ns % 1000000000 / 1000));
}

/* Writes what is known of a call when it has returned. */
static void put_returned(struct lines *l, struct call *call, bool whole, uint64_t ns)
{
	bool error = lines_failed(l, call);

	lines_params(l, call, whole, true);
	put_end(l);
	if (error)
		colour(l, "\033[31m");
	if (error && call->function->syscall)
		out_str(&l->p->o, "-1");
	else
		lines_result(l, call, whole);
	if (error) {
		int code = lines_errno(l);
		const char *name = strerrorname_np(code);

		out_printf(&l->p->o, " %s (%s)", name ? name : "?",
			   name ? strerrordesc_np(code) : "?");
		colour(l, "\033[0m");
	}
	if (l->c->o->durations) {
		out_str(&l->p->o, " <");
		put_duration(l, ns);
		out_char(&l->p->o, '>');
	}
	out_char(&l->p->o, '\n');
	put_stack(l, call);
}

/* Forgets the call with that number, and those that it made. Calls at the same place of the stack
 * return by the same instruction, and their records follow. */
static void forget_call(struct lines *l, struct thread *t, uint32_t i)
{
	while (vec_last(&t->calls)->sp < t->calls.v[i].sp)
		end_call(l, &t->calls.v[--t->calls.n]);
	end_call(l, &t->calls.v[i]);
	memmove(t->calls.v + i, t->calls.v + i + 1, (--t->calls.n - i) * sizeof(*t->calls.v));
}

static void returned(struct lines *l, const struct calls_clause *k, const struct record_view *r)
{
	struct thread *t = own_thread(l, r);
	uint32_t depth = t->calls.n;
	struct call *call;
	uint64_t ns;

	while (depth && t->calls.v[depth - 1].function != k->function)
		depth--;
	if (!depth)
		return; /* the entry was lost */
	call = &t->calls.v[depth - 1];
	ns = r->head->time - call->began;
	l->whole = k->whole;
	if (l->c->o->json) {
		if (ns >= l->c->o->min_ns)
			lines_json(l, t, call, depth - 1, true, ns);
	} else if (call->text) {
		if (ns >= l->c->o->min_ns) {
			begin_line(l, t->tid, call->began, depth - 1);
			out_str(&l->p->o, call->text);
			put_returned(l, call, k->whole, ns);
		}
	} else {
		if (l->p->open != t->tid || depth != t->calls.n) {
			begin_line(l, t->tid, r->head->time, depth - 1);
			put_return_address(l, call);
			out_str(&l->p->o, "<... ");
			put_name(l, call);
			out_str(&l->p->o, " resumed> ");
		}
		put_returned(l, call, k->whole, ns);
		l->p->open = 0;
	}
	forget_call(l, t, depth - 1);
	lines_forget_texts(t);
}

static struct err *lines_begin(struct sink *s)
{
	struct lines *l = lines_of(s);

	l->p->o.file = s->out;
	l->p->offset = l->p->offset ?: clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	return NULL;
}

static struct err *lines_record_begin(struct sink *s, const struct record_view *r)
{
	struct event *e = &lines_of(s)->event;

	e->nnumbers = e->ntexts = e->nmemory = e->nframes = 0;
	e->stack.n = 0;
	return NULL;
}

static void take_field(struct lines *l, const struct record_view *r, const struct field *f)
{
	struct event *e = &l->event;
	struct prototype_memory m = { 0 };
	const char *text;
	uint32_t n;

	if (f->kind == FIELD_INT) {
		if (e->nnumbers < ARRAY_SIZE(e->numbers))
			e->numbers[e->nnumbers++] = field_uint(f, r->data);
	} else if (field_text(r->image, f, r->data, &text, &n)) {
		m.bytes = (const uint8_t *)text;
		m.n = n > l->c->o->text_max ? l->c->o->text_max : n;
		m.cut = n > l->c->o->text_max;
		if (e->ntexts < ARRAY_SIZE(e->texts))
			e->texts[e->ntexts++] = m;
	}
}

/* The first frame is the function itself. */
static void take_frame(void *arg, const struct frame *f)
{
	struct lines *l = arg;
	char name[ADDRESS_TEXT];

	if (!l->event.nframes++ || f->kind == FRAME_END)
		return;
	frame_text(&l->s, f, name, sizeof(name));
	out_printf(&l->event.stack, " > %s [0x%llx]\n", name, (unsigned long long)f->address);
}

static struct err *lines_action(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct lines *l = lines_of(s);
	struct event *e = &l->event;

	for (uint32_t i = 0; i < a->nfields; i++) {
		const struct field *f = &r->segment->fields[a->fields[i]];

		if (a->kind == ACT_PRINTF) {
			take_field(l, r, f);
		} else if (a->kind == ACT_TRACEMEM && f->kind == FIELD_MEM &&
			   e->nmemory < ARRAY_SIZE(e->memory)) {
			struct prototype_memory *m = &e->memory[e->nmemory++];

			m->bytes = field_mem(f, r->data, &m->n);
			m->cut = m->n == f->size - sizeof(uint64_t);
		} else if (a->kind == ACT_USTACK) {
			stack_each(s, f, r->data, take_frame, l);
		}
	}
	return NULL;
}

static struct err *lines_flush(struct sink *s)
{
	struct lines *l = lines_of(s);

	l->p->column -= l->p->o.n; /* a line that is begun keeps its column (modulo 2^64) */
	return out_flush(&l->p->o);
}

/* "--- SIGCHLD (Child exited) ---". An ignored signal is shown for a process that has lines, and
 * SIGKILL not at all, as ltrace has it. */
static void put_signal(struct lines *l, enum calls_event event, const struct record_view *r)
{
	const uint32_t to = event == CALLS_IGNORED ? (uint32_t)l->event.numbers[1] : r->head->tid;
	const int number = (int)l->event.numbers[0];
	const char *name = sigabbrev_np(number);

	if (event == CALLS_IGNORED && to != l->c->main_thread &&
	    !hash_get(&l->p->threads, &to, sizeof(to)))
		return;
	if (number == SIGKILL)
		return;
	begin_line(l, to, r->head->time, 0);
	if (name)
		out_printf(&l->p->o, "--- SIG%s (%s) ---\n", name, sigdescr_np(number));
	else
		out_printf(&l->p->o, "--- SIGRT_%d (Real-time signal %d) ---\n", number - 32,
			   number - 32);
}

static struct err *lines_record_end(struct sink *s, const struct record_view *r)
{
	struct lines *l = lines_of(s);
	const struct calls_clause *k;

	if (r->segment->clause >= l->c->clauses.n || !l->event.nnumbers)
		return NULL;
	k = &l->c->clauses.v[r->segment->clause];
	if (k->event == CALLS_ENTRY)
		entered(l, k, r);
	else if (k->event == CALLS_RETURN)
		returned(l, k, r);
	else if (k->event == CALLS_TEXT)
		lines_take_text(l, r, own_thread(l, r));
	else if (k->event == CALLS_WIDE)
		lines_take_wide(l, own_thread(l, r));
	else if (k->event == CALLS_VECTOR)
		lines_take_vectors(l, own_thread(l, r));
	else if (k->event == CALLS_INNER)
		lines_take_inner(l, k->inner, own_thread(l, r));
	else if (k->event == CALLS_SIGNAL || k->event == CALLS_IGNORED || k->event == CALLS_FATAL)
		put_signal(l, k->event, r);
	return l->p->o.n > OUT_BUFFER ? lines_flush(s) : NULL;
}

static struct err *lines_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	lines_of(s)->p->lost += count;
	return NULL;
}

/* -X report, for both sinks. */
void calls_report(struct sink *s, const struct run_report *r)
{
	struct out message;

	out_init(&message, NULL);
	report_print(&message, r);
	sink_message(s, message.v, message.n);
	out_fini(&message);
}

static struct err *lines_end(struct sink *s)
{
	struct lines *l = lines_of(s);
	cleanup_free char *ended = NULL;
	struct err *e;

	l->ended = true;
	if (--l->p->nsinks)
		return NULL;
	ended = l->c->o->ended ? l->c->o->ended(l->c->o->arg) : NULL;
	unfinished(l);
	if (ended && !l->c->o->json) {
		if (l->c->main_thread)
			begin_line(l, l->c->main_thread, clock_ns(CLOCK_MONOTONIC), 0);
		out_printf(&l->p->o, "+++ %s +++\n", ended);
	}
	e = out_flush(&l->p->o);
	if (l->p->lost) {
		cleanup_free char *text =
			xasprintf("%s: %llu records of calls were lost: -X bufsize=SIZE makes "
				  "the buffers larger, -c needs none\n",
				  s->progname, (unsigned long long)l->p->lost);

		sink_message(s, text, strlen(text));
	}
	return e;
}

static char *lines_format(struct sink *s, const struct record_view *r, const struct action *a)
{
	return xstrdup("");
}

static void lines_free(struct sink *s)
{
	struct lines *l = lines_of(s);
	uint32_t at = 0;
	const void *key;
	size_t len;
	uint64_t *v;

	while (hash_next(&l->p->threads, &at, &key, &len, &v)) {
		struct thread *t = (struct thread *)(uintptr_t)*v;

		end_own_calls(l, t);
		if (t->of == l)
			t->of = NULL;
	}
	l->p->nsinks -= !l->ended;
	out_fini(&l->event.stack);
	free(l);
}

static const struct sink_ops lines_ops = {
	.name = "calls",
	.begin = lines_begin,
	.end = lines_end,
	.record_begin = lines_record_begin,
	.action = lines_action,
	.record_end = lines_record_end,
	.drop = lines_drop,
	.truncate = lines_flush,
	.flush = lines_flush,
	.format = lines_format,
	.report = calls_report,
	.free = lines_free,
};

struct sink *calls_lines_new(const struct calls *c, struct calls_page *p)
{
	struct lines *l = xcalloc(1, sizeof(*l));

	l->s.ops = &lines_ops;
	l->c = c;
	l->p = p;
	p->nsinks++;
	out_init(&l->event.stack, NULL);
	return &l->s;
}

struct calls_page *calls_page_new(void)
{
	struct calls_page *p = xcalloc(1, sizeof(*p));

	out_init(&p->o, NULL);
	out_init(&p->held, NULL);
	out_init(&p->kept, NULL);
	return p;
}

void calls_page_free(struct calls_page *p)
{
	uint32_t at = 0;
	const void *key;
	size_t len;
	uint64_t *v;

	if (!p)
		return;
	while (hash_next(&p->threads, &at, &key, &len, &v)) {
		struct thread *t = (struct thread *)(uintptr_t)*v;

		lines_forget_texts(t);
		vec_fini(&t->calls);
		free(t);
	}
	hash_fini(&p->threads);
	out_fini(&p->o);
	out_fini(&p->held);
	out_fini(&p->kept);
	free(p);
}
