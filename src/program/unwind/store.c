/* Lays out the tables of many processes in chunks of 65,536 words, as drawn in
 * wire/wire_unwind.h. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/sorted.h"
#include "program/unwind/room.h"
#include "program/unwind/unwind.h"

enum {
	MAPPING_WORDS = sizeof(struct wire_unwind_mapping) / 4,
	PAGE_WORDS = sizeof(struct wire_unwind_page) / 4,
	LIST_MIN = 64,  /* least room of a list, in mappings; others have 128 ... 4096 */
	OWN_CHUNKS = 2, /* of rules and of files */
	IDLE_WORDS = 2 << 20,
	IDLE_FILES = 512,
};
#define REUSED_NS 1000000000ull /* time after which no walk reads a freed range */

struct chunk {
	uint32_t *words;
	bool dirty;
};

/* A process's list of mappings in the chunks. */
struct list {
	uint32_t address, n;
	uint32_t nwords;            /* that it may take */
	struct unwind_file **files; /* whose tables it refers to */
	uint32_t nfiles;
};

struct unwind_store {
	const struct unwind_store_ops *ops;
	void *arg;
	struct unwind_images *images;
	VEC(struct chunk) chunks;
	uint32_t used;   /* words of the last chunk */
	bool full;       /* something did not fit */
	bool rules_full; /* a rule had no number; numbers are never free again */
	uint32_t nrules, version;
	struct hash rules; /* rule -> number */
	struct room room;  /* that is free again */
	VEC(struct room_range)
	dropped;          /* since the last unwind_store_tidy(), which gives them back */
	struct hash pids; /* pid -> index in lists */
	VEC(struct list) lists;
	VEC(uint32_t) free_lists; /* indices in lists not in use */
};

static void add_chunk(struct unwind_store *s)
{
	vec_push(&s->chunks, (struct chunk){ xcalloc(WIRE_UNWIND_CHUNK_WORDS, 4), true });
	s->used = 0;
}

struct unwind_store *unwind_store_new(const struct unwind_store_ops *ops, void *arg)
{
	struct unwind_store *s = xcalloc(1, sizeof(*s));
	uint32_t none = 0;

	s->ops = ops;
	s->arg = arg;
	s->images = unwind_images_new();
	add_chunk(s); /* the rules */
	add_chunk(s);
	s->used = WIRE_UNWIND_CHUNK_WORDS; /* all of it: the files */
	*hash_put(&s->rules, &none, sizeof(none), NULL) = 0;
	s->nrules = 1;
	return s;
}

void unwind_store_free(struct unwind_store *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->chunks.n; i++)
		free(s->chunks.v[i].words);
	vec_fini(&s->dropped);
	for (uint32_t i = 0; i < s->lists.n; i++)
		free(s->lists.v[i].files);
	room_fini(&s->room);
	vec_fini(&s->chunks);
	vec_fini(&s->lists);
	vec_fini(&s->free_lists);
	hash_fini(&s->rules);
	hash_fini(&s->pids);
	unwind_images_free(s->images);
	free(s);
}

static uint32_t *words_at(struct unwind_store *s, uint32_t address)
{
	struct chunk *c = &s->chunks.v[address >> 16];

	c->dirty = true;
	return c->words + (address & 0xffff);
}

/* Takes n words in one chunk, the first at a multiple of align. Returns 0 when there is no room. */
static uint32_t alloc(struct unwind_store *s, uint32_t n, uint32_t align)
{
	uint32_t at = room_take(&s->room, n, align);

	if (at)
		return at;
	at = (s->used + align - 1) & ~(align - 1);
	if (at + n > WIRE_UNWIND_CHUNK_WORDS) {
		if (s->chunks.n == WIRE_UNWIND_CODES) {
			s->full = true;
			return 0;
		}
		/* what does not fit in front of the chunk's end may fit later */
		room_give(&s->room, (s->chunks.n - 1) << 16 | s->used,
			  WIRE_UNWIND_CHUNK_WORDS - s->used, 0);
		add_chunk(s);
		at = 0;
	}
	s->used = at + n;
	return (s->chunks.n - 1) << 16 | at;
}

uint32_t unwind_store_rule(struct unwind_store *s, uint32_t rule)
{
	const uint64_t *known = hash_get(&s->rules, &rule, sizeof(rule));
	bool is_new;

	if (known)
		return (uint32_t)*known;
	s->rules_full |= s->nrules == WIRE_UNWIND_CHUNK_WORDS;
	if (s->rules_full)
		return 0;
	*hash_put(&s->rules, &rule, sizeof(rule), &is_new) = s->nrules;
	*words_at(s, s->nrules) = rule;
	return s->nrules++;
}

