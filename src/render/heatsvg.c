/* Writes a heat map as an SVG picture without script. The title of a cell has its content. */
#include "render/picture_flame.h"
#include "render/picture_heat.h"

enum {
	LEFT = 84,
	RIGHT = 24,
	TOP = 52,
	BOTTOM = 40,
	LEGEND = 22,
	FONT = 12,
	LETTER = 7,
	CELL_PARTIES = 5
};

struct svg {
	const struct matrix_view *v;
	const struct heat_options *o;
	struct out *out, text; /* text: the text that is about to be escaped */
	double cell, row;      /* pixels */
	double width, height;  /* of the cells together */
};

static void put_escaped(struct svg *s)
{
	flame_xml(s->out, s->text.v, s->text.n);
	s->text.n = 0;
}

static void put_shown(struct svg *s, const char *text, size_t n)
{
	flame_shown(&s->text, text, n);
	put_escaped(s);
}

static void open_text(struct svg *s, double x, double y, const char *class)
{
	out_printf(s->out, "<text x=\"%g\" y=\"%g\" class=\"%s\">", x, y, class);
}

static void close_text(struct svg *s)
{
	out_str(s->out, "</text>\n");
}

static double row_top(const struct svg *s, uint32_t row)
{
	return TOP + s->height - (row + 1) * s->row;
}

static void put_cell(struct svg *s, const struct matrix_cell *c, uint8_t level)
{
	struct out *o = s->out;

	out_printf(o, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"#%06x\"><title>",
		   LEFT + c->column * s->cell, row_top(s, c->row), s->cell, s->row,
		   heat_color(c->series, s->v->series.n, level));
	heat_time(&s->text, s->v, c->column);
	out_str(&s->text, ", ");
	heat_range(&s->text, &s->v->rows.v[c->row], s->o->unit);
	out_str(&s->text, ": ");
	flame_number(&s->text, c->count);
	out_str(&s->text, " (");
	heat_parties(&s->text, s->v, c, CELL_PARTIES);
	out_char(&s->text, ')');
	put_escaped(s);
	out_str(o, "</title></rect>\n");
}

static void put_axes(struct svg *s)
{
	const struct matrix_view *v = s->v;
	uint32_t every = heat_every(s->cell, 70);
	cleanup_free bool *labels = heat_row_labels(v, s->row, 16);
	uint64_t from = heat_is_wall(v) ? v->first : 0;

	out_str(s->out, "<g class=\"axis\">\n");
	for (uint32_t c = 0; c < v->ncolumns; c++) {
		double x = LEFT + c * s->cell;

		if ((from + c) % every)
			continue;
		out_printf(s->out, "<path d=\"M%g %gv6\"/>", x, TOP + s->height);
		open_text(s, x, TOP + s->height + 19, "time");
		heat_time(&s->text, v, c);
		put_escaped(s);
		close_text(s);
	}
	for (uint32_t r = 0; r < v->rows.n; r++) {
		double y = row_top(s, r) + s->row;

		if (!labels[r])
			continue;
		out_printf(s->out, "<path d=\"M%d %gh-6\"/><path class=\"grid\" d=\"M%d %gh%g\"/>",
			   LEFT, y, LEFT, y, s->width);
		open_text(s, LEFT - 9, y + 4, "value");
		heat_value(&s->text, v->rows.v[r].min, s->o->unit);
		put_escaped(s);
		close_text(s);
	}
	out_str(s->out, "</g>\n");
}

/* The series with their hues, then the scale of counts. */
static void put_legend(struct svg *s, double y)
{
	const struct matrix_view *v = s->v;
	double x = LEFT, right = LEFT + s->width - 230;
	uint32_t shown = 0;

	for (; shown < v->series.n && v->series.n > 1; shown++) {
		const struct matrix_name *n = &v->series.v[shown].name;
		double w = 22 + LETTER * (n->len < 28 ? n->len : 28) + 14;

		if (x + w > right || shown == HEAT_HUES)
			break;
		out_printf(s->out,
			   "<rect x=\"%g\" y=\"%g\" width=\"14\" height=\"12\" fill=\"#%06x\"/>", x,
			   y - 10, heat_color(shown, v->series.n, 170));
		open_text(s, x + 19, y, "name");
		put_shown(s, n->text, n->len < 28 ? n->len : 28);
		if (n->len > 28)
			out_str(s->out, "..");
		close_text(s);
		x += w;
	}
	if (v->series.n > 1 && shown < v->series.n) {
		out_printf(s->out,
			   "<rect x=\"%g\" y=\"%g\" width=\"14\" height=\"12\" fill=\"#%06x\"/>", x,
			   y - 10,
			   heat_color(shown < HEAT_HUES ? shown : HEAT_HUES, v->series.n, 170));
		open_text(s, x + 19, y, "name");
		out_printf(s->out, "%u more", v->series.n - shown);
		close_text(s);
	}
	if (!v->cells.n)
		return;
	x = LEFT + s->width - 120;
	for (uint32_t i = 0; i < 60; i++)
		out_printf(s->out,
			   "<rect x=\"%g\" y=\"%g\" width=\"2.2\" height=\"12\" fill=\"#%06x\"/>",
			   x + i * 2, y - 10, heat_color(0, v->series.n, 1 + i * 254 / 59));
	open_text(s, x - 6, y, "scale");
	out_printf(s->out, "%s: 1 to ", heat_scale_name(s->o->scale));
	flame_number(s->out, v->max);
	close_text(s);
}

