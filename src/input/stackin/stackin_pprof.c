/* pprof's profile.proto (gzipped or not). Samples refer to locations, locations to functions, and
 * functions to strings by number. Any of them may stand behind its use, so the tables are read
 * first. Of several sample types, this reader takes the requested one, else the default that the
 * file names, else the last, as pprof does.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "base/bytes.h"
#include "base/meminfo.h"
#include "input/stackin/stackin_reader.h"

/* A location with many inlined functions is a few bytes of a sample, but many frames of its stack.
 * The samples of a profile of n bytes have at most FRAMES_FREE + n * FRAMES_PER_BYTE frames. */
enum { FRAMES_FREE = 1 << 20, FRAMES_PER_BYTE = 16 };
/* A location refers to its names by number, and each may make a name of the tree of its own. The
 * locations of samples have at most TEXTS_FREE + n * TEXTS_PER_BYTE bytes of names. */
enum { TEXTS_FREE = 32 << 20, TEXTS_PER_BYTE = 16 };

/* A location of two bytes takes 40 of memory. The tables of a profile of n bytes may take
 * TABLES_FREE + n * TABLES_PER_BYTE, and half of the memory that is free. */
enum { TABLES_FREE = 64 << 20, TABLES_PER_BYTE = 8 };

struct span {
	const uint8_t *p;
	size_t n;
};

/* A field of a message. */
struct field {
	uint32_t id;
	uint64_t number;  /* of a varint */
	struct span span; /* of bytes */
	bool is_bytes;
};

struct line {
	uint64_t function;
	uint32_t name; /* id in the tree */
};

struct location {
	uint64_t id, mapping, address;
	uint32_t line, nlines; /* in lines: leaf first */
	bool named;            /* its lines are, on its first use */
};

struct function {
	uint64_t id, name;
};

struct pprof_mapping {
	uint64_t id, file;
};

struct pprof {
	VEC(struct span) strings;
	VEC(struct span) types; /* of samples: string numbers below */
	VEC(struct location) locations;
	VEC(struct function) functions;
	VEC(struct pprof_mapping) mappings;
	VEC(struct line) lines;
	VEC(uint32_t) ids; /* of a sample, leaf first */
	VEC(uint64_t) numbers;
	struct perf_names names;
	uint64_t default_type;
	uint64_t frames; /* frames that samples may still have */
	uint64_t texts;  /* bytes of names that locations may still have */
	uint64_t tables; /* bytes that the tables may still take */
};

static bool next_field(struct bytes *b, struct field *ret)
{
	uint64_t tag;

	if (!bytes_left(b) || !bytes_ok(b))
		return false;
	*ret = (struct field){ 0 };
	tag = bytes_uleb(b);
	ret->id = tag >> 3 > UINT32_MAX ? 0 : (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case 0: ret->number = bytes_uleb(b); break;
	case 1: ret->number = bytes_u64(b); break;
	case 5: ret->number = bytes_u32(b); break;
	case 2:
		ret->is_bytes = true;
		ret->span.n = bytes_uleb(b);
		ret->span.p = bytes_take(b, ret->span.n);
		break;
	default: bytes_skip(b, SIZE_MAX); /* groups, which no program writes */
	}
	return bytes_ok(b);
}

static struct bytes pprof_message(struct span s)
{
	return bytes_of(s.p, s.n, "pprof");
}

/* Adds numbers, packed or each in a field of its own, to p->numbers. */
static void push_numbers(struct pprof *p, const struct field *f)
{
	struct bytes b;

	if (!f->is_bytes) {
		vec_push(&p->numbers, f->number);
		return;
	}
	b = pprof_message(f->span);
	while (bytes_left(&b)) {
		uint64_t v = bytes_uleb(&b);

		if (!bytes_ok(&b))
			return;
		vec_push(&p->numbers, v);
	}
}

/* Takes memory for n more entries of a table. */
static struct err *pprof_room(struct pprof *p, uint64_t n, size_t size)
{
	if (n * size > p->tables)
		return err_new(ENOMEM, "the tables of a pprof profile take more memory than its "
				       "size allows");
	p->tables -= n * size;
	return NULL;
}

static struct err *read_location(struct pprof *p, struct span s)
{
	struct bytes b = pprof_message(s);
	struct location l = { .line = p->lines.n };
	struct field f, g;

	while (next_field(&b, &f)) {
		if (f.id == 1)
			l.id = f.number;
		else if (f.id == 2)
			l.mapping = f.number;
		else if (f.id == 3)
			l.address = f.number;
		else if (f.id == 4 && f.is_bytes) {
			struct bytes inner = pprof_message(f.span);
			struct line line = { 0 };

			while (next_field(&inner, &g))
				if (g.id == 1)
					line.function = g.number;
			vec_push(&p->lines, line);
			l.nlines++;
		}
	}
	vec_push(&p->locations, l);
	return bytes_err(&b) ?: pprof_room(p, l.nlines, sizeof(struct line));
}

