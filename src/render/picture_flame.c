/* Shared by the pictures: colours and text. */
#define _GNU_SOURCE
#include "render/picture_flame.h"

#include <math.h>

#include "base/hash.h"
#include "base/utf8.h"

static const char *const palette_names[FLAME_NPALETTES] = {
	[FLAME_KIND] = "kind",     [FLAME_SAFE] = "safe",   [FLAME_MODULE] = "module",
	[FLAME_HOT] = "hot",       [FLAME_MEM] = "mem",     [FLAME_IO] = "io",
	[FLAME_WAKEUP] = "wakeup", [FLAME_CHAIN] = "chain", [FLAME_GREY] = "grey",
};

const char *flame_palette_name(enum flame_palette p)
{
	return palette_names[p];
}

enum flame_palette flame_palette_named(const char *name)
{
	int p = 0;

	while (p < FLAME_NPALETTES && strcmp(palette_names[p], name))
		p++;
	return (enum flame_palette)p;
}

enum kind {
	KIND_KERNEL,
	KIND_JIT,
	KIND_INLINED,
	KIND_CPP,
	KIND_GO,
	KIND_SCRIPT,
	KIND_USER,
	KIND_COUNT
};

/* A colour at hash 0, and the range of each part from there. */
struct shade {
	uint8_t r, g, b;
	int16_t dr, dg, db;
};

static const struct shade kinds[KIND_COUNT] = {
	[KIND_KERNEL] = { 225, 125, 20, 30, 55, 20 },
	[KIND_JIT] = { 60, 175, 70, 60, 45, 50 },
	[KIND_INLINED] = { 60, 175, 180, 50, 45, 45 },
	[KIND_CPP] = { 195, 185, 50, 45, 45, 20 },
	[KIND_GO] = { 95, 150, 215, 50, 45, 35 },
	[KIND_SCRIPT] = { 110, 190, 110, 50, 45, 50 },
	[KIND_USER] = { 220, 85, 75, 30, 60, 45 },
};

/* Okabe and Ito's colours, lighter: black text stays legible on all of them. */
static const struct shade safe_kinds[KIND_COUNT] = {
	[KIND_KERNEL] = { 230, 159, 0, 15, 15, 40 },
	[KIND_JIT] = { 0, 158, 115, 40, 20, 25 },
	[KIND_INLINED] = { 160, 215, 240, 20, 15, 10 },
	[KIND_CPP] = { 240, 228, 66, 10, 10, 40 },
	[KIND_GO] = { 86, 180, 233, 20, 15, 10 },
	[KIND_SCRIPT] = { 204, 140, 180, 20, 20, 20 },
	[KIND_USER] = { 213, 115, 40, 25, 25, 30 },
};

static const struct shade plain[FLAME_NPALETTES] = {
	[FLAME_HOT] = { 205, 0, 0, 50, 230, 55 },     [FLAME_MEM] = { 60, 180, 60, 80, 60, 110 },
	[FLAME_IO] = { 90, 110, 200, 60, 60, 50 },    [FLAME_WAKEUP] = { 60, 165, 165, 60, 55, 55 },
	[FLAME_GREY] = { 170, 170, 170, 60, 60, 60 },
};

static bool ends(const struct stacktree_frame *n, const char *s)
{
	size_t len = strlen(s);

	return n->len >= len && !memcmp(n->text + n->len - len, s, len);
}

static bool flame_begins(const struct stacktree_frame *n, const char *s)
{
	size_t len = strlen(s);

	return n->len >= len && !memcmp(n->text, s, len);
}

static bool has(const struct stacktree_frame *n, const char *s)
{
	return memmem(n->text, n->len, s, strlen(s)) != NULL;
}

static enum kind kind_of(const struct stacktree_frame *n)
{
	static const char *const scripts[] = { ".js:", ".py:",         ".rb:",
					       "py::", "LazyCompile:", ".py`" };

	switch (n->kind) {
	case FRAME_KERNEL: return KIND_KERNEL;
	case FRAME_JIT: return KIND_JIT;
	case FRAME_INLINED: return KIND_INLINED;
	default: break;
	}
	if (frame_is_language(n->kind))
		return KIND_SCRIPT;
	if (stacktree_in_kernel(n))
		return KIND_KERNEL;
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++)
		if (has(n, scripts[i]))
			return KIND_SCRIPT;
	if (has(n, ":::") || flame_begins(n, "java/") || flame_begins(n, "org/") ||
	    flame_begins(n, "com/"))
		return KIND_JIT;
	if (has(n, "::"))
		return KIND_CPP;
	if (has(n, ".(*") || flame_begins(n, "runtime.") || flame_begins(n, "main."))
		return KIND_GO;
	return KIND_USER;
}

