/* Writes a flame graph as one interactive SVG document. */
#include <math.h>

#include "render/picture_flame.h"

/* tools/embed-files makes them from the files of these names */
extern const char flame_svg_js[], flame_svg_css[];

enum {
	PAD = 10,     /* left and right */
	PAD_TOP = 36, /* the title */
	PAD_SUBTITLE = 24,
	PAD_BOTTOM = 34, /* the details */
	FONT = 12,
	/* frames deeper than this fit on no screen, and browsers draw no picture of that height */
	DEPTH_MAX = 4000
};
static const double FONT_WIDTH = 0.59; /* width of a letter, in font sizes */

struct svg {
	const struct stacktree *t;
	const struct flame_options *o;
	struct out *out, text; /* text: the name of the frame being written */
	struct flame_result *result;
	double width, scale, max_change;
	uint64_t total, min;
	uint32_t frame_height, depth;
	double height;
	/* by depth: the place where the next child of the open frame begins */
	VEC(uint64_t) starts;
};

/* Calls `visit` with each frame that is wide enough to be seen, and the count at which it
 * begins. */
static void each_frame(struct svg *s, void (*visit)(struct svg *s, uint32_t node, uint64_t start))
{
	const struct stacktree *t = s->t;
	bool skip;

	s->starts.n = 0;
	s->result->shown = s->result->culled = 0;
	for (uint32_t i = 0; i != STACKTREE_NONE; i = stacktree_next(t, i, skip)) {
		const struct stacktree_node *n = &t->nodes.v[i];
		uint64_t start = n->depth ? s->starts.v[n->depth - 1] : 0;

		if (n->depth)
			s->starts.v[n->depth - 1] += n->total;
		skip = n->total < s->min || !n->total || n->depth > DEPTH_MAX;
		if (skip) {
			s->result->culled += n->size;
			continue;
		}
		s->result->shown++;
		s->starts.n = n->depth;
		vec_push(&s->starts, start + n->self);
		visit(s, i, start);
	}
}

static void find_depth(struct svg *s, uint32_t node, uint64_t start)
{
	uint32_t depth = s->t->nodes.v[node].depth;

	s->depth = depth > s->depth ? depth : s->depth;
}

/* Writes v in tenths or hundredths, rounded as printf("%.1f") and ("%.2f") do. Calls printf only
 * where the rounding could differ. */
static int64_t fixed(double v, int decimals)
{
	double scaled = v * (decimals == 1 ? 10 : 100), down = floor(scaled);
	char buf[64];
	int64_t r = 0;

	if (v >= 0 && v < 1e12 && fabs(scaled - down - 0.5) > 1e-4)
		return (int64_t)down + (scaled - down > 0.5);
	snprintf(buf, sizeof(buf), "%.*f", decimals, v);
	for (const char *p = buf; *p; p++)
		if (*p >= '0' && *p <= '9')
			r = r * 10 + *p - '0';
	return buf[0] == '-' ? -r : r;
}

static void put_tenths(struct out *o, int64_t v)
{
	out_unsigned(o, (uint64_t)v / 10, 0);
	out_char(o, '.');
	out_char(o, (char)('0' + v % 10));
}

static void put_hundredths(struct out *o, int64_t v)
{
	if (v < 0) {
		out_char(o, '-');
		v = -v;
	}
	out_unsigned(o, (uint64_t)v / 100, 0);
	out_char(o, '.');
	out_char(o, (char)('0' + v / 10 % 10));
	out_char(o, (char)('0' + v % 10));
}

static void put_percent(struct out *o, double part, double whole)
{
	double v = 100 * part / whole;
	int64_t h = fixed(v, 2);

	if (v < 0 && !h) /* as printf: -0.00 */
		out_char(o, '-');
	put_hundredths(o, h);
	out_char(o, '%');
}

