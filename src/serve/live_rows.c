/* Writes rows of aggregations for the page: names, stacks and keys once, then the changes. */
#include "render/picture_flame.h"
#include "render/json.h"
#include "serve/live_private.h"

enum {
	STACKS_MAX = 200000,
	ROWS_MAX = 100000, /* of one aggregation */
	FRAMES_MAX = 1 << 20,
};
static const uint32_t NO_STACK = UINT32_MAX;

static bool names_are_full(const struct live *l)
{
	return l->name_bytes >= l->options.names;
}

/* Writes a frame for the page: "name", or ["name","kind"] when the kind is not native. */
static uint32_t frame_id(struct live *l, enum frame_kind kind, const char *name, size_t n)
{
	struct out o = { 0 };
	bool fresh;
	uint64_t *id;

	out_str(&o, kind ? "[" : "");
	json_string(&o, name, n);
	if (kind)
		out_printf(&o, ",\"%s\"]", frame_kind_name(kind));
	/* a traced process can have any number of them */
	if ((l->frames.n >= FRAMES_MAX || names_are_full(l)) &&
	    !hash_get(&l->frame_ids, o.v, o.n)) {
		o.n = 0;
		out_str(&o, "\"[other names]\"");
	}
	id = hash_put(&l->frame_ids, o.v, o.n, &fresh);
	if (fresh) {
		*id = l->frames.n;
		l->name_bytes += 2 * o.n;
		vec_push(&l->frames, live_take_text(&o));
	}
	out_fini(&o);
	return (uint32_t)*id;
}

struct frames {
	struct live *live;
	VEC(uint32_t) user, kernel; /* leaf first */
};

static void take_frame(void *arg, const struct frame *f)
{
	struct frames *to = arg;
	struct out shown = { 0 };
	char buf[ADDRESS_TEXT];
	uint32_t id;

	if (f->kind == FRAME_END)
		snprintf(buf, sizeof(buf), "[%s]", f->end);
	else
		place_format(&f->place, f->address, false, buf, sizeof(buf));
	flame_shown(&shown, buf, strlen(buf));
	id = frame_id(to->live, f->kind, shown.v ? shown.v : "", shown.n);
	out_fini(&shown);
	if (f->kind == FRAME_KERNEL)
		vec_push(&to->kernel, id);
	else
		vec_push(&to->user, id);
}

static uint32_t stack_id(struct live *l, const struct frames *f)
{
	VEC(uint32_t) ids = { 0 };
	struct out o = { 0 };
	uint64_t *id;
	uint32_t ret;
	bool fresh;

	for (uint32_t i = f->user.n; i; i--)
		vec_push(&ids, f->user.v[i - 1]);
	for (uint32_t i = f->kernel.n; i; i--)
		vec_push(&ids, f->kernel.v[i - 1]);
	if (l->stacks.n >= STACKS_MAX || names_are_full(l)) {
		uint64_t *known = hash_get(&l->stack_ids, ids.v, ids.n * sizeof(*ids.v));

		l->stacks_dropped += !known;
		ret = known ? (uint32_t)*known : NO_STACK;
		vec_fini(&ids);
		return ret;
	}
	id = hash_put(&l->stack_ids, ids.n ? (const void *)ids.v : "", ids.n * sizeof(*ids.v),
		      &fresh);
	if (fresh) {
		*id = l->stacks.n;
		out_char(&o, '[');
		for (uint32_t i = 0; i < ids.n; i++)
			out_printf(&o, "%s%u", i ? "," : "", ids.v[i]);
		out_char(&o, ']');
		l->name_bytes += o.n + ids.n * sizeof(*ids.v);
		vec_push(&l->stacks, live_take_text(&o));
		out_fini(&o);
	}
	ret = (uint32_t)*id;
	vec_fini(&ids);
	return ret;
}

static void put_key(struct sink *s, struct out *o, const struct field *f, const uint8_t *key)
{
	struct out text = { 0 };
	size_t from = 0;

	key_print(s, &text, f, key);
	while (from < text.n && text.v[from] == ' ')
		from++;
	while (text.n > from && (text.v[text.n - 1] == ' ' || text.v[text.n - 1] == '\n'))
		text.n--;
	live_put_text(o, text.v ? text.v + from : "", text.n - from);
	out_fini(&text);
}

/* {"k":["key",...],"s":stack} */
static char *row_text(struct live *l, struct sink *s, const struct agg *agg, const uint8_t *key)
{
	struct frames f = { .live = l };
	struct out o = { 0 };
	bool stacks = false, first = true;
	char *text;

	out_str(&o, "{\"k\":[");
	for (uint32_t i = 0; key && i < agg->nkeys; i++) {
		const struct field *k = &agg->keys[i];

		if (k->kind == FIELD_KSTACK || k->kind == FIELD_USTACK ||
		    k->kind == FIELD_KSTACKID || k->kind == FIELD_USTACKID) {
			stack_each(s, k, key, take_frame, &f);
			stacks = true;
			continue;
		}
		if (!first)
			out_char(&o, ',');
		first = false;
		put_key(s, &o, k, key);
	}
	out_char(&o, ']');
	if (stacks) {
		uint32_t id = stack_id(l, &f);

		if (id != NO_STACK)
			out_printf(&o, ",\"s\":%u", id);
	}
	out_char(&o, '}');
	text = live_take_text(&o);
	out_fini(&o);
	vec_fini(&f.user);
	vec_fini(&f.kernel);
	return text;
}

