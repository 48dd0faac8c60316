/* Limits the kept data: descriptors and symbols of object files, perf maps. The entry whose last
 * use is oldest is dropped first.
 *
 * A descriptor is closed when the file can be opened again by its path, or when its symbols have
 * been read. Symbols of a deleted file are read before, unless they would take more than all files
 * may: any user can make such a file, sparse and of 500 MB. A dropped object is opened again by the
 * next query, if the file still exists. Files that nobody uses are closed after some seconds. */
#include "program/symbol/symbol_private.h"

enum {
	IDLE_CLOSED = 8, /* files a second, because symbols may have to be read before */
};
#define IDLE_EACH_NS 1000000000ull
#define IDLE_MARK_NS 5000000000ull

void symbols_limit(struct symbols *s, const struct symbols_limits *l)
{
	static const struct symbols_limits usual = {
		.open_files = 128,
		.sources = 32,
		.source_work = 32 << 20,
		.object_bytes = 32 << 20,
		.jit_bytes = 32 << 20,
		.names = 4 << 20,
		.jit_names = 64 << 20,
		.processes = 4096,
		.mappings = 48 << 10,
		.live_mappings = 512 << 10,
	};

	s->limits = (struct symbols_limits){
		.open_files = l->open_files ? l->open_files : usual.open_files,
		.sources = l->sources ? l->sources : usual.sources,
		.source_work = l->source_work ? l->source_work : usual.source_work,
		.object_bytes = l->object_bytes ? l->object_bytes : usual.object_bytes,
		.jit_bytes = l->jit_bytes ? l->jit_bytes : usual.jit_bytes,
		.names = l->names ? l->names : usual.names,
		.jit_names = l->jit_names ? l->jit_names : usual.jit_names,
		.processes = l->processes ? l->processes : usual.processes,
		.mappings = l->mappings ? l->mappings : usual.mappings,
		.live_mappings = l->live_mappings ? l->live_mappings : usual.live_mappings,
	};
	s->tidy_at = s->limits.processes;
}

void symbols_losses(const struct symbols *s, struct symbols_losses *ret)
{
	*ret = s->losses;
}

/* Updates the sums to the present state of k. */
static void budget_count(struct symbols *s, struct known_object *k)
{
	bool open = object_is_open(k->o);
	size_t bytes = object_memory(k->o);

	s->open_objects += (uint32_t)open - (uint32_t)k->open;
	s->object_bytes += bytes - k->bytes;
	k->open = open;
	k->bytes = bytes;
}

/* --- dropping --- */

static int oldest_first(const void *pa, const void *pb)
{
	const struct known_object *a = *(struct known_object *const *)pa;
	const struct known_object *b = *(struct known_object *const *)pb;

	return COMPARE(a->used, b->used);
}

typedef VEC(struct known_object *) known_vec;

/* Returns the objects that may be dropped, the oldest use first. The caller frees the list with
 * vec_fini(). */
static known_vec by_age(const struct symbols *s, const struct known_object *keep)
{
	known_vec v = { 0 };

	for (uint32_t i = 0; i < s->known.n; i++)
		if (s->known.v[i] != keep && !s->known.v[i]->pinned)
			vec_push(&v, s->known.v[i]);
	if (v.n)
		qsort(v.v, v.n, sizeof(*v.v), oldest_first);
	return v;
}

static void close_known(struct symbols *s, struct known_object *k)
{
	uint32_t n;

	if (!object_has_symbols(k->o) && !object_is_at_path(k->o) &&
	    object_symbols_size(k->o) <= s->limits.object_bytes)
		(void)object_symbols(k->o, &n);
	object_close_file(k->o);
	budget_count(s, k);
}

static void close_files(struct symbols *s, const struct known_object *keep)
{
	known_vec v = by_age(s, keep);

	for (uint32_t i = 0; i < v.n && s->open_objects > s->limits.open_files * 3 / 4; i++) {
		if (v.v[i]->open)
			close_known(s, v.v[i]);
	}
	vec_fini(&v);
}

static void known_free(struct symbols *s, struct known_object *k)
{
	source_drop(s, k->o);
	s->open_objects -= k->open;
	s->object_bytes -= k->bytes;
	hash_del(&s->objects, k->key, strlen(k->key));
	object_free(k->o);
	free(k->key);
	free(k);
}

static void drop_from(struct live_mapping *l)
{
	if (!l->known || l->known->index != UINT32_MAX)
		return;
	l->known = NULL;
	l->tried = false;
	l->dropped = true;
}

