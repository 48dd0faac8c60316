/* Finds the format of stacks that were given, unzips them, and feeds the format's reader. */
#define _GNU_SOURCE
#include "input/stackin/stackin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mapped.h"
#include "input/stackin/stackin_reader.h"

enum { MAGIC_MAX = 16 }; /* bytes by which a document is recognised */
/* A gzipped document has at most INFLATED_FREE + n * INFLATED_TIMES bytes, where n is its size.
 * pprof's profiles shrink to about a tenth. */
enum { INFLATED_FREE = 16 << 20, INFLATED_TIMES = 100 };

struct stackin_gzip {
	z_stream z;
	size_t taken; /* bytes so far */
	bool ended;   /* between two members */
	bool grown;   /* too many bytes were unpacked */
};

static const struct stackin_reader *const readers[STACKIN_NFORMATS] = {
#define FORMAT(id, reader, name) [STACKIN_##id] = &stackin_##reader,
#include "input/stackin/formats.def"
#undef FORMAT
};

static const char *const names[STACKIN_NFORMATS] = {
#define FORMAT(id, reader, name) [STACKIN_##id] = name,
#include "input/stackin/formats.def"
#undef FORMAT
};

const char *stackin_format_name(enum stackin_format f)
{
	return f < STACKIN_NFORMATS ? names[f] : NULL;
}

enum stackin_format stackin_format_named(const char *name)
{
	for (int f = STACKIN_AUTO + 1; f < STACKIN_NFORMATS; f++)
		if (!strcmp(names[f], name))
			return (enum stackin_format)f;
	return STACKIN_AUTO;
}

bool stackin_is_document(enum stackin_format f)
{
	return f > STACKIN_AUTO && f < STACKIN_NFORMATS && readers[f]->document;
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
	if (in->gzip)
		(void)inflateEnd(&in->gzip->z);
	free(in->gzip);
	free(in->state);
	free(in->event);
	free(in->unit);
	for (uint32_t i = 0; i < in->notes.n; i++)
		free(in->notes.v[i]);
	vec_fini(&in->notes);
	vec_fini(&in->frames.ids);
	vec_fini(&in->frames.base);
	vec_fini(&in->frames.scratch);
	lines_fini(&in->text);
	out_fini(&in->document);
	in->gzip = NULL;
	in->reader = NULL;
	in->state = NULL;
}

void stackin_note(struct stackin *in, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vec_push(&in->notes, xvasprintf(fmt, ap));
	va_end(ap);
}

void stackin_skip(struct stackin *in)
{
	if (!in->skipped++)
		in->first_skipped = in->lines;
	in->skipped_above += !in->stacks;
}

uint64_t stackin_scale(const struct stackin *in, uint64_t count)
{
	double v;

	if (in->options.factor == 0 || in->options.factor == 1)
		return count;
	v = round((double)count * in->options.factor);
	return v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
}

void stackin_count(struct stackin *in, const uint32_t *ids, uint32_t n, uint64_t count)
{
	if (in->overgrown)
		return;
	in->stacks++;
	if (!stacktree_add(in->tree, ids, n, stackin_scale(in, count)))
		return;
	for (uint32_t i = 0; i < n; i++)
		in->text_bytes += in->tree->frames.v[ids[i]].len + 1;
	in->overgrown = in->text_bytes > STACKTREE_TEXT_FREE + in->given * STACKTREE_TEXT_PER_BYTE;
}

static struct err *check_text(const struct stackin *in)
{
	if (!in->overgrown)
		return NULL;
	return err_new(E2BIG,
		       "the names in the stacks would be more than %llu MB of text, which is too "
		       "much for an input of %llu bytes",
		       (unsigned long long)(in->text_bytes >> 20), (unsigned long long)in->given);
}

static void use(struct stackin *in, enum stackin_format format)
{
	in->format = format;
	in->reader = readers[format];
	in->state = xcalloc(1, in->reader->state_size + 1);
}

/* Recognises a document by its first bytes, however many there are in the first piece. */
static void start_document(struct stackin *in, const void *p, size_t n)
{
	if (n > MAGIC_MAX)
		n = MAGIC_MAX;
	if (in->options.format != STACKIN_AUTO) {
		if (readers[in->options.format]->document)
			use(in, in->options.format);
		return;
	}
	for (int f = STACKIN_AUTO + 1; f < STACKIN_NFORMATS; f++)
		if (readers[f]->begins && readers[f]->begins(p, n)) {
			use(in, (enum stackin_format)f);
			return;
		}
}

/* Recognises a text, unless its format was given. */
static void start(void *arg, const char *text, size_t len)
{
	struct stackin *in = arg;
	enum stackin_format format = in->options.format;
	uint32_t best = 0;

	if (in->reader)
		return;
	if (format == STACKIN_AUTO) {
		format = STACKIN_FOLDED;
		for (int f = STACKIN_AUTO + 1; f < STACKIN_NFORMATS; f++) {
			uint32_t n = readers[f]->recognise ? readers[f]->recognise(text, len) : 0;

			if (n > best) {
				best = n;
				format = (enum stackin_format)f;
			}
		}
	}
	use(in, format);
}

static void whole_lines(void *arg, const char *text, size_t len)
{
	struct stackin *in = arg;

	in->reader->lines(in, text, len);
}

static void too_long(void *arg)
{
	struct stackin *in = arg;

	in->lines++;
	stackin_skip(in);
}

