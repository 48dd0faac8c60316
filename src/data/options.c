/* Parses, sets and locks options. */
#include "data/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/nearest.h"

struct option_info {
	const char *name;
	enum option_kind kind;
	const char *def;
	unsigned when;
};

static const struct option_info option_table[OPT_COUNT] = {
#define X(id, name, kind, def, when, doc) { name, kind, def, when },
#include "data/options.def"
#undef X
};

static const struct {
	const char *word;
	int64_t value;
} bool_words[] = {
	{ "1", 1 },       { "on", 1 },      { "set", 1 },      { "yes", 1 },   { "enable", 1 },
	{ "enabled", 1 }, { "true", 1 },    { "0", 0 },        { "off", 0 },   { "unset", 0 },
	{ "no", 0 },      { "disable", 0 }, { "disabled", 0 }, { "false", 0 },
};

/* Holds the longest message: names of the table and a bounded piece of the user's text. */
static char error_text[256];

static bool parse_int(const char *s, int64_t *ret, const char **ret_end)
{
	char *end;
	long long v;

	if (isspace((unsigned char)*s))
		return false;
	errno = 0;
	v = strtoll(s, &end, 0);
	if (end == s || errno)
		return false;
	*ret = v;
	*ret_end = end;
	return true;
}

static bool parse_size(const char *s, int64_t *ret)
{
	const char *end, *unit;
	int64_t v;
	int shift;

	if (!parse_int(s, &v, &end) || v < 0)
		return false;
	if (!*end) {
		*ret = v;
		return true;
	}
	unit = strchr("kmgt", tolower((unsigned char)*end));
	if (!unit || end[1])
		return false;
	shift = *unit == 'k' ? 10 : *unit == 'm' ? 20 : *unit == 'g' ? 30 : 40;
	if (v > INT64_MAX >> shift)
		return false;
	*ret = v << shift;
	return true;
}

static bool parse_rate(const char *s, int64_t *ret)
{
	const char *end;
	int64_t v, unit;

	if (!parse_int(s, &v, &end) || v < 0)
		return false;
	if (!*end || !strcasecmp(end, "hz")) {
		*ret = v ? 1000000000 / v : 0;
		return true;
	}
	unit = number_time_unit(end);
	return unit && !__builtin_mul_overflow(v, unit, ret);
}

static bool parse_bool(const char *s, int64_t *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(bool_words); i++) {
		if (!strcasecmp(s, bool_words[i].word)) {
			*ret = bool_words[i].value;
			return true;
		}
	}
	return false;
}

static bool parse_word(const char *words, const char *s, int64_t *ret)
{
	size_t n = strlen(s);

	for (int64_t i = 0; *words; i++) {
		size_t len = strcspn(words, "|");

		if (len == n && !strncasecmp(words, s, n)) {
			*ret = i;
			return true;
		}
		words += len + (words[len] == '|');
	}
	return false;
}

/* The registers that the compiler uses. It needs all of them and has no more. */
enum { IREGS = 8 };

static bool parse_value(const struct option_info *info, const char *s, int64_t *ret)
{
	const char *end;

	switch (info->kind) {
	case OPTION_BOOL: return parse_bool(s, ret);
	case OPTION_INT:
		return parse_int(s, ret, &end) && !*end &&
		       (info != &option_table[OPT_IREGS] || *ret <= IREGS) &&
		       (info != &option_table[OPT_NSPEC] || *ret >= 0);
	case OPTION_SIZE:
		/* A string has room for at least one character. */
		return parse_size(s, ret) && (info != &option_table[OPT_STRSIZE] || *ret > 1);
	case OPTION_RATE: return parse_rate(s, ret);
	case OPTION_ENUM: return parse_word(info->def, s, ret);
	case OPTION_TEXT:
	case OPTION_IGNORED: return true;
	}
	return false;
}