/* Removes references to the marked objects (index UINT32_MAX) from all mappings. */
static void drop_references(struct symbols *s)
{
	uint32_t pos = 0;
	const void *key;
	uint64_t *val;
	size_t len;

	while (hash_next(&s->processes, &pos, &key, &len, &val)) {
		struct process *p = (struct process *)(uintptr_t)*val;

		for (uint32_t i = 0; i < p->maps.n; i++)
			drop_from(&p->maps.v[i]);
		for (uint32_t i = 0; i < p->past.n; i++)
			drop_from(&p->past.v[i].at);
	}
}

static void drop_objects(struct symbols *s, const struct known_object *keep)
{
	size_t left = s->object_bytes;
	known_vec v = by_age(s, keep);
	uint32_t n = 0, kept = 0;

	for (; n < v.n && left > s->limits.object_bytes / 4 * 3; n++) {
		left -= v.v[n]->bytes;
		v.v[n]->index = UINT32_MAX;
	}
	if (n)
		drop_references(s);
	for (uint32_t i = 0; i < s->known.n; i++) {
		struct known_object *k = s->known.v[i];

		if (k->index == UINT32_MAX) {
			known_free(s, k);
			continue;
		}
		k->index = kept;
		s->known.v[kept++] = k;
	}
	s->known.n = kept;
	vec_fini(&v);
}

/* --- keeping --- */

void known_grown(struct symbols *s, struct known_object *k)
{
	if (!k->key)
		return;
	/* Names no longer need the file. A pinned object may be queried for anything. */
	if (k->open && !k->pinned && object_has_symbols(k->o))
		object_close_file(k->o);
	budget_count(s, k);
	if (s->open_objects > s->limits.open_files)
		close_files(s, k);
	if (s->object_bytes > s->limits.object_bytes)
		drop_objects(s, k);
}

void symbols_close_idle(struct symbols *s, uint64_t now)
{
	uint32_t closed = 0;

	if (now < s->idle_ns)
		return;
	s->idle_ns = now + IDLE_EACH_NS;
	if (now >= s->mark_ns) {
		s->mark_ns = now + IDLE_MARK_NS;
		s->idle_uses = s->mark_uses;
		s->mark_uses = s->uses;
	}
	for (uint32_t i = 0; i < s->known.n && closed < IDLE_CLOSED && s->open_objects; i++) {
		struct known_object *k = s->known.v[i];

		if (!k->open || k->pinned || k->used > s->idle_uses)
			continue;
		close_known(s, k);
		closed++;
	}
	if (closed && s->object_bytes > s->limits.object_bytes)
		drop_objects(s, NULL);
}

struct known_object *known_add(struct symbols *s, struct object *o, char *key)
{
	struct known_object *k = xcalloc(1, sizeof(*k));

	*k = (struct known_object){ .o = o, .key = key, .index = s->known.n, .used = ++s->uses };
	vec_push(&s->known, k);
	*hash_put(&s->objects, key, strlen(key), NULL) = (uintptr_t)k;
	known_grown(s, k);
	return k;
}

bool known_use(struct symbols *s, struct known_object *k)
{
	k->used = ++s->uses;
	if (!k->key || object_is_open(k->o) || object_has_symbols(k->o))
		return true;
	if (!object_reopen(k->o))
		return false;
	known_grown(s, k);
	return true;
}

struct object *known_pin(struct symbols *s, struct known_object *k, const char *path)
{
	bool was_pinned = k->pinned;
	struct object *o;

	k->pinned = true;
	k->used = ++s->uses;
	/* whoever pinned it before has the pointer */
	if (!object_is_open(k->o) && !object_reopen(k->o) && path && !was_pinned) {
		if (err_drop(object_open(path, &o))) {
		} else {
			source_drop(s, k->o);
			object_free(k->o);
			k->o = o;
		}
	}
	budget_count(s, k);
	return k->o;
}

void known_fini(struct symbols *s)
{
	for (uint32_t i = 0; i < s->known.n; i++)
		known_free(s, s->known.v[i]);
	vec_fini(&s->known);
	hash_fini(&s->objects);
	object_free(s->vdso.o);
}

/* --- perf maps --- */

void jit_make_room(struct symbols *s, const struct process *keep, size_t bytes)
{
	while (s->jit_bytes + bytes > s->limits.jit_bytes) {
		struct process *oldest = NULL;
		uint32_t pos = 0;
		const void *key;
		uint64_t *val;
		size_t len;

		while (hash_next(&s->processes, &pos, &key, &len, &val)) {
			struct process *p = (struct process *)(uintptr_t)*val;

			if (p != keep && p->jit_bytes &&
			    (!oldest || p->jit_used_ns < oldest->jit_used_ns))
				oldest = p;
		}
		if (!oldest)
			return;
		/* Keep the time when it may be read again. */
		uint64_t next = oldest->jit_next_ns;

		jit_drop(s, oldest);
		oldest->jit_next_ns = next;
		oldest->jit_dropped = true;
	}
}
