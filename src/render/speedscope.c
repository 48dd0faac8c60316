/* Writes a stack tree as speedscope's JSON: the frames once, then the indices of the frames of each
 * stack with a count of its own, root first, and the counts as weights. A frame's index in the tree
 * is one more than here, as index 0 is the root's.
 */
#include "render/picture_flame.h"
#include "render/json.h"
#include "render/render.h"

static const char *unit_of(const struct profile_about *a)
{
	static const char *const known[] = { "nanoseconds", "microseconds", "milliseconds",
					     "seconds", "bytes" };

	for (size_t i = 0; a->unit && i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i], a->unit))
			return known[i];
	return "none";
}

static void speedscope_put_text(struct out *o, struct out *scratch, const char *text, size_t len)
{
	scratch->n = 0;
	flame_shown(scratch, text, len);
	json_string(o, scratch->v, scratch->n);
}

static void put_frames(struct out *o, struct out *scratch, const struct stacktree *t)
{
	out_str(o, "\"shared\":{\"frames\":[");
	for (uint32_t i = 1; i < t->frames.n; i++) {
		const struct stacktree_frame *f = &t->frames.v[i];
		const char *kind_file = profile_file(f->kind);
		uint32_t skip = f->module ? f->module + 1 : 0;

		out_str(o, i > 1 ? ",\n{\"name\":" : "\n{\"name\":");
		speedscope_put_text(o, scratch, f->text + skip, f->len - skip);
		if (f->module || kind_file)
			out_str(o, ",\"file\":");
		if (f->module)
			speedscope_put_text(o, scratch, f->text, f->module);
		else if (kind_file)
			speedscope_put_text(o, scratch, kind_file, strlen(kind_file));
		out_char(o, '}');
	}
	out_str(o, "]},\n");
}

static void put_samples(struct out *o, const struct stacktree *t)
{
	VEC(uint32_t) path = { 0 };
	bool first = true;

	out_str(o, "\"samples\":[");
	for (uint32_t i = 0; i != STACKTREE_NONE; i = stacktree_next(t, i, false)) {
		if (!t->nodes.v[i].self)
			continue;
		path.n = 0;
		for (uint32_t f = i; f != STACKTREE_ROOT; f = t->nodes.v[f].parent)
			vec_push(&path, t->nodes.v[f].frame - 1);
		out_str(o, first ? "\n[" : ",\n[");
		first = false;
		for (uint32_t k = path.n; k; k--) {
			out_unsigned(o, path.v[k - 1], 0);
			if (k > 1)
				out_char(o, ',');
		}
		out_char(o, ']');
	}
	out_str(o, "],\n\"weights\":[");
	first = true;
	for (uint32_t i = 0; i != STACKTREE_NONE; i = stacktree_next(t, i, false)) {
		if (!t->nodes.v[i].self)
			continue;
		if (!first)
			out_char(o, ',');
		first = false;
		out_unsigned(o, t->nodes.v[i].self, 0);
	}
	out_char(o, ']');
	vec_fini(&path);
}

void render_speedscope(struct out *o, const struct stacktree *t, const struct profile_about *a)
{
	static const struct profile_about none = { 0 };
	struct out scratch = { 0 };
	const char *title;

	if (!a)
		a = &none;
	title = a->title ? a->title : a->type ? a->type : "samples";
	out_str(o, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
		   "\"exporter\":\"descry\",\"name\":");
	speedscope_put_text(o, &scratch, title, strlen(title));
	out_str(o, ",\"activeProfileIndex\":0,\n");
	put_frames(o, &scratch, t);
	out_str(o, "\"profiles\":[{\"type\":\"sampled\",\"name\":");
	speedscope_put_text(o, &scratch, title, strlen(title));
	out_printf(o, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":", unit_of(a));
	out_unsigned(o, t->nodes.v[STACKTREE_ROOT].total, 0);
	out_str(o, ",\n");
	put_samples(o, t);
	out_str(o, "}]}\n");
	out_fini(&scratch);
}
