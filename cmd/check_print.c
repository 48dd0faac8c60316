/* Prints the tables of descry check as text or as JSON. */
#define _GNU_SOURCE
#include "base/term.h"
#include "check.h"
#include "base/out.h"
#include "render/json.h"

#define BOLD "\033[1m"
#define GREEN "\033[32m"
#define RED "\033[31m"
#define PLAIN "\033[0m"

/* Writes a key for JSON: underlines replace its spaces. */
static void json_key(struct out *o, const char *key)
{
	out_char(o, '"');
	for (; *key; key++)
		out_char(o, *key == ' ' ? '_' : *key);
	out_str(o, "\":");
}

static void json_table(struct out *o, const struct check_table *t)
{
	json_key(o, t->subject);
	out_char(o, '[');
	for (uint32_t r = 0; r < check_rows(t); r++) {
		out_str(o, r ? ",\n\t{" : "\n\t{");
		for (uint32_t c = 0; c < t->ncolumns; c++) {
			const char *cell = check_cell(t, r, c);

			if (c)
				out_char(o, ',');
			json_key(o, t->columns[c].key);
			if (cell)
				json_string(o, cell, strlen(cell));
			else
				out_str(o, "null");
		}
		out_char(o, '}');
	}
	out_char(o, ']');
}

void check_json(FILE *out, const struct check_table *tables, uint32_t n)
{
	struct out o;
	bool any = false;

	out_init(&o, NULL);
	out_str(&o, "{");
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			out_str(&o, ",\n");
		json_table(&o, &tables[i]);
	}
	out_str(&o, ",\n\"notes\":[");
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < tables[i].notes.n; k++) {
			if (any)
				out_char(&o, ',');
			any = true;
			json_string(&o, tables[i].notes.v[k], strlen(tables[i].notes.v[k]));
		}
	out_str(&o, "]}\n");
	fwrite(o.v, 1, o.n, out);
	out_fini(&o);
}

static const char *color_of(const char *cell)
{
	if (!strcmp(cell, "yes"))
		return GREEN;
	return !strcmp(cell, "no") ? RED : NULL;
}

static size_t width_of(const struct check_table *t, uint32_t column)
{
	size_t w = strlen(t->columns[column].key);

	for (uint32_t r = 0; r < check_rows(t); r++) {
		const char *cell = check_cell(t, r, column);

		if (cell && strlen(cell) > w)
			w = strlen(cell);
	}
	return w;
}

/* Finds the last column of the rows, which needs no padding. */
static uint32_t last_column(const struct check_table *t)
{
	uint32_t last = 0;

	for (uint32_t c = 0; c < t->ncolumns; c++)
		if (t->columns[c].place == CHECK_COLUMN)
			last = c;
	return last;
}

/* Writes an escape sequence past the filter that keeps other escapes off a terminal
 * (base/term.h). */
static void escape(FILE *out, bool color, const char *sequence)
{
	if (color)
		term_raw(out, sequence, strlen(sequence));
}

static bool same_below(const struct check_table *t, uint32_t a, uint32_t b)
{
	for (uint32_t c = 0; c < t->ncolumns; c++) {
		const char *x = check_cell(t, a, c), *y = check_cell(t, b, c);

		if (t->columns[c].place == CHECK_BELOW && (!x || !y ? x != y : strcmp(x, y) != 0))
			return false;
	}
	return true;
}

static void text_row(FILE *out, const struct check_table *t, uint32_t r, const size_t *widths,
		     bool color)
{
	uint32_t last = last_column(t);

	fputs("  ", out);
	for (uint32_t c = 0; c <= last; c++) {
		const char *cell = check_cell(t, r, c);
		const char *tint = cell ? color_of(cell) : NULL;

		if (t->columns[c].place != CHECK_COLUMN)
			continue;
		if (tint)
			escape(out, color, tint);
		fprintf(out, "%-*s", c == last ? 0 : (int)widths[c] + 2, cell ? cell : "-");
		if (tint)
			escape(out, color, PLAIN);
	}
	fputc('\n', out);
	/* A text that several rows share is printed once, below the last of these rows. */
	if (r + 1 < check_rows(t) && same_below(t, r, r + 1))
		return;
	for (uint32_t c = 0; c < t->ncolumns; c++)
		if (t->columns[c].place == CHECK_BELOW && check_cell(t, r, c))
			fprintf(out, "      %s: %s\n", t->columns[c].key, check_cell(t, r, c));
}

static void text_table(FILE *out, const struct check_table *t, bool color)
{
	size_t *widths = xcalloc(t->ncolumns, sizeof(*widths));
	uint32_t last = last_column(t);

	escape(out, color, BOLD);
	fprintf(out, "%s\n", t->title);
	escape(out, color, PLAIN);
	for (uint32_t c = 0; c < t->ncolumns; c++)
		widths[c] = width_of(t, c);
	if (check_rows(t)) {
		fputs("  ", out);
		for (uint32_t c = 0; c <= last; c++)
			if (t->columns[c].place == CHECK_COLUMN)
				fprintf(out, "%-*s", c == last ? 0 : (int)widths[c] + 2,
					t->columns[c].key);
		fputc('\n', out);
	}
	for (uint32_t r = 0; r < check_rows(t); r++)
		text_row(out, t, r, widths, color);
	for (uint32_t i = 0; i < t->notes.n; i++)
		fprintf(out, "  (%s)\n", t->notes.v[i]);
	free(widths);
}

void check_print(FILE *out, const struct check_table *tables, uint32_t n, bool color)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			fputc('\n', out);
		text_table(out, &tables[i], color);
	}
}
