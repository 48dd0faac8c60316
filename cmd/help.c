/* descry help: prints the list of commands, and pages of doc/ and man/. tools/embed-pages puts the
 * pages into the program. */
#include <string.h>

#include "base/nearest.h"
#include "cmdline.h"
#include "commands.h"
#include "pages.h"
#include "tool.h"

static const char head[] =
	"usage: descry COMMAND [argument...]\n"
	"       descry -n 'PROBE /PREDICATE/ { ACTIONS }' [option...]       traces; -s FILE takes a script\n"
	"\n"
	"descry answers questions about a running system, asked in D.\n";

/* A page that belongs to no command. `page` NULL: `print` writes it. */
struct topic {
	const char *name, *page;
	void (*print)(FILE *f);
	const char *doc;
};

static void print_tracing(FILE *f)
{
	cmdline_help("descry", f);
}

static const struct topic topics[] = {
	{ "tutorial", "tutorial", NULL, "the first ten minutes" },
	{ "first-hour", "first-hour", NULL,
	  "what is slow, waits, writes, leaks: five questions, answered" },
	{ "one-liners", "one-liners", NULL, "fifty programs of one line" },
	{ "coming-from", "coming-from", NULL,
	  "from bpftrace, perf, strace and SystemTap to descry" },
	{ "examples", "examples", NULL, "the scripts that come with descry, with their output" },
	{ "tracing", NULL, print_tracing, "the options of descry -n and descry -s" },
	{ "options", NULL, cmdline_help_settings, "the options of -x and #pragma D option" },
	{ "language", "descry-d", NULL, "the language D: manual" },
	{ "providers", "providers", NULL, "every provider and its probes" },
	{ "descry", "descry", NULL, "manual of descry itself" },
};

void help_overview(FILE *f)
{
	fputs(head, f);
	fputs("\nCommands (descry COMMAND --help lists the options of one)\n", f);
	for (const struct command *k = commands; k->name; k++)
		if (k->doc)
			fprintf(f, "  %-12s %s\n", k->name, k->doc);
	fputs("\nPages (descry help NAME prints one)\n", f);
	for (size_t i = 0; i < ARRAY_SIZE(topics); i++)
		fprintf(f, "  %-12s %s\n", topics[i].name, topics[i].doc);
}

void help_topics(void (*each)(void *arg, const char *name, const char *doc), void *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(topics); i++)
		each(arg, topics[i].name, topics[i].doc);
	for (const struct command *k = commands; k->name; k++)
		if (k->doc)
			each(arg, k->name, k->doc);
}

static const char *page_text(const char *name)
{
	for (const struct page *p = pages; p->name; p++)
		if (!strcmp(p->name, name))
			return p->text;
	return NULL;
}

static void offer(void *near, const char *name, const char *doc)
{
	nearest_offer(near, name);
}

static int print_topic(const char *name)
{
	/* The command flame has the page descry-flame(1). */
	const char *plain = !strncmp(name, "descry-", 7) ? name + 7 : name, *text;
	cleanup_free char *manual = xasprintf("descry-%s", plain);
	struct nearest near = { .word = plain };

	for (size_t i = 0; i < ARRAY_SIZE(topics); i++) {
		if (strcmp(topics[i].name, plain))
			continue;
		if (topics[i].print)
			topics[i].print(stdout);
		else
			fputs(page_text(topics[i].page), stdout);
		return 0;
	}
	text = page_text(manual);
	if (text) {
		fputs(text, stdout);
		return 0;
	}
	help_topics(offer, &near);
	return tool_wrong("there is no page about %s%s%s%s; descry help lists the pages", name,
			  near.name ? " (did you mean " : "", near.name ? near.name : "",
			  near.name ? "?)" : "");
}

const struct opt help_opts[] = { { 0 } };

int cmd_help(int argc, char **argv)
{
	int status;

	if (argc > 2)
		return tool_wrong("one page at a time");
	if (argc < 2 || !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		help_overview(stdout);
		return 0;
	}
	status = print_topic(argv[1]);
	tool_check_output();
	return status;
}