/* "name (1,234 samples, 5.67%; +0.12%)" */
static void put_title(struct svg *s, uint32_t node)
{
	const struct stacktree_node *n = &s->t->nodes.v[node];
	struct out *o = s->out;

	flame_xml(o, s->text.v, s->text.n);
	out_str(o, " (");
	flame_number(o, n->total);
	out_char(o, ' ');
	flame_xml(o, s->o->count_name, strlen(s->o->count_name));
	out_str(o, ", ");
	if (node == STACKTREE_ROOT) {
		out_str(o, "100%)");
		return;
	}
	put_percent(o, (double)n->total, (double)s->total);
	if (s->t->differential) {
		double change = (double)n->self - (double)s->t->before.v[node].self;

		if (s->o->negate)
			change = -change;
		out_str(o, change > 0 ? "; +" : "; ");
		put_percent(o, change == 0 ? 0 : change, (double)s->total);
	}
	out_char(o, ')');
}

static uint32_t letters_of(const char *v, size_t n)
{
	uint32_t letters = 0;

	for (size_t i = 0; i < n; i++)
		letters += ((uint8_t)v[i] & 0xc0) != 0x80;
	return letters;
}

/* Writes the name; without the module where that has no room; or the beginning that fits into
 * `chars` letters. */
static void put_label(struct svg *s, uint32_t chars)
{
	const char *v = s->text.v, *tick;
	size_t n = s->text.n, fit = n, i = 0;
	uint32_t letters = 0;

	if (letters_of(v, n) > chars) {
		tick = memchr(v, '`', n);
		if (tick && tick > v && tick + 1 < v + n) {
			n -= (size_t)(tick + 1 - v);
			fit = n;
			v = tick + 1;
		}
	}

	for (; i < n; i++) {
		if (((uint8_t)v[i] & 0xc0) == 0x80)
			continue;
		if (letters + 2 == chars)
			fit = i;
		if (letters++ == chars)
			break;
	}
	flame_xml(s->out, v, i < n ? fit : n);
	if (i < n)
		out_str(s->out, "..");
}

static void put_frame(struct svg *s, uint32_t node, uint64_t start)
{
	const struct stacktree_frame *frame = stacktree_frame_of(s->t, node);
	const struct stacktree_node *n = &s->t->nodes.v[node];
	double x1 = PAD + (double)start * s->scale,
	       x2 = PAD + (double)(start + n->total) * s->scale;
	int64_t t1 = fixed(x1, 1), t2 = fixed(x2, 1);
	double h = s->frame_height,
	       top = s->o->inverted ? s->height - PAD_BOTTOM - (s->depth + 1) * h : 0;
	double y1 = s->o->inverted ? top + n->depth * h
				   : s->height - PAD_BOTTOM - (n->depth + 1) * h + 1;
	double letters = (x2 - x1) / (FONT * FONT_WIDTH);
	struct out *o = s->out;

	s->text.n = 0;
	if (node == STACKTREE_ROOT)
		out_str(&s->text, "all");
	else
		flame_shown(&s->text, frame->text, frame->len);
	out_str(o, "<g data-s=\"");
	out_unsigned(o, start, 0);
	out_str(o, "\" data-n=\"");
	out_unsigned(o, n->total, 0);
	out_str(o, "\" data-d=\"");
	out_unsigned(o, n->depth, 0);
	out_str(o, "\"><title>");
	put_title(s, node);
	out_str(o, "</title><rect x=\"");
	put_tenths(o, t1);
	out_str(o, "\" y=\"");
	out_unsigned(o, (uint64_t)y1, 0);
	out_str(o, "\" width=\"");
	put_tenths(o, t2 - t1);
	out_str(o, "\" height=\"");
	out_unsigned(o, s->frame_height - 1, 0);
	out_printf(o, ".0\" fill=\"#%06x\" rx=\"2\" ry=\"2\"/>",
		   flame_color(s->t, node, s->o, s->max_change));
	if (letters >= 3) {
		out_str(o, "<text x=\"");
		put_hundredths(o, fixed(x1 + 3, 2));
		out_str(o, "\" y=\"");
		put_tenths(o, (int64_t)((3 + (y1 + y1 + h - 1) / 2) * 10));
		out_str(o, "\">");
		put_label(s, (uint32_t)letters);
		out_str(o, "</text>");
	}
	out_str(o, "</g>\n");
}

