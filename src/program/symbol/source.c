/* Finds source lines and inlined functions, from DWARF by libdw: of the file itself, of its
 * separate debug file (by build-id or debuglink), or from a debuginfod server when DEBUGINFOD_URLS
 * is set. */
#include <dwarf.h>

#include "base/changed.h"
#include "base/sorted.h"
#include "program/object/dwarf.h"
#include "program/symbol/symbol_private.h"

struct debug_info {
	Dwfl *dwfl;
	Dwarf *dwarf; /* NULL: it has none */
	struct dwarf_copies copies;
	struct hash known; /* link-time address -> index in answers */
	VEC(struct answer) answers;
	VEC(struct source_place) places;
	VEC(struct unit_range) ranges; /* by start; see read_ranges() */
	bool ranges_read;
	struct hash units; /* offset of a unit's DIE -> index in lists */
	VEC(struct function_list) lists;
	uint32_t nfunctions; /* ranges of all lists */
	/* DIEs and their ranges that all queries together may still read. A file could be made so
	 * that each address takes as long as a whole unit. */
	uint64_t work;
	bool changed;  /* a file was changed while it was read: nothing is known of it */
	uint64_t used; /* symbols.uses at the last query */
};

/* Addresses of a unit, and the offset of its first DIE. */
struct unit_range {
	uint64_t start, end, unit;
};

/* Addresses of a function, and the offset of its DIE. */
struct function_range {
	uint64_t start, end, die;
};

/* The functions of a unit, by start. */
struct function_list {
	VEC(struct function_range) v;
};

struct answer {
	uint32_t first, n;
};

static struct debug_info *open_info(const struct object *o)
{
	struct debug_info *d = xcalloc(1, sizeof(*d));
	Dwarf_Addr bias;
	Dwfl_Module *m;

	/* The lines of another file would be wrong. */
	d->dwfl = object_is_at_path(o) ? dwfl_begin(&dwarf_callbacks) : NULL;
	if (!d->dwfl)
		return d;
	dwfl_report_begin(d->dwfl);
	m = dwarf_report(d->dwfl, "", object_path(o));
	dwfl_report_end(d->dwfl, NULL, NULL);
	if (m)
		d->dwarf = dwarf_of_module(m, &bias, &d->copies);
	return d;
}

static void forget_answers(struct debug_info *d)
{
	hash_fini(&d->known);
	vec_fini(&d->answers);
	vec_fini(&d->places);
}

/* Closes the file. The fact that it was read stays known. */
static void close_info(struct debug_info *d)
{
	if (d->dwfl)
		dwfl_end(d->dwfl);
	d->dwfl = NULL;
	d->dwarf = NULL;
	dwarf_copies_free(&d->copies);
	forget_answers(d);
	vec_fini(&d->ranges);
	for (uint32_t i = 0; i < d->lists.n; i++)
		vec_fini(&d->lists.v[i].v);
	vec_fini(&d->lists);
	hash_fini(&d->units);
}

static void free_info(struct debug_info *d)
{
	close_info(d);
	free(d);
}

void source_fini(struct symbols *s)
{
	uint32_t pos = 0;
	uint64_t *val;

	while (hash_next(&s->sources, &pos, NULL, NULL, &val))
		free_info((struct debug_info *)(uintptr_t)*val);
	hash_fini(&s->sources);
}

void source_forget(struct symbols *s)
{
	uint32_t pos = 0;
	uint64_t *val;

	while (hash_next(&s->sources, &pos, NULL, NULL, &val))
		forget_answers((struct debug_info *)(uintptr_t)*val);
}

void source_drop(struct symbols *s, const struct object *o)
{
	uint64_t *slot = hash_get(&s->sources, &o, sizeof(o));

	if (!slot)
		return;
	free_info((struct debug_info *)(uintptr_t)*slot);
	hash_del(&s->sources, &o, sizeof(o));
}

/* Drops the information of the file with the oldest last query. */
static void drop_oldest(struct symbols *s)
{
	const struct object *oldest = NULL;
	uint64_t *val, used = UINT64_MAX;
	uint32_t pos = 0;
	const void *key;

	while (hash_next(&s->sources, &pos, &key, NULL, &val)) {
		const struct debug_info *d = (const struct debug_info *)(uintptr_t)*val;

		if (d->used >= used)
			continue;
		used = d->used;
		memcpy(&oldest, key, sizeof(oldest));
	}
	source_drop(s, oldest);
}

static struct debug_info *info_of(struct symbols *s, const struct object *o)
{
	uint64_t *slot = hash_get(&s->sources, &o, sizeof(o));
	struct debug_info *d;

	if (!slot) {
		if (s->sources.n >= s->limits.sources)
			drop_oldest(s);
		d = open_info(o);
		d->work = s->limits.source_work;
		*hash_put(&s->sources, &o, sizeof(o), NULL) = (uintptr_t)d;
	} else {
		d = (struct debug_info *)(uintptr_t)*slot;
	}
	d->used = ++s->uses;
	return d;
}

enum { FILE_NAME_MAX = 255 /* bytes, as filesystems have it; #line may give any name */ };

