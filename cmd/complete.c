/* descry complete N WORD...: prints the candidates for word N of a descry command line, a line
 * each: WORD, TAB, description. A line ":file", ":directory" or ":command" requests the shell's own
 * completion. tools/completion/ calls it, so that the shells offer the options of the tables and
 * the existing probes. */
#define _GNU_SOURCE /* strchrnul */
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/procdir.h"
#include "commands.h"
#include "data/options.h"
#include "probe/probe.h"
#include "tool.h"

enum { CANDIDATES_MAX = 20000, FIELDS = 4 };

struct completion {
	char **words; /* words[0] is descry */
	uint32_t n;   /* the number of words, up to the word that is completed */
	const char *word;
	const char *lead; /* text before each candidate: fields of a probe */
	const char *tail;
	struct hash seen;
};

static void candidate(struct completion *c, const char *text, const char *doc)
{
	const char *end = doc ? strchrnul(doc, '\n') : NULL;
	cleanup_free char *all = xasprintf("%s%s%s", c->lead, text, c->tail);
	bool is_new;

	if (strncmp(all, c->word, strlen(c->word)) || c->seen.n >= CANDIDATES_MAX)
		return;
	hash_put(&c->seen, all, strlen(all), &is_new);
	if (is_new)
		printf("%s\t%.*s\n", all, doc ? (int)(end - doc) : 0, doc ? doc : "");
}

static void candidate_each(void *c, const char *name, const char *doc)
{
	candidate(c, name, doc);
}

static void candidate_words(struct completion *c, const char *words, const char *between)
{
	cleanup_free char *copy = xstrdup(words);

	for (char *rest = copy, *w; (w = strsep(&rest, between));)
		candidate(c, w, NULL);
}

static void candidate_options(struct completion *c, const struct opt *table)
{
	for (const struct opt *o = table; o && (o->id || o->doc); o++) {
		char letter[3] = { '-', (char)o->id, 0 };
		cleanup_free char *name = o->name ? xasprintf("--%s", o->name) : NULL;

		if (!o->id || !o->doc)
			continue;
		if (name)
			candidate(c, name, o->doc);
		if (o->id < 256)
			candidate(c, letter, o->doc);
	}
}

static void candidate_processes(struct completion *c)
{
	cleanup_dir DIR *d = opendir("/proc");

	for (pid_t pid; procdir_next(d, &pid);) {
		cleanup_free char *path = xasprintf("/proc/%d/comm", (int)pid);
		cleanup_free char *number = xasprintf("%d", (int)pid);
		cleanup_free char *name = NULL;
		size_t n;

		err_free(io_read_file(path, &name, &n));
		candidate(c, number, name);
	}
}

/* --- -x --- */

static void candidate_settings(struct completion *c)
{
	static const struct {
		const char *name, *doc, *values; /* values: of an enumeration, "a|b|c" */
	} settings[] = {
#define X(id, name, kind, def, when, doc) \
	{ name, kind == OPTION_IGNORED ? NULL : doc, kind == OPTION_ENUM ? def : NULL },
#include "data/options.def"
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		cleanup_free char *lead = xasprintf("%s=", settings[i].name);

		if (settings[i].doc)
			candidate(c, settings[i].name, settings[i].doc);
		if (!settings[i].values || strncmp(c->word, lead, strlen(lead)) != 0)
			continue;
		c->lead = lead;
		candidate_words(c, settings[i].values, "|");
		c->lead = "";
	}
}

/* --- probes --- */

static void candidate_providers(struct completion *c)
{
	for (const struct provider *const *pv = providers; *pv; pv++) {
		bool of_process = *pv == &provider_pid || *pv == &provider_plt ||
				  *pv == &provider_plockstat || *pv == &provider_node;
		cleanup_free char *name =
			xasprintf("%s%s", (*pv)->name, of_process ? "$target" : "");

		if (*pv != &provider_usdt)
			candidate(c, name, (*pv)->doc);
	}
}

struct field_of_probes {
	struct completion *c;
	int field;
};

static void offer_field(void *arg, struct probe *p)
{
	struct field_of_probes *f = arg;
	const char *const fields[FIELDS] = { p->prov, p->mod, p->func, p->name };

	if (!p->unavailable)
		candidate(f->c, fields[f->field], NULL);
}

/* Returns the process of -p on the command line; 0: none. */
static pid_t target_of(const struct completion *c)
{
	int64_t pid = 0;

	for (uint32_t i = 1; i + 1 < c->n; i++)
		if (!strcmp(c->words[i], "-p") && number_parse(c->words[i + 1], 1, INT32_MAX, &pid))
			return (pid_t)pid;
	return 0;
}

