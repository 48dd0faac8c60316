/* Writes a heat map for a terminal: a character for each cell, in 256 colours or as one of "
 * .:-=+*#%@". Neighbours become one cell where there is not enough room. */
#include "render/picture_flame.h"
#include "render/picture_heat.h"

enum { LABEL = 9, NAME = 24 };

/* Returns the nearest of the 6x6x6 colours and the greys of a 256 colour terminal. */
static unsigned terminal_color(uint32_t rgb)
{
	static const uint8_t steps[] = { 0, 95, 135, 175, 215, 255 };
	unsigned index = 0, grey, distance = 0, grey_distance = 0, mean = 0;

	for (int shift = 16; shift >= 0; shift -= 8) {
		int c = rgb >> shift & 255, best = 0;

		for (int i = 1; i < 6; i++)
			best = abs(steps[i] - c) < abs(steps[best] - c) ? i : best;
		index = index * 6 + (unsigned)best;
		distance += (unsigned)((steps[best] - c) * (steps[best] - c));
		mean += (unsigned)c;
	}
	grey = mean / 3 < 8 ? 0 : (mean / 3 - 8) / 10 > 23 ? 23 : (mean / 3 - 8) / 10;
	for (int shift = 16; shift >= 0; shift -= 8) {
		int d = (int)(rgb >> shift & 255) - (int)(8 + grey * 10);

		grey_distance += (unsigned)(d * d);
	}
	return grey_distance < distance ? 232 + grey : 16 + index;
}

static void put_color(struct out *o, uint32_t series, uint32_t nseries, uint32_t level)
{
	out_printf(o, "\033[48;5;%um", terminal_color(heat_color(series, nseries, level)));
}

static void put_padded(struct out *o, struct out *text, int width)
{
	out_padded(o, text->v, text->n, width);
	text->n = 0;
}

static void put_row(const struct matrix_view *v, const struct heat_options *opt, uint32_t row,
		    const uint32_t *at, const uint8_t *levels, bool label, struct out *o,
		    struct out *text)
{
	static const char shades[] = " .:-=+*#%@";
	unsigned now = 0;

	if (label)
		heat_value(text, v->rows.v[row].min, opt->unit);
	put_padded(o, text, LABEL);
	out_str(o, label ? " +" : " |");
	for (uint32_t c = 0; c < v->ncolumns; c++) {
		uint32_t i = at[(size_t)row * v->ncolumns + c];

		if (!opt->color) {
			out_char(o, i == UINT32_MAX ? ' ' : shades[1 + levels[i] * 8 / 255]);
			continue;
		}
		if (i == UINT32_MAX) {
			out_str(o, now ? "\033[0m " : " ");
			now = 0;
			continue;
		}
		put_color(o, v->cells.v[i].series, v->series.n, levels[i]);
		now = 1;
		out_char(o, ' ');
	}
	out_str(o, now ? "\033[0m\n" : "\n");
}

static void put_times(const struct matrix_view *v, struct out *o, struct out *text)
{
	uint32_t every = heat_every(1, heat_is_wall(v) ? 10 : 8), done = 0;
	uint64_t from = heat_is_wall(v) ? v->first : 0;

	out_fill(o, ' ', LABEL + 1);
	out_char(o, '+');
	for (uint32_t c = 0; c < v->ncolumns; c++)
		out_char(o, (from + c) % every ? '-' : '+');
	out_char(o, '\n');
	out_fill(o, ' ', LABEL + 2);
	for (uint32_t c = 0; c < v->ncolumns; c++) {
		if ((from + c) % every || c < done)
			continue;
		heat_time(text, v, c);
		out_fill(o, ' ', c - done);
		done = c + (uint32_t)text->n + 1;
		put_padded(o, text, 0);
		out_char(o, ' ');
	}
	out_char(o, '\n');
}

static void put_legend(const struct matrix_view *v, const struct heat_options *opt, struct out *o,
		       struct out *text)
{
	uint32_t shown = v->series.n < HEAT_HUES ? v->series.n : HEAT_HUES;

