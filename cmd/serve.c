/* descry serve: runs a D program and shows its views on a live page. */
#define _GNU_SOURCE
#include "commands.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/io.h"
#include "run.h"
#include "serve_heap.h"
#include "tool.h"
#include "serve/http.h"

static const char help[] =
	"usage: descry serve [--port N] [--bind ADDRESS] [--history SECONDS] [--allow-d] [--allow-heap] OPTIONS OF DESCRY\n"
	"\n"
	"Runs a D program and shows it on a page while it goes on: flame graph, heat map, table, events.\n"
	"The page's address, with a token that it needs, is printed.\n"
	"\n";

enum { OPT_SERVE_HELP = OPT_LONG + 1 };

struct serve {
	struct http_options http;
	struct live_options live_options;
	struct live *live;
	struct cmdline c;
	bool allow_d, allow_heap, once;
	struct serve_heap heap;
	uint32_t port;

	/* Shared by the server's thread and the main thread. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *program;      /* the next program to run; NULL: none */
	volatile bool stop; /* the present run must end */
};
#define OPTS_OF struct serve

// clang-format off
const struct opt serve_opts[] = {
	{ OPT_LONG, "port", "N", NULL, "where to listen; otherwise a free port", INTEGER(port, 0, 65535) },
	{ OPT_LONG, "bind", "ADDRESS", NULL, "on which address; otherwise 127.0.0.1, which only this machine reaches", TEXT(http.address) },
	{ OPT_LONG, "history", "SECONDS", NULL, "how far back the page can go (600)", INTEGER(live_options.history, 1, 86400) },
	{ OPT_LONG, "tick", "MILLISECONDS", NULL, "the time between two updates of the page (1000)", INTEGER(live_options.ms, 50, 60000) },
	{ OPT_LONG, "allow-d", NULL, NULL,
	  "the page may send D programs, which run as the user who started descry;\n"
	  "then none is needed here; with -w also destructive ones", FLAG(allow_d) },
	{ OPT_LONG, "allow-heap", NULL, NULL,
	  "the page may ask who holds the memory of the first -p, which is stopped for a moment", FLAG(allow_heap) },
	{ OPT_LONG, "once", NULL, NULL, "ends with the program", FLAG(once) },
	{ OPT_SERVE_HELP, "help", NULL, NULL, "prints this" },
	{ 0, NULL, NULL, NULL, "the program, as descry takes it:" },
	OPTS_PROGRAM,
	{ 'q', NULL, NULL, NULL, "prints only what the program prints" },
	{ 0 },
};
// clang-format on

/* Takes serve's own options out of argv; descry takes the others. Returns the exit status, -1 to go
 * on. */
static int own_options(struct serve *s, int *argc, char **argv)
{
	int n = 1;

	for (int i = 1; i < *argc; i++) {
		cleanup_free char *name = xstrndup(argv[i], strcspn(argv[i], "="));
		const struct opt *o = opt_find(serve_opts, name);
		const char *value;
		int status;

		if (!o || o->id < OPT_LONG) {
			argv[n++] = argv[i];
			continue;
		}
		if (o->id == OPT_SERVE_HELP) {
			fputs(help, stdout);
			opt_print(serve_opts, stdout);
			return 0;
		}
		value = !o->arg                ? ""
			: strchr(argv[i], '=') ? strchr(argv[i], '=') + 1
			: ++i < *argc          ? argv[i]
					       : NULL;
		if (!value)
			return tool_wrong("--%s wants a value", o->name);
		status = opt_set(o, s, value);
		if (status)
			return status;
	}
	argv[n] = NULL;
	*argc = n;
	return -1;
}

/* Called by the server's thread. */
static void take_program(void *arg, const char *program)
{
	struct serve *s = arg;

	pthread_mutex_lock(&s->lock);
	s->stop = true;
	if (*program) {
		free(s->program);
		s->program = xstrdup(program);
	}
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Called by the server's thread. */
static void read_heap(void *arg)
{
	serve_heap_read(&((struct serve *)arg)->heap);
}

static char *heap_text(void *arg)
{
	return serve_heap_text(&((struct serve *)arg)->heap);
}

/* Prints messages on standard error and on the page. */
static void take_message(void *arg, const char *text, size_t n)
{
	struct serve *s = arg;

	fwrite(text, 1, n, stderr);
	fflush(stderr);
	for (size_t at = 0; at < n;) {
		const char *nl = memchr(text + at, '\n', n - at);
		size_t len = nl ? (size_t)(nl - text) - at : n - at;

		live_line(s->live, text + at, len, true);
		at += len + 1;
	}
}

/* Returns the program's text for the page: texts of -n, contents of -s files. */
static char *program_text(const struct cmdline *c)
{
	struct out o = { 0 };

	for (uint32_t i = 0; i < c->programs.n; i++) {
		char *file = NULL;
		size_t len;
		struct err *e = NULL;

		if (i)
			out_char(&o, '\n');
		if (c->programs.v[i].file && strcmp(c->programs.v[i].text, "-") != 0)
			e = io_read_file(c->programs.v[i].text, &file, &len);
		if (!file)
			out_str(&o, c->programs.v[i].text);
		else
			out_mem(&o, file, len);
		err_free(e);
		free(file);
	}
	return out_take(&o);
}

static int run_once(struct serve *s)
{
	cleanup_free char *text = program_text(&s->c);
	struct run r = { .c = &s->c, .message = take_message, .arg = s, .stop = &s->stop };
	int status;

	live_begin(s->live, text);
	run_init(&r);
	options_put(&r.session.options, OPT_SWITCHRATE, 50000000);
	status = run_all(&r, live_sink(s->live));
	live_end(s->live, status);
	return status;
}

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	ended = 1;
}

