/* A line for each call, in ltrace's form:
 *
 *	malloc(24)                                       = 0x55d0c0
 *	qsort(0x7ffd, 3, 8, 0x55d1 <unfinished ...>
 *	strcmp("a", "b")                                 = -1
 *	<... qsort resumed> )                            = <void>
 */
#include <time.h>

#include "base/clock.h"
#include "calls/calls.h"
#include "data/record.h"

enum { MAX_DEPTH = 256, MAX_ARGS = CALLS_REGISTERS };

/* A call that has not returned. */
struct call {
	const struct calls_function *function;
	uint64_t began, sp;
	uint64_t regs[MAX_ARGS];
	uint32_t nregs;
};

struct thread {
	uint32_t tid;
	VEC(struct call) calls;
};

/* The values of a record. */
struct event {
	uint64_t numbers[MAX_ARGS + 2]; /* of an entry: stack pointer, return address */
	uint32_t nnumbers;
	struct prototype_memory texts[PROTOTYPE_PARAMS + 1], memory[PROTOTYPE_PARAMS + 1];
	uint32_t ntexts, nmemory;
};

struct lines {
	struct sink s;
	const struct calls *c;
	struct out o;
	struct hash threads; /* tid -> struct thread */
	struct event event;
	uint32_t open;             /* the thread whose line is not complete; 0: none */
	size_t column;             /* where that line began in o */
	uint64_t previous, offset; /* time of the line before; from boot to 1970 */
	uint64_t lost;
};

static struct lines *of(struct sink *s)
{
	return (struct lines *)s;
}

static struct thread *thread_of(struct lines *l, uint32_t tid)
{
	uint64_t *v = hash_put(&l->threads, &tid, sizeof(tid), NULL);

	if (!*v) {
		struct thread *t = xcalloc(1, sizeof(*t));

		t->tid = tid;
		*v = (uintptr_t)t;
	}
	return (struct thread *)(uintptr_t)*v;
}

static void put_clock(struct lines *l, uint64_t time)
{
	uint64_t wall = time + l->offset;
	time_t seconds = (time_t)(wall / 1000000000);
	char text[32];
	struct tm tm;

	if (l->c->o->clock == 3) {
		out_printf(&l->o, "%llu.%06llu ", (unsigned long long)seconds,
			   (unsigned long long)(wall % 1000000000 / 1000));
		return;
	}
	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	out_str(&l->o, text);
	if (l->c->o->clock == 2)
		out_printf(&l->o, ".%06llu", (unsigned long long)(wall % 1000000000 / 1000));
	out_char(&l->o, ' ');
}

static void unfinished(struct lines *l)
{
	if (l->open)
		out_str(&l->o, " <unfinished ...>\n");
	l->open = 0;
}

/* Begins a line of a thread at that depth. */
static void begin_line(struct lines *l, uint32_t tid, uint64_t time, uint32_t depth)
{
	const struct calls_options *o = l->c->o;

	unfinished(l);
	l->column = l->o.n;
	if (o->threads || tid != l->c->main_thread)
		out_printf(&l->o, "[pid %u] ", tid);
	if (o->clock)
		put_clock(l, time);
	if (o->relative) {
		uint64_t ns = l->previous && time > l->previous ? time - l->previous : 0;

		out_printf(&l->o, "%3llu.%06llu ", (unsigned long long)(ns / 1000000000),
			   (unsigned long long)(ns % 1000000000 / 1000));
		l->previous = time;
	}
	out_fill(&l->o, ' ', (size_t)o->indent * depth);
}

static struct prototype_values values_of(const struct lines *l, const struct prototype *f,
					 const struct call *call, uint64_t *room)
{
	struct prototype_values v = { .args = room,
				      .nargs = f->nparams,
				      .max_elements = l->c->o->elements_max };

	for (uint32_t i = 0; i < f->nparams; i++) {
		int reg = calls_register(f, i);

		room[i] = reg >= 0 && (uint32_t)reg < call->nregs ? call->regs[reg] : 0;
	}
	return v;
}

static void put_param(struct lines *l, const struct prototype_type *t, uint64_t value, bool whole,
		      uint32_t *text, uint32_t *memory, const struct prototype_values *v)
{
	const struct prototype_memory *m = NULL;

	if (whole && calls_reads_text(t) && *text < l->event.ntexts)
		m = &l->event.texts[(*text)++];
	else if (whole && calls_reads_memory(t) && *memory < l->event.nmemory)
		m = &l->event.memory[(*memory)++];
	prototype_value(&l->o, t, value, m, v);
}

