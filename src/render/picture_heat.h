/* Heat maps of a time x value matrix: SVG, HTML, the terminal, JSON, text.
 *
 * In: a view of a matrix. Out: one document that needs nothing else: no network, no other file.
 * Always true: a name reaches a document only as text that can be shown (flame_shown()), escaped
 * for its place. Each cell has the count of the view. Its colour is that of the series with the
 * largest part in it, and is deeper for larger counts. heat.js computes colours, labels and ranks
 * in the same way; a test compares the two.
 */
#ifndef DESCRY_RENDER_PICTURE_HEAT_H
#define DESCRY_RENDER_PICTURE_HEAT_H

#include "base/out.h"
#include "view/matrix.h"

/* How counts become depth of colour. */
enum heat_scale {
	HEAT_RANK, /* the part of the cells that do not have more; equal counts have equal ranks */
	HEAT_LINEAR, /* the part of the largest count */
	HEAT_LOG,
	HEAT_NSCALES
};
const char *heat_scale_name(enum heat_scale s);
/* Returns the scale, or HEAT_NSCALES when there is none of this name. */
enum heat_scale heat_scale_named(const char *name);

struct heat_options {
	const char *title, *subtitle; /* NULL: "Heat map", none */
	const char *mode;             /* latency, utilization, subsecond */
	const char *
		unit; /* of values: ns us ms s bytes %, or any other text behind the number; NULL: none */
	enum heat_scale scale;
	/* SVG: pixels, 0: as many as the columns need. Terminal: columns of text, 0: 80 */
	uint32_t width;
	uint32_t height; /* terminal: lines, 0: 24 */
	bool color;      /* terminal: 256 colours */
	uint64_t lost;   /* losses that the tracer reported; shown when not 0 */
};

void heat_svg(const struct matrix_view *v, const struct heat_options *o, struct out *out);
void heat_html(const struct matrix_view *v, const struct heat_options *o, struct out *out);
void heat_json(const struct matrix_view *v, const struct heat_options *o, struct out *out);
/* Writes a line for each party of each cell: time, bounds, count, series, who, with tabs between
 * them. */
void heat_text(const struct matrix_view *v, const struct heat_options *o, struct out *out);
void heat_terminal(const struct matrix_view *v, const struct heat_options *o, struct out *out);

/* --- shared by the outputs --- */

enum { HEAT_LEVELS = 256, HEAT_HUES = 6 }; /* later series are grey */

/* Returns 0..255 for each cell, at least 1. The caller frees it. */
uint8_t *heat_levels(const struct matrix_view *v, enum heat_scale scale);
/* Returns 0xRRGGBB of a level. nseries 1: one series may use several hues. */
uint32_t heat_color(uint32_t series, uint32_t nseries, uint32_t level);

/* Writes "1.5ms", "64KB", "12.5%", "1.2k". */
void heat_value(struct out *o, int64_t v, const char *unit);
/* Writes "1ms to 1.5ms", "below 0", "1s and more". */
void heat_range(struct out *o, const struct matrix_row *r, const char *unit);
/* Writes a time. Times after 1973 are taken for times of day: "12:34:56". Others count from the
 * first column: "12.5s". */
bool heat_is_wall(const struct matrix_view *v);
void heat_time(struct out *o, const struct matrix_view *v, uint32_t column);
/* Returns n when every n-th column or row (those with a number that n divides) has room for a
 * label. */
uint32_t heat_every(double cell, double label);
/* Returns how suitable a number is as a label of an axis: powers of ten and of 1024 most. */
int heat_roundness(int64_t value);
/* Returns for each row whether its lower bound has room for a label. The caller frees it. */
bool *heat_row_labels(const struct matrix_view *v, double row_height, double label_height);
/* Writes "name 1,234; ..", the largest `most` parties of a cell. */
void heat_parties(struct out *o, const struct matrix_view *v, const struct matrix_cell *c,
		  uint32_t most);

#endif