/* Places the file's image. Returns the address of its pages, 0 when it has none or there is no
 * room. */
static uint32_t place_image(struct unwind_store *s, struct unwind_file *f)
{
	const struct unwind_image *u = f->image;
	const struct wire_unwind_image *h = u->head;
	cleanup_free uint32_t *number = NULL;
	uint32_t pages;

	if (f->pages || !h->npages)
		return f->pages;
	pages = alloc(s, h->npages * PAGE_WORDS, PAGE_WORDS);
	if (!pages)
		return 0;
	f->pages = pages;
	f->nwords = h->npages * PAGE_WORDS;
	number = xcalloc(h->nrules, sizeof(*number));
	for (uint32_t i = 0; i < h->nrules; i++)
		number[i] = unwind_store_rule(s, u->rules[i]);
	for (uint32_t i = 0; i < h->npages; i++) {
		uint32_t n = u->pages[i + 1] - u->pages[i];
		uint32_t rows = alloc(s, n, 1), *to;

		if (!rows)
			break; /* pages that are not there have no rows: rule 0 of chunk 0 */
		to = words_at(s, rows);
		for (uint32_t k = 0; k < n; k++) {
			uint32_t row = u->rows[u->pages[i] + k];

			to[k] = WIRE_UNWIND_ROW(row, number[WIRE_UNWIND_ROW_RULE(row)]);
		}
		words_at(s, pages)[i * PAGE_WORDS] = rows;
		words_at(s, pages)[i * PAGE_WORDS + 1] = n;
		f->nwords += n;
	}
	unwind_images_trim(s->images, f);
	return pages;
}

/* Puts a file with a key into the table of chunk 1. When all its places are taken, replaces the
 * last. The engine then reads the mappings of that file's processes. */
static void place_file(struct unwind_store *s, struct unwind_file *f)
{
	struct wire_unwind_files *t = (struct wire_unwind_files *)s->chunks.v[1].words;
	uint32_t at = 0;

	for (uint32_t i = 0; i < WIRE_UNWIND_PROBES; i++) {
		at = (uint32_t)(f->key + i) & (WIRE_UNWIND_FILES - 1);
		if (!t->files[at].key || t->files[at].key == f->key)
			break;
	}
	t->files[at] = (struct wire_unwind_file){
		.delta = f->delta,
		.pages = f->image ? place_image(s, f) : 0,
		.first_page = f->image ? f->image->head->first_page : 0,
		.npages = f->image ? f->image->head->npages : 0,
		.key = f->key,
	};
	if (!t->files[at].pages)
		t->files[at].npages = 0;
	s->chunks.v[1].dirty = true;
}

static void place_files(struct unwind_store *s)
{
	struct unwind_file *f;

	/* New files are at the end. */
	for (uint32_t i = unwind_images_count(s->images); i--;) {
		f = unwind_images_file(s->images, i);
		if (f->placed)
			break;
		f->placed = true;
		if (f->key)
			place_file(s, f);
	}
}

static struct err *flush(struct unwind_store *s)
{
	/* Chunk 1 refers to all others, so it is written last. */
	for (uint32_t k = 2; k < s->chunks.n + 2; k++) {
		uint32_t i = k < s->chunks.n ? k : k - s->chunks.n;
		struct err *e;

		if (!s->chunks.v[i].dirty)
			continue;
		e = s->ops->put_chunk(s->arg, i, s->chunks.v[i].words);
		if (e)
			return e;
		s->chunks.v[i].dirty = false;
	}
	return NULL;
}

/* Takes a list with room for n mappings: that of another process, if one has just been dropped. */
static bool alloc_list(struct unwind_store *s, uint32_t n, struct list *ret)
{
	uint32_t most = LIST_MIN;

	while (most < n)
		most *= 2;
	*ret = (struct list){ .n = n, .nwords = most * MAPPING_WORDS };
	for (uint32_t i = 0; i < s->dropped.n; i++)
		if (s->dropped.v[i].n == ret->nwords) {
			ret->address = s->dropped.v[i].at;
			s->dropped.v[i] = s->dropped.v[--s->dropped.n];
			return true;
		}
	ret->address = alloc(s, ret->nwords, MAPPING_WORDS);
	return ret->address != 0;
}

void unwind_store_drop_words(struct unwind_store *s, uint32_t at, uint32_t n)
{
	vec_push(&s->dropped, ((struct room_range){ .at = at, .n = n }));
}

static void drop_list(struct unwind_store *s, const struct list *l)
{
	for (uint32_t i = 0; i < l->nfiles; i++)
		l->files[i]->refs--;
	free(l->files);
	if (l->address)
		unwind_store_drop_words(s, l->address, l->nwords);
}

