/* Aggregations: snapshots of the maps, the effects of clear() and trunc(), rows in order.
 *
 * The maps are never reset to clear an aggregation. aggs.c keeps the cleared values of each key and
 * CPU (`base`) and subtracts them. When trunc() removes a key, the values that were added between
 * the snapshot and the removal stay as a negative base.
 *
 *	value shown = map - base
 */
#include "consume/aggs.h"

static bool is_extreme(const struct agg *a)
{
	return a->func == AGG_MIN || a->func == AGG_MAX;
}

struct aggs *aggs_new(struct engine *e, const struct image *img, struct options *o,
		      const struct sink *s)
{
	struct aggs *a = xcalloc(1, sizeof(*a));

	a->engine = e;
	a->image = img;
	a->options = o;
	a->symbols = s->symbols;
	a->dtrace = s->dtrace;
	a->states = xcalloc(img->naggs + 1, sizeof(*a->states));
	for (uint32_t i = 0; i < img->naggs; i++) {
		struct state *st = &a->states[i];

		st->agg = &img->aggs[i];
		st->normal = 1;
		st->traits = xcalloc(st->agg->nkeys + 1, 1);
		arena_init(&st->arena);
		for (uint32_t k = 0; k < st->agg->nkeys; k++) {
			enum field_kind kind = st->agg->keys[k].kind;

			st->traits[k] = (uint8_t)field_traits(s->types, &st->agg->keys[k]);
			st->has_user_keys |= kind == FIELD_USYM || kind == FIELD_UMOD ||
					     kind == FIELD_UADDR;
			st->has_user_stacks |= kind == FIELD_USTACKID;
		}
	}
	return a;
}

static void entry_fini(struct entry *en)
{
	free(en->key);
	free(en->canonical);
	free(en->now);
	free(en->base);
}

void aggs_free(struct aggs *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < a->image->naggs; i++) {
		struct state *st = &a->states[i];

		for (uint32_t k = 0; k < st->entries.n; k++)
			entry_fini(&st->entries.v[k]);
		vec_fini(&st->entries);
		hash_fini(&st->index);
		arena_fini(&st->arena);
		free(st->traits);
	}
	free(a->states);
	free(a->canonical_id);
	hash_fini(&a->name_index);
	vec_fini(&a->named);
	free(a);
}

/* --- keys --- */

static uint32_t canonical_id(struct aggs *a, uint32_t id)
{
	uint32_t n = a->image->nprobes * 4 + a->image->nstrings;

	if (!a->canonical_id) {
		struct hash first = { 0 };

		a->canonical_id = xcalloc(n + 1, sizeof(*a->canonical_id));
		for (uint32_t i = 0; i < n; i++) {
			const char *text = image_strid(a->image, i);
			uint64_t *v = hash_put(&first, text, strlen(text), NULL);

			if (!*v)
				*v = i + 1;
			a->canonical_id[i] = (uint32_t)*v - 1;
		}
		hash_fini(&first);
	}
	return id < n ? a->canonical_id[id] : id;
}

/* Gives functions and modules of the same name in several processes one address: their address in
 * the process that was seen first. */
static uint64_t first_of_name(struct aggs *a, const char *module, const char *function,
			      uint32_t *pid, uint64_t addr)
{
	cleanup_free char *name =
		xasprintf("%s`%s", module ? module : "", function ? function : "");
	uint64_t *at = hash_put(&a->name_index, name, strlen(name), NULL);

	if (!*at) {
		vec_push(&a->named, (struct named_address){ *pid, addr });
		*at = a->named.n;
	}
	*pid = a->named.v[*at - 1].pid;
	return a->named.v[*at - 1].addr;
}

/* Returns the start of the function or module that the address prints as, from the present mappings
 * or the last known ones. */
