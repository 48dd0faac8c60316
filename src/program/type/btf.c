/* Reads BTF files. */
#define _GNU_SOURCE
#include "btf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"

enum {
	TYPE_KINDS = BTF_BIT(BTF_KIND_STRUCT) | BTF_BIT(BTF_KIND_UNION) | BTF_BIT(BTF_KIND_ENUM) |
		     BTF_BIT(BTF_KIND_ENUM64) | BTF_BIT(BTF_KIND_TYPEDEF) | BTF_BIT(BTF_KIND_INT) |
		     BTF_BIT(BTF_KIND_FLOAT) | BTF_BIT(BTF_KIND_FWD),
	SYMBOL_KINDS = BTF_BIT(BTF_KIND_FUNC) | BTF_BIT(BTF_KIND_VAR),
	ENUM_KINDS = BTF_BIT(BTF_KIND_ENUM) | BTF_BIT(BTF_KIND_ENUM64),
	HDR_LEN_MIN = 24,
	NAME_LIMIT = 1024,   /* limit of a name's comparison; the kernel's own limit is 512 */
	BYTES_PER_TYPE = 26, /* vmlinux of 6.18: 3.2 MB for 126k records; only a first guess */
	PLACES_MAX = 16,
	SCANS_MAX = 4, /* look-ups before an index is built */
};

struct name_places {
	uint32_t off[PLACES_MAX], n;
};

/* Bytes of a record: a part that is fixed for the kind, and a part that repeats vlen times. */
static const struct {
	uint8_t known, extra, each;
} kind_size[] = {
	[BTF_KIND_INT] = { 1, 4, 0 },
	[BTF_KIND_PTR] = { 1, 0, 0 },
	[BTF_KIND_ARRAY] = { 1, sizeof(struct btf_array), 0 },
	[BTF_KIND_STRUCT] = { 1, 0, sizeof(struct btf_member) },
	[BTF_KIND_UNION] = { 1, 0, sizeof(struct btf_member) },
	[BTF_KIND_ENUM] = { 1, 0, sizeof(struct btf_enum) },
	[BTF_KIND_FWD] = { 1, 0, 0 },
	[BTF_KIND_TYPEDEF] = { 1, 0, 0 },
	[BTF_KIND_VOLATILE] = { 1, 0, 0 },
	[BTF_KIND_CONST] = { 1, 0, 0 },
	[BTF_KIND_RESTRICT] = { 1, 0, 0 },
	[BTF_KIND_FUNC] = { 1, 0, 0 },
	[BTF_KIND_FUNC_PROTO] = { 1, 0, sizeof(struct btf_param) },
	[BTF_KIND_VAR] = { 1, sizeof(struct btf_var), 0 },
	[BTF_KIND_DATASEC] = { 1, 0, sizeof(struct btf_var_secinfo) },
	[BTF_KIND_FLOAT] = { 1, 0, 0 },
	[BTF_KIND_DECL_TAG] = { 1, sizeof(struct btf_decl_tag), 0 },
	[BTF_KIND_TYPE_TAG] = { 1, 0, 0 },
	[BTF_KIND_ENUM64] = { 1, 0, sizeof(struct btf_enum64) },
};

/* Returns record i. Records start on 4-byte boundaries of an aligned section, so they are read in
 * place. */
static const struct btf_type *record(const struct btf_file *f, uint32_t i)
{
	return (const struct btf_type *)(f->types + f->off[i]);
}

/* Finds the start of each record in one pass over the headers. */
static struct err *scan(struct btf_file *f, const char *name)
{
	uint32_t cap = f->types_len / BYTES_PER_TYPE + 16, pos = 0;
	struct err *note = NULL;

