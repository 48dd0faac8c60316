#define _GNU_SOURCE
#include "render/stackin/stackin.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "render/stackin/reader.h"

enum {
	BLOCK = 512 * 1024,       /* a read: small enough to stay in the cache while it is parsed */
	RECOGNISE_MAX = 64 * 1024 /* bytes looked at to see the format */
};

static const struct stackin_reader *const readers[STACKIN_NFORMATS] = {
	[STACKIN_FOLDED] = &stackin_folded,       [STACKIN_PERF] = &stackin_perf,
	[STACKIN_BPFTRACE] = &stackin_bpftrace,   [STACKIN_DTRACE] = &stackin_dtrace,
	[STACKIN_SYSTEMTAP] = &stackin_systemtap,
};

const char *stackin_format_name(enum stackin_format f)
{
	return f > STACKIN_AUTO && f < STACKIN_NFORMATS ? readers[f]->name : NULL;
}

enum stackin_format stackin_format_named(const char *name)
{
	for (int f = STACKIN_AUTO + 1; f < STACKIN_NFORMATS; f++)
		if (!strcmp(readers[f]->name, name))
			return (enum stackin_format)f;
	return STACKIN_AUTO;
}

void stackin_init(struct stackin *in, struct stacktree *tree, const struct stackin_options *o)
{
	*in = (struct stackin){ .tree = tree };
	if (o)
		in->options = *o;
}

void stackin_fini(struct stackin *in)
{
	if (in->reader && in->reader->fini)
		in->reader->fini(in);
	free(in->state);
	free(in->event);
	vec_fini(&in->rest);
	in->reader = NULL;
	in->state = NULL;
}

void stackin_skip(struct stackin *in)
{
	if (!in->skipped++)
		in->first_skipped = in->lines;
}

uint64_t stackin_scale(const struct stackin *in, uint64_t count)
{
	double v;

	if (in->options.factor == 0 || in->options.factor == 1)
		return count;
	v = round((double)count * in->options.factor);
	return v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
}

static void start(struct stackin *in, const char *text, size_t len)
{
	uint32_t best = 0;

	in->format = in->options.format;
	if (in->format == STACKIN_AUTO) {
		in->format = STACKIN_FOLDED;
		for (int f = STACKIN_AUTO + 1; f < STACKIN_NFORMATS; f++) {
			uint32_t n = readers[f]->recognise(text, len);

			if (n > best) {
				best = n;
				in->format = (enum stackin_format)f;
			}
		}
	}
	in->reader = readers[in->format];
	in->state = xcalloc(1, in->reader->state_size);
}

static void keep(struct stackin *in, const char *text, size_t len)
{
	vec_reserve(&in->rest, len);
	if (len)
		memcpy(in->rest.v + in->rest.n, text, len);
	in->rest.n += (uint32_t)len;
}

void stackin_feed(struct stackin *in, const char *text, size_t len)
{
	const char *nl, *last;

	if (!in->reader) {
		if (in->rest.n + len < RECOGNISE_MAX) {
			keep(in, text, len);
			return;
		}
		if (in->rest.n) {
			size_t more = RECOGNISE_MAX - in->rest.n;

			keep(in, text, more);
			start(in, in->rest.v, in->rest.n);
			text += more;
			len -= more;
		} else {
			start(in, text, RECOGNISE_MAX);
		}
	}
	if (in->rest.n) {
		nl = memchr(text, '\n', len);
		if (!nl) {
			keep(in, text, len);
			return;
		}
		keep(in, text, (size_t)(nl + 1 - text));
		in->reader->lines(in, in->rest.v, in->rest.n);
		in->rest.n = 0;
		len -= (size_t)(nl + 1 - text);
		text = nl + 1;
	}
	last = memrchr(text, '\n', len);
	if (last) {
		in->reader->lines(in, text, (size_t)(last + 1 - text));
		len -= (size_t)(last + 1 - text);
		text = last + 1;
	}
	keep(in, text, len);
}

void stackin_end(struct stackin *in)
{
	if (in->rest.n && in->rest.v[in->rest.n - 1] != '\n')
		keep(in, "\n", 1);
	if (!in->reader)
		start(in, in->rest.v, in->rest.n);
	if (in->rest.n)
		in->reader->lines(in, in->rest.v, in->rest.n);
	in->rest.n = 0;
	if (in->reader->end)
		in->reader->end(in);
}

struct err *stackin_read(struct stackin *in, const char *path)
{
	bool standard = !strcmp(path, "-");
	cleanup_close int file = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	cleanup_free char *buf = NULL;
	int fd = standard ? STDIN_FILENO : file;
	ssize_t n;

	if (fd < 0)
		return err_errno(errno, "%s: open", path);
	buf = xmalloc(BLOCK);
	for (;;) {
		n = read(fd, buf, BLOCK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(errno, "%s: read", standard ? "standard input" : path);
		if (!n)
			break;
		stackin_feed(in, buf, (size_t)n);
	}
	stackin_end(in);
	return NULL;
}
