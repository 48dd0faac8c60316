/* The public library: descry.h over struct session. A text sink prints the program's output; at the
 * end, aggregations become rows. */
#define _GNU_SOURCE
#include "descry.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/procmem.h"
#include "render/render.h"
#include "session/session.h"

/* Collects text that comes in pieces and passes it on by whole lines. */
struct lines {
	struct out held; /* the line whose end has not come yet */
	void (*take)(void *arg, const char *text, size_t size);
	void *arg;
	FILE *other; /* takes the text when take is NULL */
};

struct descry {
	struct session session;
	struct descry_callbacks callbacks;
	enum { STATE_OPEN, STATE_COMPILED, STATE_RUNS, STATE_OVER, STATE_DONE } state;
	struct lines lines, messages;
	FILE *out;                    /* writes to lines */
	struct sink_ops ops;          /* of the text sink, except for aggregations */
	const struct sink_ops *plain; /* the text sink's own */
	struct err *error;            /* returned by session_poll() */
	volatile sig_atomic_t interrupted;
	char *args[1]; /* $0 */
	char name[sizeof("descry")];
};

static void end_line(struct lines *l)
{
	if (l->take) {
		out_char(&l->held, 0);
		l->take(l->arg, l->held.v, l->held.n - 1);
	} else {
		out_char(&l->held, '\n');
		fwrite(l->held.v, 1, l->held.n, l->other);
	}
	l->held.n = 0;
}

static void take_lines(struct lines *l, const char *text, size_t n)
{
	while (n) {
		const char *end = memchr(text, '\n', n);
		size_t part = end ? (size_t)(end - text) : n;

		out_mem(&l->held, text, part);
		if (end) {
			end_line(l);
			part++;
		}
		text += part;
		n -= part;
	}
}

/* Gives the message callback all collected text, and a last line that has no end. */
static void finish_lines(struct lines *l)
{
	if (l->held.n)
		end_line(l);
	if (!l->take)
		fflush(l->other);
}

static ssize_t write_lines(void *cookie, const char *text, size_t n)
{
	struct descry *d = cookie;

	take_lines(&d->lines, text, n);
	return (ssize_t)n;
}

static void take_message(void *arg, const char *text, size_t n)
{
	struct descry *d = arg;

	take_lines(&d->messages, text, n);
}

static int asked(void *arg)
{
	const struct descry *d = arg;

	return d->interrupted;
}

static struct descry *descry_of(struct sink *s)
{
	return (struct descry *)((char *)(uintptr_t)s->ops - offsetof(struct descry, ops));
}

/* --- records --- */

static void key_text(struct sink *s, struct out *o, const struct field *f, const uint8_t *key)
{
	char buf[ADDRESS_TEXT];
	const char *text;
	struct out padded;
	size_t from = 0;
	uint32_t n;

	if (field_text(s->image, f, key, &text, &n)) {
		out_mem(o, text, n);
		return;
	}
	if (field_address_text(s, f, key, buf, sizeof(buf))) {
		out_str(o, buf);
		return;
	}
	/* As in a table, without the surrounding blanks. */
	out_init(&padded, NULL);
	if (f->kind == FIELD_KSTACK || f->kind == FIELD_USTACK || f->kind == FIELD_KSTACKID ||
	    f->kind == FIELD_USTACKID)
		stack_print(s, &padded, f, key, 0, 0);
	else
		key_print(s, &padded, f, key);
	while (from < padded.n && strchr(" \n", padded.v[from]))
		from++;
	while (padded.n > from && strchr(" \n", padded.v[padded.n - 1]))
		padded.n--;
	out_mem(o, padded.v + from, padded.n - from);
	out_fini(&padded);
}

/* Appends the key's text and a NUL to `text`. The caller sets the key's pointer, because `text` may
 * still move. */
static struct descry_key read_key(struct sink *s, const struct field *f, const uint8_t *data,
				  struct out *text)
{
	uint32_t traits = field_traits(s->types, f);
	struct descry_key k = { .is_number = f->kind == FIELD_INT && !(traits & TRAIT_FLOAT) };
	size_t before = text->n;

	if (k.is_number)
		k.number = field_int(f, data, traits & TRAIT_SIGNED);
	key_text(s, text, f, data);
	k.size = text->n - before;
	out_char(text, 0);
	return k;
}

static struct err *give_record(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct descry *d = descry_of(s);
	const struct image_probe *p = r->probe;
	cleanup_free struct descry_value *values = xcalloc(a->nfields + 1, sizeof(*values));
	struct descry_record record = {
		.provider = p->prov,
		.module = p->mod,
		.function = p->func,
		.name = p->name,
		.time = r->head->time,
		.cpu = r->head->cpu,
		.tid = (int)r->head->tid,
		.action = action_name(a->kind),
		.values = values,
		.nvalues = a->nfields,
	};
	struct out text = { 0 };
	const char *at;

	if (a->kind == ACT_DEFAULT) /* it has no value, and prints nothing here */
		return d->plain->action(s, r, a);
	for (uint32_t i = 0; i < a->nfields; i++) {
		const struct field *f = &r->segment->fields[a->fields[i]];
		struct descry_key k = read_key(s, f, r->data, &text);

		values[i] = (struct descry_value){ .size = k.size,
						   .number = k.number,
						   .is_number = k.is_number };
	}
	at = text.v;
	for (uint32_t i = 0; i < a->nfields; at += values[i++].size + 1)
		values[i].text = at;
	d->callbacks.record(d->callbacks.arg, &record);
	out_fini(&text);
	return d->plain->action(s, r, a);
}