static const char *base_name(struct symbols *s, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	path = slash ? slash + 1 : path;
	return path && *path
		       ? intern_text(&s->names, symbols_name(s, path, strlen(path), FILE_NAME_MAX))
		       : NULL;
}

static const char *die_name(struct symbols *s, Dwarf_Die *die)
{
	static const unsigned names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };
	Dwarf_Attribute a;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *name = dwarf_formstring(dwarf_attr_integrate(die, names[i], &a));

		if (name)
			return symbols_demangle(s, name);
	}
	return NULL;
}

/* Finds the line from which an inlined function was called. The file is an index into its unit's
 * file table. */
static void call_site(struct symbols *s, Dwarf_Die *cu, Dwarf_Die *inlined,
		      struct source_place *ret)
{
	Dwarf_Word file = 0, line = 0;
	Dwarf_Attribute a;
	Dwarf_Files *files;
	size_t n;

	ret->file = NULL;
	ret->line = 0;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &a), &line) ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &a), &file) ||
	    dwarf_getsrcfiles(cu, &files, &n) || file >= n)
		return;
	ret->file = base_name(s, dwarf_filesrc(files, file, NULL, NULL));
	ret->line = (uint32_t)line;
}

enum {
	SCOPES_MAX = 64,
	RANGES_MAX = 4 << 20, /* kept; a browser has a million */
	RANGES_READ = 16 << 20,
	BACK_MAX = 64, /* ranges that lie within another */
};

/* Counts a step of reading. Returns false when there were too many. */
static bool may_work(struct debug_info *d)
{
	if (!d->work)
		return false;
	d->work--;
	return true;
}

struct scopes {
	Dwarf_Die die[SCOPES_MAX]; /* functions, outermost first */
	uint32_t n;
};

static bool has_address(struct debug_info *d, Dwarf_Die *die, uint64_t addr)
{
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0 && may_work(d))
		if (start <= addr && addr < end)
			return true;
	return false;
}

/* Finds the inlined functions below a function's DIE that contain addr. dwarf_getscopes() is no
 * help: from an inlined function it continues at the place where the function was written, not
 * where it was inlined. */
static void find_inlined(struct debug_info *d, Dwarf_Die *die, uint64_t addr, struct scopes *sc,
			 uint32_t depth)
{
	Dwarf_Die child;

	if (depth > SCOPES_MAX || dwarf_child(die, &child))
		return;
	do {
		int tag = dwarf_tag(&child);

		if (!may_work(d))
			return;
		if ((tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine &&
		     tag != DW_TAG_lexical_block) ||
		    !has_address(d, &child, addr))
			continue;
		if (tag != DW_TAG_lexical_block && sc->n < SCOPES_MAX)
			sc->die[sc->n++] = child;
		find_inlined(d, &child, addr, sc, depth + 1);
		return;
	} while (!dwarf_siblingof(&child, &child));
}

static void add_function(struct debug_info *d, struct function_list *l, Dwarf_Die *die)
{
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0 && may_work(d)) {
		if (start >= end || d->nfunctions == RANGES_MAX)
			continue;
		vec_push(&l->v, (struct function_range){ start, end, dwarf_dieoffset(die) });
		d->nfunctions++;
	}
}

static void list_functions(struct debug_info *d, struct function_list *l, Dwarf_Die *die,
			   uint32_t depth)
{
	Dwarf_Die child;

	if (depth > SCOPES_MAX || dwarf_child(die, &child))
		return;
	do {
		if (!may_work(d))
			return;
		switch (dwarf_tag(&child)) {
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type: list_functions(d, l, &child, depth + 1); break;
		case DW_TAG_subprogram: add_function(d, l, &child); break;
		default: break;
		}
	} while (!dwarf_siblingof(&child, &child));
}

static int compare_function(const void *pa, const void *pb)
{
	const struct function_range *a = pa, *b = pb;

	return COMPARE(a->start, b->start) ?: COMPARE(a->end, b->end);
}

/* Returns the functions of a unit. The first query of the unit reads them. */
static const struct function_list *functions_of(struct debug_info *d, Dwarf_Die *cu)
{
	uint64_t unit = dwarf_dieoffset(cu), *slot;
	struct function_list l = { 0 };
	bool is_new;

	slot = hash_put(&d->units, &unit, sizeof(unit), &is_new);
	if (is_new) {
		list_functions(d, &l, cu, 0);
		if (l.v.n)
			qsort(l.v.v, l.v.n, sizeof(*l.v.v), compare_function);
		*slot = d->lists.n;
		vec_push(&d->lists, l);
	}
	return &d->lists.v[*slot];
}

/* Finds the function of the unit that contains addr, and those inlined there. */
static void find_scopes(struct debug_info *d, Dwarf_Die *cu, uint64_t addr, struct scopes *sc)
{
	const struct function_list *l = functions_of(d, cu);
	uint32_t lo = partition_point(l->v.n, i, l->v.v[i].start <= addr);

	for (uint32_t i = lo; i && lo - i < BACK_MAX; i--) {
		Dwarf_Die *die = &sc->die[0];

		if (addr >= l->v.v[i - 1].end)
			continue;
		if (!dwarf_offdie(d->dwarf, l->v.v[i - 1].die, die))
			return;
		sc->n = 1;
		find_inlined(d, die, addr, sc, 0);
		return;
	}
}

