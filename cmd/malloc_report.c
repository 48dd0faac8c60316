/* descry malloc report: what a recording comes to. */
#include "malloc.h"

#include "memory/alloc/alloc_report.h"
#include "stack_file.h"
#include "tool.h"

/* Writes the stacks to the file of -o, in the form that its name ends with. */
static int write_stacks(const struct malloc_options *o, const struct alloc_report *r,
			const struct alloc_trace *t)
{
	enum report_of of = o->of ? report_of_named(o->of) : REPORT_BYTES;
	const struct stack_writer *w = stack_writer_of(o->path);
	const bool blocks = report_of_blocks(of);
	cleanup_free char *title = xasprintf("Allocations: %s", report_of_name(of));
	const struct flame_options picture = { .title = title,
					       .subtitle = o->words[0],
					       .count_name = blocks ? "blocks" : "bytes",
					       .palette = FLAME_MEM };
	const struct profile_about about = { .title = title,
					     .type = "space",
					     .unit = blocks ? "count" : "bytes" };
	struct stack_output output = { .picture = &picture, .about = &about };
	struct stacktree tree;
	struct err *e;
	int status = 0;

	if (!w)
		w = stack_writer_named("folded");
	stacktree_init(&tree);
	alloc_report_tree(r, t, of, &tree);
	output.tree = &tree;
	e = stack_file_write(o->path, false, w, &output);
	if (e)
		status = tool_failed(e);
	err_free(e);
	stacktree_fini(&tree);
	return status;
}

static int malloc_report_print(const struct malloc_options *o, const struct alloc_report *r,
			       const struct alloc_trace *t)
{
	struct out out;
	struct err *e;
	int status = 0;

	out_init(&out, stdout);
	if (o->json)
		alloc_report_json(r, t, o->words[0], o->most, &out);
	else
		alloc_report_print(r, t, o->words[0], o->most, &out);
	e = out_flush(&out);
	if (e)
		status = tool_failed(e);
	err_free(e);
	out_fini(&out);
	return status;
}

/* Returns true when the report is an HTML page: -o names a file that ends in .html, and --of does
 * not select one flame graph. */
static bool is_page(const struct malloc_options *o)
{
	size_t n = o->path ? strlen(o->path) : 0;

	return n > 5 && !strcmp(o->path + n - 5, ".html") && !o->of;
}

static int write_page(const struct malloc_options *o, const struct alloc_report *r,
		      const struct alloc_trace *t)
{
	FILE *file = NULL;
	struct out out;
	struct err *e = tool_out_begin(&out, o->path, &file);
	int status = 0;

	if (!e) {
		alloc_report_page(r, t, o->words[0], &out);
		e = tool_out_end(&out, o->path, file);
	}
	if (e)
		status = tool_failed(e);
	err_free(e);
	return status;
}

int malloc_report(struct malloc_options *o)
{
	struct alloc_trace *t = NULL;
	struct alloc_report *r = NULL;
	struct err *e;
	int status;

	if (o->nwords != 1)
		return tool_wrong("which recording? one FILE of descry malloc record");
	if (o->of && report_of_named(o->of) == REPORT_NOF)
		return tool_wrong("--of wants bytes, count, peak, end, temporary or mapped, not %s",
				  o->of);
	e = alloc_open(o->words[0], o->salvage, &t);
	e = e ?: alloc_report_make(t, &r);
	if (e) {
		status = tool_failed(e);
	} else {
		if (t->cut)
			tool_wrong("%s", t->cut);
		status = is_page(o) ? write_page(o, r, t)
			 : o->path  ? write_stacks(o, r, t)
				    : malloc_report_print(o, r, t);
	}
	err_free(e);
	alloc_report_free(r);
	alloc_close(t);
	return status;
}
