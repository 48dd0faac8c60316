/* speedscope's JSON: frames by index, profiles of kind "sampled" (stacks and weights) or "evented"
 * (frames opened and closed at times). Adds up several profiles, mostly one of each thread, each
 * below a frame of its name.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "input/json_room.h"
#include "input/stackin/stackin_reader.h"

/* Each event is a stack of all frames that are open. The stacks of n bytes of JSON have at most
 * FRAMES_FREE + n * FRAMES_PER_BYTE frames. */
enum { FRAMES_FREE = 1 << 20, FRAMES_PER_BYTE = 16 };

struct speedscope {
	VEC(uint32_t) frames; /* ids in the tree */
	VEC(uint32_t) ids;    /* leaf first */
	VEC(uint32_t) open;   /* root first */
	uint32_t base;        /* the profile's name; NO_BASE: there is only one profile */
	double scale;         /* weights in the unit shown */
	uint64_t room;        /* frames that stacks may still have */
	struct perf_names names;
};

enum { NO_BASE = UINT32_MAX };

static struct text string_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_string(v) ? (struct text){ json_string_value(v), json_string_length(v) }
				 : (struct text){ "", 0 };
}

static void read_frames(struct stackin *in, struct speedscope *p, const json_t *frames)
{
	for (size_t i = 0; i < json_array_size(frames); i++) {
		const json_t *f = json_array_get(frames, i);
		struct text name = string_of(f, "name"), file = string_of(f, "file");

		if (!name.n)
			name = (struct text){ "[unknown]", 9 };
		if (!file.n)
			file = (struct text){ "[unknown]", 9 };
		vec_push(&p->frames,
			 perf_function(in, &p->names, name, (struct text){ "0", 1 }, file, false));
	}
}

static uint32_t frame_id(struct stackin *in, const struct speedscope *p, const json_t *index)
{
	json_int_t i = json_is_integer(index) ? json_integer_value(index) : -1;

	return i >= 0 && i < (json_int_t)p->frames.n ? p->frames.v[i]
						     : stacktree_marked(in->tree, "[unknown]", 9);
}

/* p->ids is the stack without its base frame. */
static void speedscope_add(struct stackin *in, struct speedscope *p, double weight)
{
	double v = round(weight * p->scale);

	in->lines++;
	if (!(v >= 0)) {
		stackin_skip(in);
		return;
	}
	if (p->base != NO_BASE)
		vec_push(&p->ids, p->base);
	if (!p->ids.n || v == 0)
		return;
	stackin_count(in, p->ids.v, p->ids.n, v >= 0x1p64 ? UINT64_MAX : (uint64_t)v);
}

/* Returns false when the stacks have too many frames with these. */
static bool take_room(struct speedscope *p, size_t n)
{
	if (n > p->room)
		return false;
	p->room -= n;
	return true;
}

static bool read_sampled(struct stackin *in, struct speedscope *p, const json_t *profile)
{
	const json_t *samples = json_object_get(profile, "samples");
	const json_t *weights = json_object_get(profile, "weights");

	for (size_t i = 0; i < json_array_size(samples); i++) {
		const json_t *stack = json_array_get(samples, i), *w = json_array_get(weights, i);

		if (!take_room(p, json_array_size(stack)))
			return false;
		p->ids.n = 0;
		for (size_t k = json_array_size(stack); k; k--)
			vec_push(&p->ids, frame_id(in, p, json_array_get(stack, k - 1)));
		speedscope_add(in, p, w ? json_number_value(w) : 1);
	}
	return true;
}