	out_fill(o, ' ', LABEL + 2);
	out_printf(o, "%s: 1 ", heat_scale_name(opt->scale));
	for (uint32_t i = 1; i <= 12 && opt->color; i++) {
		put_color(o, 0, v->series.n, i * 255 / 12);
		out_char(o, ' ');
	}
	out_str(o, opt->color ? "\033[0m " : ".:-=+*#%@ ");
	flame_number(o, v->max);
	if (opt->lost)
		out_printf(o, "; %llu lost by the tracer", (unsigned long long)opt->lost);
	out_char(o, '\n');
	for (uint32_t i = 0; i < shown && v->series.n > 1; i++) {
		const struct matrix_name *n = &v->series.v[i].name;

		if (i % 3 == 0)
			out_fill(o, ' ', LABEL + 2);
		if (opt->color) {
			put_color(o, i, v->series.n, 170);
			out_str(o, "  \033[0m ");
		}
		flame_shown(text, n->text, n->len < NAME ? n->len : NAME);
		put_padded(o, text, -NAME);
		out_char(o, i % 3 == 2 || i + 1 == shown ? '\n' : ' ');
	}
}

static void draw(const struct matrix_view *v, const struct heat_options *opt, struct out *o)
{
	cleanup_free uint8_t *levels = heat_levels(v, opt->scale);
	cleanup_free bool *labels = heat_row_labels(v, 1, v->rows.n > 12 ? 3 : 1);
	cleanup_free uint32_t *at = xmalloc(sizeof(*at) * ((size_t)v->rows.n * v->ncolumns + 1));
	struct out text = { 0 };

	memset(at, 0xff, sizeof(*at) * (size_t)v->rows.n * v->ncolumns);
	for (uint32_t i = 0; i < v->cells.n; i++)
		at[(size_t)v->cells.v[i].row * v->ncolumns + v->cells.v[i].column] = i;
	for (uint32_t row = v->rows.n; row-- > 0;)
		put_row(v, opt, row, at, levels, labels[row], o, &text);
	put_times(v, o, &text);
	put_legend(v, opt, o, &text);
	out_fini(&text);
}

/* Merges rows whose width grows so that many new rows begin at a round number, and equal rows from
 * the first on. */
static uint32_t lowest_group(const struct matrix_view *v, uint32_t rows)
{
	const struct matrix_row *r = v->rows.v;
	uint32_t best = rows, n = v->rows.n;
	int most = -1;

	if (n < 4 || r[1].max - r[1].min == r[n - 2].max - r[n - 2].min)
		return rows;

	for (uint32_t low = rows; low > 0; low--) {
		int sum = 0;

		for (uint32_t i = low; i < v->rows.n; i += rows)
			sum += heat_roundness(v->rows.v[i].min);
		if (sum > most) {
			most = sum;
			best = low;
		}
	}
	return best;
}

void heat_terminal(const struct matrix_view *v, const struct heat_options *opt, struct out *o)
{
	uint32_t width = (opt->width ? opt->width : 80), height = opt->height ? opt->height : 24,
		 columns, rows;
	struct matrix_view small;

	width = width > LABEL + 12 ? width - LABEL - 3 : 10;
	height = height > 14 ? height - 7 : 8;
	if (opt->title) {
		flame_shown(o, opt->title, strlen(opt->title));
		out_char(o, '\n');
	}
	if (!v->cells.n) {
		out_str(o, "There are no events in the input.\n");
		return;
	}
	columns = (v->ncolumns + width - 1) / width;
	rows = (v->rows.n + height - 1) / height;
	if (columns > 1) /* they begin at a whole number of steps: one more may be needed */
		columns = (v->ncolumns + width - 2) / (width - 1);
	if (columns == 1 && rows == 1) {
		draw(v, opt, o);
		return;
	}
	if (v->rows.n % rows && rows > 1) /* one group more, when the lowest is not a full one */
		rows = (v->rows.n + height - 2) / (height - 1);
	matrix_view_shrink(v, columns, rows, lowest_group(v, rows), &small);
	draw(&small, opt, o);
	matrix_view_fini(&small);
}