static void svg_put_text(struct svg *s, const char *id, double x, double y, const char *text)
{
	out_printf(s->out, "<text id=\"%s\" x=\"%g\" y=\"%g\">", id, x, y);
	if (text) {
		s->text.n = 0;
		flame_shown(&s->text, text, strlen(text));
		flame_xml(s->out, s->text.v, s->text.n);
	}
	out_str(s->out, "</text>\n");
}

static void put_head(struct svg *s)
{
	const struct flame_options *o = s->o;
	struct out *out = s->out;

	out_printf(out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		   "<svg version=\"1.1\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
		   "xmlns=\"http://www.w3.org/2000/svg\" data-total=\"%llu\" data-pad=\"%d\" "
		   "data-inverted=\"%d\" data-letter=\"%g\">\n<style>\n",
		   s->width, s->height, s->width, s->height, (unsigned long long)s->total, PAD,
		   o->inverted, FONT * FONT_WIDTH);
	out_str(out, flame_svg_css);
	out_printf(
		out,
		"</style>\n<rect id=\"background\" x=\"0\" y=\"0\" width=\"%g\" height=\"%g\"/>\n",
		s->width, s->height);
	svg_put_text(s, "title", s->width / 2, FONT * 2, o->title);
	if (o->subtitle)
		svg_put_text(s, "subtitle", s->width / 2, FONT * 4, o->subtitle);
	svg_put_text(s, "unzoom", PAD, FONT * 2, "Reset zoom");
	svg_put_text(s, "search", s->width - PAD - 120, FONT * 2, "Search");
	svg_put_text(s, "ignorecase", s->width - PAD - 16, FONT * 2, "ic");
	svg_put_text(s, "details", PAD, s->height - PAD_BOTTOM / 2, NULL);
	svg_put_text(s, "matched", s->width - PAD - 110, s->height - PAD_BOTTOM / 2, NULL);
}

void svg_write(const struct stacktree *t, const struct flame_options *given, struct out *out,
	       struct flame_result *ret)
{
	struct flame_options o = *given;
	struct svg s = { .t = t, .o = &o, .out = out, .result = ret };
	double min;

	o.title = o.title ? o.title : o.inverted ? "Icicle Graph" : "Flame Graph";
	o.count_name = o.count_name ? o.count_name : "samples";
	s.width = o.width ? o.width : 1200;
	s.frame_height = o.frame_height ? o.frame_height : 16;
	s.total = t->nodes.v[STACKTREE_ROOT].total;
	s.scale = s.total ? (s.width - 2 * PAD) / (double)s.total : 0;
	min = o.min_percent > 0 ? (double)s.total * o.min_percent / 100
	      : s.total         ? (o.min_width > 0 ? o.min_width : 0.1) / s.scale
				: 0;
	s.min = (uint64_t)ceil(min);
	s.max_change = flame_max_change(t);
	each_frame(&s, find_depth);
	s.height = (s.depth + 1) * s.frame_height + PAD_TOP + PAD_BOTTOM +
		   (o.subtitle ? PAD_SUBTITLE : 0);
	put_head(&s);
	if (ret->culled) {
		out_printf(out, "<text id=\"culled\" x=\"%g\" y=\"%g\">", s.width - PAD,
			   s.height - PAD_BOTTOM / 2 + FONT);
		flame_number(out, ret->culled);
		out_str(out, ret->culled == 1 ? " frame is too narrow to be shown</text>\n"
					      : " frames are too narrow to be shown</text>\n");
	}
	if (!s.total)
		svg_put_text(&s, "empty", s.width / 2, PAD_TOP,
			     "There are no stacks in the input.");
	out_str(out, "<g id=\"frames\">\n");
	each_frame(&s, put_frame);
	out_str(out, "</g>\n<script><![CDATA[\n");
	out_str(out, flame_svg_js);
	out_str(out, "]]></script>\n</svg>\n");
	out_fini(&s.text);
	vec_fini(&s.starts);
}