/* Returns true unless the other half of a split unit (.dwo) is missing. libdw opens it by a path in
 * the file. The skeleton's lines are here. */
static bool is_whole(Dwarf_Die *cu)
{
	uint8_t kind;

	return !dwarf_cu_info(cu->cu, NULL, &kind, NULL, NULL, NULL, NULL, NULL) &&
	       (kind == DW_UT_compile || kind == DW_UT_partial || kind == DW_UT_skeleton);
}

static int compare_start(const void *pa, const void *pb)
{
	const struct unit_range *a = pa, *b = pb;

	return COMPARE(a->start, b->start) ?: COMPARE(a->end, b->end);
}

/* Reads the units' own ranges, because .debug_aranges may be missing (clang) or lack units.
 * Functions dropped by the linker keep their ranges, from 0 on. These are not in the text. */
static void read_ranges(struct debug_info *d, const struct object *o)
{
	uint32_t seen = 0;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	d->ranges_read = true;
	while (!dwarf_get_units(d->dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		Dwarf_Addr base = 0, start, end;
		ptrdiff_t at = 0;

		if (!die.addr || !is_whole(&die))
			continue;
		while ((at = dwarf_ranges(&die, at, &base, &start, &end)) > 0) {
			if (++seen > RANGES_READ || d->ranges.n == RANGES_MAX)
				goto sort;
			if (start < end && object_is_text(o, start))
				vec_push(&d->ranges,
					 (struct unit_range){ start, end, dwarf_dieoffset(&die) });
		}
	}
sort:
	if (d->ranges.n)
		qsort(d->ranges.v, d->ranges.n, sizeof(*d->ranges.v), compare_start);
}

static bool find_unit(struct debug_info *d, const struct object *o, uint64_t addr, Dwarf_Die *ret)
{
	uint32_t lo;

	if (dwarf_addrdie(d->dwarf, addr, ret))
		return is_whole(ret);
	if (!d->ranges_read)
		read_ranges(d, o);
	lo = partition_point(d->ranges.n, i, d->ranges.v[i].start <= addr);
	for (uint32_t i = lo; i && lo - i < BACK_MAX; i--)
		if (addr < d->ranges.v[i - 1].end)
			return dwarf_offdie(d->dwarf, d->ranges.v[i - 1].unit, ret);
	return false;
}

static void find_places(struct symbols *s, struct debug_info *d, const struct object *o,
			uint64_t addr)
{
	struct source_place p = { 0 };
	struct scopes sc = { .n = 0 };
	Dwarf_Die cu;
	Dwarf_Line *line;
	int number;

	if (!find_unit(d, o, addr, &cu))
		return;
	find_scopes(d, &cu, addr, &sc);
	if (!may_work(d))
		return;
	line = dwarf_getsrc_die(&cu, addr);
	if (line && !dwarf_lineno(line, &number)) {
		p.file = base_name(s, dwarf_linesrc(line, NULL, NULL));
		p.line = (uint32_t)number;
	}
	while (sc.n) {
		Dwarf_Die *die = &sc.die[--sc.n];

		p.function = die_name(s, die);
		p.inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
		vec_push(&d->places, p);
		if (!p.inlined)
			return;
		call_site(s, &cu, die, &p);
	}
	/* An address in a line but in no function: assembly. */
	if (p.file) {
		p.function = NULL;
		p.inlined = false;
		vec_push(&d->places, p);
	}
}

uint32_t symbols_source(struct symbols *s, pid_t pid, uint64_t time, uint64_t addr,
			const struct source_place **ret)
{
	uint64_t link_addr;
	struct object *o = process_object(s, pid, time, addr, &link_addr);

	return o ? object_source(s, o, link_addr, ret) : 0;
}

uint32_t object_source(struct symbols *s, const struct object *o, uint64_t link_addr,
		       const struct source_place **ret)
{
	uint64_t changed = changed_count(), *known;
	struct debug_info *d = info_of(s, o);
	bool is_new;

	d->changed |= changed_count() != changed;
	if (d->changed || !d->dwarf) {
		s->losses.changed += d->changed;
		return 0;
	}
	known = hash_put(&d->known, &link_addr, sizeof(link_addr), &is_new);
	if (is_new) {
		struct answer a = { .first = d->places.n };

		find_places(s, d, o, link_addr);
		if (changed_count() != changed) {
			close_info(d);
			d->changed = true;
			s->losses.changed++;
			return 0;
		}
		s->losses.limited += !may_work(d);
		a.n = d->places.n - a.first;
		*known = d->answers.n;
		vec_push(&d->answers, a);
	}
	/* Without any answer there is no list. */
	*ret = d->places.n ? &d->places.v[d->answers.v[*known].first] : NULL;
	return d->answers.v[*known].n;
}