	f->off = xmalloc(cap * sizeof(*f->off));
	while (pos < f->types_len) {
		const struct btf_type *t = (const struct btf_type *)(f->types + pos);
		uint64_t size = sizeof(*t);
		uint32_t kind;

		if (f->types_len - pos < sizeof(*t)) {
			note = err_new(EINVAL, "%s: type %u is cut off", name, btf_end(f));
			break;
		}
		kind = BTF_INFO_KIND(t->info);
		if (kind >= ARRAY_SIZE(kind_size) || !kind_size[kind].known) {
			note = err_new(
				EINVAL,
				"%s: type %u is of unknown kind %u; types after it are not seen",
				name, btf_end(f), kind);
			break;
		}
		size += kind_size[kind].extra +
			(uint64_t)kind_size[kind].each * BTF_INFO_VLEN(t->info);
		if (size > f->types_len - pos) {
			note = err_new(EINVAL, "%s: type %u does not fit", name, btf_end(f));
			break;
		}
		if (f->n == cap) {
			cap += cap / 2;
			f->off = xrealloc(f->off, cap * sizeof(*f->off));
		}
		f->off[f->n++] = pos;
		pos += (uint32_t)size;
	}
	return note;
}

/* btf_open() for bytes in memory, which the caller owns. */
static struct err *btf_open_bytes(struct btf_file *f, const void *p, size_t n, const char *name,
				  const struct btf_file *base, struct err **ret_note)
{
	struct bytes b = bytes_of(p, n, name);
	uint32_t hdr_len, type_off, type_len, str_off, str_len;
	struct bytes types, strs;
	uint16_t magic;
	uint8_t version;

	memset(f, 0, sizeof(*f));
	magic = bytes_u16(&b);
	version = bytes_u8(&b);
	bytes_u8(&b);
	hdr_len = bytes_u32(&b);
	type_off = bytes_u32(&b);
	type_len = bytes_u32(&b);
	str_off = bytes_u32(&b);
	str_len = bytes_u32(&b);
	if (!bytes_ok(&b))
		return bytes_err(&b);
	if (magic != BTF_MAGIC)
		return err_new(EINVAL, "%s: not BTF of this machine's byte order", name);
	if (version != BTF_VERSION)
		return err_new(EINVAL, "%s: BTF version %u is not known here", name, version);
	if (hdr_len < HDR_LEN_MIN || hdr_len > n)
		return err_new(EINVAL, "%s: bad header length %u", name, hdr_len);
	types = bytes_slice(&b, (size_t)hdr_len + type_off, type_len);
	strs = bytes_slice(&b, (size_t)hdr_len + str_off, str_len);
	if (!bytes_ok(&types) || !bytes_ok(&strs))
		return err_new(EINVAL, "%s: a section lies outside the file", name);
	if ((uintptr_t)types.start % 4)
		return err_new(EINVAL, "%s: types are not aligned", name);
	if (str_len && strs.start[str_len - 1])
		return err_new(EINVAL, "%s: the last string does not end", name);
	f->data = p;
	f->len = n;
	f->base = base;
	f->types = types.start;
	f->types_len = type_len;
	f->strs = (const char *)strs.start;
	f->strs_len = str_len;
	f->first = base ? btf_end(base) : 1;
	*ret_note = scan(f, name);
	return NULL;
}

struct err *btf_open(struct btf_file *f, const char *path, const struct btf_file *base,
		     struct err **ret_note)
{
	struct mapped map;
	char *text = NULL;
	size_t n;
	struct err *e;

	/* Before 6.16 the kernel's file can be read but not mapped. Reading it also shows whether
	 * it is empty. */
	e = mapped_open(path, &map);
	if (e || !map.len) {
		if (e)
			err_free(e);
		else
			mapped_close(&map);
		e = io_read_file(path, &text, &n);
		if (e)
			return e;
		map = (struct mapped){ .p = text, .len = n, .fd = -1 };
	}
	e = btf_open_bytes(f, map.p, map.len, path, base, ret_note);
	if (!e && !text)
		e = mapped_check(&map, path);
	if (e) {
		if (text)
			free(text);
		else
			mapped_close(&map);
		return e;
	}
	f->mapped = !text;
	if (f->mapped) {
		close(map.fd); /* there may be hundreds of modules */
		map.fd = -1;
	}
	f->map = map;
	return NULL;
}