static struct list *list_of(struct unwind_store *s, uint32_t pid)
{
	bool is_new;
	uint64_t *i = hash_put(&s->pids, &pid, sizeof(pid), &is_new);

	if (is_new) {
		if (s->free_lists.n) {
			*i = s->free_lists.v[--s->free_lists.n];
		} else {
			*i = s->lists.n;
			vec_add(&s->lists);
		}
		s->lists.v[*i] = (struct list){ 0 };
	}
	return &s->lists.v[*i];
}

void unwind_store_guess(struct unwind_store *s, bool guess)
{
	unwind_images_guess(s->images, guess);
}

struct err *unwind_store_add(struct unwind_store *s, pid_t pid)
{
	struct unwind_process *p;
	struct err *e = unwind_process_live(s->images, pid, &p);
	struct list new, old;
	struct wire_unwind_mapping *to;
	uint32_t n;

	if (e)
		return e;
	place_files(s);
	n = p->ranges.n < WIRE_UNWIND_MAPPINGS_MAX ? p->ranges.n : WIRE_UNWIND_MAPPINGS_MAX;
	if (!n || !alloc_list(s, n, &new)) {
		unwind_process_free(p);
		return n ? err_new(ENOSPC, "unwind tables are full") : NULL;
	}
	new.files = xcalloc(n, sizeof(struct unwind_file *));
	for (uint32_t i = 0; i < n; i++) {
		const struct unwind_range *m = &p->ranges.v[i];
		uint32_t pages = m->file ? place_image(s, m->file) : 0;

		to = (struct wire_unwind_mapping *)words_at(s, new.address) + i;
		*to = (struct wire_unwind_mapping){
			.start = m->start,
			.bias = m->bias,
			.size = (uint32_t)((m->end - m->start) >> 12),
			.pages = pages,
			.first_page = m->image ? m->image->head->first_page : 0,
			.npages = pages ? m->image->head->npages : 0,
		};
		if (pages) {
			m->file->refs++;
			new.files[new.nfiles++] = m->file;
		}
	}
	unwind_process_free(p);
	/* Write the tables first, then the process that refers to them. Drop its old list last. A
	 * walk that has begun may still read it, so it is not written before the next change of
	 * some process. */
	e = flush(s);
	struct wire_unwind_process wp = { .mappings = new.address,
					  .n = n,
					  .version = ++s->version };

	e = e ?: s->ops->put_process(s->arg, (uint32_t)pid, &wp);
	if (e) {
		drop_list(s, &new);
		return e;
	}
	struct list *l = list_of(s, (uint32_t)pid);

	old = *l;
	*l = new;
	drop_list(s, &old);
	return NULL;
}

uint32_t unwind_store_words_at(struct unwind_store *s, uint32_t at, const void *words, uint32_t n,
			       uint32_t align)
{
	if (!at)
		at = alloc(s, n, align);
	if (at)
		memcpy(words_at(s, at), words, n * 4);
	return at;
}

void unwind_store_del(struct unwind_store *s, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	uint64_t *i = hash_get(&s->pids, &key, sizeof(key));

	s->ops->del_process(s->arg, key);
	if (!i)
		return;
	drop_list(s, &s->lists.v[*i]);
	s->lists.v[*i] = (struct list){ 0 };
	vec_push(&s->free_lists, (uint32_t)*i);
	hash_del(&s->pids, &key, sizeof(key));
}

struct err *unwind_store_add_files(struct unwind_store *s, const char *const *paths, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		unwind_images_add_path(s->images, paths[i]);
	place_files(s);
	return flush(s);
}

void unwind_store_met_file(struct unwind_store *s, pid_t pid, const char *path, uint32_t dev,
			   uint64_t inode)
{
	unwind_images_add_inode(s->images, pid, path, dev, inode);
	place_files(s);
}

struct err *unwind_store_flush(struct unwind_store *s)
{
	return flush(s);
}

bool unwind_store_conflicts(const struct unwind_store *s, pid_t pid, uint64_t start, uint64_t end,
			    bool file)
{
	uint32_t key = (uint32_t)pid, lo;
	const uint64_t *i = hash_get(&s->pids, &key, sizeof(key));
	const struct list *l = i ? &s->lists.v[*i] : NULL;
	const struct wire_unwind_mapping *v;

	if (!l || !l->address)
		return false;
	v = (const void *)(s->chunks.v[l->address >> 16].words + (l->address & 0xffff));
	/* The first that ends behind start. */
	lo = partition_point(l->n, k, v[k].start + ((uint64_t)v[k].size << 12) <= start);
	for (; lo < l->n && v[lo].start < end; lo++)
		if (file || v[lo].npages)
			return true;
	return false;
}

