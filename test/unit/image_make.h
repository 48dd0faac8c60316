/* Images, records and an engine made by hand, for tests of the code behind the engine. */
#ifndef DESCRY_TEST_IMAGE_MAKE_H
#define DESCRY_TEST_IMAGE_MAKE_H

#include "consume/consume.h"
#include "data/record.h"

enum { MAKE_MAX = 32, MAKE_CPUS = 2 };

struct make {
	struct image img;
	struct arena a;
	struct type_graph *types;
	struct options options;
	struct image_probe probes[MAKE_MAX];
	struct segment segments[MAKE_MAX];
	struct agg aggs[MAKE_MAX];
	const char *strings[MAKE_MAX];
	struct sink *sink;
	FILE *messages;
	char *out, *err;
	size_t out_n, err_n, out_seen, err_seen;
};

static inline void make_take_message(void *arg, const char *text, size_t n)
{
	fwrite(text, 1, n, ((struct make *)arg)->messages);
}

static inline void make_init(struct make *m, struct sink *sink)
{
	memset(m, 0, sizeof(*m));
	arena_init(&m->a);
	m->types = type_graph_new();
	options_init(&m->options);
	m->img.probes = m->probes;
	m->img.segments = m->segments;
	m->img.aggs = m->aggs;
	m->img.strings = m->strings;
	m->img.types = m->types;
	m->img.options = &m->options;
	m->sink = sink;
	sink->out = open_memstream(&m->out, &m->out_n);
	m->messages = open_memstream(&m->err, &m->err_n);
	sink->message = make_take_message;
	sink->message_arg = m;
	sink->progname = "dtrace";
	sink->dtrace = true;
	sink->options = &m->options;
	sink->types = m->types;
	sink->image = &m->img;
}

static inline void make_fini(struct make *m)
{
	m->sink->ops->flush(m->sink);
	fclose(m->sink->out);
	fclose(m->messages);
	m->sink->ops->free(m->sink);
	free(m->out);
	free(m->err);
	options_fini(&m->options);
	type_graph_free(m->types);
	arena_fini(&m->a);
}

/* Returns the output since the last call. Valid until the next call. */
static inline const char *make_since(FILE *f, char **text, size_t *n, size_t *seen)
{
	static char *last;

	fflush(f);
	free(last);
	last = xstrndup(*text ? *text + *seen : "", *text ? *n - *seen : 0);
	*seen = *n;
	return last;
}

static inline const char *make_text(struct make *m)
{
	assert_null(m->sink->ops->flush(m->sink));
	return make_since(m->sink->out, &m->out, &m->out_n, &m->out_seen);
}

static inline const char *make_errors(struct make *m)
{
	return make_since(m->messages, &m->err, &m->err_n, &m->err_seen);
}

static inline uint32_t make_probe(struct make *m, uint32_t id, const char *prov, const char *mod,
				  const char *func, const char *name)
{
	m->probes[m->img.nprobes] = (struct image_probe){
		.id = id, .prov = prov, .mod = mod, .func = func, .name = name
	};
	return m->img.nprobes++;
}

static inline struct segment *make_segment(struct make *m, uint32_t clause)
{
	struct segment *s = &m->segments[m->img.nsegments++];

	s->clause = clause;
	s->size = sizeof(struct wire_record);
	s->prints = true;
	s->fields = arena_array(&m->a, struct field, MAKE_MAX);
	s->actions = arena_array(&m->a, struct action, MAKE_MAX);
	return s;
}

static inline uint32_t make_field(struct segment *s, enum field_kind kind, uint32_t size,
				  type_id type)
{
	s->size = (s->size + 7) & ~7u;
	s->fields[s->nfields] =
		(struct field){ .kind = kind, .offset = s->size, .size = size, .type = type };
	s->size += size;
	return s->nfields++;
}

static inline struct action *make_action(struct make *m, struct segment *s, enum action_kind kind)
{
	struct action *a = &s->actions[s->nactions++];

	a->kind = kind;
	a->fields = arena_array(&m->a, uint32_t, MAKE_MAX);
	a->aggs = arena_array(&m->a, uint32_t, MAKE_MAX);
	return a;
}