/* Reads two numbers of a message, by their fields. */
static struct err *read_pair(struct span s, uint32_t a, uint64_t *ret_a, uint32_t c,
			     uint64_t *ret_c)
{
	struct bytes b = pprof_message(s);
	struct field f;

	*ret_a = *ret_c = 0;
	while (next_field(&b, &f)) {
		if (f.id == a)
			*ret_a = f.number;
		if (f.id == c)
			*ret_c = f.number;
	}
	return bytes_err(&b);
}

static struct err *read_tables(struct pprof *p, struct bytes b)
{
	struct pprof_mapping m;
	struct function fn;
	struct field f;
	struct err *e = NULL;

	while (!e && next_field(&b, &f)) {
		/* an entry of any table takes no more than a location */
		if (f.id != 2 && (e = pprof_room(p, 1, sizeof(struct location))))
			break;
		switch (f.id) {
		case 1: vec_push(&p->types, f.span); break;
		case 3:
			e = read_pair(f.span, 1, &m.id, 5, &m.file);
			vec_push(&p->mappings, m);
			break;
		case 4: e = read_location(p, f.span); break;
		case 5:
			e = read_pair(f.span, 1, &fn.id, 2, &fn.name);
			vec_push(&p->functions, fn);
			break;
		case 6: vec_push(&p->strings, f.span); break;
		case 14: p->default_type = f.number; break;
		}
	}
	return e ? e : bytes_err(&b);
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return COMPARE(x, y);
}

static void sort(void *v, uint32_t n, size_t size)
{
	if (n)
		qsort(v, n, size, by_id);
}

/* Returns the element with an id, in an array sorted by the ids that its elements begin with. Ids
 * are nearly always 1, 2, 3... */
static const void *pprof_find(const void *v, uint32_t n, size_t size, uint64_t id)
{
	const char *first = v;
	uint64_t at = n ? id - *(const uint64_t *)v : 0;

	if (at < n && *(const uint64_t *)(first + at * size) == id)
		return first + at * size;
	return n ? bsearch(&id, v, n, size, by_id) : NULL;
}

static struct text string(const struct pprof *p, uint64_t i)
{
	return i < p->strings.n && p->strings.v[i].n
		       ? (struct text){ (const char *)p->strings.v[i].p, p->strings.v[i].n }
		       : (struct text){ "", 0 };
}

/* Returns the id of a function's name in the tree. */
static struct err *name_function(struct stackin *in, struct pprof *p, const struct location *l,
				 struct text name, bool inlined, uint32_t *ret)
{
	const struct pprof_mapping *m =
		pprof_find(p->mappings.v, p->mappings.n, sizeof(*m), l->mapping);
	struct text file = m ? string(p, m->file) : (struct text){ "", 0 };
	const struct text unknown = { "[unknown]", 9 };
	char pc[24];
	int n = snprintf(pc, sizeof(pc), "%llx", (unsigned long long)l->address);

	if (name.n + file.n > p->texts)
		return err_new(E2BIG,
			       "the locations of a pprof profile have longer names than its size "
			       "allows (location %llu: %zu bytes)",
			       (unsigned long long)l->id, name.n + file.n);
	p->texts -= name.n + file.n;
	*ret = perf_function(in, &p->names, name.n ? name : unknown, (struct text){ pc, (size_t)n },
			     file.n ? file : unknown, inlined);
	return NULL;
}

static struct err *name_location(struct stackin *in, struct pprof *p, struct location *l)
{
	struct err *e = NULL;

	if (l->named)
		return NULL;
	l->named = true;
	if (!l->nlines) {
		l->line = p->lines.n;
		l->nlines = 1;
		vec_push(&p->lines, (struct line){ 0 });
	}
	for (uint32_t i = 0; i < l->nlines && !e; i++) {
		struct line *line = &p->lines.v[l->line + i];
		const struct function *f =
			pprof_find(p->functions.v, p->functions.n, sizeof(*f), line->function);

		e = name_function(in, p, l, f ? string(p, f->name) : (struct text){ "", 0 },
				  i + 1 < l->nlines, &line->name);
	}
	return e;
}

static bool same(struct text t, const char *s)
{
	return strlen(s) == t.n && !memcmp(t.s, s, t.n);
}

/* Chooses the value of a sample that counts. Puts its type and unit into `in`. */
static struct err *choose_type(struct stackin *in, struct pprof *p, uint32_t *ret)
{
	const char *wanted = in->options.event;
	uint64_t type, unit;
	struct err *e;

