/* Flame graphs of a stack tree, as SVG and as HTML.
 *
 * In: a finished tree. Out: one document that needs nothing else: no network, no other file. Always
 * true: a name reaches the document only through flame_shown(), whatever bytes it has; the width of
 * a frame is its part of the root's total. Frames that are too narrow to be seen are left out, and
 * their number is shown.
 */
#ifndef DESCRY_RENDER_PICTURE_FLAME_H
#define DESCRY_RENDER_PICTURE_FLAME_H

#include "base/out.h"
#include "view/stacktree.h"

enum flame_palette {
	FLAME_KIND,   /* kernel, compiled at run time, inlined, C++/Rust, Go, scripts, the rest */
	FLAME_SAFE,   /* the same, in colours that colour-blind people can distinguish */
	FLAME_MODULE, /* by the text in front of the ` */
	FLAME_HOT,
	FLAME_MEM,
	FLAME_IO,
	FLAME_WAKEUP,
	FLAME_CHAIN, /* the waiting thread in the colours of io, its waker (FRAME_WAKER) in those of wakeup */
	FLAME_GREY,
	FLAME_NPALETTES
};
const char *flame_palette_name(enum flame_palette p);
/* Returns the palette, or FLAME_NPALETTES when there is none of this name. */
enum flame_palette flame_palette_named(const char *name);

struct flame_options {
	const char *title, *subtitle, *count_name; /* NULL: "Flame Graph", none, "samples" */
	uint32_t width, frame_height;              /* pixels; 0: 1200, 16 */
	double min_width;                          /* pixels; 0: 0.1. SVG only */
	double min_percent;                        /* in place of min_width when not 0 */
	enum flame_palette palette;
	bool inverted; /* the root on top: an icicle graph */
	/* HTML: a text for each node of the tree, which the page shows when the node is clicked;
	 * NULL: there is none, for one node or for all. */
	char *const *notes;
	bool negate; /* of a differential tree: swap the colours of more and less */
};

struct flame_result {
	uint64_t shown, culled; /* frames */
};

void svg_write(const struct stacktree *t, const struct flame_options *o, struct out *out,
	       struct flame_result *ret);
void html_write(const struct stacktree *t, const struct flame_options *o, struct out *out,
		struct flame_result *ret);

/* Returns the largest change of a frame's own count, at least 1. */
double flame_max_change(const struct stacktree *t);
/* 0xRRGGBB */
uint32_t flame_color(const struct stacktree *t, uint32_t node, const struct flame_options *o,
		     double max_change);

enum { FLAME_NAME_MAX = 4096 }; /* limit of bytes of a name in pictures */

/* Writes any bytes as text that can be shown: valid UTF-8 without control characters, and other
 * bytes as \xNN. At most FLAME_NAME_MAX bytes of it, then "..". */
void flame_shown(struct out *o, const char *text, size_t len);
/* Writes text with & < > " escaped, for XML and HTML. */
void flame_xml(struct out *o, const char *s, size_t n);
/* "1,234,567" */
void flame_number(struct out *o, uint64_t v);

#endif
