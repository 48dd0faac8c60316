/* descry malloc diff: what differs between two recordings. */
#include "malloc.h"

#include "memory/alloc/alloc_report.h"
#include "tool.h"

static struct err *malloc_diff_print(const struct malloc_options *o,
				     const struct report_side side[2], enum report_of of)
{
	struct out out;
	struct err *e;

	out_init(&out, stdout);
	if (o->json)
		alloc_diff_json(side, of, o->most, &out);
	else
		alloc_diff_print(side, of, o->most, &out);
	e = out_flush(&out);
	out_fini(&out);
	return e;
}

int malloc_diff(struct malloc_options *o)
{
	enum report_of of = o->of ? report_of_named(o->of) : REPORT_BYTES;
	struct alloc_trace *t[2] = { NULL, NULL };
	struct alloc_report *r[2] = { NULL, NULL };
	struct report_side side[2];
	struct err *e = NULL;
	int status = 0;

	if (o->nwords != 2)
		return tool_wrong("which recordings? two FILEs of descry malloc record");
	if (of == REPORT_NOF)
		return tool_wrong("--of wants bytes, count, peak, end, temporary or mapped, not %s",
				  o->of);
	if (o->path)
		return tool_wrong("diff has no -o: --json, or the shell's redirection");
	for (int i = 0; i < 2 && !e; i++) {
		e = alloc_open(o->words[i], o->salvage, &t[i]);
		e = e ?: alloc_report_make(t[i], &r[i]);
		if (!e && t[i]->cut)
			tool_wrong("%s", t[i]->cut);
		side[i] = (struct report_side){ r[i], t[i], o->words[i] };
	}
	e = e ?: malloc_diff_print(o, side, of);
	if (e)
		status = tool_failed(e);
	err_free(e);
	for (int i = 0; i < 2; i++) {
		alloc_report_free(r[i]);
		alloc_close(t[i]);
	}
	return status;
}
