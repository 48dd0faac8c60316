/* Writes a flame graph as an HTML page that draws on a canvas, for trees that are too large for the
 * elements of an SVG. The page has the whole tree, in preorder as arrays. It leaves out narrow
 * frames only when it draws, so zooming shows them.
 */
#include "render/picture_flame.h"

/* tools/embed-files makes them from the files of these names */
extern const char flame_html_js[], flame_html_css[];

/* Writes shown text as a JSON string that cannot end the <script> around it. */
static void put_string(struct out *o, struct out *text)
{
	out_char(o, '"');
	for (size_t i = 0; i < text->n; i++) {
		if (text->v[i] == '"' || text->v[i] == '\\')
			out_char(o, '\\');
		if (text->v[i] == '<' || text->v[i] == '>' || text->v[i] == '&')
			out_printf(o, "\\u%04x", text->v[i]);
		else
			out_char(o, text->v[i]);
	}
	out_char(o, '"');
	text->n = 0;
}

static void html_put_text(struct out *o, struct out *scratch, const char *s)
{
	flame_shown(scratch, s, strlen(s));
	put_string(o, scratch);
}

static void put_names(const struct stacktree *t, struct out *o, struct out *scratch)
{
	out_str(o, ",\n\"names\":[\"all\"");
	for (uint32_t i = 1; i < t->frames.n; i++) {
		out_str(o, ",\n");
		flame_shown(scratch, t->frames.v[i].text, t->frames.v[i].len);
		put_string(o, scratch);
	}
	out_char(o, ']');
}

/* Writes the colours: one for each node of a differential tree, otherwise one for each frame, whose
 * name may be long and stand in many nodes. */
static void put_colors(const struct stacktree *t, const struct flame_options *opt, struct out *o)
{
	cleanup_free uint32_t *by_frame = xcalloc(t->frames.n, sizeof(*by_frame));
	cleanup_free bool *known = xcalloc(t->frames.n, sizeof(*known));
	double max = flame_max_change(t);

	out_str(o, ",\n\"colors\":[");
	for (uint32_t i = 0; i != STACKTREE_NONE; i = stacktree_next(t, i, false)) {
		const uint32_t frame = t->nodes.v[i].frame;

		if (t->differential) {
			if (i)
				out_char(o, ',');
			out_unsigned(o, flame_color(t, i, opt, max), 0);
		} else if (!known[frame]) {
			by_frame[frame] = flame_color(t, i, opt, max);
			known[frame] = true;
		}
	}
	for (uint32_t i = 0; i < t->frames.n && !t->differential; i++) {
		if (i)
			out_char(o, ',');
		out_unsigned(o, by_frame[i], 0);
	}
	out_char(o, ']');
}

enum column { COLUMN_DEPTH, COLUMN_NAME, COLUMN_SELF, COLUMN_BEFORE };

static void put_column(const struct stacktree *t, struct out *o, const char *name, enum column c)
{
	out_printf(o, ",\n\"%s\":[", name);
	for (uint32_t i = 0; i != STACKTREE_NONE; i = stacktree_next(t, i, false)) {
		const struct stacktree_node *n = &t->nodes.v[i];

		if (i)
			out_char(o, ',');
		out_unsigned(o,
			     c == COLUMN_DEPTH  ? n->depth
			     : c == COLUMN_NAME ? n->frame
			     : c == COLUMN_SELF ? n->self
						: t->before.v[i].self,
			     0);
	}
	out_char(o, ']');
}

/* Notes have several lines. */
static void put_notes(const struct stacktree *t, char *const *notes, struct out *o,
		      struct out *scratch)
{
	uint64_t place = 0;
	bool more = false;

	out_str(o, ",\n\"notes\":{");
	for (uint32_t i = 0; i != STACKTREE_NONE; i = stacktree_next(t, i, false), place++) {
		if (!notes[i])
			continue;
		out_printf(o, "%s\"%llu\":[", more ? ",\n" : "", (unsigned long long)place);
		more = true;
		for (const char *line = notes[i]; *line;) {
			const size_t n = strcspn(line, "\n");

			flame_shown(scratch, line, n);
			put_string(o, scratch);
			line += n + (line[n] == '\n');
			if (*line)
				out_char(o, ',');
		}
		out_char(o, ']');
	}
	out_char(o, '}');
}

static void put_data(const struct stacktree *t, const struct flame_options *opt, struct out *o)
{
	struct out scratch = { 0 };
	const char *title = opt->title      ? opt->title
			    : opt->inverted ? "Icicle Graph"
					    : "Flame Graph";

	out_str(o, "{\"title\":");
	html_put_text(o, &scratch, title);
	out_str(o, ",\"subtitle\":");
	html_put_text(o, &scratch, opt->subtitle ? opt->subtitle : "");
	out_str(o, ",\"unit\":");
	html_put_text(o, &scratch, opt->count_name ? opt->count_name : "samples");
	out_printf(o, ",\"inverted\":%s,\"differential\":%s,\"negate\":%s,\"height\":%u",
		   opt->inverted ? "true" : "false", t->differential ? "true" : "false",
		   opt->negate ? "true" : "false", opt->frame_height ? opt->frame_height : 16);
	put_names(t, o, &scratch);
	put_colors(t, opt, o);
	put_column(t, o, "depth", COLUMN_DEPTH);
	put_column(t, o, "name", COLUMN_NAME);
	put_column(t, o, "self", COLUMN_SELF);
	if (t->differential)
		put_column(t, o, "before", COLUMN_BEFORE);
	if (opt->notes)
		put_notes(t, opt->notes, o, &scratch);
	out_char(o, '}');
	out_fini(&scratch);
}

void html_write(const struct stacktree *t, const struct flame_options *o, struct out *out,
		struct flame_result *ret)
{
	*ret = (struct flame_result){ .shown = t->nodes.n };
	out_str(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		     "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
		     "<title>Flame graph</title>\n<style>\n");
	out_str(out, flame_html_css);
	out_str(out,
		"</style></head><body>\n"
		"<header><h1 id=\"title\"></h1><span id=\"subtitle\"></span>\n"
		"<button id=\"unzoom\" disabled>Reset zoom</button>\n"
		"<input id=\"search\" type=\"search\" placeholder=\"search: regular expression (/)\">\n"
		"<label><input id=\"ignorecase\" type=\"checkbox\">ignore case</label>\n"
		"<output id=\"matched\"></output></header>\n"
		"<main id=\"view\" tabindex=\"0\"><div id=\"space\"><canvas id=\"canvas\"></canvas>"
		"</div></main>\n"
		"<pre id=\"note\" hidden></pre>\n"
		"<footer><span id=\"details\"></span><span id=\"culled\"></span></footer>\n"
		"<script type=\"application/json\" id=\"data\">\n");
	put_data(t, o, out);
	out_str(out, "</script>\n<script>\n");
	out_str(out, flame_html_js);
	out_str(out, "</script></body></html>\n");
}
