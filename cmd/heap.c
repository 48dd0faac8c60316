/* descry heap: the objects of a heap, who holds them, and how much each retains. */
#include "commands.h"

#include <errno.h>

#include "heap_options.h"
#include "memory/heapfile/hprof_write.h"
#include "program/space/space.h"
#include "program/target/target.h"
#include "render/writers.h"
#include "stack_file.h"
#include "tool.h"

#define OPTS_OF struct heap_options

// clang-format off
const struct opt heap_opts[] = {
	{ 'p', NULL, "PID", OPT_PROCESS, "of this process, which is stopped for a moment" },
	{ 0, NULL, NULL, NULL, "Questions; without one: the sums, the leak suspects and the biggest objects" },
	{ OPT_LONG, "histogram", NULL, NULL, "objects and bytes of each class", FLAG(histogram) },
	{ OPT_LONG, "counts", NULL, NULL, "the number of objects of each class, the most first", FLAG(counts) },
	{ OPT_LONG, "stacks", NULL, NULL, "also the functions of the language that each thread executes", FLAG(stacks) },
	{ OPT_LONG, "async", NULL, NULL, "the same, and the tasks of each thread's asyncio loop, with the functions that they await", FLAG(async) },
	{ OPT_LONG, "retained", NULL, NULL, "what the objects of each class retain", FLAG(retained) },
	{ OPT_LONG, "unreachable", NULL, NULL, "the classes of what no root reaches", FLAG(unreachable) },
	{ OPT_LONG, "duplicates", NULL, NULL, "strings and arrays with equal contents", FLAG(duplicates) },
	{ OPT_LONG, "paths", "CLASS|ADDRESS", NULL, "the shortest paths from roots to these objects", TEXT(paths) },
	{ OPT_LONG, "refs", "ADDRESS", NULL, "what an object refers to, and what refers to it", TEXT(refs) },
	{ OPT_LONG, "find", "EXPRESSION", NULL, "the objects for which it is true: 'this->total > 100'", TEXT(find) },
	{ OPT_LONG, "by", "EXPRESSION", NULL, "sums these objects, or all, by its value: 'class', 'file', 'this->status'", TEXT(by) },
	{ OPT_LONG, "diff", "FILE", OPT_FILE, "the classes that have more or less than in this older dump", TEXT(diff) },
	{ OPT_LONG, "ask", NULL, NULL, "reads the heap once, and then questions like these from standard input: 'refs ADDRESS'", FLAG(ask) },
	{ 'o', NULL, "FILE", OPT_FILE, "a picture of what retains what: .html, .svg, .folded or .json; .hprof, .heapsnapshot: the heap itself", TEXT(page) },
	{ 0, NULL, NULL, NULL, "How" },
	{ 'n', NULL, "N", NULL, "lists at most N rows (30)", INTEGER(shown.most, 1, UINT32_MAX) },
	{ OPT_LONG, "percent", "N", NULL, "a suspect retains at least N percent (20)", INTEGER(shown.percent, 1, 100) },
	{ OPT_LONG, "json", NULL, NULL, "JSON lines", FLAG(shown.json) },
	{ OPT_LONG, "memory", "MB", NULL, "keeps at most MB megabytes of the graph in memory, the rest in files", INTEGER(memory, 1, UINT32_MAX) },
	{ OPT_LONG, "fork", NULL, NULL, "copies the process by clone(2), for a shorter stop; the program can see this", FLAG(fork) },
	{ 0, NULL, NULL, NULL, "Of alloc: the lines that made the objects which are alive, until ^C" },
	{ OPT_LONG, "for", "SECONDS", NULL, "records for so long", REAL(lasts, 0.001, 1e7) },
	{ OPT_LONG, "every", "SECONDS", NULL, "shows them again and again, not only at the end", REAL(every, 0.1, 1e7) },
	{ OPT_LONG, "sample", "N", NULL, "records the objects of one address in N, chosen at random, and multiplies; of Java, and by the inspector, one for each N bytes", INTEGER(sample, 1, 1000000000) },
	{ OPT_LONG, "garbage", NULL, NULL, "also counts what no root reaches, until the collector takes it", FLAG(garbage) },
	{ OPT_LONG, "inspector", NULL, NULL, "of Node.js: shows what lives, by V8's own samples; the inspector's port is open meanwhile", FLAG(inspector) },
	{ 'X', NULL, "NAME[=VALUE]", OPT_SETTING, "an option of descry(1): bufsize, engine..." },
	{ OPT_LONG, "show-d", NULL, NULL, "prints the D program instead of running it", FLAG(show_d) },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry heap [options] FILE\n"
	"       descry heap [options] -p PID\n"
	"       descry heap alloc [options] -p PID\n"
	"\n"
	"Reads the objects of a language's heap from a dump file, a core file or a process, and answers who holds the memory.\n"
	"\n";

enum { STOP_MS = 2000 };

struct err *heap_process_stop(struct control *c)
{
	return control_stop(c, STOP_MS);
}

static bool has_ending(const char *name, const char *ending)
{
	size_t n = strlen(name), k = strlen(ending);

	return n > k && !strcmp(name + n - k, ending);
}

/* Questions that need the objects. */
enum {
	ASK_HISTOGRAM = 1 << 0,
	ASK_COUNTS = 1 << 1,
	ASK_RETAINED = 1 << 2,
	ASK_UNREACHABLE = 1 << 3,
	ASK_DUPLICATES = 1 << 4,
	ASK_PATHS = 1 << 5,
	ASK_REFS = 1 << 6,
	ASK_FIND = 1 << 7,
	ASK_DIFF = 1 << 8,
	ASK_PAGE = 1 << 9,
	ASK_HPROF = 1 << 10,
	ASK_SNAPSHOT = 1 << 11,
	ASK_LINES = 1 << 12,
	ASK_SUMMARY = 1 << 13, /* the user has given no option that asks something */
};

static uint32_t questions(const struct heap_options *a)
{
	uint32_t asked = (a->histogram ? ASK_HISTOGRAM : 0) | (a->counts ? ASK_COUNTS : 0) |
			 (a->retained ? ASK_RETAINED : 0) | (a->unreachable ? ASK_UNREACHABLE : 0) |
			 (a->duplicates ? ASK_DUPLICATES : 0) | (a->paths ? ASK_PATHS : 0) |
			 (a->refs ? ASK_REFS : 0) | (a->find || a->by ? ASK_FIND : 0) |
			 (a->diff ? ASK_DIFF : 0) | (a->ask ? ASK_LINES : 0);

	if (a->page)
		asked |= has_ending(a->page, ".hprof")          ? ASK_HPROF
			 : has_ending(a->page, ".heapsnapshot") ? ASK_SNAPSHOT
								: ASK_PAGE;
	return asked || a->stacks || a->async ? asked : ASK_SUMMARY;
}

/* Prints the stacks for --stacks and --async, and reads the heap when an answer needs the
 * objects. */
static struct err *read_space(struct heap_options *a, struct space *space, struct memory_stop *p,
			      const struct graph_wanted *w, struct graph **ret)
{
	struct err *e = NULL, *flushed;
	struct out o;

	if (a->stacks || a->async) {
		out_init(&o, stdout);
		e = heap_show_stacks(space, p, a->shown.json, a->async, &o);
		flushed = out_flush(&o);
		out_fini(&o);
		if (e)
			err_free(flushed);
		e = e ?: flushed;
	}
	if (e || !questions(a))
		return e;
	return heap_read_space(space, p, w, ret, &a->shown.source);
}

static struct err *read_process(struct heap_options *a, const struct graph_wanted *w,
				struct graph **ret)
{
	struct space *space = NULL;
	struct control *c = NULL;
	static struct memory_stop pause;
	struct err *e = control_open(a->c.pids.v[0], &c);
	static char name[64];

	e = e ?: control_space(c, &space);
	pause.control = c;
	pause.fork = a->fork;
	e = e ?: read_space(a, space, &pause, w, ret);
	if (!e && *ret) {
		snprintf(name, sizeof(name), "%s", space->name);
		a->shown.name = name;
		a->shown.pause_ns = pause.ns;
		a->shown.whole = pause.fork ? pause.whole : NULL;
	}
	space_free(space);
	control_free(c);
	return e;
}

static struct err *read_core(struct heap_options *a, const char *path, const struct graph_wanted *w,
			     struct graph **ret)
{
	struct memory_stop pause = { 0 };
	struct space *s;
	struct err *e = space_core(path, &s);
	const char *remark;

	if (e)
		return e;
	e = read_space(a, s, &pause, w, ret);
	for (uint32_t i = 0; (remark = space_core_remark(s, i)); i++)
		tool_wrong("%s: %s", path, remark);
	space_free(s);
	return e;
}

/* Reads a dump, or a core. */
static struct err *read_path(struct heap_options *a, const char *path, const struct graph_wanted *w,
			     struct graph **ret)
{
	struct err *e = heap_read_file(path, w, ret, &a->shown.source), *core;

	if (!e || e->code != ENOEXEC)
		return e;
	core = read_core(a, path, w, ret);
	if (core && core->code == ENOEXEC) { /* it is no core either */
		err_free(core);
		return e;
	}
	err_free(e);
	return core;
}

static struct err *write_hprof(struct heap_options *a, struct graph *g)
{
	uint64_t lost;
	struct out o;
	FILE *file;
	struct err *e;

	if (strcmp(a->shown.source->name, "java") && strcmp(a->shown.source->name, "hprof"))
		return err_new(EINVAL, "%s: only the heap of a Java program can be an HPROF file",
			       a->page);
	e = tool_out_begin_private(&o, a->page, &file);
	if (e)
		return e;
	lost = hprof_write(g, &o);
	if (lost)
		tool_wrong("%s: %llu references have no place in an HPROF file", a->page,
			   (unsigned long long)lost);
	return tool_out_end(&o, a->page, file);
}

static struct err *write_snapshot(struct heap_options *a, struct graph *g)
{
	struct out o;
	FILE *file;
	struct err *e = tool_out_begin_private(&o, a->page, &file), *end;

	if (e)
		return e;
	e = heap_write_snapshot(g, &o);
	end = tool_out_end(&o, a->page, file);
	if (e)
		err_free(end);
	return e ?: end;
}

static struct err *write_page(struct heap_options *a, struct graph *g)
{
	static const char *const forms[] = { "html", "svg", "folded", "json" };
	const struct stack_writer *writer = stack_writer_of(a->page);
	struct flame_options picture = {
		.title = "Retained memory",
		.subtitle = a->shown.name,
		.count_name = "bytes",
		.inverted = true,
	};
	struct stack_output output = { .picture = &picture };
	struct stacktree tree;
	char **paths = NULL;
	struct err *e;
	bool known = false;

	for (size_t i = 0; writer && i < ARRAY_SIZE(forms); i++)
		known |= !strcmp(writer->name, forms[i]);
	if (!known)
		return err_new(
			EINVAL,
			"%s: the name ends in none of .html, .svg, .folded, .json, .hprof and .heapsnapshot",
			a->page);
	stacktree_init(&tree);
	heap_stacktree(g, &tree, strcmp(writer->name, "html") ? NULL : &paths);
	output.tree = &tree;
	picture.notes = paths;
	e = stack_file_write(a->page, true, writer, &output);
	heap_tree_paths_free(paths, &tree);
	stacktree_fini(&tree);
	return e;
}

static struct err *show_diff(struct heap_options *a, struct graph *g, const struct graph_wanted *w,
			     struct out *o)
{
	const struct heap_source *source = a->shown.source;
	struct graph *before = NULL;
	struct err *e = read_path(a, a->diff, w, &before);

	a->shown.source = source;
	if (!e)
		heap_show_diff(before, g, &a->shown, o);
	graph_free(before);
	return e;
}

/* Answers the questions in the order of the help. */
static struct err *answer(struct heap_options *a, struct graph *g, const struct graph_wanted *w,
			  bool *ret_failed)
{
	const uint32_t asked = questions(a);
	struct err *e = NULL, *flushed;
	struct out o;

	for (uint32_t i = 0; i < graph_remarks(g) && !a->shown.json; i++)
		tool_wrong("%s: %s", a->shown.name, graph_remark_text(g, i));
	out_init(&o, stdout);
	if (asked & ASK_HISTOGRAM)
		heap_show_histogram(g, GRAPH_ALL, &a->shown, &o);
	if (asked & ASK_COUNTS)
		heap_show_counts(g, &a->shown, &o);
	if (asked & ASK_RETAINED)
		heap_show_retained(g, &a->shown, &o);
	if (asked & ASK_UNREACHABLE)
		heap_show_histogram(g, GRAPH_UNREACHABLE, &a->shown, &o);
	if (asked & ASK_DUPLICATES)
		heap_show_duplicates(g, &a->shown, &o);
	if (asked & ASK_PATHS)
		e = heap_show_paths(g, a->paths, &a->shown, &o);
	if (asked & ASK_REFS && !e)
		e = heap_show_refs(g, a->refs, &a->shown, &o);
	if (asked & ASK_FIND && !e)
		e = heap_show_find(g, a->query, &a->shown, &o);
	if (asked & ASK_DIFF && !e)
		e = show_diff(a, g, w, &o);
	if (asked & ASK_PAGE && !e)
		e = write_page(a, g);
	if (asked & ASK_HPROF && !e)
		e = write_hprof(a, g);
	if (asked & ASK_SNAPSHOT && !e)
		e = write_snapshot(a, g);
	if (asked & ASK_SUMMARY) {
		heap_show_summary(g, &a->shown, &o);
		heap_show_suspects(g, &a->shown, &o);
		heap_show_biggest(g, &a->shown, &o);
	}
	flushed = out_flush(&o);
	out_fini(&o);
	if (e)
		err_free(flushed);
	e = e ?: flushed;
	return !e && asked & ASK_LINES ? heap_ask_lines(g, &a->shown, ret_failed) : e;
}

static int heap_take(void *into, const struct opt *o, const char *arg)
{
	struct heap_options *a = into;

	return o->id == 'p' || o->id == 'X' ? cmdline_take(&a->c, o->id == 'X' ? 'x' : 'p', arg)
					    : -1;
}

/* Reads a heap and answers the questions about it. */
static int heap_ask(struct heap_options *a, char **files, int nfiles)
{
	const uint32_t asked = questions(a);
	const bool live = a->c.pids.n;
	struct graph_wanted w;
	struct graph *g = NULL;
	struct err *e = NULL;
	bool inside = false, unanswered = false;
	int failed = 0;

	if (!live && !nfiles)
		return tool_wrong("no heap is named: give a dump or core file, or -p PID");
	if (a->c.pids.n > 1)
		return tool_wrong("one heap at a time: -p %d is too many", (int)a->c.pids.v[1]);
	if (nfiles > !live)
		return tool_wrong("one heap at a time: %s is too many", files[!live]);
	if (asked & ASK_FIND) {
		e = heap_find_new(a->find, a->by, &a->query);
		inside = !e && heap_find_inside(a->query);
	}
	w = (struct graph_wanted){
		.labels = inside || asked & (ASK_LINES | ASK_PATHS | ASK_REFS | ASK_PAGE |
					     ASK_HPROF | ASK_SNAPSHOT | ASK_SUMMARY),
		.contents = asked & (ASK_LINES | ASK_DUPLICATES),
		.values = inside || asked & (ASK_LINES | ASK_HPROF | ASK_SNAPSHOT),
		.memory = (uint64_t)a->memory << 20,
		.counts = asked && !(asked & ~(uint32_t)(ASK_HISTOGRAM | ASK_COUNTS)),
	};
	a->shown.name = files[0];
	if (!e)
		e = live ? read_process(a, &w, &g)
		    : a->stacks || a->async
			    ? read_core(a, files[0], &w, &g) /* a dump has no threads */
			    : read_path(a, files[0], &w, &g);
	if (!e && g)
		e = answer(a, g, &w, &unanswered);
	failed = unanswered;
	if (e)
		failed = tool_failed(e);
	err_free(e);
	heap_find_free(a->query);
	graph_free(g);
	return failed;
}

int cmd_heap(int argc, char **argv)
{
	struct heap_options a = { .c = { .progname = "descry heap",
					 .not_destructive = "descry heap only looks" },
				  .shown = { .most = 30, .percent = 20 } };
	const bool alloc = argc > 1 && !strcmp(argv[1], "alloc");
	struct opt_parse parse = {
		.table = heap_opts, .help = help, .into = &a, .take = heap_take, .program = &a.c
	};
	int failed;

	vec_push(&a.c.args, argv[0]);
	failed = opts_take(&parse, argc - alloc, argv + alloc);
	if (!failed && !alloc &&
	    (a.lasts || a.every || a.sample || a.garbage || a.show_d || a.inspector))
		failed = tool_wrong(
			"--for, --every, --sample, --garbage, --inspector and --show-d belong "
			"to descry heap alloc");
	if (!failed && alloc && optind < argc - alloc)
		failed = tool_wrong("descry heap alloc is of a process: -p PID");
	if (!failed)
		failed = alloc ? heap_alloc(&a) : heap_ask(&a, argv + optind, argc - optind);
	cmdline_fini(&a.c);
	return failed;
}
