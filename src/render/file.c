/* The output of results: the first file, or the file that freopen() named. */
#include "render/render.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/outfile.h"
#include "base/term.h"

struct err *output_reopen(struct sink *s, struct output *of, struct out *o, const char *path)
{
	struct err *e = out_flush(o);
	FILE *f = NULL;

	if (e)
		return e;
	if (!of->first)
		of->first = s->out;
	if (*path) {
		/* Keeps the present file when the new one cannot be opened. */
		f = term_file(outfile_append(path, OUTFILE_SHARED));
		if (!f)
			return err_errno(errno, "couldn't freopen() \"%s\"", path);
	}
	if (of->other)
		fclose(of->other);
	of->other = f;
	s->out = o->file = f ? f : of->first;
	return NULL;
}

struct err *output_truncate(struct out *o)
{
	struct err *e = out_flush(o);
	struct stat st;
	int fd = fileno(o->file);

	if (e)
		return e;
	/* A pipe or a terminal cannot be truncated. */
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return NULL;
	if (ftruncate(fd, 0))
		return err_errno(errno, "ftruncate()");
	fseeko(o->file, 0, SEEK_SET);
	return NULL;
}

void output_fini(struct sink *s, struct output *of)
{
	if (of->other) {
		fclose(of->other);
		s->out = of->first;
	}
	*of = (struct output){ 0 };
}