struct err *unwind_store_enable_files(struct unwind_store *s)
{
	((struct wire_unwind_files *)s->chunks.v[1].words)->enabled = 1;
	s->chunks.v[1].dirty = true;
	return flush(s);
}

/* --- dropping --- */

typedef VEC(struct unwind_file *) file_vec;

static int latest_first(const void *pa, const void *pb)
{
	const struct unwind_file *a = *(struct unwind_file *const *)pa;
	const struct unwind_file *b = *(struct unwind_file *const *)pb;

	return COMPARE(b->used, a->used);
}

static void forget_file(struct unwind_store *s, struct unwind_file *f, uint64_t now_ns)
{
	struct wire_unwind_files *t = (struct wire_unwind_files *)s->chunks.v[1].words;
	uint32_t npages = f->pages ? f->image->head->npages : 0;

	for (uint32_t i = 0; f->key && i < WIRE_UNWIND_PROBES; i++) {
		struct wire_unwind_file *at =
			&t->files[(uint32_t)(f->key + i) & (WIRE_UNWIND_FILES - 1)];

		if (at->key == f->key && at->pages == f->pages)
			*at = (struct wire_unwind_file){ 0 };
	}
	s->chunks.v[1].dirty = true;
	for (uint32_t i = 0; i < npages; i++) {
		const uint32_t *page = s->chunks.v[f->pages >> 16].words + (f->pages & 0xffff) +
				       (size_t)i * PAGE_WORDS;

		if (page[0])
			room_give(&s->room, page[0], page[1], now_ns);
	}
	if (npages)
		room_give(&s->room, f->pages, npages * PAGE_WORDS, now_ns);
	unwind_images_remove(s->images, f);
}

/* Gives chunks back that have become free, the last ones first. New tables take the first room that
 * is there, so that the last chunks become free. */
static void drop_chunks(struct unwind_store *s)
{
	while (s->ops->drop_chunk && s->chunks.n > OWN_CHUNKS &&
	       room_ends_with(&s->room, (s->chunks.n - 1) << 16, s->used)) {
		s->ops->drop_chunk(s->arg, --s->chunks.n);
		free(s->chunks.v[s->chunks.n].words);
		s->used = WIRE_UNWIND_CHUNK_WORDS;
	}
}

struct err *unwind_store_tidy(struct unwind_store *s, const struct unwind_store_limits *l,
			      uint64_t now_ns)
{
	uint32_t max_words = l && l->idle_words ? l->idle_words : IDLE_WORDS;
	uint32_t max_files = l && l->idle_files ? l->idle_files : IDLE_FILES;
	uint64_t nwords = 0, until = now_ns > REUSED_NS ? now_ns - REUSED_NS : 0;
	struct unwind_file *f;
	file_vec idle = { 0 };

	for (uint32_t i = 0; i < s->dropped.n; i++)
		room_give(&s->room, s->dropped.v[i].at, s->dropped.v[i].n, now_ns);
	s->dropped.n = 0;
	room_settle(&s->room, until);
	drop_chunks(s);
	for (uint32_t i = 0; (f = unwind_images_file(s->images, i)); i++) {
		if (f->refs || !f->placed)
			continue;
		nwords += f->nwords;
		vec_push(&idle, f);
	}
	if (nwords > max_words || idle.n > max_files) {
		qsort(idle.v, idle.n, sizeof(*idle.v), latest_first);
		while (idle.n && (nwords > max_words / 4 * 3 || idle.n > max_files / 4 * 3)) {
			f = idle.v[--idle.n];
			nwords -= f->nwords;
			forget_file(s, f, now_ns);
		}
		s->full = false;
	}
	vec_fini(&idle);
	return flush(s);
}

void unwind_store_remember(const struct unwind_store *s)
{
	VEC(const char *) paths = { 0 };
	file_vec files = { 0 };
	struct unwind_file *f;

	for (uint32_t i = 0; (f = unwind_images_file(s->images, i)); i++)
		if (!f->guessed && f->key && f->image && f->path[0] == '/' && f->image->head->nrows)
			vec_push(&files, f);
	if (files.n)
		qsort(files.v, files.n, sizeof(*files.v), latest_first);
	for (uint32_t i = 0; i < files.n; i++)
		vec_push(&paths, files.v[i]->path);
	if (paths.n)
		unwind_recent_write(paths.v, paths.n);
	vec_fini(&files);
	vec_fini(&paths);
}

bool unwind_store_full(const struct unwind_store *s)
{
	return s->full || s->rules_full || unwind_images_full(s->images);
}

uint64_t unwind_store_words(const struct unwind_store *s)
{
	return (uint64_t)(s->chunks.n - 1) * WIRE_UNWIND_CHUNK_WORDS + s->used;
}
