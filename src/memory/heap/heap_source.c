/* The sources of heaps in one table, and how a heap is read through it. */
#include "memory/heap/heap.h"

#include <errno.h>
#include <zlib.h>

#include "memory/copy/memory_copy.h"
#include "program/runtime/runtime.h"
#include "program/space/space.h"

#define SOURCE(name) &heap_source_##name,
static const struct heap_source *const heap_sources[] = {
#include "memory/heap/sources.def"
	NULL,
};
#undef SOURCE

enum { HEAD = 4096 };

/* Reads the first bytes of a file, unpacked when it is gzip. */
static struct err *read_head(const char *path, uint8_t *head, size_t *ret_n)
{
	gzFile f = gzopen(path, "rb");
	int n;

	if (!f)
		return err_errno(errno ?: ENOMEM, "%s", path);
	n = gzread(f, head, HEAD);
	*ret_n = n > 0 ? (size_t)n : 0;
	gzclose_r(f);
	return n < 0 ? err_new(EIO, "%s: cannot be read", path) : NULL;
}

static struct err *heap_finish(struct err *e, struct graph *g, struct graph **ret)
{
	e = e ?: graph_finish(g);
	if (e)
		graph_free(g);
	else
		*ret = g;
	return e;
}

struct err *heap_read_file(const char *path, const struct graph_wanted *w, struct graph **ret,
			   const struct heap_source **ret_source)
{
	/* a file can have an object twice, which only a whole graph finds out */
	const struct graph_wanted whole = { .labels = w->labels,
					    .contents = w->contents,
					    .values = w->values,
					    .memory = w->memory };
	uint8_t head[HEAD];
	size_t n = 0;
	struct err *e = read_head(path, head, &n);

	if (e)
		return e;
	for (const struct heap_source *const *s = heap_sources; *s; s++) {
		struct graph *g;

		if (!(*s)->is_file || !(*s)->is_file(head, n))
			continue;
		g = graph_new(&whole);
		*ret_source = *s;
		e = heap_finish((*s)->read_file(path, g), g, ret);
		return e ? err_wrap(e, "%s", path) : NULL;
	}
	return err_new(ENOEXEC, "%s: not a heap dump that descry reads", path);
}

/* Finds the source of a space's heap. ENOENT: there is no interpreter whose heap descry reads. */
static struct err *find_source(struct space *s, const struct heap_source **ret)
{
	const struct memory_copy nothing = { 0 };
	struct space *cached = memory_copy_space(&nothing, s);
	struct runtime *r = NULL;
	struct err *e = runtime_find(cached, &r);

	*ret = NULL;
	for (const struct heap_source *const *i = heap_sources; !e && r && *i; i++)
		if ((*i)->runtime && (*i)->runtime == r->type)
			*ret = *i;
	/* a program without a language's heap has that of malloc(3) */
	if (!e && !r)
		*ret = &heap_source_native;
	if (!e && !*ret)
		e = err_new(ENOENT, "%s: no language runtime whose heap descry reads", s->name);
	runtime_free(r);
	space_free(cached);
	return e;
}

static void look_at(const struct heap_look *look, const struct memory_copy *copy, struct space *s,
		    struct graph *g)
{
	struct space *copied = memory_copy_space(copy, s);

	look->look(look->arg, copied, g);
	space_free(copied);
}

struct err *heap_read_space(struct space *s, struct memory_stop *p, const struct graph_wanted *w,
			    struct graph **ret, const struct heap_source **ret_source)
{
	return heap_read_looking(s, p, w, NULL, ret, ret_source);
}

struct err *heap_read_looking(struct space *s, struct memory_stop *p, const struct graph_wanted *w,
			      const struct heap_look *look, struct graph **ret,
			      const struct heap_source **ret_source)
{
	const struct heap_source *source;
	struct err *e = find_source(s, &source);
	struct graph *g;
	struct memory_copy *copy = NULL;

	if (e)
		return e;
	*ret_source = source;
	e = memory_copy_stopped(p, s, source->files, &copy);
	if (e)
		return err_wrap(e, "%s", s->name);
	g = graph_new(w);
	e = heap_finish(source->read_copy(copy, s, g), g, ret);
	if (look)
		look_at(look, copy, s, e ? NULL : *ret);
	memory_copy_free(copy);
	return e ? err_wrap(e, "%s", s->name) : NULL;
}