static inline struct action *make_action_of(struct make *m, struct segment *s,
					    enum action_kind kind, uint32_t field)
{
	struct action *a = make_action(m, s, kind);

	a->fields[a->nfields++] = field;
	return a;
}

static inline const struct format *make_format(struct make *m, const char *text)
{
	struct format *f;
	const char *error;
	uint32_t pos;

	assert_true(format_parse(&m->a, text, &f, &error, &pos));
	return f;
}

static inline struct wire_record *make_record(struct make *m, struct segment *s, uint64_t time,
					      uint32_t cpu, uint32_t probe)
{
	struct wire_record *r = arena_alloc(&m->a, (s->size + 15) & ~15u);

	r->time = time;
	r->cpu = cpu;
	r->probe = probe;
	r->segment = (uint32_t)(s - m->segments);
	return r;
}

static inline void put_int(const struct segment *s, struct wire_record *r, uint32_t field,
			   int64_t v)
{
	memcpy((uint8_t *)r + s->fields[field].offset, &v, s->fields[field].size);
}

static inline void put_str(const struct segment *s, struct wire_record *r, uint32_t field,
			   const char *v)
{
	strncpy((char *)r + s->fields[field].offset, v, s->fields[field].size);
}

static inline struct agg *make_agg(struct make *m, const char *name, enum agg_func func)
{
	static const uint32_t words[] = { 1, 2, 2, 2, 2, 4, 128 };
	struct agg *a = &m->aggs[m->img.naggs];

	a->name = name;
	a->id = m->img.naggs++;
	a->func = func;
	a->type = T_INT64;
	a->keys = arena_array(&m->a, struct field, MAKE_MAX);
	if (func <= AGG_QUANTIZE)
		a->nwords = words[func];
	return a;
}

static inline void make_key(struct agg *a, enum field_kind kind, uint32_t size, type_id type)
{
	a->keys[a->nkeys++] =
		(struct field){ .kind = kind, .offset = a->key_size, .size = size, .type = type };
	a->key_size += (size + 7) & ~7u;
}

/* --- an engine: rings are lists, aggregations tables --- */

struct fake_key {
	uint8_t key[64];
	int64_t *values;
	bool there;
};

struct fake {
	struct engine e;
	struct wire_state state;
	struct {
		const struct wire_record *r;
		uint32_t size;
		bool control;
	} ring[1024];
	uint32_t n;
	struct fake_key keys[MAKE_MAX][64];
	uint32_t nkeys[MAKE_MAX];
	uint64_t fixed[MAKE_CPUS * WIRE_FIXED_COUNTERS], fired[MAKE_MAX], dropped[MAKE_MAX];
	/* Called after each agg_read, as if a probe fired meanwhile. */
	void (*meanwhile)(struct fake *f);
};

static inline int64_t *fake_values(struct fake *f, uint32_t agg, const void *key)
{
	const struct agg *a = &f->e.image->aggs[agg];

	for (uint32_t i = 0; i < f->nkeys[agg]; i++) {
		struct fake_key *k = &f->keys[agg][i];

		if (memcmp(k->key, key ? key : "", a->key_size))
			continue;
		if (!k->there)
			memset(k->values, 0, a->nwords * 8 * MAKE_CPUS);
		k->there = true;
		return k->values;
	}
	struct fake_key *k = &f->keys[agg][f->nkeys[agg]++];

	if (key)
		memcpy(k->key, key, a->key_size);
	k->values = xcalloc(a->nwords * MAKE_CPUS, 8);
	k->there = true;
	return k->values;
}