/* Prints the arguments behind a format, as the format's text requires. */
static void put_varargs(struct lines *l, const struct call *call, uint32_t reg,
			const struct prototype_memory *format)
{
	const char *at = (const char *)format->bytes, *end = at + format->n;

	while (at < end) {
		uint32_t wide = 0;
		uint64_t v;
		char c = 0;

		if (*at++ != '%')
			continue;
		for (; at < end; at++) {
			c = *at;
			if (c == 'l' || c == 'z' || c == 'j' || c == 't' || c == 'q')
				wide++;
			else if (!strchr("0123456789.-+ #'hL*", c))
				break;
			if (c == '*' && reg < call->nregs) {
				out_printf(&l->o, ", %d", (int)call->regs[reg]);
				reg++;
			}
		}
		if (at++ >= end || c == '%' || c == 'm')
			continue;
		if (strchr("eEfFgGaA", c)) {
			out_str(&l->o, ", ?"); /* in a register that is not seen */
			continue;
		}
		if (reg >= call->nregs) {
			out_str(&l->o, ", ...");
			return;
		}
		v = call->regs[reg++];
		switch (c) {
		case 'd':
		case 'i':
			out_str(&l->o, ", ");
			out_signed(&l->o, wide ? (int64_t)v : (int32_t)v, 0);
			break;
		case 'u':
			out_str(&l->o, ", ");
			out_unsigned(&l->o, wide ? v : (uint32_t)v, 0);
			break;
		case 'o':
			out_printf(&l->o, ", %#llo", (unsigned long long)(wide ? v : (uint32_t)v));
			break;
		case 'c':
			out_str(&l->o, ", '");
			out_escaped(&l->o, &(char){ (char)v }, 1);
			out_char(&l->o, '\'');
			break;
		case 'x':
		case 'X':
			out_str(&l->o, ", 0x");
			out_hex(&l->o, wide ? v : (uint32_t)v, false, 0);
			break;
		default:
			out_str(&l->o, v ? ", 0x" : ", nil");
			if (v)
				out_hex(&l->o, v, false, 0);
		}
	}
}

/* Prints the parameters from the first output parameter on (late), or those before it. */
static void put_params(struct lines *l, const struct call *call, bool whole, bool late)
{
	const struct prototype *f = call->function->prototype;
	uint64_t room[PROTOTYPE_PARAMS];
	struct prototype_values v = values_of(l, f, call, room);
	uint32_t text = 0, memory = 0;
	bool past = false;

	if (late && l->event.nnumbers) {
		v.result = l->event.numbers[0];
		v.returned = true;
	}
	for (uint32_t i = 0; i < f->nparams; i++) {
		const struct prototype_type *t = f->params[i].type;
		bool has = whole && f->params[i].out == late;

		past |= f->params[i].out;
		if (past != late) {
			/* its text or memory is in this record all the same */
			if (has && calls_register(f, i) >= 0) {
				text += calls_reads_text(t);
				memory += calls_reads_memory(t);
			}
			continue;
		}
		if (i)
			out_str(&l->o, ", ");
		if (calls_register(f, i) < 0) {
			out_char(&l->o, '?');
			continue;
		}
		put_param(l, t, room[i], has, &text, &memory, &v);
		if (t->lens == LENS_FORMAT && has && text)
			put_varargs(l, call, (uint32_t)calls_register(f, i) + 1,
				    &l->event.texts[text - 1]);
	}
}

static bool has_out(const struct prototype *f)
{
	for (uint32_t i = 0; i < f->nparams; i++)
		if (f->params[i].out)
			return true;
	return false;
}

/* ")", and the column of the result. */
static void put_end(struct lines *l)
{
	out_str(&l->o, ") ");
	if (l->o.n - l->column < l->c->o->align)
		out_fill(&l->o, ' ', l->c->o->align - 1 - (l->o.n - l->column));
	out_str(&l->o, "= ");
}

/* A call that stands at or below the place of a new one has returned, or was left by longjmp(3),
 * unseen. */
static void drop_left(struct lines *l, struct thread *t, uint64_t sp)
{
	while (t->calls.n && vec_last(&t->calls)->sp <= sp) {
		if (l->open == t->tid) {
			if (has_out(vec_last(&t->calls)->function->prototype))
				out_str(&l->o, " ...");
			put_end(l);
			out_str(&l->o, "?\n");
			l->open = 0;
		}
		t->calls.n--;
	}
}

static void entered(struct lines *l, const struct calls_clause *k, const struct record_view *r)
{
	struct thread *t = thread_of(l, r->head->tid);
	uint32_t nbefore = l->c->o->addresses ? 2 : 1;
	struct call *call;

	if (l->event.nnumbers < nbefore)
		return;
	drop_left(l, t, l->event.numbers[0]);
	if (t->calls.n == MAX_DEPTH)
		memmove(t->calls.v, t->calls.v + 1, --t->calls.n * sizeof(*t->calls.v));
	begin_line(l, t->tid, r->head->time, t->calls.n);
	call = vec_add(&t->calls);
	call->function = k->function;
	call->began = r->head->time;
	call->sp = l->event.numbers[0];
	call->nregs = l->event.nnumbers - nbefore;
	memcpy(call->regs, l->event.numbers + nbefore, sizeof(call->regs));
	if (l->c->o->addresses)
		out_printf(&l->o, "[0x%llx] ", (unsigned long long)l->event.numbers[1]);
	out_printf(&l->o, "%s(", calls_shown(l->c, &l->s, k->function->name));
	put_params(l, call, k->whole, false);
	l->open = t->tid;
	if (k->function->returns.n || k->function->rets.n)
		return;
	/* No return will be seen. */
	t->calls.n--;
	if (has_out(k->function->prototype))
		out_str(&l->o, " ...");
	if (k->function->blind) {
		put_end(l);
		out_char(&l->o, '?');
	} else {
		out_char(&l->o, ')');
	}
	out_char(&l->o, '\n');
	l->open = 0;
}