static uint64_t canonical_address(struct aggs *a, enum field_kind kind, uint32_t *pid,
				  uint64_t addr)
{
	bool user = kind == FIELD_USYM || kind == FIELD_UMOD;
	struct place p;

	if (!a->symbols || (user && !*pid))
		return addr;
	if (!(user                ? symbols_user(a->symbols, (pid_t)*pid, 0, addr, &p)
	      : kind == FIELD_MOD ? symbols_kernel_module(a->symbols, addr, &p)
				  : symbols_kernel(a->symbols, addr, &p)))
		return addr;
	if (kind == FIELD_UMOD && p.module)
		return first_of_name(a, p.module, NULL, pid, p.module_base);
	if (kind == FIELD_USYM && p.function)
		return first_of_name(a, p.module, p.function, pid, addr - p.offset);
	if (kind == FIELD_USYM && p.module) { /* "sh+0x1c0" */
		cleanup_free char *place = xasprintf("+%llx", (unsigned long long)p.offset);

		return first_of_name(a, p.module, place, pid, addr);
	}
	if (kind == FIELD_MOD || kind == FIELD_UMOD)
		return p.module ? p.module_base : addr;
	return p.function ? addr - p.offset : addr;
}

static uint8_t *canonical_key(struct aggs *a, const struct agg *agg, const uint8_t *raw)
{
	uint8_t *key = xmemdup(raw, agg->key_size);

	for (uint32_t i = 0; i < agg->nkeys; i++) {
		const struct field *f = &agg->keys[i];
		uint32_t id, pid;
		uint64_t addr;
		size_t n;

		switch (f->kind) {
		case FIELD_STRID:
			id = canonical_id(a, read_u32(key + f->offset));
			memcpy(key + f->offset, &id, sizeof(id));
			break;
		case FIELD_STRING: /* bytes behind the NUL are not part of the string */
			n = strnlen((char *)key + f->offset, f->size);
			memset(key + f->offset + n, 0, f->size - n);
			break;
		case FIELD_SYM:
		case FIELD_MOD:
		case FIELD_USYM:
		case FIELD_UMOD:
			field_address(f, key, &addr, &pid);
			addr = canonical_address(a, f->kind, &pid, addr);
			if (f->kind == FIELD_USYM || f->kind == FIELD_UMOD) {
				memcpy(key + f->offset, &pid, sizeof(pid));
				memcpy(key + f->offset + 8, &addr, sizeof(addr));
			} else {
				memcpy(key + f->offset, &addr, sizeof(addr));
			}
			break;
		case FIELD_USTACKID:
			/* the addresses can then be named after the process has ended */
			if (a->symbols && read_u32(key + f->offset))
				symbols_remember(a->symbols, (pid_t)read_u32(key + f->offset));
			break;
		default: break;
		}
	}
	return key;
}

/* --- snapshots --- */

struct reading {
	struct aggs *aggs;
	struct state *st;
};

static void read_key(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	struct reading *rd = arg;
	struct state *st = rd->st;
	const struct agg *agg = st->agg;
	size_t bytes = (size_t)ncpus * agg->nwords * sizeof(int64_t);
	struct entry *en;
	uint64_t *at = hash_put(&st->index, key ? key : "", key ? agg->key_size : 0, NULL);

	st->ncpus = ncpus; /* the same on every call */
	if (!*at) {
		en = vec_add(&st->entries);
		*at = st->entries.n;
		if (key) {
			en->key = xmemdup(key, agg->key_size);
			en->canonical = canonical_key(rd->aggs, agg, key);
		}
	}
	en = &st->entries.v[*at - 1];
	if (!en->now)
		en->now = xmalloc(bytes);
	memcpy(en->now, values, bytes);
}

