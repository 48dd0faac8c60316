/* Finds where a function ends, for return probes that must leave return addresses as they are. */
#include "load/kernel/kernel_private.h"

#include "program/object/object.h"
#include "program/text/text.h"

static const char *add_exits(const struct probe *p, struct text *t, exits_t *ret)
{
	struct text_site *sites = NULL;
	const char *reason = NULL;
	uint64_t last = 0, off;
	uint32_t n = 0;

	if (err_drop(text_returns(t, p->addr, &sites, &n, &reason)))
		return "its code cannot be read";
	for (uint32_t i = 0; i < n && !reason; i++) {
		uint64_t at = text_site_point(&sites[i]);

		if (i && at == last) /* several sites stand for one return */
			continue;
		last = at;
		if (sites[i].conditional)
			reason = "it ends by a conditional jump to another function";
		else if (!object_addr_to_offset(p->file, at, &off))
			reason = "no file offset for its end";
		else
			vec_push(ret, off);
	}
	free(sites);
	return reason;
}

const char *exits_find(const struct probe *p, struct exits_text *held, exits_t *ret)
{
	const char *reason = "its code cannot be read";

	if (held->file != p->file)
		exits_text_free(held);
	if (!object_reopen(p->file) || (!held->text && err_drop(text_open(p->file, &held->text))))
		return reason;
	held->file = p->file;
	reason = add_exits(p, held->text, ret);
	return reason == TEXT_NEVER_RETURNS ? NULL : reason;
}

void exits_text_free(struct exits_text *held)
{
	text_free(held->text);
	*held = (struct exits_text){ 0 };
}