/* Completes "syscall::op": keeps its fields, and finds the probes that continue it. */
static void candidate_fields(struct completion *c)
{
	struct type_graph *types = type_graph_new();
	struct symbols *symbols = symbols_new();
	cleanup_free char *copy = xstrdup(c->word);
	char *fields[FIELDS] = { copy, (char *)"", (char *)"", (char *)"" };
	cleanup_free char *prov = NULL;
	cleanup_free char *part = NULL;
	cleanup_free char *lead = NULL;
	struct field_of_probes f = { c, 0 };
	struct probe_set ps;
	struct probe_desc pd;
	pid_t pid = target_of(c);
	char *target;
	uint32_t n;

	for (char *s = copy; (s = strchr(s, ':')) && f.field < FIELDS - 1;) {
		*s++ = '\0';
		fields[++f.field] = s;
	}
	lead = xstrndup(c->word, (size_t)(fields[f.field] - copy));
	part = xasprintf("%s*", fields[f.field]);
	type_use_kernel(types, NULL);
	probe_set_init(&ps, types, symbols);
	if (pid)
		vec_push(&ps.targets, (struct probe_target){ pid, false });
	target = strstr(fields[0], "$target");
	prov = target && pid ? xasprintf("%.*s%d", (int)(target - fields[0]), fields[0], (int)pid)
			     : xstrdup(fields[0]);
	pd = (struct probe_desc){ prov, fields[1], fields[2], fields[3] };
	*(f.field == 1 ? &pd.mod : f.field == 2 ? &pd.func : &pd.name) = part;
	c->lead = lead;
	c->tail = f.field < FIELDS - 1 ? ":" : "";
	err_free(probe_match(&ps, &pd, offer_field, &f, &n));
	c->lead = c->tail = "";
	probe_set_fini(&ps);
	symbols_free(symbols);
	type_graph_free(types);
}

static void candidate_probes(struct completion *c)
{
	if (strpbrk(c->word, " /{"))
		return; /* the word is past the probe description */
	if (strchr(c->word, ':')) {
		candidate_fields(c);
		return;
	}
	c->tail = ":";
	candidate_providers(c);
	c->tail = "";
}

/* --- a command line --- */

static void candidate_values(struct completion *c, const struct opt *o)
{
	static const struct {
		const char *kind, *line;
	} shells[] = { { OPT_FILE, ":file" },
		       { OPT_DIR, ":directory" },
		       { OPT_COMMAND, ":command" } };

	if (!o->values)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (!strcmp(o->values, shells[i].kind))
			puts(shells[i].line);
	if (*o->values != '@')
		candidate_words(c, o->values, " ");
	else if (!strcmp(o->values, OPT_PROCESS))
		candidate_processes(c);
	else if (!strcmp(o->values, OPT_SETTING))
		candidate_settings(c);
	else if (!strcmp(o->values, OPT_PROVIDER))
		candidate_providers(c);
	else if (!strcmp(o->values, OPT_PROBE))
		candidate_probes(c);
}

static void candidate_commands(struct completion *c)
{
	for (const struct command *k = commands; k->name; k++)
		if (k->doc)
			candidate(c, k->name, k->doc);
}

/* Completes a word that is not an option, as an argument of the command. */
static void candidate_arguments(struct completion *c, const struct command *k)
{
	if (!k)
		puts(":file");
	else if (k->run == cmd_help)
		help_topics(candidate_each, c);
	else if (k->opts == heal_opts)
		candidate_processes(c);
	else if (k->opts == list_opts)
		candidate_probes(c);
	else
		puts(":file");
}

static void complete(struct completion *c)
{
	const struct command *k = c->n > 1 ? command_find(c->words[1]) : NULL;
	const struct opt *table = k ? k->opts : trace_opts;
	const struct opt *before = table && c->n > 1 ? opt_find(table, c->words[c->n - 1]) : NULL;
	const char *equals = strchr(c->word, '=');

	if (before && opt_takes_word(before)) {
		candidate_values(c, before);
	} else if (table && equals && !strncmp(c->word, "--", 2)) {
		cleanup_free char *name = xstrndup(c->word, (size_t)(equals - c->word));
		cleanup_free char *lead = xasprintf("%s=", name);

		before = opt_find(table, name);
		c->lead = lead;
		if (before && before->arg)
			candidate_values(c, before);
		c->lead = "";
	} else if (*c->word == '-') {
		candidate_options(c, table);
	} else if (c->n == 1) {
		candidate_commands(c);
	} else {
		candidate_arguments(c, k);
	}
}

const struct opt complete_opts[] = { { 0 } };

int cmd_complete(int argc, char **argv)
{
	struct completion c = { .lead = "", .tail = "" };
	int64_t n;

	if (argc < 3)
		return tool_wrong("completion of shells calls this: descry complete N WORD...");
	if (tool_integer("complete", argv[1], 1, argc - 2, &n))
		return 2;
	c.words = argv + 2;
	c.n = (uint32_t)n;
	c.word = n < argc - 2 ? argv[2 + n] : "";
	complete(&c);
	hash_fini(&c.seen);
	return 0;
}
