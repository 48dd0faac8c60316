/* The sink of `descry heap alloc`: the last place of each address. */
#include "memory/sites/sites.h"

#include "base/hash.h"
#include "data/record.h"
#include "load/java_attach.h"
#include "render/render.h"
#include "wire/language.h"

enum {
	TABLE_FIRST = 1 << 16,
	TABLE_MAX = 1 << 25,  /* addresses: a gigabyte */
	PLACES_MAX = 1 << 20, /* distinct stacks */
	WORDS_MAX = 1 << 24,
	LATER_MAX = 1 << 24,
};

/* address 0: free. */
struct sites_address {
	uint64_t address;
	uint32_t place;
};

enum { NUMBERS = 4 };

struct sites_sink {
	struct sink s; /* first */
	struct sites *sites;
	/* of the record at hand: the object's address, or the bytes that it stands for and its
	 * size, or what sites_kept_add() has; and its class */
	uint64_t numbers[NUMBERS];
	uint32_t nnumbers, ntext;
	const char *text;
	uint32_t place;
};

static struct sites_sink *sink_of(struct sink *s)
{
	return (struct sites_sink *)s;
}

void sites_init(struct sites *s)
{
	*s = (struct sites){ .depth = 1, .sample = 1, .until = UINT64_MAX, .fifo = -1 };
	arena_init(&s->arena);
	intern_init(&s->classes);
	vec_push(&s->places, (struct sites_place){ 0 });
}

void sites_fini(struct sites *s)
{
	if (s->fifo >= 0)
		java_let_go(s->fifo);
	arena_fini(&s->arena);
	vec_fini(&s->kept);
	vec_fini(&s->places);
	vec_fini(&s->words);
	vec_fini(&s->later);
	vec_fini(&s->samples);
	hash_fini(&s->by_words);
	hash_fini(&s->by_class);
	intern_fini(&s->classes);
	free(s->table);
}

/* --- the table --- */

static struct sites_address *slot_of(const struct sites *s, uint64_t address)
{
	uint64_t i = hash_word(address) & s->mask;

	while (s->table[i].address && s->table[i].address != address)
		i = (i + 1) & s->mask;
	return &s->table[i];
}

static void table_resize(struct sites *s, uint64_t n)
{
	struct sites_address *old = s->table;
	uint64_t nold = old ? s->mask + 1 : 0;

	s->table = xcalloc(n, sizeof(*s->table));
	s->mask = n - 1;
	for (uint64_t i = 0; i < nold; i++)
		if (old[i].address)
			*slot_of(s, old[i].address) = old[i];
	free(old);
}

static void put_address(struct sites *s, uint64_t address, uint32_t place)
{
	struct sites_address *a;

	if (!s->table)
		table_resize(s, TABLE_FIRST);
	else if (s->naddresses * 2 > s->mask && s->naddresses < TABLE_MAX)
		table_resize(s, (s->mask + 1) * 2);
	a = slot_of(s, address);
	if (!a->address) {
		if (s->naddresses >= TABLE_MAX) {
			s->left_out++;
			return;
		}
		s->naddresses++;
		a->address = address;
	}
	a->place = place;
}

uint32_t sites_find(const struct sites *s, uint64_t address)
{
	return s->table && address ? slot_of(s, address)->place : 0;
}

void sites_each(const struct sites *s, void (*fn)(void *arg, uint64_t address, uint32_t place),
		void *arg)
{
	for (uint64_t i = 0; s->table && i <= s->mask; i++)
		if (s->table[i].address)
			fn(arg, s->table[i].address, s->table[i].place);
}

void sites_forget(struct sites *s, bool (*keep)(void *arg, uint64_t address), void *arg)
{
	uint64_t n = s->table ? s->mask + 1 : 0;

	s->naddresses = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (s->table[i].address && !keep(arg, s->table[i].address))
			s->table[i].address = 0;
		s->naddresses += s->table[i].address != 0;
	}
	if (n)
		table_resize(s, n); /* entries behind a gap would not be found */
}

/* --- places --- */

