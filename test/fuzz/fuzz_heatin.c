/* Bytes as the input of a heat map: the first choose format, kind of map and options; the rest
 * comes in pieces. Draws the counts in every form, and the numbers must agree. */
#include <stdint.h>
#include <stdlib.h>

#include "input/heatin/heatin.h"
#include "render/picture_heat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(const struct matrix_view *v, const struct heat_options *o)
{
	void (*const outputs[])(const struct matrix_view *v, const struct heat_options *o,
				struct out *out) = { heat_svg, heat_html, heat_json, heat_text,
						     heat_terminal };

	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
		struct out out;

		out_init(&out, NULL);
		outputs[i](v, o, &out);
		for (size_t k = 0; k < out.n; k++)
			if (out.v[k] == 0)
				abort();
		out_fini(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heatin_options o = { 0 };
	struct heat_options picture = { .mode = "latency", .width = 60, .color = true };
	struct matrix_view v;
	struct heatin in;
	struct err *e;
	uint64_t sum = 0;
	size_t piece;

	if (size < 2 || size > 64 << 10)
		return 0;
	o.format = (enum heatin_format)(data[0] % HEATIN_NFORMATS);
	o.mode = (enum heat_mode)(data[0] / 8 % HEAT_NMODES);
	o.axis.kind = data[0] & 128 ? MATRIX_LINEAR : MATRIX_DECADES;
	if (o.mode == HEAT_SUBSECOND)
		o.axis = (struct matrix_axis){ .kind = MATRIX_FIXED,
					       .limit = 1000000000,
					       .step = 20000000 };
	o.factor = data[0] & 64 ? 0.001 : 0;
	o.by = data[1] % 3;
	o.time_key = data[1] / 4 % 3;
	picture.unit = data[1] & 128 ? "ns" : "";
	piece = 1 + data[1];
	heatin_init(&in, &o);
	for (size_t at = 2; at < size; at += piece)
		heatin_feed(&in, (const char *)data + at, size - at < piece ? size - at : piece);
	heatin_end(&in);
	heatin_idle(&in);
	if (in.made) {
		e = matrix_view_make(&in.matrix, NULL, &v);
		if (!e) {
			for (uint32_t i = 0; i < v.cells.n; i++)
				sum += v.cells.v[i].count;
			if (sum != v.total)
				abort();
			if (v.ncolumns < 5000 && v.rows.n < 5000)
				draw(&v, &picture);
			matrix_view_fini(&v);
		}
		err_free(e);
	}
	heatin_fini(&in);
	return 0;
}
