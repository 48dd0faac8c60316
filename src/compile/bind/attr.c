/* Checks -x amin: the least stability that names may have, as name/data/class. Distinguishes only
 * the names that DTrace rates below Stable/Stable/Common. They belong to the kernel's internals. */
#include "compile/bind/bind_private.h"
#include "probe/stability.h"

#include <strings.h>

static int word(const char *const *words, size_t n, const char *text, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(words[i]) == len && !strncasecmp(words[i], text, len))
			return (int)i;
	return -1;
}

/* Parses "Evolving/Evolving/Common". A missing part has no minimum. */
static bool parse(const char *text, struct stability *ret)
{
	int parts[3] = { 0 };

	for (int i = 0; i < 3 && *text; i++) {
		size_t len = strcspn(text, "/");

		parts[i] = i < 2 ? word(stability_levels, LEVEL_COUNT, text, len)
				 : word(stability_classes, CLASS_COUNT, text, len);
		if (parts[i] < 0)
			return false;
		text += len;
		text += *text == '/';
	}
	*ret = (struct stability){ (enum stability_level)parts[0], (enum stability_level)parts[1],
				   (enum stability_class)parts[2] };
	return !*text;
}

static const struct stability of[] = {
	[ATTR_STABLE] = { LEVEL_STABLE, LEVEL_STABLE, CLASS_COMMON },
	[ATTR_PRIVATE_DATA] = { LEVEL_STABLE, LEVEL_PRIVATE, CLASS_COMMON },
	[ATTR_PRIVATE] = { LEVEL_PRIVATE, LEVEL_PRIVATE, CLASS_UNKNOWN },
};

void attr_check(struct bind_cx *cx, struct node *n, const char *what, enum attr_kind kind)
{
	const char *text = cx->options->v[OPT_AMIN].text;
	struct stability min = { 0 };

	if (cx->state->in_lib || cx->state->in_context)
		return;
	if (cx->state->clause && cx->state->clause->least_stable < kind)
		cx->state->clause->least_stable = (uint8_t)kind;
	if (!text || !*text)
		return;
	if (!parse(text, &min)) {
		bind_error(cx, n, "D_ATTR_MIN",
			   "amin=%s: stability is name/data/class, as in Evolving/Evolving/Common",
			   text);
		return;
	}
	if (of[kind].names >= min.names && of[kind].data >= min.data &&
	    of[kind].dependency >= min.dependency)
		return;
	bind_error(cx, n, "D_ATTR_MIN",
		   "attributes for %s (%s/%s/%s) are less than predefined minimum", what,
		   stability_levels[of[kind].names], stability_levels[of[kind].data],
		   stability_classes[of[kind].dependency]);
}

struct stability bound_clause_stability(const struct bound_clause *c)
{
	return of[c->least_stable];
}
