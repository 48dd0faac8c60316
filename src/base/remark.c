/* See remark.h. */
#include "base/remark.h"

#include <string.h>

bool remarks_take(struct remarks *r, const char *text)
{
	const size_t n = strlen(text);

	if (hash_get(&r->texts, text, n))
		return false;
	if (r->texts.n >= REMARKS_MAX) {
		r->left_out += r->left_out < UINT32_MAX;
		return false;
	}
	(void)hash_put(&r->texts, text, n, NULL);
	return true;
}

void remarks_fini(struct remarks *r)
{
	hash_fini(&r->texts);
	r->left_out = 0;
}
