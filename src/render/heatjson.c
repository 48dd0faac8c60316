/* A heat map as JSON, as an HTML page around the same JSON, and as lines of text. */
#include "render/picture_flame.h"
#include "render/picture_heat.h"
#include "render/json.h"

/* tools/embed-files makes them from the files of these names */
extern const char heat_js[], heat_page_js[], heat_css[];

struct json {
	const struct matrix_view *v;
	const struct heat_options *o;
	struct out *out, text;
	bool page; /* names are already shown text, and nothing in them can end a <script> */
};

static void put_name(struct json *j, const char *s, size_t n)
{
	struct out *o = j->out;

	if (!j->page) {
		json_string(o, s, n);
		return;
	}
	j->text.n = 0;
	flame_shown(&j->text, s, n);
	out_char(o, '"');
	for (size_t i = 0; i < j->text.n; i++) {
		char c = j->text.v[i];

		if (c == '"' || c == '\\')
			out_char(o, '\\');
		if (c == '<' || c == '>' || c == '&')
			out_printf(o, "\\u%04x", c);
		else
			out_char(o, c);
	}
	out_char(o, '"');
}

static void put_bound(struct out *o, int64_t v, int64_t open)
{
	if (v == open)
		out_str(o, "null");
	else
		out_signed(o, v, 0);
}

static void put_columns(struct json *j)
{
	const struct matrix_view *v = j->v;
	struct out *o = j->out;

	for (uint32_t i = 0; i < v->cells.n; i++) {
		const struct matrix_cell *c = &v->cells.v[i];

		if (!i || c->column != c[-1].column)
			out_printf(o, "%s\n{\"column\":%u,\"cells\":[", i ? "]}," : "", c->column);
		else
			out_char(o, ',');
		for (uint32_t k = 0; k < c->n; k++) {
			const struct matrix_entry *e = &v->entries.v[c->at + k];

			if (k)
				out_char(o, ',');
			out_unsigned(o, c->row, 0);
			out_char(o, ',');
			out_unsigned(o, e->party, 0);
			out_char(o, ',');
			out_unsigned(o, e->count, 0);
		}
	}
	if (v->cells.n)
		out_str(o, "]}");
}

static void put_document(struct json *j)
{
	const struct matrix_view *v = j->v;
	const struct heat_options *opt = j->o;
	struct out *o = j->out;

	out_str(o, "{\"type\":\"heatmap\",\"version\":1,\"title\":");
	put_name(j, opt->title ? opt->title : "Heat map",
		 strlen(opt->title ? opt->title : "Heat map"));
	out_str(o, ",\"subtitle\":");
	put_name(j, opt->subtitle ? opt->subtitle : "", strlen(opt->subtitle ? opt->subtitle : ""));
	out_printf(
		o,
		",\n\"mode\":\"%s\",\"scale\":\"%s\",\"total\":%llu,\"left_out\":%llu,\"lost\":%llu,\n",
		opt->mode ? opt->mode : "latency", heat_scale_name(opt->scale),
		(unsigned long long)v->total, (unsigned long long)v->left_out,
		(unsigned long long)opt->lost);
	out_printf(
		o,
		"\"time\":{\"unit\":\"ns\",\"first\":%llu,\"step\":%llu,\"columns\":%u},\n\"value\":{\"unit\":",
		(unsigned long long)v->first, (unsigned long long)v->step, v->ncolumns);
	put_name(j, opt->unit ? opt->unit : "", strlen(opt->unit ? opt->unit : ""));
	out_str(o, ",\"rows\":[");
	for (uint32_t i = 0; i < v->rows.n; i++) {
		out_str(o, i ? ",[" : "[");
		put_bound(o, v->rows.v[i].min, INT64_MIN);
		out_char(o, ',');
		put_bound(o, v->rows.v[i].max, INT64_MAX);
		out_char(o, ']');
	}
	out_str(o, "]},\n\"series\":[");
	for (uint32_t i = 0; i < v->series.n; i++) {
		out_str(o, i ? ",\n{\"name\":" : "\n{\"name\":");
		put_name(j, v->series.v[i].name.text, v->series.v[i].name.len);
		out_printf(o, ",\"count\":%llu}", (unsigned long long)v->series.v[i].count);
	}
	out_str(o, "],\n\"parties\":[");
	for (uint32_t i = 0; i < v->parties.n; i++) {
		const struct matrix_party *p = &v->parties.v[i];

		out_printf(o, "%s[%u,", i ? "," : "", p->series);
		if (p->who.len)
			put_name(j, p->who.text, p->who.len);
		else
			out_str(o, "null");
		out_char(o, ']');
	}
	out_str(o, "],\n\"columns\":[");
	put_columns(j);
	out_str(o, "]}\n");
	out_fini(&j->text);
}

void heat_json(const struct matrix_view *v, const struct heat_options *o, struct out *out)
{
	struct json j = { .v = v, .o = o, .out = out };

	put_document(&j);
}

void heat_html(const struct matrix_view *v, const struct heat_options *o, struct out *out)
{
	struct json j = { .v = v, .o = o, .out = out, .page = true };

	out_str(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		     "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src blob:\">\n"
		     "<title>Heat map</title>\n<style>\n");
	out_str(out, heat_css);
	out_str(out, "</style></head><body>\n<main id=\"heat\"></main>\n"
		     "<script type=\"application/json\" id=\"data\">\n");
	put_document(&j);
	out_str(out, "</script>\n<script>\n");
	out_str(out, heat_js);
	out_str(out, "</script>\n<script>\n");
	out_str(out, heat_page_js);
	out_str(out, "</script></body></html>\n");
}

static void put_seconds(struct out *o, uint64_t column, uint64_t step)
{
	unsigned __int128 ns = (unsigned __int128)column * step;
	unsigned fraction = (unsigned)(ns % 1000000000);

	out_unsigned(o, (uint64_t)(ns / 1000000000), 0);
	if (fraction)
		out_printf(o, ".%09u", fraction);
}

void heat_text(const struct matrix_view *v, const struct heat_options *opt, struct out *o)
{
	out_str(o, "#time\tmin\tmax\tcount\tseries\twho\n");
	for (uint32_t i = 0; i < v->cells.n; i++) {
		const struct matrix_cell *c = &v->cells.v[i];

		for (uint32_t k = 0; k < c->n; k++) {
			const struct matrix_entry *e = &v->entries.v[c->at + k];
			const struct matrix_party *p = &v->parties.v[e->party];
			const struct matrix_row *r = &v->rows.v[c->row];

			put_seconds(o, v->first + c->column, v->step);
			out_char(o, '\t');
			if (r->min == INT64_MIN)
				out_char(o, '-');
			else
				out_signed(o, r->min, 0);
			out_char(o, '\t');
			if (r->max == INT64_MAX)
				out_char(o, '-');
			else
				out_signed(o, r->max, 0);
			out_char(o, '\t');
			out_unsigned(o, e->count, 0);
			out_char(o, '\t');
			flame_shown(o, v->series.v[p->series].name.text,
				    v->series.v[p->series].name.len);
			if (p->who.len) {
				out_char(o, '\t');
				flame_shown(o, p->who.text, p->who.len);
			}
			out_char(o, '\n');
		}
	}
}
