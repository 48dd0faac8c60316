/* Finds the interpreter in an address space. */
#include "program/runtime/runtime.h"

#include <elf.h>
#include <errno.h>

#include "base/path.h"
#include "program/object/object.h"

static const struct runtime_type *const types[] = { &runtime_python, &runtime_ruby, &runtime_jvm,
						    &runtime_v8 };

/* Returns true for the mapping of the program's own text: it holds the entry point. */
static bool is_program(struct space *s, const struct mapping *m)
{
	uint64_t entry = space_auxv(s, AT_ENTRY);

	return entry >= m->start && entry < m->end;
}

static struct err *open_mapping(struct space *s, const struct mapping *m,
				const struct runtime_type *type, struct runtime **ret)
{
	cleanup_free char *path = space_open_path(s, m);
	struct object *o = NULL;
	uint64_t addr;
	struct err *e;

	if (!path)
		return NULL;
	err_free(object_open(path, &o)); /* an unreadable file is no interpreter */
	if (!o)
		return NULL;
	if (!object_text_mapping_addr(o, m->offset, &addr)) {
		object_free(o);
		return NULL;
	}
	e = type->open(s, o, m->start - addr, ret);
	if (!*ret)
		object_free(o);
	return e;
}

bool runtime_is_library(const char *path)
{
	for (uint32_t k = 0; k < ARRAY_SIZE(types); k++)
		if (types[k]->wire && types[k]->is_library(path_base(path)))
			return true;
	return false;
}

bool runtime_is_program(const char *path)
{
	for (uint32_t k = 0; k < ARRAY_SIZE(types); k++)
		if (types[k]->wire && types[k]->program &&
		    !strcmp(path_base(path), types[k]->program))
			return true;
	return false;
}

static bool is_wanted(struct space *s, const struct mapping *m, const struct runtime_type *type,
		      bool met)
{
	if (type->is_library(path_base(m->path)))
		return !met || type->wire;
	return !met && is_program(s, m);
}

/* A process can map files with such names as often as it likes. */
enum {
	FILES_TRIED = 16,
	MAPPINGS_TRIED = 4, /* of a file */
	/* Reads of the process, in all its files. */
	READS_MAX = 500000,
	READS_MET_MAX = 200000,
	/* Their time in all: pages of userfaultfd(2) or FUSE may come as late as the process likes.
	 * It is a hundred times what a search takes. */
	FIND_MS = 5000,
	FIND_MET_MS = 2000,
};

struct tried {
	const char *path;
	uint64_t inode; /* 0: not known */
	uint32_t n;
};

/* Returns true when the mapping's file may be opened, and counts that. */
static bool may_try(struct tried tried[FILES_TRIED], const struct mapping *m)
{
	for (uint32_t i = 0; i < FILES_TRIED; i++) {
		struct tried *t = &tried[i];

		if (!t->n)
			*t = (struct tried){ m->path, m->inode, 0 };
		if (t->inode == m->inode && !strcmp(t->path, m->path))
			return t->n++ < MAPPINGS_TRIED;
	}
	return false;
}

static bool is_any_wanted(struct space *s, const struct mapping *m, bool met)
{
	bool any = false;

	for (uint32_t k = 0; k < ARRAY_SIZE(types) && !any; k++)
		any = is_wanted(s, m, types[k], met);
	return any;
}

/* met: as runtime_find_met(). */
static struct err *find(struct space *s, bool met, struct runtime **ret)
{
	struct tried tried[FILES_TRIED] = { 0 };
	const struct mappings *maps;
	struct err *e = space_mappings(s, 0, &maps);
	const struct space_limit outer =
		space_limit_within(s, met ? READS_MET_MAX : READS_MAX, met ? FIND_MET_MS : FIND_MS);

	*ret = NULL;
	for (uint32_t i = 0; !e && !*ret && !space_is_spent(s) && i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		if (!m->exec || !m->path || m->path[0] != '/' || !is_any_wanted(s, m, met) ||
		    !may_try(tried, m))
			continue;
		for (uint32_t k = 0; !e && !*ret && k < ARRAY_SIZE(types); k++)
			if (is_wanted(s, m, types[k], met))
				e = open_mapping(s, m, types[k], ret);
	}
	if (!space_limit_end(s, &outer) || *ret)
		return e;
	err_free(e);
	return err_new(
		E2BIG,
		"%s: no interpreter is found in %d reads of its memory, or in %d seconds of them: "
		"its structures are damaged, or made to look like one",
		s->name, met ? READS_MET_MAX : READS_MAX, (met ? FIND_MET_MS : FIND_MS) / 1000);
}

struct err *runtime_find(struct space *s, struct runtime **ret)
{
	return find(s, false, ret);
}

struct err *runtime_find_met(struct space *s, size_t *budget, struct runtime **ret)
{
	struct err *e = find(s, true, ret);

	if (*ret)
		(*ret)->budget = budget;
	return e;
}

bool runtime_afford(struct runtime *r, size_t *own, size_t n)
{
	size_t *budget = r->budget ?: own;

	if (n > *budget) {
		r->spent = true;
		return false;
	}
	*budget -= n;
	return true;
}

void runtime_frames(struct runtime *r, const struct space_thread *t, runtime_frame_vec *ret)
{
	if (r->type->frames)
		r->type->frames(r, t, ret);
}

static bool step(void *arg, struct unwind_cursor *c)
{
	const struct runtime_walk *w = arg;
	bool mine = w->runtime->type->step(w->runtime, w->thread, c, w->ret);

	if (w->ret->n > w->end)
		w->ret->n = w->end;
	return mine;
}

struct unwind_code runtime_code(struct runtime_walk *w)
{
	if (!w->runtime || !w->runtime->type->step)
		return (struct unwind_code){ 0 };
	w->end = w->ret->n + RUNTIME_FRAMES_MAX;
	return (struct unwind_code){ step, w };
}

void runtime_free(struct runtime *r)
{
	if (r)
		r->type->free(r);
}