static bool read_evented(struct stackin *in, struct speedscope *p, const json_t *profile)
{
	const json_t *events = json_object_get(profile, "events");
	double last = json_number_value(json_object_get(profile, "startValue"));

	p->open.n = 0;
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *e = json_array_get(events, i);
		double at = json_number_value(json_object_get(e, "at"));
		struct text type = string_of(e, "type");

		if (!take_room(p, p->open.n))
			return false;
		p->ids.n = 0;
		for (uint32_t k = p->open.n; k; k--)
			vec_push(&p->ids, p->open.v[k - 1]);
		if (p->ids.n)
			speedscope_add(in, p, at - last);
		last = at;
		if (type.n == 1 && type.s[0] == 'O')
			vec_push(&p->open, frame_id(in, p, json_object_get(e, "frame")));
		else if (p->open.n)
			p->open.n--;
	}
	return true;
}

/* Whole numbers would lose fractions of seconds. */
static void take_unit(struct stackin *in, struct speedscope *p, struct text unit)
{
	p->scale = 1;
	if (unit.n == 7 && !memcmp(unit.s, "seconds", 7)) {
		p->scale = 1e6;
		unit = (struct text){ "microseconds", 12 };
	} else if (unit.n == 12 && !memcmp(unit.s, "milliseconds", 12)) {
		p->scale = 1e3;
		unit = (struct text){ "microseconds", 12 };
	}
	if (!in->unit && unit.n && !(unit.n == 4 && !memcmp(unit.s, "none", 4)))
		in->unit = xstrndup(unit.s, unit.n);
}

static bool wanted(const struct stackin *in, struct text name)
{
	const char *w = in->options.event;

	return !w || (strlen(w) == name.n && !memcmp(w, name.s, name.n));
}

static struct err *read_profiles(struct stackin *in, struct speedscope *p, const json_t *root)
{
	const json_t *profiles = json_object_get(root, "profiles");
	size_t n = json_array_size(profiles), taken = 0;

	if (!n)
		return err_new(0, "JSON without profiles of speedscope's kind");
	read_frames(in, p, json_object_get(json_object_get(root, "shared"), "frames"));
	for (size_t i = 0; i < n; i++) {
		const json_t *profile = json_array_get(profiles, i);
		struct text name = string_of(profile, "name"), type = string_of(profile, "type");

		if (!wanted(in, name)) {
			in->filtered++;
			continue;
		}
		taken++;
		p->base = NO_BASE;
		if (n > 1 && !in->options.event) {
			perf_comm(in, &p->names, name.n ? name : (struct text){ "-", 1 },
				  (struct text){ "", 0 }, (struct text){ "", 0 });
			p->base = p->names.comm.v[0];
		}
		take_unit(in, p, string_of(profile, "unit"));
		if (!(type.n == 7 && !memcmp(type.s, "evented", 7) ? read_evented(in, p, profile)
								   : read_sampled(in, p, profile)))
			return err_new(E2BIG, "the stacks of a speedscope profile have more frames "
					      "than its size allows");
	}
	return taken ? NULL : err_new(0, "there is no profile %s in the file", in->options.event);
}

static struct err *document(struct stackin *in, const uint8_t *data, size_t n)
{
	struct speedscope p = { .room = FRAMES_FREE + (uint64_t)n * FRAMES_PER_BYTE };
	struct err *e = json_room((const char *)data, n);
	json_error_t why;
	json_t *root = e ? NULL : json_loadb((const char *)data, n, 0, &why);

	if (e)
		return e;
	if (!root)
		return err_new(0, "JSON, line %d column %d: %s", why.line, why.column, why.text);
	e = read_profiles(in, &p, root);
	json_decref(root);
	vec_fini(&p.frames);
	vec_fini(&p.ids);
	vec_fini(&p.open);
	perf_names_fini(&p.names);
	return e;
}

static bool speedscope_begins(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && is_space((char)p[i]))
		i++;
	if (i == n || p[i++] != '{')
		return false;
	while (i < n && is_space((char)p[i]))
		i++;
	return i == n || p[i] == '"' || p[i] == '}';
}

const struct stackin_reader stackin_speedscope = {
	.begins = speedscope_begins,
	.document = document,
};
