/* -x amin: the least stability that names may have, as name/data/class. Only what DTrace rates below Stable/Stable/Common
 * is told apart: what belongs to the kernel's inside. */
#include "compile/bind/state.h"

#include <strings.h>

static const char *const levels[] = { "Internal", "Private",  "Obsolete", "External",
				      "Unstable", "Evolving", "Stable",   "Standard" };
static const char *const classes[] = { "Unknown", "CPU", "Platform", "Group", "ISA", "Common" };

struct attr {
	int name, data, class;
};

static int word(const char *const *words, size_t n, const char *text, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(words[i]) == len && !strncasecmp(words[i], text, len))
			return (int)i;
	return -1;
}

/* "Evolving/Evolving/Common"; what is left out is not asked for. */
static bool parse(const char *text, struct attr *ret)
{
	int *parts[] = { &ret->name, &ret->data, &ret->class };

	for (int i = 0; i < 3 && *text; i++) {
		size_t len = strcspn(text, "/");

		*parts[i] = i < 2 ? word(levels, ARRAY_SIZE(levels), text, len)
				  : word(classes, ARRAY_SIZE(classes), text, len);
		if (*parts[i] < 0)
			return false;
		text += len;
		text += *text == '/';
	}
	return !*text;
}

void attr_check(struct bind_cx *cx, struct node *n, const char *what, enum attr_kind kind)
{
	static const struct attr of[] = {
		[ATTR_STABLE] = { 6, 6, 5 },
		[ATTR_PRIVATE_DATA] = { 6, 1, 5 },
		[ATTR_PRIVATE] = { 1, 1, 0 },
	};
	const char *text = cx->options->v[OPT_AMIN].text;
	struct attr min = { 0 };

	if (!text || !*text || cx->state->in_lib || cx->state->in_context)
		return;
	if (!parse(text, &min)) {
		bind_error(cx, n, "D_ATTR_MIN",
			   "amin=%s: stability is name/data/class, as in Evolving/Evolving/Common",
			   text);
		return;
	}
	if (of[kind].name >= min.name && of[kind].data >= min.data && of[kind].class >= min.class)
		return;
	bind_error(cx, n, "D_ATTR_MIN",
		   "attributes for %s (%s/%s/%s) are less than predefined minimum", what,
		   levels[of[kind].name], levels[of[kind].data], classes[of[kind].class]);
}