static const struct lines_ops ops = { .begin = start, .lines = whole_lines, .too_long = too_long };

static void feed(struct stackin *in, const char *p, size_t n)
{
	in->given += n;
	if (in->reader && in->reader->document) {
		if (in->gzip &&
		    in->document.n + n > INFLATED_FREE + in->gzip->taken * INFLATED_TIMES)
			in->broken = in->gzip->grown = true;
		else
			out_mem(&in->document, p, n);
	} else {
		lines_feed(&in->text, &ops, in, p, n);
	}
}

/* The first bytes distinguish documents from texts. */
static void feed_plain(struct stackin *in, const char *p, size_t n)
{
	if (!in->begun) {
		if (in->document.n + n < MAGIC_MAX) {
			out_mem(&in->document, p, n);
			return;
		}
		in->begun = true;
		if (in->document.n) {
			struct out head = in->document;

			in->document = (struct out){ 0 };
			out_mem(&head, p, n);
			start_document(in, head.v, head.n);
			feed(in, head.v, head.n);
			out_fini(&head);
			return;
		}
		start_document(in, p, n);
	}
	feed(in, p, n);
}

static void feed_gzip(struct stackin *in, const char *p, size_t n)
{
	z_stream *z = &in->gzip->z;
	char block[64 * 1024];

	z->next_in = (Bytef *)p;
	z->avail_in = (uInt)n;
	in->gzip->taken += n;
	while (z->avail_in && !in->broken) {
		int rc;

		if (in->gzip->ended) { /* another member follows */
			(void)inflateReset(z);
			in->gzip->ended = false;
		}
		do {
			z->next_out = (Bytef *)block;
			z->avail_out = sizeof(block);
			rc = inflate(z, Z_NO_FLUSH);
			feed_plain(in, block, sizeof(block) - z->avail_out);
		} while (rc == Z_OK && !z->avail_out && !in->broken);
		in->gzip->ended = rc == Z_STREAM_END;
		in->broken |= rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR;
	}
}

/* Recognises gzip in the first piece of the input. A read() returns two bytes or more. */
void stackin_feed(struct stackin *in, const char *text, size_t len)
{
	if (!in->begun && !in->gzip && !in->document.n && !in->text.rest.n && len >= 2 &&
	    !memcmp(text, "\x1f\x8b", 2) && in->options.format != STACKIN_PERFDATA) {
		in->gzip = xcalloc(1, sizeof(*in->gzip));
		in->text.longest = LINES_INFLATED_LONGEST;
		if (inflateInit2(&in->gzip->z, 15 + 16) != Z_OK)
			in->broken = true;
	}
	while (len && in->gzip) {
		size_t n = len > INT_MAX ? INT_MAX : len;

		feed_gzip(in, text, n);
		text += n;
		len -= n;
	}
	if (len)
		feed_plain(in, text, len);
}

struct err *stackin_end(struct stackin *in)
{
	struct err *e = NULL;

	if (!in->begun) { /* a short input */
		struct out head = in->document;

		in->begun = true;
		in->document = (struct out){ 0 };
		start_document(in, head.v, head.n);
		if (head.n)
			feed(in, head.v, head.n);
		out_fini(&head);
	}
	if (in->broken || (in->gzip && !in->gzip->ended))
		return err_new(
			0,
			in->gzip && in->gzip->grown
				? "the gzipped document is more than 100 times larger than its file: "
				  "gunzip it first if it is to be trusted"
				: "the gzipped input is damaged or cut off");
	if (in->reader && in->reader->document) {
		e = in->reader->document(in, (const uint8_t *)in->document.v, in->document.n);
	} else {
		lines_end(&in->text, &ops, in);
		if (in->reader->end)
			in->reader->end(in);
	}
	return e ?: check_text(in);
}

/* Maps a file that is a document and does not copy it, because perf.data may be large. *ret_done:
 * the file was a document. */
static struct err *read_document(struct stackin *in, int fd, const char *path, bool *ret_done)
{
	uint8_t head[MAGIC_MAX];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	struct stat st;
	struct err *e;
	struct mapped map;

	*ret_done = false;
	if (n <= 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (head[0] == 0x1f && n > 1 && head[1] == 0x8b))
		return NULL;
	start_document(in, head, (size_t)n);
	if (!in->reader)
		return NULL;
	*ret_done = in->begun = true;
	e = mapped_open(path, &map);
	if (e)
		return e;
	in->given = map.len;
	e = in->reader->document(in, map.p, map.len) ?: check_text(in);
	if (e)
		e = err_wrap(e, "%s", path);
	/* Then the error of the reader is not the real one. */
	struct err *changed = mapped_check(&map, path);

	mapped_close(&map);
	if (changed)
		err_free(e);
	return changed ? changed : e;
}

static void feed_piece(void *arg, const char *text, size_t len)
{
	stackin_feed(arg, text, len);
}

struct err *stackin_read(struct stackin *in, const char *path)
{
	bool standard = !strcmp(path, "-"), done = false;
	cleanup_close int file = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	int fd = standard ? STDIN_FILENO : file;
	struct err *e;

	if (fd < 0)
		return err_errno(errno, "%s: open", path);
	if (!standard) {
		e = read_document(in, fd, path, &done);
		if (e || done)
			return e;
	}
	e = lines_read(fd, standard ? "standard input" : path, feed_piece, in);
	if (e)
		return e;
	e = stackin_end(in);
	return e ? err_wrap(e, "%s", standard ? "standard input" : path) : NULL;
}