void btf_close(struct btf_file *f)
{
	if (f->mapped)
		mapped_close(&f->map);
	else
		free((void *)f->data);
	free(f->off);
	free(f->by_type.slots);
	free(f->by_symbol.slots);
	free(f->by_enumerator.slots);
	free(f->enumerators);
	memset(f, 0, sizeof(*f));
}

const struct btf_type *btf_type(const struct btf_file *f, uint32_t id)
{
	while (id < f->first && f->base)
		f = f->base;
	if (id < f->first || id >= btf_end(f))
		return NULL;
	return record(f, id - f->first);
}

const char *btf_str(const struct btf_file *f, uint32_t off)
{
	if (f->base) {
		if (off < f->base->strs_len)
			return f->base->strs + off;
		off -= f->base->strs_len;
	}
	return off < f->strs_len ? f->strs + off : "";
}

static uint32_t name_hash(const char *s)
{
	return (uint32_t)hash_bytes(s, strnlen(s, NAME_LIMIT));
}

static bool name_same(const char *a, const char *b)
{
	return !strncmp(a, b, NAME_LIMIT);
}

static void index_init(struct btf_index *ix, uint32_t n)
{
	uint32_t cap = 16;

	while (cap < n * 2ull)
		cap *= 2;
	ix->slots = xcalloc(cap, sizeof(*ix->slots));
	ix->mask = cap - 1;
}

static void index_build(struct btf_file *f, struct btf_index *ix, uint32_t kinds)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += !!(kinds & BTF_BIT(BTF_INFO_KIND(record(f, i)->info)));
	index_init(ix, n);
	for (uint32_t i = 0; i < f->n; i++) {
		const struct btf_type *t = record(f, i), *other;
		const char *name;
		uint32_t h, k;

		if (!t->name_off || !(kinds & BTF_BIT(BTF_INFO_KIND(t->info))))
			continue;
		name = btf_str(f, t->name_off);
		h = name_hash(name);
		for (k = h & ix->mask; ix->slots[k].id; k = (k + 1) & ix->mask) {
			/* Keep the first of several with one name. The others would only lengthen
			 * the chain. */
			if (ix->slots[k].hash != h)
				continue;
			other = btf_type(f, ix->slots[k].id);
			if (BTF_INFO_KIND(other->info) == BTF_INFO_KIND(t->info) &&
			    name_same(btf_str(f, other->name_off), name))
				break;
		}
		if (!ix->slots[k].id)
			ix->slots[k] = (struct btf_slot){ h, f->first + i };
	}
}

/* Finds the places of name in a string section, also as the end of a longer string. Returns false
 * when there are too many. */
static bool places_in(const struct btf_file *f, const char *name, uint32_t first,
		      struct name_places *ret)
{
	const char *s = f->strs, *end = s + f->strs_len;
	size_t len = strlen(name) + 1;

	while ((s = memmem(s, (size_t)(end - s), name, len))) {
		if (ret->n == PLACES_MAX)
			return false;
		ret->off[ret->n++] = first + (uint32_t)(s - f->strs);
		s++;
	}
	return true;
}

/* Looks a name up without an index: searches its bytes, then the records for one with the name.
 * Takes under a millisecond for vmlinux. Building the index takes 3 (types) to 5 (functions). */
static bool find_by_scan(const struct btf_file *f, uint32_t kinds, const char *name, uint32_t *ret)
{
	struct name_places p = { 0 };

	if ((f->base && !places_in(f->base, name, 0, &p)) ||
	    !places_in(f, name, f->base ? f->base->strs_len : 0, &p))
		return false;
	*ret = 0;
	for (uint32_t i = 0; p.n && i < f->n; i++) {
		const struct btf_type *t = record(f, i);

		for (uint32_t k = 0; k < p.n; k++) {
			if (t->name_off == p.off[k] && kinds & BTF_BIT(BTF_INFO_KIND(t->info))) {
				*ret = f->first + i;
				return true;
			}
		}
	}
	return true;
}

