/* Writes a report as one HTML page: the sums and tables, the live bytes over time, the heat map of
 * sizes, and a flame graph of each kind. A picture that has a page of its own is a frame of this
 * page, with its text as the frame's srcdoc. */
#include "memory/alloc/alloc_report.h"

#include "render/picture_flame.h"
#include "render/picture_heat.h"
#include "view/matrix.h"

enum { CHART_WIDTH = 1160, CHART_HEIGHT = 200, CHART_LEFT = 80, CHART_BOTTOM = 24 };

static void page_text(struct out *o, const char *text)
{
	struct out shown = { 0 };

	flame_shown(&shown, text, strlen(text));
	flame_xml(o, shown.v, shown.n);
	out_fini(&shown);
}

/* Writes text that has lines of its own. It holds names of this program only. */
static void page_lines(struct out *o, void (*write)(const struct alloc_report *, struct out *),
		       const struct alloc_report *r)
{
	struct out text = { 0 };

	write(r, &text);
	out_str(o, "<pre>");
	flame_xml(o, text.v, text.n);
	out_str(o, "</pre>\n");
	out_fini(&text);
}

/* Writes the table of processes, which has texts of the recording, line by line. */
static void page_processes(struct out *o, const struct alloc_trace *t)
{
	struct out text = { 0 };
	char *at, *end;

	report_print_processes(t, &text);
	if (text.n) {
		out_char(&text, '\0');
		out_str(o, "<pre>");
		for (at = text.v; (end = strchr(at, '\n')); at = end + 1) {
			*end = '\0';
			page_text(o, at);
			out_char(o, '\n');
		}
		out_str(o, "</pre>\n");
	}
	out_fini(&text);
}

static void page_frame(struct out *o, const char *title, const struct out *document)
{
	out_str(o, "<h2>");
	page_text(o, title);
	out_str(o, "</h2>\n<iframe title=\"");
	page_text(o, title);
	out_str(o, "\" srcdoc=\"");
	flame_xml(o, document->v, document->n);
	out_str(o, "\"></iframe>\n");
}

static void page_course(const struct alloc_report *r, struct out *o)
{
	const double width = CHART_WIDTH - CHART_LEFT, height = CHART_HEIGHT - CHART_BOTTOM;
	const double most = r->peak ? (double)r->peak : 1;
	char buf[32];

	out_printf(o,
		   "<h2>Live bytes over time</h2>\n<svg viewBox=\"0 0 %d %d\">\n"
		   "<text x=\"0\" y=\"12\">%s</text><text x=\"0\" y=\"%d\">0</text>"
		   "<text x=\"%d\" y=\"%d\">0 s</text>"
		   "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3g s</text>\n<path d=\"M%d %.0f",
		   CHART_WIDTH, CHART_HEIGHT, report_bytes_text(buf, r->peak),
		   CHART_HEIGHT - CHART_BOTTOM, CHART_LEFT, CHART_HEIGHT - 6, CHART_WIDTH,
		   CHART_HEIGHT - 6, (double)r->npoints * (double)r->step / 1e9, CHART_LEFT,
		   height);
	for (uint32_t i = 0; i < r->npoints; i++) {
		double y = height - (double)r->points[i].most / most * height;

		out_printf(o, "L%.1f %.1fL%.1f %.1f", CHART_LEFT + width * i / r->npoints, y,
			   CHART_LEFT + width * (i + 1) / r->npoints, y);
	}
	out_printf(o, "V%.0fZ\" fill=\"#6fb0dc\" stroke=\"#0072b2\"/></svg>\n", height);
}

