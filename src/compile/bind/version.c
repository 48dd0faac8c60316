/* Applies -x version, the version of D that a program was written for. Hides names that came later,
 * so that the program may use them for its own. Reports a version that D never had. */
#include "compile/bind/bind_private.h"

#include <ctype.h>

static const char *const versions[] = {
	"1.0",   "1.1",   "1.2",   "1.2.1",  "1.2.2", "1.3",   "1.4",   "1.4.1", "1.5", "1.6",
	"1.6.1", "1.6.2", "1.6.3", "1.6.4",  "1.7",   "1.7.1", "1.8",   "1.8.1", "1.9", "1.9.1",
	"1.10",  "1.11",  "1.12",  "1.12.1", "1.13",  "2.0",   "2.0.1", "2.0.2",
};

/* Names with the version that introduced them. All other names were in the first version. */
static const struct {
	const char *name, *since;
} later[] = {
	{ "htonl", "1.3" },      { "htonll", "1.3" },    { "htons", "1.3" },
	{ "ntohl", "1.3" },      { "ntohll", "1.3" },    { "ntohs", "1.3" },
	{ "substr", "1.1" },     { "index", "1.1" },     { "rindex", "1.1" },
	{ "strchr", "1.1" },     { "strrchr", "1.1" },   { "strstr", "1.1" },
	{ "strtok", "1.1" },     { "lltostr", "1.0" },   { "inet_ntoa", "1.5" },
	{ "inet_ntoa6", "1.5" }, { "inet_ntop", "1.5" }, { "sym", "1.2" },
	{ "mod", "1.2" },        { "func", "1.2" },      { "uaddr", "1.2" },
	{ "usym", "1.2" },       { "umod", "1.2" },      { "ufunc", "1.2" },
	{ "ucaller", "1.2" },    { "stddev", "1.6" },    { "llquantize", "1.7" },
	{ "toupper", "1.8" },    { "tolower", "1.8" },   { "print", "1.9" },
	{ "json", "1.11" },      { "strtoll", "1.11" },  { "execargs", "1.13" },
	{ "link_ntop", "2.0" },  { "pcap", "2.0" },      { "getf", "1.10" },
	{ "freopen", "1.1" },
};

/* Parses "1.6.2" into a number that can be compared. Returns false when s is no version. */
static bool parse(const char *s, uint32_t *ret)
{
	uint32_t v = 0;

	for (int part = 0; part < 3; part++) {
		uint32_t n = 0;

		if (part && !*s) {
			v <<= 8;
			continue;
		}
		if (part && *s++ != '.')
			return false;
		if (!isdigit((unsigned char)*s))
			return false;
		while (isdigit((unsigned char)*s) && n < 256)
			n = n * 10 + (uint32_t)(*s++ - '0');
		if (n > 255)
			return false;
		v = v << 8 | n;
	}
	*ret = v;
	return !*s;
}

void version_check_option(struct bind_cx *cx)
{
	const char *text = cx->options->v[OPT_VERSION].text;
	uint32_t v, known = 0;

	if (!text || !*text)
		return;
	if (!parse(text, &v)) {
		diag_error(cx->diags, 0, 0, "D_VERS_INVAL",
			   "version=%s: a version of D looks like 1.6 or 2.0.2", text);
		return;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (parse(versions[i], &known) && known == v)
			return;
	diag_error(cx->diags, 0, 0, "D_VERS_UNDEF",
		   "version=%s: there is no such version of D; the newest known here is %s", text,
		   versions[ARRAY_SIZE(versions) - 1]);
}

const char *version_hides(const struct bind_cx *cx, const char *name)
{
	const char *text = cx->options->v[OPT_VERSION].text;
	uint32_t asked, since;

	if (!text || !*text || cx->state->in_lib || cx->state->in_context || !parse(text, &asked))
		return NULL;
	for (uint32_t i = 0; i < ARRAY_SIZE(later); i++)
		if (!strcmp(later[i].name, name) && parse(later[i].since, &since) && since > asked)
			return later[i].since;
	return NULL;
}
