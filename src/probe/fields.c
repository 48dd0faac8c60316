/* Reads the text form of the kernel's events. events/SUBSYSTEM/NAME/format in tracefs has the place
 * of each field in the event's record.
 *
 *	ID: 131
 *	format:
 *		field:unsigned short common_type;	offset:0;	size:2;	signed:0;
 *		...
 *		field:pid_t pid;	offset:8;	size:4;	signed:1;
 *		field:char oldcomm[16];	offset:12;	size:16;	signed:0;
 *		field:__data_loc char[] name;	offset:32;	size:4;	signed:0;
 *
 * All events have the first fields, before byte 8, and no program may read them.
 */
#include "probe/fields.h"

#include <ctype.h>
#include <string.h>

#include "probe/provider.h"
#include "probe/tracepoint.h"

enum { COMMON_BYTES = 8, RECORD_BYTES = 2048 /* PERF_MAX_TRACE_SIZE */ };

bool fields_event_number(struct probe_set *ps, const struct probe *p, int32_t *ret)
{
	static const char key[] = "\nID: ";
	cleanup_free char *text = NULL;
	struct err *e = tracepoint_format(ps, p->mod, p->name, &text);
	const char *id = e ? NULL : strstr(text, key);

	err_free(e);
	if (!id)
		return false;
	*ret = (int32_t)strtol(id + strlen(key), NULL, 10);
	return true;
}

/* The declaration of a field, without the field's name. */
struct declaration {
	char type[128];
	bool array;
	enum { HERE, DATA_LOC, REL_LOC } place;
};

static void cut_blanks(char *s)
{
	size_t n = strlen(s);

	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = 0;
}

static void cut_name(char *s)
{
	size_t n = strlen(s);

	while (n && (isalnum((unsigned char)s[n - 1]) || s[n - 1] == '_'))
		s[--n] = 0;
	cut_blanks(s);
}

/* Takes apart "char oldcomm[16]", "const char * name" or "__data_loc char[] name". Returns false
 * when it is too long. */
static bool take_apart(const char *text, size_t len, struct declaration *ret)
{
	static const char data_loc[] = "__data_loc ", rel_loc[] = "__rel_loc ";
	char *bracket;
	size_t n;

	*ret = (struct declaration){ 0 };
	if (!strncmp(text, data_loc, strlen(data_loc)))
		ret->place = DATA_LOC;
	else if (!strncmp(text, rel_loc, strlen(rel_loc)))
		ret->place = REL_LOC;
	n = ret->place == DATA_LOC ? strlen(data_loc) : ret->place ? strlen(rel_loc) : 0;
	if (len < n || len - n >= sizeof(ret->type))
		return false;
	memcpy(ret->type, text + n, len - n);
	bracket = strchr(ret->type, '[');
	ret->array = bracket;
	if (bracket)
		*bracket = 0;
	cut_blanks(ret->type);
	if (!ret->place) /* __data_loc and __rel_loc have the name behind the brackets */
		cut_name(ret->type);
	return true;
}

static type_id integer_type(uint64_t size, bool is_signed)
{
	switch (size) {
	case 1: return is_signed ? T_INT8 : T_UINT8;
	case 2: return is_signed ? T_INT16 : T_UINT16;
	case 4: return is_signed ? T_INT32 : T_UINT32;
	default: return is_signed ? T_INT64 : T_UINT64;
	}
}

static bool is_word(uint64_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static void set_type(struct probe_set *ps, const struct declaration *d, uint64_t size,
		     bool is_signed, struct probe_arg *a)
{
	type_id t = T_INT64;
	bool known = type_parse_name(ps->types, d->type, &t);
	uint64_t one = known ? type_size(ps->types, t) : 0;

	if (d->place) {
		a->source = ARG_FIELD_LOC;
		a->size = d->place == REL_LOC ? 4 : 0;
		a->type = type_new_pointer(ps->types, known ? t : T_CHAR);
	} else if (d->array || !is_word(size) || (known && !type_is_scalar(ps->types, t))) {
		a->source = ARG_FIELD_ADDR;
		if (!one || size % one)
			a->type = type_new_array(ps->types, T_UINT8, (uint32_t)size);
		else
			a->type = d->array ? type_new_array(ps->types, t, (uint32_t)(size / one))
					   : t;
	} else {
		a->source = ARG_FIELD;
		a->size = (int8_t)(is_signed ? -(int)size : (int)size);
		a->type = known && one == size ? t : integer_type(size, is_signed);
	}
}

/* Turns a line of a format into an argument. Returns false for other lines and for fields that no
 * program may read. */
static bool read_field(struct probe_set *ps, const char *line, struct probe_arg *ret)
{
	static const char key[] = "field:";
	const char *text = strstr(line, key), *end = text ? strchr(text, ';') : NULL;
	struct declaration d;
	unsigned long long at, size;
	int is_signed = 0;

	if (!end || sscanf(end, "; offset:%llu; size:%llu; signed:%d", &at, &size, &is_signed) < 2)
		return false;
	text += strlen(key);
	if (at < COMMON_BYTES || at > RECORD_BYTES || size > RECORD_BYTES - at ||
	    !take_apart(text, (size_t)(end - text), &d))
		return false;
	*ret = (struct probe_arg){ .value = (int64_t)at };
	set_type(ps, &d, size, is_signed, ret);
	/* Words that are not aligned cannot be loaded. */
	if (ret->source == ARG_FIELD && at % size)
		*ret = (struct probe_arg){ .source = ARG_NONE, .type = ret->type };
	return true;
}

struct err *fields_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	cleanup_free char *text = NULL;
	struct err *e = tracepoint_format(ps, p->mod, p->name, &text);
	uint32_t n = 0;

	if (e)
		return e;
	ret->known = true;
	for (char *line = text, *next; line; line = next) {
		struct probe_arg a;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (read_field(ps, line, &a))
			provider_set_arg(ps, ret, n++, &a);
	}
	return NULL;
}