static void page_heat(const struct alloc_report *r, struct out *o)
{
	const struct matrix_axis axis = { .kind = MATRIX_BUCKETS };
	const struct heat_options options = { .title = "Sizes over time",
					      .subtitle = "blocks that were allocated",
					      .mode = "latency",
					      .unit = "bytes" };
	const uint64_t step = (r->step ? r->step : 1) * (REPORT_POINTS / REPORT_COLUMNS);
	struct out document = { 0 };
	struct matrix_view v;
	struct matrix m;
	struct err *e;
	uint32_t party;

	matrix_init(&m, step, &axis);
	party = matrix_party(&m, matrix_series(&m, "blocks", 6), "", 0);
	for (uint32_t i = 0; i < REPORT_COLUMNS; i++) {
		for (uint32_t k = 0; k < REPORT_ROWS; k++) {
			uint64_t min, max;

			report_row_sizes(k, &min, &max);
			if (r->heat[i][k] && max <= INT64_MAX)
				matrix_bucket(&m, i * step, (int64_t)min, (int64_t)max, party,
					      r->heat[i][k]);
		}
	}
	e = matrix_view_make(&m, NULL, &v);
	if (!e && v.total) {
		heat_html(&v, &options, &document);
		page_frame(o, "Sizes over time", &document);
	}
	err_free(e);
	if (!e)
		matrix_view_fini(&v);
	out_fini(&document);
	matrix_fini(&m);
}

static void page_flame(const struct alloc_report *r, const struct alloc_trace *t, enum report_of of,
		       const char *title, struct out *o)
{
	const struct flame_options options = { .title = title,
					       .count_name = report_of_blocks(of) ? "blocks"
										  : "bytes",
					       .palette = FLAME_MEM };
	struct flame_result result;
	struct out document = { 0 };
	struct stacktree tree;

	stacktree_init(&tree);
	alloc_report_tree(r, t, of, &tree);
	html_write(&tree, &options, &document, &result);
	page_frame(o, title, &document);
	stacktree_fini(&tree);
	out_fini(&document);
}

void alloc_report_page(const struct alloc_report *r, const struct alloc_trace *t, const char *name,
		       struct out *o)
{
	static const struct {
		enum report_of of;
		const char *title;
	} flames[] = { { REPORT_BYTES, "Bytes allocated" },
		       { REPORT_COUNT, "Blocks allocated" },
		       { REPORT_PEAK, "Live at the peak" },
		       { REPORT_END, "Live at the end" },
		       { REPORT_TEMPORARY, "Temporary blocks" },
		       { REPORT_MAPPED, "Memory mapped without the allocator" } };
	const char *command = alloc_info(t, "command");
	bool any = false;

	out_str(o,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n<title>Allocations: ");
	page_text(o, command ? command : name);
	out_str(o,
		"</title>\n<style>\n"
		"body { max-width: 1200px; margin: 10px auto; font: 12px Verdana, sans-serif; "
		"color: #000; background: #f7f7f4; }\n"
		"h1 { font-size: 18px; font-weight: normal; } h2 { font-size: 15px; font-weight: normal; }\n"
		"pre { overflow-x: auto; } svg { width: 100%; }\n"
		"iframe { width: 100%; height: 480px; border: 1px solid #ccc; resize: vertical; }\n"
		"</style></head><body>\n<h1>Allocations of ");
	page_text(o, command ? command : name);
	out_str(o, "</h1>\n");
	if (!t->ended) {
		out_str(o, "<p>");
		page_text(o, t->cut ? t->cut
				    : "the recording was cut off: what follows is up to there");
		out_str(o, "</p>\n");
	}
	page_lines(o, report_print_sums, r);
	page_processes(o, t);
	page_course(r, o);
	page_heat(r, o);
	page_lines(o, report_print_tables, r);
	for (uint32_t i = 1; i < r->sites.n && !any; i++)
		any = r->sites.v[i].count;
	for (uint32_t i = 0; i < ARRAY_SIZE(flames) && any; i++)
		if (flames[i].of != REPORT_MAPPED || r->mapped[WIRE_ALLOC_ANONYMOUS].bytes)
			page_flame(r, t, flames[i].of, flames[i].title, o);
	if (!any)
		out_str(o, "<p>No stacks were recorded (record -k).</p>\n");
	out_str(o, "</body></html>\n");
}
