/* The table of the forms in which a stack tree is written, and the search by name and suffix. */
#include "render/writers.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "render/folded.h"
#include "render/stacksink.h"

static void write_text(const struct stack_output *w, struct out *o)
{
	tree_write(w->tree, w->min, o);
}

static void write_folded(const struct stack_output *w, struct out *o)
{
	folded_write(w->tree, w->name_most ?: FOLDED_WHOLE, o);
}

static void write_json(const struct stack_output *w, struct out *o)
{
	if (w->json)
		w->json(w->arg, w->tree, o);
	else
		stacktree_json(w->tree, o);
}

static void write_svg(const struct stack_output *w, struct out *o)
{
	struct flame_result result = { 0 };

	svg_write(w->tree, w->picture, o, &result);
}

static void write_html(const struct stack_output *w, struct out *o)
{
	struct flame_result result = { 0 };

	html_write(w->tree, w->picture, o, &result);
}

static void write_pprof(const struct stack_output *w, struct out *o)
{
	render_pprof(o, w->tree, w->about);
}

static void write_speedscope(const struct stack_output *w, struct out *o)
{
	render_speedscope(o, w->tree, w->about);
}

/* The first whose suffix fits: .speedscope.json comes before .json. */
static const struct stack_writer writers[] = {
	{ "text", { NULL }, .lines = true, .write = write_text },
	{ "folded", { ".folded" }, .lines = true, .write = write_folded },
	{ "speedscope",
	  { ".speedscope.json" },
	  .colored = true,
	  .module = true,
	  .write = write_speedscope },
	{ "json", { ".json" }, .write = write_json },
	{ "svg", { ".svg" }, .colored = true, .write = write_svg },
	{ "html", { ".html", ".htm" }, .colored = true, .write = write_html },
	{ "pprof", { ".pb.gz", ".pprof" }, .colored = true, .module = true, .write = write_pprof },
};

const struct stack_writer *stack_writer_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++)
		if (!strcmp(writers[i].name, name))
			return &writers[i];
	return NULL;
}

static bool ends(const char *s, const char *tail)
{
	size_t n = strlen(s), m = strlen(tail);

	return n >= m && !strcmp(s + n - m, tail);
}

const struct stack_writer *stack_writer_of(const char *path)
{
	for (size_t i = 0; path && i < ARRAY_SIZE(writers); i++)
		for (const char *const *tail = writers[i].suffixes; *tail; tail++)
			if (ends(path, *tail))
				return &writers[i];
	return NULL;
}

struct err *stack_output_fit(const struct stack_writer *w, struct stack_output *o,
			     char **ret_remark)
{
	const uint64_t most = STACKTREE_TEXT_OWN + o->given * STACKTREE_TEXT_PER_BYTE;

	*ret_remark = NULL;
	if (w->write != write_folded)
		return NULL;
	o->name_most = folded_name_most(o->tree, most);
	if (!o->name_most)
		return err_new(E2BIG,
			       "the stacks would be %llu MB of folded text, and %llu MB with names "
			       "that are cut after %d bytes, of at most %llu MB: .svg, .html and "
			       ".json have each part of the stacks once",
			       (unsigned long long)(folded_size(o->tree, FOLDED_WHOLE) >> 20),
			       (unsigned long long)(folded_size(o->tree, FOLDED_SHORTEST) >> 20),
			       FOLDED_SHORTEST, (unsigned long long)(most >> 20));
	if (o->name_most != FOLDED_WHOLE)
		*ret_remark = xasprintf(
			"the stacks would be %llu MB of folded text, of at most %llu MB: names are "
			"cut after %u bytes; .svg, .html and .json have each part of the stacks "
			"once",
			(unsigned long long)(folded_size(o->tree, FOLDED_WHOLE) >> 20),
			(unsigned long long)(most >> 20), o->name_most);
	return NULL;
}
