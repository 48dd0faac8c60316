/* Makes the help and the argument of getopt_long(3) from a table of options. */
#include "opts.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

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
			g->longs[nlongs++] = (struct option){ o->name,
							      !o->arg          ? no_argument
							      : *o->arg == '[' ? optional_argument
									       : required_argument,
							      NULL, o->id };
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

const char *opt_long_name(const struct opt *table, int id)
{
	for (const struct opt *o = table; !is_end(o); o++)
		if (o->id == id && o->name)
			return o->name;
	return NULL;
}