void options_init(struct options *o)
{
	memset(o, 0, sizeof(*o));
	for (int i = 0; i < OPT_COUNT; i++) {
		const struct option_info *info = &option_table[i];

		if (info->kind == OPTION_TEXT)
			o->v[i].text = xstrdup(info->def);
		else if (info->kind != OPTION_ENUM)
			parse_value(info, info->def, &o->v[i].num);
	}
}

void options_fini(struct options *o)
{
	for (int i = 0; i < OPT_COUNT; i++)
		free((char *)o->v[i].text);
	memset(o, 0, sizeof(*o));
}

static bool unknown_option(const char *name, const char **ret_error)
{
	struct nearest near = { .word = name };

	for (int i = 0; i < OPT_COUNT; i++)
		nearest_offer(&near, option_table[i].name);
	if (near.name)
		snprintf(error_text, sizeof(error_text), "Invalid option name (did you mean %s?)",
			 near.name);
	else
		snprintf(error_text, sizeof(error_text), "Invalid option name");
	*ret_error = error_text;
	return false;
}

bool options_set(struct options *o, const char *name, const char *value, enum option_when when,
		 const char **ret_error)
{
	const struct option_info *info = NULL;
	int64_t num = 0;
	int id;

	for (id = 0; id < OPT_COUNT && !info; id++) {
		if (!strcasecmp(option_table[id].name, name))
			info = &option_table[id];
	}
	if (!info)
		return unknown_option(name, ret_error);
	id--;
	/* Any option that can be set at all can be set before the run, by -x and by #pragma. */
	if (when == WHEN_DYNAMIC && !(info->when & WHEN_DYNAMIC)) {
		snprintf(error_text, sizeof(error_text),
			 "Operation illegal when tracing is active: option %s", info->name);
		*ret_error = error_text;
		return false;
	}
	if (!value && info->kind != OPTION_BOOL && info->kind != OPTION_IGNORED) {
		snprintf(error_text, sizeof(error_text), "Option %s needs a value", info->name);
		*ret_error = error_text;
		return false;
	}
	if (!value)
		num = 1;
	else if (!parse_value(info, value, &num)) {
		if (info->kind == OPTION_ENUM)
			snprintf(error_text, sizeof(error_text),
				 "Invalid value for specified option: %s is one of %s", info->name,
				 info->def);
		else
			snprintf(error_text, sizeof(error_text),
				 "Invalid value for specified option: %s=%.80s", info->name, value);
		*ret_error = error_text;
		return false;
	}
	if (id == OPT_IREGS && num < IREGS) {
		*ret_error = "Insufficient registers to generate code";
		return false;
	}
	if (o->locked[id] && num != o->v[id].num) {
		*ret_error = o->locked[id];
		return false;
	}
	o->v[id].set = true;
	o->v[id].num = num;
	if (info->kind == OPTION_TEXT) {
		free((char *)o->v[id].text);
		o->v[id].text = xstrdup(value);
	}
	return true;
}

void options_copy(struct options *o, const struct options *from)
{
	for (int i = 0; i < OPT_COUNT; i++) {
		free((char *)o->v[i].text);
		o->v[i] = from->v[i];
		if (from->v[i].text)
			o->v[i].text = xstrdup(from->v[i].text);
	}
}

bool options_set_text(struct options *o, const char *text, enum option_when when,
		      const char **ret_error)
{
	const char *eq = strchr(text, '=');
	cleanup_free char *name = eq ? xstrndup(text, (size_t)(eq - text)) : xstrdup(text);

	return options_set(o, name, eq ? eq + 1 : NULL, when, ret_error);
}

void options_lock(struct options *o, enum option_id id, const char *why)
{
	assert(option_table[id].kind != OPTION_TEXT);
	o->locked[id] = why;
}

const char *option_name(enum option_id id)
{
	return option_table[id].name;
}

void options_put(struct options *o, enum option_id id, int64_t num)
{
	o->v[id].set = true;
	o->v[id].num = num;
}