/* Sums wrap, because a traced process can forge any counts. */
static int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* Computes one CPU's value of an entry, less base. Returns false when nothing was counted there. */
static bool entry_cpu(const struct state *st, const struct entry *en, uint32_t cpu, int64_t *ret)
{
	const struct agg *agg = st->agg;
	size_t at = (size_t)cpu * agg->nwords;
	const int64_t *now = en->now ? en->now + at : NULL, *base = en->base ? en->base + at : NULL;
	bool any = false;

	if (!is_extreme(agg)) {
		for (uint32_t w = 0; w < agg->nwords; w++)
			ret[w] = (now ? now[w] : 0);
		if (agg->func == AGG_STDDEV && base) { /* words 2 and 3 are one 128-bit number */
			unsigned __int128 sq = (unsigned __int128)(uint64_t)ret[3] << 64 |
					       (uint64_t)ret[2];

			sq -= (unsigned __int128)(uint64_t)base[3] << 64 | (uint64_t)base[2];
			ret[0] = minus(ret[0], base[0]);
			ret[1] = minus(ret[1], base[1]);
			ret[2] = (int64_t)(uint64_t)sq;
			ret[3] = (int64_t)(uint64_t)(sq >> 64);
		} else if (base) {
			for (uint32_t w = 0; w < agg->nwords; w++)
				ret[w] = minus(ret[w], base[w]);
		}
		return ret[0] != 0;
	}
	/* min, max: base[0] > 0 is the number of old updates, which do not count. base[0] < 0 is
	 * minus the number of updates that are kept; base[1] is their value. */
	ret[0] = ret[1] = 0;
	if (now && now[0] > (base && base[0] > 0 ? base[0] : 0)) {
		ret[0] = now[0] - (base && base[0] > 0 ? base[0] : 0);
		ret[1] = now[1];
		any = true;
	}
	if (base && base[0] < 0) {
		if (!any || (agg->func == AGG_MIN ? base[1] < ret[1] : base[1] > ret[1]))
			ret[1] = base[1];
		ret[0] = minus(ret[0], base[0]);
		any = true;
	}
	return any;
}

static void merge(const struct agg *agg, int64_t *to, const int64_t *from)
{
	if (is_extreme(agg)) {
		if (from[0] &&
		    (!to[0] || (agg->func == AGG_MIN ? from[1] < to[1] : from[1] > to[1])))
			to[1] = from[1];
		to[0] = plus(to[0], from[0]);
		return;
	}
	if (agg->func == AGG_STDDEV) {
		unsigned __int128 sq = (unsigned __int128)(uint64_t)to[3] << 64 | (uint64_t)to[2];

		sq += (unsigned __int128)(uint64_t)from[3] << 64 | (uint64_t)from[2];
		to[0] = plus(to[0], from[0]);
		to[1] = plus(to[1], from[1]);
		to[2] = (int64_t)(uint64_t)sq;
		to[3] = (int64_t)(uint64_t)(sq >> 64);
		return;
	}
	for (uint32_t w = 0; w < agg->nwords; w++)
		to[w] = plus(to[w], from[w]);
}

/* Returns true when the entry makes a row. A cleared entry does, with zeroes. An entry that trunc()
 * removed, an array element in which nothing was ever counted, and a cleared min or max do so only
 * after a new count. */
static bool entry_shows(const struct state *st, const struct entry *en, int64_t *scratch)
{
	bool counted = false;

	for (uint32_t cpu = 0; cpu < st->ncpus && !counted; cpu++)
		counted = entry_cpu(st, en, cpu, scratch);
	if (counted)
		return true;
	if (en->gone || is_extreme(st->agg))
		return false;
	for (uint32_t cpu = 0; en->now && cpu < st->ncpus; cpu++)
		if (en->now[(size_t)cpu * st->agg->nwords])
			return true;
	return false;
}

static void build_rows(struct aggs *a, struct state *st)
{
	const struct agg *agg = st->agg;
	bool percpu = opt_on(a->options, OPT_AGGPERCPU);
	struct hash by_key = { 0 };
	int64_t *one;

	arena_fini(&st->arena);
	arena_init(&st->arena);
	one = arena_array(&st->arena, int64_t, agg->nwords);
	st->rows = arena_array(&st->arena, struct row, st->entries.n + 1);
	st->nrows = 0;
	for (uint32_t i = 0; i < st->entries.n; i++) {
		struct entry *en = &st->entries.v[i];
		uint64_t *at;
		struct row *row;

		if (!entry_shows(st, en, one))
			continue;
		en->gone = false;
		at = hash_put(&by_key, en->canonical ? en->canonical : (const uint8_t *)"",
			      agg->key_size, NULL);
		if (!*at) {
			row = &st->rows[st->nrows];
			*at = ++st->nrows;
			row->key = en->canonical;
			row->words = arena_array(&st->arena, int64_t, agg->nwords);
			if (percpu)
				row->percpu = arena_array(&st->arena, int64_t,
							  (size_t)st->ncpus * agg->nwords);
		}
		row = &st->rows[*at - 1];
		for (uint32_t cpu = 0; cpu < st->ncpus; cpu++) {
			if (!entry_cpu(st, en, cpu, one))
				continue;
			merge(agg, row->words, one);
			if (percpu)
				merge(agg, row->percpu + (size_t)cpu * agg->nwords, one);
		}
	}
	hash_fini(&by_key);
}

