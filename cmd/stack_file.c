/* Writes stacks to the file of -o, for `descry flame`, `profile`, `heap` and `malloc`. */
#include "stack_file.h"

#include "base/mem.h"
#include "tool.h"

struct err *stack_file_write(const char *path, bool is_private, const struct stack_writer *w,
			     struct stack_output *output)
{
	const char *name = path ?: "standard output";
	cleanup_free char *remark = NULL;
	struct err *e = stack_output_fit(w, output, &remark);
	struct out o;
	FILE *file;

	if (e)
		return err_wrap(e, "%s", name);
	if (remark)
		tool_wrong("%s: %s", name, remark);
	e = (is_private ? tool_out_begin_private : tool_out_begin)(&o, path, &file);
	if (e)
		return e;
	w->write(output, &o);
	return tool_out_end(&o, path, file);
}
