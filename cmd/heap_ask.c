/* descry heap --ask: questions from standard input, one a line. The heap is read once, and what an
 * answer has made (dominators, the table of referrers) is there for the next ones. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "heap_options.h"
#include "tool.h"

struct asked {
	struct graph *g;
	const struct heap_shown *how;
	struct out *o;
};

static struct err *ask_summary(struct asked *q, const char *text)
{
	(void)text;
	heap_show_summary(q->g, q->how, q->o);
	heap_show_suspects(q->g, q->how, q->o);
	heap_show_biggest(q->g, q->how, q->o);
	return NULL;
}

static struct err *ask_histogram(struct asked *q, const char *text)
{
	(void)text;
	heap_show_histogram(q->g, GRAPH_ALL, q->how, q->o);
	return NULL;
}

static struct err *ask_counts(struct asked *q, const char *text)
{
	(void)text;
	heap_show_counts(q->g, q->how, q->o);
	return NULL;
}

static struct err *ask_retained(struct asked *q, const char *text)
{
	(void)text;
	heap_show_retained(q->g, q->how, q->o);
	return NULL;
}

static struct err *ask_unreachable(struct asked *q, const char *text)
{
	(void)text;
	heap_show_histogram(q->g, GRAPH_UNREACHABLE, q->how, q->o);
	return NULL;
}

static struct err *ask_duplicates(struct asked *q, const char *text)
{
	(void)text;
	heap_show_duplicates(q->g, q->how, q->o);
	return NULL;
}

static struct err *ask_paths(struct asked *q, const char *text)
{
	return heap_show_paths(q->g, text, q->how, q->o);
}

static struct err *ask_refs(struct asked *q, const char *text)
{
	return heap_show_refs(q->g, text, q->how, q->o);
}

static struct err *find(struct asked *q, const char *where, const char *by)
{
	struct heap_find *f = NULL;
	struct err *e = heap_find_new(where, by, &f);

	if (!e)
		e = heap_show_find(q->g, f, q->how, q->o);
	heap_find_free(f);
	return e;
}

static struct err *ask_find(struct asked *q, const char *text)
{
	return find(q, text, NULL);
}

static struct err *ask_by(struct asked *q, const char *text)
{
	return find(q, NULL, text);
}

static const struct {
	const char *word, *about; /* about: what stands behind the word; NULL: nothing */
	struct err *(*answer)(struct asked *q, const char *text);
} known[] = {
	{ "summary", NULL, ask_summary },         { "histogram", NULL, ask_histogram },
	{ "counts", NULL, ask_counts },           { "retained", NULL, ask_retained },
	{ "unreachable", NULL, ask_unreachable }, { "duplicates", NULL, ask_duplicates },
	{ "paths", "CLASS|ADDRESS", ask_paths },  { "refs", "ADDRESS", ask_refs },
	{ "find", "EXPRESSION", ask_find },       { "by", "EXPRESSION", ask_by },
};

static struct err *not_a_question(const char *line)
{
	struct out o;
	struct err *e;

	out_init(&o, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		out_printf(&o, "%s%s%s%s", i ? ", " : "", known[i].word, known[i].about ? " " : "",
			   known[i].about ?: "");
	e = err_new(EINVAL, "no question: %.100s. There are: %.*s", line, (int)o.n,
		    (const char *)o.v);
	out_fini(&o);
	return e;
}

/* The line has its first word, then one text. */
static struct err *line_answer(struct asked *q, const char *line)
{
	size_t n = strcspn(line, " \t");
	const char *text = line + n + strspn(line + n, " \t");

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i].word) == n && !memcmp(line, known[i].word, n) &&
		    !known[i].about == !*text)
			return known[i].answer(q, text);
	return not_a_question(line);
}

static void answer_end(struct asked *q, const char *line, uint64_t ns, const struct err *e)
{
	if (q->how->json) {
		out_str(q->o, "{\"type\":\"answered\"");
		heap_json_text(q->o, "question", line);
		heap_json_number(q->o, "ns", ns);
		if (e)
			heap_json_text(q->o, "error", e->text);
		out_str(q->o, "}\n");
	} else {
		out_char(q->o, '\n');
	}
}

struct err *heap_ask_lines(struct graph *g, const struct heap_shown *how, bool *ret_failed)
{
	const bool person = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	struct err *flushed = NULL;
	char *line = NULL;
	size_t cap = 0;
	struct out o;
	struct asked q = { g, how, &o };

	out_init(&o, stdout);
	while (!flushed) {
		uint64_t begin;
		struct err *e;
		ssize_t n;

		if (person) {
			out_str(&o, "heap> ");
			err_free(out_flush(&o));
		}
		n = getline(&line, &cap, stdin);
		if (n < 0)
			break;
		while (n && strchr(" \t\r\n", line[n - 1]))
			line[--n] = '\0';
		if (!n)
			continue;
		begin = now_ns();
		e = line_answer(&q, line);
		answer_end(&q, line, now_ns() - begin, e);
		flushed = out_flush(&o);
		if (e) {
			*ret_failed = true;
			tool_failed(e);
			err_free(e);
		}
	}
	free(line);
	out_fini(&o);
	return flushed;
}
