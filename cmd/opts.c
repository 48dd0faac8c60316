/* Makes the help and the argument of getopt_long(3) from a table of options, and takes options by
 * the table. */
#include "opts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmdline.h"
#include "tool.h"

enum { DOC_COLUMN = 30 };

static bool is_end(const struct opt *o)
{
	return !o->id && !o->doc;
}

void opt_getopt_init(struct opt_getopt *g, const char *prefix, const struct opt *table)
{
	size_t n = strlen(prefix), nlongs = 0;

	memset(g, 0, sizeof(*g));
	memcpy(g->shorts, prefix, n);
	for (const struct opt *o = table; !is_end(o); o++) {
		assert(n + 3 < sizeof(g->shorts) && nlongs + 1 < ARRAY_SIZE(g->longs));
		if (o->id > 0 && o->id < 256) {
			g->shorts[n++] = (char)o->id;
			if (o->arg)
				g->shorts[n++] = ':';
		}
		if (o->name)
			g->longs[nlongs++] = (struct option){
				o->name,
				!o->arg          ? no_argument
				: *o->arg == '[' ? optional_argument
						 : required_argument,
				NULL, o->id < OPT_LONG ? o->id : OPT_LONG + (int)(o - table)
			};
	}
}

static void print_doc(const char *doc, FILE *f)
{
	for (; *doc; doc++) {
		fputc(*doc, f);
		if (*doc == '\n')
			fprintf(f, "%*s", DOC_COLUMN, "");
	}
	fputc('\n', f);
}

void opt_print(const struct opt *table, FILE *f)
{
	for (const struct opt *o = table; !is_end(o); o++) {
		int n = 2;

		if (!o->id) {
			fprintf(f, "%s\n", o->doc);
			continue;
		}
		if (!o->doc)
			continue;
		fputs("  ", f);
		if (o->id < 256)
			n += fprintf(f, "-%c%s", o->id, o->name ? ", " : "");
		if (o->name)
			n += fprintf(f, "--%s", o->name);
		if (o->arg)
			n += fprintf(f, "%s%s", *o->arg == '[' ? "" : " ", o->arg);
		if (n > DOC_COLUMN - 2) {
			fputc('\n', f);
			n = 0;
		}
		fprintf(f, "%*s", DOC_COLUMN - n, "");
		print_doc(o->doc, f);
	}
}

const struct opt *opt_find(const struct opt *table, const char *typed)
{
	for (const struct opt *o = table; !is_end(o); o++) {
		if (typed[0] != '-' || !o->id)
			continue;
		if (typed[1] == '-' ? o->name && !strcmp(o->name, typed + 2)
				    : o->id < 256 && typed[1] == o->id && !typed[2])
			return o;
	}
	return NULL;
}

bool opt_takes_word(const struct opt *o)
{
	return o->arg && *o->arg != '[';
}

int opt_set(const struct opt *o, void *into, const char *arg)
{
	void *at = (char *)into + o->into.at;
	double min = o->into.min, max = o->into.max, real = 0;
	char name[64];
	int64_t whole;
	int status;

	if (o->id < OPT_LONG)
		snprintf(name, sizeof(name), "-%c", o->id);
	else
		snprintf(name, sizeof(name), "--%s", o->name);
	switch (o->into.type) {
	case OPT_NONE: return -1;
	case OPT_BOOL: *(bool *)at = true; return 0;
	case OPT_STRING: *(const char **)at = arg; return 0;
	case OPT_REAL: return tool_number(name, arg, min, max, at);
	case OPT_WHOLE:
		status = tool_number(name, arg, min, max, &real);
		*(uint32_t *)at = (uint32_t)real;
		return status;
	case OPT_INTEGER:
		status = tool_integer(name, arg, (int64_t)min, (int64_t)max, &whole);
		if (!status)
			*(uint32_t *)at = (uint32_t)whole;
		return status;
	}
	return -1;
}

int opts_take(const struct opt_parse *p, int argc, char **argv)
{
	struct opt_getopt g;
	int id, status = 0;

	opt_getopt_init(&g, p->prefix ? p->prefix : "", p->table);
	while (!status && (id = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
		const struct opt *o = id < OPT_LONG ? p->table : p->table + (id - OPT_LONG);

		while (id < OPT_LONG && !is_end(o) && o->id != id)
			o++;
		if (id == 'h') {
			fputs(p->help, stdout);
			opt_print(p->table, stdout);
			exit(tool_end(0));
		}
		status = opt_set(o, p->into, optarg);
		if (status < 0 && p->take)
			status = p->take(p->into, o, optarg);
		if (status < 0 && p->program && o->id < OPT_LONG)
			status = cmdline_take(p->program, o->id, optarg);
		if (status < 0)
			status = tool_hint();
	}
	return status;
}