uint32_t btf_find(struct btf_file *f, uint32_t kinds, const char *name)
{
	struct btf_index *ix = kinds & SYMBOL_KINDS ? &f->by_symbol : &f->by_type;
	uint32_t h, found = 0;

	if (!*name || !f->data)
		return 0;
	if (!ix->mask) {
		if (ix->scans++ < SCANS_MAX && find_by_scan(f, kinds, name, &found))
			return found;
		index_build(f, ix, kinds & SYMBOL_KINDS ? SYMBOL_KINDS : TYPE_KINDS);
	}
	h = name_hash(name);
	for (uint32_t i = h & ix->mask; ix->slots[i].id; i = (i + 1) & ix->mask) {
		const struct btf_type *t;

		if (ix->slots[i].hash != h)
			continue;
		t = btf_type(f, ix->slots[i].id);
		if (kinds & BTF_BIT(BTF_INFO_KIND(t->info)) &&
		    name_same(btf_str(f, t->name_off), name) && (!found || ix->slots[i].id < found))
			found = ix->slots[i].id;
	}
	return found;
}

/* Returns an enumerator's name. btf_enum and btf_enum64 both begin with the name. */
static const char *enumerator_name(const struct btf_file *f, const struct btf_type *t, uint32_t nth)
{
	size_t each = kind_size[BTF_INFO_KIND(t->info)].each;
	const uint32_t *off = (const void *)((const uint8_t *)(t + 1) + nth * each);

	return btf_str(f, *off);
}

static const struct btf_enumerator *enumerator_in(const struct btf_file *f, uint32_t h,
						  const char *name, uint32_t *ret_slot)
{
	const struct btf_index *ix = &f->by_enumerator;
	uint32_t i;

	for (i = h & ix->mask; ix->slots[i].id; i = (i + 1) & ix->mask) {
		const struct btf_enumerator *e = &f->enumerators[ix->slots[i].id];

		if (ix->slots[i].hash == h &&
		    name_same(enumerator_name(f, btf_type(f, e->type), e->nth), name))
			return e;
	}
	*ret_slot = i;
	return NULL;
}

static void enumerators_build(struct btf_file *f)
{
	uint32_t n = 0, slot;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct btf_type *t = record(f, i);

		if (ENUM_KINDS & BTF_BIT(BTF_INFO_KIND(t->info)))
			n += BTF_INFO_VLEN(t->info);
	}
	index_init(&f->by_enumerator, n);
	f->enumerators = xmalloc((n + 1) * sizeof(*f->enumerators));
	f->nenumerators = 1; /* entry 0 is unused, because a slot with id 0 is free */
	for (uint32_t i = 0; i < f->n; i++) {
		const struct btf_type *t = record(f, i);

		if (!(ENUM_KINDS & BTF_BIT(BTF_INFO_KIND(t->info))))
			continue;
		for (uint32_t k = 0; k < BTF_INFO_VLEN(t->info); k++) {
			const char *name = enumerator_name(f, t, k);
			uint32_t h = name_hash(name);

			if (enumerator_in(f, h, name, &slot))
				continue;
			f->enumerators[f->nenumerators] =
				(struct btf_enumerator){ f->first + i, k };
			f->by_enumerator.slots[slot] = (struct btf_slot){ h, f->nenumerators++ };
		}
	}
}

bool btf_find_enumerator(struct btf_file *f, const char *name, uint32_t *ret_type,
			 uint32_t *ret_nth)
{
	const struct btf_enumerator *e;
	uint32_t slot;

	if (!*name || !f->data)
		return false;
	if (!f->by_enumerator.mask)
		enumerators_build(f);
	e = enumerator_in(f, name_hash(name), name, &slot);
	if (!e)
		return false;
	*ret_type = e->type;
	*ret_nth = e->nth;
	return true;
}
