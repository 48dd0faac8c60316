/* A program that traces, for test/sh/embed.py: built against the installed library. Prints the data
 * that the callbacks receive; the test reads it. */
#include <descry.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names of the library's own functions: there they are hidden. */
void arena_init(void)
{
	abort();
}
void err_new(void)
{
	abort();
}
void session_init(void)
{
	abort();
}

static int rows, target;

static void line(void *arg, const char *text, size_t size)
{
	printf("%s line %zu '%s'\n", (const char *)arg, size, text);
	sscanf(text, "target %d", &target);
}

static void row(void *arg, const struct descry_row *r)
{
	rows++;
	if (!strcmp(arg, "quiet"))
		return;
	printf("%s row @%s %s [", (const char *)arg, r->aggregation, r->function);
	for (size_t i = 0; i < r->nkeys; i++) {
		const struct descry_key *k = &r->keys[i];

		printf(k->is_number ? "%s%zu:%s=%" PRId64 : "%s%zu:%s", i ? ", " : "", k->size,
		       k->text, k->number);
	}
	printf("] %" PRId64, r->value);
	for (size_t i = 0; i < r->nbuckets; i++)
		printf(" %" PRId64 "..%" PRId64 ":%" PRId64, r->buckets[i].min, r->buckets[i].max,
		       r->buckets[i].count);
	printf("\n");
}

static void message(void *arg, const char *text, size_t size)
{
	printf("%s message %d '%s'\n", (const char *)arg, strlen(text) == size, text);
}

static struct descry *open_named(const char *name, const char *engine)
{
	const struct descry_callbacks c = {
		.line = line, .row = row, .message = message, .arg = (void *)(uintptr_t)name
	};
	struct descry *d = descry_open(&c);

	printf("%s set %d\n", name, descry_set(d, "engine", engine));
	return d;
}

static int run(struct descry *d, const char *program)
{
	int more;

	if (descry_compile(d, program) || descry_start(d))
		return -1;
	while ((more = descry_poll(d, -1)) > 0)
		;
	return more ? more : descry_stop(d);
}

/* Wrong D, wrong options, calls out of order: messages, and the program goes on. */
static void mistakes(void)
{
	struct descry *d = open_named("wrong", "interp");

	printf("wrong option %d\n", descry_set(d, "bufsiz", "1m"));
	printf("wrong poll %d\n", descry_poll(d, 0));
	printf("wrong compile %d\n", descry_compile(d, "BEGIN { trace(nothing); exit(0) }"));
	printf("wrong start %d\n", descry_start(d));
	descry_close(d);
	d = open_named("gone", "inproc");
	printf("gone pid %d\n", descry_pid(d, 0x7ffffff0));
	descry_close(d);
	d = open_named("refused", "interp");
	printf("refused compile %d\n", descry_compile(d, "BEGIN { system(\"echo no\"); }"));
	descry_close(d);
	descry_close(NULL);
}

static void values(void)
{
	struct descry *d = open_named("values", "interp");

	printf("values run %d\n",
	       run(d,
		   "BEGIN { printf(\"%d\\n\\nhalf \", 6 * 7); @s[\"a b\", -3, (uint64_t)7] = sum(-5);"
		   " @s[\"b\", 1, (uint64_t)-1] = sum(9);"
		   " @[\"q\"] = quantize(5); @[\"q\"] = quantize(6); @[\"q\"] = quantize(-1);"
		   " @p = count(); printa(\"printed %@d\\n\", @p); }"
		   " BEGIN { exit(3); } END { printf(\"end\"); }"));
	printf("values status %d\n", descry_status(d));
	printf("values again %d\n", descry_stop(d));
	descry_close(d);
}

static void record(void *arg, const struct descry_record *r)
{
	printf("%s %s:%s:%s:%s", r->action, r->provider, r->module, r->function, r->name);
	for (size_t i = 0; i < r->nvalues; i++) {
		const struct descry_value *v = &r->values[i];

		printf(v->is_number ? " %zu:%s=%" PRId64 : " %zu:%s", v->size, v->text, v->number);
	}
	printf(" %d\n", r->time && r->tid == getpid());
}

static void records(void)
{
	const struct descry_callbacks c = { .line = line,
					    .record = record,
					    .arg = (void *)"records" };
	struct descry *d = descry_open(&c);

	descry_set(d, "engine", "interp");
	run(d,
	    "BEGIN { printf(\"<%s %d %c>\\n\", \"a b\", -3, 65); trace(7); printf(\"no values\\n\"); }"
	    " END, BEGIN { x = 1; } BEGIN { exit(0); }");
	descry_close(d);
}

static void plain(void)
{
	struct descry *d = descry_open(NULL);

	fflush(stdout);
	descry_set(d, "engine", "interp");
	run(d, "BEGIN { printf(\"plain text\\n\"); @[\"key\"] = count(); exit(0); }");
	descry_close(d);
}

/* Two sessions at once, for commands that would not end. Their rows are read while they run. */
static void commands(void)
{
	static const char program[] = "BEGIN { printf(\"target %d\\n\", $target); }"
				      "pid$target::malloc:entry { @[probefunc] = count(); }";
	struct descry *d[2];
	int targets[2], more;

	for (int i = 0; i < 2; i++) {
		d[i] = open_named("quiet", "inproc");
		printf("command %d\n", descry_command(d[i], "sleep 1000"));
		printf("compile %d\n", descry_compile(d[i], program));
		printf("start %d\n", descry_start(d[i]));
	}
	for (int i = 0; i < 2; i++) {
		for (rows = target = 0; !rows || !target;) {
			more = descry_poll(d[i], 10);
			if (more < 1 || descry_snapshot(d[i]))
				exit(1);
		}
		targets[i] = target;
	}
	rows = 0;
	descry_interrupt(d[0]);
	printf("over %d\n", descry_poll(d[0], -1));
	printf("stop %d\n", descry_stop(d[0]));
	printf("rows %d\n", rows);
	printf("other %d\n", descry_poll(d[1], 0));
	printf("running %d %d\n", kill(targets[0], 0), kill(targets[1], 0));
	for (int i = 0; i < 2; i++)
		descry_close(d[i]); /* the second one runs */
	for (int i = 0; i < 2; i++)
		printf("ended %d\n", kill(targets[i], 0) < 0 && errno == ESRCH);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	printf("version %d\n", !strcmp(descry_version(), DESCRY_VERSION));
	mistakes();
	values();
	records();
	plain();
	commands();
	printf("done\n");
	return 0;
}