/* --- rows --- */

/* Fills in the keys of a row. Their texts are in `text`, which must not move afterwards. */
static void read_keys(struct sink *s, const struct agg *a, const uint8_t *key, struct out *text,
		      struct descry_key *ret)
{
	const char *at;

	for (uint32_t i = 0; i < a->nkeys; i++)
		ret[i] = read_key(s, &a->keys[i], key, text);
	at = text->v;
	for (uint32_t i = 0; i < a->nkeys; i++) {
		ret[i].text = at;
		at += ret[i].size + 1;
	}
}

/* Reads the buckets that are not empty. *ret_sum is the sum of their counts. */
static size_t read_buckets(const struct agg_view *v, const struct agg_row *r,
			   struct descry_bucket *ret, int64_t *ret_sum)
{
	size_t n = 0;

	*ret_sum = 0;
	for (uint32_t i = 0; i + 1 < v->agg->nwords; i++) {
		struct descry_bucket *b = &ret[n];

		if (!r->words[i + 1])
			continue;
		hist_bounds(v->agg, i, &b->min, &b->max);
		b->count = agg_normalized(v, r->words[i + 1]);
		*ret_sum = (int64_t)((uint64_t)*ret_sum + (uint64_t)b->count);
		n++;
	}
	return n;
}

static struct err *give_rows(struct sink *s, const struct record_view *r, const struct action *a,
			     struct agg_view *const *aggs, uint32_t n)
{
	struct descry *d = descry_of(s);
	const struct agg_view *v = aggs[0];
	cleanup_free struct descry_key *keys = NULL;
	cleanup_free struct descry_bucket *buckets = NULL;
	struct err *e;
	struct out text;

	if (r)
		return d->plain->printa(s, r, a, aggs, n);
	e = d->plain->flush(s); /* prints the lines that came before */
	if (e)
		return e;
	out_init(&text, NULL);
	keys = xcalloc(v->agg->nkeys + 1, sizeof(*keys));
	if (agg_is_distribution(v->agg))
		buckets = xcalloc(v->agg->nwords, sizeof(*buckets));
	for (uint32_t i = 0; i < v->nrows; i++) {
		struct descry_row row = {
			.aggregation = v->agg->name,
			.function = agg_func_name(v->agg->func),
			.keys = keys,
			.nkeys = v->agg->nkeys,
			.buckets = buckets,
		};

		text.n = 0;
		read_keys(s, v->agg, v->rows[i].key, &text, keys);
		if (buckets)
			row.nbuckets = read_buckets(v, &v->rows[i], buckets, &row.value);
		else
			row.value = agg_row_value(v, &v->rows[i]);
		d->callbacks.row(d->callbacks.arg, &row);
	}
	out_fini(&text);
	return NULL;
}

static struct sink *make_sink(struct descry *d)
{
	struct sink *s = sink_text_new();

	d->plain = s->ops;
	d->ops = *s->ops;
	d->ops.final = NULL; /* final would print the blank line in front of a table */
	if (d->callbacks.row)
		d->ops.printa = give_rows;
	if (d->callbacks.record)
		d->ops.action = give_record;
	s->ops = &d->ops;
	s->out = d->out;
	return s;
}

/* --- the functions of descry.h --- */

static int end_call(struct descry *d, int result)
{
	finish_lines(&d->messages);
	if (!d->lines.take)
		fflush(d->lines.other);
	return result;
}

/* Gives e as a message, unless diagnostics have reported wrong D already. Frees e. */
static int failed(struct descry *d, struct err *e)
{
	if (d->session.failure != SESSION_WRONG_D)
		session_say(&d->session, "%s", e->text);
	err_free(e);
	d->state = STATE_DONE;
	return end_call(d, -1);
}

static bool out_of_order(struct descry *d, bool fine, const char *function)
{
	if (!fine)
		session_say(&d->session, "%s() is out of order here", function);
	return !fine;
}

const char *descry_version(void)
{
	return DESCRY_VERSION;
}

struct descry *descry_open(const struct descry_callbacks *callbacks)
{
	struct descry *d = xcalloc(1, sizeof(*d));
	struct session_setting o = { .message = take_message, .stop = asked, .arg = d, .nargs = 1 };