/* count() or sum() on a CPU. */
static inline void fake_add(struct fake *f, uint32_t agg, const void *key, uint32_t cpu, int64_t v)
{
	const struct agg *a = &f->e.image->aggs[agg];
	int64_t *w = fake_values(f, agg, key) + cpu * a->nwords;

	if (a->func == AGG_MIN)
		w[1] = !w[0] || v < w[1] ? v : w[1];
	else if (a->func == AGG_MAX)
		w[1] = !w[0] || v > w[1] ? v : w[1];
	else if (a->func == AGG_QUANTIZE)
		w[1 + agg_quantize_bucket(v)]++;
	else if (a->func != AGG_COUNT)
		w[1] += v;
	if (a->func == AGG_STDDEV)
		w[2] += v * v;
	w[0]++;
}

static inline void fake_queue(struct fake *f, const struct wire_record *r, bool control)
{
	f->ring[f->n].r = r;
	f->ring[f->n].size = r->segment == WIRE_SEG_FAULT  ? sizeof(struct wire_fault)
			     : r->segment == WIRE_SEG_LATE ? sizeof(struct wire_late)
							   : f->e.image->segments[r->segment].size;
	f->ring[f->n++].control = control;
}

static inline void fake_drain(struct engine *e,
			      void (*fn)(void *arg, const struct wire_record *r, uint32_t size,
					 bool control),
			      void *arg)
{
	struct fake *f = (struct fake *)e;

	for (uint32_t i = 0; i < f->n; i++)
		fn(arg, f->ring[i].r, f->ring[i].size, f->ring[i].control);
	f->n = 0;
}

static inline struct err *fake_agg_read(struct engine *e, uint32_t agg,
					void (*fn)(void *arg, const void *key,
						   const uint64_t *values, uint32_t ncpus),
					void *arg)
{
	struct fake *f = (struct fake *)e;

	for (uint32_t i = 0; i < f->nkeys[agg]; i++)
		if (f->keys[agg][i].there)
			fn(arg, e->image->aggs[agg].key_size ? f->keys[agg][i].key : NULL,
			   (const uint64_t *)f->keys[agg][i].values, MAKE_CPUS);
	if (f->meanwhile)
		f->meanwhile(f);
	return NULL;
}

static inline struct err *fake_agg_delete(struct engine *e, uint32_t agg, const void *key,
					  uint64_t *ret_values)
{
	struct fake *f = (struct fake *)e;
	const struct agg *a = &e->image->aggs[agg];
	int64_t *v = fake_values(f, agg, key);

	if (ret_values)
		memcpy(ret_values, v, a->nwords * 8 * MAKE_CPUS);
	for (uint32_t i = 0; i < f->nkeys[agg]; i++)
		if (f->keys[agg][i].values == v)
			f->keys[agg][i].there = false;
	return NULL;
}

static inline uint32_t fake_stack(struct engine *e, int64_t id, uint64_t *frames, uint32_t max)
{
	for (uint32_t i = 0; i < 2 && i < max; i++)
		frames[i] = 0x1000 * (uint64_t)id + i;
	return 2;
}

static inline void fake_counters(struct engine *e, struct engine_counters *ret)
{
	struct fake *f = (struct fake *)e;

	*ret = (struct engine_counters){ MAKE_CPUS, f->fixed, f->fired, f->dropped };
}

static inline uint32_t fake_report(struct engine *e, struct engine_prog_report *ret, uint32_t max)
{
	ret[0] = (struct engine_prog_report){ "prog", "interpreted", 10, 1000, 42 };
	return 1;
}

static inline void fake_init(struct fake *f, struct make *m)
{
	static const struct engine_ops ops = {
		.name = "fake",
		.drain = fake_drain,
		.agg_read = fake_agg_read,
		.agg_delete = fake_agg_delete,
		.stack = fake_stack,
		.counters = fake_counters,
		.report = fake_report,
	};

	memset(f, 0, sizeof(*f));
	f->e.ops = &ops;
	f->e.image = &m->img;
	f->e.state = &f->state;
	f->e.ncpus = MAKE_CPUS;
}

static inline void fake_fini(struct fake *f)
{
	for (uint32_t a = 0; a < MAKE_MAX; a++)
		for (uint32_t i = 0; i < f->nkeys[a]; i++)
			free(f->keys[a][i].values);
}

#endif
