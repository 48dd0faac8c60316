/* Finds functions and callers in libraries that dlopen(3) loads later. */
#include <elf.h>
#include <string.h>

#include "base/glob.h"
#include "calls/find_private.h"

struct later {
	struct finder *f;
	struct err *e;
	uint32_t n;
	/* of several libraries, only the one that defines its function */
	const struct calls_rule *rule;
};

static void take_later(void *arg, const struct process_object *po)
{
	struct later *l = arg;

	if (l->e || (l->n && !calls_rule_is_pattern(l->rule)))
		return;
	if (*l->rule->symbol && !calls_rule_is_pattern(l->rule) &&
	    !find_defines(po, l->rule->symbol))
		return;
	l->e = find_entries_of(l->f, po, false, &l->n);
}

struct err *find_later(struct finder *f, const struct calls_rule *r)
{
	struct later l = { .f = f, .rule = r };

	for (uint32_t k = 0; k < f->objects->n; k++) {
		const struct process_object *po = &f->objects->v[k];
		const struct calls_filter one = { .rules = { (struct calls_rule *)r, 1, 1 } };

		if (*r->symbol && !calls_rule_is_pattern(r)
			    ? object_find_name(po->object, r->symbol) &&
				      calls_filter_takes(&one, r->symbol, po)
			    : calls_filter_takes(&one, *r->symbol ? r->symbol : "x", po))
			return NULL;
	}
	if (calls_rule_is_pattern(r) && !*r->library)
		return NULL; /* a pattern only matches functions that exist */
	process_libraries(f->ps, f->pid, f->objects,
			  *r->library && !r->library_regex ? r->library : "lib*.so*", take_later,
			  &l);
	return l.e;
}

static void take_needed(void *arg, const struct process_object *po)
{
	struct finder *f = arg;

	vec_push(&f->needed, *po);
}

bool find_may_search(struct finder *f, const char *name)
{
	bool is_new = false;

	if (hash_get(&f->searched, name, strlen(name)))
		return false;
	f->cut |= f->searched.n == FIND_SEARCHES_MAX;
	if (!f->cut)
		(void)hash_put(&f->searched, name, strlen(name), &is_new);
	return is_new;
}

/* Finds a library by its name, if it is not loaded. */
static void search_needed(struct finder *f, const char *name)
{
	for (uint32_t k = 0; k < f->objects->n; k++)
		if (process_object_matches(&f->objects->v[k], name))
			return;
	if (!glob_is_pattern(name) && !strchr(name, '/'))
		process_libraries(f->ps, f->pid, f->objects, name, take_needed, f);
}

/* An object that is not loaded names libraries that it needs. Finds those of them that are not
 * loaded, either. */
static void find_needed(struct finder *f, const struct process_object *po)
{
	enum { NEEDED_MAX = 64, FILE_NAME_MAX = 256 };
	uint64_t addr;
	size_t size, nnames, left;
	cleanup_free uint8_t *p = object_section(po->object, ".dynamic", &addr, &size),
			     *names = object_section(po->object, ".dynstr", &addr, &nnames);
	Elf64_Dyn d;

	for (size_t i = 0, n = 0; p && names && i < size / sizeof(d) && n < NEEDED_MAX; i++) {
		const char *name;

		memcpy(&d, p + i * sizeof(d), sizeof(d));
		if (d.d_tag != DT_NEEDED || d.d_un.d_val >= nnames)
			continue;
		n++;
		name = (const char *)names + d.d_un.d_val;
		left = nnames - d.d_un.d_val;
		if (memchr(name, 0, left < FILE_NAME_MAX ? left : FILE_NAME_MAX) &&
		    find_may_search(f, name))
			search_needed(f, name);
	}
}

static void take_later_caller(void *arg, const struct process_object *po)
{
	struct later *l = arg;

	if (l->e || (l->n++ && !calls_rule_is_pattern(l->rule)))
		return;
	find_needed(l->f, po);
	l->e = find_calls_of(l->f, po, false);
}

struct err *find_later_caller(struct finder *f, const struct calls_rule *r)
{
	const struct calls_rule caller = { .library = r->library, .symbol = "" };
	const struct calls_filter one = { .rules = { (struct calls_rule *)&caller, 1, 1 } };
	struct later l = { .f = f, .rule = r };

	if (r->minus || r->main || !*r->library || r->library_regex)
		return NULL;
	for (uint32_t k = 0; k < f->objects->n; k++)
		if (calls_filter_takes(&one, "x", &f->objects->v[k]))
			return NULL;
	process_libraries(f->ps, f->pid, f->objects, r->library, take_later_caller, &l);
	return l.e;
}