static bool same_firing(const struct firing *a, const struct firing *b)
{
	return a->time == b->time && a->cpu == b->cpu && a->probe == b->probe;
}

/* Frees the keys that trunc() removed and that have no new counts, when there are many. */
static void drop_dead(struct state *st)
{
	uint32_t dead = 0, n = 0;

	for (uint32_t i = 0; i < st->entries.n; i++)
		dead += !st->entries.v[i].now && !st->entries.v[i].base;
	if (dead < 64 || dead < st->entries.n / 4)
		return;
	hash_fini(&st->index);
	for (uint32_t i = 0; i < st->entries.n; i++) {
		struct entry *en = &st->entries.v[i];

		if (!en->now && !en->base) {
			entry_fini(en);
			continue;
		}
		*hash_put(&st->index, en->key ? en->key : (const uint8_t *)"", st->agg->key_size,
			  NULL) = n + 1;
		st->entries.v[n++] = *en;
	}
	st->entries.n = n;
}

struct err *aggs_snapshot(struct aggs *a, struct state *st, const struct firing *f)
{
	struct reading rd = { a, st };
	struct err *e;

	if (f && st->valid && same_firing(&st->at, f))
		return NULL;
	for (uint32_t i = 0; i < st->entries.n; i++) {
		free(st->entries.v[i].now);
		st->entries.v[i].now = NULL;
	}
	st->valid = false;
	e = a->engine->ops->agg_read(a->engine, (uint32_t)(st - a->states), read_key, &rd);
	if (e)
		return e;
	drop_dead(st);
	st->valid = f != NULL;
	if (f)
		st->at = *f;
	build_rows(a, st);
	return NULL;
}

/* --- clear, trunc, normalize --- */

static size_t entry_words(const struct state *st)
{
	return (size_t)st->ncpus * st->agg->nwords;
}

/* Makes all values of the snapshot part of the base. */
static void aggs_forget(struct state *st, struct entry *en)
{
	size_t bytes = entry_words(st) * sizeof(int64_t);

	if (en->now && !en->base)
		en->base = xmalloc(bytes);
	if (en->now) {
		memcpy(en->base, en->now, bytes);
	} else {
		free(en->base);
		en->base = NULL;
	}
}

/* Turns last into the base that leaves only the counts made after `now`: now - last, at most 0. */
static void keep_additive(const struct agg *agg, int64_t *last, const int64_t *now)
{
	bool grown = last[0] > now[0];
	unsigned __int128 sq;

	if (agg->func == AGG_STDDEV && grown) {
		sq = (unsigned __int128)(uint64_t)now[3] << 64 | (uint64_t)now[2];
		sq -= (unsigned __int128)(uint64_t)last[3] << 64 | (uint64_t)last[2];
		last[2] = (int64_t)(uint64_t)sq;
		last[3] = (int64_t)(uint64_t)(sq >> 64);
	}
	for (uint32_t w = 0; w < (agg->func == AGG_STDDEV && grown ? 2 : agg->nwords); w++)
		last[w] = grown ? minus(now[w], last[w]) : 0;
}

/* Removes the entry's key from the map. Keeps the counts made since the snapshot as a negative
 * base. */
static struct err *remove_key(struct aggs *a, struct state *st, struct entry *en)
{
	const struct agg *agg = st->agg;
	cleanup_free int64_t *last = xcalloc(entry_words(st) + 1, sizeof(int64_t));
	struct err *e;
	bool kept = false;