static uint32_t number_place(struct sites *s, const uint64_t *words, uint32_t n)
{
	bool is_new;
	uint64_t *at;

	if (!n)
		return 0;
	at = hash_get(&s->by_words, words, n * sizeof(*words));
	if (at)
		return (uint32_t)*at;
	if (s->places.n >= PLACES_MAX || s->words.n + n > WORDS_MAX)
		return 0;
	at = hash_put(&s->by_words, words, n * sizeof(*words), &is_new);
	*at = s->places.n;
	vec_push(&s->places, ((struct sites_place){ s->words.n, n }));
	for (uint32_t i = 0; i < n; i++)
		vec_push(&s->words, words[i]);
	return s->places.n - 1;
}

/* Native frames may stand among those of the language. */
static uint32_t place_of(struct sites *s, const struct field *f, const uint8_t *data)
{
	struct field_stack st;
	uint64_t words[WIRE_STACK_FRAMES];
	uint32_t n = 0;

	if (!field_stack(f, data, &st) || !st.pcs || st.error)
		return 0;
	for (uint32_t i = 0; i < st.n && i < WIRE_STACK_FRAMES && n < s->depth; i++) {
		uint64_t word = read_u64(st.pcs + i * sizeof(word));

		if (word & WIRE_LANGUAGE_FRAME && word != WIRE_LANGUAGE_HIDDEN)
			words[n++] = word;
	}
	return number_place(s, words, n);
}

/* --- records --- */

static struct err *begin_record(struct sink *s, const struct record_view *r)
{
	struct sites_sink *k = sink_of(s);

	k->nnumbers = k->ntext = 0;
	k->place = 0;
	return NULL;
}

static struct err *take_action(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct sites_sink *k = sink_of(s);

	for (uint32_t i = 0; i < a->nfields; i++) {
		const struct field *f = &r->segment->fields[a->fields[i]];

		if (a->kind == ACT_USTACK)
			k->place = place_of(k->sites, f, r->data);
		else if (!field_text(r->image, f, r->data, &k->text, &k->ntext) &&
			 k->nnumbers < NUMBERS)
			k->numbers[k->nnumbers++] = field_uint(f, r->data);
	}
	return NULL;
}

static struct err *end_record(struct sink *s, const struct record_view *r)
{
	struct sites_sink *k = sink_of(s);
	struct sites *t = k->sites;

	if (!k->nnumbers || !k->numbers[0])
		return NULL;
	t->recorded++;
	t->nowhere += !k->place;
	if (t->keeps)
		sites_kept_add(t, k->place, k->text, k->ntext, k->numbers);
	else if (t->sampled)
		sites_sample_add(t, k->place, k->text, k->ntext, k->numbers[1], k->numbers[0]);
	else if (r->head->time <= t->until)
		put_address(t, k->numbers[0], k->place);
	else if (t->later.n < LATER_MAX)
		vec_push(&t->later, ((struct sites_later){ k->numbers[0], k->place }));
	else
		t->lost++;
	return NULL;
}

void sites_hold(struct sites *s, uint64_t time)
{
	s->until = time;
}

void sites_go_on(struct sites *s)
{
	s->until = UINT64_MAX;
	for (uint32_t i = 0; i < s->later.n; i++)
		put_address(s, s->later.v[i].address, s->later.v[i].site);
	s->later.n = 0;
}

static struct err *note_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	if (kind != DROP_NAMES && kind != DROP_CHANGED)
		sink_of(s)->sites->lost += count;
	return NULL;
}

static struct err *note_fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	sink_of(s)->sites->faults++;
	return NULL;
}

static char *format_nothing(struct sink *s, const struct record_view *r, const struct action *a)
{
	return xstrdup("");
}

static void free_sink(struct sink *s)
{
	sink_of(s)->sites->sink = NULL;
	free(s);
}

struct sink *sites_sink(struct sites *s)
{
	static const struct sink_ops ops = {
		.name = "heap alloc",
		.record_begin = begin_record,
		.action = take_action,
		.record_end = end_record,
		.fault = note_fault,
		.drop = note_drop,
		.format = format_nothing,
		.free = free_sink,
	};
	struct sites_sink *k = xcalloc(1, sizeof(*k));

	k->s.ops = &ops;
	k->sites = s;
	s->sink = &k->s;
	return &k->s;
}