	if (!p->types.n)
		return err_new(0, "a pprof profile without sample types");
	*ret = p->types.n - 1;
	for (uint32_t i = 0; i < p->types.n; i++) {
		e = read_pair(p->types.v[i], 1, &type, 2, &unit);
		if (e)
			return e;
		if (wanted ? same(string(p, type), wanted)
			   : p->default_type && type == p->default_type) {
			*ret = i;
			wanted = NULL;
			break;
		}
	}
	if (wanted && in->options.event)
		return err_new(0, "the profile has no sample type %s", wanted);
	e = read_pair(p->types.v[*ret], 1, &type, 2, &unit);
	if (!e) {
		struct text t = string(p, type), u = string(p, unit);

		in->event = xstrndup(t.s, t.n);
		in->unit = same(u, "count") ? xstrndup(t.s, t.n) : xstrndup(u.s, u.n);
	}
	return e;
}

static struct err *read_sample(struct stackin *in, struct pprof *p, struct span s, uint32_t type)
{
	struct bytes b = pprof_message(s);
	uint32_t nlocations;
	struct field f;
	int64_t value;

	p->numbers.n = 0;
	while (next_field(&b, &f))
		if (f.id == 1)
			push_numbers(p, &f);
	nlocations = p->numbers.n;
	b = pprof_message(s);
	while (next_field(&b, &f))
		if (f.id == 2)
			push_numbers(p, &f);
	in->lines++;
	value = p->numbers.n - nlocations > type ? (int64_t)p->numbers.v[nlocations + type] : 0;
	if (value < 0) { /* a difference of two profiles has them */
		stackin_skip(in);
		return bytes_err(&b);
	}
	if (!value)
		return bytes_err(&b);
	p->ids.n = 0;
	for (uint32_t i = 0; i < nlocations; i++) {
		const struct location *at =
			pprof_find(p->locations.v, p->locations.n, sizeof(*at), p->numbers.v[i]);
		struct location *l = at ? &p->locations.v[at - p->locations.v] : NULL;
		struct err *e = l ? name_location(in, p, l) : NULL;

		if (e)
			return e;
		if (l && l->nlines > p->frames)
			return err_new(
				E2BIG,
				"the stacks of a pprof profile have more frames than its size allows "
				"(location %llu: %u functions)",
				(unsigned long long)l->id, l->nlines);
		p->frames -= l ? l->nlines : 0;
		for (uint32_t k = 0; l && k < l->nlines; k++)
			vec_push(&p->ids, p->lines.v[l->line + k].name);
		if (!l)
			vec_push(&p->ids, stacktree_marked(in->tree, "[unknown]", 9));
	}
	if (!p->ids.n)
		vec_push(&p->ids, stacktree_marked(in->tree, "[no stack]", 10));
	stackin_count(in, p->ids.v, p->ids.n, (uint64_t)value);
	return bytes_err(&b);
}

static struct err *read_profile(struct stackin *in, struct pprof *p, const uint8_t *data, size_t n)
{
	const uint64_t free = meminfo_available();
	struct bytes b = bytes_of(data, n, "pprof");
	struct err *e;
	uint32_t type = 0;
	struct field f;

	p->tables = TABLES_FREE + (uint64_t)n * TABLES_PER_BYTE;
	if (free && p->tables > free / 2)
		p->tables = free / 2;
	e = read_tables(p, b);
	p->frames = FRAMES_FREE + (uint64_t)n * FRAMES_PER_BYTE;
	p->texts = TEXTS_FREE + (uint64_t)n * TEXTS_PER_BYTE;
	e = e ?: choose_type(in, p, &type);
	if (e)
		return e;
	sort(p->locations.v, p->locations.n, sizeof(*p->locations.v));
	sort(p->functions.v, p->functions.n, sizeof(*p->functions.v));
	sort(p->mappings.v, p->mappings.n, sizeof(*p->mappings.v));
	while (!e && next_field(&b, &f))
		if (f.id == 2 && f.is_bytes)
			e = read_sample(in, p, f.span, type);
	return e ? e : bytes_err(&b);
}

static struct err *document(struct stackin *in, const uint8_t *data, size_t n)
{
	struct pprof p = { 0 };
	struct err *e = read_profile(in, &p, data, n);

	vec_fini(&p.strings);
	vec_fini(&p.types);
	vec_fini(&p.locations);
	vec_fini(&p.functions);
	vec_fini(&p.mappings);
	vec_fini(&p.lines);
	vec_fini(&p.ids);
	vec_fini(&p.numbers);
	perf_names_fini(&p.names);
	return e;
}

/* Recognises pprof: it begins with a sample type, field 1, a short message that begins with a
 * varint of field 1 or 2. */
static bool pprof_begins(const uint8_t *p, size_t n)
{
	return n >= 4 && p[0] == 0x0a && p[1] && p[1] <= 12 && (p[2] == 0x08 || p[2] == 0x10);
}

const struct stackin_reader stackin_pprof = {
	.begins = pprof_begins,
	.document = document,
};