static void put_result(struct lines *l, const struct call *call, bool whole)
{
	const struct prototype *f = call->function->prototype;
	uint64_t room[PROTOTYPE_PARAMS];
	struct prototype_values v = values_of(l, f, call, room);
	uint32_t text = l->event.ntexts, memory = l->event.nmemory;

	v.result = l->event.nnumbers ? l->event.numbers[0] : 0;
	v.returned = true;
	if (f->result->kind == PROTOTYPE_FLOAT) {
		out_char(&l->o, '?'); /* in a register that is not seen */
		return;
	}
	/* The result's text or memory is the last of the record. */
	text -= calls_reads_text(f->result) && text;
	memory -= calls_reads_memory(f->result) && memory;
	put_param(l, f->result, v.result, whole, &text, &memory, &v);
}

static void returned(struct lines *l, const struct calls_clause *k, const struct record_view *r)
{
	struct thread *t = thread_of(l, r->head->tid);
	uint32_t depth = t->calls.n;
	const struct call *call;

	while (depth && t->calls.v[depth - 1].function != k->function)
		depth--;
	if (!depth)
		return; /* the entry was lost */
	call = &t->calls.v[depth - 1];
	if (l->open != t->tid || depth != t->calls.n) {
		begin_line(l, t->tid, r->head->time, depth - 1);
		out_printf(&l->o, "<... %s resumed> ", calls_shown(l->c, &l->s, k->function->name));
	}
	put_params(l, call, k->whole, true);
	put_end(l);
	put_result(l, call, k->whole);
	if (l->c->o->durations) {
		uint64_t ns = r->head->time - call->began;

		out_printf(&l->o, " <%llu.%06llu>", (unsigned long long)(ns / 1000000000),
			   (unsigned long long)(ns % 1000000000 / 1000));
	}
	out_char(&l->o, '\n');
	l->open = 0;
	t->calls.n = depth - 1;
}

static struct err *lines_begin(struct sink *s)
{
	struct lines *l = of(s);

	l->o.file = s->out;
	l->offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	return NULL;
}

static struct err *lines_record_begin(struct sink *s, const struct record_view *r)
{
	of(s)->event.nnumbers = of(s)->event.ntexts = of(s)->event.nmemory = 0;
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

static struct err *lines_action(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct lines *l = of(s);
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
		}
	}
	return NULL;
}

static struct err *lines_flush(struct sink *s)
{
	struct lines *l = of(s);

	l->column -= l->o.n; /* a line that is begun keeps its column (modulo 2^64) */
	return out_flush(&l->o);
}

static struct err *lines_record_end(struct sink *s, const struct record_view *r)
{
	struct lines *l = of(s);
	const struct calls_clause *k;

	if (r->segment->clause >= l->c->clauses.n || !l->event.nnumbers)
		return NULL;
	k = &l->c->clauses.v[r->segment->clause];
	if (k->event == CALLS_ENTRY)
		entered(l, k, r);
	else if (k->event == CALLS_RETURN)
		returned(l, k, r);
	return l->o.n > OUT_BUFFER ? lines_flush(s) : NULL;
}

static struct err *lines_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	of(s)->lost += count;
	return NULL;
}

static struct err *lines_end(struct sink *s)
{
	struct lines *l = of(s);
	cleanup_free char *ended = l->c->o->ended ? l->c->o->ended(l->c->o->arg) : NULL;
	struct err *e;

	unfinished(l);
	if (ended)
		out_printf(&l->o, "+++ %s +++\n", ended);
	e = out_flush(&l->o);
	if (l->lost) {
		cleanup_free char *text =
			xasprintf("%s: %llu records of calls were lost: -X bufsize=SIZE makes "
				  "the buffers larger, -c needs none\n",
				  s->progname, (unsigned long long)l->lost);

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
	struct lines *l = of(s);
	uint32_t at = 0;
	const void *key;
	size_t len;
	uint64_t *v;

	while (hash_next(&l->threads, &at, &key, &len, &v)) {
		struct thread *t = (struct thread *)(uintptr_t)*v;

		vec_fini(&t->calls);
		free(t);
	}
	hash_fini(&l->threads);
	out_fini(&l->o);
	free(l);
}

struct sink *calls_lines_new(const struct calls *c)
{
	static const struct sink_ops ops = {
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
		.free = lines_free,
	};
	struct lines *l = xcalloc(1, sizeof(*l));

	l->s.ops = &ops;
	l->c = c;
	out_init(&l->o, NULL);
	return &l->s;
}