static void put_head(struct svg *s, double width, double height)
{
	struct out *o = s->out;
	const char *title = s->o->title ? s->o->title : "Heat map";

	out_printf(
		o,
		"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		"<svg version=\"1.1\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
		"xmlns=\"http://www.w3.org/2000/svg\">\n<style>\n"
		"text { font-family: Verdana, sans-serif; font-size: %dpx; fill: #000; }\n"
		".title { text-anchor: middle; font-size: 17px; }\n"
		".subtitle, .note { fill: #555; }\n.subtitle, .empty { text-anchor: middle; }\n"
		".axis text { fill: #444; font-size: 11px; }\n.axis path { stroke: #888; }\n"
		".axis .grid { stroke: #000; stroke-opacity: 0.07; pointer-events: none; }\n"
		".time { text-anchor: middle; }\n.value, .scale { text-anchor: end; }\n"
		".cells rect { shape-rendering: crispEdges; }\n.cells rect:hover { stroke: #000; stroke-width: 1; }\n"
		"</style>\n<rect width=\"%g\" height=\"%g\" fill=\"#f7f7f4\"/>\n",
		width, height, width, height, FONT, width, height);
	open_text(s, width / 2, 24, "title");
	put_shown(s, title, strlen(title));
	close_text(s);
	if (s->o->subtitle) {
		open_text(s, width / 2, 42, "subtitle");
		put_shown(s, s->o->subtitle, strlen(s->o->subtitle));
		close_text(s);
	}
	out_printf(
		o,
		"<rect x=\"%d\" y=\"%d\" width=\"%g\" height=\"%g\" fill=\"#fff\" stroke=\"#bbb\"/>\n",
		LEFT, TOP, s->width, s->height);
}

static double fit(double room, uint32_t n, double least, double most)
{
	double size = n ? (double)(uint32_t)(room / n) : most;

	return size < least ? least : size > most ? most : size;
}

void heat_svg(const struct matrix_view *v, const struct heat_options *o, struct out *out)
{
	struct svg s = { .v = v, .o = o, .out = out };
	cleanup_free uint8_t *levels = heat_levels(v, o->scale);
	double width, height, inside = (o->width > 400 ? o->width : 1200) - LEFT - RIGHT;

	s.cell = fit(inside, v->ncolumns, o->width && v->ncolumns ? inside / v->ncolumns : 1, 24);
	s.row = fit(480, v->rows.n, 3, 20);
	s.width = s.cell * v->ncolumns < 500 ? 500 : s.cell * v->ncolumns;
	s.height = s.row * (v->rows.n ? v->rows.n : 10);
	width = LEFT + s.width + RIGHT;
	height = TOP + s.height + BOTTOM + LEGEND;
	put_head(&s, width, height);
	if (!v->cells.n) {
		open_text(&s, width / 2, TOP + s.height / 2, "empty");
		out_str(out, "There are no events in the input.");
		close_text(&s);
	}
	out_str(out, "<g class=\"cells\">\n");
	for (uint32_t i = 0; i < v->cells.n; i++)
		put_cell(&s, &v->cells.v[i], levels[i]);
	out_str(out, "</g>\n");
	put_axes(&s);
	put_legend(&s, TOP + s.height + BOTTOM + 6);
	if (o->lost) {
		open_text(&s, LEFT, 42, "note");
		flame_number(out, o->lost);
		out_str(out, " lost by the tracer");
		close_text(&s);
	}
	out_str(out, "</svg>\n");
	out_fini(&s.text);
}
