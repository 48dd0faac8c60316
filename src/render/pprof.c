/* A stack tree as pprof's profile.proto, gzipped: one sample type, a sample for each node with a
 * count of its own, one location and one function for each frame.
 *
 *	tag = field << 3 | wire type (0: varint, 2: length and bytes)
 */
#include <errno.h>
#include <limits.h>
#include <zlib.h>

#include "base/hash.h"
#include "render/picture_flame.h"
#include "render/render.h"

enum { VARINT, BYTES = 2 };

/* Fields of the messages that are written. */
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
};
enum { VALUE_TYPE = 1, VALUE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_HAS_FUNCTIONS = 7 };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME };

struct pprof {
	struct out body;        /* the message that is being built */
	struct out part, inner; /* messages inside it */
	struct out text;        /* a name as it is shown */
	struct intern strings;  /* id = index in the string table */
	struct hash mappings;   /* string of the file -> id */
	VEC(uint32_t) files;    /* by mapping id - 1 */
};

static void varint(struct out *o, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		out_char(o, (char)(v | 0x80));
	out_char(o, (char)v);
}

static void pprof_number(struct out *o, uint32_t field, uint64_t v)
{
	if (!v)
		return;
	varint(o, field << 3 | VARINT);
	varint(o, v);
}

static void bytes(struct out *o, uint32_t field, const void *p, size_t n)
{
	varint(o, field << 3 | BYTES);
	varint(o, n);
	out_mem(o, p, n);
}

/* Writes the message that was built in `part`, and empties it. */
static void pprof_message(struct out *o, uint32_t field, struct out *part)
{
	bytes(o, field, part->v, part->n);
	part->n = 0;
}

static void value_type(struct pprof *p, uint32_t field, const char *type, const char *unit)
{
	pprof_number(&p->part, VALUE_TYPE, intern_str(&p->strings, type));
	pprof_number(&p->part, VALUE_UNIT, intern_str(&p->strings, unit));
	pprof_message(&p->body, field, &p->part);
}

static uint32_t mapping(struct pprof *p, uint32_t file)
{
	bool fresh;
	uint64_t *id = hash_put(&p->mappings, &file, sizeof(file), &fresh);

	if (fresh) {
		vec_push(&p->files, file);
		*id = p->files.n;
	}
	return (uint32_t)*id;
}

static uint32_t string_of(struct pprof *p, const char *text, size_t len)
{
	p->text.n = 0;
	flame_shown(&p->text, text, len);
	return intern_strn(&p->strings, p->text.v, p->text.n);
}

/* Writes location and function of a frame. Their ids are its index in the tree, because index 0 is
 * the root's. */
static void put_frame(struct pprof *p, const struct stacktree_frame *f, uint32_t id)
{
	uint32_t skip = f->module ? f->module + 1 : 0, file = 0, function;

	function = string_of(p, f->text + skip, f->len - skip);
	if (f->module)
		file = string_of(p, f->text, f->module);
	else if (profile_file(f->kind))
		file = intern_str(&p->strings, profile_file(f->kind));
	pprof_number(&p->part, LOCATION_ID, id);
	if (file)
		pprof_number(&p->part, LOCATION_MAPPING, mapping(p, file));
	pprof_number(&p->inner, LINE_FUNCTION, id);
	pprof_message(&p->part, LOCATION_LINE, &p->inner);
	pprof_message(&p->body, PROFILE_LOCATION, &p->part);
	pprof_number(&p->part, FUNCTION_ID, id);
	pprof_number(&p->part, FUNCTION_NAME, function);
	pprof_number(&p->part, FUNCTION_SYSTEM_NAME, function);
	pprof_message(&p->body, PROFILE_FUNCTION, &p->part);
}

static void put_samples(struct pprof *p, const struct stacktree *t)
{
	for (uint32_t i = 0; i < t->nodes.n; i++) {
		uint64_t self = t->nodes.v[i].self;

		if (!self)
			continue;
		for (uint32_t f = i; f != STACKTREE_ROOT; f = t->nodes.v[f].parent)
			varint(&p->inner, t->nodes.v[f].frame);
		pprof_message(&p->part, SAMPLE_LOCATION, &p->inner);
		varint(&p->inner, self > INT64_MAX ? INT64_MAX : self);
		pprof_message(&p->part, SAMPLE_VALUE, &p->inner);
		pprof_message(&p->body, PROFILE_SAMPLE, &p->part);
	}
}

static void put_strings(struct pprof *p)
{
	for (uint32_t i = 0; i < p->strings.n; i++) {
		const char *s = intern_text(&p->strings, i);

		bytes(&p->body, PROFILE_STRING, s, strlen(s));
	}
}

static void compress_to(struct out *o, const struct out *body)
{
	z_stream z = { 0 };
	size_t left = body->n;
	int rc = deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
	char block[16384];

	if (rc != Z_OK) { /* no memory is the only reason here */
		o->error = o->error ? o->error : ENOMEM;
		return;
	}
	z.next_in = (Bytef *)body->v;
	do {
		uInt n = left > UINT_MAX ? UINT_MAX : (uInt)left;

		z.avail_in = n;
		left -= n;
		do {
			z.next_out = (Bytef *)block;
			z.avail_out = sizeof(block);
			rc = deflate(&z, left ? Z_NO_FLUSH : Z_FINISH);
			out_mem(o, block, sizeof(block) - z.avail_out);
		} while (!z.avail_out);
	} while (left);
	(void)deflateEnd(&z);
}

void render_pprof(struct out *o, const struct stacktree *t, const struct profile_about *a)
{
	static const struct profile_about none = { 0 };
	struct pprof p = { 0 };

	if (!a)
		a = &none;
	intern_init(&p.strings);
	value_type(&p, PROFILE_SAMPLE_TYPE, a->type ? a->type : "samples",
		   a->unit ? a->unit : "count");
	for (uint32_t i = 1; i < t->frames.n; i++)
		put_frame(&p, &t->frames.v[i], i);
	for (uint32_t i = 0; i < p.files.n; i++) {
		pprof_number(&p.part, MAPPING_ID, i + 1);
		pprof_number(&p.part, MAPPING_FILE, p.files.v[i]);
		pprof_number(&p.part, MAPPING_HAS_FUNCTIONS, 1);
		pprof_message(&p.body, PROFILE_MAPPING, &p.part);
	}
	put_samples(&p, t);
	pprof_number(&p.body, PROFILE_TIME, a->time_ns);
	pprof_number(&p.body, PROFILE_DURATION, a->duration_ns);
	if (a->period_type)
		value_type(&p, PROFILE_PERIOD_TYPE, a->period_type,
			   a->period_unit ? a->period_unit : "count");
	pprof_number(&p.body, PROFILE_PERIOD, a->period);
	if (a->title) {
		uint32_t title = string_of(&p, a->title, strlen(a->title));

		pprof_number(&p.body, PROFILE_COMMENT, title);
	}
	put_strings(&p);
	compress_to(o, &p.body);
	out_fini(&p.body);
	out_fini(&p.part);
	out_fini(&p.inner);
	out_fini(&p.text);
	intern_fini(&p.strings);
	hash_fini(&p.mappings);
	vec_fini(&p.files);
}