	e = a->engine->ops->agg_delete(a->engine, (uint32_t)(st - a->states), en->key,
				       (uint64_t *)last);
	if (e)
		return e;
	for (uint32_t cpu = 0; cpu < st->ncpus && en->now; cpu++) {
		int64_t *l = last + (size_t)cpu * agg->nwords,
			*now = en->now + (size_t)cpu * agg->nwords;

		if (!is_extreme(agg)) {
			keep_additive(agg, l, now);
			kept |= l[0] != 0;
			continue;
		}
		if (l[0] > now[0] &&
		    (!now[0] || (agg->func == AGG_MIN ? l[1] < now[1] : l[1] > now[1]))) {
			l[0] = minus(now[0], l[0]);
			kept = true;
		} else {
			l[0] = l[1] = 0;
		}
	}
	free(en->base);
	en->base = NULL;
	if (kept) {
		en->base = last;
		last = NULL;
	}
	free(en->now);
	en->now = NULL;
	return NULL;
}

struct err *aggs_clear(struct aggs *a, const struct firing *f, uint32_t agg)
{
	struct state *st = &a->states[agg];
	struct err *e = aggs_snapshot(a, st, f);

	for (uint32_t i = 0; i < st->entries.n && !e; i++) {
		/* A minimum cannot be subtracted, so the key starts again. */
		if (is_extreme(st->agg) && st->entries.v[i].now)
			e = remove_key(a, st, &st->entries.v[i]);
		else if (!is_extreme(st->agg))
			aggs_forget(st, &st->entries.v[i]);
	}
	if (!e)
		build_rows(a, st);
	return e;
}

struct err *aggs_trunc(struct aggs *a, const struct firing *f, uint32_t agg, int64_t remaining)
{
	struct state *st = &a->states[agg];
	struct err *e = aggs_snapshot(a, st, f);
	struct agg_order order = aggs_order(a, st);
	struct hash keep = { 0 };
	uint64_t n = remaining < 0 ? -(uint64_t)remaining : (uint64_t)remaining;

	if (e)
		return e;
	order.by_key = false;
	order.reverse = remaining > 0;
	aggs_sort_rows(st, &order);
	for (uint32_t i = 0; i < st->nrows && i < n; i++)
		hash_put(&keep, st->rows[i].key ? st->rows[i].key : (const uint8_t *)"",
			 st->agg->key_size, NULL);
	for (uint32_t i = 0; i < st->entries.n && !e; i++) {
		struct entry *en = &st->entries.v[i];

		if (hash_get(&keep, en->canonical ? en->canonical : (const uint8_t *)"",
			     st->agg->key_size))
			continue;
		/* An array (an aggregation without keys or with slots) cannot lose an element
		 * without losing counts. */
		if (st->agg->key_size && !st->agg->nslots && en->now)
			e = remove_key(a, st, en);
		else
			aggs_forget(st, en);
		en->gone = true;
	}
	hash_fini(&keep);
	if (!e)
		build_rows(a, st);
	return e;
}

void aggs_normalize(struct aggs *a, uint32_t agg, int64_t factor)
{
	a->states[agg].normal = factor ? factor : 1;
}

static void remember_process(void *arg, int pid)
{
	symbols_remember(arg, pid);
}

bool aggs_meet(struct aggs *a)
{
	struct engine *e = a->engine;

	if (!e->ops->met || !symbols_watching(a->symbols))
		return false;
	e->ops->met(e, remember_process, a->symbols);
	return true;
}

/* Reads all keys, which is expensive: ten thousand stacks each second take one percent of a CPU. */
struct err *aggs_remember(struct aggs *a, bool met)
{
	struct err *e = NULL;

	for (uint32_t i = 0; i < a->image->naggs && !e; i++)
		if (a->states[i].has_user_keys || (a->states[i].has_user_stacks && !met))
			e = aggs_snapshot(a, &a->states[i], NULL);
	return e;
}