	procmem_embed();
	if (callbacks)
		d->callbacks = *callbacks;
	strcpy(d->name, "descry");
	d->args[0] = d->name;
	o.args = d->args;
	d->lines = (struct lines){ .take = d->callbacks.line,
				   .arg = d->callbacks.arg,
				   .other = stdout };
	d->messages = (struct lines){ .take = d->callbacks.message,
				      .arg = d->callbacks.arg,
				      .other = stderr };
	d->out = fopencookie(d, "w", (cookie_io_functions_t){ .write = write_lines });
	assert(d->out);
	session_init(&d->session, &o);
	options_put(&d->session.options, OPT_QUIET, true);
	return d;
}

int descry_set(struct descry *d, const char *name, const char *value)
{
	const char *why;

	if (out_of_order(d, d->state == STATE_OPEN, __func__))
		return end_call(d, -1);
	if (options_set(&d->session.options, name, value, WHEN_COMPILE | WHEN_RUN | WHEN_DYNAMIC,
			&why))
		return 0;
	session_say(&d->session, "failed to set %s: %s", name, why);
	return end_call(d, -1);
}

int descry_pid(struct descry *d, pid_t pid)
{
	struct err *e;

	if (out_of_order(d, d->state == STATE_OPEN, __func__))
		return end_call(d, -1);
	e = session_grab(&d->session, pid);
	return e ? failed(d, e) : end_call(d, 0);
}

int descry_command(struct descry *d, const char *command)
{
	struct err *e;

	if (out_of_order(d, d->state == STATE_OPEN, __func__))
		return end_call(d, -1);
	e = session_command(&d->session, command);
	return e ? failed(d, e) : end_call(d, 0);
}

int descry_compile(struct descry *d, const char *text)
{
	struct session *s = &d->session;
	struct err *e;

	if (out_of_order(d, d->state == STATE_OPEN, __func__))
		return end_call(d, -1);
	e = session_source(s, PDESC_NAME, false, text);
	e = e ?: session_bind(s);
	if (!e && !session_enables(s))
		e = err_new(ENOENT, "no probes matched");
	e = e ?: session_compile(s);
	e = e ?: session_allowed(s);
	if (e)
		return failed(d, e);
	d->state = STATE_COMPILED;
	return end_call(d, 0);
}

int descry_start(struct descry *d)
{
	struct err *e;

	if (out_of_order(d, d->state == STATE_COMPILED, __func__))
		return end_call(d, -1);
	e = session_load(&d->session);
	e = e ?: session_start(&d->session, make_sink(d));
	if (e)
		return failed(d, e);
	d->state = STATE_RUNS;
	return end_call(d, 0);
}

int descry_poll(struct descry *d, int timeout_ms)
{
	if (d->state == STATE_OVER)
		return d->error ? -1 : 0;
	if (out_of_order(d, d->state == STATE_RUNS, __func__))
		return end_call(d, -1);
	if (session_poll(&d->session, timeout_ms, &d->error))
		return end_call(d, 1);
	d->state = STATE_OVER;
	if (d->error)
		session_say(&d->session, "%s", d->error->text);
	return end_call(d, d->error ? -1 : 0);
}

int descry_snapshot(struct descry *d)
{
	bool runs = d->state == STATE_RUNS || d->state == STATE_OVER;
	struct err *e;

	if (out_of_order(d, runs, __func__))
		return end_call(d, -1);
	e = session_show(&d->session);
	if (!e)
		return end_call(d, 0);
	session_say(&d->session, "%s", e->text);
	err_free(e);
	return end_call(d, -1);
}

int descry_stop(struct descry *d)
{
	struct err *e = d->error;
	bool said = e;

	if (out_of_order(d, d->state == STATE_RUNS || d->state == STATE_OVER, __func__))
		return end_call(d, -1);
	d->error = NULL;
	e = session_stop(&d->session, e);
	d->state = STATE_DONE;
	fflush(d->out);
	finish_lines(&d->lines);
	if (e && !said)
		return failed(d, e);
	err_free(e);
	return end_call(d, said ? -1 : 0);
}

int descry_status(const struct descry *d)
{
	return d->session.status;
}

void descry_interrupt(struct descry *d)
{
	d->interrupted = 1;
}

/* Reaps a command that was sent SIGTERM, so that it does not stay as a zombie of the calling
 * program. Gives up after a second. */
static void reap(pid_t pid)
{
	enum { TRIES = 100, PAUSE_NS = 10000000 }; /* a second */

	for (int i = 0; i < TRIES && !waitpid(pid, NULL, WNOHANG); i++)
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

void descry_close(struct descry *d)
{
	VEC(pid_t) running = { 0 };

	if (!d)
		return;
	for (uint32_t i = 0; i < d->session.targets.n; i++) {
		const struct target *t = &d->session.targets.v[i];

		if (t->command && !t->gone)
			vec_push(&running, t->pid);
	}
	session_fini(&d->session);
	for (uint32_t i = 0; i < running.n; i++)
		reap(running.v[i]);
	vec_fini(&running);
	err_free(d->error);
	fclose(d->out);
	finish_lines(&d->messages);
	out_fini(&d->lines.held);
	out_fini(&d->messages.held);
	free(d);
}