/* Waits until the page sends a program. Returns false when a signal has requested the end. */
static bool wait_for_program(struct serve *s)
{
	bool some;

	tool_catch_ends(on_end);
	pthread_mutex_lock(&s->lock);
	while (!s->program && !ended) {
		struct timespec t;

		/* a signal does not end this wait, so it looks every 100 ms */
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += 100000000;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&s->changed, &s->lock, &t);
	}
	some = s->program != NULL && !ended;
	pthread_mutex_unlock(&s->lock);
	return some;
}

/* Replaces the programs of the command line by the page's program. */
static void use_program(struct serve *s, char **owned)
{
	pthread_mutex_lock(&s->lock);
	free(*owned);
	*owned = s->program;
	s->program = NULL;
	s->stop = false; /* a program that the page sends from now on ends this one */
	s->c.not_destructive = "only the user who started descry serve can allow it, with -w";
	s->c.not_engine = "only the user who started descry serve can choose it, with -x engine";
	s->c.not_terminal = "only the user who started descry serve can set it, with -x";
	s->c.programs.n = 0;
	vec_push(&s->c.programs, (struct cmd_program){ PDESC_NAME, false, *owned });
	pthread_mutex_unlock(&s->lock);
}

static void say_drops(void *arg, const char *text, size_t n)
{
	fwrite(text, 1, n, stderr);
}

static int serve(struct serve *s)
{
	cleanup_err struct err *e = NULL;
	struct http *h = NULL;
	char *owned = NULL;
	int status = 0;

	s->live_options.drops = say_drops;
	s->http.port = (uint16_t)s->port;
	s->live = live_new(&s->live_options);
	e = http_start(s->live, &s->http, &h);
	if (e) {
		live_free(s->live);
		return tool_failed(e);
	}
	printf("%s\n", http_url(h));
	/* nobody finds a page whose address is not written */
	if (fflush(stdout)) {
		tool_check_output();
		s->once = true;
		status = 1;
	} else if (s->c.programs.n) {
		status = run_once(s);
	} else {
		live_begin(s->live, "");
		live_end(s->live, 0);
	}
	while (!cmd_interrupted() && !s->once && wait_for_program(s)) {
		use_program(s, &owned);
		status = run_once(s);
	}
	http_stop(h);
	live_free(s->live);
	free(owned);
	free(s->program);
	return status;
}

int cmd_serve(int argc, char **argv)
{
	struct serve s = { 0 };
	static char name[] = "descry", n_option[] = "-n", empty[] = "";
	cleanup_free char **args = NULL;
	char host[256] = "";
	int status = own_options(&s, &argc, argv);

	if (status >= 0)
		return status;
	/* With --allow-d a program may come later; an empty one at the end stands for it. */
	args = xcalloc((size_t)argc + 3, sizeof(*args));
	memcpy(args, argv, (size_t)argc * sizeof(*args));
	args[0] = name;
	if (s.allow_d) {
		args[argc++] = n_option;
		args[argc++] = empty;
	}
	status = cmdline_parse(&s.c, argc, args);
	if (status)
		goto out;
	if (s.allow_d)
		s.c.programs.n--;
	if (s.c.mode != CMD_TRACE || s.c.json || s.c.output || s.c.dump) {
		status = tool_wrong("only tracing can be watched: no -l, -e, -d, -o, --json...");
		goto out;
	}
	gethostname(host, sizeof(host) - 1);
	s.live_options.host = host;
	s.live_options.allow_d = s.allow_d;
	s.http.arg = &s;
	if (s.allow_d)
		s.http.run = take_program;
	if (s.allow_heap && !s.c.pids.n) {
		status = tool_wrong("--allow-heap is for a process: -p PID");
		goto out;
	}
	if (s.allow_heap) {
		serve_heap_init(&s.heap, s.c.pids.v[0], s.c.starts.v[0]);
		s.live_options.allow_heap = true;
		s.http.heap_read = read_heap;
		s.http.heap_text = heap_text;
	}
	pthread_mutex_init(&s.lock, NULL);
	pthread_cond_init(&s.changed, NULL);
	status = serve(&s);
	if (s.allow_heap)
		serve_heap_fini(&s.heap);
	pthread_cond_destroy(&s.changed);
	pthread_mutex_destroy(&s.lock);
out:
	cmdline_fini(&s.c);
	return status;
}