static struct live_agg *agg_of(struct live *l, const struct agg *agg)
{
	struct live_agg *a;

	while (l->aggs.n <= agg->id)
		(void)vec_add(&l->aggs);
	a = &l->aggs.v[agg->id];
	if (!a->head) {
		struct out o = { 0 };
		bool stacks = false;

		for (uint32_t i = 0; i < agg->nkeys; i++)
			stacks |= agg->keys[i].kind == FIELD_KSTACK ||
				  agg->keys[i].kind == FIELD_USTACK ||
				  agg->keys[i].kind == FIELD_KSTACKID ||
				  agg->keys[i].kind == FIELD_USTACKID;
		out_printf(&o, "\"id\":%u,\"name\":", agg->id);
		json_string(&o, agg->name, strlen(agg->name));
		out_printf(&o, ",\"func\":\"%s\",\"unit\":\"%s\",\"stacks\":%s",
			   agg_func_name(agg->func), agg->unit ? agg->unit : "",
			   stacks ? "true" : "false");
		a->head = live_take_text(&o);
		out_fini(&o);
	}
	return a;
}

static void put_bound(struct out *o, int64_t v, int64_t open)
{
	if (v == open)
		out_str(o, "null");
	else
		out_signed(o, v, 0);
}

static void put_bucket(struct live_agg *a, const struct agg *agg, uint32_t bucket)
{
	struct out o = { 0 };
	int64_t min, max;

	hist_bounds(agg, bucket, &min, &max);
	out_printf(&o, "[%u,", bucket);
	put_bound(&o, min, INT64_MIN);
	out_char(&o, ',');
	put_bound(&o, max, INT64_MAX);
	out_char(&o, ']');
	vec_push(&a->buckets, live_take_text(&o));
	out_fini(&o);
}

/* Shows the buckets between two that have counts, too. */
static void see_bucket(struct live_agg *a, const struct agg *agg, uint32_t bucket)
{
	if (!a->buckets.n) {
		a->first_bucket = a->last_bucket = bucket;
		put_bucket(a, agg, bucket);
	}
	while (bucket < a->first_bucket)
		put_bucket(a, agg, --a->first_bucket);
	while (bucket > a->last_bucket)
		put_bucket(a, agg, ++a->last_bucket);
}

struct row_changes {
	struct live_agg *a;
	const struct agg *agg;
	uint32_t row;
	struct out *out;
};

/* ",row,change", or ",row,bucket,change" of a distribution. */
static void put_change(void *arg, uint32_t bucket, int64_t change)
{
	struct row_changes *c = arg;

	out_printf(c->out, ",%u", c->row);
	if (agg_is_distribution(c->agg)) {
		see_bucket(c->a, c->agg, bucket);
		out_printf(c->out, ",%u", bucket);
	}
	out_printf(c->out, ",%lld", (long long)change);
}

void live_take_rows(struct live *l, struct sink *s, const struct agg_view *v)
{
	struct live_agg *a = agg_of(l, v->agg);
	uint32_t rows_from = a->texts.n, buckets_from = a->buckets.n;
	struct out changes = { 0 };

	for (uint32_t i = 0; i < v->nrows; i++) {
		const struct agg_row *r = &v->rows[i];
		struct row_changes to = { .a = a, .agg = v->agg, .out = &changes };
		bool fresh;

		to.row = timeline_row(&a->rows, v->agg, r->key, names_are_full(l) ? 0 : ROWS_MAX,
				      &fresh);
		if (to.row == TIMELINE_NONE) {
			a->dropped++;
			continue;
		}
		if (fresh) {
			vec_push(&a->texts, row_text(l, s, v->agg, r->key));
			l->name_bytes += strlen(*vec_last(&a->texts)) + v->agg->key_size +
					 v->agg->nwords * sizeof(int64_t);
		}
		timeline_changes(&a->rows, to.row, v, r, put_change, &to);
	}
	if (changes.n || rows_from < a->texts.n) {
		out_printf(&l->views, "%s{%s", l->views.n ? "," : "", a->head);
		live_put_new(&l->views, "rows", a->texts.v, rows_from, a->texts.n);
		live_put_new(&l->views, "buckets", a->buckets.v, buckets_from, a->buckets.n);
		if (v->normal != 1)
			out_printf(&l->views, ",\"normal\":%lld", (long long)v->normal);
		if (a->dropped)
			out_printf(&l->views, ",\"dropped\":%llu", (unsigned long long)a->dropped);
		out_str(&l->views, ",\"d\":[");
		if (changes.n)
			out_mem(&l->views, changes.v + 1, changes.n - 1);
		out_str(&l->views, "]}");
	}
	out_fini(&changes);
}
