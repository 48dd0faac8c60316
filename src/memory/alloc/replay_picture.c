/* Draws the resident memory of several allocators over the time of a recording, as an SVG. */
#include "memory/alloc/alloc_report.h"
#include "memory/alloc/replay.h"
#include "render/picture_flame.h"

enum { WIDTH = 1000, HEIGHT = 460, LEFT = 90, RIGHT = 180, TOP = 50, BOTTOM = 50, LINES = 4 };

/* Okabe and Ito's colours, which colour-blind people can distinguish. */
static const char *const colors[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
				      "#b89b00", "#56b4e9", "#757575" };

struct axes {
	uint64_t time, bytes; /* the largest */
};

static double x_of(const struct axes *a, uint64_t time)
{
	return LEFT + (double)time / (double)a->time * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axes *a, uint64_t bytes)
{
	return HEIGHT - BOTTOM - (double)bytes / (double)a->bytes * (HEIGHT - TOP - BOTTOM);
}

static void picture_text(struct out *o, const char *text)
{
	struct out shown = { 0 };

	flame_shown(&shown, text, strlen(text));
	flame_xml(o, shown.v, shown.n);
	out_fini(&shown);
}

static void put_axes(const struct axes *a, struct out *o)
{
	char buf[32];

	for (uint32_t i = 0; i <= LINES; i++) {
		double y = y_of(a, a->bytes / LINES * i), x = x_of(a, a->time / LINES * i);

		out_printf(o,
			   "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" "
			   "text-anchor=\"end\">%s</text>\n",
			   LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4,
			   report_bytes_text(buf, a->bytes / LINES * i));
		out_printf(o, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g s</text>\n", x,
			   HEIGHT - BOTTOM + 20, (double)(a->time / LINES * i) / 1e9);
	}
}

static void put_curve(const struct axes *a, const struct replay_curve *c, bool live,
		      const char *color, struct out *o)
{
	out_printf(o, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s points=\"",
		   color, live ? " stroke-dasharray=\"5 3\"" : "");
	for (uint64_t i = 0; i < c->npoints; i++)
		out_printf(o, "%s%.1f,%.1f", i ? " " : "", x_of(a, c->points[i].time),
			   y_of(a, live ? c->points[i].live : c->points[i].resident));
	out_str(o, "\"/>\n");
}

static void put_legend(uint32_t row, const char *name, const char *color, struct out *o)
{
	uint32_t y = TOP + row * 20;

	out_printf(o,
		   "<path d=\"M%d %uh20\" stroke=\"%s\" stroke-width=\"3\"/><text x=\"%d\" "
		   "y=\"%u\">",
		   WIDTH - RIGHT + 15, y, color, WIDTH - RIGHT + 42, y + 4);
	picture_text(o, name);
	out_str(o, "</text>\n");
}

void replay_picture(const struct replay_curve *v, uint32_t n, const char *title, struct out *o)
{
	struct axes a = { 1, 1 };

	for (uint32_t i = 0; i < n; i++) {
		for (uint64_t k = 0; k < v[i].npoints; k++) {
			const struct replay_point *p = &v[i].points[k];

			a.time = p->time > a.time ? p->time : a.time;
			a.bytes = p->resident > a.bytes ? p->resident : a.bytes;
			a.bytes = p->live > a.bytes ? p->live : a.bytes;
		}
	}
	out_printf(o,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		   "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		   "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		   "<text x=\"%d\" y=\"28\" font-size=\"16\">",
		   WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
	picture_text(o, title);
	out_str(o, "</text>\n");
	put_axes(&a, o);
	out_printf(o,
		   "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">time of the recording</text>\n",
		   (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10);
	if (n)
		put_curve(&a, &v[0], true, "#000", o);
	for (uint32_t i = 0; i < n; i++) {
		put_curve(&a, &v[i], false, colors[i % ARRAY_SIZE(colors)], o);
		put_legend(i, v[i].name, colors[i % ARRAY_SIZE(colors)], o);
	}
	put_legend(n, "live bytes", "#000", o);
	out_str(o, "</svg>\n");
}