static uint8_t clamp(double v)
{
	return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

static uint32_t rgb(double r, double g, double b)
{
	return (uint32_t)clamp(r) << 16 | (uint32_t)clamp(g) << 8 | clamp(b);
}

static uint32_t shaded(const struct shade *s, uint64_t hash)
{
	double f = (double)(hash & 0xffff) / 65536, g = (double)(hash >> 16 & 0xffff) / 65536;

	/* red and blue change together, so a palette stays one family of colours */
	return rgb(s->r + s->dr * g, s->g + s->dg * f, s->b + s->db * g);
}

/* A hue of the circle, light enough for black text; neighbours differ in shade. */
static uint32_t hue(uint64_t module, uint64_t name)
{
	double h = (double)(module % 360) / 60, light = 0.62 + 0.12 * (double)(name & 0xff) / 256;
	double c = (1 - fabs(2 * light - 1)) * 0.62, x = c * (1 - fabs(fmod(h, 2) - 1));
	double r[] = { c, x, 0, 0, x, c }, m = light - c / 2;
	int i = (int)h;

	return rgb((r[i] + m) * 255, (r[(i + 4) % 6] + m) * 255, (r[(i + 2) % 6] + m) * 255);
}

double flame_max_change(const struct stacktree *t)
{
	double max = 1;

	for (uint32_t i = 0; i < t->before.n; i++) {
		double d = fabs((double)t->nodes.v[i].self - (double)t->before.v[i].self);

		max = d > max ? d : max;
	}
	return max;
}

/* White for no change, then red for more and blue for less. People with any kind of colour vision
 * can distinguish these two. */
static uint32_t change_color(double change, double max, bool negate)
{
	double pale = 112 + 98 * (1 - fabs(change) / max); /* black text is legible on all of it */

	if (change == 0)
		return 0xf2f2f2;
	return (change > 0) != negate ? rgb(255, pale, pale) : rgb(pale, pale, 255);
}

uint32_t flame_color(const struct stacktree *t, uint32_t node, const struct flame_options *o,
		     double max_change)
{
	const struct stacktree_frame *n = stacktree_frame_of(t, node);
	uint64_t hash;

	if (t->differential)
		return change_color((double)t->nodes.v[node].self - (double)t->before.v[node].self,
				    max_change, o->negate);
	if (node == STACKTREE_ROOT)
		return 0xe8e8e8;
	if (n->len <= 2 && flame_begins(n, "-") &&
	    ends(n, "-")) /* separates two parts of a stack */
		return 0xc8c8c8;
	hash = hash_fixed(n->text, n->len);
	hash ^= hash >> 32;
	switch (o->palette) {
	case FLAME_KIND: return shaded(&kinds[kind_of(n)], hash);
	case FLAME_SAFE: return shaded(&safe_kinds[kind_of(n)], hash);
	case FLAME_MODULE:
		return n->module ? hue(hash_fixed(n->text, n->module), hash)
				 : shaded(&plain[FLAME_GREY], hash);
	case FLAME_CHAIN:
		return shaded(&plain[n->kind == FRAME_WAKER ? FLAME_WAKEUP : FLAME_IO], hash);
	default: return shaded(&plain[o->palette], hash);
	}
}

void flame_shown(struct out *o, const char *text, size_t len)
{
	const uint8_t *s = (const uint8_t *)text;
	uint32_t n = len > FLAME_NAME_MAX ? FLAME_NAME_MAX : (uint32_t)len, c, step;
	bool cut = len > FLAME_NAME_MAX;

	for (uint32_t i = 0; i < n; i += step) {
		step = utf8_decode(s + i, n - i, &c);
		if (!step && cut && n - i < 4)
			break; /* the character that the end cut through */
		if (!step) {
			out_printf(o, "\\x%02x", s[i]);
			step = 1;
		} else if (utf8_is_unseen(c)) {
			out_printf(o, c < 0x80 ? "\\x%02x" : "\\u%04x", c);
		} else {
			out_mem(o, s + i, step);
		}
	}
	if (cut)
		out_printf(o, ".. (%zu bytes)", len);
}

void flame_xml(struct out *o, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		switch (s[i]) {
		case '&': out_str(o, "&amp;"); break;
		case '<': out_str(o, "&lt;"); break;
		case '>': out_str(o, "&gt;"); break;
		case '"': out_str(o, "&quot;"); break;
		default: out_char(o, s[i]);
		}
}

void flame_number(struct out *o, uint64_t v)
{
	char digits[24], *end = digits + sizeof(digits), *s = dec_text(end, v);

	for (; s < end; s++) {
		out_char(o, *s);
		if (s + 1 < end && (end - s - 1) % 3 == 0)
			out_char(o, ',');
	}
}
